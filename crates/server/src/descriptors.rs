//! How many connections the system's limit of open files has room for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::limits::MOST_REFUSALS;

/// Descriptors that belong to no connection: listeners, logs, the runtime's own, and metrics' clients.
const OTHERS: u64 = 64;
/// A connection's socket, and the file that it sends.
const EACH: u64 = 2;
/// Of one that shares by weights: whoever sets them has the socket as well.
const EACH_THAT_SHARES: u64 = 3;

/// Raises this process's limit of open files as far as it may, and tells it; `None` where there is none.
pub fn raise_descriptor_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        // The limit of before holds, and is told.
        Err(_) => limit.current,
    }
}

/// The connections that each of `servers` servers of a process can have with so many descriptors, where they
/// `share` by weights or do not: one at the least.
pub fn connections_within(descriptors: Option<u64>, servers: usize, share: bool) -> usize {
    let servers = servers.max(1) as u64;
    let Some(descriptors) = descriptors else { return usize::MAX };
    let left = descriptors.saturating_sub(OTHERS) / servers;
    let connections = left.saturating_sub(MOST_REFUSALS as u64) / if share { EACH_THAT_SHARES } else { EACH };
    usize::try_from(connections).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_files_refusals_and_the_rest() {
        assert_eq!(connections_within(Some(1024), 1, false), 448);
        assert_eq!(connections_within(Some(1024), 3, false), 128);
        assert_eq!(connections_within(Some(20), 1, false), 1);
        assert_eq!(connections_within(None, 1, false), usize::MAX);
        assert_eq!(connections_within(Some(1024), 1, true), 298);
    }
}
