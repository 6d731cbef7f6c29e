//! Files of weights: what they say, and what is said of those that say nothing.

use std::net::IpAddr;

use anabranch_server::Weights;
use http::Request;
use proptest::prelude::*;

const RULES: &str = r#"
    default = 0.5
    claims = true
    [[rule]]
    path = "/premium/*.mp4"
    weight = 8
    [[rule]]
    client = "10.0.0.0/8"
    header = "X-Plan: gold*"
    weight = 4
    [[rule]]
    client = "2001:db8::1"
    weight = 3
    [[rule]]
    buffer_below = "5s"
    weight = 6
"#;

fn weight_of(client: &str, uri: &str, headers: &[(&str, &str)]) -> f64 {
    let mut request = Request::builder().uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let rules: Weights = RULES.parse().unwrap();
    rules.of(client.parse().unwrap(), &request.body(()).unwrap()).get()
}

#[test]
fn the_first_rule_that_is_for_a_request_gives_its_weight() {
    assert_eq!(weight_of("192.0.2.1", "/premium/a/b%20c.mp4", &[]), 8.0);
    assert_eq!(weight_of("192.0.2.1", "/premium/a.ts", &[]), 0.5);
    assert_eq!(weight_of("10.1.2.3", "/a", &[("x-plan", "gold plus")]), 4.0);
    assert_eq!(weight_of("10.1.2.3", "/a", &[("x-plan", "silver")]), 0.5);
    assert_eq!(weight_of("192.0.2.1", "/a", &[("x-plan", "gold")]), 0.5);
    assert_eq!(weight_of("2001:db8::1", "/a", &[]), 3.0);
}

#[test]
fn a_client_is_in_the_first_pool_that_is_declared_for_it_and_in_none_by_itself() {
    let written = r#"
        [[pool]]
        name = "campus"
        clients = ["10.0.0.0/8", "2001:db8::/32"]
        [[pool]]
        name = "printer"
        clients = "10.0.0.1"
        [[pool]]
        name = "uplink"
        clients = "192.0.2.7"
    "#;
    let weights: Weights = written.parse().unwrap();
    let pool = |client: &str| weights.pool_of(client.parse().unwrap());
    assert_eq!(weights.pools(), 3);
    assert_eq!((pool("10.0.0.1"), pool("2001:db8::1")), (Some("campus"), Some("campus")));
    assert_eq!((pool("192.0.2.7"), pool("192.0.2.8")), (Some("uplink"), None));

    let everybody: Weights = "[[pool]]\nname = \"a\"\nclients = \"all\"\n".parse().unwrap();
    assert_eq!(everybody.pool_of("192.0.2.8".parse().unwrap()), Some("a"));
    let nobody: Weights = RULES.parse().unwrap();
    assert_eq!(nobody.pool_of("10.0.0.1".parse().unwrap()), None);

    let twice = "[[pool]]\nname = \"a\"\nclients = \"all\"\n".repeat(2);
    assert!(twice.parse::<Weights>().unwrap_err().contains("two pools with the name 'a'"));
    let many: String = (0..101).map(|n| format!("[[pool]]\nname = \"{n}\"\nclients = \"all\"\n")).collect();
    assert!(many.parse::<Weights>().unwrap_err().contains("more than 100 pools"));
}

#[test]
fn a_player_tells_its_buffer_by_cmcd() {
    let header = |value| weight_of("192.0.2.1", "/a", &[("CMCD-Request", value)]);
    assert_eq!(header("bl=4900,mtp=25400"), 6.0);
    assert_eq!(header("mtp=25400, bl=0"), 6.0);
    assert_eq!(header("bl=5000"), 0.5);
    assert_eq!(header("tbl=1"), 0.5);
    assert_eq!(header("bl=-1"), 0.5);
    let query = |uri| weight_of("192.0.2.1", uri, &[]);
    assert_eq!(query("/a?x=1&CMCD=bl%3D1200%2Csid%3D%22s%22"), 6.0);
    assert_eq!(query("/a?CMCD=bl%3D12000"), 0.5);
    assert_eq!(query("/a?CMCD=%ff%fe"), 0.5);
}

#[test]
fn a_rule_by_need_counts_by_the_buffer_that_a_player_tells() {
    let rules: Weights =
        "default = 0.7\nclaims = true\n[[rule]]\npath = \"/live/*\"\nweight = 3\n[[rule]]\nby_need = true\n\
         [[rule]]\nclient = \"10.0.0.0/8\"\nweight = 5\n"
            .parse()
            .unwrap();
    let of = |rules: &Weights, uri: &str, cmcd: Option<&str>| {
        let request = Request::builder().uri(uri);
        let request = cmcd.into_iter().fold(request, |request, cmcd| request.header("cmcd-request", cmcd));
        rules.of([10, 0, 0, 1].into(), &request.body(()).unwrap()).get()
    };
    for (cmcd, expected) in [
        ("bl=0", 1.3),
        ("bl=4000,br=800", 1.3),
        ("bl=8000", 0.806),
        ("bl=30000", 0.5),
        ("bl=30000,bs", 1.3),
        ("su", 1.3),
    ] {
        assert!((of(&rules, "/a", Some(cmcd)) - expected).abs() < 1e-3, "{cmcd}");
    }
    assert_eq!(of(&rules, "/a", None), 5.0, "who tells nothing is left to the rules behind it");
    assert_eq!(of(&rules, "/a", Some("sid=\"a\"")), 5.0);
    assert_eq!(of(&rules, "/live/a", Some("bl=0")), 3.0, "a rule before it holds");
    assert!((of(&rules, "/a?CMCD=bl%3D8000", None) - 0.806).abs() < 1e-3);

    let written =
        "claims = CLAIMS\n[[rule]]\nby_need = { low = \"2s\", high = \"6s\", most = 9, least = 1 }\n";
    let of_claims = |claims: &str| written.replace("CLAIMS", claims).parse::<Weights>().unwrap();
    let (held, resting) = (of_claims("true"), of_claims("false"));
    assert!((of(&held, "/a", Some("bl=4000")) - 3.0).abs() < 1e-3);
    assert_eq!(of(&resting, "/a", Some("bl=0")), 1.0, "it is a claim");
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_is_right() {
    for (text, line, hint) in [
        ("default = 1\nshare = 2\n", 2, "`default`"),
        ("\n[[pool]]\nname = \"a\"\n", 2, "missing field `clients`"),
        ("[[pool]]\nclients = \"all\"\n", 1, "missing field `name`"),
        ("[[pool]]\nname = \"\"\nclients = \"all\"\n", 1, "a pool has a name"),
        ("[[pool]]\nname = \"a\"\nclients = \"everybody\"\n", 3, "10.0.0.0/8"),
        ("[[pool]]\nname = \"a\"\nclients = []\n", 3, "from one to 1000 networks"),
        ("[[pool]]\nname = \"a\"\nclients = [1]\n", 3, "clients are \"all\" or networks"),
        ("[[pool]]\nname = \"a\"\nclients = \"all\"\nweight = 1\n", 4, "`clients`"),
        ("default = 0\n", 1, "from 0.001 to 1000"),
        ("\n[[rule]]\npath = \"a\"\nweight = 1\n", 3, "/films/*"),
        ("[[rule]]\npath = \"/***\"\nweight = 1\n", 2, "is no pattern"),
        ("[[rule]]\nclient = \"10.0.0.0/99\"\nweight = 1\n", 2, "10.0.0.0/8"),
        ("[[rule]]\nheader = \"gold\"\nweight = 1\n", 2, "X-Plan: gold"),
        ("[[rule]]\nbuffer_below = \"soon\"\nweight = 1\n", 2, "200ms"),
        ("[[rule]]\nclient = \"10.0.0.1\"\nweight = \"four\"\n", 3, "expected f64"),
        ("default = 1\n\n[[rule]]\nweight = 4\n", 3, "a rule says what it is for"),
        ("[[rule]]\npath = \"/a\"\n", 1, "missing field `weight`"),
        ("[[rule]]\npath = \"/a\"\nweight = 1\npriority = 2\n", 4, "`path`"),
        ("default = [", 1, "array"),
        ("default = 1\n[[rule]]\nheader = \"X-Plan: gold\"\nweight = 4\n", 2, "claims = true"),
        ("[[rule]]\nbuffer_below = \"5s\"\nweight = 4\n", 1, "claims = false"),
        ("[[rule]]\nby_need = true\n", 1, "claims = true"),
        ("[[rule]]\nby_need = true\nweight = 2\n", 1, "either `weight` or `by_need`"),
        ("[[rule]]\nby_need = false\n", 1, "missing field `weight`"),
        ("[[rule]]\nby_need = \"yes\"\n", 2, "`low`, `high`, `most` and `least`"),
        ("[[rule]]\nby_need = { low = \"9s\", high = \"3s\" }\n", 2, "`low` (9.0 s) is above `high` (3.0 s)"),
        ("[[rule]]\nby_need = { most = 0.25 }\n", 2, "is below `least`"),
        ("[[rule]]\nby_need = { most = 2000 }\n", 2, "from 0.001 to 1000"),
        ("[[rule]]\nby_need = { more = 2 }\n", 2, "by_need is true, or a table"),
        ("shared_addresses = [\"nat\"]\n", 1, "10.0.0.0/8"),
    ] {
        let told = text.parse::<Weights>().unwrap_err();
        assert!(told.starts_with(&format!("{line}:")) && told.contains(hint), "{text}: {told}");
    }
}

#[test]
fn what_clients_claim_counts_only_where_the_operator_says_so() {
    let with = |claims: bool| -> Weights {
        RULES.replace("claims = true", &format!("claims = {claims}")).parse().unwrap()
    };
    let request = Request::builder()
        .uri("/a")
        .header("x-plan", "gold")
        .header("cmcd-request", "bl=0")
        .body(())
        .unwrap();
    let of = |weights: Weights| weights.of([10, 0, 0, 1].into(), &request).get();
    assert_eq!((of(with(true)), of(with(false))), (4.0, 0.5));
    let plain = Request::builder().uri("/premium/a.mp4").body(()).unwrap();
    assert_eq!(with(false).of([10, 0, 0, 1].into(), &plain).get(), 8.0, "other rules hold");
}

#[test]
fn a_path_that_is_written_in_another_way_has_the_same_weight() {
    let weights: Weights = "[[rule]]\npath = \"/bulk/*\"\nweight = 0.5\n".parse().unwrap();
    for path in ["/bulk/a", "//bulk/a", "/%62ulk/a", "/bulk//a", "///bulk///a", "/bulk/"] {
        let request = Request::builder().uri(path).body(()).unwrap();
        assert_eq!(weights.of([10, 0, 0, 1].into(), &request).get(), 0.5, "{path}");
    }
}

#[test]
fn an_address_can_have_many_clients_behind_it() {
    let weights: Weights = "shared_addresses = [\"100.64.0.0/10\", \"192.0.2.7\"]\n".parse().unwrap();
    let is_shared = |address: &str| weights.is_shared(address.parse().unwrap());
    assert!(is_shared("100.64.3.4") && is_shared("192.0.2.7") && !is_shared("192.0.2.8"));
}

#[test]
fn a_file_that_is_none_of_weights_is_told_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weights.toml");
    let told = |path: &std::path::Path| Weights::load(path).unwrap_err().to_string();
    assert!(told(&path).contains("No such file"));
    assert!(told(directory.path()).contains("no regular file"), "{}", told(directory.path()));
    assert!(told("/dev/zero".as_ref()).contains("no regular file"));
    std::fs::write(&path, "#".repeat(2 << 20)).unwrap();
    assert!(told(&path).contains("more than 1 MiB"), "{}", told(&path));
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert!(told(&path).contains("UTF-8"), "{}", told(&path));
    // Nested so deeply that a reader that calls itself would have no stack left.
    std::fs::write(&path, format!("default = {}", "[".repeat(500_000))).unwrap();
    assert!(told(&path).contains("weights.toml:1:"), "{}", told(&path));
    std::fs::write(&path, format!("{} = 1", "a.".repeat(200_000) + "b")).unwrap();
    assert!(told(&path).contains("weights.toml:1:"), "{}", told(&path));
    std::fs::write(&path, "[[rule]]\npath = \"/a\"\nweight = 1\n".repeat(1001)).unwrap();
    assert!(told(&path).contains("more than 1000 rules"), "{}", told(&path));
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(told(&path).contains("no regular file"), "{}", told(&path));
}

#[test]
fn a_pattern_of_many_stars_is_no_way_to_keep_a_server_busy() {
    // What tries every way in which twenty stars can be divided over this path does not come to an end.
    let weights: Weights =
        format!("[[rule]]\npath = \"/{}b\"\nweight = 2\n", "*a".repeat(20)).parse().unwrap();
    let request = Request::builder().uri(format!("/{}", "a".repeat(8000))).body(()).unwrap();
    assert_eq!(weights.of([10, 0, 0, 1].into(), &request).get(), 1.0);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in "((default|claims|shared_addresses|weight|path|client|header|buffer_below|by_need|low|most|true|name|clients|all|\\[\\[(rule|pool)\\]\\]|[=\"/*.:0-9 \n])*|\\PC*)",
        uri in "/[a-z%0-9*]{0,9}(\\?CMCD=[a-z%0-9,=]{0,20})?",
        cmcd in "[ -~]{0,60}",
    ) {
        let rules = text.parse::<Weights>().unwrap_or_else(|_| RULES.parse().unwrap());
        if let Ok(request) = Request::builder().uri(uri).header("cmcd-request", cmcd).body(()) {
            let weight = rules.of(IpAddr::from([10, 0, 0, 1]), &request).get();
            prop_assert!((0.001..=1000.0).contains(&weight));
        }
    }
}
