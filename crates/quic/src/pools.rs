//! The pools that an operator has declared: a group each, from the first connection that belongs to it; and
//! one for all clients that are in none, in which pools are found.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_congestion::algorithm::Algorithm;
use tokio::task::{AbortHandle, JoinSet};

use super::Sharing;

/// Who holds the group of a pool without connections: the pools, and the task that looks after it.
const OURS: usize = 2;

/// Groups by the names of their pools, and the tasks that look after them, which end with this.
#[derive(Debug)]
pub struct Pools {
    algorithm: Algorithm,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    by_name: BTreeMap<String, (Arc<Sharing>, AbortHandle)>,
    found: Option<Arc<Sharing>>,
    tasks: JoinSet<()>,
}

impl Pools {
    /// None yet. `algorithm`: what the virtual flows of all of them run.
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, running: Mutex::default() }
    }

    /// The group of a pool. `is_declared`: whether there is still a pool of a name; the group of another one
    /// goes as soon as it has no connection.
    pub fn sharing(&self, name: &str, is_declared: impl Fn(&str) -> bool) -> Arc<Sharing> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { by_name, tasks, .. } = &mut *running;
        by_name.retain(|name, (sharing, task)| {
            let is_kept = is_declared(name) || Arc::strong_count(sharing) > OURS;
            if !is_kept {
                task.abort();
            }
            is_kept
        });
        while tasks.try_join_next().is_some() {}
        if let Some((sharing, _)) = by_name.get(name) {
            return sharing.clone();
        }
        let sharing = Sharing::declared(self.algorithm);
        let looked_after = sharing.clone();
        let task = tasks.spawn(async move { looked_after.run().await });
        by_name.insert(name.to_owned(), (sharing.clone(), task));
        sharing
    }

    /// The group of all clients that are in no declared pool: each begins alone.
    pub fn found(&self) -> Arc<Sharing> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { found, tasks, .. } = &mut *running;
        let algorithm = self.algorithm;
        let sharing = found.get_or_insert_with(|| {
            let sharing = Sharing::found(algorithm);
            let looked_after = sharing.clone();
            tasks.spawn(async move { looked_after.run().await });
            sharing
        });
        sharing.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pool_is_one_group_until_nobody_declares_it_and_nobody_is_in_it() {
        let pools = Pools::new(Algorithm::Reno);
        let count = || pools.running.lock().unwrap().by_name.len();
        let campus = pools.sharing("campus", |_| true);
        assert!(Arc::ptr_eq(&campus, &pools.sharing("campus", |_| true)));
        assert!(!Arc::ptr_eq(&campus, &pools.sharing("uplink", |_| true)));
        assert_eq!(count(), 2);

        // The file has only the uplink from now on, but somebody is in the other one.
        pools.sharing("uplink", |name| name == "uplink");
        assert_eq!(count(), 2);
        drop(campus);
        pools.sharing("uplink", |name| name == "uplink");
        assert_eq!(count(), 1);
    }
}
