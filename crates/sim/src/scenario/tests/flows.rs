//! Streams, their readers, and controls with parameters.

use super::*;

#[test]
fn the_parameters_of_streams() {
    let stream = |algorithm: &str| {
        let media = format!(
            "client = \"b\"\nservers = [\"a\", \"a\"]\nrate = \"3M\"\nalgorithm = {algorithm}\nkind \
             = \"media\""
        );
        parsed(&path("kind = \"tcp\"\nfrom = \"a\"\nto = \"b\"", &media))
    };
    let of = |algorithm: &str| match stream(algorithm).unwrap().flows.remove(0).kind {
        Kind::Media(media) => *media,
        other => panic!("{other:?}"),
    };
    assert!(matches!(of("\"fixed\"").algorithm, RateControl::Fixed { connections: 1, window: None }));
    assert!(matches!(
        of("{ kind = \"basic\", preset = \"table8.2\", connections = 4 }").algorithm,
        RateControl::Basic(found)
            if found == anabranch_film::multitcp::Parameters { connections: 4, ..anabranch_film::multitcp::Parameters::TABLE_8_2 }
    ));
    assert!(matches!(
        of("\"advanced\"").algorithm,
        RateControl::Advanced(found) if found == anabranch_film::multitcp::AdvancedParameters::TABLE_8_3
    ));
    let media = of("{ kind = \"auto\", connections = 20 }");
    assert!(matches!(&media.algorithm, RateControl::Auto(found) if found.most == 20 && found.at_start == 2));
    assert_eq!(media.pace, anabranch_film::session::Pace::Media(Some(Rate::from_mbps(3))));
    assert_eq!(media.policy.segment_size.1, Bytes::mib(2));
    let media = of("{ kind = \"rome\", segment_size = \"10kB\" }");
    assert_eq!(media.policy.segment_size, (Bytes::new(10_000), Bytes::new(10_000)));
    for (wrong, expected) in [
        ("{ kind = \"basic\", cf = 5 }", "`cf` is not a key of a stream's `algorithm`"),
        ("{ kind = \"basic\", alpha = 1 }", "from 0 to below 1"),
        ("{ kind = \"basic\", delta = \"8 round trips\" }", "an interval is written"),
        ("{ kind = \"auto\", buffer_low = \"1h\" }", "has to be below"),
        ("{ connections = 5 }", "needs the key `kind`"),
        ("\"atuo\"", "did you mean 'auto'?"),
    ] {
        let error = stream(wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn tfrc_is_that_of_the_rfc_unless_another_is_named() {
    for (settings, expected) in [
        ("", (Bytes::new(1000), Parameters::RFC5348)),
        ("packet_size = \"1040B\"\nparameters = \"rfc5348\"", (Bytes::new(1040), Parameters::RFC5348)),
        ("parameters = \"ns2\"", (Bytes::new(1000), Parameters::NS2)),
        ("parameters = \"live\"", (Bytes::new(1000), Parameters::LIVE)),
        ("damping = true", (Bytes::new(1000), Parameters::RFC5348)),
        ("damping = false", (Bytes::new(1000), Parameters { sqrt_rtt_weight: None, ..Parameters::RFC5348 })),
    ] {
        let model = model(&path("kind = \"tcp\"", &format!("kind = \"tfrc\"\n{settings}")));
        let found = match model.flows[0].kind {
            Kind::Tfrc { size, parameters, .. } => (size, parameters),
            ref other => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn a_scheme_says_over_how_many_connections() {
    let control = |scheme: &str| {
        let model = model(&path("kind = \"tcp\"", &format!("kind = \"tfrc\"\nscheme = {scheme}")));
        match model.flows[0].kind {
            Kind::Tfrc { parameters, scheme, .. } => (parameters.filter, scheme),
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(control("{ kind = \"fixed\", connections = 8 }"), (Filter::All, Scheme::Fixed(8)));
    assert_eq!(control("\"multfrc\""), (Filter::All, Scheme::MULTFRC));
    assert_eq!(control("\"aio-tfrc\""), (Filter::First, Scheme::AIO_TFRC));
    let of_all = "{ kind = \"aio-tfrc\", filter = \"all\" }";
    assert_eq!(control(of_all), (Filter::All, Scheme::AIO_TFRC));
    assert_eq!(control("\"auto\""), (Filter::All, Scheme::AUTO));
    let keys = "increase = 6, decrease = 2, round_trips = 20, tolerance = 0.1, most_connections = 9, \
                least_round_trip = \"sample\"";
    let expected = multfrc::Parameters {
        round_trips: 20,
        tolerance: Ratio::from_f64(0.1),
        most_connections: 9,
        least: multfrc::Least::Sample,
        ..multfrc::Parameters::FAST
    };
    assert_eq!(control(&format!("{{ kind = \"multfrc\", {keys} }}")).1, Scheme::Several(expected));
}

#[test]
fn a_paced_control_goes_with_what_it_can_keep_to() {
    let of = |more: &str| {
        format!(
            "{PATH}\n[[flow]]\nname = \"f\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\ntcp = \
             {{ congestion = \"bbr\"{more}\n"
        )
    };
    assert!(parsed(&of(", segment = \"1200B\" }")).is_ok());
    for (more, told) in [
        (", recovery = \"ns2-sack1\" }", "ns-2's rules know no pacing"),
        (" }\ngroup = \"g\"", "a group shares windows"),
        (", initial_ssthresh = 64 }", "leave out `initial_ssthresh`"),
        (", send_jitter = \"1ms\" }", "leave out `send_jitter`"),
    ] {
        let error = match parsed(&of(more)) {
            Ok(model) => crate::Simulation::new(model).expect_err("refused").to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(told) && error.contains("`bbr`"), "{error}");
    }
}

#[test]
fn a_player_s_buffer_tunes_its_senders() {
    let stream = |tcp: &str| {
        let media = format!(
            "client = \"b\"\nservers = [\"a\"]\nrate = \"3M\"\nalgorithm = \"fixed\"\nkind \
             = \"media\"\ntcp = {tcp}"
        );
        parsed(&path("kind = \"tcp\"\nfrom = \"a\"\nto = \"b\"", &media))
    };
    let tuned =
        stream("{ congestion = \"ttfwc:0\", tuning_by_buffer = { low = \"1s\", fast = 0.7 } }").unwrap();
    let Kind::Media(media) = &tuned.flows[0].kind else { panic!("no stream") };
    let rule = media.tcp.tuning.unwrap();
    assert_eq!((rule.low, rule.high), (Duration::from_secs(1), Duration::from_secs(8)));
    assert_eq!((rule.fast.get(), rule.smooth.get()), (0.7, 0.0));
    for (wrong, expected) in [
        ("{ tuning_by_buffer = { low = \"9s\" } }", "is above `high`"),
        ("{ tuning_by_buffer = { fast = 2 } }", "from 0 to 1"),
    ] {
        let error = stream(wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_reader_takes_at_its_own_pace() {
    let stream = |reader: &str| {
        let media = format!(
            "client = \"b\"\nservers = [\"a\"]\nrate = \"3M\"\nalgorithm = \"auto\"\nkind \
             = \"media\"\nreader = {reader}"
        );
        parsed(&path("kind = \"tcp\"\nfrom = \"a\"\nto = \"b\"", &media))
    };
    let acts = "[{ at = \"10s\", pause = true }, { at = \"20s\", pause = false }, \
                { at = \"30s\", speed = 2 }, \
                { at = \"30s\", seek = \"5m\" }, { at = \"40s\", leave = true }]";
    let scenes = "scenes = [{ at = \"5s\", rate = \"6Mbps\" }, { at = \"9s\", rate = \"1Mbps\" }]";
    let model =
        stream(&format!("{{ buffer = \"2MB\", takes = \"20Mbps\", acts = {acts}, {scenes} }}")).unwrap();
    let Kind::Media(media) = &model.flows[0].kind else { panic!("no stream") };
    let reader = media.reader.as_ref().unwrap();
    assert_eq!((reader.buffer, reader.takes), (Bytes::new(2_000_000), Some(Rate::from_mbps(20))));
    let at = Duration::from_secs;
    let expected = [
        (at(10), Act::Pause(true)),
        (at(20), Act::Pause(false)),
        (at(30), Act::Speed(2.0)),
        (at(30), Act::Seek(at(300))),
        (at(40), Act::Leave),
    ];
    assert_eq!(reader.acts, expected);
    assert_eq!(reader.scenes, [(at(5), Rate::from_mbps(6)), (at(9), Rate::from_mbps(1))]);
    for (wrong, expected) in [
        ("{ buffer = \"0B\" }", "a size from 1 B"),
        ("{ bufer = \"1MB\" }", "did you mean `buffer`"),
        ("{ acts = [{ at = \"2s\", pause = true }, { at = \"1s\", pause = false }] }", "forward in time"),
        ("{ acts = [{ at = \"2s\" }] }", "an act is one of"),
        ("{ acts = [{ at = \"2s\", speed = 2, pause = true }] }", "an act is one of"),
        ("{ acts = [{ at = \"2s\", leave = false }] }", "an act is one of"),
        ("{ acts = [{ at = \"2s\", speed = 0 }] }", "from 0.1 to 16"),
        ("{ acts = [{ pause = true }] }", "needs the key `at`"),
        ("{ scenes = [{ at = \"2s\" }] }", "needs the key `rate`"),
        (
            "{ scenes = [{ at = \"2s\", rate = \"1M\" }, { at = \"1s\", rate = \"1M\" }] }",
            "forward in play time",
        ),
    ] {
        let error = stream(wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn marks_go_with_who_answers_them() {
    let of = |flow: &str| {
        let text = format!("{PATH}\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n");
        parsed(&text).map_err(|error| error.to_string())
    };
    let model = of("kind = \"tcp\"\ntcp = { congestion = \"ttfwc:0.9\", ecn = \"classic\" }").unwrap();
    let Kind::Tcp { tcp, .. } = &model.flows[1].kind else { panic!("no TCP") };
    assert_eq!(tcp.ecn, Some(Ecn::Classic));
    assert!(of("kind = \"tcp\"\ntcp = { congestion = \"dctcp\", ecn = \"l4s\" }").is_ok());
    for (flow, told) in [
        ("kind = \"tcp\"\ntcp = { congestion = \"dctcp\" }", "say `ecn = \"l4s\"`"),
        ("kind = \"tcp\"\ntcp = { congestion = \"dctcp\", ecn = \"classic\" }", "goes by how much is marked"),
        ("kind = \"tcp\"\ntcp = { ecn = \"l4s\" }", "`l4s` is for `dctcp`"),
        ("kind = \"tcp\"\ntcp = { ecn = \"clasic\" }", "did you mean 'classic'?"),
        ("kind = \"tcp\"\ntcp = { ecn = \"classic\", congestion = \"bbr\" }", "`bbr` has no answer to marks"),
        (
            "kind = \"tcp\"\ntcp = { ecn = \"classic\", recovery = \"ns2-sack1\" }",
            "ns-2's recovery knows no marks",
        ),
        ("kind = \"tcp\"\ntcp = { ecn = \"classic\" }\ngroup = \"g\"", "a group hears of no marks"),
        ("kind = \"udp\"\nrate = \"1M\"\necn = \"classic\"", "datagrams answer no marks"),
        ("kind = \"tfrc\"\necn = \"classic\"", "TFRC answers no marks here"),
    ] {
        let error = of(flow).unwrap_err();
        let line = PATH.lines().count() + 5 + flow.lines().count();
        assert!(error.contains(told) && error.contains(&format!("test.toml:{line}:")), "{error}");
    }
}
