//! The run itself, in namespaces that are this process's own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};
use stream::playback::Playback;
use units::{Bytes, Duration, Time};

use crate::Error;
use crate::emulator::Emulator;
use crate::meter::Count;
use crate::observe::{self, Look};
use crate::ping::{self, Echo};
use crate::programs::{self, Program, Stdout};
use crate::progress::Source;
use crate::report::{self, Flow, PingSummary, Summary, Table, Viewing};
use crate::scenario::{Client, Cross, CrossKind, Output, Scenario};
use crate::timetable::{Action, timetable};
use crate::topology::{self, Topology};

/// Scratch space on the run's own tmpfs.
const SCRATCH: &str = "/run/testbed";
/// How often the main loop looks at what is due.
const TICK: StdDuration = StdDuration::from_millis(20);
/// Time between two samples of the client's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two samples of the traffic.
const TRAFFIC_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at the senders' congestion control.
const SENDERS_INTERVAL: Duration = Duration::from_secs(3);
/// Exit code when the caller is gone.
const ABANDONED: i32 = 130;

/// What the caller wants; an argument of the hidden command `inside`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub scenario: PathBuf,
    pub client: String,
    pub film: Option<PathBuf>,
    pub anabranch: PathBuf,
    pub out: PathBuf,
    pub keep: bool,
}

/// Carries out an [`Order`] in JSON. Ends the process when the caller is gone.
///
/// # Errors
/// As [`crate::isolate::run`].
pub fn carry_out(order: &str) -> Result<(), Error> {
    let order: Order = serde_json::from_str(order).map_err(|error| Error::Scenario(error.to_string()))?;
    thread::spawn(|| {
        // Nothing is ever written to the pipe: its end is the caller's.
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(ABANDONED);
    });
    // A panic on any thread, also of the emulator, would leave a run that measures nothing.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::exit(1);
    }));
    mount("tmpfs", "/run", "tmpfs", MountFlags::empty(), None)
        .map_err(|error| Error::Io { what: "a tmpfs of the run's own".into(), source: error.into() })?;
    fs::create_dir_all(SCRATCH).map_err(Error::io(SCRATCH))?;
    let scenario = Scenario::load(&order.scenario)?;
    let topology = topology::build(&scenario)?;
    let emulator = Emulator::start(&scenario, &topology)?;
    let mut stage = Stage::new(&order, &scenario, &emulator)?;
    stage.start_servers()?;
    let summary = perform(&mut stage, &topology)?;
    summary.save(&order.out)?;
    println!("{}", summary.line());
    if order.keep {
        println!("kept: nsenter --all --target {} (from the host's process list), then", std::process::id());
        println!("      nsenter --net=/run/netns/client; interrupt to end");
        loop {
            thread::park();
        }
    }
    // The emulator's threads never end by themselves.
    std::process::exit(0);
}

/// Everything that the timetable can act upon.
struct Stage<'a> {
    order: &'a Order,
    scenario: &'a Scenario,
    emulator: &'a Emulator,
    servers: Vec<Program>,
    cross_servers: Vec<Program>,
    cross: BTreeMap<usize, Program>,
}

impl<'a> Stage<'a> {
    fn new(order: &'a Order, scenario: &'a Scenario, emulator: &'a Emulator) -> Result<Self, Error> {
        fs::create_dir_all(&order.out).map_err(Error::io(order.out.display().to_string()))?;
        let (servers, cross_servers, cross) = (Vec::new(), Vec::new(), BTreeMap::new());
        Ok(Self { order, scenario, emulator, servers, cross_servers, cross })
    }

    fn log(&self, name: &str) -> PathBuf {
        self.order.out.join(format!("{name}.log"))
    }

    fn start_servers(&mut self) -> Result<(), Error> {
        for index in 0..self.scenario.servers.len() {
            let server = self.start_server(index)?;
            self.servers.push(server);
        }
        for (group, cross) in self.scenario.cross.iter().enumerate() {
            let path = self.scenario.path_index(cross.path.as_ref());
            let server = self.scenario.server_of(&self.scenario.paths[path]);
            let port = topology::cross_port(group);
            let arguments = ["iperf3", "-s", "-p", &port.to_string()].map(String::from);
            let log = self.log(&format!("cross-{}-server", cross.name));
            let mut program =
                Program::start(&topology::server_namespace(server), &arguments, Stdout::Log, &log)?;
            program.wait_listening(Some(port))?;
            self.cross_servers.push(program);
        }
        Ok(())
    }

    fn start_server(&self, index: usize) -> Result<Program, Error> {
        let server = &self.scenario.servers[index];
        let scratch = Path::new(SCRATCH).join(topology::server_namespace(index));
        let directory = self.order.film.as_deref().and_then(Path::parent).unwrap_or(Path::new(SCRATCH));
        let arguments = match &server.command {
            Some(command) => {
                let dir = directory.display().to_string();
                command.iter().map(|argument| argument.replace("{dir}", &dir)).collect()
            }
            None => programs::nginx(&scratch, directory).map_err(Error::io("nginx.conf"))?,
        };
        let log = self.log(&format!("server-{}", server.name));
        let mut program = Program::start(&topology::server_namespace(index), &arguments, Stdout::Log, &log)?;
        program.wait_listening(server.command.is_none().then_some(80))?;
        Ok(program)
    }

    fn act(&mut self, action: Action) -> Result<(), Error> {
        match action {
            Action::StartCross(group) => {
                let program = self.start_cross(group, &self.scenario.cross[group])?;
                self.cross.insert(group, program);
            }
            Action::StopCross(group) => {
                if let Some(mut program) = self.cross.remove(&group) {
                    program.kill();
                }
            }
            Action::Kill(server) => self.servers[server].kill(),
            Action::Start(server) => {
                self.servers[server].kill();
                self.servers[server] = self.start_server(server)?;
            }
            Action::Change(event) => {
                let event = &self.scenario.events[event];
                self.emulator.change(self.scenario.path_index(event.path.as_ref()), event)?;
            }
        }
        Ok(())
    }

    fn start_cross(&self, group: usize, cross: &Cross) -> Result<Program, Error> {
        let path = self.scenario.path_index(cross.path.as_ref());
        let end = cross.stop.unwrap_or(self.scenario.run.duration).max(cross.start + Duration::from_secs(1));
        let seconds = (end - cross.start).as_secs_f64().ceil().to_string();
        let server = topology::server_address(path).to_string();
        let client = topology::cross_address(path, group).to_string();
        let port = topology::cross_port(group).to_string();
        let flows = cross.flows.to_string();
        let mut arguments =
            vec!["iperf3", "-c", &server, "-p", &port, "-B", &client, "-R", "-P", &flows, "-t", &seconds];
        let rate = cross.rate.map(|rate| (rate.as_bps() / u64::from(cross.flows)).to_string());
        if let (CrossKind::Udp, Some(rate)) = (cross.kind, &rate) {
            arguments.extend(["-u", "-l", "1400", "-b", rate]);
        }
        let arguments: Vec<_> = arguments.into_iter().map(String::from).collect();
        Program::start(topology::CLIENT, &arguments, Stdout::Log, &self.log(&format!("cross-{}", cross.name)))
    }

    fn command(&self, client: &Client) -> Vec<String> {
        let film = self.order.film.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let rate = self.scenario.film.as_ref().map_or(0, |film| film.rate.as_bps());
        let mut known = vec![
            ("{rate}".to_owned(), rate.to_string()),
            ("{out}".to_owned(), format!("{SCRATCH}/out")),
            ("{dir}".to_owned(), self.order.out.display().to_string()),
            ("{anabranch}".to_owned(), self.order.anabranch.display().to_string()),
        ];
        for path in 0..self.scenario.paths.len() {
            let number = path + 1;
            let address = topology::server_address(path);
            known.push((format!("{{url{number}}}"), format!("http://{address}/{film}")));
            known.push((format!("{{address{number}}}"), address.to_string()));
            known.push((format!("{{interface{number}}}"), topology::interface(path)));
        }
        let fill =
            |text: &String| known.iter().fold(text.clone(), |text, (key, value)| text.replace(key, value));
        client.command.iter().map(fill).collect()
    }
}

/// What was sampled while the client ran.
struct Record {
    start: Instant,
    command: String,
    status: Option<ExitStatus>,
    elapsed: Duration,
    progress: Vec<(Duration, Bytes)>,
    seen: Viewing,
    right: bool,
    traffic: Vec<(Duration, Vec<(Count, Count)>)>,
    senders: Vec<BTreeMap<(u8, String), u64>>,
}

fn perform(stage: &mut Stage<'_>, topology: &Topology) -> Result<Summary, Error> {
    let scenario = stage.scenario;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looks = scope.spawn(|| observe::connections(&topology.client, scenario.paths.len(), &done));
        let echoes = scope.spawn(|| match &scenario.ping {
            Some(ping) => {
                let to = topology::server_address(scenario.path_index(ping.path.as_ref()));
                let pinging = || ping::ping(to, ping.interval.into(), &done).map_err(Error::io("ping"));
                topology::within(&topology.client, pinging)?
            }
            None => Ok(Vec::new()),
        });
        let record = watch(stage);
        done.store(true, Relaxed);
        let panicked = |_| Error::Emulator("an observer panicked".into());
        let looks = looks.join().map_err(panicked)?;
        let echoes = echoes.join().map_err(panicked)?;
        summarise(stage, &record?, &looks?, &echoes?)
    })
}

/// Runs the client and the timetable, and samples.
fn watch(stage: &mut Stage<'_>) -> Result<Record, Error> {
    let scenario = stage.scenario;
    let client = scenario.client(Some(&stage.order.client))?;
    let command = stage.command(client);
    let stdout = if client.output == Output::Stdout { Stdout::Pipe } else { Stdout::Log };
    let start = Instant::now();
    let mut program = Program::start(topology::CLIENT, &command, stdout, &stage.log("client"))?;
    let mut source = match (client.output, program.take_stdout()) {
        (Output::Stdout, Some(pipe)) => Source::pipe(pipe, stage.order.film.as_deref()),
        (Output::File, _) => Source::File(Path::new(SCRATCH).join("out"), 0),
        _ => Source::Nothing,
    };
    let film_bytes = film_size(stage)?;
    let mut player =
        scenario.film.as_ref().map(|film| Playback::new(film.player(), Some(film.rate), Time::ZERO));
    let mut events = timetable(scenario).into_iter().peekable();
    let mut record = Record {
        start,
        command: command.join(" "),
        status: None,
        elapsed: Duration::ZERO,
        progress: Vec::new(),
        seen: Viewing::default(),
        right: true,
        traffic: Vec::new(),
        senders: vec![BTreeMap::new(); scenario.servers.len()],
    };
    let mut next_traffic = Duration::ZERO;
    let mut next_progress = Duration::ZERO;
    let mut next_senders = Duration::from_secs(1);
    loop {
        let now = Duration::from(start.elapsed());
        while let Some((_, action)) = events.next_if(|(at, _)| *at <= now) {
            stage.act(action)?;
        }
        let have = Bytes::new(source.in_order());
        if let Some(player) = &mut player {
            player.advance(Time::ZERO + now, have, have >= film_bytes);
        }
        source.allow(readable(scenario, player.as_ref()).get());
        if now >= next_progress {
            record.progress.push((now, have));
            next_progress = now + PROGRESS_INTERVAL;
        }
        if now >= next_traffic {
            record.traffic.push((now, counts(stage)));
            next_traffic += TRAFFIC_INTERVAL;
        }
        if now >= next_senders {
            record.senders.iter_mut().enumerate().for_each(|(server, seen)| observe::senders(server, seen));
            next_senders = now + SENDERS_INTERVAL;
        }
        record.status = program.ended();
        if record.status.is_some() || now >= scenario.run.duration {
            break;
        }
        thread::sleep(TICK);
    }
    record.elapsed = start.elapsed().into();
    if record.status.is_none() {
        program.end();
    }
    source.allow(u64::MAX);
    if let Some(film) = &stage.order.film {
        record.right = source.is_right(film);
    }
    let have = Bytes::new(source.in_order());
    record.progress.push((record.elapsed, have));
    if let Some(mut player) = player {
        player.advance(Time::ZERO + record.elapsed, have, have >= film_bytes);
        record.seen = player.report().into();
    }
    record.traffic.push((start.elapsed().into(), counts(stage)));
    std::mem::take(&mut stage.cross).into_values().for_each(|mut program| program.kill());
    Ok(record)
}

/// How far a player with the film's buffer would read by now.
fn readable(scenario: &Scenario, player: Option<&Playback>) -> Bytes {
    match (
        scenario.film.as_ref().and_then(|film| film.buffer.map(|buffer| film.rate.amount_in(buffer))),
        player,
    ) {
        (Some(buffer), Some(player)) => player.play_position() + buffer,
        _ => Bytes::MAX,
    }
}

/// The path, the name and the client's host byte of each flow.
fn flows(scenario: &Scenario) -> Vec<(usize, String, u8)> {
    let films = (0..scenario.paths.len()).map(|path| (path, "film".to_owned(), topology::CLIENT_HOST));
    let groups = scenario.cross.iter().enumerate().map(|(group, cross)| {
        (scenario.path_index(cross.path.as_ref()), cross.name.clone(), topology::cross_host(group))
    });
    films.chain(groups).collect()
}

fn counts(stage: &Stage<'_>) -> Vec<(Count, Count)> {
    flows(stage.scenario).iter().map(|(path, _, host)| stage.emulator.counts(*path, *host)).collect()
}

fn summarise(stage: &Stage<'_>, record: &Record, looks: &[Look], echoes: &[Echo]) -> Result<Summary, Error> {
    let (scenario, out) = (stage.scenario, &stage.order.out);
    let film_bytes = film_size(stage)?.get();
    let received_bytes = record.progress.last().map_or(0, |(_, bytes)| bytes.get());
    save_progress(record, out)?;
    save_connections(scenario, record, looks, out)?;
    let flows = flow_results(scenario, record, out)?;
    let arrived: u64 = flows.iter().filter(|flow| flow.flow == "film").map(|flow| flow.payload_bytes).sum();
    let running = looks.iter().filter(|look| look.at <= record.start + record.elapsed.into());
    let totals: Vec<u32> = running.map(Look::total).collect();
    let mut congestion: Vec<String> =
        flows.iter().filter(|f| f.flow == "film").flat_map(|f| f.congestion.clone()).collect();
    congestion.sort();
    congestion.dedup();
    Ok(Summary {
        client: stage.order.client.clone(),
        command: record.command.clone(),
        seconds: record.elapsed.as_secs_f64(),
        exit_code: record.status.and_then(|status| status.code()),
        signal: record.status.and_then(|status| status.signal()),
        complete: film_bytes > 0 && received_bytes == film_bytes,
        right: record.right,
        film_bytes,
        received_bytes,
        playback: record.seen,
        connections_max: totals.iter().copied().max().unwrap_or(0),
        connections_mean: f64::from(totals.iter().sum::<u32>()) / totals.len().max(1) as f64,
        beyond_bytes: arrived.saturating_sub(received_bytes),
        congestion,
        cross_bps: cross_bps(scenario, record.elapsed, &flows),
        flows,
        ping: ping_result(record, echoes, out)?,
    })
}

/// The size of the film on disk, nothing without one.
fn film_size(stage: &Stage<'_>) -> Result<Bytes, Error> {
    let size = stage.order.film.as_ref().map_or(Ok(0), |film| fs::metadata(film).map(|meta| meta.len()));
    size.map(Bytes::new).map_err(Error::io("the film"))
}

fn save_progress(record: &Record, out: &Path) -> Result<(), Error> {
    let mut table = Table::new("time_s,contiguous_bytes");
    for (at, bytes) in &record.progress {
        table.line(&[&format!("{:.3}", at.as_secs_f64()), &bytes.get()]);
    }
    table.save(out, "progress.csv")
}

fn save_connections(scenario: &Scenario, record: &Record, looks: &[Look], out: &Path) -> Result<(), Error> {
    let mut table = Table::new("time_s,path,established");
    for look in looks {
        let at = look.at.saturating_duration_since(record.start).as_secs_f64();
        for (path, count) in scenario.paths.iter().zip(&look.by_path) {
            table.line(&[&format!("{at:.3}"), &path.name, count]);
        }
    }
    table.save(out, "connections.csv")
}

/// Writes `traffic.csv` and sums up each flow.
fn flow_results(scenario: &Scenario, record: &Record, out: &Path) -> Result<Vec<Flow>, Error> {
    let mut table = Table::new("time_s,path,flow,payload_bps,network_bps,packets_sent,packets_arrived");
    let names = flows(scenario);
    for pair in record.traffic.windows(2) {
        let ((before, old), (now, new)) = (&pair[0], &pair[1]);
        let span = *now - *before;
        for (index, (path, flow, _)) in names.iter().enumerate() {
            let ((old_sent, old_arrived), (sent, arrived)) = (old[index], new[index]);
            table.line(&[
                &format!("{:.3}", now.as_secs_f64()),
                &scenario.paths[*path].name,
                flow,
                &format!("{:.0}", report::bps(arrived.payload - old_arrived.payload, span)),
                &format!("{:.0}", report::bps(arrived.bytes - old_arrived.bytes, span)),
                &(sent.packets - old_sent.packets),
                &(arrived.packets - old_arrived.packets),
            ]);
        }
    }
    table.save(out, "traffic.csv")?;
    let last = record.traffic.last().map(|(_, counts)| counts.as_slice()).unwrap_or_default();
    let results = names.into_iter().zip(last).map(|((path, flow, host), (sent, arrived))| {
        let cross = scenario.cross.iter().find(|cross| cross.name == flow);
        let from = cross.map_or(Duration::ZERO, |cross| cross.start);
        let until = cross.and_then(|cross| cross.stop).unwrap_or(Duration::MAX).min(record.elapsed);
        let server = scenario.server_of(&scenario.paths[path]);
        let senders = record.senders[server].keys().filter(|(seen, _)| *seen == host);
        Flow {
            path: scenario.paths[path].name.clone(),
            flow,
            congestion: senders.map(|(_, control)| control.clone()).collect(),
            payload_bytes: arrived.payload,
            mean_bps: report::bps(arrived.payload, until - from),
            packets_sent: sent.packets,
            packets_missing: sent.packets.saturating_sub(arrived.packets),
        }
    });
    Ok(results.collect())
}

/// Mean rate of all cross traffic, over the time in which any was meant to run.
fn cross_bps(scenario: &Scenario, elapsed: Duration, flows: &[Flow]) -> f64 {
    let span = |cross: &Cross| (cross.start, cross.stop.unwrap_or(Duration::MAX).min(elapsed));
    let mut spans: Vec<_> = scenario.cross.iter().map(span).collect();
    spans.sort();
    let mut covered = Duration::ZERO;
    let mut until = Duration::ZERO;
    for (from, to) in spans {
        covered += to - from.max(until);
        until = until.max(to);
    }
    let cross = flows.iter().filter(|flow| flow.flow != "film");
    report::bps(cross.map(|flow| flow.payload_bytes).sum(), covered)
}

fn ping_result(record: &Record, echoes: &[Echo], out: &Path) -> Result<Option<PingSummary>, Error> {
    if echoes.is_empty() {
        return Ok(None);
    }
    let mut table = Table::new("time_s,rtt_ms");
    let millis = |rtt: StdDuration| rtt.as_secs_f64() * 1e3;
    for echo in echoes {
        let at = echo.sent.saturating_duration_since(record.start).as_secs_f64();
        let rtt = echo.rtt.map_or(String::new(), |rtt| format!("{:.3}", millis(rtt)));
        table.line(&[&format!("{at:.3}"), &rtt]);
    }
    table.save(out, "ping.csv")?;
    let answered: Vec<f64> = echoes.iter().filter_map(|echo| echo.rtt).map(millis).collect();
    Ok(Some(PingSummary {
        sent: echoes.len(),
        lost: echoes.len() - answered.len(),
        min_ms: answered.iter().copied().reduce(f64::min).unwrap_or(0.0),
        mean_ms: answered.iter().sum::<f64>() / answered.len().max(1) as f64,
        max_ms: answered.iter().copied().reduce(f64::max).unwrap_or(0.0),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_traffic_is_averaged_over_the_time_that_it_covers() {
        let mut scenario = Scenario::parse(
            r#"
            run = { duration = "100s" }
            path = [{ name = "main", rate = "6M", rtt = "80ms", queue = 50 }]
            server = [{ name = "origin" }]
            client = [{ name = "curl", command = ["curl"] }]
            cross = [{ name = "a", start = "10s", stop = "30s" }, { name = "b", start = "20s" }]
            "#,
        )
        .unwrap();
        let flow = |flow: &str| Flow { flow: flow.into(), payload_bytes: 1_000_000, ..Flow::default() };
        let flows = [flow("film"), flow("a"), flow("b")];
        // From 10 s to 50 s without a gap.
        assert_eq!(cross_bps(&scenario, Duration::from_secs(50), &flows), 400_000.0);
        // A run that ended before the second group started.
        assert_eq!(cross_bps(&scenario, Duration::from_secs(20), &flows), 1_600_000.0);
        scenario.cross[1].start = Duration::from_secs(40);
        assert_eq!(cross_bps(&scenario, Duration::from_secs(60), &flows), 400_000.0);
    }
}
