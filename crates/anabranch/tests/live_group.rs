//! `anabranch send --group`: three senders through one bottleneck, which is the kernel's token bucket in a
//! namespace that the test makes. Where there are no namespaces, or no such queue, the test skips and says
//! why.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;

use anabranch_testkit::Namespaces;
use serde_json::Value;

use common::{film, lines, text};

/// Each sender alone would fill the link. The first one is killed after 24 seconds.
const SCRIPT: &str = r#"
set -e
ip link set lo up
trap 'kill $(jobs -p) 2>/dev/null' EXIT
tc qdisc add dev lo root tbf rate 3mbit burst 3000 limit 22500
export XDG_RUNTIME_DIR=$PWD
for number in 1 2 3; do
    "$program" receive --listen 127.0.0.1:900$number --output got$number --identity none 2>said$number &
    while ! grep -q fingerprint said$number; do sleep 0.01; done
done
send() {
    exec "$program" send --to 127.0.0.1:900$1 --fingerprint $(sed -n 's/.*fingerprint //p' said$1) \
        --input noise --rate 3M --scheme tfrc --group cameras --weight $2 --stats send$1.jsonl
}
send 1 4 & first=$!
send 2 2 & second=$!
send 3 1 & third=$!
sleep 24
kill -9 $first
sleep 14
# The killed one's socket is gone.
ls anabranch/groups/cameras >members
kill -INT $second $third
wait $second || test $? = 130
wait $third || test $? = 130
ls anabranch/groups/cameras >left
"#;

/// Datagrams of a sender that arrived until a moment of its run, and the line that tells of them.
fn arrived(lines: &[Value], at_s: f64) -> (f64, &Value) {
    let is_before = |line: &&Value| line["event"] == "interval" && line["at_s"].as_f64() <= Some(at_s);
    let line = lines.iter().rev().find(is_before).unwrap();
    let connections = line["connections"].as_array().unwrap();
    let of = |key: &str| connections.iter().filter_map(|connection| connection[key].as_f64()).sum::<f64>();
    (of("sent") - of("lost"), line)
}

#[test]
fn three_senders_share_a_bottleneck_by_their_weights_and_one_that_is_killed_has_no_part_any_more() {
    let network = Namespaces::network(
        "ip link set lo up && tc qdisc add dev lo root tbf rate 1mbit burst 3000 limit 60000",
    );
    let directory = tempfile::tempdir().unwrap();
    let directory: &Path = directory.path();
    fs::write(directory.join("noise"), film(16_000_000, 5)).unwrap();
    let Some(output) = network.run(|command| common::script(command, directory, SCRIPT)) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stats = [1, 2, 3]
        .map(|number| lines(&fs::read_to_string(directory.join(format!("send{number}.jsonl"))).unwrap()));
    // Datagrams a second, between two lines: they come when they come.
    let between = |lines: &[Value], from: f64, to: f64| {
        let ((before, from), (after, to)) = (arrived(lines, from), arrived(lines, to));
        (after - before) / (to["at_s"].as_f64().unwrap() - from["at_s"].as_f64().unwrap())
    };
    let parts = stats.each_ref().map(|lines| between(lines, 6.0, 22.0));
    let whole: f64 = parts.iter().sum();
    println!(
        "with all: {:.3?} of a part",
        [4.0, 2.0, 1.0]
            .map(|weight: f64| weight / 7.0)
            .iter()
            .zip(&parts)
            .map(|(fair, part)| part / whole / fair)
            .collect::<Vec<_>>()
    );
    for (part, weight) in parts.iter().zip([4.0, 2.0, 1.0]) {
        let of_fair = part / whole * 7.0 / weight;
        assert!((0.9..1.1).contains(&of_fair), "{parts:?}: {of_fair:.3}");
    }
    // 1383 bytes each at the least, with IP and UDP.
    let of_link = |datagrams: f64| datagrams * 1383.0 * 8.0 / 3e6;
    assert!((0.85..1.02).contains(&of_link(whole)), "{whole} datagrams");
    for lines in &stats[1..] {
        assert_eq!(arrived(lines, 20.0).1["group_others"], 2);
        assert_eq!(arrived(lines, 27.0).1["group_others"], 1);
    }
    let parts = [between(&stats[1], 27.0, 37.0), between(&stats[2], 27.0, 37.0)];
    println!("without the first: {:.2} to 1", parts[0] / parts[1]);
    assert!((1.8..2.2).contains(&(parts[0] / parts[1])), "{parts:?}");
    assert!(of_link(parts.iter().sum()) > 0.75, "{parts:?}");
    assert_eq!(fs::read_to_string(directory.join("members")).unwrap().lines().count(), 2);
    assert_eq!(fs::read_to_string(directory.join("left")).unwrap(), "");
}
