//! What a rule answers.

/// A rung by its place in the ladder, and why it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// 0 is the lowest.
    pub rung: usize,
    /// What decided.
    pub why: &'static str,
}
