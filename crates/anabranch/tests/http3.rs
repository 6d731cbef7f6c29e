//! `anabranch serve --h3` with an HTTP/3 client that is not ours: aioquic. Where it is missing the tests skip
//! and say so (`pip install aioquic`; another Python than `python3` by the environment variable
//! ANABRANCH_PYTHON).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

use anabranch_testkit::Namespaces;
use common::{Server, World, anabranch, ends_with, film, lines, sha256, text};
use rustix::process::Signal;
use serde_json::Value;

/// The client.
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/h3_client.py");

/// A world with a certificate for this machine, and whoever asks for something in it.
struct Http3 {
    world: World,
    python: String,
}

impl Http3 {
    fn new(film: &[u8]) -> Option<Self> {
        let python = std::env::var("ANABRANCH_PYTHON").unwrap_or_else(|_| "python3".into());
        let found = Command::new(&python).args(["-c", "import aioquic"]).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            anabranch_testkit::skipped(format_args!("{python} has no aioquic"));
            return None;
        }
        let world = World::new(film);
        world.certificate();
        Some(Self { world, python })
    }

    fn serve(&self, options: &[&str]) -> Server {
        self.world.serve_h3(options)
    }

    /// The client, not started yet.
    fn client(&self, options: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(CLIENT);
        command.arg("--cacert").arg(self.world.path("cert.pem")).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    fn ask(&self, options: &[&str]) -> Vec<Value> {
        let run = self.client(options).output().unwrap();
        ends_with(&run, 0);
        lines(&text(&run.stdout))
    }
}

/// Waits for the head of the client's first answer.
#[track_caller]
fn until_answered(client: &mut Child) {
    let mut said = String::new();
    BufReader::new(client.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "answered\n");
}

#[test]
fn a_stock_client_gets_files_ranges_and_refusals() {
    let film = film(3_000_000, 1);
    let Some(http3) = Http3::new(&film) else { return };
    let log = http3.world.path("log");
    let mut server = http3.serve(&["--access-log", log.to_str().unwrap()]);
    let (url, nothing) = (server.film(), format!("{}nothing", server.url));

    let whole = &http3.ask(&[&url])[0];
    assert_eq!((&whole["status"], &whole["sha256"]), (&200.into(), &sha256(&film).into()), "{whole}");
    assert!(whole["headers"]["date"].is_string() && whole["headers"]["etag"].is_string(), "{whole}");
    // What means nothing over QUIC is not offered.
    assert!(whole["headers"]["anabranch-stripe"].is_null(), "{whole}");

    let several = http3.ask(&["--header", "range: bytes=1000-1999", &url, &nothing]);
    assert_eq!(several[0]["status"], 206);
    assert_eq!(several[0]["headers"]["content-range"], "bytes 1000-1999/3000000");
    assert_eq!(several[0]["sha256"], sha256(&film[1000..2000]));
    assert_eq!(several[1]["status"], 404);

    let post = &http3.ask(&["--method", "POST", &url])[0];
    assert_eq!((&post["status"], &post["headers"]["allow"]), (&405.into(), &"GET, HEAD, OPTIONS".into()));
    let long = format!("x: {}", "a".repeat(20_000));
    assert_eq!(http3.ask(&["--header", &long, &url])[0]["status"], 431);
    let behind = http3.ask(&["--header", "range: bytes=9000000-", &url]);
    assert_eq!(behind[0]["status"], 416);

    assert_eq!(server.stop(Signal::TERM), Some(143));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("\"GET /film.bin HTTP/3.0\" 200 3000000 \"-\" \"aioquic\""), "{log}");
    assert!(log.contains("\"GET /nothing HTTP/3.0\" 404 "), "{log}");
}

#[test]
fn who_is_too_many_is_told_so() {
    let Some(http3) = Http3::new(&film(4_000_000, 2)) else { return };
    let server = http3.serve(&["--max-connections", "1", "--shape-rate", "1M"]);
    let mut first = http3.client(&["--seconds", "20", &server.film()]).spawn().unwrap();
    until_answered(&mut first);
    let refused = &http3.ask(&[&server.film()])[0];
    assert_eq!(
        (&refused["status"], &refused["headers"]["retry-after"]),
        (&503.into(), &"5".into()),
        "{refused}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_stop_lets_running_answers_end() {
    let film = film(3_000_000, 3);
    let Some(http3) = Http3::new(&film) else { return };
    let mut server = http3.serve(&["--shape-rate", "16M"]);
    let mut running = http3.client(&[&server.film()]).spawn().unwrap();
    until_answered(&mut running);
    assert_eq!(server.stop(Signal::TERM), Some(143));
    let run = running.wait_with_output().unwrap();
    ends_with(&run, 0);
    let answer = &lines(&text(&run.stdout))[0];
    assert_eq!((&answer["sha256"], &answer["error"]), (&sha256(&film).into(), &Value::Null), "{answer}");
}

#[test]
fn noise_does_not_keep_it_from_serving() {
    let film = film(100_000, 4);
    let Some(http3) = Http3::new(&film) else { return };
    let server = http3.serve(&[]);
    let address = server.url.trim_start_matches("https://").trim_end_matches('/');
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in 0..1400usize {
        // Long headers of this version, of others, short headers, and nothing at all.
        let mut noise: Vec<u8> = (0..length).map(|place| (place * 89 + length * 31) as u8).collect();
        if length > 5 && length % 2 == 0 {
            noise[..5].copy_from_slice(&[0xc0 | (length % 64) as u8, 0, 0, 0, 1]);
        }
        let _ = socket.send_to(&noise, address);
    }
    assert_eq!(http3.ask(&[&server.film()])[0]["sha256"], sha256(&film));
}

#[test]
fn a_wrong_control_is_told_with_the_right_ones() {
    let run =
        anabranch().args(["serve", ".", "--h3", "127.0.0.1:0", "--congestion", "vegas"]).output().unwrap();
    let said = ends_with(&run, 2);
    assert!(said.contains("there is no congestion control 'vegas'") && said.contains("ttfwc:0.9"), "{said}");
}

#[test]
fn weights_are_read_again_and_a_file_written_wrongly_is_refused() {
    let Some(http3) = Http3::new(&film(100_000, 5)) else { return };
    let path = http3.world.path("weights.toml");
    fs::write(&path, "[[rule]]\npath = \"/a*\"\nweight = 1\n").unwrap();
    let mut server = http3.serve(&["--weights", path.to_str().unwrap()]);
    assert_eq!(http3.ask(&[&server.film()])[0]["status"], 200);

    // By itself, within seconds.
    fs::write(&path, "[[rule]]\npath = \"/a*\"\nshare = 1\n").unwrap();
    let said = server.says("warning");
    let place = format!("{}:3:1: unknown field `share`", path.display());
    assert!(said.contains(&place) && said.contains("the weights of before stay"), "{said}");
    assert_eq!(http3.ask(&[&server.film()])[0]["sha256"], sha256(&film(100_000, 5)));

    // When it is asked to, also where nothing has changed.
    server.signal(Signal::HUP);
    assert!(server.says("warning").contains(&place));
    fs::write(&path, "default = 4\n").unwrap();
    assert!(server.says("warning").contains("declares no pool, so that no weight has an effect"));
    let pool = "[[pool]]\nname = \"all\"\nclients = \"all\"\n";
    fs::write(&path, format!("default = 4\n[[rule]]\npath = \"/a*\"\nweight = 1\n{pool}")).unwrap();
    assert!(server.says("weights:").contains("1 rule and 1 pool from"));
    assert_eq!(http3.ask(&[&server.film()])[0]["status"], 200);

    fs::write(&path, "default = 0\n").unwrap();
    let mut again = anabranch();
    again.args(["serve", ".", "--h3", "127.0.0.1:0", "--cert"]).arg(http3.world.path("cert.pem"));
    let again =
        again.arg("--key").arg(http3.world.path("key.pem")).arg("--weights").arg(&path).output().unwrap();
    let said = ends_with(&again, 1);
    assert!(said.contains(":1:11: a weight is a number from 0.001 to 1000"), "{said}");
}

/// Two stock clients of a server with weights, alone in a network of 8 Mbps.
const TWO_CLIENTS: &str = r#"
set -e
ip link set lo up
tc qdisc add dev lo root tbf rate 8mbit burst 3000 limit 60000
"$program" serve served --h3 127.0.0.1:4433 --cert cert.pem --key key.pem --congestion reno --weights weights.toml 2>said &
server=$!
trap 'kill $server' EXIT
while ! grep -q serves said; do sleep 0.05; done
ask() { "$python" "$client" --cacert cert.pem --seconds 12 --bin 1 https://127.0.0.1:4433/$1 >$1.json; }
ask four &
ask one
wait $!
"#;

#[test]
fn clients_behind_one_bottleneck_get_what_their_weights_say() {
    let Some(http3) = Http3::new(&[]) else { return };
    for name in ["one", "four"] {
        fs::File::create(http3.world.path("served").join(name)).unwrap().set_len(100_000_000).unwrap();
    }
    let rule = "[[rule]]\npath = \"/four\"\nweight = 4\n";
    let pool = "[[pool]]\nname = \"link\"\nclients = \"127.0.0.0/8\"\n";
    fs::write(http3.world.path("weights.toml"), format!("{pool}{rule}")).unwrap();
    let network = Namespaces::network(
        "ip link set lo up && tc qdisc add dev lo root tbf rate 8mbit burst 3000 limit 60000",
    );
    let run = network.run(|command| {
        let command = common::script(command, http3.world.directory.path(), TWO_CLIENTS);
        command.env("python", &http3.python).env("client", CLIENT)
    });
    let Some(output) = run else { return };
    ends_with(&output, 0);
    let bins = |name: &str| {
        let told = lines(&fs::read_to_string(http3.world.path(name)).unwrap());
        let bins = told.last().unwrap()["bins"].as_object().unwrap().clone();
        bins.into_iter()
            .map(|(second, bytes)| (second.parse().unwrap(), bytes.as_f64().unwrap()))
            .collect::<BTreeMap<u64, f64>>()
    };
    let (one, four) = (bins("one.json"), bins("four.json"));
    // The seconds in which both run, without those in which they begin and end.
    let both: Vec<u64> = one.keys().copied().filter(|second| four.contains_key(second)).collect();
    let middle = &both[3..both.len() - 1];
    let sum = |of: &BTreeMap<u64, f64>| middle.iter().filter_map(|second| of.get(second)).sum::<f64>();
    let (light, heavy) = (sum(&one), sum(&four));
    assert!(middle.len() >= 5 && (3.4..4.6).contains(&(heavy / light)), "{one:?} {four:?}");
}

#[test]
fn our_own_client_speaks_it_over_several_connections() {
    let film = film(6_000_000, 6);
    let world = World::new(&film);
    world.certificate();
    let log = world.path("log");
    let mut server = world.serve_h3(&["--access-log", log.to_str().unwrap()]);
    let trust = ["--http3-only", "--cacert", "cert.pem", "--stats", "stats"];
    let several = ["--algorithm", "basic", "--connections", "4", "--rate", "40M"];
    let run = world.fetch(&trust).args(several).args(["-o", "copy", &server.film()]).output().unwrap();
    ends_with(&run, 0);
    assert_eq!(sha256(&fs::read(world.path("copy")).unwrap()), sha256(&film));
    let summary = world.stats("stats").pop().unwrap();
    assert_eq!(summary["connections_max"], 4, "{summary}");
    assert_eq!(server.stop(Signal::TERM), Some(143));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.lines().count() > 4 && log.lines().all(|line| line.contains("HTTP/3.0\" 206")), "{log}");
}

#[test]
fn a_film_plays_from_it() {
    let film = film(2_000_000, 7);
    let world = World::new(&film);
    world.certificate();
    let server = world.serve_h3(&[]);
    let copy = world.path("copy");
    let player = format!("curl -s -o {} {{}}", copy.display());
    let mut play = anabranch();
    play.current_dir(world.directory.path()).args([
        "play",
        "--http3-only",
        "--cacert",
        "cert.pem",
        "--rate",
        "20M",
    ]);
    let run = play.args(["--player", &player, &server.film()]).output().unwrap();
    ends_with(&run, 0);
    assert_eq!(sha256(&fs::read(copy).unwrap()), sha256(&film));
}

#[test]
fn what_cannot_be_had_over_http3_is_told() {
    let world = World::new(&film(1000, 8));
    world.certificate();
    let server = world.serve_h3(&[]);
    let told = |options: &[&str], url: &str| {
        ends_with(&world.fetch(options).args(["-o", "-", url]).output().unwrap(), 1)
    };
    let said = told(&["--http3-only"], &server.film());
    assert!(said.contains("not accepted") && said.contains("--cacert"), "{said}");
    let said = told(&["--http3-only"], &server.film().replace("https", "http"));
    assert!(said.contains("HTTP/3 is spoken with https: only"), "{said}");
    let said = told(&["--http3-only", "--cacert", "cert.pem"], &format!("{}nothing", server.url));
    assert!(said.contains("404"), "{said}");
    // Nobody is there.
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = told(&["--http3-only", "--connect-timeout", "1s"], &format!("https://{free}/"));
    assert!(said.contains("did not answer within 1.0 s"), "{said}");
}
