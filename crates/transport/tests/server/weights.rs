//! Files of weights: what they say, and what is said of those that say nothing.

use std::net::IpAddr;

use http::Request;
use proptest::prelude::*;
use transport::server::Weights;

const RULES: &str = r#"
    default = 0.5
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
fn what_is_wrong_is_told_with_its_line_and_what_is_right() {
    for (text, line, hint) in [
        ("default = 1\nshare = 2\n", 2, "expected `default` or `rule`"),
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
    ] {
        let told = text.parse::<Weights>().unwrap_err();
        assert!(told.starts_with(&format!("{line}:")) && told.contains(hint), "{text}: {told}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        text in "((default|weight|path|client|header|buffer_below|\\[\\[rule\\]\\]|[=\"/*.:0-9 \n])*|\\PC*)",
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
