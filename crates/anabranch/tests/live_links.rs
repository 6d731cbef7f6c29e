//! `anabranch send` over two links: real interfaces in namespaces that the test makes, with rates by the
//! kernel's token bucket. Where there are no namespaces, or no such queue, the tests skip and say why.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;

use anabranch_testkit::Namespaces;
use serde_json::Value;

use common::{film, lines, sha256, text};

/// Two links between the sender's namespace, which is this one, and the receiver's. Both ends answer on the
/// link that was asked on: the second has a route of its own to the receiver's address on the first.
const LINKS: &str = r#"
set -e
ip link set lo up
unshare --net sleep 300 &
far=$!
trap 'kill $far $receiver 2>/dev/null' EXIT
while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
there() { nsenter --net=/proc/$far/ns/net "$@"; }
loose() { echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/default/rp_filter; }
loose
there sh -c 'echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/default/rp_filter; ip link set lo up'
# plug NUMBER: the link is there; unplug NUMBER: its interfaces are not there any more.
plug() {
    ip link add name link$1 type veth peer name far$1 netns $far
    ip address add 10.78.$1.1/24 dev link$1
    ip link set link$1 up
    there ip address add 10.78.$1.2/24 dev far$1
    there ip link set far$1 up
    test $1 = 0 || ip route add 10.78.0.2/32 dev link$1 metric 100
}
unplug() { ip link delete link$1; }
plug 0
plug 1
# rate NUMBER RATE: what the link carries to the receiver; its queue holds 40 packets.
rate() { tc qdisc replace dev link$1 root tbf rate $2 burst 3000 limit 60000; }
# dead NUMBER: nothing gets through any more, and nobody is told.
dead() {
    tc qdisc replace dev link$1 root tbf rate 1kbit burst 1 limit 1
    there tc qdisc replace dev far$1 root tbf rate 1kbit burst 1 limit 1
}
carried() { ip -s link show link$1 | sed -n '/TX:/{n;s/^ *\([0-9]*\).*/\1/p}'; }
busier() { test $(carried 0) -gt $(carried 1) && echo 0 || echo 1; }
there "$program" receive --listen 10.78.0.2:9000 --output got --stats receive.jsonl 2>said &
receiver=$!
while ! grep -q fingerprint said; do sleep 0.01; done
fingerprint=$(sed -n 's/.*fingerprint //p' said)
# told WORDS: waits until the sender has told this, for 20 seconds at the most.
told() { for _ in $(seq 200); do grep -q "$1" send.jsonl && return; sleep 0.1; done; }
send() {
    "$program" send --to 10.78.0.2:9000 --fingerprint $fingerprint --input film --latency 1s --stats send.jsonl \
        --interface link0 --interface link1 "$@"
    wait $receiver
}
"#;

/// What both ends tell at last, and the sender's lines, when the film has come through as it is; `None` where
/// it cannot be tried.
fn run(script: &str, film: &[u8]) -> Option<(Value, Value, Vec<Value>)> {
    let (sent, received, lines, got) = come_through(script, film)?;
    assert_eq!(sha256(&got), sha256(film), "{sent} {received}");
    Some((sent, received, lines))
}

/// The same with what came.
fn come_through(script: &str, film: &[u8]) -> Option<(Value, Value, Vec<Value>, Vec<u8>)> {
    let network = Namespaces::network(
        "ip link set lo up && tc qdisc add dev lo root tbf rate 1mbit burst 3000 limit 60000",
    );
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("film"), film).unwrap();
    let output =
        network.run(|command| common::script(command, directory.path(), &format!("{LINKS}{script}")))?;
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    // What a library logs while a link is down is told in our own words.
    assert!(!said.contains("WARN"), "{said}");
    let stats = |name: &str| lines(&fs::read_to_string(Path::new(directory.path()).join(name)).unwrap());
    let (mut sent, mut received) = (stats("send.jsonl"), stats("receive.jsonl"));
    let (sent_last, received_last) = (sent.pop().unwrap(), received.pop().unwrap());
    let got = fs::read(directory.path().join("got")).unwrap();
    Some((sent_last, received_last, sent, got))
}

/// Datagrams sent on a link.
fn sent(figures: &Value, link: u64) -> u64 {
    let connections = figures["connections"].as_array().into_iter().flatten();
    let mine = connections.filter(|connection| connection["link"].as_u64() == Some(link));
    mine.filter_map(|connection| connection["sent"].as_u64()).sum()
}

#[test]
fn two_links_carry_what_neither_can_alone() {
    let film = film(4_000_000, 11);
    let script = "rate 0 5mbit; rate 1 3mbit; send --rate 6M";
    let Some((told, received, _)) = run(script, &film) else { return };
    assert_eq!(received["lost"], 0);
    // Of 8 Mbps 5 and 3 are theirs.
    let (first, second) = (sent(&told, 0), sent(&told, 1));
    assert!(first > second && second * 5 > first, "{first} {second}");
}

#[test]
fn a_link_that_dies_is_out_within_a_second_and_costs_nothing() {
    let film = film(2_000_000, 13);
    let script = "rate 0 5mbit; rate 1 3mbit; (sleep 4; dead $(busier)) & send --rate 2M";
    let Some((told, received, intervals)) = run(script, &film) else { return };
    assert_eq!((&received["lost"], &told["dropped"]), (&Value::from(0), &Value::from(0)));
    let of = |second: usize| {
        let line = intervals.iter().filter(|line| line["event"] == "interval").nth(second - 1).unwrap();
        [sent(line, 0), sent(line, 1)]
    };
    let (before, after) = (of(5), of(7));
    let mut links = [0, 1].map(|link| (after[link] - before[link], before[link]));
    links.sort_unstable();
    // The one that died had carried more of the stream. It was out more than half a second before the fifth
    // second's end: probes go there, twice a second, and nothing else.
    let [(on_dead, before_death), (on_other, _)] = links;
    assert!(before_death > 100 && on_dead <= 8 && on_other > 200, "{before:?} {after:?}");
}

#[test]
fn a_weak_link_does_not_drag_a_strong_one_down() {
    let film = film(2_500_000, 17);
    let script = "rate 0 5mbit; rate 1 150kbit; send --rate 3M";
    let Some((told, received, _)) = run(script, &film) else { return };
    assert_eq!((&received["lost"], &told["dropped"]), (&Value::from(0), &Value::from(0)), "{told}");
}

fn has_told(lines: &[Value], what: &str) -> bool {
    lines.iter().any(|line| line["notice"].as_str().is_some_and(|notice| notice.contains(what)))
}

/// The other link is dead since seconds before the end: the last bytes came over the one in question.
fn has_its_end(got: &[u8], film: &[u8]) -> bool {
    got.ends_with(&film[film.len() - 100_000..])
}

#[test]
fn an_interface_that_is_plugged_in_again_is_used_again() {
    let film = film(2_500_000, 19);
    // Too little for the stream: that the other one is gone is noticed since it is needed.
    let script = "rate 0 700kbit; \
        (sleep 2; unplug 1; told 'no network interface link1'; plug 1; sleep 3; dead 0) & send --rate 1M";
    let Some((told, _, lines, got)) = come_through(script, &film) else { return };
    assert!(has_told(&lines, "no network interface link1"), "{lines:?}");
    assert!(has_its_end(&got, &film), "{told}");
}

#[test]
fn an_interface_that_is_missing_at_the_start_is_waited_for() {
    let film = film(2_500_000, 23);
    let script = "unplug 1; (sleep 2; plug 1; told 'by link1'; sleep 3; dead 0) & send --rate 1M";
    let Some((told, _, lines, got)) = come_through(script, &film) else { return };
    assert!(has_told(&lines, "no network interface link1; waits for it"), "{lines:?}");
    assert!(has_told(&lines, "connected to 10.78.0.2:9000 by link1"), "{lines:?}");
    assert!(has_its_end(&got, &film), "{told}");
}

#[test]
fn interfaces_that_carry_shorter_packets_from_one_moment_to_the_next_cost_nothing() {
    let film = film(2_000_000, 29);
    let script = "(sleep 3; ip link set link0 mtu 1280; ip link set link1 mtu 1280) & send --rate 2M";
    let Some((told, received, _)) = run(script, &film) else { return };
    assert_eq!((&received["lost"], &told["dropped"]), (&Value::from(0), &Value::from(0)), "{told}");
    // A packet of the film fills a datagram of the first three seconds, and not of those that are shorter.
    assert!(told["packets"].as_u64().is_some_and(|packets| packets > 2_000_000 / 1316 + 60), "{told}");
}
