//! Runs a client that sends and receives live media: feeds, collects, and judges what came over.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use anabranch_units::Duration;

use super::kept::Kept;
use super::order::{SCRATCH, TICK};
use super::stage::{Stage, flows};
use super::watch::{Record, TRAFFIC_INTERVAL};
use crate::Error;
use crate::live::{self, Collected, Collector, Deficit, Fed, INPUT_PORT, Media, OUTPUT_PORT, Rules, Second};
use crate::meter::Count;
use crate::report::{Live, Table};
use crate::scenario::Host;
use crate::timetable::timetable;
use crate::topology::{self, Topology};

/// What a receiver gets to open its ports before its sender starts.
const RECEIVER_STARTS: StdDuration = StdDuration::from_secs(1);
/// What the connections get, beside four round-trip times, before the film begins.
const CONNECTS: Duration = Duration::from_secs(2);
/// What the end of the film gets, beside latency and round-trip time, until it must have come out.
const DRAINS: Duration = Duration::from_secs(1);
/// What comes out so much later than latency and way say is late. Some programs' clocks are a little off
/// after an outage, and stay so.
const LATE: Duration = Duration::from_millis(250);
/// How much a receiver may send for each byte of the film before the rest is left.
const MOST_COPIES: usize = 3;

/// Carries the film through the client's sender and receiver, with the timetable from the film's first byte
/// on.
pub(super) fn carry(stage: &mut Stage<'_>, topology: &Topology) -> Result<Record, Error> {
    let scenario = stage.scenario;
    let client = scenario.client(Some(&stage.order.client))?;
    let missing = || Error::Scenario("live media needs a sender, [film] and [live]".into());
    let command = stage.command(client);
    let sender_command = stage.sender_command(client).ok_or_else(missing)?;
    let rules = scenario.live.ok_or_else(missing)?;
    let about_film = scenario.film.as_ref().ok_or_else(missing)?;
    let file = stage.order.film.clone().ok_or_else(missing)?;
    let film = fs::read(&file).map_err(Error::io(file.display().to_string()))?;
    let media = match about_film.is_variable {
        true => Media::without_stuffing(&film, about_film.file_rate()),
        false => Media::constant(film, about_film.rate),
    };
    let server = scenario.paths[0].server;
    let rtt = scenario.paths.iter().map(|path| path.rtt()).max().unwrap_or(Duration::ZERO);

    let limit = media.bytes.len().saturating_mul(MOST_COPIES);
    let collector = topology::within(&topology.client, || Collector::start(OUTPUT_PORT, limit))?
        .map_err(Error::io("the receiver's output port"))?;
    let input = topology::within(&topology.servers[server], feeding_socket)?
        .map_err(Error::io("the sender's input port"))?;
    let mut record = Record::new(scenario, format!("{} | {}", sender_command.join(" "), command.join(" ")));
    let log = stage.log("receiver");
    let receiver = Kept::start(topology::CLIENT.into(), command, log, client.restart)?;
    stage.live.insert(Host::Client, receiver);
    thread::sleep(RECEIVER_STARTS);
    let (namespace, log) = (topology::server_namespace(server), stage.log("sender"));
    let mut sender = Kept::start(namespace, sender_command, log, client.restart)?;
    sender.wait_bound(INPUT_PORT)?;
    stage.live.insert(Host::Server(server), sender);
    thread::sleep(StdDuration::from(CONNECTS + rtt * 4));

    record.start = Instant::now();
    let start = record.start;
    let end = Duration::from(media.length()) + rules.latency + rtt * 2 + DRAINS;
    let mut deficit = Deficit::new(&media, rules.latency + rtt, rules.settle);
    let mut hopeless = |now| rules.give_up.is_some_and(|share| deficit.share(now, collector.bytes()) > share);
    let done = AtomicBool::new(false);
    let (fed, given_up) = thread::scope(|scope| {
        let feeder = scope.spawn(|| live::feed(&input, &media, start, &done));
        let given_up = timed(stage, &mut record, end, &mut hopeless);
        done.store(true, Relaxed);
        (feeder.join().unwrap_or_default(), given_up)
    });
    let given_up = given_up?;
    record.elapsed = start.elapsed().into();
    let mut programs = std::mem::take(&mut stage.live);
    let mut program = |host| programs.remove(&host).ok_or_else(missing);
    let (mut sender, mut receiver) = (program(Host::Server(server))?, program(Host::Client)?);
    let sender_exit_code = sender.ended().and_then(|status| status.code());
    record.status = receiver.ended();
    let (sender_cpu_s, receiver_cpu_s) = (sender.cpu_seconds(), receiver.cpu_seconds());
    record.traffic.push((record.elapsed, stage.counts()));
    sender.end();
    receiver.end();
    stage.stop_cross();
    let collected = collector.stop();

    let way = scenario.paths.iter().map(|path| path.to_client.delay).max().unwrap_or(Duration::ZERO);
    let judged =
        Rules { settle: media.due_by(rules.settle.into()), in_time: (rules.latency + way + LATE).into() };
    let judgement = live::judge(&media.bytes, judged, start, &fed, &collected);
    save_seconds(&judgement.seconds, &stage.order.out)?;
    record.live = Some(Live {
        packets: judgement.packets,
        missing: judgement.missing,
        gaps: judgement.gaps,
        repeated: judgement.repeated,
        strange: judgement.strange,
        discontinuities: judgement.discontinuities,
        decoder_errors: decode(&collected.bytes[judgement.begin..], &stage.log("decoder"))?,
        latency: judgement.latency,
        late: judgement.seconds.iter().map(|second| second.late).sum(),
        whole_from_s: judgement.whole_from.as_secs_f64(),
        overhead: overhead(stage, &record, &media, &fed),
        sender_cpu_s,
        receiver_cpu_s,
        sender_exit_code,
        sender_restarts: sender.restarts,
        receiver_restarts: receiver.restarts,
        given_up,
    });
    warn(&collected);
    Ok(record)
}

fn feeding_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, INPUT_PORT))?;
    Ok(socket)
}

/// Follows the timetable and counts the traffic until `end`, until one of the programs has ended for good, or
/// until the run is `hopeless`; says whether it was.
fn timed(
    stage: &mut Stage<'_>,
    record: &mut Record,
    end: Duration,
    hopeless: &mut impl FnMut(Duration) -> bool,
) -> Result<bool, Error> {
    let scenario = stage.scenario;
    let end = end.min(scenario.duration);
    let mut events = timetable(scenario).into_iter().peekable();
    let mut next_traffic = Duration::ZERO;
    loop {
        let now = Duration::from(record.start.elapsed());
        while let Some((_, action)) = events.next_if(|(at, _)| *at <= now) {
            stage.act(action)?;
        }
        if now >= next_traffic {
            record.traffic.push((now, stage.counts()));
            next_traffic += TRAFFIC_INTERVAL;
            if hopeless(now) {
                return Ok(true);
            }
        }
        for program in stage.live.values_mut() {
            if program.tend(now)? {
                return Ok(false);
            }
        }
        if now >= end {
            return Ok(false);
        }
        thread::sleep(TICK);
    }
}

/// Writes `media.csv`.
fn save_seconds(seconds: &[Second], out: &Path) -> Result<(), Error> {
    let mut table = Table::new("fed_s,packets,missing,late");
    for (fed_s, second) in seconds.iter().enumerate() {
        table.line(&[&fed_s, &second.packets, &second.missing, &second.late]);
    }
    table.save(out, "media.csv")
}

/// Bytes put into the paths for each byte fed.
fn overhead(stage: &Stage<'_>, record: &Record, media: &Media, fed: &Fed) -> f64 {
    let bytes = |counts: &[(Count, Count)]| -> u64 {
        let films = flows(stage.scenario).into_iter().zip(counts).filter(|((_, flow, _), _)| flow == "film");
        films.map(|(_, (sent, _))| sent.bytes).sum()
    };
    let at = |counts: Option<&(Duration, Vec<(Count, Count)>)>| counts.map_or(0, |(_, counts)| bytes(counts));
    let sent = at(record.traffic.last()).saturating_sub(at(record.traffic.first()));
    let whole = fed.at.len().saturating_mul(live::DATAGRAM).min(media.bytes.len());
    sent as f64 / whole.max(1) as f64
}

/// How many lines ffmpeg prints about what came out, `None` when nothing did.
fn decode(media: &[u8], log: &Path) -> Result<Option<usize>, Error> {
    if media.is_empty() {
        return Ok(None);
    }
    let file = Path::new(SCRATCH).join("out.ts");
    fs::write(&file, media).map_err(Error::io("what came out"))?;
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-threads", "1", "-f", "mpegts", "-i"])
        .arg(&file)
        .args(["-f", "null", "-"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Program { program: "ffmpeg".into(), cause: error.to_string() })?;
    fs::write(log, &output.stderr).map_err(Error::io(log.display().to_string()))?;
    let lines =
        String::from_utf8_lossy(&output.stderr).lines().filter(|line| !line.trim().is_empty()).count();
    // A decoder that gives up without a word is one error.
    Ok(Some(lines.max(usize::from(!output.status.success()))))
}

fn warn(collected: &Collected) {
    if collected.truncated {
        eprintln!("the receiver sent more than {MOST_COPIES} times the film; the rest was left out");
    }
}
