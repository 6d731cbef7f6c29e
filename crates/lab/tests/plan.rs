//! Experiments that are folders of one's own: what they measure, and what is said of their mistakes.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::experiments;
use anabranch_lab::outcome::{Outcome, Verdict};
use anabranch_lab::papers::Papers;
use anabranch_lab::plan::load_all;
use anabranch_lab::results::Results;
use anabranch_lab::simulate::simulate;
use anabranch_sim::scenario::Error;
use proptest::prelude::*;

const PAPER: &str = include_str!("plan_folder/paper.toml");

const SCENARIO: &str = include_str!("plan_folder/scenario.toml");

/// Over a link of 1 Mbps a constant stream of 500 kbps arrives whole, and one of 2 Mbps by its half.
const PLAN: &str = include_str!("plan_folder/plan.toml");

const PUBLISHED: &str =
    "name,x,value,told,place\nwhole,,1,all of it,section 1\nall,,1,,section 1\ncurve,500,500,,figure 1\n";

/// The folder of a paper with one experiment.
fn written(plan: &str, scenario: &str, published: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("mine/stream");
    fs::create_dir_all(&folder).unwrap();
    fs::write(directory.path().join("mine/paper.toml"), PAPER).unwrap();
    fs::write(folder.join("plan.toml"), plan).unwrap();
    fs::write(folder.join("scenario.toml"), scenario).unwrap();
    fs::write(folder.join("published.csv"), published).unwrap();
    directory
}

/// The experiments of a directory, without the program's own: those take seconds in each case.
fn load(directory: &Path) -> Result<Vec<Experiment>, Error> {
    load_all(&Papers::At(directory.to_owned()))
}

fn read(directory: &Path) -> Experiment {
    let all = load(directory).unwrap();
    all.into_iter().find(|experiment| experiment.id == "mine-stream").unwrap()
}

/// What is said of a folder, from its line on.
fn said(plan: &str, scenario: &str, published: &str) -> String {
    let directory = written(plan, scenario, published);
    let error = load(directory.path()).err().expect("a mistake that is found").to_string();
    error.replace(&format!("{}/mine/stream/", directory.path().display()), "")
}

fn outcome(experiment: &Experiment) -> Outcome {
    let mut results = Results::default();
    for job in experiment.jobs.of(1).unwrap() {
        let simulated = job.models.iter().map(|model| {
            simulate(model, job.decisions, &AtomicBool::new(false)).unwrap().expect("it was not stopped")
        });
        let measured = (job.measure)(&simulated.collect::<Vec<_>>());
        assert!(results.add(1, job.case, measured), "a case is there twice");
    }
    Outcome::of(experiment, &results)
}

#[test]
fn a_folder_is_an_experiment() {
    let directory = written(PLAN, SCENARIO, PUBLISHED);
    let experiment = read(directory.path());
    assert_eq!((experiment.title.as_str(), experiment.paper.name.as_str()), ("A constant stream", "Mine"));
    let outcome = outcome(&experiment);
    let verdicts: Vec<Verdict> = outcome.verdicts.iter().map(|judged| judged.verdict).collect();
    assert_eq!(verdicts, [Verdict::Reproduces, Verdict::Differs, Verdict::Reproduces]);
    let published: Vec<&str> = outcome.verdicts.iter().map(|judged| judged.published.as_str()).collect();
    assert_eq!(published, ["all of it", "1", "ours, not in the paper"]);
    let cause = outcome.verdicts[1].cause.as_deref().unwrap();
    assert!(cause.starts_with("the link is too slow (twice the rate: 0.99"), "{cause}");
    let in_setting = PLAN.replacen("[[run]]", "[[run]]\nsetting = \"once\"", 1);
    let in_setting = in_setting.replace("scheme = \"first\"", "scheme = \"first\"\nsetting = \"once\"");
    let elsewhere = self::outcome(&read(written(&in_setting, SCENARIO, PUBLISHED).path()));
    assert_eq!(
        elsewhere.verdicts[1].cause.as_deref(),
        Some(cause),
        "a cause's setting replaces a relation's"
    );
    let rows: Vec<&str> = outcome.tables[0].rows.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(rows[..2], ["first at 500 ", "first at 2000 "]);
    let other = PLAN.replace("id = \"figures\"", "id = \"figures\"\nschemes = [\"second\"]");
    assert!(read(written(&other, SCENARIO, PUBLISHED).path()).tables[0].rows.is_empty());
    assert_eq!(outcome.tables[0].rows[0].1[1].published, Some(500.0));
    assert_eq!(outcome.tables[0].rows[1].1[1].published, None);
}

#[test]
fn a_relation_of_several_schemes_is_one_of_each() {
    let scheme = "[[scheme]]\nname = \"Reno\"\nset = { \"flow.stream.rate\" = \"250k\" }\n\n[[run]]";
    let plan = PLAN.replacen("[[run]]", scheme, 1);
    let own = "[[relation]]\nid = \"all\"\nclaim = \"all of it\"\nschemes = [\"first\", \"Reno\"]\npoint = 500\n\
               value = \"throughput\"\nexpect = { about = 500, within = 0.02 }\n\n[[plot]]";
    let plan = plan.replacen("id = \"all\"", "id = \"other\"", 1).replacen("[[plot]]", own, 1);
    let published = PUBLISHED.replace("all,", "other,,1,,section 1\nall,");
    let outcome = outcome(&read(written(&plan, SCENARIO, &published).path()));
    let of_each: Vec<_> =
        outcome.verdicts.iter().filter(|judged| judged.relation.starts_with("all-")).collect();
    let told: Vec<_> =
        of_each.iter().map(|judged| (judged.relation.as_str(), judged.claim.as_str())).collect();
    assert_eq!(told, [("all-first", "all of it: first"), ("all-reno", "all of it: Reno")]);
    assert_eq!([of_each[0].verdict, of_each[1].verdict], [Verdict::Reproduces, Verdict::Reproduces]);
}

#[test]
fn a_value_is_computed_from_the_point() {
    let keys = "keys = [\"flow.stream.rate\"]\nunit = \"kbps\"\n";
    let computed = "computed = { \"flow.stream.rate\" = { value = \"point / 1000\", unit = \"Mbps\" } }\n";
    let of = |plan: &str| outcome(&read(written(plan, SCENARIO, PUBLISHED).path()));
    let (plain, computed) = (of(PLAN), of(&PLAN.replacen(keys, computed, 1)));
    let before =
        "computed = { \"flow.stream.rate\" = { before = \"0\", value = \"point\", unit = \"kbps\" } }\n";
    let with_text = of(&PLAN.replacen(keys, before, 1));
    let listed = "set = { \"link.a-b.loss\" = { kind = \"listed\", packets = [1] } }\ncomputed = \
                  { \"link.a-b.loss.packets\" = { value = \"1000000 + point\", list = true } }\n";
    let with_list = of(&PLAN.replacen(keys, &format!("{keys}{listed}"), 1));
    let measured = |outcome: Outcome| -> Vec<Option<f64>> {
        outcome.verdicts.iter().map(|judged| Some(judged.measured?.mean)).collect()
    };
    let plain = measured(plain);
    for other in [computed, with_text, with_list] {
        assert_eq!(measured(other), plain);
    }
}

/// Two connections whose applications write 400 and 100 kbps, and the first one counts as four.
const TWO: &str = r#"
[[flow]]
name = "four"
kind = "tcp"
from = "a"
to = "b"
rate = "400k"
tcp = { congestion = "multcp:4" }
[[flow]]
name = "one"
kind = "tcp"
from = "a"
to = "b"
rate = "100k"
tcp = { congestion = "reno" }
"#;

/// What is measured of them, with what it has to be.
const OF_TWO: [(&str, f64); 10] = [
    (r#"name = "n", measure = "goodput", flows = ["four", "one"], unit = "kbps", each = "least""#, 100.0),
    (
        r#"name = "n", measure = "sent", flows = ["one"], from = 4, to = 10, bin = 2, step = 0.5, until = { at_least = 10 }"#,
        2.0,
    ),
    (r#"name = "n", measure = "goodput", flows = ["four", "one"], unit = "kbps", each = "mean""#, 250.0),
    (r#"name = "n", measure = "jain_index", flows = ["four", "one"]"#, 25.0 / 34.0),
    (r#"name = "n", measure = "weighted_jain_index", flows = ["four", "one"]"#, 1.0),
    (r#"name = "n", measure = "weighted_jain_index_of_throughput", flows = ["four", "one"]"#, 1.0),
    (r#"name = "n", measure = "goodput", flows = ["one"], unit = "kbps", from = "begun", to = 4"#, 100.0),
    (r#"name = "n", measure = "goodput_ratio", flows = ["four"], others = ["one"]"#, 4.0),
    (
        r#"name = "n", measure = "goodput", flows = ["four"], unit = "kbps", to = 9, bin = 2, take = "mean""#,
        400.0,
    ),
    (
        r#"name = "n", measure = "goodput_ratio", flows = ["four"], others = ["one"], scales = [1, 5], take = "mean""#,
        4.0,
    ),
];

/// A figure or series with these keys has such a value, within 5 %.
fn assert_measured(scenario: &str, keys: &str, expected: f64) {
    let what = if keys.contains("scales") || keys.contains("clip_buffer") {
        format!("series = [{{ {keys} }}]\nrelation = [{{ series = \"n\", at = 5,")
    } else {
        format!("figure = [{{ {keys} }}]\nrelation = [{{ value = \"n\",")
    };
    let plan = format!(
        "title = \"\"\nplace = \"\"\nclaim = \"\"\nscenario = \"scenario.toml\"\n\
         scheme = [{{ name = \"first\" }}]\nrun = [{{}}]\n\
         {what} id = \"n\", claim = \"\", ours = true, scheme = \"first\", \
         expect = {{ about = {expected}, within = 0.05 }} }}]\n"
    );
    let outcome = outcome(&read(written(&plan, scenario, PUBLISHED).path()));
    let judged = &outcome.verdicts[0];
    assert_eq!(judged.verdict, Verdict::Reproduces, "{keys}: {:?}", judged.measured);
}

#[test]
fn numbers_are_of_bins_of_each_flow_and_by_weight() {
    for (keys, expected) in OF_TWO {
        assert_measured(&format!("{SCENARIO}{TWO}"), keys, expected);
    }
}

#[test]
fn what_a_queue_drops_is_a_part_of_what_was_sent() {
    // 2500 packets in 10 s; half of them, and a queue of 100 behind them, get through.
    let scenario = SCENARIO.replace("500k", "2Mbps");
    assert_measured(&scenario, r#"name = "n", measure = "drops", flows = ["stream"]"#, 0.46);
}

/// 62.5 packets a second over a link, 10 ms away, that loses four of them.
const LOSSES: &str = r#"
[run]
duration = "10s"
sampling = "10ms"

[[node]]
name = "a"
[[node]]
name = "between"
[[node]]
name = "b"

[[link]]
from = "a"
to = "between"
rate = "100Mbps"
delay = "10ms"
[[link]]
from = "between"
to = "b"
rate = "1Mbps"
delay = "10ms"
loss = { kind = "listed", packets = [100, 101, 102, 200] }
reverse = { loss = 0 }

[[flow]]
name = "stream"
kind = "udp"
from = "a"
to = "b"
rate = "500k"
packet_size = "1000B"
"#;

#[test]
fn packets_are_told_one_by_one() {
    let clip = |measure: &str, rate: u32, length: u32| {
        format!(
            r#"name = "n", measure = "{measure}", flows = ["stream"], from = 0, to = 10, clip = {{ rate = "{rate}kbps", length = "{length}s", media = 4, block = 5, packet_size = "1000B", prebuffer = "1s", frames = 10 }}"#
        )
    };
    for (keys, expected) in [
        (r#"name = "n", measure = "loss_burst", flows = ["stream"], take = "mean""#.to_owned(), 2.0),
        (
            r#"name = "n", measure = "loss_burst", flows = ["stream"], take = "largest", from = 3, to = 10"#
                .into(),
            1.0,
        ),
        (r#"name = "n", measure = "delay", links = ["a-between", "between-b"], unit = "ms""#.into(), 20.0),
        // The first three are in one block of five, and the fourth alone in another.
        (clip("unrepaired", 400, 9), 3.0),
        // Of 400 kbps of media 4 s at 1000 kbps take 10 s, of which 2.5 s pass before the first picture.
        (clip("frozen", 1000, 4), 3.5),
        // After 5 s there are 6.7 s at 300 kbps, and 4.25 s were played.
        (format!("{}, bin = 1", clip("clip_buffer", 300, 12)), 2.42),
    ] {
        assert_measured(LOSSES, &keys, expected);
    }
}

#[test]
fn a_number_can_be_of_the_time_with_so_many_connections() {
    let scenario = format!("{SCENARIO}{TWO}");
    for (keys, expected) in [
        (r#"name = "n", measure = "time_share", flows = ["one"], connections = 1"#, 1.0),
        (r#"name = "n", measure = "time_share", flows = ["four", "one", "stream"], connections = 1"#, 0.67),
        (
            r#"name = "n", measure = "sent", flows = ["stream", "one"], connections = 1, from = 0, to = 8"#,
            70.0,
        ),
    ] {
        assert_measured(&scenario, keys, expected);
    }
}

#[test]
fn flows_are_chosen_by_the_access_of_their_receivers() {
    let keys = |access: &str| {
        format!(
            r#"name = "n", measure = "goodput", flows = ["four", "one", "slow"], unit = "kbps", access_above = "{access}", each = "mean""#
        )
    };
    let slow = r#"
[[node]]
name = "c"
[[link]]
from = "b"
to = "c"
rate = "300kbps"
delay = "1ms"
[[flow]]
name = "slow"
kind = "tcp"
from = "a"
to = "c"
rate = "40k"
"#;
    let scenario = format!("{SCENARIO}{TWO}{slow}").replace("rate = \"500k\"", "rate = \"50k\"");
    assert_measured(&scenario, &keys("300kbps"), 250.0);
    assert_measured(&scenario, &keys("299kbps"), 180.0);
}

#[test]
fn a_run_can_have_a_scenario_of_its_own() {
    let own = PLAN.replacen("set = { \"link.a-b.rate\" = \"2Mbps\" }", "scenario = \"faster.toml\"", 1);
    let directory = written(&own, SCENARIO, PUBLISHED);
    let file = directory.path().join("mine/stream/faster.toml");
    let missing = load(directory.path()).err().unwrap().to_string();
    assert!(missing.contains("plan.toml:21:") && missing.contains("'faster.toml'"), "{missing}");
    fs::write(&file, SCENARIO.replace("1Mbps", "2Mbps")).unwrap();
    let set = outcome(&read(written(PLAN, SCENARIO, PUBLISHED).path()));
    let outcome = outcome(&read(directory.path()));
    assert_eq!(outcome.verdicts[1].cause, set.verdicts[1].cause);
    assert_eq!(outcome.verdicts[0].measured, set.verdicts[0].measured);
}

#[test]
fn seeds_count_where_something_is_drawn() {
    let lossy = SCENARIO.replace("delay", "loss = 0.01\ndelay");
    let unsaid = PLAN.replace("random = false\n", "");
    assert!(!read(written(PLAN, SCENARIO, PUBLISHED).path()).random);
    assert!(!read(written(&unsaid, SCENARIO, PUBLISHED).path()).random);
    assert_eq!(read(written(PLAN, SCENARIO, PUBLISHED).path()).least_seeds, 1);
    let seeds = PLAN.replace("random = false\n", "random = false\nseeds = 12\n");
    assert_eq!(read(written(&seeds, SCENARIO, PUBLISHED).path()).least_seeds, 12);
    assert!(read(written(&unsaid, &lossy, PUBLISHED).path()).random);
    let between = SCENARIO.replace("rate = \"500k\"", "rate = \"500k\"\nstart = [\"0s\", \"1s\"]");
    assert!(read(written(&unsaid, &between, PUBLISHED).path()).random);
    let wrong = said(&PLAN.replace("random = false", "random = true"), SCENARIO, PUBLISHED);
    assert!(wrong.starts_with("plan.toml:5:") && wrong.contains("all seeds are the same"), "{wrong}");
    let wrong = said(PLAN, &lossy, PUBLISHED);
    assert!(wrong.starts_with("plan.toml:5:") && wrong.contains("one seed is not enough"), "{wrong}");
}

#[test]
fn what_only_real_programs_have_is_judged_by_their_runs() {
    let time = "[[figure]]\nname = \"time of a call\"\nreal = true\n\n";
    let relation = "[[relation]]\nid = \"time\"\nours = true\nclaim = \"it is short\"\nscheme = \"first\"\n\
                    point = 500\nvalue = \"{time of a call}\"\nexpect = { below = 9 }\n";
    let experiment =
        read(written(&format!("{PLAN}{time}{relation}real = true\n"), SCENARIO, PUBLISHED).path());
    let ids: Vec<&str> = experiment.real_relations.iter().map(|relation| &*relation.id).collect();
    assert_eq!(ids, ["time"]);
    assert!(experiment.relations.iter().all(|relation| relation.id != "time"));
    assert_eq!(experiment.real_relations[0].claim, "it is short, with real programs");
    let wrong = said(&format!("{PLAN}{time}{relation}"), SCENARIO, PUBLISHED);
    assert!(wrong.contains("time of a call"), "a simulation has no such figure: {wrong}");
}

#[test]
fn a_folder_of_a_paper_without_a_plan_is_told() {
    let directory = written(PLAN, SCENARIO, PUBLISHED);
    let folder = directory.path().join("mine/other");
    fs::create_dir_all(directory.path().join("elsewhere/results")).unwrap();
    fs::create_dir_all(directory.path().join("mine/.hidden")).unwrap();
    assert!(load(directory.path()).is_ok());
    fs::create_dir(&folder).unwrap();
    let error = load(directory.path()).err().unwrap().to_string();
    assert!(error.contains("mine/other/plan.toml") && error.contains("with a plan"), "{error}");
}

#[test]
fn a_folder_takes_the_place_of_the_programs_own() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("vps/dilution");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plan.toml"), PLAN).unwrap();
    fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
    fs::write(folder.join("published.csv"), PUBLISHED).unwrap();
    let all = experiments::all(Some(directory.path())).unwrap();
    let named: Vec<&Experiment> = all.iter().filter(|one| one.id == "vps-dilution").collect();
    assert_eq!(named.len(), 1);
    assert_eq!((named[0].title.as_str(), named[0].paper.name.as_str()), ("A constant stream", "VPS"));
}

#[test]
fn a_mistake_is_told_with_its_line_and_what_would_be_right() {
    for (right, wrong, line, expected) in [
        ("title = \"A constant stream\"", "titel = \"A\"", 2, "did you mean `title`"),
        ("name = \"first\"", "name = \"frist\"", 9, "did you mean 'first'"),
        ("measure = \"throughput\"", "measure = \"throughtput\"", 25, "throughput"),
        ("flows = [\"stream\"]", "flows = [\"streem\"]", 23, "there are: stream"),
        ("flows = [\"stream\"]", "", 23, "of which `flows`"),
        ("flows = [\"stream\"]", "flows = [\"stream\"]\nbin = 1", 23, "take"),
        ("measure = \"throughput\"", "measure = \"goodput_ratio\"", 23, "of which `others`"),
        ("bin = 2", "scales = [0]\ntake = \"mean\"", 38, "`scales` are seconds"),
        ("unit = \"kbps\"\n\n[[figure]]", "unit = \"kpbs\"\n\n[[figure]]", 27, "kbps"),
        ("throughput / point", "throughput / piont", 31, "did you mean 'point'"),
        ("throughput / point", "throughput / (point", 31, "this is no formula"),
        ("keys = [\"flow.stream.rate\"]", "keys = [\"flow.strem.rate\"]", 11, "strem"),
        ("keys = [\"flow.stream.rate\"]", "keys = [\"flow.stream.rat\"]", 11, "rat"),
        (
            "keys = [\"flow.stream.rate\"]",
            "computed = { \"flow.stream.rate\" = \"500 + piont\" }",
            13,
            "a formula of `point` alone",
        ),
        (
            "keys = [\"flow.stream.rate\"]",
            "computed = { \"flow.stream.rate\" = \"1 / (point - 500)\" }",
            11,
            "`flow.stream.rate` is inf at 500",
        ),
        ("id = \"whole\"", "id = \"hole\"", 50, "did you mean 'whole'"),
        ("id = \"all\"", "id = \"whole\"", 57, "a second relation has the id 'whole'"),
        ("point = 500\n", "point = 501\n", 49, "no run of 'first' at 501"),
        ("scheme = \"first\"", "scheme = \"first\"\nschemes = [\"first\"]", 49, "say `scheme`, or `schemes`"),
        ("about = 1, within = 0.02", "about = 1", 55, "`about` and `within` go together"),
        ("above = 0.9", "abvoe = 0.9", 64, "did you mean `above`"),
        (
            "shown_by = [\"twice the rate\"]",
            "shown_by = [\"twice the rat\"]",
            65,
            "did you mean 'twice the rate'",
        ),
        ("(course + 0 * x)", "(curse + 0 * x)", 42, "did you mean 'course'"),
        ("series = \"course\"", "series = \"curse\"", 76, "did you mean 'course'"),
        ("id = \"figures\"", "id = \"figures\"\nschemes = [\"frist\"]", 89, "did you mean 'first'"),
        (
            "published = \"curve\" }]\n\n[[table]]",
            "published = \"curves\" }]\n\n[[table]]",
            85,
            "did you mean 'curve'",
        ),
        ("scenario = \"scenario.toml\"", "scenario = \"scenari.toml\"", 6, "cannot read the scenario"),
        (
            "scenario = \"scenario.toml\"",
            "scenario = \"../../../secret\"",
            6,
            "outside of the papers' directory",
        ),
    ] {
        assert!(PLAN.contains(right), "{right}");
        let said = said(&PLAN.replacen(right, wrong, 1), SCENARIO, PUBLISHED);
        assert!(said.starts_with(&format!("plan.toml:{line}:")), "{wrong}: {said}");
        assert!(said.contains(expected), "{wrong}: {said}");
        let told = said.lines().filter(|line| line.starts_with("plan.toml:")).count();
        assert_eq!(told, 1, "{wrong}: one mistake is told once: {said}");
    }
    let said = said(PLAN, &SCENARIO.replace("delay", "dealy"), PUBLISHED);
    assert!(said.starts_with("scenario.toml:14:") && said.contains("did you mean `delay`"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_formula_ends_the_program(formula in "[a-z0-9 +*/^(){}.,|&<>=!-]{0,40}") {
        let plan = PLAN.replacen("throughput / point", &formula, 1);
        let directory = written(&plan, SCENARIO, PUBLISHED);
        let _ = load(directory.path());
    }
}
