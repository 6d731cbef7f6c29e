//! What scenarios become, and what is refused.
#![allow(clippy::unwrap_used, reason = "in a test a failed call is a failed test, also in its helpers")]

use super::*;

const GOOD: &str = r#"[run]
duration = "10s"
seed = 7
[[node]]
name = "origin"
[[node]]
name = "viewer"
[[link]]
name = "main"
from = "origin"
to = "viewer"
rate = "6M"
delay = "40ms"
queue = "50 packets"
[[flow]]
name = "beside{i}"
count = 3
kind = "tcp"
from = "origin"
to = "viewer"
start = "2s"
[[server]]
node = "origin"
[[client]]
name = "curl"
command = ["curl", "{url1}"]
"#;

fn parse(text: &str) -> Result<Scenario, Error> {
    Scenario::parse("test.toml", text, &mut Beside("".as_ref()))
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_network_becomes_paths_and_its_flows_cross_traffic() {
    let scenario = parse(GOOD).unwrap();
    let [path] = scenario.paths.as_slice() else { panic!("{:?}", scenario.paths) };
    assert_eq!((path.name.as_str(), path.server, path.rtt()), ("main", 0, Duration::from_millis(80)));
    for way in [Way::ToClient, Way::ToServer] {
        let direction = path.direction(way);
        assert_eq!((direction.rate, direction.queue), (Rate::from_mbps(6), 50));
        assert!(direction.loss.is_none() && direction.changes.is_empty());
    }
    let [cross] = scenario.cross.as_slice() else { panic!("{:?}", scenario.cross) };
    assert_eq!((cross.name.as_str(), cross.flows, cross.start), ("beside", 3, Duration::from_secs(2)));
    assert_eq!((&cross.transport, cross.stop), (&Transport::Tcp("cubic".into()), None));
    assert_eq!((scenario.seed, scenario.duration), (7, Duration::from_secs(10)));
    assert_eq!(scenario.servers[0].congestion, "cubic");
    assert_eq!(scenario.clients[0].output, Output::Stdout);
}

#[test]
fn a_link_may_be_written_from_the_client() {
    let turned =
        GOOD.replace("from = \"origin\"\nto = \"viewer\"\nrate", "from = \"viewer\"\nto = \"origin\"\nrate");
    let turned =
        turned.replace("delay = \"40ms\"", "delay = \"40ms\"\nreverse = { rate = \"1M\", name = \"down\" }");
    let path = parse(&turned).unwrap().paths.remove(0);
    assert_eq!((path.name.as_str(), path.to_client.rate), ("down", Rate::from_mbps(1)));
    assert_eq!(path.to_server.rate, Rate::from_mbps(6));
}

#[test]
fn each_direction_has_its_own_losses_and_changes() {
    let queue = "queue = \"50 packets\"";
    let bursts = r#"loss = { kind = "gilbert-elliott", to_bad = 0.01, to_good = 0.2 }
changes = [{ at = "3s", down = true }, { at = "4s", down = false, loss = 0.5 }]
reverse = { loss = 0 }"#;
    let path = parse(&GOOD.replace(queue, &format!("{queue}\n{bursts}"))).unwrap().paths.remove(0);
    assert_eq!(path.to_client.loss.0, [0.01, 0.8]);
    assert!(path.to_server.loss.is_none());
    let [down, up] = path.to_client.changes.as_slice() else { panic!("{path:?}") };
    assert_eq!((down.at, down.rate), (Duration::from_secs(3), Some(Rate::ZERO)));
    assert_eq!((up.rate, up.loss.clone()), (Some(Rate::from_mbps(6)), Some(LossPattern(vec![0.5]))));
}

#[test]
fn the_rate_of_datagrams_is_that_on_the_wire() {
    let udp = GOOD.replace("kind = \"tcp\"", "kind = \"udp\"\nrate = \"1M\"\npacket_size = \"1000B\"");
    let Transport::Udp { rate, payload } = parse(&udp).unwrap().cross[0].transport else { panic!() };
    assert_eq!((rate.as_bps(), payload.get()), (972_000, 972));
}

#[test]
fn the_kernel_s_own_controls_are_named_beside_the_flows() {
    let scenario = parse(&format!("{GOOD}[kernel]\nbeside = \"bbr\"\n")).unwrap();
    assert_eq!(scenario.cross[0].transport, Transport::Tcp("bbr".into()));
}

/// What a change of the good scenario is refused with, as line and message.
#[test]
fn what_the_testbed_cannot_do_is_refused_where_it_stands() {
    let generated = "seed = 7
[topology]
kind = \"dumbbell\"
pairs = 1
bottleneck = { rate = \"1M\", delay = \"1ms\" }";
    let queue = "queue = \"50 packets\"";
    let simplex = "[[link]]\nfrom = \"origin\"\nto = \"viewer\"\nrate = \"1M\"\nsimplex = true\ndelay \
                   = \"0s\"\n[[flow]]";
    for (from, to, line, expected) in [
        ("duration = \"10s\"", "duration = \"30h\"", 2, "a run of the testbed is at most"),
        ("seed = 7", "warm_up = \"1s\"", 3, "the testbed counts from the beginning"),
        ("seed = 7", "sampling = \"1s\"", 3, "the testbed has intervals of its own"),
        ("seed = 7", generated, 4, "the testbed generates no networks"),
        (queue, "queue = \"64KiB\"", 14, "the testbed's queues hold a number of packets"),
        (
            "name = \"viewer\"",
            "name = \"viewer\"\nserver = { client_cap = \"1M\" }",
            23,
            "has a `server` and no [[server]]",
        ),
        (queue, "discipline = \"red\"", 14, "the testbed has droptail, codel, fq-codel and pie"),
        (queue, "discipline = \"dualpi2\"", 14, "the testbed has droptail, codel, fq-codel and pie"),
        (queue, "discipline = { kind = \"pie\", ecn = true }", 14, "queues mark nothing"),
        ("[[flow]]", simplex, 19, "the testbed's links have two directions"),
        (queue, "loss = { kind = \"listed\", packets = [3] }", 14, "loses packets by chance"),
        (queue, "changes = [{ at = \"1s\", loss = { kind = \"listed\", packets = [3] } }]", 14, "by chance"),
        ("kind = \"tcp\"", "kind = \"tfrc\"", 18, "the testbed has no TFRC"),
        ("kind = \"tcp\"", "kind = \"tcp\"\nsize = \"1MB\"", 19, "the testbed's connections are greedy"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ngroup = \"g\"", 19, "the testbed's flows are in no group"),
        (
            "kind = \"tcp\"",
            "kind = \"tcp\"\ntcp = { segment = \"500B\" }",
            19,
            "the testbed's TCP is the kernel's",
        ),
        (
            "kind = \"tcp\"",
            "kind = \"tcp\"\ntcp = { congestion = \"tfwc\" }",
            19,
            "the kernel has cubic, reno and bbr",
        ),
        (
            "kind = \"tcp\"",
            "kind = \"udp\"\nrate = \"1M\"\npattern = \"on-off\"\non = \"1s\"\noff = \"1s\"",
            20,
            "sent at a constant rate",
        ),
        ("kind = \"tcp\"", "kind = \"udp\"\nrate = \"1M\"\njitter = true", 20, "are sent evenly"),
        (
            "kind = \"tcp\"",
            "kind = \"udp\"\nrate = \"1M\"\npacket_size = \"9kB\"",
            20,
            "the testbed's datagrams have",
        ),
        ("start = \"2s\"", "start = [\"1s\", \"2s\"]", 21, "the testbed draws nothing"),
        ("count = 3", "count = 200", 17, "at most 128 copies"),
        ("name = \"beside{i}\"", "name = \"film{i}\"", 16, "cannot be the name of cross traffic"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = error(&text);
        let told = error.lines().find(|told| told.contains(expected));
        let told = told.unwrap_or_else(|| panic!("{to}: {expected}\n{error}"));
        assert!(told.starts_with(&format!("test.toml:{line}:")), "{to}: {error}");
    }
}

#[test]
fn wrong_values_are_refused_with_what_would_be_right() {
    for (from, to, expected) in [
        ("\"6M\"", "\"fast\"", "rate"),
        ("queue =", "queu =", "did you mean `queue`?"),
        ("node = \"origin\"", "node = \"origi\"", "did you mean 'origin'?"),
        ("\"curl\"\n", "\"../curl\"\n", "a name is 1 to 64"),
        ("\"curl\"\n", "\".curl\"\n", "a client's name begins with no dot"),
        ("\"curl\"\n", "\"curl\"\nsender = [\"cat\"]\n", "needs [live] and [film]"),
        (
            "[[server]]",
            "[film]\nrate = \"1M\"\nduration = \"9s\"\nvariable = true\n[[server]]",
            "only live media may be of variable rate",
        ),
        ("\"curl\"\n", "\"curl\"\noutput = \"fil\"\n", "did you mean 'file'?"),
        ("\"curl\"\n", "\"curl\"\noutput = \"file\"\ncopies = 2\n", "they would share a file"),
        ("\"curl\"\n", "\"curl\"\ncopies = 0\n", "a whole number from 1 to 64"),
        ("[\"curl\", \"{url1}\"]", "[]", "names no program"),
        ("[[server]]", "[[event]]\nat = \"1s\"\n[[server]]", "an event says whom to `kill`, to `start`"),
        ("[[server]]", "[[event]]\nat = \"1s\"\nkill = \"x\"\n[[server]]", "no server"),
        // Nothing of a fetching client can be killed.
        ("[[server]]", "[[event]]\nat = \"1s\"\nkill = \"viewer\"\n[[server]]", "no server"),
        (
            "[[server]]",
            "[[event]]\nat = \"1s\"\nkill = \"origin\"\nrenumber = \"origin\"\n[[server]]",
            "an event is one of",
        ),
        ("[[server]]", "[[event]]\nat = \"1s\"\nmtu = \"100B\"\n[[server]]", "576"),
        ("[[server]]", "[[event]]\nat = \"1s\"\nmtu = \"1280B\"\nlink = \"maim\"\n[[server]]", "'main'"),
        (
            "[[server]]",
            "[[event]]\nat = \"1s\"\nkill = \"origin\"\nlink = \"main\"\n[[server]]",
            "only an `mtu` is a link's",
        ),
        ("\"curl\"\n", "\"curl\"\nrestart = \"1s\"\n", "a client that has a sender"),
        ("[[server]]", "[ping]\ninterval = \"1ms\"\n[[server]]", "the interval is at least"),
        ("[[server]]", "[kernel]\nother = \"bbr\"\n[[server]]", "there is no flow 'other'"),
        (
            "[[server]]",
            "[[server]]\nnode = \"origin\"\n[[server]]",
            "a second server is at the node 'origin'",
        ),
        (
            "[[server]]",
            "[film]\nrate = \"1M\"\nduration = \"9s\"\nbuffer = \"1s\"\n[[server]]",
            "the buffer must hold what is loaded before playing",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = error(&text);
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_server_with_bounds_is_the_testbed_s_own() {
    let server = "server = { client_cap = \"2M\", most_connections = 3, above = \"busy\" }";
    let bound = GOOD.replacen("name = \"origin\"", &format!("name = \"origin\"\n{server}"), 1);
    let allows = parse(&bound).unwrap().servers[0].allows;
    assert_eq!((allows.client_cap, allows.connection_cap), (Some(Rate::from_mbps(2)), None));
    assert_eq!(allows.connections.map(|bound| bound.most), Some(3));
    let other = bound.replace("node = \"origin\"", "node = \"origin\"\ncommand = [\"caddy\"]");
    let error = error(&other);
    assert!(error.contains("a node whose `server` has bounds runs the testbed's own"), "{error}");
}

#[test]
fn events_are_of_hosts_and_links() {
    let events = r#"
[live]
latency = "1s"
[film]
rate = "1M"
duration = "9s"
[[event]]
at = "1s"
kill = "origin"
[[event]]
at = "2s"
start = "viewer"
[[event]]
at = "3s"
mtu = "1280B"
[[event]]
at = "4s"
mtu = "1500B"
link = "main"
[[event]]
at = "5s"
renumber = "origin"
"#;
    let scenario = parse(&format!("{GOOD}sender = [\"cat\"]\nrestart = \"2s\"\n{events}")).unwrap();
    assert_eq!(scenario.clients[0].restart, Some(Duration::from_secs(2)));
    let deeds: Vec<Deed> = scenario.events.iter().map(|event| event.deed).collect();
    let size = anabranch_units::Bytes::new;
    assert_eq!(
        deeds,
        [
            Deed::Kill(Host::Server(0)),
            Deed::Start(Host::Client),
            Deed::Mtu(0, size(1280)),
            Deed::Mtu(0, size(1500)),
            Deed::Renumber(0)
        ]
    );
    assert!(deeds[2].is_mtu_of(0) && !deeds[2].is_mtu_of(1) && !deeds[4].is_mtu_of(0));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let wrong = GOOD
        .replace("\"6M\"", "\"6\"")
        .replace("count = 3", "cuont = 3")
        .replace("\"curl\"\n", "\".curl\"\n");
    let error = error(&wrong);
    for line in [12, 17, 25] {
        assert!(error.contains(&format!("test.toml:{line}:")), "{line}: {error}");
    }
}

#[test]
fn an_unknown_client_names_the_known() {
    let error = parse(GOOD).unwrap().client(Some("wget")).unwrap_err().to_string();
    assert!(error.contains("curl"), "{error}");
}

#[test]
fn the_benchmarks_scenarios_are_read() {
    let directory = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/scenarios");
    let files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_page_s_example_is_read() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testbed.md")).unwrap();
    let example = page.split("```").find(|block| block.contains("[run]")).unwrap();
    assert_eq!(parse(example.trim_start()).unwrap().cross[0].flows, 3);
}
