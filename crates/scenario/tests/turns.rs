//! Copies that differ: names and settings by turns, links by a spread; and what a stream asks for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use anabranch_film::auto;
use anabranch_film::content::{InFlight, MissingRule, Policy};
use anabranch_scenario::model::{Congestion, Kind, Model};
use anabranch_scenario::{Beside, Error, read, read_document};
use anabranch_units::{Bytes, Duration, Rate};

const SCENARIO: &str = r#"
run.duration = "10s"
tcp.one.congestion = "reno"
tcp.other.congestion = "cubic"
node = [{ name = "left" }, { name = "right" }, { name = "host{i}", count = 5 }]
link = [
  { from = "left", to = "right", rate = "8Mbps", delay = "20ms" },
  { from = "right", to = "host{i}", count = 5, rate = "100Mbps", delay = "1ms", delay_spread = "8ms", rate_spread = "40Mbps" },
]
[[flow]]
name = ["one{i}", "other{i}"]
count = 5
kind = "tcp"
from = "left"
to = "host{i}"
tcp = ["one", "other"]
group = ["a", { name = "b", weight = 2 }, { name = "b", weight = 3 }]
"#;

fn model(text: &str) -> Result<Model, Error> {
    read_document("it.toml", text, "a scenario", |mut document| {
        let described = read(&mut document, None, &mut Beside(".".as_ref()));
        document.finish()?;
        Ok(described?.model)
    })
}

#[test]
fn copies_of_a_flow_take_the_values_of_a_list_by_turns() {
    let right = model(SCENARIO).unwrap();
    let flows: Vec<_> = right
        .flows
        .iter()
        .map(|flow| {
            let Kind::Tcp { tcp, .. } = &flow.kind else { panic!("{}", flow.name) };
            let share = tcp.share.as_ref().unwrap();
            (flow.name.as_str(), tcp.congestion, share.group.as_str(), share.weight.get())
        })
        .collect();
    let expected = [
        ("one1", Congestion::Reno, "a", 1.0),
        ("other2", Congestion::Cubic, "b", 2.0),
        ("one3", Congestion::Reno, "b", 3.0),
        ("other4", Congestion::Cubic, "a", 1.0),
        ("one5", Congestion::Reno, "b", 2.0),
    ];
    assert_eq!(flows, expected);
    for (text, told) in [
        (SCENARIO.replace(r#"["one", "other"]"#, "[]"), "`tcp` is empty"),
        (SCENARIO.replace(r#""other"]"#, r#""another"]"#), "there are no TCP settings 'another'"),
    ] {
        let error = model(&text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(told), "{told} is not in {error}");
    }
}

#[test]
fn copies_of_a_link_are_longer_and_faster_one_after_the_other() {
    let model = model(SCENARIO).unwrap();
    let delays: Vec<Duration> = model.links.iter().map(|link| link.delay).collect();
    assert_eq!(delays, [20, 1, 3, 5, 7, 9].map(|delay| [Duration::from_millis(delay); 2]).concat());
    let rates: Vec<Rate> = model.links.iter().map(|link| link.rate).collect();
    assert_eq!(rates, [8, 100, 110, 120, 130, 140].map(|rate| [Rate::from_mbps(rate); 2]).concat());
}

#[test]
fn a_stream_says_what_it_asks_for() {
    let stream = |content: &str| -> Result<Policy, String> {
        let flow = format!(
            "[[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"host1\"\nservers = [\"left\"]\nrate \
             = \"1Mbps\"\nalgorithm = \"auto\"\n{content}"
        );
        let model = model(&format!("{SCENARIO}\n{flow}")).map_err(|error| error.to_string())?;
        match &model.flows.last().unwrap().kind {
            Kind::Media(media) => Ok(media.policy),
            _ => Err("it is no stream".into()),
        }
    };
    let without = stream("").unwrap();
    let (segment_size, unhurried_from) = (without.segment_size, Some(auto::Parameters::default().buffer.0));
    let usual = Policy { segment_size, unhurried_from, ..Policy::expected(Bytes::mib(24)) };
    assert_eq!(without, usual, "as `anabranch play` asks");
    assert_eq!(stream("content = {}"), Ok(without));
    assert_eq!(
        stream(r#"content = { segment = "50kB", look_ahead = "2MB", abandon_after = 0 }"#),
        Ok(Policy { abandon_after: 0, ..Policy::rome(Bytes::new(50_000), Bytes::new(2_000_000)) })
    );
    assert_eq!(
        stream(
            r#"content = { segment = ["10kB", "20kB"], first_segment = "9kB", segment_time = "1s", requests_in_flight = 3, missing = "round-trip" }"#
        ),
        Ok(Policy {
            segment_size: (Bytes::new(10_000), Bytes::new(20_000)),
            first_segment: Bytes::new(9_000),
            segment_time: Duration::from_secs(1),
            in_flight: InFlight::Requests(3),
            missing: MissingRule::RoundTrip,
            ..without
        })
    );
    let as_printed = r#"content = { requests_in_flight = "windows", missing = "play-time" }"#;
    let printed = Policy { in_flight: InFlight::Windows, missing: MissingRule::PlayTime, ..without };
    assert_eq!(stream(as_printed), Ok(printed));
    for (content, told) in [
        (r#"content = { segment = ["20kB", "10kB"] }"#, "the least and the largest"),
        (r#"content = { requests_in_flight = "window" }"#, "did you mean 'windows'?"),
        (r#"content = { segments = "20kB" }"#, "did you mean `segment`?"),
        (r#"content = { missing = "late" }"#, "round-trip"),
        (r#"content = { requests_in_flight = 0 }"#, "1"),
    ] {
        let error = stream(content).unwrap_err();
        assert!(error.contains(told), "{told} is not in {error}");
    }
}
