//! `anabranch send` and `anabranch receive` as their users see them: a film over a network that loses
//! packets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::process::Command;
use std::sync::atomic::Ordering;

use serde_json::Value;

use common::live::{Faults, Receiver, Relay, TOKEN, film, film_with, send, summary};
use common::{anabranch, ends_with, sha256};

/// The film goes through and is the same; answers with what both ends tell.
fn goes_through(percent: u64, options: &[&str]) -> Option<(Value, Value, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let film = film(directory.path())?;
    let receiver = Receiver::start(directory.path(), &[]);
    let relay = Relay::start(receiver.address, Faults { percent, ..Faults::default() });
    let mut all = vec!["--input", "film.ts", "--token", TOKEN, "--latency", "3s"];
    all.extend(options);
    let sent = send(directory.path(), relay.address, &receiver.fingerprint, &all).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    let received = summary(&directory.path().join("receive.jsonl"));
    let got = fs::read(directory.path().join("got.ts")).unwrap();
    let sent = summary(&directory.path().join("send.jsonl"));
    assert_eq!(sha256(&got), sha256(&film), "{received} {sent}");
    assert_eq!(received["lost"], 0);
    assert_eq!(received["bytes"].as_u64(), Some(film.len().try_into().unwrap()));
    Some((sent, received, relay.lost.load(Ordering::Relaxed)))
}

#[test]
fn a_film_arrives_as_it_is() {
    let Some((sent, received, lost)) = goes_through(0, &["--scheme", "tfrc"]) else { return };
    assert_eq!((lost, received["recovered_by_retransmission"].as_u64()), (0, Some(0)));
    assert!(sent["available_rate_bps"].as_u64() > Some(300_000), "{sent}");
}

#[test]
fn retransmission_alone_recovers_what_is_lost() {
    let Some((_, received, lost)) = goes_through(4, &[]) else { return };
    assert!(lost > 0 && received["recovered_by_retransmission"].as_u64() > Some(0), "{received}");
    assert_eq!(received["recovered_by_fec"], 0);
}

#[test]
fn parity_alone_recovers_what_is_lost() {
    let options = ["--retransmit", "off", "--fec", "20,10"];
    let Some((sent, received, lost)) = goes_through(4, &options) else { return };
    assert!(lost > 0 && received["recovered_by_fec"].as_u64() > Some(0), "{received}");
    assert_eq!(
        (sent["retransmitted"].as_u64(), received["recovered_by_retransmission"].as_u64()),
        (Some(0), Some(0))
    );
}

#[test]
fn every_scheme_carries_a_film_with_both() {
    for scheme in ["multfrc", "aio-tfrc", "auto"] {
        goes_through(4, &["--scheme", scheme, "--fec", "24,20"]);
    }
}

#[test]
fn the_published_schemes_carry_a_film() {
    for scheme in ["tfrc", "aio-tfrc"] {
        goes_through(1, &["--scheme", scheme, "--as-published"]);
    }
}

#[test]
fn any_bytes_go_through_a_pipe_at_a_rate() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = common::film(100_000, 3);
    fs::write(directory.path().join("noise"), &bytes).unwrap();
    let receiver = Receiver::start(directory.path(), &[]);
    let input = fs::File::open(directory.path().join("noise")).unwrap();
    // Time enough for a machine that does other things: what it does not send within the latency is dropped.
    let options = ["--input", "-", "--token", TOKEN, "--rate", "2M", "--latency", "3s"];
    let mut command = send(directory.path(), receiver.address, &receiver.fingerprint, &options);
    ends_with(&command.stdin(input).output().unwrap(), 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&bytes));
}

/// A transport stream of constant rate: what fills it up does not travel, and comes out again.
#[test]
fn stuffing_is_left_out_and_put_back() {
    for (option, travels) in [(None, false), (Some("--keep-stuffing"), true)] {
        let directory = tempfile::tempdir().unwrap();
        let Some(film) = film_with(directory.path(), &["-muxrate", "800k"]) else { return };
        let receiver = Receiver::start(directory.path(), &[]);
        let mut options = vec!["--input", "film.ts", "--token", TOKEN];
        options.extend(option);
        let sent =
            send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
        ends_with(&sent, 0);
        receiver.ended_well();
        assert_eq!(sha256(&fs::read(directory.path().join("got.ts")).unwrap()), sha256(&film));
        let sent = summary(&directory.path().join("send.jsonl"));
        let (all, left_out) = (sent["bytes"].as_u64().unwrap(), sent["stuffing_bytes"].as_u64().unwrap());
        assert_eq!(all, film.len() as u64);
        assert!(if travels { left_out == 0 } else { left_out > all / 4 }, "{sent}");
        assert!(travels || sent["packets"].as_u64().unwrap() * 1316 < all * 4 / 5, "{sent}");
    }
}

#[test]
fn a_player_gets_the_stream() {
    let directory = tempfile::tempdir().unwrap();
    let Some(film) = film(directory.path()) else { return };
    // What a player would see: its standard input.
    let player = "sh -c 'cat $0 >played.ts' {}";
    let receiver = Receiver::at("127.0.0.1:0", directory.path(), &["--player", player]);
    let options = ["--input", "film.ts", "--token", TOKEN];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    assert_eq!(sha256(&fs::read(directory.path().join("played.ts")).unwrap()), sha256(&film));
}

#[test]
fn mpv_plays_what_comes() {
    let directory = tempfile::tempdir().unwrap();
    if film(directory.path()).is_none() {
        return;
    }
    let Ok(true) = Command::new("mpv").arg("--version").output().map(|output| output.status.success()) else {
        anabranch_testkit::skipped("no mpv");
        return;
    };
    let player = "mpv --no-config --vo=null --ao=null --log-file=mpv.log {}";
    let receiver = Receiver::at("127.0.0.1:0", directory.path(), &["--player", player]);
    let options = ["--input", "film.ts", "--token", TOKEN];
    let sent = send(directory.path(), receiver.address, &receiver.fingerprint, &options).output().unwrap();
    ends_with(&sent, 0);
    receiver.ended_well();
    let log = fs::read_to_string(directory.path().join("mpv.log")).unwrap();
    assert!(log.contains("EOF code: 1") || log.contains("finished playback, success"), "{log}");
}

#[test]
fn a_player_that_is_not_there_or_goes_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let receive = |player: &str| {
        let mut command = anabranch();
        command.args(["receive", "--listen", "127.0.0.1:0", "--player", player]).output().unwrap()
    };
    let said = ends_with(&receive("no-such-player {}"), 1);
    assert!(said.contains("there is no such program"), "{said}");
    let said = ends_with(&receive("sh -c 'exit 3'"), 1);
    assert!(said.contains("exit code 3"), "{said}");
    ends_with(&receive("true"), 0);
    drop(directory);
}

#[test]
fn a_receiver_that_anybody_can_send_to_says_so_once() {
    let told = |listen: &str, options: &[&str], token: &str| {
        let mut command = anabranch();
        command.args(["receive", "--listen", listen, "--identity", "none", "--player", "true"]).args(options);
        let said = ends_with(&command.env("ANABRANCH_TOKEN", token).output().unwrap(), 0);
        let lines: Vec<_> = said.lines().filter(|line| line.contains("everybody who can reach")).collect();
        assert!(lines.iter().all(|line| line.contains("--token-file")), "{said}");
        lines.len()
    };
    assert_eq!(told("0.0.0.0:0", &[], ""), 1);
    assert_eq!(told("0.0.0.0:0", &["--quiet"], ""), 0);
    assert_eq!(told("0.0.0.0:0", &[], "secret"), 0);
    assert_eq!(told("0.0.0.0:0", &["--token", "secret"], ""), 0);
    assert_eq!(told("127.0.0.1:0", &[], ""), 0);
}

#[test]
fn several_senders_have_places_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    // Longer than one that is refused tries on.
    let noises = [5, 6].map(|seed| common::film(700_000, seed));
    for (name, noise) in ["noise-1", "noise-2"].into_iter().zip(&noises) {
        fs::write(directory.path().join(name), noise).unwrap();
    }
    let options = ["--output", "camera-{}.ts", "--senders", "2"];
    let mut receiver = Receiver::at("127.0.0.1:0", directory.path(), &options);
    let sender = |input: &str| {
        let mut command = anabranch();
        let to = receiver.address.to_string();
        command.current_dir(directory.path()).args(["send", "--to", &to, "--token", TOKEN]);
        command.args(["--fingerprint", &receiver.fingerprint]).args(["--rate", "800k", "--input", input]);
        command
    };
    let mut first = sender("noise-1").spawn().unwrap();
    let mut second = sender("noise-2");
    let mut third = sender("noise-1");
    let came = receiver.says(" sends,");
    assert!(came.contains("(1)"), "{came}");
    let mut second = second.spawn().unwrap();
    let came = receiver.says(" sends,");
    assert!(came.contains("(2)"), "{came}");
    let said = ends_with(&third.output().unwrap(), 1);
    assert!(said.contains("as many senders are here as may be"), "{said}");
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    let received = |name: &str| sha256(&fs::read(directory.path().join(name)).unwrap());
    receiver.ended_well();
    assert_eq!((received("camera-1.ts"), received("camera-2.ts")), (sha256(&noises[0]), sha256(&noises[1])));
    let told = summary(&directory.path().join("receive.jsonl"));
    assert_eq!(told["bytes"].as_u64(), Some((noises[0].len() + noises[1].len()) as u64));
}

#[test]
fn several_senders_need_several_outputs() {
    for (options, said) in [
        (&["--senders", "2"][..], "--output"),
        (&["--senders", "2", "--output", "one.ts"], "{}"),
        (&["--senders", "2", "--player", "true"], "--player"),
        (&["--senders", "3", "--output", "udp://127.0.0.1:65534"], "too many"),
        (&["--senders", "0"], "1 to"),
        (&["--senders", "65"], "1 to"),
    ] {
        let output = anabranch().args(["receive", "--listen", "127.0.0.1:0"]).args(options).output().unwrap();
        let told = ends_with(&output, 2);
        assert!(told.contains(said), "{options:?}: {told}");
    }
}
