//! What the server at a node allows the clients of streams.

use anabranch_units::Rate;

/// What a server allows. Where nothing is said it allows everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The most that it sends over each connection, in payload.
    pub connection_cap: Option<Rate>,
    /// The most that it sends to each client, over all its connections together.
    pub client_cap: Option<Rate>,
    /// How many connections it has at once, of all clients.
    pub connections: Option<MostConnections>,
}

/// A bound on a server's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MostConnections {
    /// So many it has.
    pub most: u32,
    /// What becomes of more.
    pub above: Above,
}

/// What becomes of a connection that is one too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Above {
    /// It is refused at once, with a reset.
    #[default]
    Refuse,
    /// It is accepted, and its requests are answered with 503.
    Busy,
    /// Nothing is answered.
    Drop,
}
