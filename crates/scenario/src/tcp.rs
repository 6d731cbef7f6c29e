//! How a TCP behaves: `[tcp.NAME]`, or a flow's own `tcp = { ... }`.

use std::collections::BTreeMap;

use anabranch_congestion::algorithm::NotAnAlgorithm;
use anabranch_congestion::need::NeedRule;
use anabranch_congestion::tfwc::{BufferRule, Tuning};
use anabranch_congestion::vps::Weight;
use anabranch_congestion::vps::settings::Begins;
use anabranch_units::{Bytes, Duration, Packets};

use crate::error::{Fault, nearest};
use crate::model::{Congestion, DelayedAck, Ecn, Form, Recovery, Rto, Share, Tcp};
use crate::table::{Item, Table};

/// The largest IP packet, and what SACK blocks can add to a TCP header.
const LARGEST_PACKET: Bytes = Bytes::new(65_535);
const OPTIONS: Bytes = Bytes::new(24);

/// The settings that have names; wrong ones are a fault that is kept.
pub(crate) type Settings<'a> = BTreeMap<&'a str, Result<Tcp, Fault>>;

/// Reads `[tcp]`, whose keys are names.
pub(crate) fn read_all(item: Item<'_>) -> Result<Settings<'_>, Fault> {
    let mut named = item.table("[tcp]")?;
    let items: Vec<_> = named.entries().collect();
    let mut kept = |item: Item<'_>| {
        let tcp = read(item, &format!("[tcp.{}]", item.key));
        named.kept(tcp).ok_or(Fault::TOLD)
    };
    Ok(items.into_iter().map(|item| (item.key, kept(item))).collect())
}

/// A flow's `tcp`: the name of settings, or settings.
pub(crate) fn of_flow(table: &mut Table<'_>, copy: u32, settings: &Settings<'_>) -> Result<Tcp, Fault> {
    match table.item("tcp") {
        Some(_) => table.need("tcp", |item| named_or_own(item.turn(copy)?, settings)),
        None => Ok(Tcp::DEPLOYED),
    }
}

fn named_or_own(item: Item<'_>, settings: &Settings<'_>) -> Result<Tcp, Fault> {
    if item.value.is_table() {
        return read(item, "a flow's `tcp`");
    }
    let name = item.text()?;
    settings.get(name).cloned().unwrap_or_else(|| {
        let fault = item.fault(format_args!("there are no TCP settings '{name}'"));
        Err(match nearest(name, settings.keys().copied()) {
            Some(meant) => fault.help(format_args!("did you mean '{meant}'?")),
            None => fault
                .help(format_args!("write a table [tcp.{name}], or leave it out for TCP as it is deployed")),
        })
    })
}

/// Reads settings; what is not said is as deployed.
fn read(item: Item<'_>, what: &str) -> Result<Tcp, Fault> {
    let part = |least| move |item: Item<'_>| item.size_within(Bytes::new(least), LARGEST_PACKET);
    let segments = |item: Item<'_>| item.count(1..=1_000_000).map(|count| Packets::new(count.into()));
    let deployed = Tcp::DEPLOYED;
    let mut table = item.table(what)?;
    let tcp = Tcp {
        segment: table.get("segment", part(1)).unwrap_or(deployed.segment),
        header: table.get("header", part(0)).unwrap_or(deployed.header),
        congestion: table.get("congestion", congestion).unwrap_or(deployed.congestion),
        initial_window: table.get("initial_window", segments).unwrap_or(deployed.initial_window),
        initial_ssthresh: table.get("initial_ssthresh", segments).or(deployed.initial_ssthresh),
        receive_window: table.get("receive_window", Item::positive_size).or(deployed.receive_window),
        delayed_ack: table.get("delayed_ack", delayed_ack).unwrap_or(deployed.delayed_ack),
        limited_transmit: table.get("limited_transmit", Item::flag).unwrap_or(deployed.limited_transmit),
        idle_restart: table.get("idle_restart", Item::flag).unwrap_or(deployed.idle_restart),
        timestamps: table.get("timestamps", Item::flag).unwrap_or(deployed.timestamps),
        rto: table.get("rto", rto).unwrap_or(deployed.rto),
        recovery: table
            .get("recovery", |item| {
                item.one_of(&[("sack", Recovery::Sack), ("ns2-sack1", Recovery::Ns2Sack1)])
            })
            .unwrap_or(deployed.recovery),
        ecn: table
            .get("ecn", |item| item.one_of(&[("classic", Ecn::Classic), ("l4s", Ecn::L4s)]))
            .or(deployed.ecn),
        send_jitter: table.get("send_jitter", Item::duration).unwrap_or(deployed.send_jitter),
        share: None,
        tuning: table.get("tuning_by_buffer", tuning),
    };
    let ecn = table.item("ecn").or(table.item("congestion"));
    table.finish()?;
    if let Some((item, deaf)) = ecn.zip(tcp.deaf_to_marks()) {
        return Err(item.fault(deaf));
    }
    if tcp.segment + tcp.header + OPTIONS > LARGEST_PACKET {
        let packet =
            format_args!("a `segment` of {} with its `header` is larger than an IP packet", tcp.segment);
        return Err(item.fault(packet));
    }
    match tcp.receive_window {
        Some(window) if window < tcp.segment => Err(item.fault(format_args!(
            "the `receive_window` ({window}) is smaller than a `segment` ({})",
            tcp.segment
        ))),
        _ => Ok(tcp),
    }
}

/// A congestion control, with its parameter after a colon.
fn congestion(item: Item<'_>) -> Result<Congestion, Fault> {
    let text = item.text()?;
    text.parse().map_err(|error: NotAnAlgorithm| {
        let forms =
            ["reno", "cubic", "multcp:4", "tfwc", "ttfwc:0.9", "ttfwc-approximate:0.9", "bbr", "dctcp"];
        let meant = nearest(text, forms);
        let meant = meant.map_or_else(String::new, |form| format!("did you mean '{form}'? "));
        item.fault(format_args!("`congestion`: {}", error.problem()))
            .help(format_args!("{meant}it is one of {}", Congestion::FORMS))
    })
}

/// A flow's `group`: a name, or a table with the name and the flow's weight.
pub(crate) fn share(item: Item<'_>) -> Result<Share, Fault> {
    if !item.value.is_table() {
        let group = item.text()?.to_owned();
        return Ok(Share { group, weight: Weight::ONE, by_need: None, watches: None, form: Form::Vps });
    }
    let mut table = item.table("a flow's `group`")?;
    let group = table.need("name", Item::text);
    let weight =
        table.get("weight", |item| item.number(|weight| Weight::new(weight).is_some(), "from 0.001 to 1000"));
    let weight = weight.and_then(Weight::new);
    let by_need = table.get("by_need", |item| match weight {
        Some(_) => Err(item.fault("either `weight` or `by_need`, not both")),
        None => need(item),
    });
    let watches = table.get("watch", watches).flatten();
    let form = table.get("form", |item| item.one_of(&[("vps", Form::Vps), ("window", Form::Window)]));
    table.finish()?;
    Ok(Share {
        group: group?.to_owned(),
        weight: weight.unwrap_or(Weight::ONE),
        by_need: by_need.flatten(),
        watches,
        form: form.unwrap_or_default(),
    })
}

/// Where members of a group that watches begin: `true` alone, `"declared"` together.
fn watches(item: Item<'_>) -> Result<Option<Begins>, Fault> {
    match (item.value.as_bool(), item.value.as_str()) {
        (Some(is_on), _) => Ok(is_on.then_some(Begins::Alone)),
        (None, Some(_)) => item.one_of(&[("declared", Begins::Together)]).map(Some),
        (None, None) => Err(item.fault("`watch` is true, false or \"declared\"")),
    }
}

/// How what a player tells gives its weight: `true`, or a table with the rule's parameters.
fn need(item: Item<'_>) -> Result<Option<NeedRule>, Fault> {
    let default = NeedRule::default();
    if let Some(is_on) = item.value.as_bool() {
        return Ok(is_on.then_some(default));
    }
    let mut table = item.table("`by_need`, which is true, false or a table,")?;
    let weight = |item: Item<'_>| item.number(|weight| Weight::new(weight).is_some(), "from 0.001 to 1000");
    let mut end = |key, default| table.get(key, weight).and_then(Weight::new).unwrap_or(default);
    let (most, least) = (end("most", default.most), end("least", default.least));
    let low = table.get("low", Item::duration).unwrap_or(default.low);
    let high = table.get("high", Item::duration).unwrap_or(default.high);
    table.finish()?;
    if low > high {
        return Err(item.fault(format_args!("`low` ({low}) is above `high` ({high})")));
    }
    if most < least {
        return Err(item.fault(format_args!("`most` ({most}) is below `least` ({least})")));
    }
    Ok(Some(NeedRule { low, high, most, least }))
}

/// How a player's buffer tunes its senders.
fn tuning(item: Item<'_>) -> Result<BufferRule, Fault> {
    let default = BufferRule::default();
    let mut table = item.table("`tuning_by_buffer`")?;
    let parameter = |item: Item<'_>| item.number(|tp| Tuning::new(tp).is_some(), "from 0 to 1");
    let mut tuning =
        |key, default: Tuning| table.get(key, parameter).and_then(Tuning::new).unwrap_or(default);
    let (fast, smooth) = (tuning("fast", default.fast), tuning("smooth", default.smooth));
    let low = table.get("low", Item::duration).unwrap_or(default.low);
    let high = table.get("high", Item::duration).unwrap_or(default.high);
    table.finish()?;
    if low > high {
        return Err(item.fault(format_args!("`low` ({low}) is above `high` ({high})")));
    }
    Ok(BufferRule { low, high, fast, smooth })
}

/// `false`, or a table; `true` stands for what is deployed.
fn delayed_ack(item: Item<'_>) -> Result<Option<DelayedAck>, Fault> {
    const DEPLOYED: DelayedAck = DelayedAck { every: 2, delay: Duration::from_millis(40) };
    if let Some(is_on) = item.value.as_bool() {
        return Ok(is_on.then_some(DEPLOYED));
    }
    let mut table = item.table("`delayed_ack`, which is false, true or a table,")?;
    let every = table.get("every", |item| item.count(1..=1000)).unwrap_or(DEPLOYED.every);
    let delay = table.get("delay", Item::positive_duration).unwrap_or(DEPLOYED.delay);
    table.finish()?;
    Ok(Some(DelayedAck { every, delay }))
}

fn rto(item: Item<'_>) -> Result<Rto, Fault> {
    let deployed = Tcp::DEPLOYED.rto;
    let mut table = item.table("a TCP's `rto`")?;
    let rto = Rto {
        initial: table.get("initial", Item::positive_duration).unwrap_or(deployed.initial),
        least: table.get("least", Item::positive_duration).unwrap_or(deployed.least),
        most: table.get("most", Item::positive_duration).unwrap_or(deployed.most),
        granularity: table.get("granularity", Item::duration).unwrap_or(deployed.granularity),
    };
    table.finish()?;
    if rto.least > rto.most {
        return Err(item.fault(format_args!("`least` ({}) is above `most` ({})", rto.least, rto.most)));
    }
    Ok(rto)
}
