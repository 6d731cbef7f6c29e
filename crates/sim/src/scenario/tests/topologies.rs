//! Networks of a shape, and what is drawn for them.

use super::*;

#[test]
fn a_dumbbell_with_many_flows() {
    let model = model(
        r#"
        [run]
        duration = "10s"
        seed = 7
        warm_up = "1s"
        sampling = "100ms"
        [topology]
        kind = "dumbbell"
        pairs = 3
        bottleneck = { rate = "15Mbps", delay = "20ms", queue = "50 packets", discipline = "codel" }
        access = { rate = "100Mbps", delay = "1ms" }
        receiver_delay_spread = "3ms"
        [tcp.ns2]
        segment = "1000B"
        congestion = "reno"
        delayed_ack = false
        rto = { initial = "3s" }
        [[flow]]
        name = "long"
        kind = "tcp"
        count = 3
        from = "sender{i}"
        to = "receiver{i}"
        tcp = "ns2"
        start = ["0s", "1s"]
        stop = "5s"
        [[flow]]
        name = "noise"
        kind = "udp"
        from = "sender1"
        to = "receiver2"
        rate = "80k"
        pattern = "exponential"
        on = "500ms"
        off = "500ms"
        "#,
    );
    let names: Vec<_> = model.nodes.iter().map(|node| &node.name[..]).collect();
    assert_eq!(names[..4], ["left", "right", "sender1", "receiver1"]);
    assert_eq!((model.nodes.len(), model.links.len()), (8, 14));
    let delay = |name: &str| model.links.iter().find(|link| link.name == name).unwrap().delay.as_micros();
    let delays = ["right-receiver1", "right-receiver2", "receiver3-right"].map(delay);
    assert_eq!(delays, [1000, 2500, 4000]);
    assert_eq!(model.flows[2].name, "long3");
    assert!(matches!(model.flows[2].start, When::Between(_, _)));
    let Kind::Tcp { from, to, tcp, .. } = &model.flows[2].kind else { panic!("no TCP") };
    assert_eq!((names[*from], names[*to]), ("sender3", "receiver3"));
    assert_eq!((tcp.congestion, tcp.delayed_ack, tcp.segment), (Congestion::Reno, None, Bytes::new(1000)));
    assert_eq!((tcp.rto.initial, tcp.rto.least), (Duration::from_secs(3), Tcp::DEPLOYED.rto.least));
    assert!(matches!(
        model.flows[3].kind,
        Kind::Udp { pattern: Pattern::Exponential { .. }, size, .. } if size == Bytes::new(1000)
    ));
    assert_eq!(parse_seeded(PATH, Some(9)).unwrap().run.seed, 9);
}

#[test]
fn a_parking_lot_has_a_pair_around_every_hop() {
    let model = model(
        r#"
        run = { duration = "1s" }
        topology = { kind = "parking-lot", hops = 2, bottleneck = { rate = "10M", delay = "5ms" } }
        [[flow]]
        name = "through"
        kind = "tcp"
        from = "sender0"
        to = "receiver0"
        [[flow]]
        name = "hop"
        kind = "tcp"
        count = 2
        from = "sender{i}"
        to = "receiver{i}"
        size = "1MB"
        "#,
    );
    assert_eq!((model.nodes.len(), model.links.len()), (3 + 6, 2 * (2 + 6)));
    assert!(
        matches!(&model.flows[1].kind, Kind::Tcp { source: Source::File(size), .. } if size.get() == 1_000_000)
    );
}

#[test]
fn a_random_network_is_the_seed_s() {
    let model = model(RANDOM);
    assert_eq!(model.nodes.len(), 120);
    let access: Vec<_> = model.links.iter().filter(|link| link.name.starts_with("access")).collect();
    assert_eq!(access.len(), 100);
    let rates =
        [400, 1000].map(|rate| access.iter().filter(|link| link.rate == Rate::from_kbps(rate)).count());
    assert!(rates[0] + rates[1] == 100 && rates[0] > 20 && rates[1] > 20, "{rates:?}");
    let mut sizes = Vec::new();
    for flow in &model.flows {
        let Kind::Media(media) = &flow.kind else { panic!("no stream") };
        assert!(media.client != media.servers[0] && media.servers[0] != media.servers[1]);
        sizes.push(media.size.unwrap().get());
    }
    assert!(sizes.iter().all(|size| (10_000_000..=100_000_000).contains(size)));
    assert!(sizes.iter().min().unwrap() * 2 < *sizes.iter().max().unwrap(), "{sizes:?}");
    assert_eq!(parse_seeded(RANDOM, Some(1)).unwrap(), model);
    let other = parse_seeded(RANDOM, Some(2)).unwrap();
    assert!(other.links != model.links && other.flows != model.flows);
}

#[test]
fn what_a_flow_draws_moves_no_other() {
    let media = |text: &str| -> Vec<_> {
        let flows = model(text).flows.into_iter();
        flows.filter_map(|flow| if let Kind::Media(media) = flow.kind { Some(media) } else { None }).collect()
    };
    let list = "servers = [\"access{random}\", \"access{random}\"]";
    let counted = |count: u32| {
        RANDOM.replace(list, &format!("servers = {{ node = \"access{{random}}\", count = {count} }}"))
    };
    let (two, also_two, five) = (media(RANDOM), media(&counted(2)), media(&counted(5)));
    assert_eq!(two, also_two);
    for (two, five) in two.iter().zip(&five) {
        assert_eq!(two.client, five.client);
        assert!(five.servers.len() == 5 && five.servers.starts_with(&two.servers));
    }
    let fewer = media(&RANDOM.replace("count = 50", "count = 20"));
    assert_eq!(fewer, two[..20]);
    let error = parsed(&counted(257)).unwrap_err().to_string();
    assert!(error.contains("256"), "{error}");
}
