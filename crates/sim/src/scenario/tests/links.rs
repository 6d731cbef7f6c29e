//! Links: their queues, losses and wires.

use super::*;

#[test]
fn a_path_with_defaults() {
    let model = model(PATH);
    assert_eq!(model.run.duration, Duration::from_secs(10));
    assert_eq!(
        (model.run.seed, model.run.sampling, model.run.warm_up),
        (1, Duration::from_secs(1), Duration::ZERO)
    );
    let names: Vec<_> = model.links.iter().map(|link| (&link.name[..], link.from, link.to)).collect();
    assert_eq!(names, [("a-b", 0, 1), ("b-a", 1, 0)]);
    assert_eq!(model.links[1].rate, Rate::from_mbps(6));
    assert_eq!(model.links[0].queue.limit, Limit::Packets(100));
    let flow = &model.flows[0];
    assert_eq!((flow.start, flow.stop), (When::At(Time::ZERO), None));
    let expected = Kind::Tcp { from: 0, to: 1, tcp: Tcp::DEPLOYED, source: Source::Greedy };
    assert_eq!(flow.kind, expected);
}

#[test]
fn the_other_direction_is_the_same_but_for_what_is_said() {
    let text = path(
        "delay = \"20ms\"",
        r#"delay = "20ms"
queue = "64KiB"
discipline = { kind = "red", low = 3 }
loss = 0.01
changes = [{ at = "1s", down = true }, { at = "2s", down = false, loss = 0 }, { at = "3s", rate = "1M" }]
reverse = { rate = "1Mbps", loss = 0, name = "back" }"#,
    );
    let model = model(&text);
    let (there, back) = (&model.links[0], &model.links[1]);
    assert_eq!((&back.name[..], back.rate, back.delay), ("back", Rate::from_mbps(1), there.delay));
    assert_eq!((there.queue, back.queue.limit), (back.queue, Limit::Bytes(Bytes::kib(64))));
    let Discipline::Red(red) = there.queue.discipline else { panic!("no RED") };
    assert_eq!((red.low, red.high), (3.0, 15.0));
    assert_eq!((&there.loss, &back.loss), (&LossModel::Bernoulli(0.01), &LossModel::None));
    assert!(back.changes.is_empty(), "a rate of its own has its own changes");
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let change = |seconds, rate| Change { at: at(seconds), rate: Some(rate), delay: None, loss: None };
    let up = Change { loss: Some(LossModel::None), ..change(2, Rate::from_mbps(6)) };
    assert_eq!(there.changes, [change(1, Rate::ZERO), up, change(3, Rate::from_mbps(1))]);
}

#[test]
fn disciplines_have_defaults() {
    let of = |text: &str| {
        let model = parsed(&path("delay =", &format!("discipline = {text}\ndelay ="))).unwrap();
        model.links[0].queue.discipline
    };
    let ms = Duration::from_millis;
    assert_eq!(of(r#""pie""#), Discipline::Pie(Pie { target: ms(15), ecn: false }));
    assert_eq!(
        of(r#"{ kind = "pie", target = "20ms", ecn = true }"#),
        Discipline::Pie(Pie { target: ms(20), ecn: true })
    );
    let dualpi2 = DualPi2 {
        target: ms(15),
        coupling: 2.0,
        threshold: Duration::from_micros(800),
        range: Duration::from_micros(400),
    };
    assert_eq!(of(r#""dualpi2""#), Discipline::DualPi2(dualpi2));
    let step = of(r#"{ kind = "dualpi2", coupling = 3, range = "0s" }"#);
    assert_eq!(step, Discipline::DualPi2(DualPi2 { coupling: 3.0, range: Duration::ZERO, ..dualpi2 }));
    let codel = CoDel { target: ms(5), interval: ms(100), ecn: false };
    assert_eq!(of(r#""fq-codel""#), Discipline::FqCoDel(FqCoDel { codel, quantum: Bytes::new(1514) }));
    let codel = CoDel { target: ms(8), ecn: true, ..codel };
    let other = of(r#"{ kind = "fq-codel", target = "8ms", ecn = true, quantum = "300B" }"#);
    assert_eq!(other, Discipline::FqCoDel(FqCoDel { codel, quantum: Bytes::new(300) }));
    assert_eq!(of(r#""codel""#), Discipline::CoDel(CoDel { target: ms(5), interval: ms(100), ecn: false }));
}

#[test]
fn losses_have_kinds() {
    let of = |loss: &str| {
        let text = path("delay = \"20ms\"", &format!("delay = \"20ms\"\nloss = {loss}"));
        parsed(&text).map(|model| model.links[0].loss.clone())
    };
    let gilbert = of(r#"{ kind = "gilbert-elliott", to_bad = 0.01, to_good = 0.3 }"#).unwrap();
    assert!(
        matches!(gilbert, LossModel::GilbertElliott(chain) if chain.loss_bad == 1.0 && chain.loss_good == 0.0)
    );
    assert_eq!(of(r#"{ kind = "listed", packets = [0, 7] }"#).unwrap(), LossModel::Listed(vec![0, 7]));
    assert_eq!(of("1").unwrap(), LossModel::Bernoulli(1.0));
    for wrong in ["-0.1", "1.01", "nan", "inf", r#"{ kind = "listed", packets = [7, 7] }"#, "\"0.1\""] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_trace_takes_the_place_of_the_rate() {
    let model =
        model(&path("rate = \"6Mbps\"", "trace = \"down.trace\"\nreverse = { trace = \"rates.csv\" }"));
    let opportunities = model.links[0].opportunities.as_ref().unwrap();
    assert_eq!((opportunities.at.len(), opportunities.period), (2, Duration::from_millis(10)));
    assert_eq!(model.links[0].rate, Rate::from_kbps(2400));
    assert!(model.links[1].opportunities.is_none());
    assert_eq!((model.links[1].rate, model.links[1].changes.len()), (Rate::from_mbps(6), 2));
    for (trace, expected) in [
        ("trace = \"none\"", "cannot read the trace none"),
        ("trace = \"empty\"", "the trace empty is empty"),
        ("trace = \"back\"", "the trace back, line 2: the time goes back"),
        ("trace = \"down.trace\"\nrate = \"1M\"", "does not go with `trace`"),
        ("trace = \"rates.csv\"\nchanges = [{ at = \"1s\", rate = \"1M\" }]", "by the trace only"),
    ] {
        let error = error(&path("rate = \"6Mbps\"", trace));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn jitter_and_policers_are_read_for_each_direction() {
    let of = |text: &str| parsed(&path("delay =", &format!("{text}\ndelay ="))).unwrap().links;
    let ms = Duration::from_millis;
    let links = of("duplicate = 0.1\nreverse = { duplicate = 0 }");
    assert_eq!((links[0].duplicate, links[1].duplicate), (0.1, 0.0));
    let links = of(
        "jitter = \"5ms\"\npolicer = { rate = \"2Mbps\", burst = \"64KiB\" }\nreverse = { policer = false }",
    );
    let uniform = Jitter { spread: Spread::Uniform { most: ms(5) }, reorders: false };
    assert_eq!((links[0].jitter, links[1].jitter), (Some(uniform), Some(uniform)));
    let policer = TokenBucket { rate: Rate::from_mbps(2), burst: Bytes::kib(64) };
    assert_eq!((links[0].policer, links[1].policer), (Some(policer), None));
    let normal = r#"jitter = { kind = "normal", mean = "5ms", deviation = "2ms", reorder = true }
reverse = { jitter = "0ms" }"#;
    let links = of(normal);
    let spread = Spread::Normal { mean: ms(5), deviation: ms(2) };
    assert_eq!((links[0].jitter, links[1].jitter), (Some(Jitter { spread, reorders: true }), None));
    let exponential = of(r#"jitter = { kind = "exponential", mean = "3ms" }"#);
    assert_eq!(exponential[0].jitter.unwrap().spread, Spread::Exponential { mean: ms(3) });
}
