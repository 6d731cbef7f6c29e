//! What the server at a node allows: `server` of a `[[node]]`.

use crate::error::Fault;
use crate::model::{Above, MostConnections, Server};
use crate::table::Item;

/// Bounds above it are slips of the pen.
const MOST: u32 = 1_000_000;

/// Reads the table.
pub(crate) fn read(item: Item<'_>) -> Result<Server, Fault> {
    let choices = [("refuse", Above::Refuse), ("busy", Above::Busy), ("drop", Above::Drop)];
    let mut table = item.table("a node's `server`")?;
    let connection_cap = table.get("connection_cap", Item::rate);
    let client_cap = table.get("client_cap", Item::rate);
    let most = table.get("most_connections", |item| item.count(1..=MOST));
    let is_bounded = table.has("most_connections");
    let above = table.get("above", |item| match is_bounded {
        true => item.one_of(&choices),
        false => Err(item.fault("`above` says what becomes of more than `most_connections`")),
    });
    table.finish()?;
    let connections = most.map(|most| MostConnections { most, above: above.unwrap_or_default() });
    Ok(Server { connection_cap, client_cap, connections })
}
