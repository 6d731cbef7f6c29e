//! What the model was before a recovery, which may turn out not to have been needed.

use super::state::State;

/// What the model was when the last recovery began (section 2.15). All bounds are zero before the first, and
/// an undo raises none.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the state that losses of this recovery ended.
    pub state: Option<State>,
    /// `BBR.undo_bw_shortterm` in bytes per second.
    pub bandwidth: f64,
    /// `BBR.undo_inflight_shortterm` in bytes.
    pub inflight: f64,
    /// `BBR.undo_inflight_longterm` in bytes.
    pub longterm_inflight: f64,
}
