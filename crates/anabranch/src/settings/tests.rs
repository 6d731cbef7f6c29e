//! What a command line comes to: the table has every option of `play`, `fetch` and `proxy` with a value that
//! is taken and one that is not.

use anabranch_congestion::vps::Weight;
use anabranch_film::interval::Interval;
use anabranch_film::mul;
use anabranch_film::playback::StallRule;
use anabranch_http::{ExtraHeaders, HeaderError, Target};
use anabranch_live::fec::Code;
use anabranch_sockets::Interface;
use anabranch_units::{Rate, Ratio};
use clap::FromArgMatches;

use super::*;
use crate::arguments::{
    Cli, Command, Digest, Endpoint, FecArgument, FetchArguments, Kept, Place, RungChooser, SchemeName,
    Switch, TellRate, command,
};

fn parse(line: &str) -> Result<Command, String> {
    let words = line.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace('_', " "));
    let matches = command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    Ok(Cli::from_arg_matches(&matches).map_err(|error| error.to_string())?.command)
}

fn fetch(options: &str) -> Result<FetchArguments, String> {
    match parse(&format!("anabranch fetch {options} http://a.example/film.mp4"))? {
        Command::Fetch(arguments) => Ok(arguments),
        other => panic!("{other:?}"),
    }
}

fn resolve(options: &str) -> Result<Settings, String> {
    let arguments = fetch(options)?;
    settings(&arguments.urls, &arguments.source, Purpose::Fetch).map_err(|failure| failure.to_string())
}

fn basic(options: &str) -> multitcp::Parameters {
    match resolve(options).unwrap().algorithm {
        RateControl::Basic(parameters) => parameters,
        other => panic!("{other:?}"),
    }
}

fn advanced(options: &str) -> multitcp::AdvancedParameters {
    match resolve(options).unwrap().algorithm {
        RateControl::Advanced(parameters) => parameters,
        other => panic!("{other:?}"),
    }
}

fn rome(options: &str) -> (rome::Parameters, Bytes) {
    match resolve(&format!("--algorithm rome {options}")).unwrap().algorithm {
        RateControl::Rome(parameters, segment) => (parameters, segment),
        other => panic!("{other:?}"),
    }
}

fn auto(options: &str) -> auto::Parameters {
    match resolve(options).unwrap().algorithm {
        RateControl::Auto(parameters) => parameters,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mul_takes_the_papers_parameters_and_a_limit() {
    let mul = |options: &str| match resolve(&format!("--algorithm mul {options}")).unwrap().algorithm {
        RateControl::Mul(parameters) => parameters,
        other => panic!("{other:?}"),
    };
    assert_eq!(mul(""), mul::Parameters::PAPER);
    assert_eq!(mul("--connections 7").most_connections, 7);
    assert!(resolve("--algorithm mul --delta 8rtt").unwrap_err().contains("--delta needs"));
}

#[test]
fn fixed_takes_a_number_and_nothing_else() {
    let fixed = |options: &str| match resolve(&format!("--algorithm fixed {options}")).unwrap().algorithm {
        RateControl::Fixed(connections) => connections,
        other => panic!("{other:?}"),
    };
    assert_eq!((fixed(""), fixed("--connections 7")), (4, 7));
    assert!(resolve("--algorithm fixed --margin 0.1").unwrap_err().contains("--margin needs"));
}

#[test]
fn without_options_the_engines_defaults_hold() {
    let (ours, theirs) = (resolve("").unwrap(), Settings::new(Vec::new()));
    assert_eq!(ours.pace, Pace::Max);
    assert_eq!(auto(""), auto::Parameters::default());
    assert_eq!(
        (ours.per_host, ours.memory, ours.playback),
        (theirs.per_host, theirs.memory, theirs.playback)
    );
    assert_eq!((ours.connect_timeout, ours.give_up_after), (theirs.connect_timeout, theirs.give_up_after));
    assert_eq!((ours.stripe, ours.headers), (theirs.stripe, theirs.headers));
    assert_eq!(basic("--algorithm basic"), multitcp::Parameters::default());
    assert_eq!(advanced("--algorithm advanced"), multitcp::AdvancedParameters::default());
    assert_eq!(rome("").0, rome::Parameters::default());
}

/// The help names the defaults of the engine; here they are compared.
#[test]
fn the_help_tells_the_true_defaults() {
    let engine = Settings::new(Vec::new());
    let StallRule::Rebuffer { resume_at } = engine.playback.stall else { panic!() };
    let mut cli = command();
    let fetch = cli.find_subcommand_mut("fetch").unwrap();
    let seconds = |time: Duration| format!("{}s", time.as_millis() / 1000);
    for (option, default) in [
        ("timeout", seconds(engine.give_up_after)),
        ("connect_timeout", seconds(engine.connect_timeout)),
        ("per_host", engine.per_host.to_string()),
        ("memory", format!("{}MiB", engine.memory.get() >> 20)),
        ("prebuffer", seconds(engine.playback.prebuffer)),
        ("stall_rule", format!("rebuffer:{}", seconds(resume_at))),
    ] {
        let argument = fetch.get_arguments().find(|argument| argument.get_id() == option).unwrap();
        let help = argument.get_help().unwrap().to_string();
        assert!(help.ends_with(&format!("[default: {default}]")), "{option}: {help}");
    }
}

#[test]
fn a_rate_is_a_limit_for_a_file_and_the_medias_for_a_player() {
    let rate = Rate::from_mbps(3);
    for (typed, fetched, played) in [
        ("", Pace::Max, Pace::Media(None)),
        ("--rate auto", Pace::Media(None), Pace::Media(None)),
        ("--rate max", Pace::Max, Pace::Max),
        ("--rate 3M", Pace::Limit(rate), Pace::Media(Some(rate))),
        ("--rate 3Mbps", Pace::Limit(rate), Pace::Media(Some(rate))),
    ] {
        let source = fetch(typed).unwrap().source;
        assert_eq!(pace(source.rate, Purpose::Fetch), fetched, "{typed}");
        assert_eq!(pace(source.rate, Purpose::Play), played, "{typed}");
    }
}

#[test]
fn presets_are_the_tables_and_single_values_change_them() {
    assert_eq!(basic("--preset table8.1"), multitcp::Parameters::TABLE_8_1);
    assert_eq!(basic("--preset table8.2"), multitcp::Parameters::TABLE_8_2);
    assert_eq!(advanced("--preset table8.3"), multitcp::AdvancedParameters::TABLE_8_3);
    assert_eq!(advanced("--algorithm advanced --preset table8.1").basic, multitcp::Parameters::TABLE_8_1);
    let changed = basic("--preset table8.2 --connections 3 --delta 8rtt --alpha 0.5 --lambda 56k --f 4");
    let wanted = multitcp::Parameters {
        connections: 3,
        interval: Interval::RoundTrips(8),
        smoothing: Ratio::new(1, 2),
        threshold: Rate::from_kbps(56),
        spike_factor: Ratio::new(4, 1),
    };
    assert_eq!(changed, wanted);
    assert_eq!(
        basic("--algorithm basic --delta 300ms").interval,
        Interval::Fixed(Duration::from_millis(300))
    );
    let changed = advanced("--preset table8.3 --cf 7 --x 2.5 --start-connections 2");
    assert_eq!(changed.congestion_factor, Ratio::new(7, 1));
    assert_eq!((changed.silence, changed.initial_connections), (Ratio::new(5, 2), 2));
}

#[test]
fn parameters_of_rome_and_auto() {
    let (parameters, segment) = rome(
        "--connections 4 --model strict --rate-low 0.9 --rate-high 1.2 --segment-size 32KiB --buffer-low 2s \
         --buffer-high 9s --delta 2rtt --alpha 0",
    );
    assert_eq!((parameters.connections, parameters.model), (4, rome::Model::StrictFairness));
    assert_eq!((parameters.low, parameters.high), (Ratio::new(9, 10), Ratio::new(12, 10)));
    assert_eq!(segment, Bytes::kib(32));
    assert_eq!(
        (parameters.buffer_low, parameters.buffer_high),
        (Duration::from_secs(2), Duration::from_secs(9))
    );
    assert_eq!((parameters.interval, parameters.smoothing), (Interval::RoundTrips(2), Ratio::ZERO));
    assert_eq!(rome("--model compensation").0.model, rome::Model::Compensation);
    let parameters = auto(
        "--algorithm auto --connections 6 --start-connections 2 --margin 0.1 --buffer-low 3s \
         --buffer-high 12s",
    );
    assert_eq!((parameters.most, parameters.at_start), (6, 2));
    assert_eq!(parameters.margin, Ratio::new(1, 10));
    assert_eq!(parameters.buffer, (Duration::from_secs(3), Duration::from_secs(12)));
}

#[test]
fn network_and_playback() {
    let settings = resolve(
        "--interface eth0 --interface 10.0.0.1 -H A:_b --header C:d --user-agent me --timeout 5s \
         --connect-timeout 2s \
         --per-host 3 --no-stripe --http3-only --memory 64MiB --prebuffer 4s --stall-rule pause:5s",
    )
    .unwrap();
    assert_eq!(
        settings.interfaces,
        [Interface::Name("eth0".into()), Interface::Address([10, 0, 0, 1].into())]
    );
    let mut headers = ExtraHeaders::default();
    let own = Target::new(&"http://a.example/".parse().unwrap()).unwrap();
    for line in ["A: b", "C: d"] {
        headers.add_for(&[own.origin().clone()], line).unwrap();
    }
    headers.add("User-Agent: me").unwrap();
    assert_eq!(settings.headers, headers);
    assert_eq!(settings.give_up_after, Duration::from_secs(5));
    assert_eq!(settings.connect_timeout, Duration::from_secs(2));
    assert_eq!((settings.per_host, settings.stripe, settings.memory), (3, false, Bytes::mib(64)));
    assert!(settings.http3);
    assert_eq!(settings.playback.prebuffer, Duration::from_secs(4));
    assert_eq!(settings.playback.stall, StallRule::FixedPause(Duration::from_secs(5)));
    let rule = resolve("--stall-rule rebuffer:1s").unwrap().playback.stall;
    assert_eq!(rule, StallRule::Rebuffer { resume_at: Duration::from_secs(1) });
    assert_eq!(resolve("--connections 20").unwrap().per_host, 20);
    assert_eq!(resolve("--connections 20 --per-host 4").unwrap().per_host, 4);
}

#[test]
fn headers_are_bound_to_hosts() {
    let origin = |url: &str| Target::new(&url.parse().unwrap()).unwrap().origin().clone();
    let settings =
        resolve("--header-for https://b.example:444 A:_b --header-for http://c.example/ C:d -H E:f").unwrap();
    let mut headers = ExtraHeaders::default();
    headers.add_for(&[origin("http://a.example")], "E: f").unwrap();
    headers.add_for(&[origin("https://b.example:444")], "A: b").unwrap();
    headers.add_for(&[origin("http://c.example")], "C: d").unwrap();
    assert_eq!(settings.headers, headers);
    for wrong in ["b.example", "ftp://b.example", "https://b.example/path", "https://u:p@b.example"] {
        let said = resolve(&format!("--header-for {wrong} A:_secret")).unwrap_err();
        assert!(said.contains("--header-for https://a.example") && !said.contains("secret"), "{said}");
    }
    let said = resolve("--header-for https://b.example secret").unwrap_err();
    assert!(said.contains(&HeaderError::Unreadable.to_string()), "{said}");
    assert!(resolve("--header-for https://b.example").is_err());
    // proxy has no URL that a header could be for.
    let Command::Proxy(arguments) = parse("anabranch proxy -H A:_secret").unwrap() else {
        panic!("no proxy")
    };
    let said = super::settings(&[], &arguments.source, Purpose::Play).unwrap_err().to_string();
    assert!(said.contains("--header-for https://HOST") && !said.contains("secret"), "{said}");
}

#[test]
fn who_may_ask() {
    let line = "anabranch proxy --allow-origin https://player.example/ --allow-origin null --allow-host nas";
    let Command::Proxy(arguments) = parse(line).unwrap() else { panic!("no proxy") };
    let origins: Vec<_> = arguments.access.allow_origin.into_iter().map(|origin| origin.0).collect();
    assert_eq!(origins, ["https://player.example", "null"]);
    assert_eq!(arguments.access.allow_host, ["nas"]);
    let said = parse("anabranch play --allow-origin * http://a.example/").unwrap_err();
    assert!(said.contains("https://player.example"), "{said}");
}

#[test]
fn options_of_fetch() {
    let arguments = fetch("-o - --force --restart --stats s.jsonl --metrics 127.0.0.1:9").unwrap();
    assert_eq!(arguments.output, Some(Place::Standard));
    assert!(arguments.force && arguments.restart);
    assert_eq!(arguments.report.stats, Some(Place::File("s.jsonl".into())));
    assert_eq!(arguments.report.metrics, Some(([127, 0, 0, 1], 9).into()));
    assert_eq!(fetch("--output film").unwrap().output, Some(Place::File("film".into())));
    let arguments = fetch("").unwrap();
    assert!(
        arguments.output.is_none() && !arguments.force && !arguments.restart && arguments.digest.is_none()
    );
}

/// SHA-256 of nothing, in every form.
#[test]
fn digests_in_every_form() {
    let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    let digests: Vec<Digest> = [
        format!("sha-256={hex}"),
        format!("SHA-256={}", hex.to_uppercase()),
        format!("sha-256={base64}"),
        format!("sha-256=:{base64}:"),
    ]
    .map(|typed| fetch(&format!("--digest {typed}")).unwrap().digest.unwrap())
    .into();
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    assert_eq!(digests[0].to_string(), format!("sha-256={hex}"));
}

#[test]
fn options_of_serve_and_play_and_proxy() {
    let Command::Serve(serve) = parse("anabranch serve /srv").unwrap() else { panic!() };
    assert!(serve.http.is_empty() && serve.https.is_empty() && serve.access_log.is_none());
    let library = anabranch_server::Config::new("/srv", ([127, 0, 0, 1], 0).into());
    assert_eq!(as_usize(serve.max_connections), library.max_connections);
    assert_eq!(as_usize(serve.max_connections_per_client), library.max_connections_per_client);
    assert_eq!(serve.max_header.as_usize(), library.max_header_bytes);
    assert_eq!(Duration::from(library.header_timeout), serve.header_timeout);
    assert_eq!(Duration::from(library.idle_timeout), serve.idle_timeout);
    assert_eq!(Duration::from(library.write_timeout), serve.write_timeout);
    assert_eq!(Duration::from(library.stop_grace), serve.stop_grace);
    let Command::Serve(serve) = parse(
        "anabranch serve . --http [::1]:80 --http 0.0.0.0:80 --https 0.0.0.0:443 --cert c --key k \
         --access-log - \
         --h3 0.0.0.0:443 --congestion ttfwc:0.9 --weights w --max-connections 9 \
         --max-connections-per-client 2 --max-header 8KiB --header-timeout 1s --idle-timeout 2s \
         --write-timeout 3s --stop-grace 4s --shape-rate 1M --shape-delay 50ms --max-rate 8M --max-rate-per-client 20M \
         --metrics 127.0.0.1:9",
    )
    .unwrap() else {
        panic!()
    };
    assert_eq!((serve.http.len(), serve.https.len(), serve.h3.len(), serve.max_connections), (2, 1, 1, 9));
    assert_eq!(serve.congestion.to_string(), "ttfwc:0.9");
    assert_eq!(
        (serve.shape_rate, serve.shape_delay),
        (Some(Rate::from_mbps(1)), Some(Duration::from_millis(50)))
    );
    assert_eq!(
        (serve.max_rate, serve.max_rate_per_client),
        (Some(Rate::from_mbps(8)), Some(Rate::from_mbps(20)))
    );
    let error = parse("anabranch serve . --max-rate 0").map(|_| ()).expect_err("nothing would be sent");
    assert!(error.contains("above zero"), "{error}");
    let Command::Play(play) =
        parse("anabranch play --listen [::1]:9 --player mpv_{} --rung here http://a/ http://b/").unwrap()
    else {
        panic!()
    };
    assert_eq!((play.urls.len(), play.player.as_deref()), (2, Some("mpv {}")));
    assert_eq!(play.rung, RungChooser::Here);
    let error = parse("anabranch play --rung best http://a/").map(|_| ()).expect_err("no such chooser");
    assert!(error.contains("[possible values: auto, player, here]"), "{error}");
    let Command::Proxy(proxy) = parse("anabranch proxy").unwrap() else { panic!() };
    assert_eq!(proxy.listen, ([127, 0, 0, 1], 8090).into());
}

#[cfg(feature = "sim")]
#[test]
fn a_simulation_takes_a_seed_and_places_for_its_files() {
    for (line, hint) in [
        ("anabranch sim", "<SCENARIO.toml>"),
        ("anabranch sim --loss-events net.toml", "--out"),
        ("anabranch sim --seed -1 net.toml", "-1"),
    ] {
        let error = parse(line).map(|_| ()).expect_err(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
    let line = "anabranch sim --seed 7 --out results --trace p.pcapng --loss-events net.toml";
    let Command::Sim(sim) = parse(line).unwrap() else { panic!() };
    let paths = (sim.scenario.to_str(), sim.out.as_deref(), sim.trace.as_deref());
    assert_eq!(paths, (Some("net.toml"), Some("results".as_ref()), Some("p.pcapng".as_ref())));
    assert_eq!((sim.seed, sim.loss_events), (Some(7), true));
}

#[test]
fn what_makes_no_sense_is_refused_and_the_error_says_what_would() {
    for (options, hint) in [
        ("--rate fast", "3M"),
        ("--rate 0", "3M"),
        ("--connections 0", "1..=256"),
        ("--connections 257", "1..=256"),
        ("--per-host 0", "1..=256"),
        ("--algorithm best", "rome"),
        ("--preset table9", "table8.1"),
        ("--delta 1ms", "10 ms"),
        ("--delta 0rtt", "8rtt"),
        ("--delta soon", "300ms"),
        ("--alpha 1", "below 1"),
        ("--alpha NaN", "below 1"),
        ("--lambda x", "800k"),
        ("--f 2", "above 2"),
        ("--cf 0", "above 0"),
        ("--x -1", "x"),
        ("--start-connections 0", "1..=256"),
        ("--model nice", "strict"),
        ("--rate-low 1.1", "0 to 1"),
        ("--rate-high 0.9", "1 to 100"),
        ("--segment-size 1", "1.0 KiB"),
        ("--buffer-low soon", "10s"),
        ("--buffer-high 0s", "above zero"),
        ("--margin 2", "0 to 1"),
        ("--interface a/b", "interface"),
        ("--header nothing", "Name: value"),
        ("--header Host:x", "cannot be set"),
        ("--user-agent a\u{7}", "plain text"),
        ("--digest md5=aa", "sha-256"),
        ("--digest sha-256=zz", "HEX"),
        ("--digest sha-256=é3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8", "HEX"),
        ("--timeout 0s", "above zero"),
        ("--connect-timeout never", "200ms"),
        ("--memory 1k", "1.0 MiB"),
        ("--prebuffer x", "10s"),
        ("--stall-rule wait", "pause:5s"),
        ("--stall-rule pause:0s", "above zero"),
        ("--metrics here", "address"),
        ("--quiet --verbose", "cannot be used with"),
        ("--connectoins 5", "--connections"),
        ("--cf 5", "--cf needs --algorithm advanced"),
        ("--algorithm rome --preset table8.1", "--preset needs --algorithm basic or --algorithm advanced"),
        ("--algorithm basic --margin 0.1", "--margin needs --algorithm auto"),
        ("--algorithm rome --f 3", "--f needs"),
        ("--buffer-low 30s", "--buffer-high"),
        ("--cacert /does/not/exist.pem", "cannot read"),
    ] {
        let error = resolve(options).expect_err(options);
        assert!(error.contains(hint), "{options}: {error}");
    }
    for (line, hint) in [
        ("anabranch fetch", "<URL>..."),
        ("anabranch fetch film.mp4", "http://"),
        ("anabranch fetch ftp://a/b", "only http: and https: are"),
        ("anabranch play http://a/ --listen nowhere", "address"),
        ("anabranch proxy http://a/", "unexpected argument"),
        ("anabranch serve", "<DIR>"),
        ("anabranch serve . --https 0.0.0.0:443", "--cert"),
        ("anabranch serve . --cert a --key b", "--https"),
        ("anabranch serve . --h3 0.0.0.0:443 --cert a", "--key"),
        ("anabranch serve . --congestion reno", "--h3"),
        ("anabranch serve . --h3 [::]:443 --cert a --key b --congestion vegas", "ttfwc:0.9"),
        ("anabranch serve . --max-header 1k", "8KiB"),
        ("anabranch serve . --max-connections 0", "1..=1000000"),
        ("anabranch demo film", "unexpected argument"),
        ("anabranch completions cobol", "bash"),
        ("anabranch broadcast", "unrecognized"),
    ] {
        let error = parse(line).map(|_| ()).expect_err(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
}

/// An option without a test is noticed here.
#[test]
fn options_of_live_media_mean_what_they_say() {
    let fingerprint = "ab".repeat(32);
    let Command::Send(send) = parse(&format!(
        "anabranch send --to a.example:9000 --input udp://127.0.0.1:5000 --rate 3M --scheme aio-tfrc --fec \
         61,50 \
         --retransmit off --latency 1s --interface eth0 --interface 10.0.0.1 --fingerprint \
         {fingerprint} --token x"
    ))
    .unwrap() else {
        panic!()
    };
    assert_eq!((send.to.as_str(), send.interface.len()), ("a.example:9000", 2));
    assert_eq!(send.input, Endpoint::Udp(([127, 0, 0, 1], 5000).into()));
    assert_eq!((send.scheme, send.retransmit), (SchemeName::AioTfrc, Switch::Off));
    assert_eq!(send.fec, FecArgument::Code(Code::new(50, 11).unwrap()));
    assert_eq!((send.rate, send.latency), (Some(Rate::from_mbps(3)), Duration::from_secs(1)));
    assert_eq!(send.fingerprint.unwrap().to_string(), fingerprint);
    assert!(!format!("{:?}", send.token).contains('x'));
    let Command::Send(send) = parse("anabranch send --to b:1 --token-file f --cacert c --stats s").unwrap()
    else {
        panic!()
    };
    assert_eq!((send.input, send.fec, send.retransmit), (Endpoint::Standard, FecArgument::Off, Switch::On));
    let Command::Send(send) = parse("anabranch send --to b:1 --scheme tfrc --as-published ").unwrap() else {
        panic!()
    };
    assert!(send.as_published && send.scheme == SchemeName::Tfrc);
    let Command::Send(send) = parse("anabranch send --to b:1 --fec auto --keep-stuffing ").unwrap() else {
        panic!()
    };
    assert_eq!((send.fec, send.keep_stuffing), (FecArgument::Auto, true));
    for (written, weight) in [("", None), ("--weight 2.5", Weight::new(2.5))] {
        let line = format!("anabranch send --to b:1 --group cameras {written}");
        let Command::Send(send) = parse(&line).unwrap() else { panic!() };
        assert_eq!((send.group.unwrap().to_string().as_str(), send.weight), ("cameras", weight));
    }
    for (written, at) in
        [("7000", TellRate::Tcp(([127, 0, 0, 1], 7000).into())), ("unix:r", TellRate::Unix("r".into()))]
    {
        let Command::Send(send) = parse(&format!("anabranch send --to b:1 --tell-rate {written}")).unwrap()
        else {
            panic!()
        };
        assert_eq!(send.tell_rate, Some(at));
    }
    let Command::Receive(receive) =
        parse("anabranch receive --listen 0.0.0.0:1 --player mpv --senders 3").unwrap()
    else {
        panic!()
    };
    assert_eq!((receive.player.as_deref(), receive.senders), (Some("mpv"), 3));
    let Command::Receive(receive) = parse(
        "anabranch receive --listen 0.0.0.0:9000 --output film.ts --latency 200ms --keep --cert c --key k \
         --metrics 127.0.0.1:1",
    )
    .unwrap() else {
        panic!()
    };
    assert_eq!(receive.output, Some(Endpoint::File("film.ts".into())));
    assert!(receive.keep && receive.latency == Duration::from_millis(200));
    let Command::Receive(receive) = parse(
        "anabranch receive --listen 0.0.0.0:1 --hls live --hls-segment 4s --hls-window 1m --hls-space 2GiB \
         --hls-part 300ms",
    )
    .unwrap() else {
        panic!()
    };
    let hls = receive.hls;
    assert_eq!((receive.output, hls.directory), (None, Some("live".into())));
    assert_eq!((hls.hls_segment, hls.hls_window), (Duration::from_secs(4), Duration::from_secs(60)));
    assert_eq!((hls.hls_space, hls.hls_part), (Bytes::mib(2048), Some(Duration::from_millis(300))));
    assert!(parse("anabranch receive --listen 0.0.0.0:1 --hls live --hls-part 5ms").is_err());
    for (written, kept) in [("none", Kept::Nowhere), ("/a/b.pem", Kept::File("/a/b.pem".into()))] {
        let Command::Receive(receive) =
            parse(&format!("anabranch receive --listen 0.0.0.0:1 --identity {written}")).unwrap()
        else {
            panic!()
        };
        assert_eq!(receive.identity, Some(kept));
    }
    for (wrong, said) in [
        ("receive --listen 0.0.0.0:1 --identity none --cert c --key k", "cannot be used with"),
        ("send", "--to"),
        ("send --to a:1 --fec 50,61", "N,K"),
        ("send --to a:1 --fec 50", "N,K"),
        ("send --to a:1 --fec 50,50", "N,K"),
        ("send --to a:1 --fec 50,0", "N,K"),
        ("send --to a:1 --fec 500,400", "128"),
        ("send --to a:1 --latency 1ms", "10 ms"),
        ("send --to a:1 --latency 2h", "60"),
        ("send --to a:1 --rate 0", "above zero"),
        ("send --to a:1 --tell-rate unix:", "unix:PATH"),
        ("send --to a:1 --group ../x", "letters, digits"),
        ("send --to a:1 --group x --weight 0", "from 0.001 to 1000"),
        ("send --to a:1 --group x --weight -1", "from 0.001 to 1000"),
        ("send --to a:1 --weight 4", "--group"),
        ("send --to a:1 --input http://a/", "udp://"),
        ("send --to a:1 --input udp://nowhere", "udp://"),
        ("send --to a:1 --fingerprint 12", "64 hexadecimal"),
        ("receive", "--listen"),
        ("receive --listen 0.0.0.0:1 --cert c", "--key"),
        ("receive --listen 0.0.0.0:1 --senders none", "1 to 64"),
        ("receive --listen 0.0.0.0:1 --player mpv --output film.ts", "cannot be used with"),
    ] {
        let error = parse(&format!("anabranch {wrong}")).unwrap_err();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}

#[test]
fn every_option_is_in_the_tests() {
    let text = include_str!("tests.rs");
    for subcommand in command().get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        for argument in subcommand.get_arguments() {
            if let Some(long) = argument.get_long() {
                assert!(text.contains(&format!("--{long} ")), "{} --{long}", subcommand.get_name());
            }
        }
    }
}

#[test]
fn secrets_are_not_shown() {
    let arguments = match parse(
        "anabranch fetch -H Authorization:_Bearer_token http://user:secret@a.example/",
    )
    .unwrap()
    {
        Command::Fetch(arguments) => arguments,
        other => panic!("{other:?}"),
    };
    let shown = format!("{arguments:?}");
    assert!(!shown.contains("token") && !shown.contains("secret") && shown.contains("a.example"), "{shown}");
}
