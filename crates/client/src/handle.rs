//! What keeps a film open.

use std::sync::Arc;

use tokio::task::AbortHandle;

use super::open::FilmInfo;
use super::shared::Shared;

/// Held by everybody who uses the film; with the last one goes its owner, and with that all connections.
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) info: FilmInfo,
    pub(super) owner: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.owner.abort();
    }
}
