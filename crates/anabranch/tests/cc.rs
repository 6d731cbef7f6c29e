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
    fn new() -> Self {
        let name = format!("anabranch-cc-{}", std::process::id());
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

/// Ends its process, and takes the control away, whatever happens.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        anabranch("unload ttfwc");
    }
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
    let loaded = anabranch("load ttfwc --tuning 0.9");
    if !loaded.status.success() {
        let why = text(&loaded.stderr);
        assert!(
            ["root", "BTF", "6.4", "BPF file system", "already"].iter().any(|known| why.contains(known)),
            "{why}"
        );
        println!("SKIPPED: {}", why.trim());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), open).unwrap();
    let film = directory.path().join("film.mp4");
    let namespace = Namespace::new();
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
    ] {
        let wrong = anabranch(arguments);
        assert_eq!(wrong.status.code(), Some(2), "{arguments}");
        assert!(text(&wrong.stderr).contains(said), "{arguments}: {}", text(&wrong.stderr));
    }
    let missing = anabranch("unload multcp");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("anabranch cc load multcp"), "{}", text(&missing.stderr));
}
