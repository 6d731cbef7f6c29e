//! What scenarios become, and what is said about wrong ones.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use anabranch_congestion::aggregate::Scheme;
use anabranch_congestion::multfrc;
use anabranch_congestion::tfrc::{Filter, Parameters};
use anabranch_units::{Bytes, Duration, Rate, Ratio, Time};
use proptest::prelude::*;

use super::*;
use crate::model::{
    Act, Change, CoDel, Congestion, Discipline, FqCoDel, Jitter, Kind, Limit, LossModel, Pattern, Pie,
    RateControl, Source, Spread, Tcp, TokenBucket, When,
};

/// The files that a test has.
struct Memory(BTreeMap<&'static str, &'static str>);

impl Files for Memory {
    fn read(&mut self, name: &str) -> io::Result<String> {
        self.0.get(name).map(|text| (*text).into()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn parsed(text: &str) -> Result<Model, Error> {
    parse_seeded(text, None)
}

fn parse_seeded(text: &str, seed: Option<u64>) -> Result<Model, Error> {
    let files =
        [("down.trace", "5\n10\n"), ("rates.csv", "0,6M\n2,0\n3,800k\n"), ("empty", ""), ("back", "2\n1\n")];
    parse("test.toml", text, seed, &mut Memory(files.into()))
}

/// The model of a text, which the engine takes as well.
fn model(text: &str) -> Model {
    let model = parsed(text).unwrap_or_else(|error| panic!("{error}"));
    crate::check::check(&model).unwrap_or_else(|error| panic!("{:?}: {error}", error.place));
    model
}

fn error(text: &str) -> String {
    match parsed(text) {
        Ok(_) => panic!("this was read:\n{text}"),
        Err(error) => error.to_string(),
    }
}

const PATH: &str = r#"
[run]
duration = "10s"

[[node]]
name = "a"
[[node]]
name = "b"

[[link]]
from = "a"
to = "b"
rate = "6Mbps"
delay = "20ms"

[[flow]]
name = "file"
kind = "tcp"
from = "a"
to = "b"
"#;

/// The path with other text in the place of some of it.
fn path(from: &str, to: &str) -> String {
    assert!(PATH.contains(from), "{from}");
    PATH.replacen(from, to, 1)
}

#[test]
fn a_path_with_defaults() {
    let model = model(PATH);
    assert_eq!(model.run.duration, Duration::from_secs(10));
    assert_eq!(
        (model.run.seed, model.run.sampling, model.run.warm_up),
        (1, Duration::from_secs(1), Duration::ZERO)
    );
    let names: Vec<_> = model.links.iter().map(|link| (&link.name[..], link.from, link.to)).collect();
    assert_eq!(names, [("a-b", 0, 1), ("b-a", 1, 0)]);
    assert_eq!(model.links[1].rate, Rate::from_mbps(6));
    assert_eq!(model.links[0].queue.limit, Limit::Packets(100));
    let flow = &model.flows[0];
    assert_eq!((flow.start, flow.stop), (When::At(Time::ZERO), None));
    let expected = Kind::Tcp { from: 0, to: 1, tcp: Tcp::DEPLOYED, source: Source::Greedy };
    assert_eq!(flow.kind, expected);
}

#[test]
fn the_other_direction_is_the_same_but_for_what_is_said() {
    let text = path(
        "delay = \"20ms\"",
        r#"delay = "20ms"
queue = "64KiB"
discipline = { kind = "red", low = 3 }
loss = 0.01
changes = [{ at = "1s", down = true }, { at = "2s", down = false, loss = 0 }, { at = "3s", rate = "1M" }]
reverse = { rate = "1Mbps", loss = 0, name = "back" }"#,
    );
    let model = model(&text);
    let (there, back) = (&model.links[0], &model.links[1]);
    assert_eq!((&back.name[..], back.rate, back.delay), ("back", Rate::from_mbps(1), there.delay));
    assert_eq!((there.queue, back.queue.limit), (back.queue, Limit::Bytes(Bytes::kib(64))));
    let Discipline::Red(red) = there.queue.discipline else { panic!("no RED") };
    assert_eq!((red.low, red.high), (3.0, 15.0));
    assert_eq!((&there.loss, &back.loss), (&LossModel::Bernoulli(0.01), &LossModel::None));
    assert!(back.changes.is_empty(), "a rate of its own has its own changes");
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let change = |seconds, rate| Change { at: at(seconds), rate: Some(rate), delay: None, loss: None };
    let up = Change { loss: Some(LossModel::None), ..change(2, Rate::from_mbps(6)) };
    assert_eq!(there.changes, [change(1, Rate::ZERO), up, change(3, Rate::from_mbps(1))]);
}

#[test]
fn disciplines_have_defaults() {
    let of = |text: &str| {
        let model = parsed(&path("delay =", &format!("discipline = {text}\ndelay ="))).unwrap();
        model.links[0].queue.discipline
    };
    let ms = Duration::from_millis;
    assert_eq!(of(r#""pie""#), Discipline::Pie(Pie { target: ms(15) }));
    assert_eq!(of(r#"{ kind = "pie", target = "20ms" }"#), Discipline::Pie(Pie { target: ms(20) }));
    let codel = CoDel { target: ms(5), interval: ms(100) };
    assert_eq!(of(r#""fq-codel""#), Discipline::FqCoDel(FqCoDel { codel, quantum: Bytes::new(1514) }));
    let codel = CoDel { target: ms(8), ..codel };
    let other = of(r#"{ kind = "fq-codel", target = "8ms", quantum = "300B" }"#);
    assert_eq!(other, Discipline::FqCoDel(FqCoDel { codel, quantum: Bytes::new(300) }));
    assert_eq!(of(r#""codel""#), Discipline::CoDel(CoDel { target: ms(5), interval: ms(100) }));
}

#[test]
fn losses_have_kinds() {
    let of = |loss: &str| {
        let text = path("delay = \"20ms\"", &format!("delay = \"20ms\"\nloss = {loss}"));
        parsed(&text).map(|model| model.links[0].loss.clone())
    };
    let gilbert = of(r#"{ kind = "gilbert-elliott", to_bad = 0.01, to_good = 0.3 }"#).unwrap();
    assert!(
        matches!(gilbert, LossModel::GilbertElliott(chain) if chain.loss_bad == 1.0 && chain.loss_good == 0.0)
    );
    assert_eq!(of(r#"{ kind = "listed", packets = [0, 7] }"#).unwrap(), LossModel::Listed(vec![0, 7]));
    assert_eq!(of("1").unwrap(), LossModel::Bernoulli(1.0));
    for wrong in ["-0.1", "1.01", "nan", "inf", r#"{ kind = "listed", packets = [7, 7] }"#, "\"0.1\""] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_trace_takes_the_place_of_the_rate() {
    let model =
        model(&path("rate = \"6Mbps\"", "trace = \"down.trace\"\nreverse = { trace = \"rates.csv\" }"));
    let opportunities = model.links[0].opportunities.as_ref().unwrap();
    assert_eq!((opportunities.at.len(), opportunities.period), (2, Duration::from_millis(10)));
    assert_eq!(model.links[0].rate, Rate::from_kbps(2400));
    assert!(model.links[1].opportunities.is_none());
    assert_eq!((model.links[1].rate, model.links[1].changes.len()), (Rate::from_mbps(6), 2));
    for (trace, expected) in [
        ("trace = \"none\"", "cannot read the trace none"),
        ("trace = \"empty\"", "the trace empty is empty"),
        ("trace = \"back\"", "the trace back, line 2: the time goes back"),
        ("trace = \"down.trace\"\nrate = \"1M\"", "does not go with `trace`"),
        ("trace = \"rates.csv\"\nchanges = [{ at = \"1s\", rate = \"1M\" }]", "by the trace only"),
    ] {
        let error = error(&path("rate = \"6Mbps\"", trace));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_dumbbell_with_many_flows() {
    let model = model(
        r#"
        [run]
        duration = "10s"
        seed = 7
        warm_up = "1s"
        sampling = "100ms"
        [topology]
        kind = "dumbbell"
        pairs = 3
        bottleneck = { rate = "15Mbps", delay = "20ms", queue = "50 packets", discipline = "codel" }
        access = { rate = "100Mbps", delay = "1ms" }
        receiver_delay_spread = "3ms"
        [tcp.ns2]
        segment = "1000B"
        congestion = "reno"
        delayed_ack = false
        rto = { initial = "3s" }
        [[flow]]
        name = "long"
        kind = "tcp"
        count = 3
        from = "sender{i}"
        to = "receiver{i}"
        tcp = "ns2"
        start = ["0s", "1s"]
        stop = "5s"
        [[flow]]
        name = "noise"
        kind = "udp"
        from = "sender1"
        to = "receiver2"
        rate = "80k"
        pattern = "exponential"
        on = "500ms"
        off = "500ms"
        "#,
    );
    let names: Vec<_> = model.nodes.iter().map(|node| &node.name[..]).collect();
    assert_eq!(names[..4], ["left", "right", "sender1", "receiver1"]);
    assert_eq!((model.nodes.len(), model.links.len()), (8, 14));
    let delay = |name: &str| model.links.iter().find(|link| link.name == name).unwrap().delay.as_micros();
    let delays = ["right-receiver1", "right-receiver2", "receiver3-right"].map(delay);
    assert_eq!(delays, [1000, 2500, 4000]);
    assert_eq!(model.flows[2].name, "long3");
    assert!(matches!(model.flows[2].start, When::Between(_, _)));
    let Kind::Tcp { from, to, tcp, .. } = &model.flows[2].kind else { panic!("no TCP") };
    assert_eq!((names[*from], names[*to]), ("sender3", "receiver3"));
    assert_eq!((tcp.congestion, tcp.delayed_ack, tcp.segment), (Congestion::Reno, None, Bytes::new(1000)));
    assert_eq!((tcp.rto.initial, tcp.rto.least), (Duration::from_secs(3), Tcp::DEPLOYED.rto.least));
    assert!(matches!(
        model.flows[3].kind,
        Kind::Udp { pattern: Pattern::Exponential { .. }, size, .. } if size == Bytes::new(1000)
    ));
    assert_eq!(parse_seeded(PATH, Some(9)).unwrap().run.seed, 9);
}

#[test]
fn a_parking_lot_has_a_pair_around_every_hop() {
    let model = model(
        r#"
        run = { duration = "1s" }
        topology = { kind = "parking-lot", hops = 2, bottleneck = { rate = "10M", delay = "5ms" } }
        [[flow]]
        name = "through"
        kind = "tcp"
        from = "sender0"
        to = "receiver0"
        [[flow]]
        name = "hop"
        kind = "tcp"
        count = 2
        from = "sender{i}"
        to = "receiver{i}"
        size = "1MB"
        "#,
    );
    assert_eq!((model.nodes.len(), model.links.len()), (3 + 6, 2 * (2 + 6)));
    assert!(
        matches!(&model.flows[1].kind, Kind::Tcp { source: Source::File(size), .. } if size.get() == 1_000_000)
    );
}

const RANDOM: &str = r#"
[run]
duration = "1s"
[topology]
kind = "random"
access_rates = ["400kbps", "1Mbps"]
[[flow]]
name = "client"
kind = "media"
count = 50
client = "access{random}"
servers = ["access{random}", "access{random}"]
rate = "400kbps"
size = ["10MB", "100MB"]
algorithm = { kind = "rome", connections = 2 }
"#;

#[test]
fn a_random_network_is_the_seed_s() {
    let model = model(RANDOM);
    assert_eq!(model.nodes.len(), 120);
    let access: Vec<_> = model.links.iter().filter(|link| link.name.starts_with("access")).collect();
    assert_eq!(access.len(), 100);
    let rates =
        [400, 1000].map(|rate| access.iter().filter(|link| link.rate == Rate::from_kbps(rate)).count());
    assert!(rates[0] + rates[1] == 100 && rates[0] > 20 && rates[1] > 20, "{rates:?}");
    let mut sizes = Vec::new();
    for flow in &model.flows {
        let Kind::Media(media) = &flow.kind else { panic!("no stream") };
        assert!(media.client != media.servers[0] && media.servers[0] != media.servers[1]);
        sizes.push(media.size.unwrap().get());
    }
    assert!(sizes.iter().all(|size| (10_000_000..=100_000_000).contains(size)));
    assert!(sizes.iter().min().unwrap() * 2 < *sizes.iter().max().unwrap(), "{sizes:?}");
    assert_eq!(parse_seeded(RANDOM, Some(1)).unwrap(), model);
    let other = parse_seeded(RANDOM, Some(2)).unwrap();
    assert!(other.links != model.links && other.flows != model.flows);
}

#[test]
fn what_a_flow_draws_moves_no_other() {
    let media = |text: &str| -> Vec<_> {
        let flows = model(text).flows.into_iter();
        flows.filter_map(|flow| if let Kind::Media(media) = flow.kind { Some(media) } else { None }).collect()
    };
    let list = "servers = [\"access{random}\", \"access{random}\"]";
    let counted = |count: u32| {
        RANDOM.replace(list, &format!("servers = {{ node = \"access{{random}}\", count = {count} }}"))
    };
    let (two, also_two, five) = (media(RANDOM), media(&counted(2)), media(&counted(5)));
    assert_eq!(two, also_two);
    for (two, five) in two.iter().zip(&five) {
        assert_eq!(two.client, five.client);
        assert!(five.servers.len() == 5 && five.servers.starts_with(&two.servers));
    }
    let fewer = media(&RANDOM.replace("count = 50", "count = 20"));
    assert_eq!(fewer, two[..20]);
    let error = parsed(&counted(257)).unwrap_err().to_string();
    assert!(error.contains("256"), "{error}");
}

#[test]
fn the_parameters_of_streams() {
    let stream = |algorithm: &str| {
        let media = format!(
            "client = \"b\"\nservers = [\"a\", \"a\"]\nrate = \"3M\"\nalgorithm = {algorithm}\nkind = \"media\""
        );
        parsed(&path("kind = \"tcp\"\nfrom = \"a\"\nto = \"b\"", &media))
    };
    let of = |algorithm: &str| match stream(algorithm).unwrap().flows.remove(0).kind {
        Kind::Media(media) => *media,
        other => panic!("{other:?}"),
    };
    assert!(matches!(of("\"fixed\"").algorithm, RateControl::Fixed { connections: 1, window: None }));
    assert!(matches!(
        of("{ kind = \"basic\", preset = \"table8.2\", connections = 4 }").algorithm,
        RateControl::Basic(found)
            if found == anabranch_film::multitcp::Parameters { connections: 4, ..anabranch_film::multitcp::Parameters::TABLE_8_2 }
    ));
    assert!(matches!(
        of("\"advanced\"").algorithm,
        RateControl::Advanced(found) if found == anabranch_film::multitcp::AdvancedParameters::TABLE_8_3
    ));
    let media = of("{ kind = \"auto\", connections = 20 }");
    assert!(matches!(&media.algorithm, RateControl::Auto(found) if found.most == 20 && found.at_start == 2));
    assert_eq!(media.pace, anabranch_film::session::Pace::Media(Some(Rate::from_mbps(3))));
    assert_eq!(media.policy.segment_size.1, Bytes::mib(2));
    let media = of("{ kind = \"rome\", segment_size = \"10kB\" }");
    assert_eq!(media.policy.segment_size, (Bytes::new(10_000), Bytes::new(10_000)));
    for (wrong, expected) in [
        ("{ kind = \"basic\", cf = 5 }", "`cf` is not a key of a stream's `algorithm`"),
        ("{ kind = \"basic\", alpha = 1 }", "from 0 to below 1"),
        ("{ kind = \"basic\", delta = \"8 round trips\" }", "an interval is written"),
        ("{ kind = \"auto\", buffer_low = \"1h\" }", "has to be below"),
        ("{ connections = 5 }", "needs the key `kind`"),
        ("\"atuo\"", "did you mean 'auto'?"),
    ] {
        let error = stream(wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn tfrc_is_that_of_the_rfc_unless_another_is_named() {
    for (settings, expected) in [
        ("", (Bytes::new(1000), Parameters::RFC5348)),
        ("packet_size = \"1040B\"\nparameters = \"rfc5348\"", (Bytes::new(1040), Parameters::RFC5348)),
        ("parameters = \"ns2\"", (Bytes::new(1000), Parameters::NS2)),
        ("damping = true", (Bytes::new(1000), Parameters::RFC5348)),
        ("damping = false", (Bytes::new(1000), Parameters { sqrt_rtt_weight: None, ..Parameters::RFC5348 })),
    ] {
        let model = model(&path("kind = \"tcp\"", &format!("kind = \"tfrc\"\n{settings}")));
        let found = match model.flows[0].kind {
            Kind::Tfrc { size, parameters, .. } => (size, parameters),
            ref other => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn a_scheme_says_over_how_many_connections() {
    let control = |scheme: &str| {
        let model = model(&path("kind = \"tcp\"", &format!("kind = \"tfrc\"\nscheme = {scheme}")));
        match model.flows[0].kind {
            Kind::Tfrc { parameters, scheme, .. } => (parameters.filter, scheme),
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(control("{ kind = \"fixed\", connections = 8 }"), (Filter::All, Scheme::Fixed(8)));
    assert_eq!(control("\"multfrc\""), (Filter::All, Scheme::MULTFRC));
    assert_eq!(control("\"aio-tfrc\""), (Filter::First, Scheme::AIO_TFRC));
    let of_all = "{ kind = \"aio-tfrc\", filter = \"all\" }";
    assert_eq!(control(of_all), (Filter::All, Scheme::AIO_TFRC));
    assert_eq!(control("\"auto\""), (Filter::All, Scheme::AUTO));
    let keys = "increase = 6, decrease = 2, round_trips = 20, tolerance = 0.1, most_connections = 9, least_round_trip = \"sample\"";
    let expected = multfrc::Parameters {
        round_trips: 20,
        tolerance: Ratio::from_f64(0.1),
        most_connections: 9,
        least: multfrc::Least::Sample,
        ..multfrc::Parameters::FAST
    };
    assert_eq!(control(&format!("{{ kind = \"multfrc\", {keys} }}")).1, Scheme::Several(expected));
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_right_name() {
    let error = error(&path("delay = \"20ms\"", "delay = \"20ms\"\nqueu = \"50 packets\""));
    let expected = "test.toml:15:1: `queu` is not a key of a [[link]]\n   |\n15 | queu = \"50 packets\"\n   | ^^^^\n   = did you mean `queue`?";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn jitter_and_policers_are_read_for_each_direction() {
    let of = |text: &str| parsed(&path("delay =", &format!("{text}\ndelay ="))).unwrap().links;
    let ms = Duration::from_millis;
    let links = of("duplicate = 0.1\nreverse = { duplicate = 0 }");
    assert_eq!((links[0].duplicate, links[1].duplicate), (0.1, 0.0));
    let links = of(
        "jitter = \"5ms\"\npolicer = { rate = \"2Mbps\", burst = \"64KiB\" }\nreverse = { policer = false }",
    );
    let uniform = Jitter { spread: Spread::Uniform { most: ms(5) }, reorders: false };
    assert_eq!((links[0].jitter, links[1].jitter), (Some(uniform), Some(uniform)));
    let policer = TokenBucket { rate: Rate::from_mbps(2), burst: Bytes::kib(64) };
    assert_eq!((links[0].policer, links[1].policer), (Some(policer), None));
    let normal = r#"jitter = { kind = "normal", mean = "5ms", deviation = "2ms", reorder = true }
reverse = { jitter = "0ms" }"#;
    let links = of(normal);
    let spread = Spread::Normal { mean: ms(5), deviation: ms(2) };
    assert_eq!((links[0].jitter, links[1].jitter), (Some(Jitter { spread, reorders: true }), None));
    let exponential = of(r#"jitter = { kind = "exponential", mean = "3ms" }"#);
    assert_eq!(exponential[0].jitter.unwrap().spread, Spread::Exponential { mean: ms(3) });
}

#[test]
fn programs_are_refused_where_they_stand() {
    let programs = "[[server]]\nnode = \"a\"\n[[client]]\nname = \"curl\"\ncommand = [\"curl\"]\n[kernel]\n";
    let error = error(&format!("{PATH}{programs}"));
    let line = PATH.lines().count() + 1;
    for (line, key) in [(line, "server"), (line + 2, "client"), (line + 5, "kernel")] {
        let told =
            format!("test.toml:{line}:1: the simulator runs no programs: only the testbed has `{key}`");
        assert!(error.contains(&told), "{told}\n{error}");
    }
    assert!(!error.contains("is not a key"), "{error}");
}

#[test]
fn a_paced_control_goes_with_what_it_can_keep_to() {
    let of = |more: &str| {
        format!(
            "{PATH}\n[[flow]]\nname = \"f\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\ntcp = {{ congestion = \"bbr\"{more}\n"
        )
    };
    assert!(parsed(&of(", segment = \"1200B\" }")).is_ok());
    for (more, told) in [
        (", recovery = \"ns2-sack1\" }", "ns-2's rules know no pacing"),
        (" }\ngroup = \"g\"", "a group shares windows"),
        (", initial_ssthresh = 64 }", "leave out `initial_ssthresh`"),
        (", send_jitter = \"1ms\" }", "leave out `send_jitter`"),
    ] {
        let error = match parsed(&of(more)) {
            Ok(model) => crate::Simulation::new(model).expect_err("refused").to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(told) && error.contains("`bbr`"), "{error}");
    }
}

#[test]
fn wrong_values_are_refused_with_what_would_be_right() {
    for (from, to, expected) in [
        ("duration = \"10s\"", "duration = \"0s\"", "test.toml:3:12: `duration` is above zero"),
        ("duration = \"10s\"", "duration = 10", "a text with its unit, not an integer"),
        ("duration = \"10s\"", "duration = 10", "200ms, 10s, 5m or 2h"),
        ("duration = \"10s\"", "duraton = \"10s\"", "did you mean `duration`?"),
        ("duration = \"10s\"", "duration = \"10s\"\nsampling = \"1us\"", "at least 1 ms"),
        ("duration = \"10s\"", "duration = \"10s\"\nwarm_up = \"10s\"", "nothing would be counted"),
        ("duration = \"10s\"", "duration = \"2000h\"\nsampling = \"1s\"", "rows of output"),
        ("duration = \"10s\"", "duration = \"5000h\"", "at most 10000000.0 s"),
        ("duration = \"10s\"", "duration = \"10s\"\nseed = -1", "a whole number from 0"),
        ("[run]", "[rnu]", "did you mean `run`?"),
        ("[run]\nduration = \"10s\"", "", "a scenario needs the key `run`"),
        ("[run]", "[[run]]", "`run` is a table, not an array"),
        ("[[node]]\nname = \"b\"", "[[node]]\nname = \"a\"", "a second node has the name 'a'"),
        ("name = \"b\"", "name = \"b c\"", "a name is 1 to 64 letters"),
        ("[[node]]\nname = \"b\"", "", "there is no node 'b'"),
        ("to = \"b\"", "to = \"a\"", "a link from a node to itself"),
        ("to = \"b\"\nrate = \"6Mbps\"", "to = \"bb\"\nrate = \"6Mbps\"", "did you mean 'b'?"),
        ("rate = \"6Mbps\"", "rate = \"0\"", "above zero"),
        ("rate = \"6Mbps\"", "rate = \"fast\"", "'fast' is not a rate"),
        ("rate = \"6Mbps\"", "rate = \"9999Gbps\"", "a rate is at most"),
        ("rate = \"6Mbps\"", "", "a [[link]] needs the key `rate`"),
        ("delay = \"20ms\"", "", "a [[link]] needs the key `delay`"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nqueue = \"0 packets\"", "1 to 1000000 packets"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nqueue = 50", "50 packets"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nqueue = \"1000B\"", "at least 1500B"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nloss = 1.5", "from 0 to 1 (a probability)"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nsimplex = true", "no links lead from 'b' to 'a'"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nsimplex = true\nreverse = {}", "no reverse direction"),
        ("delay = \"20ms\"", "delay = \"20ms\"\ncount = 2", "a second link has the name 'a-b'"),
        (
            "delay = \"20ms\"",
            "delay = \"20ms\"\ndiscipline = { kind = \"red\", low = 20 }",
            "`low` (20) has to be below `high` (15)",
        ),
        (
            "delay = \"20ms\"",
            "delay = \"20ms\"\nchanges = [{ at = \"2s\", loss = 0 }, { at = \"1s\", loss = 0 }]",
            "go forward in time: the one before is at 2.000 s",
        ),
        ("delay = \"20ms\"", "delay = \"20ms\"\nchanges = [{ at = \"2s\" }]", "changes nothing"),
        ("kind = \"tcp\"", "kind = \"tpc\"", "did you mean 'tcp'?"),
        (
            "kind = \"tcp\"",
            "kind = \"tcp\"\nstart = \"5s\"\nstop = \"4s\"",
            "stops at 4.000 s, and starts at 5.000 s",
        ),
        ("kind = \"tcp\"", "kind = \"tcp\"\nstart = [\"5s\", \"4s\"]", "the least and the most"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = \"ns2\"", "there are no TCP settings 'ns2'"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { receive_window = \"1kB\" }", "smaller than a `segment`"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { segment = \"65500B\" }", "larger than an IP packet"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { congestion = \"bbb\" }", "one of reno, cubic, multcp:N"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { congestion = \"bbr:3\" }", "'bbr' has no parameter"),
        (
            "kind = \"tcp\"",
            "kind = \"tcp\"\ntcp = { congestion = \"ttfwc:2\" }",
            "a tuning parameter is a number from 0 to 1",
        ),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { congestion = \"tfcw\" }", "did you mean 'tfwc'?"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ncount = 0", "a whole number from 1 to 10000"),
        ("kind = \"tcp\"", "kind = \"tcp\"\njitter = true", "not a key of a [[flow]] of kind tcp"),
        ("kind = \"tcp\"", "kind = \"tcp\"\napplication = \"file\"", "needs the key `size`"),
        ("kind = \"tcp\"", "kind = \"tcp\"\nsize = \"0B\"", "is a size from 1 B"),
        ("kind = \"tcp\"", "kind = \"udp\"", "needs the key `rate`"),
        ("kind = \"tcp\"", "kind = \"udp\"\nrate = \"1M\"\npattern = \"on-off\"", "needs the key `on`"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nrate = \"1M\"", "not a key of a [[flow]] of kind tfrc"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nparameters = \"ns-2\"", "did you mean 'ns2'?"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nscheme = \"multfrk\"", "did you mean 'multfrc'?"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nscheme = { kind = \"fixed\" }", "needs the key `connections`"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nscheme = { kind = \"auto\", decrease = -1 }", "from 0 to 100"),
        ("kind = \"tcp\"", "kind = \"media\"", "needs the key `client`"),
    ] {
        let error = error(&path(from, to));
        assert!(error.contains(expected), "{to}: {error}");
    }
    let nobody = PATH.split("[[flow]]").next().unwrap();
    assert!(error(nobody).contains("nobody sends"));
    assert!(error("[run\n").starts_with("test.toml:1:"), "{}", error("[run\n"));
    let single = PATH.replace("[[node]]\nname = \"a\"", "").replace("[[node]]", "[node]");
    assert!(error(&single).contains("two brackets"));
}

#[test]
fn nothing_is_without_bounds() {
    let many = |key: &str, count: u32| path(key, &format!("{key}\ncount = {count}"));
    for (text, expected) in [
        (many("name = \"b\"", 2000), "more than 2000 nodes"),
        (many("name = \"b\"", 2001), "a whole number from 1 to 2000"),
        (many("kind = \"tcp\"", 10_001), "a whole number from 1 to 10000"),
        (
            many("kind = \"tcp\"", 10_000)
                + "[[flow]]\nname = \"x\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"",
            "more than 10000 flows",
        ),
        (
            many("rate = \"6Mbps\"\ndelay = \"20ms\"", 10_001).replace(
                "to = \"b\"\nrate",
                "to = \"b\"\nname = \"l{i}\"\nreverse = { name = \"r{i}\" }\nrate",
            ),
            "more than 20000 links",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn files_are_read_beside_the_scenario_and_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.toml");
    let missing = load(&file, None).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("a.toml"), "{missing}");
    fs::write(&file, path("rate = \"6Mbps\"", "trace = \"a.trace\"")).unwrap();
    fs::write(directory.path().join("a.trace"), "1\n").unwrap();
    assert_eq!(load(&file, None).unwrap().links[0].rate, Rate::from_mbps(12));
    fs::write(directory.path().join("a.trace"), b"\xff\xfe").unwrap();
    assert!(load(&file, None).unwrap_err().to_string().contains("cannot read the trace a.trace"));
    fs::File::create(directory.path().join("a.trace")).unwrap().set_len(LARGEST_FILE + 1).unwrap();
    assert!(load(&file, None).unwrap_err().to_string().contains("larger than 32 MiB"));
    let endless = load(Path::new("/dev/zero"), None).unwrap_err().to_string();
    assert!(endless.contains("not a regular file"), "{endless}");
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,300}") {
        let _ = parsed(&text);
    }

    /// Pieces of scenarios in any order are closer to what can go wrong.
    #[test]
    fn no_shuffled_scenario_panics(
        order in prop::collection::vec((0usize..64, 0usize..64), 0..20),
        cut in 0usize..2000,
    ) {
        let mut lines: Vec<&str> = PATH.lines().chain(RANDOM.lines()).collect();
        for (one, other) in order {
            let length = lines.len();
            lines.swap(one % length, other % length);
        }
        let text = lines.join("\n");
        let _ = parsed(text.get(..cut.min(text.len())).unwrap_or_default());
        let _ = parsed(&text);
    }
}

#[test]
fn a_player_s_buffer_tunes_its_senders() {
    let stream = |tcp: &str| {
        let media = format!(
            "client = \"b\"\nservers = [\"a\"]\nrate = \"3M\"\nalgorithm = \"fixed\"\nkind = \"media\"\ntcp = {tcp}"
        );
        parsed(&path("kind = \"tcp\"\nfrom = \"a\"\nto = \"b\"", &media))
    };
    let tuned =
        stream("{ congestion = \"ttfwc:0\", tuning_by_buffer = { low = \"1s\", fast = 0.7 } }").unwrap();
    let Kind::Media(media) = &tuned.flows[0].kind else { panic!("no stream") };
    let rule = media.tcp.tuning.unwrap();
    assert_eq!((rule.low, rule.high), (Duration::from_secs(1), Duration::from_secs(8)));
    assert_eq!((rule.fast.get(), rule.smooth.get()), (0.7, 0.0));
    for (wrong, expected) in [
        ("{ tuning_by_buffer = { low = \"9s\" } }", "is above `high`"),
        ("{ tuning_by_buffer = { fast = 2 } }", "from 0 to 1"),
    ] {
        let error = stream(wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_reader_takes_at_its_own_pace() {
    let stream = |reader: &str| {
        let media = format!(
            "client = \"b\"\nservers = [\"a\"]\nrate = \"3M\"\nalgorithm = \"auto\"\nkind = \"media\"\nreader = {reader}"
        );
        parsed(&path("kind = \"tcp\"\nfrom = \"a\"\nto = \"b\"", &media))
    };
    let acts = "[{ at = \"10s\", pause = true }, { at = \"20s\", pause = false }, { at = \"30s\", speed = 2 }, \
                { at = \"30s\", seek = \"5m\" }, { at = \"40s\", leave = true }]";
    let scenes = "scenes = [{ at = \"5s\", rate = \"6Mbps\" }, { at = \"9s\", rate = \"1Mbps\" }]";
    let model =
        stream(&format!("{{ buffer = \"2MB\", takes = \"20Mbps\", acts = {acts}, {scenes} }}")).unwrap();
    let Kind::Media(media) = &model.flows[0].kind else { panic!("no stream") };
    let reader = media.reader.as_ref().unwrap();
    assert_eq!((reader.buffer, reader.takes), (Bytes::new(2_000_000), Some(Rate::from_mbps(20))));
    let at = Duration::from_secs;
    let expected = [
        (at(10), Act::Pause(true)),
        (at(20), Act::Pause(false)),
        (at(30), Act::Speed(2.0)),
        (at(30), Act::Seek(at(300))),
        (at(40), Act::Leave),
    ];
    assert_eq!(reader.acts, expected);
    assert_eq!(reader.scenes, [(at(5), Rate::from_mbps(6)), (at(9), Rate::from_mbps(1))]);
    for (wrong, expected) in [
        ("{ buffer = \"0B\" }", "a size from 1 B"),
        ("{ bufer = \"1MB\" }", "did you mean `buffer`"),
        ("{ acts = [{ at = \"2s\", pause = true }, { at = \"1s\", pause = false }] }", "forward in time"),
        ("{ acts = [{ at = \"2s\" }] }", "an act is one of"),
        ("{ acts = [{ at = \"2s\", speed = 2, pause = true }] }", "an act is one of"),
        ("{ acts = [{ at = \"2s\", leave = false }] }", "an act is one of"),
        ("{ acts = [{ at = \"2s\", speed = 0 }] }", "from 0.1 to 16"),
        ("{ acts = [{ pause = true }] }", "needs the key `at`"),
        ("{ scenes = [{ at = \"2s\" }] }", "needs the key `rate`"),
        (
            "{ scenes = [{ at = \"2s\", rate = \"1M\" }, { at = \"1s\", rate = \"1M\" }] }",
            "forward in play time",
        ),
    ] {
        let error = stream(wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
/// The places and the messages of all mistakes of a text.
fn mistakes(text: &str) -> Vec<(usize, String)> {
    match parsed(text) {
        Err(Error::Wrong(mistakes)) => {
            mistakes.told.into_iter().map(|wrong| (wrong.line, wrong.to_string())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_mistakes_of_a_file_are_told_in_one_run() {
    let text = r#"
[run]
duration = "10"
sampling = "1s"
sedd = 3

[[node]]
name = "a"
[[node]]
name = "b"

[[link]]
from = "a"
to = "c"
rate = "10"
dealy = "20ms"
queue = "50"
loss = 2

[tcp.old]
segment = 1460
recovery = "sak"

[[flow]]
name = "file"
kind = "tpc"

[[flow]]
name = "bulk"
kind = "tcp"
from = "a"
to = "bb"
tcp = "old"
size = "5"

[[flow]]
name = "noise"
kind = "udp"
from = "a"
to = "b"
patern = "on-off"
"#;
    let expected = [
        (3, "'10' has no unit; write it like 200ms"),
        (5, "did you mean `seed`?"),
        (14, "there is no node 'c'"),
        (15, "'10' has no unit; write it like 800k"),
        (16, "did you mean `delay`?"),
        (17, "'50' has no unit"),
        (18, "from 0 to 1"),
        (21, "64KiB"),
        (22, "did you mean 'sack'?"),
        (26, "did you mean 'tcp'?"),
        (32, "did you mean 'b'?"),
        (34, "'5' has no unit; write it like 64KiB"),
        (36, "needs the key `rate`"),
        (41, "did you mean `pattern`?"),
    ];
    let found = mistakes(text);
    let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, expected.map(|(line, _)| line), "{found:#?}");
    for ((_, said), (_, told)) in found.iter().zip(expected) {
        assert!(said.contains(told), "{said}\n is without: {told}");
    }
}

#[test]
fn what_follows_from_a_mistake_is_no_other_one() {
    let one = |from: &str, to: &str, line: usize| {
        let found = mistakes(&path(from, to));
        assert!(found.len() == 1 && found[0].0 == line, "{to}: {found:?}");
    };
    // The flow and the link name a node that is wrong itself.
    one("name = \"b\"", "nam = \"b\"", 8);
    // The flow has no way, for its link is wrong.
    one("delay = \"20ms\"", "delay = \"20\"", 14);
    // What keys there are follows from the name that is wrong.
    one("kind = \"tcp\"", "kind = \"upd\"\nrate = \"1M\"", 18);
    one("kind = \"tcp\"", "kind = \"tcp\"\napplication = \"flie\"\nsize = \"1MB\"", 19);
    one("delay = \"20ms\"", "delay = \"20ms\"\ndiscipline = { kind = \"rde\", low = 3 }", 15);
    // The first node of a name is the one that the flow means.
    one("name = \"b\"", "name = \"b\"\n[[node]]\nname = \"b\"", 10);
    // A flow with wrong settings has settings.
    one("[[flow]]", "[tcp.x]\nheader = 3\n[[flow]]\ntcp = \"x\"", 17);
    // A key that is missing is not taken for one that is right.
    one("to = \"b\"\nrate", "rate", 10);
    // One copy stands for all.
    one("kind = \"tcp\"", "kind = \"tcp\"\ncount = 9\nsize = \"5\"", 20);
}

#[test]
fn every_fault_of_the_grammar_is_told() {
    let found = mistakes("[run]\nduration = \n[[flow]\nname = 'x'\n");
    assert!(found.len() >= 2 && found[0].0 == 2, "{found:?}");
}

#[test]
fn more_mistakes_than_anybody_reads_are_counted() {
    let text = path(
        "kind = \"tcp\"",
        &format!("kind = \"tcp\"\n{}", (0..150).map(|n| format!("k{n} = 1\n")).collect::<String>()),
    );
    let said = error(&text);
    assert!(said.ends_with("and 50 more mistakes"), "{}", &said[said.len() - 100..]);
}
