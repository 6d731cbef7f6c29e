//! Static routes: the fewest hops; among equals the links that come first in the model.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{FlowId, Kind, LinkId, Model, NodeId};

/// One step of a path, in a word: every packet reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop(u32);

const DIRECT: u32 = 1 << 31;

impl Hop {
    /// The end of a path.
    pub(crate) const ARRIVED: Self = Self(!DIRECT);

    /// Over a link.
    pub(crate) fn over(link: LinkId) -> Self {
        Self(link as u32)
    }

    /// The link, where this is not the end.
    #[inline]
    pub(crate) fn link(self) -> usize {
        (self.0 & !DIRECT) as usize
    }

    /// Whether all of the link's packets come from one other link that is no faster: then nothing can come
    /// between, and they enter it without an event of their own.
    #[inline]
    pub(crate) fn is_direct(self) -> bool {
        self.0 & DIRECT != 0
    }

    /// The same step, direct.
    pub(crate) fn as_direct(self) -> Self {
        Self(self.0 | DIRECT)
    }
}

/// The slowest link on the way of a flow's data, the first of equals; `None` where no single sender and
/// receiver is told, as for media. Changes of a link's rate do not count.
#[must_use]
pub fn bottleneck(model: &Model, flow: FlowId) -> Option<LinkId> {
    let Kind::Tcp { from, to, .. } = model.flows.get(flow)?.kind else { return None };
    let way = Routes::new(model).path(from, to)?;
    way.into_iter().min_by_key(|link| model.links[*link].rate)
}

/// The links of a model by the nodes that they leave and enter.
#[derive(Debug)]
pub(crate) struct Routes<'a> {
    model: &'a Model,
    leaving: Vec<Vec<LinkId>>,
    entering: Vec<Vec<LinkId>>,
    /// Paths between nodes that have several links.
    known: BTreeMap<(NodeId, NodeId), Option<Vec<LinkId>>>,
}

impl<'a> Routes<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        let mut leaving = vec![Vec::new(); model.nodes.len()];
        let mut entering = vec![Vec::new(); model.nodes.len()];
        for (id, link) in model.links.iter().enumerate() {
            leaving[link.from].push(id);
            entering[link.to].push(id);
        }
        Self { model, leaving, entering, known: BTreeMap::new() }
    }

    /// The links from one node to another; `None` when there is no way.
    pub(crate) fn path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        // The only link of a host needs no search, so that a network of many hosts needs few.
        let mut first = Vec::new();
        let mut start = from;
        if start != to
            && let [link] = self.leaving[start][..]
        {
            first.push(link);
            start = self.model.links[link].to;
        }
        let mut last = Vec::new();
        let mut end = to;
        if start != end
            && let [link] = self.entering[end][..]
        {
            last.push(link);
            end = self.model.links[link].from;
        }
        let middle = match self.known.get(&(start, end)) {
            Some(known) => known.clone(),
            None => {
                let found = self.search(start, end);
                self.known.insert((start, end), found.clone());
                found
            }
        };
        first.extend(middle?);
        first.extend(last);
        Some(first)
    }

    fn search(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let mut reached_by: Vec<Option<LinkId>> = vec![None; self.leaving.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            if node == to {
                break;
            }
            for &link in &self.leaving[node] {
                let next = self.model.links[link].to;
                if next != from && reached_by[next].is_none() {
                    reached_by[next] = Some(link);
                    waiting.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let link = reached_by[node]?;
            path.push(link);
            node = self.model.links[link].from;
        }
        path.reverse();
        Some(path)
    }
}
