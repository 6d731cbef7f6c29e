//! The kernel's TCP with a control of Anabranch's, from the command line: a stock nginx sends a film through
//! it to a stock curl.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../kernel/tests/machine/mod.rs"]
mod machine;
mod play_support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_testkit::Network;
use machine::is_alone;
use play_support::{LIMIT, nginx_configuration, real_film, tool};

const PORT: u16 = 8088;

fn anabranch(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .arg("cc")
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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

/// Loads a control; `None`, and a line that says why, where this machine cannot.
fn load(control: &'static str, options: &str) -> Option<Unloaded> {
    let loaded = anabranch(format!("load {control} {options}").trim());
    if loaded.status.success() {
        return Some(Unloaded(control));
    }
    let why = text(&loaded.stderr);
    let known = ["lets only root", "BTF", "6.4", "BPF file system"];
    assert!(known.iter().any(|known| why.contains(known)), "{why}");
    anabranch_testkit::skipped(why.trim());
    None
}

/// A stock nginx, so fast on each connection.
fn nginx(namespace: &Network, directory: &Path, bytes_per_second: u64) -> Ended {
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
    if !is_alone("nginx_serves_a_film_through_ttfwc_to_curl") {
        return;
    }
    let needed = [("nginx", "-v"), ("curl", "--version"), ("ip", "-V")];
    if needed.iter().any(|(program, option)| tool(program, &[option]).is_none()) {
        return;
    }
    let Some(_control) = load("ttfwc", "--tuning 0.9") else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let film = directory.path().join("film.mp4");
    let namespace = Network::new("cc");
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
        thread::sleep(Duration::from_millis(100));
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
        ("load tfwc --anyone", "anyone may choose tfwc"),
        ("load ttfwc --tuning 0.5 --anyone", "anyone may choose ttfwc"),
        ("set multcp --flows 4 --anyone", "--anyone"),
    ] {
        let wrong = anabranch(arguments);
        assert_eq!(wrong.status.code(), Some(2), "{arguments}");
        assert!(text(&wrong.stderr).contains(said), "{arguments}: {}", text(&wrong.stderr));
    }
}

/// The command in a message between the marks that this begins with.
fn recommended(said: &str, begins: &str) -> String {
    let from = said.split(&format!("'anabranch cc {begins}")).nth(1);
    let rest = from.unwrap_or_else(|| panic!("no {begins} in {said}")).split('\'').next().unwrap();
    format!("{begins}{rest}")
}

#[test]
fn what_is_recommended_for_a_missing_control_works() {
    if !is_alone("what_is_recommended_for_a_missing_control_works") {
        return;
    }
    for control in ["tfwc", "ttfwc", "multcp", "group"] {
        for asked in ["unload", "status"] {
            let missing = anabranch(&format!("{asked} {control}"));
            assert_eq!(missing.status.code(), Some(1), "{asked} {control}");
            let said = text(&missing.stderr);
            let recommended = recommended(&said, "load ");
            let Some(_control) = load(control, recommended.strip_prefix(&format!("load {control}")).unwrap())
            else {
                return;
            };
        }
    }
}

/// The group's connections as `cc status` shows them, by this end: the weight; `None` for who is alone.
fn weights() -> Vec<(SocketAddr, Option<f64>)> {
    let status = anabranch("status group --json");
    assert!(status.status.success(), "{}", text(&status.stderr));
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["local"].as_str().unwrap().parse().unwrap(), line["weight"].as_f64())
    };
    text(&status.stdout).lines().map(line).collect()
}

/// Keeps a connection sending, so that it hears acknowledgements, until this is so.
fn sends_until(stream: &mut TcpStream, limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < limit {
        stream.write_all(&[7; 100]).unwrap();
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

#[test]
fn a_connection_that_found_the_group_full_joins_when_another_ends() {
    const MOST_MEMBERS: usize = 256;
    if !is_alone("a_connection_that_found_the_group_full_joins_when_another_ends") {
        return;
    }
    let Some(_control) = load("group", "") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = || {
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket2::SockRef::from(&stream).set_tcp_congestion(b"group").unwrap();
        stream.write_all(b"I have a control.").unwrap();
        let (mut other, _) = listener.accept().unwrap();
        thread::spawn(move || while other.read(&mut [0; 1000]).is_ok_and(|got| got > 0) {});
        stream
    };
    let mut members: Vec<_> = (0..MOST_MEMBERS).map(|_| connect()).collect();
    let mut late = connect();
    let address = late.local_addr().unwrap();
    let is_member = || weights().into_iter().any(|(local, weight)| local == address && weight == Some(1.0));
    let alone: Vec<_> = weights().into_iter().filter(|(_, weight)| weight.is_none()).collect();
    assert_eq!(alone, [(address, None)]);
    // It asks, and asks in vain.
    assert!(!sends_until(&mut late, Duration::from_millis(2500), is_member), "257 members");
    drop(members.pop());
    assert!(sends_until(&mut late, Duration::from_secs(5), is_member), "it stays alone: {:?}", weights());
    assert_eq!(weights().len(), MOST_MEMBERS);
    // The next one is alone again.
    let next = connect();
    assert!(weights().contains(&(next.local_addr().unwrap(), None)), "{:?}", weights());
}

/// iperf3 in a namespace, by root or by an ordinary user, to a server there.
fn iperf3(namespace: &Network, is_root: bool, arguments: &str) -> (Ended, Command) {
    let server = namespace.command("iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn();
    let server = Ended(server.unwrap());
    let began = Instant::now();
    while text(&namespace.command("ss").arg("-Htln").output().unwrap().stdout).is_empty() {
        assert!(began.elapsed() < LIMIT, "iperf3 does not listen");
        thread::sleep(Duration::from_millis(50));
    }
    let mut command = namespace.command("setpriv");
    if !is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg("iperf3").args(arguments.split(' '));
    (server, command)
}

/// Whether a program of an ordinary user's, or of root's, can send with this control.
fn can_choose(namespace: &Network, control: &str, is_root: bool) -> bool {
    let (_server, mut client) = iperf3(namespace, is_root, &format!("-c 127.0.0.1 -n 1M -C {control}"));
    let ran = client.output().unwrap();
    let said = text(&ran.stdout) + &text(&ran.stderr);
    assert!(ran.status.success() || said.contains("congestion"), "{control}: {said}");
    ran.status.success()
}

/// Whether a program of an ordinary user's that chooses nothing has this control by its route.
fn has_by_route(namespace: &Network, control: &str) -> bool {
    let (_server, mut client) = iperf3(namespace, false, "-c 127.9.9.9 -t 2");
    let mut client = client.stdout(Stdio::null()).spawn().unwrap();
    let mut seen = String::new();
    while client.try_wait().unwrap().is_none() {
        seen += &text(&anabranch(&format!("status {control} --json")).stdout);
        thread::sleep(Duration::from_millis(100));
    }
    seen.contains("127.9.9.9:")
}

#[test]
fn an_ordinary_user_cannot_take_more_than_a_share() {
    if !is_alone("an_ordinary_user_cannot_take_more_than_a_share") {
        return;
    }
    let needed = [("iperf3", "-v"), ("ip", "-V"), ("setpriv", "-V"), ("ss", "-V")];
    if needed.iter().any(|(program, option)| tool(program, &[option]).is_none()) {
        return;
    }
    let namespace = Network::new("who");
    for (control, options) in [("tfwc", ""), ("ttfwc", "--tuning 0.9")] {
        let Some(_control) = load(control, options) else { return };
        assert!(can_choose(&namespace, control, false), "{control} takes no more than a share");
    }
    for (control, options) in [("multcp", "--flows 1000"), ("group", "")] {
        let Some(restricted) = load(control, options) else { return };
        assert!(!can_choose(&namespace, control, false), "any user can choose {control}");
        assert!(text(&anabranch("list").stdout).contains("CAP_NET_ADMIN is needed"));
        assert!(can_choose(&namespace, control, true), "root cannot choose {control}");
        // The operator's route gives it to programs that choose none.
        let route = format!("route replace local 127.9.9.9 dev lo table local congctl {control}");
        configure("ip", &namespace, &route);
        assert!(has_by_route(&namespace, control), "no connection has {control} by its route");
        drop(restricted);
        // Or the operator lets everybody.
        let Some(_control) = load(control, format!("{options} --anyone").trim()) else { return };
        assert!(text(&anabranch("list").stdout).contains("anyone may choose it"));
        assert!(can_choose(&namespace, control, false), "{control} was to be for anyone");
    }
}

#[test]
fn an_ordinary_user_is_told_in_a_line_that_root_is_needed() {
    if !is_alone("an_ordinary_user_is_told_in_a_line_that_root_is_needed") {
        return;
    }
    let Some(_control) = load("tfwc", "") else { return };
    // As many systems have it.
    fs::set_permissions("/sys/fs/bpf", PermissionsExt::from_mode(0o1777)).unwrap();
    // Where everybody can run it.
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = directory.path().join("anabranch");
    fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).unwrap();
    for asked in ["list", "status tfwc", "status", "set tfwc", "load multcp --flows 4", "unload tfwc"] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("cc");
        let refused = command.args(asked.split(' ')).output().unwrap();
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{asked}: {told}");
        assert!(told.contains("lets only root") && told.trim().lines().count() == 1, "{asked}: {told}");
    }
}

/// Asks for everything about a control; each answer says this, and what to do.
fn everything_fails(control: &str, options: &str, said: &str, remedy: &str) {
    for asked in [
        format!("unload {control}"),
        format!("load {control} {options}"),
        format!("set {control} {options}"),
        format!("status {control}"),
        "list".to_owned(),
    ] {
        let failed = anabranch(&asked);
        let told = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(1), "{asked}: {told}");
        assert!(told.contains(said) && told.contains(remedy), "{asked}: {told}");
        assert_eq!(told.trim().lines().count(), 1, "{asked}: {told}");
    }
}

const PINS: &str = "/sys/fs/bpf/anabranch";

#[test]
fn what_somebody_else_has_put_in_place_is_told_and_left_alone() {
    if !is_alone("what_somebody_else_has_put_in_place_is_told_and_left_alone") {
        return;
    }
    let Some(control) = load("ttfwc", "--tuning 0.9") else { return };
    drop(control);
    let remedy = "rm -r /sys/fs/bpf/anabranch";
    let own = Path::new(PINS).join("ttfwc");
    let fails = |said: &str| everything_fails("ttfwc", "--tuning 0.9", said, remedy);

    // A link to a directory with files of the same names.
    let victim = tempfile::tempdir().unwrap();
    for file in ["link", "flows", "parameters"] {
        fs::write(victim.path().join(file), "precious").unwrap();
    }
    symlink(victim.path(), &own).unwrap();
    fails("is a symbolic link");
    assert_eq!(
        fs::read_dir(victim.path()).unwrap().count(),
        3,
        "unload has removed files of somebody else's"
    );
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    symlink("/dev/zero", own.join("flows")).unwrap();
    fails("is no BPF object");
    fs::remove_file(own.join("flows")).unwrap();
    fs::create_dir(own.join("elsewhere")).unwrap();
    fails("does not belong there");
    fs::remove_dir(own.join("elsewhere")).unwrap();

    // Directories that others can change.
    let nobody = |path: &Path, uid| std::os::unix::fs::chown(path, Some(uid), None).unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    for path in [Path::new(PINS), &own] {
        nobody(path, 65534);
        fails("belongs to the user with the number 65534");
        nobody(path, 0);
        mode(path, 0o777);
        fails("can be changed by others than root");
        mode(path, 0o755);
    }

    // An empty directory is half of a control: what is recommended mends it.
    let half = anabranch("load ttfwc --tuning 0.9");
    assert_eq!(half.status.code(), Some(1));
    assert!(anabranch(&recommended(&text(&half.stderr), "unload ")).status.success());

    // Objects of other kinds, or of another control.
    let (Some(_ttfwc), Some(_group)) = (load("ttfwc", "--tuning 0.9"), load("group", "")) else { return };
    for (from, to) in [("link", "parameters"), ("flows", "link"), ("parameters", "flows")] {
        fs::rename(own.join(to), own.join("kept")).unwrap();
        fs::hard_link(own.join(from), own.join(to)).unwrap();
        fs::rename(own.join("kept"), Path::new(PINS).join("kept")).unwrap();
        fails("is ");
        fs::remove_file(own.join(to)).unwrap();
        fs::rename(Path::new(PINS).join("kept"), own.join(to)).unwrap();
    }
    assert!(anabranch("list").status.success(), "it is whole again: {}", text(&anabranch("list").stderr));
}

#[test]
fn a_file_system_that_cc_mounts_is_roots_alone() {
    if !is_alone("a_file_system_that_cc_mounts_is_roots_alone") {
        return;
    }
    // The test has a mount of its own over what the machine has, which may be nothing.
    while Command::new("umount").arg("/sys/fs/bpf").stderr(Stdio::null()).status().unwrap().success() {}
    let Some(_control) = load("tfwc", "") else { return };
    let mode = fs::metadata("/sys/fs/bpf").unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "others can put files in place: {mode:o}");
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
fn configure(program: &str, namespace: &Network, arguments: &str) {
    let mut command = Command::new(program);
    let done = command.args(["-n", namespace.name()]).args(arguments.split(' ')).output().unwrap();
    assert!(done.status.success(), "{program} {arguments}: {}", text(&done.stderr));
}

/// Payload that the sender's connections have delivered, by the remote port, bytes.
fn delivered(sender: &Network, ports: &[u16]) -> Vec<f64> {
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

/// Three uploads by a stock ffmpeg, each to a listening stock ffmpeg, through one uplink of 7 Mbps, as fast
/// as it takes them.
#[test]
fn uploads_by_ffmpeg_share_an_uplink_by_weights() {
    if !is_alone("uploads_by_ffmpeg_share_an_uplink_by_weights") {
        return;
    }
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

    let (sender, router, receiver) = (Network::new("gs"), Network::new("gr"), Network::new("gd"));
    let link = |left: &Network, right: &Network, number: u8| {
        let other = right.name();
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
        thread::sleep(Duration::from_millis(100));
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
        thread::sleep(Duration::from_secs(seconds));
        let rates: Vec<_> =
            delivered(&sender, &ports).iter().zip(before).map(|(now, then)| now - then).collect();
        println!("delivered in {seconds} s: {rates:?} bytes");
        [rates[0] / rates[2], rates[1] / rates[2]]
    };
    thread::sleep(Duration::from_secs(8));
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
    thread::sleep(Duration::from_secs(3));
    let [one, other] = shares(20);
    assert!((0.8..1.25).contains(&one) && (0.8..1.25).contains(&other), "{one} : {other} : 1");
}
