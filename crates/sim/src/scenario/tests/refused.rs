//! What is refused, and what is said then.

use super::*;

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_right_name() {
    let error = error(&path("delay = \"20ms\"", "delay = \"20ms\"\nqueu = \"50 packets\""));
    let expected = "test.toml:15:1: `queu` is not a key of a [[link]]\n   |\n15 | queu = \"50 packets\"\n   \
                    | ^^^^\n   = did you mean `queue`?";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn programs_are_refused_where_they_stand() {
    let programs = "[[server]]\nnode = \"a\"\n[[client]]\nname = \"curl\"\ncommand = [\"curl\"]\n[kernel]\n";
    let error = error(&format!("{PATH}{programs}"));
    let line = PATH.lines().count() + 1;
    for (line, key) in [(line, "server"), (line + 2, "client"), (line + 5, "kernel")] {
        let told =
            format!("test.toml:{line}:1: the simulator runs no programs: only the testbed has `{key}`");
        assert!(error.contains(&told), "{told}\n{error}");
    }
    assert!(!error.contains("is not a key"), "{error}");
}

#[test]
fn wrong_values_are_refused_with_what_would_be_right() {
    for (from, to, expected) in [
        ("duration = \"10s\"", "duration = \"0s\"", "test.toml:3:12: `duration` is above zero"),
        ("duration = \"10s\"", "duration = 10", "a text with its unit, not an integer"),
        ("duration = \"10s\"", "duration = 10", "200ms, 10s, 5m or 2h"),
        ("duration = \"10s\"", "duraton = \"10s\"", "did you mean `duration`?"),
        ("duration = \"10s\"", "duration = \"10s\"\nsampling = \"1us\"", "at least 1 ms"),
        ("duration = \"10s\"", "duration = \"10s\"\nwarm_up = \"10s\"", "nothing would be counted"),
        ("duration = \"10s\"", "duration = \"2000h\"\nsampling = \"1s\"", "rows of output"),
        ("duration = \"10s\"", "duration = \"5000h\"", "at most 10000000.0 s"),
        ("duration = \"10s\"", "duration = \"10s\"\nseed = -1", "a whole number from 0"),
        ("[run]", "[rnu]", "did you mean `run`?"),
        ("[run]\nduration = \"10s\"", "", "a scenario needs the key `run`"),
        ("[run]", "[[run]]", "`run` is a table, not an array"),
        ("[[node]]\nname = \"b\"", "[[node]]\nname = \"a\"", "a second node has the name 'a'"),
        ("name = \"b\"", "name = \"b c\"", "a name is 1 to 64 letters"),
        ("[[node]]\nname = \"b\"", "", "there is no node 'b'"),
        ("to = \"b\"", "to = \"a\"", "a link from a node to itself"),
        ("to = \"b\"\nrate = \"6Mbps\"", "to = \"bb\"\nrate = \"6Mbps\"", "did you mean 'b'?"),
        ("rate = \"6Mbps\"", "rate = \"0\"", "above zero"),
        ("rate = \"6Mbps\"", "rate = \"fast\"", "'fast' is not a rate"),
        ("rate = \"6Mbps\"", "rate = \"9999Gbps\"", "a rate is at most"),
        ("rate = \"6Mbps\"", "", "a [[link]] needs the key `rate`"),
        ("delay = \"20ms\"", "", "a [[link]] needs the key `delay`"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nqueue = \"0 packets\"", "1 to 1000000 packets"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nqueue = 50", "50 packets"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nqueue = \"1000B\"", "at least 1500B"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nloss = 1.5", "from 0 to 1 (a probability)"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nsimplex = true", "no links lead from 'b' to 'a'"),
        ("delay = \"20ms\"", "delay = \"20ms\"\nsimplex = true\nreverse = {}", "no reverse direction"),
        ("delay = \"20ms\"", "delay = \"20ms\"\ncount = 2", "a second link has the name 'a-b'"),
        (
            "delay = \"20ms\"",
            "delay = \"20ms\"\ndiscipline = { kind = \"red\", low = 20 }",
            "`low` (20) has to be below `high` (15)",
        ),
        (
            "delay = \"20ms\"",
            "delay = \"20ms\"\nchanges = [{ at = \"2s\", loss = 0 }, { at = \"1s\", loss = 0 }]",
            "go forward in time: the one before is at 2.000 s",
        ),
        ("delay = \"20ms\"", "delay = \"20ms\"\nchanges = [{ at = \"2s\" }]", "changes nothing"),
        ("kind = \"tcp\"", "kind = \"tpc\"", "did you mean 'tcp'?"),
        (
            "kind = \"tcp\"",
            "kind = \"tcp\"\nstart = \"5s\"\nstop = \"4s\"",
            "stops at 4.000 s, and starts at 5.000 s",
        ),
        ("kind = \"tcp\"", "kind = \"tcp\"\nstart = [\"5s\", \"4s\"]", "the least and the most"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = \"ns2\"", "there are no TCP settings 'ns2'"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { receive_window = \"1kB\" }", "smaller than a `segment`"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { segment = \"65500B\" }", "larger than an IP packet"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { congestion = \"bbb\" }", "one of reno, cubic, multcp:N"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { congestion = \"bbr:3\" }", "'bbr' has no parameter"),
        (
            "kind = \"tcp\"",
            "kind = \"tcp\"\ntcp = { congestion = \"ttfwc:2\" }",
            "a tuning parameter is a number from 0 to 1",
        ),
        ("kind = \"tcp\"", "kind = \"tcp\"\ntcp = { congestion = \"tfcw\" }", "did you mean 'tfwc'?"),
        ("kind = \"tcp\"", "kind = \"tcp\"\ncount = 0", "a whole number from 1 to 10000"),
        ("kind = \"tcp\"", "kind = \"tcp\"\njitter = true", "not a key of a [[flow]] of kind tcp"),
        ("kind = \"tcp\"", "kind = \"tcp\"\napplication = \"file\"", "needs the key `size`"),
        ("kind = \"tcp\"", "kind = \"tcp\"\nsize = \"0B\"", "is a size from 1 B"),
        ("kind = \"tcp\"", "kind = \"udp\"", "needs the key `rate`"),
        ("kind = \"tcp\"", "kind = \"udp\"\nrate = \"1M\"\npattern = \"on-off\"", "needs the key `on`"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nrate = \"1M\"", "not a key of a [[flow]] of kind tfrc"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nparameters = \"ns-2\"", "did you mean 'ns2'?"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nscheme = \"multfrk\"", "did you mean 'multfrc'?"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nscheme = { kind = \"fixed\" }", "needs the key `connections`"),
        ("kind = \"tcp\"", "kind = \"tfrc\"\nscheme = { kind = \"auto\", decrease = -1 }", "from 0 to 100"),
        ("kind = \"tcp\"", "kind = \"media\"", "needs the key `client`"),
    ] {
        let error = error(&path(from, to));
        assert!(error.contains(expected), "{to}: {error}");
    }
    let nobody = PATH.split("[[flow]]").next().unwrap();
    assert!(error(nobody).contains("nobody sends"));
    assert!(error("[run\n").starts_with("test.toml:1:"), "{}", error("[run\n"));
    let single = PATH.replace("[[node]]\nname = \"a\"", "").replace("[[node]]", "[node]");
    assert!(error(&single).contains("two brackets"));
}

#[test]
fn nothing_is_without_bounds() {
    let many = |key: &str, count: u32| path(key, &format!("{key}\ncount = {count}"));
    for (text, expected) in [
        (many("name = \"b\"", 2000), "more than 2000 nodes"),
        (many("name = \"b\"", 2001), "a whole number from 1 to 2000"),
        (many("kind = \"tcp\"", 10_001), "a whole number from 1 to 10000"),
        (
            many("kind = \"tcp\"", 10_000)
                + "[[flow]]\nname = \"x\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"",
            "more than 10000 flows",
        ),
        (
            many("rate = \"6Mbps\"\ndelay = \"20ms\"", 10_001).replace(
                "to = \"b\"\nrate",
                "to = \"b\"\nname = \"l{i}\"\nreverse = { name = \"r{i}\" }\nrate",
            ),
            "more than 20000 links",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn files_are_read_beside_the_scenario_and_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.toml");
    let missing = load(&file, None).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("a.toml"), "{missing}");
    fs::write(&file, path("rate = \"6Mbps\"", "trace = \"a.trace\"")).unwrap();
    fs::write(directory.path().join("a.trace"), "1\n").unwrap();
    assert_eq!(load(&file, None).unwrap().links[0].rate, Rate::from_mbps(12));
    fs::write(directory.path().join("a.trace"), b"\xff\xfe").unwrap();
    assert!(load(&file, None).unwrap_err().to_string().contains("cannot read the trace a.trace"));
    fs::File::create(directory.path().join("a.trace")).unwrap().set_len(LARGEST_FILE + 1).unwrap();
    assert!(load(&file, None).unwrap_err().to_string().contains("larger than 32 MiB"));
    let endless = load(Path::new("/dev/zero"), None).unwrap_err().to_string();
    assert!(endless.contains("not a regular file"), "{endless}");
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,300}") {
        let _ = parsed(&text);
    }

    /// Pieces of scenarios in any order are closer to what can go wrong.
    #[test]
    fn no_shuffled_scenario_panics(
        order in prop::collection::vec((0usize..64, 0usize..64), 0..20),
        cut in 0usize..2000,
    ) {
        let mut lines: Vec<&str> = PATH.lines().chain(RANDOM.lines()).collect();
        for (one, other) in order {
            let length = lines.len();
            lines.swap(one % length, other % length);
        }
        let text = lines.join("\n");
        let _ = parsed(text.get(..cut.min(text.len())).unwrap_or_default());
        let _ = parsed(&text);
    }
}

/// The places and the messages of all mistakes of a text.
fn mistakes(text: &str) -> Vec<(usize, String)> {
    match parsed(text) {
        Err(Error::Wrong(mistakes)) => {
            mistakes.told.into_iter().map(|wrong| (wrong.line, wrong.to_string())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_mistakes_of_a_file_are_told_in_one_run() {
    let text = r#"
[run]
duration = "10"
sampling = "1s"
sedd = 3

[[node]]
name = "a"
[[node]]
name = "b"

[[link]]
from = "a"
to = "c"
rate = "10"
dealy = "20ms"
queue = "50"
loss = 2

[tcp.old]
segment = 1460
recovery = "sak"

[[flow]]
name = "file"
kind = "tpc"

[[flow]]
name = "bulk"
kind = "tcp"
from = "a"
to = "bb"
tcp = "old"
size = "5"

[[flow]]
name = "noise"
kind = "udp"
from = "a"
to = "b"
patern = "on-off"
"#;
    let expected = [
        (3, "'10' has no unit; write it like 200ms"),
        (5, "did you mean `seed`?"),
        (14, "there is no node 'c'"),
        (15, "'10' has no unit; write it like 800k"),
        (16, "did you mean `delay`?"),
        (17, "'50' has no unit"),
        (18, "from 0 to 1"),
        (21, "64KiB"),
        (22, "did you mean 'sack'?"),
        (26, "did you mean 'tcp'?"),
        (32, "did you mean 'b'?"),
        (34, "'5' has no unit; write it like 64KiB"),
        (36, "needs the key `rate`"),
        (41, "did you mean `pattern`?"),
    ];
    let found = mistakes(text);
    let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, expected.map(|(line, _)| line), "{found:#?}");
    for ((_, said), (_, told)) in found.iter().zip(expected) {
        assert!(said.contains(told), "{said}\n is without: {told}");
    }
}

#[test]
fn what_follows_from_a_mistake_is_no_other_one() {
    let one = |from: &str, to: &str, line: usize| {
        let found = mistakes(&path(from, to));
        assert!(found.len() == 1 && found[0].0 == line, "{to}: {found:?}");
    };
    // The flow and the link name a node that is wrong itself.
    one("name = \"b\"", "nam = \"b\"", 8);
    // The flow has no way, for its link is wrong.
    one("delay = \"20ms\"", "delay = \"20\"", 14);
    // What keys there are follows from the name that is wrong.
    one("kind = \"tcp\"", "kind = \"upd\"\nrate = \"1M\"", 18);
    one("kind = \"tcp\"", "kind = \"tcp\"\napplication = \"flie\"\nsize = \"1MB\"", 19);
    one("delay = \"20ms\"", "delay = \"20ms\"\ndiscipline = { kind = \"rde\", low = 3 }", 15);
    // The first node of a name is the one that the flow means.
    one("name = \"b\"", "name = \"b\"\n[[node]]\nname = \"b\"", 10);
    // A flow with wrong settings has settings.
    one("[[flow]]", "[tcp.x]\nheader = 3\n[[flow]]\ntcp = \"x\"", 17);
    // A key that is missing is not taken for one that is right.
    one("to = \"b\"\nrate", "rate", 10);
    // One copy stands for all.
    one("kind = \"tcp\"", "kind = \"tcp\"\ncount = 9\nsize = \"5\"", 20);
}

#[test]
fn every_fault_of_the_grammar_is_told() {
    let found = mistakes("[run]\nduration = \n[[flow]\nname = 'x'\n");
    assert!(found.len() >= 2 && found[0].0 == 2, "{found:?}");
}

#[test]
fn more_mistakes_than_anybody_reads_are_counted() {
    let text = path(
        "kind = \"tcp\"",
        &format!("kind = \"tcp\"\n{}", (0..150).map(|n| format!("k{n} = 1\n")).collect::<String>()),
    );
    let said = error(&text);
    assert!(said.ends_with("and 50 more mistakes"), "{}", &said[said.len() - 100..]);
}
