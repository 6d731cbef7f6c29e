//! Before a link's transmitter: how much its queue holds, what the queue drops, a policer and a shaper.

use anabranch_units::{Bytes, Duration};

use crate::error::Fault;
use crate::model::{CoDel, Discipline, DualPi2, FqCoDel, Limit, Pie, Red, TokenBucket};
use crate::table::{Item, Table};

/// Most packets that a queue holds: every one that waits takes memory.
const MOST_PACKETS: u32 = 1_000_000;
/// Most bytes that a queue holds.
const MOST_BYTES: Bytes = Bytes::mib(1024);

/// `50 packets` or `64KiB`.
pub(crate) fn limit(item: Item<'_>) -> Result<Limit, Fault> {
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
pub(crate) fn discipline(item: Item<'_>) -> Result<Discipline, Fault> {
    // Floyd's recommendations of 1997 and the defaults of ns-2.
    const RED: Red = Red { low: 5.0, high: 15.0, most: 0.1, weight: 0.002, ecn: false };
    const CODEL: CoDel =
        CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false };
    const FQ_CODEL: FqCoDel = FqCoDel { codel: CODEL, quantum: Bytes::new(1514) };
    const PIE: Pie = Pie { target: Duration::from_millis(15), ecn: false };
    const DUALPI2: DualPi2 = DualPi2 {
        target: Duration::from_millis(15),
        coupling: 2.0,
        threshold: Duration::from_micros(800),
        range: Duration::from_micros(400),
    };
    let choices = [
        ("droptail", Discipline::DropTail),
        ("red", Discipline::Red(RED)),
        ("codel", Discipline::CoDel(CODEL)),
        ("fq-codel", Discipline::FqCoDel(FQ_CODEL)),
        ("pie", Discipline::Pie(PIE)),
        ("dualpi2", Discipline::DualPi2(DUALPI2)),
    ];
    let (mut discipline, mut table) = item.named("a queue's `discipline`", &choices)?;
    let mut at = table.span;
    match &mut discipline {
        Discipline::DropTail => table
            .refuse("ecn", "DropTail marks nothing: a discipline with `ecn` is red, codel, fq-codel or pie"),
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
            red.ecn = table.get("ecn", Item::flag).unwrap_or(red.ecn);
            at = high.map_or(at, |(_, span)| span);
        }
        Discipline::Pie(pie) => {
            pie.target = table.get("target", Item::positive_duration).unwrap_or(pie.target);
            pie.ecn = table.get("ecn", Item::flag).unwrap_or(pie.ecn);
        }
        Discipline::DualPi2(dualpi2) => {
            dualpi2.target = table.get("target", Item::positive_duration).unwrap_or(dualpi2.target);
            let coupling = |item: Item<'_>| item.number(|k| (0.1..=100.0).contains(&k), "from 0.1 to 100");
            dualpi2.coupling = table.get("coupling", coupling).unwrap_or(dualpi2.coupling);
            dualpi2.threshold = table.get("threshold", Item::duration).unwrap_or(dualpi2.threshold);
            dualpi2.range = table.get("range", Item::duration).unwrap_or(dualpi2.range);
            table.refuse("ecn", "DualPI2 always marks: leave out `ecn`");
        }
        Discipline::CoDel(codel) => read_codel(&mut table, codel),
        Discipline::FqCoDel(FqCoDel { codel, quantum }) => {
            read_codel(&mut table, codel);
            let within = |item: Item<'_>| item.size_within(Bytes::new(1), MOST_BYTES);
            *quantum = table.get("quantum", within).unwrap_or(*quantum);
        }
    }
    table.finish()?;
    match discipline {
        Discipline::Red(Red { low, high, .. }) if low >= high => {
            Err(Fault::new(at, format_args!("`low` ({low}) has to be below `high` ({high})")))
        }
        Discipline::CoDel(CoDel { target, interval, .. })
        | Discipline::FqCoDel(FqCoDel { codel: CoDel { target, interval, .. }, .. })
            if target >= interval =>
        {
            Err(item
                .fault(format_args!("`target` ({target}) has to be shorter than `interval` ({interval})")))
        }
        _ => Ok(discipline),
    }
}

fn read_codel(table: &mut Table<'_>, codel: &mut CoDel) {
    codel.target = table.get("target", Item::positive_duration).unwrap_or(codel.target);
    codel.interval = table.get("interval", Item::positive_duration).unwrap_or(codel.interval);
    codel.ecn = table.get("ecn", Item::flag).unwrap_or(codel.ecn);
}

/// A policer or a shaper: `false`, where the other direction has one, or a table. `what` it is, with its
/// article.
pub(crate) fn bucket(item: Item<'_>, what: &str) -> Result<Option<TokenBucket>, Fault> {
    if matches!(item.flag(), Ok(false)) {
        return Ok(None);
    }
    let mut table = item.table(what)?;
    let rate = table.need("rate", Item::rate);
    // Less would let no full packet through.
    let burst = table.need("burst", |item| item.size_within(Bytes::new(1500), MOST_BYTES));
    table.finish()?;
    Ok(Some(TokenBucket { rate: rate?, burst: burst? }))
}
