//! What a model must keep to.

mod bounds;
mod link;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::joint::MOST_MEMBERS;
use anabranch_congestion::shares;
use anabranch_scenario::MOST_CONNECTIONS;
use anabranch_units::{Bytes, Duration, Rate};

use crate::model::{
    Act, Congestion, Flow, Form, Kind, Live, LiveShare, Media, Model, NodeId, Pattern, Reader, Recovery,
    Server, Share, Source, Tcp, When,
};
use bounds::{Checked, LARGEST_PACKET, MOST, ensure};
use link::check_link;

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

/// Checks everything but that every flow has a path.
pub(crate) fn check(model: &Model) -> Result<(), ModelError> {
    let at = |place| move |problem| ModelError { place, problem };
    check_run(model).map_err(at(Place::Run))?;
    let mut names = BTreeSet::new();
    for (id, node) in model.nodes.iter().enumerate() {
        ensure(names.insert(&node.name), || format!("two nodes have the name '{}'", node.name))
            .map_err(at(Place::Node(id)))?;
        check_server(&node.server).map_err(at(Place::Node(id)))?;
    }
    for (id, link) in model.links.iter().enumerate() {
        check_link(link, model.nodes.len()).map_err(at(Place::Link(id)))?;
    }
    let (mut groups, mut live_groups) = (BTreeMap::new(), BTreeMap::new());
    for (id, flow) in model.flows.iter().enumerate() {
        check_flow(flow, model).map_err(at(Place::Flow(id)))?;
        check_group(flow, &mut groups).map_err(at(Place::Flow(id)))?;
        check_live_group(flow, &mut live_groups).map_err(at(Place::Flow(id)))?;
    }
    Ok(())
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

fn check_server(server: &Server) -> Checked {
    let is_zero = |rate: &Rate| rate.is_zero();
    ensure(!server.connection_cap.iter().chain(&server.client_cap).any(is_zero), || {
        "a server that may send nothing: give its caps rates".to_owned()
    })?;
    ensure(server.connections.is_none_or(|bound| bound.most > 0), || {
        "a server that may have no connection: give it at least one".to_owned()
    })
}

fn check_reader(reader: &Reader) -> Checked {
    ensure(!reader.buffer.is_zero() && reader.takes.is_none_or(|rate| !rate.is_zero()), || {
        "the reader takes nothing: give its `buffer`, and `takes` if it is there, more than zero".to_owned()
    })?;
    ensure(reader.acts.windows(2).all(|pair| pair[0].0 <= pair[1].0), || {
        "the reader's acts go forward in time".to_owned()
    })?;
    ensure(
        reader.scenes.windows(2).all(|pair| pair[0].0 <= pair[1].0)
            && reader.scenes.iter().all(|(_, rate)| !rate.is_zero()),
        || "the reader's scenes go forward in play time, with rates above zero".to_owned(),
    )?;
    let possible = |(_, act): &(_, Act)| !matches!(act, Act::Speed(speed) if !(0.1..=16.0).contains(speed));
    ensure(reader.acts.iter().all(possible), || "a reader's speed is from 0.1 to 16".to_owned())
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
            ensure(!media.servers.is_empty(), || "the stream has no server".to_owned())?;
            ensure(!media.rate.is_zero(), || "the media's rate is zero".to_owned())?;
            if let Some(reader) = &media.reader {
                check_reader(reader)?;
            }
            ensure(media.connections_per_server > 0, || "no connection to any server is allowed".to_owned())?;
            ensure(media.size.is_none_or(|size| !size.is_zero()), || "the media is empty".to_owned())?;
        }
        Kind::Live(live) => {
            ends.push(live.to);
            ends.extend(&live.from);
            ensure(!live.from.is_empty(), || "the stream leaves from nowhere".to_owned())?;
            ensure(!live.rate.is_zero(), || "the stream's rate is zero".to_owned())?;
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
    let (from, tcp) = match &flow.kind {
        Kind::Tcp { from, tcp, .. } => {
            ensure(
                tcp.tuning.is_none() && tcp.share.as_ref().is_none_or(|share| share.by_need.is_none()),
                || {
                    "only a media stream has a buffer that can tune its senders, or tell what it needs"
                        .to_owned()
                },
            )?;
            (from, tcp)
        }
        Kind::Media(media) => match media.servers.first() {
            Some(server) => (server, &media.tcp),
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    let Some(share) = &tcp.share else { return Ok(()) };
    let name = &share.group;
    if let Kind::Media(media) = &flow.kind {
        check_member(media, share)?;
    }
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
            "the flows of the group '{name}' differ in `congestion`, `segment`, `initial_window` or \
             `initial_ssthresh`"
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
    ensure(share.form == Form::Vps || (share.watches.is_none() && tcp.congestion == Congestion::Reno), || {
        format!("the group '{name}' has the form `window`: that is for `reno`, and does not watch")
    })
}

/// Live senders of one group share an uplink; `groups` has the first one of each, and how many there are.
fn check_live_group<'a>(flow: &'a Flow, groups: &mut BTreeMap<&'a str, (&'a Live, usize)>) -> Checked {
    let Kind::Live(live) = &flow.kind else { return Ok(()) };
    let Some(LiveShare { group, .. }) = &live.share else { return Ok(()) };
    let (first, count) = groups.entry(group).or_insert((live, 0));
    *count += 1;
    ensure(live.from.iter().any(|node| first.from.contains(node)), || {
        format!(
            "the live streams of the group '{group}' share an uplink: give them a node of `from` in common"
        )
    })?;
    ensure(*count <= shares::MOST_MEMBERS, || {
        format!("the group '{group}' has more than {} live streams", shares::MOST_MEMBERS)
    })
}

/// A media stream whose connections are members of its server's group.
fn check_member(media: &Media, share: &Share) -> Checked {
    let name = &share.group;
    ensure(media.servers.iter().all(|server| Some(server) == media.servers.first()), || {
        format!("a stream in the group '{name}' has servers at several nodes, and a group is of one")
    })?;
    ensure(share.form == Form::Vps, || {
        format!(
            "a stream in the group '{name}' opens as many connections as it likes: that is for the form `vps`"
        )
    })?;
    ensure(share.by_need.is_none() || media.ladder.is_some(), || {
        format!("`by_need` in the group '{name}' is for a player with a `ladder`, which tells its buffer")
    })
}

/// What goes with a paced congestion control.
fn check_paced(tcp: &Tcp) -> Checked {
    let name = tcp.congestion;
    ensure(tcp.recovery == Recovery::Sack, || {
        format!("a flow under `{name}` recovers by `sack`: ns-2's rules know no pacing")
    })?;
    ensure(tcp.share.is_none(), || {
        format!(
            "a flow under `{name}` is in no group: a group shares windows, and `{name}` answers a \
             rate as well"
        )
    })?;
    ensure(tcp.initial_ssthresh.is_none(), || {
        format!("`{name}` has no slow start threshold: leave out `initial_ssthresh`")
    })?;
    ensure(tcp.send_jitter.is_zero(), || {
        format!("`{name}` says when each segment leaves: leave out `send_jitter`")
    })
}

fn check_tcp(tcp: &Tcp) -> Checked {
    if let Some(deaf) = tcp.deaf_to_marks() {
        return Err(deaf.to_owned());
    }
    if tcp.congestion.is_paced() {
        check_paced(tcp)?;
    }
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
