//! Connections of TCP go by the weights through the kernel's congestion control `group`, where that is
//! loaded.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_congestion::vps::Weight;
use anabranch_http::tcp::unacknowledged;
use anabranch_kernel::{Error, Given, GroupNumber};
use anabranch_server::{SocketGroups, SocketMember};
use anabranch_units::Bytes;

use crate::output::Output;

/// The groups of the control, a pool each.
pub struct InKernel {
    output: Output,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The control as it is loaded.
    given: Option<Arc<Given>>,
    /// Why it cannot be used, as it was told last.
    problem: Option<String>,
    /// Of pools and connections: what was told once.
    told: BTreeSet<String>,
}

impl InKernel {
    /// Nothing is looked for yet.
    pub fn new(output: Output) -> Self {
        Self { output, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The control as it is loaded now; tells when that has changed.
    fn current(&self, state: &mut State) -> Option<Arc<Given>> {
        if let Some(given) = state.given.as_ref().filter(|given| given.is_current()) {
            return Some(given.clone());
        }
        state.given = None;
        match Given::open() {
            Ok(given) => {
                self.output.say("HTTP over TCP goes by the weights: the kernel's control 'group' is loaded");
                state.problem = None;
                state.given = Some(Arc::new(given));
            }
            Err(error) => {
                let problem = error.to_string();
                if state.problem.as_ref() != Some(&problem) {
                    self.output.warn(format_args!("HTTP over TCP does not go by the weights: {problem}"));
                    state.problem = Some(problem);
                }
            }
        }
        state.given.clone()
    }

    /// Tells why connections send on their own, once.
    fn tell_once(&self, state: &mut State, pool: &str, why: impl std::fmt::Display) {
        let told = format!("clients of the pool '{pool}' send on their own over TCP: {why}");
        if state.told.insert(told.clone()) {
            self.output.warn(told);
        }
    }
}

impl SocketGroups for InKernel {
    fn join(&self, socket: OwnedFd, pool: &str, weight: Weight) -> Option<Box<dyn SocketMember>> {
        let mut state = self.lock();
        // Once a second it is looked for.
        state.given.as_ref()?;
        let given = self.current(&mut state)?;
        let name = match pool.parse() {
            Ok(name) => name,
            Err(why) => {
                self.tell_once(&mut state, pool, why);
                return None;
            }
        };
        let joined = given.group(name).and_then(|group| {
            given.join(socket.as_fd(), group, weight)?;
            Ok(group)
        });
        match joined {
            Ok(group) => Some(Box::new(Member { socket, given, group })),
            // It was unloaded in this moment.
            Err(Error::NotLoaded(_)) => None,
            Err(why) => {
                self.tell_once(&mut state, pool, why);
                None
            }
        }
    }

    fn look(&self) {
        self.current(&mut self.lock());
    }
}

/// A connection in a group of the kernel's.
struct Member {
    socket: OwnedFd,
    given: Arc<Given>,
    group: GroupNumber,
}

impl SocketMember for Member {
    fn weigh(&self, weight: Weight) {
        if let Err(error) = self.given.weigh(self.socket.as_fd(), self.group, weight) {
            tracing::debug!(%error, "a connection keeps its weight");
        }
    }

    fn is_sending(&self) -> bool {
        unacknowledged(self.socket.as_fd()) > Bytes::ZERO
    }
}
