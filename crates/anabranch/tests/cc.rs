//! The kernel's TCP with a control of Anabranch's, from the command line: a stock nginx sends a film through it to a stock curl.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use play_support::{LIMIT, nginx_configuration, real_film, tool};

const PORT: u16 = 8088;

fn anabranch(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).arg("cc").args(arguments.split(' ')).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A network namespace of the test's own, with loopback; gone when dropped.
struct Namespace(String);

impl Namespace {
    fn new(purpose: &str) -> Self {
        let name = format!("anabranch-{purpose}-{}", std::process::id());
        assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
        let namespace = Self(name);
        assert!(namespace.command("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        namespace
    }

    /// A program in the namespace.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

/// Ends its process whatever happens.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes its control away, whatever happens.
struct Unloaded(&'static str);

impl Drop for Unloaded {
    fn drop(&mut self) {
        anabranch(&format!("unload {}", self.0));
    }
}

/// Loads a control; `None`, and a line that says why, where this machine cannot or has it already.
fn load(control: &'static str, options: &str) -> Option<Unloaded> {
    let loaded = anabranch(format!("load {control} {options}").trim());
    if loaded.status.success() {
        return Some(Unloaded(control));
    }
    let why = text(&loaded.stderr);
    let known = ["root", "BTF", "6.4", "BPF file system", "already"];
    assert!(known.iter().any(|known| why.contains(known)), "{why}");
    println!("SKIPPED: {}", why.trim());
    None
}

/// A stock nginx, so fast on each connection.
fn nginx(namespace: &Namespace, directory: &Path, bytes_per_second: u64) -> Ended {
    let own = directory.join("own");
    fs::create_dir_all(&own).unwrap();
    let (root, own) = (directory.display(), own.display().to_string());
    let server = format!("listen 127.0.0.1:{PORT}; root {root}; limit_rate {bytes_per_second};");
    let config = nginx_configuration(&own, &server);
    let path = format!("{own}/nginx.conf");
    fs::write(&path, config).unwrap();
    // `ip netns exec` becomes the program, so that ending the child ends it.
    let child = namespace.command("nginx").args(["-c", &path, "-p", &own]).stderr(Stdio::null()).spawn();
    Ended(child.unwrap())
}

#[test]
fn nginx_serves_a_film_through_ttfwc_to_curl() {
    let needed = [("nginx", "-v"), ("curl", "--version"), ("ip", "-V")];
    if needed.iter().any(|(program, option)| tool(program, &[option]).is_none()) {
        return;
    }
    let Some(_control) = load("ttfwc", "--tuning 0.9") else { return };
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), open).unwrap();
    let film = directory.path().join("film.mp4");
    let namespace = Namespace::new("cc");
    let is_default =
        namespace.command("sysctl").args(["-qw", "net.ipv4.tcp_congestion_control=ttfwc"]).status();
    assert!(is_default.unwrap().success());
    let has_film = real_film(&film).is_some();
    // Slow enough that its connection is seen.
    let bytes_per_second = fs::metadata(&film).map_or(1, |film| film.len() / 4);
    let _server = nginx(&namespace, directory.path(), bytes_per_second);
    if !has_film {
        return;
    }
    let got = directory.path().join("got.mp4");
    let url = format!("http://127.0.0.1:{PORT}/film.mp4");
    let began = Instant::now();
    let mut curl = namespace.command("curl");
    curl.args(["-sf", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-o"]);
    let mut curl = curl.arg(&got).arg(&url).spawn().unwrap();
    let mut seen = String::new();
    while curl.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < LIMIT, "curl does not end");
        let status = anabranch("status ttfwc --json");
        assert!(status.status.success(), "{}", text(&status.stderr));
        seen += &text(&status.stdout);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(fs::read(&film).unwrap() == fs::read(&got).unwrap(), "curl has other bytes than the film's");
    let is_nginx = |line: &str| line.contains(&format!("\"local\":\"127.0.0.1:{PORT}\""));
    assert!(seen.lines().any(is_nginx), "nginx's connection was never under ttfwc: {seen}");
    let changed = anabranch("set ttfwc --tuning 0.2");
    assert!(changed.status.success(), "{}", text(&changed.stderr));
    assert!(text(&anabranch("list").stdout).contains("tuning 0.2"));
}

#[test]
fn wrong_usage_says_what_is_right() {
    for (arguments, said) in [
        ("load", "CONTROL"),
        ("load bbr", "ttfwc"),
        ("load ttfwc", "--tuning 0.9"),
        ("load ttfwc --tuning 2", "from 0 to 1"),
        ("load tfwc --tuning 0.5", "no parameters"),
        ("load multcp", "--flows 4"),
        ("load multcp --flows 0", "from 1 to 1000"),
        ("load multcp --flows nan", "from 1 to 1000"),
        ("load group --flows 3", "--weights weights.toml"),
        ("load ttfwc --tuning 0.9 --weights w.toml", "--weights is for group"),
        ("set group", "--weights weights.toml"),
    ] {
        let wrong = anabranch(arguments);
        assert_eq!(wrong.status.code(), Some(2), "{arguments}");
        assert!(text(&wrong.stderr).contains(said), "{arguments}: {}", text(&wrong.stderr));
    }
    let missing = anabranch("unload multcp");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("anabranch cc load multcp"), "{}", text(&missing.stderr));
}

#[test]
fn a_file_of_weights_that_is_wrong_is_refused_with_its_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "[[rule]]\nremote_port = 1935\nweight = -4\n").unwrap();
    let path = file.path().display();
    for arguments in [format!("load group --weights {path}"), format!("set group --weights {path}")] {
        let refused = anabranch(&arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments}");
        let said = text(&refused.stderr);
        assert!(said.contains("line 3") && said.contains("from 0.001 to 1000"), "{said}");
    }
    let missing = anabranch("set group --weights /no/such/file");
    assert!(text(&missing.stderr).contains("/no/such/file"), "{}", text(&missing.stderr));
}

/// Does what `ip` or `tc` is to do in a namespace.
fn configure(program: &str, namespace: &Namespace, arguments: &str) {
    let mut command = Command::new(program);
    let done = command.args(["-n", &namespace.0]).args(arguments.split(' ')).output().unwrap();
    assert!(done.status.success(), "{program} {arguments}: {}", text(&done.stderr));
}

/// Payload that the sender's connections have delivered, by the remote port, bytes.
fn delivered(sender: &Namespace, ports: &[u16]) -> Vec<f64> {
    let told = sender.command("ss").args(["-Htin", "dst", RECEIVER]).output().unwrap();
    let told = text(&told.stdout);
    let words: Vec<_> = told.split_whitespace().collect();
    let of = |port: &u16| {
        let from = words.iter().position(|word| *word == format!("{RECEIVER}:{port}"))?;
        words[from..].iter().find_map(|word| word.strip_prefix("bytes_acked:"))?.parse().ok()
    };
    ports.iter().map(|port| of(port).unwrap_or_else(|| panic!("no connection to {port}: {told}"))).collect()
}

const RECEIVER: &str = "10.79.1.2";

/// Three uploads by a stock ffmpeg, each to a listening stock ffmpeg, through one uplink of 7 Mbps, as fast as it takes them.
#[test]
fn uploads_by_ffmpeg_share_an_uplink_by_weights() {
    let needed = [("ffmpeg", "-version"), ("ip", "-V"), ("tc", "-V"), ("ss", "-V")];
    if needed.iter().any(|(program, option)| tool(program, &[option]).is_none()) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let weights = directory.path().join("weights.toml");
    let ports = [1935, 1936, 1937];
    let write = |each: [u32; 3]| {
        let rules = ports.iter().zip(each);
        let rules =
            rules.map(|(port, weight)| format!("[[rule]]\nremote_port = {port}\nweight = {weight}\n"));
        fs::write(&weights, rules.collect::<String>()).unwrap();
    };
    write([4, 2, 1]);
    let Some(_control) = load("group", &format!("--weights {}", weights.display())) else { return };
    let film = directory.path().join("film.flv");
    let made = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=640x360:rate=30",
            "-t",
            "10",
            "-c:v",
            "flv",
        ])
        .args(["-b:v", "6M", "-minrate", "6M", "-maxrate", "6M", "-bufsize", "3M"])
        .arg(&film)
        .status();
    assert!(made.unwrap().success());

    let (sender, router, receiver) = (Namespace::new("gs"), Namespace::new("gr"), Namespace::new("gd"));
    let link = |left: &Namespace, right: &Namespace, number: u8| {
        let other = &right.0;
        configure("ip", left, &format!("link add l{number} type veth peer name r{number} netns {other}"));
        for (end, host, namespace) in [("l", 1, left), ("r", 2, right)] {
            configure("ip", namespace, &format!("address add 10.79.{number}.{host}/24 dev {end}{number}"));
            // A packet is a packet, as on a wire.
            configure("ip", namespace, &format!("link set {end}{number} gso_max_segs 1 up"));
        }
    };
    link(&sender, &router, 0);
    link(&router, &receiver, 1);
    // Programs that choose no control get that of the route.
    configure("ip", &sender, "route add 10.79.1.0/24 via 10.79.0.2 congctl group");
    configure("ip", &receiver, "route add 10.79.0.0/24 via 10.79.1.1");
    assert!(router.command("sysctl").args(["-qw", "net.ipv4.ip_forward=1"]).status().unwrap().success());
    configure("tc", &router, "qdisc add dev l1 root tbf rate 7mbit burst 3028 limit 90840");

    let url = |port: &u16| format!("rtmp://{RECEIVER}:{port}/live/film");
    let quiet = |mut command: Command| {
        Ended(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let listening = ports.iter().map(|port| {
        let mut command = receiver.command("ffmpeg");
        command.args(["-v", "error", "-listen", "1", "-i", &url(port), "-c", "copy", "-f", "null", "-"]);
        quiet(command)
    });
    let _listening: Vec<_> = listening.collect();
    let began = Instant::now();
    while text(&receiver.command("ss").arg("-Htln").output().unwrap().stdout).lines().count() < ports.len() {
        assert!(began.elapsed() < LIMIT, "ffmpeg does not listen");
        std::thread::sleep(Duration::from_millis(100));
    }
    let sending = ports.iter().map(|port| {
        let mut command = sender.command("ffmpeg");
        command.args(["-v", "error", "-stream_loop", "-1", "-i"]).arg(&film);
        command.args(["-c", "copy", "-f", "flv", &url(port)]);
        quiet(command)
    });
    let _sending: Vec<_> = sending.collect();
    let shares = |seconds: u64| {
        let before = delivered(&sender, &ports);
        std::thread::sleep(Duration::from_secs(seconds));
        let rates: Vec<_> =
            delivered(&sender, &ports).iter().zip(before).map(|(now, then)| now - then).collect();
        println!("delivered in {seconds} s: {rates:?} bytes");
        [rates[0] / rates[2], rates[1] / rates[2]]
    };
    std::thread::sleep(Duration::from_secs(8));
    let [four, two] = shares(30);
    assert!((3.2..4.8).contains(&four) && (1.6..2.4).contains(&two), "{four} : {two} : 1");
    let status = text(&anabranch("status group --json").stdout);
    assert!(
        status.lines().any(|line| line.contains(":1935\"") && line.contains("\"weight\":4.0")),
        "{status}"
    );

    // Other weights hold at once, and wrong ones change nothing.
    write([1, 1, 1]);
    assert!(anabranch(&format!("set group --weights {}", weights.display())).status.success());
    fs::write(&weights, "[[rule]]\n").unwrap();
    assert!(!anabranch(&format!("set group --weights {}", weights.display())).status.success());
    std::thread::sleep(Duration::from_secs(3));
    let [one, other] = shares(20);
    assert!((0.8..1.25).contains(&one) && (0.8..1.25).contains(&other), "{one} : {other} : 1");
}
