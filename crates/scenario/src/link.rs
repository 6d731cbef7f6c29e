//! Links: `[[link]]`, and the tables of a generated topology that describe links.

use anabranch_units::{Bytes, Duration, Rate, Time};

use crate::error::Fault;
use crate::files::Files;
use crate::model::{
    Change, CoDel, Discipline, GilbertElliott, Limit, Link, Loss, NodeId, Opportunities, Queue, Red,
};
use crate::names::copy_name;
use crate::table::{Item, Table};
use crate::trace::{self, Trace};

/// Most changes of a link, and most listed losses.
const MOST_CHANGES: usize = 100_000;
/// Most packets that a queue holds: every one that waits takes memory.
const MOST_PACKETS: u32 = 1_000_000;
/// Most bytes that a queue holds.
const MOST_BYTES: Bytes = Bytes::mib(1024);

/// What a link is in one direction, wherever it leads.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    queue: Queue,
    loss: Loss,
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

    /// A link like this one that is so much longer.
    pub(crate) fn longer(mut self, delay: Duration) -> Self {
        self.forward.0.delay += delay;
        if let Some((reverse, _)) = &mut self.reverse {
            reverse.delay += delay;
        }
        self
    }
}

impl Direction {
    pub(crate) fn between(self, name: String, from: NodeId, to: NodeId) -> Link {
        let Self { rate, delay, queue, loss, changes, opportunities } = self;
        Link { name, from, to, rate, delay, queue, loss, changes, opportunities }
    }

    /// A link without anything special.
    pub(crate) fn plain(rate: Rate, delay: Duration) -> Self {
        let queue = Queue { limit: Limit::Packets(100), discipline: Discipline::DropTail };
        Self { rate, delay, queue, loss: Loss::None, changes: Vec::new(), opportunities: None }
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
        if let Some(queue) = table.get("queue", limit) {
            direction.queue.limit = queue;
        }
        if let Some(discipline) = table.get("discipline", discipline) {
            direction.queue.discipline = discipline;
        }
        if let Some(loss) = table.get("loss", loss) {
            direction.loss = loss;
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

/// `50 packets` or `64KiB`.
fn limit(item: Item<'_>) -> Result<Limit, Fault> {
    let text = item.text().map_err(|fault| fault.help("write it like \"50 packets\" or \"64KiB\""))?;
    let Some(count) = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"))
    else {
        let size = item.size_within(Bytes::ZERO, MOST_BYTES);
        let size = size.map_err(|fault| fault.help("a queue is written like \"50 packets\" or \"64KiB\""))?;
        // Less would let no full packet through.
        return match size < Bytes::new(1500) {
            true => Err(item.fault("a queue holds at least 1500B: the packet in transmission counts")),
            false => Ok(Limit::Bytes(size)),
        };
    };
    match count.trim().parse() {
        Ok(count) if (1..=MOST_PACKETS).contains(&count) => Ok(Limit::Packets(count)),
        _ => Err(item.fault(format_args!(
            "a queue holds 1 to {MOST_PACKETS} packets: the packet in transmission counts"
        ))),
    }
}

/// A discipline by its name, or with its parameters.
fn discipline(item: Item<'_>) -> Result<Discipline, Fault> {
    // Floyd's recommendations of 1997 and the defaults of ns-2.
    const RED: Red = Red { low: 5.0, high: 15.0, most: 0.1, weight: 0.002 };
    const CODEL: CoDel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    let choices = [
        ("droptail", Discipline::DropTail),
        ("red", Discipline::Red(RED)),
        ("codel", Discipline::CoDel(CODEL)),
    ];
    let (mut discipline, mut table) = item.named("a queue's `discipline`", &choices)?;
    let mut at = table.span;
    match &mut discipline {
        Discipline::DropTail => {}
        Discipline::Red(red) => {
            let threshold =
                |item: Item<'_>| item.number(|number| number > 0.0 && number <= 1e6, "of packets above 0");
            let share =
                |item: Item<'_>| item.number(|number| number > 0.0 && number <= 1.0, "above 0, up to 1");
            red.low = table.get("low", threshold).unwrap_or(red.low);
            let high = table.get("high", |item| Ok((threshold(item)?, item.span)));
            red.high = high.map_or(red.high, |(high, _)| high);
            red.most = table.get("most", share).unwrap_or(red.most);
            red.weight = table.get("weight", share).unwrap_or(red.weight);
            at = high.map_or(at, |(_, span)| span);
        }
        Discipline::CoDel(codel) => {
            codel.target = table.get("target", Item::positive_duration).unwrap_or(codel.target);
            codel.interval = table.get("interval", Item::positive_duration).unwrap_or(codel.interval);
        }
    }
    table.finish()?;
    match discipline {
        Discipline::Red(Red { low, high, .. }) if low >= high => {
            Err(Fault::new(at, format_args!("`low` ({low}) has to be below `high` ({high})")))
        }
        Discipline::CoDel(CoDel { target, interval }) if target >= interval => {
            Err(item
                .fault(format_args!("`target` ({target}) has to be shorter than `interval` ({interval})")))
        }
        _ => Ok(discipline),
    }
}

/// Kinds of losses that have parameters.
#[derive(Clone, Copy)]
enum LossKind {
    Bernoulli,
    GilbertElliott,
    Listed,
}

/// A probability, or a table.
fn loss(item: Item<'_>) -> Result<Loss, Fault> {
    let bernoulli = |probability| if probability > 0.0 { Loss::Bernoulli(probability) } else { Loss::None };
    if !item.value.is_table() {
        return item.probability().map(bernoulli);
    }
    let choices = [
        ("bernoulli", LossKind::Bernoulli),
        ("gilbert-elliott", LossKind::GilbertElliott),
        ("listed", LossKind::Listed),
    ];
    let mut table = item.table("a link's `loss`")?;
    let loss = match table.need("kind", |item| item.one_of(&choices))? {
        LossKind::Bernoulli => table.need("probability", Item::probability).map(bernoulli),
        LossKind::GilbertElliott => {
            let to_bad = table.need("to_bad", Item::probability);
            let to_good = table.need("to_good", Item::probability);
            let loss_good = table.get("loss_good", Item::probability).unwrap_or(0.0);
            let loss_bad = table.get("loss_bad", Item::probability).unwrap_or(1.0);
            to_bad.and_then(|to_bad| {
                Ok(Loss::GilbertElliott(GilbertElliott { to_bad, to_good: to_good?, loss_good, loss_bad }))
            })
        }
        LossKind::Listed => table.need("packets", listed).map(|packets| match packets.is_empty() {
            true => Loss::None,
            false => Loss::Listed(packets),
        }),
    };
    table.finish()?;
    loss
}

/// Places in the order of arrival, which rise.
fn listed(item: Item<'_>) -> Result<Vec<u64>, Fault> {
    if item.list()?.len() > MOST_CHANGES {
        return Err(item.fault(format_args!("at most {MOST_CHANGES} listed losses")));
    }
    let mut last = None;
    item.each(|item| {
        let place = item.whole(0..=u64::MAX)?;
        match last.replace(place) {
            Some(last) if last >= place => Err(item.fault("the places of lost packets have to rise")),
            _ => Ok(place),
        }
    })
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
        let loss = table.get("loss", loss);
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
