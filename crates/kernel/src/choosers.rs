//! Who may choose a control.

/// Who may choose a control for a connection. Whatever it is, a route (`congctl`) or the default of new
/// connections gives a control to programs that choose none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosers {
    /// Whoever has CAP_NET_ADMIN.
    Privileged,
    /// Every user of the machine.
    Anyone,
}
