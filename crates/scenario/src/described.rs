//! A document's network and flows.

use crate::error::Fault;
use crate::files::Files;
use crate::flow::Flows;
use crate::model::Model;
use crate::network::{self, NamedNetwork};
use crate::source_table::SourceTable;
use crate::table::{Item, Table};
use crate::{run, tcp, topology};

/// What a document describes, and where.
#[derive(Debug)]
pub struct Described<'a> {
    /// What is described.
    pub model: Model,
    /// `[run]`.
    pub run: Item<'a>,
    /// `[topology]`.
    pub topology: Option<Item<'a>>,
    /// The tables of the model's links. Both directions of a link and all its copies have the same one.
    pub links: Vec<SourceTable<'a>>,
    /// The tables of the model's flows; copies have the same one.
    pub flows: Vec<SourceTable<'a>>,
}

/// Reads the network and the flows of a document, and the traces that it names. Other keys of it are not
/// looked at: whoever reads them too ends the reading with [`Table::finish`].
///
/// `seed` takes the place of the one in the document.
///
/// # Errors
/// Something is wrong, with its place; what is wrong elsewhere is kept.
pub fn read<'a>(
    document: &mut Table<'a>,
    seed: Option<u64>,
    files: &mut dyn Files,
) -> Result<Described<'a>, Fault> {
    let run = document.need("run", |item| Ok((item, run::read(item, seed)?)));
    let seed = run.as_ref().map_or(0, |(_, run)| run.seed);
    let mut network = NamedNetwork::new(seed, files);
    let (mut links, mut sources) = (Vec::new(), Vec::new());
    let before = document.faults_so_far();
    let topology = document.get("topology", |item| {
        topology::read(item, &mut network)?;
        links.resize(network.links.len(), SourceTable::of(&item.table("the [topology]")?));
        Ok(item)
    });
    for table in document.tables("node") {
        document.kept(network::read_node(table, &mut network));
    }
    network.has_all_nodes = document.faults_so_far() == before;
    for table in document.tables("link") {
        let origin = SourceTable::of(&table);
        document.kept(network::read_link(table, &mut network));
        links.resize(network.links.len(), origin);
    }
    network.has_all_links = document.faults_so_far() == before;
    let settings = document.get("tcp", tcp::read_all).unwrap_or_default();
    let mut flows = Flows::default();
    for table in document.tables("flow") {
        let origin = SourceTable::of(&table);
        document.kept(flows.read(table, &settings, &mut network));
        sources.resize(flows.all.len(), origin);
    }
    if document.faults_so_far() > 0 {
        return Err(Fault::TOLD);
    }
    let (item, run) = run?;
    let model = Model { nodes: network.nodes, links: network.links, flows: flows.all, run };
    Ok(Described { model, run: item, topology, links, flows: sources })
}
