//! What a model must keep to.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::joint::MOST_MEMBERS;
use anabranch_scenario::MOST_CONNECTIONS;
use anabranch_units::{Bytes, Duration, Time};

use crate::model::{
    Act, Congestion, Discipline, Flow, Form, FqCoDel, Kind, Limit, Link, Loss, Model, NodeId, Pattern,
    Reader, Recovery, Share, Source, Tcp, When,
};

/// Where in a model something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In `run`.
    Run,
    /// In the node with this number.
    Node(usize),
    /// In the link with this number.
    Link(usize),
    /// In the flow with this number.
    Flow(usize),
}

/// What is wrong with a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ModelError {
    /// Where.
    pub place: Place,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// The largest packet: what an IP packet can be.
const LARGEST_PACKET: u64 = 65_535;
/// More of anything would not fit the numbers that name it.
const MOST: usize = 1 << 24;

type Checked = Result<(), String>;

/// Checks everything but that every flow has a path.
pub(crate) fn check(model: &Model) -> Result<(), ModelError> {
    let at = |place| move |problem| ModelError { place, problem };
    check_run(model).map_err(at(Place::Run))?;
    let mut names = BTreeSet::new();
    for (id, node) in model.nodes.iter().enumerate() {
        ensure(names.insert(&node.name), || format!("two nodes have the name '{}'", node.name))
            .map_err(at(Place::Node(id)))?;
    }
    for (id, link) in model.links.iter().enumerate() {
        check_link(link, model.nodes.len()).map_err(at(Place::Link(id)))?;
    }
    let mut groups = BTreeMap::new();
    for (id, flow) in model.flows.iter().enumerate() {
        check_flow(flow, model).map_err(at(Place::Flow(id)))?;
        check_group(flow, &mut groups).map_err(at(Place::Flow(id)))?;
    }
    Ok(())
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(problem()) }
}

fn check_run(model: &Model) -> Checked {
    let run = &model.run;
    ensure(!run.duration.is_zero(), || "the duration is zero: give it a length, like \"100s\"".to_owned())?;
    ensure(run.duration <= Duration::from_secs(10_000_000), || {
        "the duration is longer than 10,000,000 s".to_owned()
    })?;
    ensure(run.sampling >= Duration::from_micros(1), || {
        "the sampling interval is shorter than a microsecond: give it a length, like \"100ms\"".to_owned()
    })?;
    ensure(run.warm_up < run.duration, || "the warm-up is not shorter than the run".to_owned())?;
    ensure(model.nodes.len().max(model.links.len()).max(model.flows.len()) < MOST, || {
        format!("there are more than {MOST} nodes, links or flows")
    })
}

fn check_link(link: &Link, nodes: usize) -> Checked {
    ensure(link.from < nodes && link.to < nodes, || {
        "the link leads to a node that does not exist".to_owned()
    })?;
    ensure(link.from != link.to, || "the link leads from a node to itself".to_owned())?;
    ensure(!link.rate.is_zero() || link.opportunities.is_some(), || {
        "the rate is zero: give one, like \"10Mbps\" (a link that is down for a while has a change of its rate)".to_owned()
    })?;
    let holds_something = match link.queue.limit {
        Limit::Packets(most) => most > 0,
        Limit::Bytes(most) => !most.is_zero(),
    };
    ensure(holds_something, || {
        "the queue holds nothing: the packet in transmission counts, so at least one".to_owned()
    })?;
    match link.queue.discipline {
        Discipline::DropTail => {}
        Discipline::Pie(pie) => {
            ensure(!pie.target.is_zero(), || "PIE wants a target that is not zero".to_owned())?;
        }
        Discipline::Red(red) => ensure(
            0.0 <= red.low
                && red.low < red.high
                && (0.0..=1.0).contains(&red.most)
                && 0.0 < red.weight
                && red.weight <= 1.0,
            || {
                "RED wants 0 <= low < high, a probability from 0 to 1 and a weight above 0, at most 1"
                    .to_owned()
            },
        )?,
        Discipline::CoDel(codel) | Discipline::FqCoDel(FqCoDel { codel, .. }) => {
            ensure(!codel.target.is_zero() && codel.target < codel.interval, || {
                "CoDel wants a target that is not zero and shorter than the interval".to_owned()
            })?;
        }
    }
    for bucket in link.policer.iter().chain(&link.shaper) {
        ensure(!bucket.rate.is_zero() && !bucket.burst.is_zero(), || {
            "a policer and a shaper let nothing pass without a rate and a burst".to_owned()
        })?;
    }
    ensure((0.0..=1.0).contains(&link.duplicate), || {
        format!("{} is no probability of a duplicate", link.duplicate)
    })?;
    check_loss(&link.loss)?;
    for pair in link.changes.windows(2) {
        ensure(pair[0].at < pair[1].at, || {
            format!("the change at {} s does not come after the one before it", pair[1].at.as_secs_f64())
        })?;
    }
    for change in &link.changes {
        change.loss.as_ref().map_or(Ok(()), check_loss)?;
    }
    let Some(opportunities) = &link.opportunities else { return Ok(()) };
    let in_order = opportunities.at.windows(2).all(|pair| pair[0] <= pair[1]);
    let fits = opportunities
        .at
        .last()
        .is_some_and(|last| *last <= Time::ZERO + opportunities.period && *last > Time::ZERO);
    ensure(in_order && fits && !opportunities.size.is_zero() && opportunities.at.len() < MOST, || {
        "the opportunities to transmit are not in order, or none, or beyond their period, or of no size"
            .to_owned()
    })
}

fn check_reader(reader: &Reader) -> Checked {
    ensure(!reader.buffer.is_zero() && reader.takes.is_none_or(|rate| !rate.is_zero()), || {
        "the reader takes nothing: give its `buffer`, and `takes` if it is there, more than zero".to_owned()
    })?;
    ensure(reader.acts.windows(2).all(|pair| pair[0].0 <= pair[1].0), || {
        "the reader's acts go forward in time".to_owned()
    })?;
    let possible = |(_, act): &(_, Act)| !matches!(act, Act::Speed(speed) if !(0.1..=16.0).contains(speed));
    ensure(reader.acts.iter().all(possible), || "a reader's speed is from 0.1 to 16".to_owned())
}

fn check_loss(loss: &Loss) -> Checked {
    let probabilities = match loss {
        Loss::None | Loss::Listed(_) => return Ok(()),
        Loss::Bernoulli(probability) => vec![*probability],
        Loss::GilbertElliott(g) => vec![g.to_bad, g.to_good, g.loss_good, g.loss_bad],
    };
    match probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(wrong) => Err(format!("{wrong} is no probability: it must be from 0 to 1 (1 % is 0.01)")),
        None => Ok(()),
    }
}

fn check_flow(flow: &Flow, model: &Model) -> Checked {
    let first = match flow.start {
        When::At(time) => time,
        When::Between(from, to) => {
            ensure(from <= to, || "the start's times are in the wrong order".to_owned())?;
            from
        }
    };
    ensure(flow.stop.is_none_or(|stop| stop > first), || "the flow stops before it starts".to_owned())?;
    let mut ends = Vec::new();
    match &flow.kind {
        Kind::Tcp { from, to, tcp, source } => {
            ends.extend([*from, *to]);
            check_tcp(tcp)?;
            match source {
                Source::Greedy => {}
                Source::File(size) => ensure(!size.is_zero(), || "the file is empty".to_owned())?,
                Source::Constant(rate) => {
                    ensure(!rate.is_zero(), || "the application's rate is zero".to_owned())?;
                }
                Source::Timetable(files) => ensure(
                    !files.is_empty()
                        && files.windows(2).all(|pair| pair[0].0 <= pair[1].0)
                        && files.iter().all(|(_, size)| !size.is_zero()),
                    || "the timetable is empty, not in order, or has an empty file".to_owned(),
                )?,
            }
        }
        Kind::Udp { from, to, size, pattern } => {
            ends.extend([*from, *to]);
            check_datagram(*size)?;
            let (rate, times) = match pattern {
                Pattern::Constant { rate, .. } => (rate, None),
                Pattern::OnOff { rate, on, off, .. } | Pattern::Exponential { rate, on, off } => {
                    (rate, Some((on, off)))
                }
            };
            ensure(!rate.is_zero(), || "the datagrams' rate is zero".to_owned())?;
            ensure(times.is_none_or(|(on, off)| !on.is_zero() && !off.is_zero()), || {
                "the times on and off are zero: give both a length".to_owned()
            })?;
        }
        Kind::Tfrc { from, to, size, parameters: _, scheme } => {
            ends.extend([*from, *to]);
            check_datagram(*size)?;
            let most = match scheme {
                Scheme::Fixed(count) => *count,
                Scheme::Several(control) | Scheme::AllInOne(control) => control.most_connections,
            };
            ensure((1..=MOST_CONNECTIONS).contains(&most), || {
                format!("a flow under TFRC has 1 to {MOST_CONNECTIONS} connections")
            })?;
        }
        Kind::Media(media) => {
            ends.push(media.client);
            ends.extend(&media.servers);
            check_tcp(&media.tcp)?;
            ensure(
                media.tcp.tuning.is_none() || matches!(media.tcp.congestion, Congestion::Tfwc(_)),
                || format!("`tuning_by_buffer` wants a `congestion` of ttfwc, not {}", media.tcp.congestion),
            )?;
            ensure(media.tcp.share.is_none(), || "a media stream is in no group".to_owned())?;
            ensure(!media.servers.is_empty(), || "the stream has no server".to_owned())?;
            ensure(!media.rate.is_zero(), || "the media's rate is zero".to_owned())?;
            if let Some(reader) = &media.reader {
                check_reader(reader)?;
            }
            ensure(media.connections_per_server > 0, || "no connection to any server is allowed".to_owned())?;
            ensure(media.size.is_none_or(|size| !size.is_zero()), || "the media is empty".to_owned())?;
        }
    }
    ensure(ends.iter().all(|node| *node < model.nodes.len()), || {
        "the flow has an end that does not exist".to_owned()
    })
}

fn check_datagram(size: Bytes) -> Checked {
    ensure((1..=LARGEST_PACKET).contains(&size.get()), || {
        format!("a datagram has 1 to {LARGEST_PACKET} bytes")
    })
}

/// A group's flows come from one sender and begin alike; `groups` has the first flow of each.
fn check_group<'a>(
    flow: &'a Flow,
    groups: &mut BTreeMap<&'a str, (NodeId, &'a Tcp, &'a Share, usize)>,
) -> Checked {
    let Kind::Tcp { from, tcp, .. } = &flow.kind else { return Ok(()) };
    ensure(tcp.tuning.is_none(), || "only a media stream has a buffer that can tune its senders".to_owned())?;
    let Some(share) = &tcp.share else { return Ok(()) };
    let name = &share.group;
    ensure(tcp.recovery == Recovery::Sack, || {
        format!("a flow in the group '{name}' recovers by `sack`: ns-2 knows no groups")
    })?;
    let (sender, first, first_share, count) = groups.entry(name).or_insert((*from, tcp, share, 0));
    *count += 1;
    ensure(sender == from, || {
        format!("the flows of the group '{name}' come from several nodes, not from one")
    })?;
    let is_alike = first.congestion == tcp.congestion
        && first.segment == tcp.segment
        && first.initial_window == tcp.initial_window
        && first.initial_ssthresh == tcp.initial_ssthresh;
    ensure(is_alike, || {
        format!(
            "the flows of the group '{name}' differ in `congestion`, `segment`, `initial_window` or `initial_ssthresh`"
        )
    })?;
    ensure(first_share.watches == share.watches, || {
        format!("the group '{name}' watches in one flow and not in another")
    })?;
    ensure(share.form == Form::Vps || *count <= MOST_MEMBERS, || {
        format!(
            "the group '{name}' has more than {MOST_MEMBERS} flows: that is the most with the form `window`"
        )
    })?;
    ensure(first_share.form == share.form, || format!("the group '{name}' has several forms"))?;
    ensure(share.form == Form::Vps || (!share.watches && tcp.congestion == Congestion::Reno), || {
        format!("the group '{name}' has the form `window`: that is for `reno`, and does not watch")
    })
}

fn check_tcp(tcp: &Tcp) -> Checked {
    ensure(!tcp.segment.is_zero() && tcp.segment.get() + tcp.header.get() + 24 <= LARGEST_PACKET, || {
        format!("a segment has at least one byte, and with its headers at most {LARGEST_PACKET}")
    })?;
    ensure(tcp.initial_window.get() > 0, || "the initial window is zero".to_owned())?;
    ensure(tcp.receive_window.is_none_or(|window| window >= tcp.segment), || {
        "the receive window is smaller than a segment".to_owned()
    })?;
    ensure(tcp.delayed_ack.is_none_or(|delayed| delayed.every > 0 && !delayed.delay.is_zero()), || {
        "delayed acknowledgements want a number of segments and a delay above zero".to_owned()
    })?;
    let rto = &tcp.rto;
    ensure(!rto.least.is_zero() && rto.least <= rto.most && !rto.initial.is_zero(), || {
        "the retransmission time-out wants a lower bound above zero and below the upper one".to_owned()
    })
}
