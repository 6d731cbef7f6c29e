//! `serve --weights` over TCP, by the kernel's group. It needs root.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "../../kernel/tests/machine/mod.rs"]
mod machine;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::Network;
use common::{Server, World, anabranch, kill, lines, text, wait_until};
use machine::is_alone;
use rustix::process::{Pid, Signal, kill_process};

const GOES_BY_THEM: &str = "HTTP over TCP goes by the weights";

fn cc(arguments: &str) -> (bool, String) {
    let ran = anabranch().arg("cc").args(arguments.split_whitespace()).output().unwrap();
    (ran.status.success(), text(&ran.stdout) + &text(&ran.stderr))
}

/// Takes the control away, whatever happens.
struct Unloaded;

impl Drop for Unloaded {
    fn drop(&mut self) {
        cc("unload group");
    }
}

/// Loads the group; `None`, and a line that says why, where this machine cannot.
fn load() -> Option<Unloaded> {
    let (is_loaded, said) = cc("load group");
    if is_loaded {
        return Some(Unloaded);
    }
    let known = ["lets only root", "BTF", "6.4", "BPF file system"];
    assert!(known.iter().any(|known| said.contains(known)), "{said}");
    anabranch_testkit::skipped(said.trim());
    None
}

/// A player's connection, on which it asks for one thing after the other.
struct Player(BufReader<TcpStream>);

impl Player {
    fn new(server: &Server) -> Self {
        let address = server.url.trim_start_matches("http://").trim_end_matches('/');
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self(BufReader::new(stream))
    }

    fn address(&self) -> SocketAddr {
        self.0.get_ref().local_addr().unwrap()
    }

    /// Asks, and takes all of the answer.
    fn gets(&mut self, target: &str) {
        write!(self.0.get_mut(), "GET {target} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the connection has ended");
            if let Some(told) = line.to_lowercase().strip_prefix("content-length: ") {
                length = told.trim().parse().unwrap();
            }
        }
        self.0.read_exact(&mut vec![0; length]).unwrap();
    }

    /// The group and the weight that the kernel has its server's end in.
    fn shares(&self) -> Option<(String, f64)> {
        let (_, told) = cc("status group --json");
        let flow = lines(&told).into_iter().find(|flow| flow["remote"] == self.address().to_string())?;
        Some((flow["group"].as_str()?.to_owned(), (flow["weight"].as_f64()? * 10.0).round() / 10.0))
    }

    /// Asks for this until it has the weight: an answer before may still be on its way, and counts.
    fn comes_to(&mut self, target: &str, weight: f64) {
        let (began, wanted) = (Instant::now(), Some(("campus".to_owned(), weight)));
        while self.shares() != wanted {
            assert!(began.elapsed() < Duration::from_secs(10), "{target}, {weight}: {:?}", self.shares());
            self.gets(target);
            thread::sleep(Duration::from_millis(100));
        }
    }
}

const WEIGHTS: &str = "claims = true\n[[pool]]\nname = \"campus\"\nclients = \"127.0.0.1\"\n\
                       [[rule]]\npath = \"/film.bin\"\nclient = \"127.0.0.0/8\"\nby_need = true\n\
                       [[rule]]\npath = \"/film.bin\"\nweight = 3\n";

#[test]
fn a_connection_counts_for_what_it_is_asked() {
    if !is_alone("a_connection_counts_for_what_it_is_asked") {
        return;
    }
    let Some(_control) = load() else { return };
    let world = World::new(&common::film(200_000, 1));
    let weights = world.path("weights.toml");
    fs::write(&weights, WEIGHTS).unwrap();
    let option = ["--weights", weights.to_str().unwrap()];
    let mut server = world.serve(&option);
    if !server.before().join("").contains(GOES_BY_THEM) {
        server.says(GOES_BY_THEM);
    }
    let mut player = Player::new(&server);
    assert_eq!(player.shares(), None, "it has asked for nothing");
    for (target, weight) in [
        ("/film.bin", 3.0),
        ("/film.bin?CMCD=bl%3D1000", 1.3),
        ("/film.bin?CMCD=bl%3D20000", 0.5),
        ("/", 1.0),
    ] {
        player.comes_to(target, weight);
    }

    // The names of pools stay while somebody is there, whatever the kernel's own rules become.
    let rules = world.path("rules.toml");
    fs::write(&rules, "[[rule]]\nremote_port = 9\nweight = 2\ngroup = \"other\"\n").unwrap();
    assert_eq!(
        cc(&format!("set group --weights {}", rules.display())),
        (true, "anabranch: group: set\n".to_owned())
    );
    player.comes_to("/film.bin", 3.0);
    let (_, groups) = cc("status --groups --json");
    assert!(groups.contains("\"campus\"") && groups.contains("\"other\""), "{groups}");

    // Another run has the next connections, by the same weights.
    server.signal(Signal::USR2);
    let said = server.says("serves from now on");
    let next: i32 = said.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    let _next = Next(next);
    let mut late = Player::new(&server);
    late.comes_to("/film.bin", 3.0);
}

/// A run that has taken over.
struct Next(i32);

impl Drop for Next {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.0).unwrap(), Signal::KILL);
    }
}

#[test]
fn groups_may_come_and_go() {
    if !is_alone("groups_may_come_and_go") {
        return;
    }
    let Some(control) = load() else { return };
    drop(control);
    let world = World::new(b"film");
    let weights = world.path("weights.toml");
    fs::write(&weights, WEIGHTS).unwrap();
    let mut server = world.serve(&["--weights", weights.to_str().unwrap()]);
    let missing = "does not go by the weights: group is not loaded";
    let mut said = server.before().join("");
    if !said.contains(missing) {
        said = server.says(missing);
    }
    assert!(said.contains("'anabranch cc load group'"), "{said}");
    let mut player = Player::new(&server);
    player.gets("/film.bin");
    for _ in 0..2 {
        let control = wait_loaded();
        server.says(GOES_BY_THEM);
        // With its next answer, though it began before.
        player.comes_to("/film.bin", 3.0);
        Player::new(&server).comes_to("/film.bin", 3.0);
        drop(control);
        server.says(missing);
        // Answers go on, for connections that have the control and for new ones.
        player.gets("/film.bin");
        player = Player::new(&server);
        player.gets("/film.bin");
    }
    drop(player);
    assert!(!std::path::Path::new("/sys/fs/bpf/anabranch/group").exists());
}

/// The name may be taken for a moment by what was unloaded.
fn wait_loaded() -> Unloaded {
    wait_until("the control", || cc("load group").0);
    Unloaded
}

#[test]
fn where_no_group_is_loaded_it_is_told_and_films_are_served() {
    if !is_alone("where_no_group_is_loaded_it_is_told_and_films_are_served") {
        return;
    }
    let world = World::new(b"film");
    let weights = world.path("weights.toml");
    fs::write(&weights, WEIGHTS).unwrap();
    let mut server = world.serve(&["--weights", weights.to_str().unwrap()]);
    let told = "HTTP over TCP does not go by the weights: ";
    if !server.before().join("").contains(told) {
        server.says(told);
    }
    Player::new(&server).gets("/film.bin");
}

const CLIENTS: [&str; 4] = ["10.81.1.2", "10.81.1.3", "10.81.1.4", "10.81.1.5"];
const SERVER: &str = "10.81.0.1";

/// Does what `ip` or `tc` is to do in a namespace.
fn configure(program: &str, namespace: &Network, arguments: &str) {
    let mut command = Command::new(program);
    let done = command.args(["-n", namespace.name()]).args(arguments.split(' ')).output().unwrap();
    assert!(done.status.success(), "{program} {arguments}: {}", text(&done.stderr));
}

/// A server's network and its clients', with 8 Mbps between them.
fn bottleneck() -> (Network, Network, Network) {
    let (server, router, clients) = (Network::new("ws"), Network::new("wr"), Network::new("wc"));
    let link = |left: &Network, right: &Network, number: u8| {
        let other = right.name();
        configure("ip", left, &format!("link add l{number} type veth peer name r{number} netns {other}"));
        for (end, host, namespace) in [("l", 1, left), ("r", 2, right)] {
            configure("ip", namespace, &format!("address add 10.81.{number}.{host}/24 dev {end}{number}"));
            // A packet is a packet, as on a wire.
            configure("ip", namespace, &format!("link set {end}{number} gso_max_segs 1 up"));
        }
    };
    link(&server, &router, 0);
    link(&router, &clients, 1);
    for address in &CLIENTS[1..] {
        configure("ip", &clients, &format!("address add {address}/24 dev r1"));
    }
    configure("ip", &server, "route add 10.81.1.0/24 via 10.81.0.2");
    configure("ip", &clients, "route add 10.81.0.0/24 via 10.81.1.1");
    assert!(router.command("sysctl").args(["-qw", "net.ipv4.ip_forward=1"]).status().unwrap().success());
    let reno = server.command("sysctl").args(["-qw", "net.ipv4.tcp_congestion_control=reno"]).status();
    assert!(reno.unwrap().success());
    configure("tc", &router, "qdisc add dev l1 root tbf rate 8mbit burst 3028 limit 90840");
    (server, router, clients)
}

/// Ends its process whatever happens.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        kill(&self.0, Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Bytes that each client has acknowledged.
fn acknowledged(server: &Network) -> Vec<f64> {
    let told = text(&server.command("ss").args(["-Htin", "sport", "=", ":80"]).output().unwrap().stdout);
    let words: Vec<_> = told.split_whitespace().collect();
    let of = |client: &&str| {
        let from = words.iter().position(|word| word.starts_with(&format!("{client}:")))?;
        words[from..].iter().find_map(|word| word.strip_prefix("bytes_acked:"))?.parse().ok()
    };
    CLIENTS.iter().map(|client| of(client).unwrap_or_else(|| panic!("nothing to {client}: {told}"))).collect()
}

/// Two clients of a pool, which ask for films of weight 3 and 1, beside two that are in none.
#[test]
fn clients_share_a_bottleneck_by_the_weights_of_what_they_ask_for() {
    if !is_alone("clients_share_a_bottleneck_by_the_weights_of_what_they_ask_for") {
        return;
    }
    let needed = [("curl", "--version"), ("ip", "-V"), ("tc", "-V"), ("ss", "-V"), ("nsenter", "-V")];
    for (program, option) in needed {
        if !Command::new(program).arg(option).stdout(Stdio::null()).status().is_ok_and(|ran| ran.success()) {
            return anabranch_testkit::skipped(format_args!("no {program} here"));
        }
    }
    let Some(_control) = load() else { return };
    let world = World::new(b"film");
    for film in ["gold", "plain"] {
        File::create(world.path(&format!("served/{film}"))).unwrap().set_len(1 << 30).unwrap();
    }
    let weights = world.path("weights.toml");
    let write = |gold: u32| {
        let pool = format!("[[pool]]\nname = \"uplink\"\nclients = {:?}\n", &CLIENTS[..2]);
        fs::write(&weights, format!("{pool}[[rule]]\npath = \"/gold\"\nweight = {gold}\n")).unwrap();
    };
    write(3);
    let (namespace, _router, clients) = bottleneck();
    // `ip netns exec` would hide what is mounted at /sys/fs/bpf.
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", namespace.name())).arg(env!("CARGO_BIN_EXE_anabranch"));
    let address = format!("{SERVER}:80");
    let options = ["--http", &address, "--weights", weights.to_str().unwrap()];
    let mut server = Server::by(command, &world.path("served"), &options);
    if !server.before().join("").contains(GOES_BY_THEM) {
        server.says(GOES_BY_THEM);
    }
    let asking = CLIENTS.iter().zip(["gold", "plain", "gold", "plain"]).map(|(client, film)| {
        let mut curl = clients.command("curl");
        curl.args(["-s", "--interface", client, "-o", "/dev/null", &format!("http://{SERVER}/{film}")]);
        Ended(curl.spawn().unwrap())
    });
    let _asking: Vec<_> = asking.collect();
    let rates = |seconds: u64| {
        let before = acknowledged(&namespace);
        thread::sleep(Duration::from_secs(seconds));
        let rates = acknowledged(&namespace).into_iter().zip(before).map(|(now, then)| now - then);
        let rates: Vec<_> = rates.map(|bytes| bytes * 8e-6 / seconds as f64).collect();
        println!("Mbps in {seconds} s, with weights and without: {rates:.2?}");
        (rates[0] / rates[1], (rates[0] + rates[1]) / (rates[2] + rates[3]))
    };
    thread::sleep(Duration::from_secs(8));
    let (shares, together) = rates(30);
    assert!((2.4..3.75).contains(&shares), "{shares} : 1");
    assert!((0.6..1.6).contains(&together), "two of the pool have {together} times what two others have");

    write(1);
    let began = Instant::now();
    server.says("weights: 1 rule");
    println!("read after {:?}", began.elapsed());
    thread::sleep(Duration::from_secs(4));
    let (shares, _) = rates(20);
    assert!((0.75..1.33).contains(&shares), "{shares} : 1");
}
