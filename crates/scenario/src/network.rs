//! The nodes and links of a scenario by their names, while it is read.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_units::{Bytes, Time};

use crate::error::{Fault, Span, nearest};
use crate::files::Files;
use crate::link::Pair;
use crate::model::{Link, LossModel, Node, NodeId, When};
use crate::names::{check_name, copy_name, numbered};
use crate::random::Random;
use crate::server;
use crate::table::{Item, Table};

/// Most nodes: the routes between them take the square of their number.
const MOST_NODES: u32 = 2_000;
/// Most links, each direction counted.
const MOST_LINKS: u32 = 20_000;
/// Most entries of timetables, traces, changes and lists of losses together: they are held for every flow and
/// link.
const MOST_ENTRIES: usize = 10_000_000;
/// The stream of random numbers that networks are drawn from; those of a simulation count from zero. Those of
/// the flows are before it.
const STREAM: u64 = u64::MAX;

/// What has been read so far.
pub(crate) struct NamedNetwork<'a> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// Where the files are that the scenario names.
    pub(crate) files: &'a mut dyn Files,
    /// Whether all nodes were read, and all links: where one is missing for a fault of its own, nobody else
    /// is to blame.
    pub(crate) has_all_nodes: bool,
    pub(crate) has_all_links: bool,
    seed: u64,
    random: Random,
    node_names: BTreeMap<String, NodeId>,
    link_names: BTreeSet<String>,
    /// From a node: which nodes a link leads to.
    neighbours: Vec<Vec<NodeId>>,
    /// From a node: which nodes can be reached.
    reached: BTreeMap<NodeId, Vec<bool>>,
    entries: usize,
}

impl<'a> NamedNetwork<'a> {
    pub(crate) fn new(seed: u64, files: &'a mut dyn Files) -> Self {
        Self {
            nodes: Vec::new(),
            links: Vec::new(),
            files,
            has_all_nodes: true,
            has_all_links: true,
            seed,
            random: Random::new(seed, STREAM),
            node_names: BTreeMap::new(),
            link_names: BTreeSet::new(),
            neighbours: Vec::new(),
            reached: BTreeMap::new(),
            entries: 0,
        }
    }

    pub(crate) fn add_node(&mut self, name: String, span: Span) -> Result<NodeId, Fault> {
        check_name(&name, span)?;
        if self.nodes.len() >= MOST_NODES as usize {
            return Err(Fault::new(span, format_args!("more than {MOST_NODES} nodes")));
        }
        let id = self.nodes.len();
        match self.node_names.entry(name) {
            Entry::Occupied(first) => {
                return Err(Fault::new(span, format_args!("a second node has the name '{}'", first.key())));
            }
            Entry::Vacant(place) => {
                self.nodes.push(Node::new(place.key().clone()));
                place.insert(id);
            }
        }
        self.neighbours.push(Vec::new());
        Ok(id)
    }

    /// Adds both directions of a link; without names of their own they are called `from-to` and `to-from`.
    pub(crate) fn add_link(&mut self, pair: Pair, from: NodeId, to: NodeId, span: Span) -> Result<(), Fault> {
        let (forward, name) = pair.forward;
        self.add_direction(name, forward.between(String::new(), from, to), span)?;
        match pair.reverse {
            Some((reverse, name)) => self.add_direction(name, reverse.between(String::new(), to, from), span),
            None => Ok(()),
        }
    }

    /// Counts entries that are held in memory.
    pub(crate) fn charge(&mut self, entries: usize, span: Span) -> Result<(), Fault> {
        self.entries += entries;
        if self.entries <= MOST_ENTRIES {
            return Ok(());
        }
        let text = "entries of traces, timetables, changes and listed losses, every copy counted";
        Err(Fault::new(span, format_args!("more than {MOST_ENTRIES} {text}")))
    }

    fn add_direction(&mut self, name: Option<String>, link: Link, span: Span) -> Result<(), Fault> {
        let default = || format!("{}-{}", self.nodes[link.from].name, self.nodes[link.to].name);
        let name = match name {
            Some(name) => {
                check_name(&name, span)?;
                name
            }
            None => default(),
        };
        let opportunities = link.opportunities.as_ref().map_or(0, |opportunities| opportunities.at.len());
        let listed = if let LossModel::Listed(packets) = &link.loss { packets.len() } else { 0 };
        self.charge(opportunities + listed + link.changes.len(), span)?;
        if self.links.len() >= MOST_LINKS as usize {
            return Err(Fault::new(
                span,
                format_args!("more than {MOST_LINKS} links (both directions count)"),
            ));
        }
        if !self.link_names.insert(name.clone()) {
            let fault = Fault::new(span, format_args!("a second link has the name '{name}'"));
            return Err(fault.help("give links between the same nodes names of their own, with `name`"));
        }
        self.neighbours[link.from].push(link.to);
        self.links.push(Link { name, ..link });
        Ok(())
    }

    /// The node that `item` names for copy number `copy`. `{random}` draws a number whose node is not in
    /// `taken`.
    pub(crate) fn find(&mut self, item: Item<'_>, copy: u32, taken: &[NodeId]) -> Result<NodeId, Fault> {
        let name = numbered(item.text()?, copy);
        if let Some((before, after)) = name.split_once("{random}") {
            return self.draw(item, before, after, taken);
        }
        if let Some(id) = self.node_names.get(&name) {
            return Ok(*id);
        }
        if !self.has_all_nodes {
            return Err(Fault::TOLD);
        }
        let fault = item.fault(format_args!("there is no node '{name}'"));
        Err(match nearest(&name, self.node_names.keys().map(String::as_str)) {
            Some(meant) => fault.help(format_args!("did you mean '{meant}'?")),
            None => fault.help("every node needs a [[node]], or a [topology] that has it"),
        })
    }

    fn draw(&mut self, item: Item<'_>, before: &str, after: &str, taken: &[NodeId]) -> Result<NodeId, Fault> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |name: &str| {
            let number = name.strip_prefix(before).and_then(|name| name.strip_suffix(after));
            number.is_some_and(is_number)
        };
        let nodes: Vec<NodeId> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(id, node)| fits(&node.name) && !taken.contains(id))
            .map(|(id, _)| id)
            .collect();
        match self.choose(&nodes) {
            Some(id) => Ok(id),
            None if !self.has_all_nodes => Err(Fault::TOLD),
            None => {
                Err(item
                    .fault(format_args!("there is no other node '{before}1{after}', '{before}2{after}' ...")))
            }
        }
    }

    /// What is drawn from now on is drawn for the flow with this number, from numbers of its own: so what one
    /// flow draws moves no other.
    pub(crate) fn draw_for_flow(&mut self, number: usize) {
        let number = u64::try_from(number).unwrap_or_default();
        self.random = Random::new(self.seed, STREAM - 1 - number);
    }

    /// One of `values`, drawn with the seed.
    pub(crate) fn choose<T: Copy>(&mut self, values: &[T]) -> Option<T> {
        let drawn = self.random.below(values.len().try_into().ok()?);
        values.get(usize::try_from(drawn).ok()?).copied()
    }

    /// A fault unless packets find a way from one node to another.
    pub(crate) fn check_way(&mut self, from: NodeId, to: NodeId, span: Span) -> Result<(), Fault> {
        let name = |id: NodeId| &self.nodes[id].name;
        if from == to {
            return Err(Fault::new(span, format_args!("a flow from '{}' to itself", name(from))));
        }
        let neighbours = &self.neighbours;
        let reached = self.reached.entry(from).or_insert_with(|| reachable(neighbours, from));
        match reached[to] || !self.has_all_links {
            true => Ok(()),
            false => {
                Err(Fault::new(span, format_args!("no links lead from '{}' to '{}'", name(from), name(to))))
            }
        }
    }

    /// A moment or an interval: `"5s"`, `["0s", "5s"]`.
    pub(crate) fn when(item: Item<'_>) -> Result<When, Fault> {
        match &range(item, Item::moment)?[..] {
            [at] => Ok(When::At(*at)),
            [from, to] => Ok(When::Between(*from, *to)),
            _ => Ok(When::At(Time::ZERO)),
        }
    }

    /// A size, or one drawn uniformly between two: `"10MB"`, `["10MB", "100MB"]`.
    pub(crate) fn size(&mut self, item: Item<'_>) -> Result<Bytes, Fault> {
        match &range(item, Item::positive_size)?[..] {
            [from, to] => Ok(*from + Bytes::new(self.random.below((*to - *from).get() + 1))),
            sizes => Ok(sizes.first().copied().unwrap_or_default()),
        }
    }
}

/// One value, or two in their order.
fn range<'a, T: PartialOrd>(
    item: Item<'a>,
    read: impl Fn(Item<'a>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    if !item.value.is_array() {
        return Ok(vec![read(item)?]);
    }
    let values = item.each(read)?;
    match &values[..] {
        [from, to] if from <= to => Ok(values),
        _ => Err(item
            .fault(format_args!("`{}` is one value, or two in brackets: the least and the most", item.key))),
    }
}

fn reachable(neighbours: &[Vec<NodeId>], from: NodeId) -> Vec<bool> {
    let mut reached = vec![false; neighbours.len()];
    let mut waiting = VecDeque::from([from]);
    while let Some(node) = waiting.pop_front() {
        if !std::mem::replace(&mut reached[node], true) {
            waiting.extend(neighbours[node].iter().filter(|next| !reached[**next]));
        }
    }
    reached
}

/// Reads a `[[node]]`.
pub(crate) fn read_node(mut table: Table<'_>, network: &mut NamedNetwork<'_>) -> Result<(), Fault> {
    let name = table.need("name", |item| Ok((item.text()?, item.span)));
    let count = table.get("count", |item| item.count(1..=MOST_NODES));
    let server = table.get("server", server::read).unwrap_or_default();
    table.finish()?;
    let (pattern, span) = name?;
    (1..=count.unwrap_or(1)).try_for_each(|copy| {
        let id = network.add_node(copy_name(pattern, copy, count), span)?;
        network.nodes[id].server = server;
        Ok(())
    })
}

/// Reads a `[[link]]`.
pub(crate) fn read_link(mut table: Table<'_>, network: &mut NamedNetwork<'_>) -> Result<(), Fault> {
    let (from, to) = (table.need("from", Ok), table.need("to", Ok));
    let count = table.get("count", |item| item.count(1..=MOST_LINKS));
    let delay_spread = table.get("delay_spread", Item::duration).unwrap_or_default();
    let rate_spread = table.get("rate_spread", Item::rate).unwrap_or_default();
    let pair = Pair::read(&mut table, network.files);
    let copies = count.unwrap_or(1);
    for copy in 1..=copies {
        let first = table.kept(from.clone().and_then(|item| network.find(item, copy, &[])));
        let second = table.kept(to.clone().and_then(|item| network.find(item, copy, &[])));
        let (Some(first), Some(second), Ok(to), Ok(pair)) = (first, second, &to, &pair) else { break };
        let added = match first == second {
            true => Err(to.fault("a link from a node to itself")),
            false => network.add_link(
                pair.copy(copy, count).spread(delay_spread, copy, copies).spread_rate(
                    rate_spread,
                    copy,
                    copies,
                ),
                first,
                second,
                table.span,
            ),
        };
        if table.kept(added).is_none() {
            break;
        }
    }
    table.finish()
}
