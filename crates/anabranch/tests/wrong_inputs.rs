//! Everything that a new user types wrongly: the exit code, and a message that says what is wrong and what
//! would be right.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Output, Stdio};

use common::{anabranch, text};

/// A command line, its exit code, and what has to be said, separated by '|'.
type Case = (&'static str, i32, &'static str);

const RATES: &str = "write it like 800k, 3M or 1.5Mbps";
const ADDRESSES: &str = "write it like 127.0.0.1:8000, [::1]:8000, localhost:8000 or 8000";

/// What is the same with every command that gets media.
const MEDIA: [Case; 36] = [
    ("", 2, "<URL>..."),
    ("notaurl", 2, "'notaurl'|begins with http:// or https://"),
    ("/etc/passwd", 2, "begins with http:// or https://"),
    ("ftp://a.example/x", 2, "'ftp:' is not supported, only http: and https:"),
    ("http://", 2, "empty host"),
    ("http://127.0.0.1:99999/x", 2, "invalid port"),
    ("URL --rate fast", 2, "'fast' is not a rate|RATES|or 'auto' or 'max'"),
    ("URL --rate 0", 2, "--rate|RATES"),
    ("URL --rate -3M", 2, "'-3M' is not a rate|RATES"),
    ("URL --rate 3mbps", 2, "'3mbps' is not a rate|RATES"),
    ("URL --connections 0", 2, "--connections|1..=256"),
    ("URL --connections 257", 2, "--connections|1..=256"),
    ("URL --connections many", 2, "--connections"),
    ("URL --per-host 0", 2, "--per-host|1..=256"),
    ("URL --algorithm bsic", 2, "'basic'"),
    ("URL --algorithm rome --cf 2", 2, "--cf needs --algorithm advanced"),
    ("URL --preset table9.9", 2, "table8.1"),
    ("URL --buffer-low 5s --buffer-high 2s", 2, "--buffer-low|--buffer-high"),
    ("URL --stall-rule never", 2, "rebuffer:2s or pause:5s"),
    ("URL --prebuffer two", 2, "write it like 200ms, 10s"),
    ("URL --memory 1k", 2, "--memory|a size from 1.0 MiB"),
    ("URL --timeout 0", 2, "--timeout|above zero"),
    ("URL --connect-timeout 5parsecs", 2, "write it like 200ms, 10s"),
    ("URL -H nocolon", 2, "'Name: value'"),
    ("URL -H Range:bytes=0-1", 2, "range cannot be set"),
    ("URL --cacert nowhere.pem", 1, "cannot read nowhere.pem"),
    ("URL --cacert text.txt", 1, "no certificate in text.txt"),
    ("URL --interface nope0", 1, "no network interface nope0"),
    ("URL --http3-only", 1, "HTTP/3 is spoken with https: only"),
    ("URL --stats nowhere/s", 1, "cannot write the statistics to nowhere/s"),
    ("URL --stats dir", 1, "cannot write the statistics to dir"),
    ("URL --metrics nonsense", 2, "--metrics|ADDRESSES"),
    (
        "URL --metrics TAKEN",
        1,
        "no metrics: cannot listen at TAKEN: another program listens there; take another port",
    ),
    ("URL --quiet --verbose", 2, "--quiet|--verbose"),
    ("URL --nonsense", 2, "--nonsense|--help"),
    ("http://nowhere.invalid/x", 1, "cannot find the host nowhere.invalid"),
];

const OTHERS: [Case; 106] = [
    ("paly URL", 2, "'paly'|'play'"),
    ("help nosuch", 2, "'nosuch'"),
    ("", 2, "Usage: anabranch"),
    ("play URL", 1, "refused the connection"),
    ("play URL --listen example.org:80", 2, "only an IP address of this machine, or localhost|ADDRESSES"),
    ("play URL --listen 70000", 2, "a port is at most 65535|ADDRESSES"),
    ("play URL --listen 127.0.0.1", 2, "the port is missing|ADDRESSES"),
    ("play URL --listen http://127.0.0.1:80/", 2, "no address to listen at|ADDRESSES"),
    (
        "play URL --listen 192.0.2.1:8000",
        1,
        "cannot listen at 192.0.2.1:8000: this machine does not have the address",
    ),
    ("play URL --listen TAKEN", 1, "cannot listen at TAKEN: another program listens there"),
    ("play URL --player ''", 2, "--player|names no program"),
    ("play URL --player \"mpv 'x\"", 2, "--player|quote"),
    ("fetch http://127.0.0.1:1/", 2, "--output FILE"),
    ("fetch URL -o dir", 2, "dir is a directory|--output FILE"),
    ("fetch URL -o text.txt", 1, "text.txt is there already|--force"),
    ("fetch URL -o nowhere/x", 1, "cannot write nowhere/x"),
    ("fetch URL -o - --stats -", 2, "--stats FILE"),
    ("fetch URL --digest md5=abc", 2, "only sha-256"),
    ("fetch URL --digest sha-256=abc", 2, "sha-256=HEX"),
    ("fetch URL --user-agent 'a\nb'", 2, "--user-agent"),
    ("proxy --listen localhost", 2, "the port is missing|ADDRESSES"),
    ("proxy --listen TAKEN", 1, "cannot listen at TAKEN: another program listens there"),
    ("proxy --listen PORT", 1, "cannot listen at TAKEN: another program listens there"),
    ("proxy --listen :PORT", 1, "cannot listen at TAKEN: another program listens there"),
    ("proxy --listen localhost:PORT", 1, "cannot listen at TAKEN: another program listens there"),
    ("proxy URL", 2, "unexpected argument"),
    ("serve", 2, "<DIR>"),
    ("serve nowhere", 1, "cannot serve nowhere"),
    ("serve text.txt", 1, "text.txt is not a directory"),
    ("serve . --http foo", 2, "--http|ADDRESSES"),
    ("serve . --http TAKEN", 1, "cannot listen at TAKEN: another program listens there; take another port"),
    ("serve . --http localhost:PORT", 1, "cannot listen at TAKEN: another program listens there"),
    ("serve . --http 192.0.2.1:8000", 1, "this machine does not have the address"),
    ("serve . --http 0 --metrics TAKEN", 1, "no metrics: cannot listen at TAKEN: another program"),
    ("serve . --https 0", 2, "--key <FILE>|--cert <FILE>"),
    ("serve . --https 0 --cert text.txt --key text.txt", 1, "no certificate in text.txt"),
    ("serve . --https 0 --cert nowhere.pem --key text.txt", 1, "cannot read nowhere.pem"),
    ("serve . --cert text.txt --key text.txt", 2, "--https <ADDR>"),
    ("serve . --congestion cubic", 2, "--h3 <ADDR>"),
    ("serve . --h3 0 --cert a --key b --congestion bbr9", 2, "'bbr9'|reno, cubic"),
    ("serve . --max-header 1k", 2, "8KiB"),
    ("serve . --shape-rate -1M", 2, "'-1M' is not a rate|RATES"),
    ("send", 2, "--to <HOST:PORT>"),
    ("send --to studio.example", 2, "HOST:PORT, such as studio.example:9000"),
    ("send --to 127.0.0.1:x", 2, "a port is a number from 1 to 65535"),
    ("send --to 127.0.0.1:0", 2, "a port is a number from 1 to 65535"),
    ("send --to ::1", 2, "[2001:db8::1]:9000"),
    ("send --to nowhere.invalid:9", 1, "cannot find nowhere.invalid"),
    ("send --to 127.0.0.1:9 --input rtmp://a/b", 2, "only udp://|files and '-' are known"),
    ("send --to 127.0.0.1:9 --input udp://here", 2, "udp://192.0.2.1:5000"),
    ("send --to 127.0.0.1:9 --fec 50,61", 2, "such as 61,50"),
    ("send --to 127.0.0.1:9 --fec lots", 2, "'off', 'auto' or N,K"),
    ("send --to 127.0.0.1:9 --latency 500", 2, "500.0 s is out of bounds: 10 ms at the least"),
    (
        "receive --listen 127.0.0.1:9 --hls d --hls-segment 100ms",
        2,
        "100 ms is out of bounds: 1.0 s at the least",
    ),
    ("send --to 127.0.0.1:9 --as-published", 2, "'auto' is ours"),
    ("receive --listen 127.0.0.1:9 --hls-window 10s", 2, "--hls <DIR>"),
    ("receive --listen 127.0.0.1:9 --senders 2 --hls d", 2, "a directory for each"),
    ("send --to 127.0.0.1:9 --latency 1ms", 2, "10 ms at the least and 60.0 s at the most"),
    ("send --to 127.0.0.1:9 --fingerprint abc", 2, "64 hexadecimal digits"),
    ("send --to 127.0.0.1:9 --scheme tcp", 2, "tfrc, multfrc"),
    ("send --to 127.0.0.1:9 --rate -1M", 2, "'-1M' is not a rate|RATES"),
    ("send --to 127.0.0.1:9 --token-file nowhere", 1, "cannot read nowhere"),
    ("send --to 127.0.0.1:9 --interface nope0", 1, "no network interface nope0"),
    ("receive", 2, "--listen <ADDR>"),
    ("receive --listen here", 2, "ADDRESSES, which is 0.0.0.0:8000"),
    ("receive --listen UDP_TAKEN", 1, "cannot listen at UDP_TAKEN: another program listens there"),
    ("receive --listen 127.0.0.1:0 --output nowhere/x", 1, "cannot write to nowhere/x"),
    ("receive --listen 127.0.0.1:0 --output http://a/", 2, "only udp://|files and '-' are known"),
    ("receive --listen 127.0.0.1:0 --senders 0", 2, "1 to 64 senders"),
    ("receive --listen 127.0.0.1:0 --senders 3 --output film.ts", 2, "--output camera-{}.ts"),
    ("receive --listen 127.0.0.1:0 --cert text.txt", 2, "--key <FILE>"),
    ("receive --listen 127.0.0.1:0 --cert text.txt --key text.txt", 1, "no certificate in text.txt"),
    (
        "receive --listen 127.0.0.1:0 --player 'nosuchplayer {}'",
        1,
        "cannot start the player nosuchplayer: there is no such program",
    ),
    ("receive --listen 127.0.0.1:0 --player ''", 2, "--player|names no program"),
    ("receive --listen 127.0.0.1:0 --player mpv --output x", 2, "--player <COMMAND>|--output"),
    (
        "serve . --h3 127.0.0.1:0 --cert c --key k --congestion bbr --weights w",
        2,
        "'bbr' paces each connection by itself|--weights needs another --congestion, such as reno",
    ),
    ("cc load", 2, "<CONTROL>"),
    ("cc load bbr", 2, "tfwc, ttfwc, multcp, group"),
    ("cc load ttfwc", 2, "--tuning 0.9"),
    ("cc load ttfwc --tuning 2", 2, "from 0 to 1, such as 0.9"),
    ("cc load tfwc --tuning 0.5", 2, "tfwc has no parameters"),
    ("cc load multcp --flows 0", 2, "from 1 to 1000|--flows 4"),
    ("cc load group --weights nowhere.toml", 1, "cannot read nowhere.toml"),
    ("sim", 2, "<SCENARIO.toml>"),
    ("sim nowhere.toml", 1, "cannot read nowhere.toml"),
    ("sim dir", 1, "cannot read dir: it is not a regular file"),
    ("sim empty.toml", 1, "empty.toml:1:1: a scenario needs the key `run`"),
    ("sim text.txt", 1, "text.txt:1:6: key with no value"),
    ("sim bare.toml", 1, "bare.toml:2:12: '10' has no unit; write it like 200ms"),
    ("sim bare.toml --seed x", 2, "a seed is a whole number"),
    ("sim bare.toml --seed -1", 2, "a seed is a whole number"),
    ("sim bare.toml --loss-events", 2, "--out <DIR>"),
    ("lab run", 2, "<ID>..."),
    ("lab run nosuch", 2, "'nosuch'|anabranch lab list"),
    ("lab run all --seeds 0", 2, "--seeds|1..=10000"),
    ("lab run all --quick --seeds 3", 2, "--quick|--seeds"),
    ("lab report nowhere", 1, "cannot read nowhere"),
    ("lab report dir", 1, "dir has no results|anabranch lab run ID --out DIR"),
    ("lab sweep nowhere.toml", 1, "cannot read nowhere.toml"),
    ("lab sweep sweep.toml --shard 5/4", 2, "1/4 to 4/4"),
    ("lab sweep sweep.toml", 1, "sweep.toml:3:10: point 1 (run.duration = \"5\"): '5' has no unit"),
    ("lab merge dir", 1, "there are no shares|anabranch lab sweep"),
    ("lab validate XYZ", 2, "'XYZ'|there are: R1"),
    ("demo extra", 2, "unexpected argument"),
    ("completions tcsh", 2, "bash, elvish, fish"),
    ("man text.txt", 1, "cannot write to text.txt"),
];

/// What has something to listen at in it, and the files that the cases name.
struct Place {
    directory: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        fs::create_dir(directory.path().join("dir")).unwrap();
        write("text.txt", "hello\n");
        write("empty.toml", "");
        write("bare.toml", "[run]\nduration = \"10\"\n");
        write(
            "sweep.toml",
            "scenario = \"good.toml\"\nparameter = [{ key = \"run.duration\", \nvalues = [\"5\"] }]\n",
        );
        write("good.toml", GOOD);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { directory, tcp, udp }
    }

    fn fill_in(&self, text: &str) -> String {
        text.replace("UDP_TAKEN", &self.udp.local_addr().unwrap().to_string())
            .replace("TAKEN", &self.tcp.local_addr().unwrap().to_string())
    }

    fn run(&self, line: &str) -> Output {
        let port = self.tcp.local_addr().unwrap().port().to_string();
        let line = self.fill_in(line).replace("PORT", &port).replace("URL", "http://127.0.0.1:1/film.mp4");
        run(self.directory.path(), &shell_words::split(&line).unwrap())
    }

    /// What is not as the case has it.
    fn check(&self, line: &str, code: i32, said: &str) -> Option<String> {
        let run = self.run(line);
        let told = text(&run.stderr);
        let said = self.fill_in(said).replace("RATES", RATES).replace("ADDRESSES", ADDRESSES);
        let is_right = run.status.code() == Some(code)
            && said.split('|').all(|part| told.contains(part))
            && told.lines().count() < 80
            && !told.contains("panicked");
        (!is_right)
            .then(|| format!("anabranch {line}\n  {:?}, not {code} with {said}: {told}", run.status.code()))
    }
}

fn run(directory: &Path, words: &[String]) -> Output {
    let mut command = anabranch();
    command.current_dir(directory).args(words).stdin(Stdio::null()).env_remove("ANABRANCH_TOKEN");
    command.output().unwrap()
}

const GOOD: &str = r#"
[run]
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "1M", delay = "10ms" }
[[flow]]
name = "a"
kind = "tcp"
from = "sender1"
to = "receiver1"
"#;

#[test]
fn what_is_typed_wrongly_is_told_with_what_would_be_right() {
    let place = Place::new();
    let wrong: Vec<String> =
        OTHERS.iter().filter_map(|(line, code, said)| place.check(line, *code, said)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wrong_options_of_commands_that_get_media_are_told() {
    let place = Place::new();
    let lines = MEDIA.iter().flat_map(|(line, code, said)| {
        ["play", "fetch"].map(|command| (format!("{command} {line}"), *code, *said))
    });
    let wrong: Vec<String> = lines.filter_map(|(line, code, said)| place.check(&line, code, said)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
