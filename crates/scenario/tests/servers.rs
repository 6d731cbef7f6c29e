//! What the server at a node allows, as it is read.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anabranch_scenario::model::{Above, MostConnections, Node, Server};
use anabranch_scenario::{Beside, Error, read, read_document};
use anabranch_units::Rate;

/// The nodes of a document that has this in a `[[node]]`.
fn nodes(text: &str) -> Result<Vec<Node>, Error> {
    let document = format!("run.duration = \"1s\"\n[[node]]\nname = \"replica{{i}}\"\ncount = 2\n{text}\n");
    read_document("test.toml", &document, "a scenario", |mut document| {
        let described = read(&mut document, None, &mut Beside(".".as_ref()));
        document.finish()?;
        Ok(described?.model.nodes)
    })
}

fn error(text: &str) -> String {
    nodes(text).unwrap_err().to_string()
}

#[test]
fn every_copy_of_a_node_has_its_server() {
    assert_eq!(nodes("").unwrap(), ["replica1", "replica2"].map(Node::new));
    let server = Server {
        connection_cap: Some(Rate::from_mbps(1)),
        client_cap: Some(Rate::from_kbps(2500)),
        connections: Some(MostConnections { most: 3, above: Above::Drop }),
    };
    let text = "server = { connection_cap = \"1M\", client_cap = \"2.5Mbps\", most_connections = 3, above = \"drop\" }";
    assert_eq!(nodes(text).unwrap(), ["replica1", "replica2"].map(|name| Node { server, ..Node::new(name) }));
}

#[test]
fn more_connections_than_are_allowed_are_refused_unless_something_else_is_said() {
    let bound = |text: &str| {
        nodes(&format!("server = {{ most_connections = 2{text} }}")).unwrap()[0].server.connections
    };
    let of = |above| Some(MostConnections { most: 2, above });
    assert_eq!(bound(""), of(Above::Refuse));
    assert_eq!(bound(", above = \"busy\""), of(Above::Busy));
    assert_eq!(nodes("server = {}").unwrap()[1].server, Server::default());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, expected) in [
        ("server = { above = \"drop\" }", "5:20: `above` says what becomes of more than `most_connections`"),
        ("server = { most_connections = 0 }", "5:31: `most_connections` is a whole number from 1"),
        ("server = { most_connections = 2, above = \"refuze\" }", "did you mean 'refuse'?"),
        ("server = { client_cap = \"0\" }", "5:25"),
        ("server = { conection_cap = \"1M\" }", "did you mean `connection_cap`?"),
        ("server = \"1M\"", "5:10: `server` is a table, not a string"),
    ] {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}
