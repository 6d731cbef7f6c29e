//! Links: `[[link]]`, and the tables of a generated topology that describe links.

use anabranch_units::{Duration, Rate, Time};

use crate::error::Fault;
use crate::files::Files;
use crate::model::{
    Change, Discipline, Jitter, Limit, Link, LossModel, NodeId, Opportunities, Queue, TokenBucket,
};
use crate::names::copy_name;
use crate::queue;
use crate::table::{Item, Table};
use crate::trace::{self, Trace};
use crate::wire;

/// Most changes of a link.
const MOST_CHANGES: usize = 100_000;
/// What a link is in one direction, wherever it leads.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) queue: Queue,
    policer: Option<TokenBucket>,
    shaper: Option<TokenBucket>,
    loss: LossModel,
    jitter: Option<Jitter>,
    duplicate: f64,
    changes: Vec<Change>,
    opportunities: Option<Opportunities>,
}

/// Both directions of a link, each with the name that it was given; the second is missing on a simplex one.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) forward: (Direction, Option<String>),
    pub(crate) reverse: Option<(Direction, Option<String>)>,
}

impl Pair {
    /// Reads the keys that every description of a link has.
    pub(crate) fn read(table: &mut Table<'_>, files: &mut dyn Files) -> Result<Self, Fault> {
        let name = table.get("name", Item::text).map(str::to_owned);
        let forward = Direction::read(table, None, files);
        let simplex = table.get("simplex", Item::flag).unwrap_or(false);
        let reverse = table.get("reverse", |item| {
            if simplex {
                return Err(item.fault("a simplex link has no reverse direction"));
            }
            let mut table = item.table("a link's `reverse`")?;
            let name = table.get("name", Item::text).map(str::to_owned);
            // Where the other direction is wrong, this one is still looked at.
            let base = forward.clone().unwrap_or_else(|_| Direction::plain(Rate::ZERO, Duration::ZERO));
            let reverse = Direction::read(&mut table, Some(&base), files);
            table.finish()?;
            Ok((reverse?, name))
        });
        let forward = forward?;
        let reverse = reverse.or_else(|| (!simplex).then(|| (forward.clone(), None)));
        Ok(Self { forward: (forward, name), reverse })
    }

    /// The description of a link that is not a `[[link]]`: at `item`, of which nothing but the link is said.
    pub(crate) fn of(item: Item<'_>, files: &mut dyn Files) -> Result<Self, Fault> {
        let mut table = item.table(&format!("the link `{}`", item.key))?;
        let pair = Self::read(&mut table, files);
        table.finish()?;
        pair
    }

    /// A link that is the same in both directions.
    pub(crate) fn duplex(direction: Direction) -> Self {
        Self { forward: (direction.clone(), None), reverse: Some((direction, None)) }
    }

    /// The same for copy number `copy`, whose names differ from those of the others.
    pub(crate) fn copy(&self, copy: u32, count: Option<u32>) -> Self {
        let mut pair = self.clone();
        let names =
            [&mut pair.forward].into_iter().chain(&mut pair.reverse).filter_map(|(_, name)| name.as_mut());
        names.for_each(|name| *name = copy_name(name, copy, count));
        pair
    }

    /// A link like this one of another rate.
    pub(crate) fn at_rate(mut self, rate: Rate) -> Self {
        self.forward.0.rate = rate;
        if let Some((reverse, _)) = &mut self.reverse {
            reverse.rate = rate;
        }
        self
    }

    /// A link like this one that is longer by its part of `spread`: the first of `count` by nothing, the last
    /// by all of it.
    pub(crate) fn spread(self, spread: Duration, number: u32, count: u32) -> Self {
        self.longer(spread * u64::from(number - 1) / u64::from(count.max(2) - 1))
    }

    /// A link like this one that is faster by its part of `spread`, by the same rule.
    pub(crate) fn spread_rate(mut self, spread: Rate, number: u32, count: u32) -> Self {
        let part = Rate::from_bps(spread.as_bps() * u64::from(number - 1) / u64::from(count.max(2) - 1));
        self.forward.0.rate += part;
        if let Some((reverse, _)) = &mut self.reverse {
            reverse.rate += part;
        }
        self
    }

    /// A link like this one that is so much longer.
    fn longer(mut self, delay: Duration) -> Self {
        self.forward.0.delay += delay;
        if let Some((reverse, _)) = &mut self.reverse {
            reverse.delay += delay;
        }
        self
    }
}

impl Direction {
    pub(crate) fn between(self, name: String, from: NodeId, to: NodeId) -> Link {
        let Self { rate, delay, queue, policer, shaper, loss, jitter, duplicate, changes, opportunities } =
            self;
        Link {
            name,
            from,
            to,
            rate,
            delay,
            queue,
            policer,
            shaper,
            loss,
            jitter,
            duplicate,
            changes,
            opportunities,
        }
    }

    /// A link without anything special.
    pub(crate) fn plain(rate: Rate, delay: Duration) -> Self {
        let queue = Queue { limit: Limit::Packets(100), discipline: Discipline::DropTail };
        Self {
            rate,
            delay,
            queue,
            policer: None,
            shaper: None,
            loss: LossModel::None,
            jitter: None,
            duplicate: 0.0,
            changes: Vec::new(),
            opportunities: None,
        }
    }

    /// Reads a direction; what is not said is as in `base`.
    fn read(table: &mut Table<'_>, base: Option<&Self>, files: &mut dyn Files) -> Result<Self, Fault> {
        let mut direction = base.cloned().unwrap_or_else(|| Self::plain(Rate::ZERO, Duration::ZERO));
        let trace = table.get("trace", |item| trace::read(item, files));
        let has_trace = table.has("trace");
        let rate = match base {
            // A trace has it, and the other direction has one.
            _ if has_trace => table
                .get("rate", |rate| Err(rate.fault("`rate` does not go with `trace`, which has the rate"))),
            Some(_) => table.get("rate", Item::rate),
            None => table.need("rate", Item::rate).ok(),
        };
        if has_trace || rate.is_some() {
            // What the other direction's capacity does is not this one's business.
            direction.opportunities = None;
            direction.changes.clear();
        }
        direction.rate = rate.unwrap_or(direction.rate);
        match trace {
            Some(Trace::Opportunities(opportunities, mean)) => {
                direction.rate = mean;
                direction.opportunities = Some(opportunities);
            }
            Some(Trace::Rates(first, changes)) => {
                direction.rate = first;
                direction.changes = changes;
            }
            None => {}
        }
        let delay = match base {
            Some(_) => table.get("delay", Item::duration),
            None => table.need("delay", Item::duration).ok(),
        };
        direction.delay = delay.unwrap_or(direction.delay);
        if let Some(queue) = table.get("queue", queue::limit) {
            direction.queue.limit = queue;
        }
        if let Some(discipline) = table.get("discipline", queue::discipline) {
            direction.queue.discipline = discipline;
        }
        if let Some(policer) = table.get("policer", |item| queue::bucket(item, "a link's `policer`")) {
            direction.policer = policer;
        }
        if let Some(shaper) = table.get("shaper", |item| queue::bucket(item, "a link's `shaper`")) {
            direction.shaper = shaper;
        }
        if let Some(loss) = table.get("loss", wire::loss) {
            direction.loss = loss;
        }
        if let Some(jitter) = table.get("jitter", wire::jitter) {
            direction.jitter = jitter;
        }
        if let Some(duplicate) = table.get("duplicate", Item::probability) {
            direction.duplicate = duplicate;
        }
        let has_trace = has_trace || direction.opportunities.is_some();
        if let Some(changes) = table.get("changes", |item| changes(item, direction.rate, has_trace)) {
            match has_trace {
                // The trace's own changes of the rate stay.
                true => direction.changes.extend(changes),
                false => direction.changes = changes,
            }
            direction.changes = in_order(direction.changes);
        }
        Ok(direction)
    }
}

/// What changes at given moments. `rate` is the link's own.
fn changes(item: Item<'_>, mut rate: Rate, has_trace: bool) -> Result<Vec<Change>, Fault> {
    if item.list()?.len() > MOST_CHANGES {
        return Err(item.fault(format_args!("at most {MOST_CHANGES} changes of a link")));
    }
    let mut last: Option<Time> = None;
    item.each(|item| {
        let mut table = item.table("a change of a link")?;
        let at = table.need("at", |item| match (item.moment()?, last) {
            (at, Some(last)) if last >= at => {
                Err(item.fault(format_args!("changes go forward in time: the one before is at {last}")))
            }
            (at, _) => Ok(at),
        });
        last = at.as_ref().ok().copied().or(last);
        let by_trace = |item: &Item<'_>| match has_trace {
            true => Err(item.fault("a link with a trace changes its rate by the trace only")),
            false => Ok(()),
        };
        let has_rate = table.has("rate");
        let new_rate = table.get("rate", |item| by_trace(&item).and_then(|()| item.rate()));
        let down = table.get("down", |item| match has_rate {
            true => Err(item.fault("`down` does not go with `rate`: a new rate brings the link up")),
            false => by_trace(&item).and_then(|()| item.flag()),
        });
        rate = new_rate.unwrap_or(rate);
        // Up again: with the rate that it had.
        let new_rate = new_rate.or(down.map(|is_down| if is_down { Rate::ZERO } else { rate }));
        let delay = table.get("delay", Item::duration);
        let loss = table.get("loss", wire::loss);
        let span = table.span;
        table.finish()?;
        let change = Change { at: at?, rate: new_rate, delay, loss };
        match change == (Change { at: change.at, rate: None, delay: None, loss: None }) {
            true => Err(Fault::new(span, "this changes nothing: say `rate`, `delay`, `loss` or `down`")),
            false => Ok(change),
        }
    })
}

/// The changes of a trace and others in the order of time, those of one moment as one. Only the trace's have
/// a rate.
fn in_order(mut changes: Vec<Change>) -> Vec<Change> {
    changes.sort_by_key(|change| change.at);
    changes.dedup_by(|later, earlier| {
        let is_same = later.at == earlier.at;
        if is_same {
            earlier.rate = earlier.rate.or(later.rate);
            earlier.delay = earlier.delay.or(later.delay);
            earlier.loss = earlier.loss.take().or(later.loss.take());
        }
        is_same
    });
    changes
}
