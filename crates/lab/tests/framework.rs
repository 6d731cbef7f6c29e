//! The framework on an experiment whose results are known.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_lab::case::{Case, Measured};
use anabranch_lab::experiment::{
    Axis, Cell, Curve, Expected, Experiment, Job, Jobs, Plot, Points, Relation, Row, Table,
};
use anabranch_lab::outcome::{Outcome, Verdict};
use anabranch_lab::papers;
use anabranch_lab::results::{OneSeed, Results};
use anabranch_lab::scheme::{self, Scheme};
use anabranch_lab::{Progress, RunError, RunOptions, files};

const SEEDS: u64 = 5;

/// How often jobs of the experiment were really done.
type Counter = Arc<AtomicUsize>;

/// Rate is 100 seed at point 1 and twice that at point 2; `late` is missing with seed 3.
fn job(scheme: Scheme, point: f64, seed: u64, count: Counter) -> Job {
    Job {
        case: Case::new(scheme, point),
        models: Vec::new(),
        decisions: &[],
        measure: Box::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let rate = 100.0 * seed as f64 * point;
            Measured::default()
                .figure("rate", rate, "kbps")
                .figure("late", if seed == 3 { f64::NAN } else { 1.0 }, "s")
                .series("course", [(0.0, 0.1), (1.0, rate), (2.0, f64::INFINITY)])
        }),
    }
}

fn relation(
    id: &str,
    expected: Expected,
    value: impl Fn(OneSeed<'_>) -> Option<f64> + Send + Sync + 'static,
) -> Relation {
    Relation {
        id: id.into(),
        claim: format!("<{id}> & \"more\""),
        published: "300 kbps".into(),
        unit: "kbps".into(),
        value: Box::new(value),
        is_of_all_seeds: false,
        expected,
        cause: Some("a <known> cause".into()),
    }
}

fn experiment(count: &Counter) -> Experiment {
    let count = count.clone();
    let curve = |label: &str, points| Curve { label: label.into(), look: scheme::N1, points };
    let plot = |id: &str, curves| Plot {
        id: id.into(),
        title: format!("<{id}>"),
        x: Axis::new("point", ""),
        y: Axis::new("rate", "kbps"),
        curves,
    };
    let setting = String::new;
    Experiment {
        id: "synthetic-one".into(),
        title: "A <title>".into(),
        paper: papers::of("multitcp"),
        place: "nowhere".into(),
        claim: "claimed & done".into(),
        assumed: vec!["<script>alert(1)</script>".into()],
        random: true,
        least_seeds: 1,
        jobs: Jobs::new(move |seed| {
            vec![job(scheme::N1, 1.0, seed, count.clone()), job(scheme::N1, 2.0, seed, count.clone())]
        }),
        real_relations: Vec::new(),
        relations: vec![
            relation("right", Expected::about(300.0, 0.01), |seed| seed.figure(scheme::N1, 1.0, "rate")),
            relation("wrong", Expected::Above(300.0), |seed| seed.figure(scheme::N1, 1.0, "rate")),
            relation("gap", Expected::AtLeast(0.0), |seed| seed.figure(scheme::N1, 1.0, "late")),
            relation("nothing", Expected::AtLeast(0.0), |seed| seed.figure(scheme::N2, 1.0, "rate")),
            relation("double", Expected::Between(2.0, 2.0), |seed| {
                Some(seed.figure(scheme::N1, 2.0, "rate")? / seed.figure(scheme::N1, 1.0, "rate")?)
            }),
        ],
        plots: vec![
            plot(
                "rates",
                vec![
                    curve(
                        "ours",
                        Points::Figure { scheme: scheme::N1, setting: setting(), name: "rate".into() },
                    ),
                    curve("the <paper>", Points::Published(vec![(1.0, 290.0)])),
                ],
            ),
            plot(
                "courses",
                vec![curve(
                    "course",
                    Points::Series {
                        scheme: scheme::N1,
                        setting: setting(),
                        point: 2.0,
                        name: "course".into(),
                    },
                )],
            ),
        ],
        tables: vec![Table {
            id: "numbers".into(),
            title: "Numbers".into(),
            columns: vec!["scheme".into(), "rate (kbps)".into()],
            rows: vec![Row {
                label: "N = 1, \"quoted\"".into(),
                cells: vec![Cell {
                    published: Some(290.5),
                    value: Box::new(|seed| seed.figure(scheme::N1, 1.0, "rate")),
                }],
            }],
        }],
    }
}

fn run(
    experiments: &[Experiment],
    jobs: usize,
    cache: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Vec<Results>, RunError> {
    let jobs = NonZeroUsize::new(jobs).unwrap();
    anabranch_lab::run(
        experiments,
        &RunOptions { seeds: SEEDS, quick: false, jobs, cache, stop, progress: &|_| () },
    )
}

fn results(jobs: usize) -> (Experiment, Results) {
    let experiments = [experiment(&Counter::default())];
    let results = run(&experiments, jobs, None, &AtomicBool::new(false)).unwrap().remove(0);
    let [experiment] = experiments;
    (experiment, results)
}

#[test]
fn relations_get_the_verdicts_that_their_numbers_ask_for() {
    let (experiment, results) = results(2);
    let outcome = Outcome::of(&experiment, &results);
    let verdict = |id: &str| outcome.verdicts.iter().find(|judgement| judgement.relation == id).unwrap();
    let right = verdict("right");
    assert_eq!((right.verdict, &right.cause), (Verdict::Reproduces, &None));
    let estimate = right.measured.unwrap();
    assert_eq!((estimate.mean, estimate.count), (300.0, 5));
    // 100 times the half width of 1 to 5: 2.776445 sqrt(0.5).
    assert!((estimate.half_width.unwrap() - 196.324_33).abs() < 1e-4);
    assert_eq!(verdict("wrong").verdict, Verdict::Differs);
    assert_eq!(verdict("wrong").cause.as_deref(), Some("a <known> cause"));
    // Its bound is within the interval.
    assert!(verdict("wrong").is_level && !right.is_level);
    assert_eq!(verdict("double").verdict, Verdict::Reproduces);
}

#[test]
fn what_a_seed_did_not_give_is_told_and_never_reproduces() {
    let (experiment, results) = results(1);
    let outcome = Outcome::of(&experiment, &results);
    let gap = &outcome.verdicts[2];
    assert!(!gap.is_level, "a number that is missing is no interval");
    assert_eq!((gap.verdict, gap.measured.unwrap().count), (Verdict::Differs, 4));
    assert_eq!(gap.cause.as_deref(), Some("not measured with seed 3; a <known> cause"));
    let nothing = &outcome.verdicts[3];
    assert_eq!((nothing.verdict, nothing.measured), (Verdict::Differs, None));
}

/// Every file below a directory.
fn files_below(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push((path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn files_do_not_depend_on_the_number_of_jobs_at_a_time() {
    let written = |jobs| {
        let directory = tempfile::tempdir().unwrap();
        let (experiment, results) = results(jobs);
        files::write(directory.path(), &experiment, &results, None).unwrap();
        files::bind(directory.path()).unwrap();
        files_below(directory.path())
    };
    let one = written(1);
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "courses.csv",
            "courses.png",
            "courses.svg",
            "multitcp.html",
            "numbers.csv",
            "outcome.json",
            "rates.csv",
            "rates.png",
            "rates.svg",
            "report.html",
            "report.pdf",
            "runs.csv",
            "verdicts.json"
        ]
    );
    assert_eq!(one, written(7));
}

fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (experiment, results) = results(2);
    files::write(directory.path(), &experiment, &results, None).unwrap();
    files::bind(directory.path()).unwrap();
    directory
}

#[test]
fn verdicts_json_has_an_entry_for_every_relation() {
    let directory = written();
    let verdicts = fs::read(directory.path().join("verdicts.json")).unwrap();
    let verdicts: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_slice(&verdicts).unwrap();
    assert_eq!(verdicts.len(), 5);
    let keys: Vec<&str> = verdicts[0].keys().map(String::as_str).collect();
    let mut wanted = ["id", "relation", "published", "measured", "ci95", "verdict", "cause"];
    wanted.sort_unstable();
    let mut keys = keys;
    keys.sort_unstable();
    assert_eq!(keys, wanted);
    assert_eq!(verdicts[0]["id"], "synthetic-one");
    assert_eq!(verdicts[0]["relation"], "right: <right> & \"more\" (kbps)");
    assert_eq!(verdicts[0]["measured"], 300.0);
    assert!((verdicts[0]["ci95"][0].as_f64().unwrap() - 103.675_67).abs() < 1e-4);
    assert_eq!(verdicts[0]["verdict"], "reproduces");
    assert!(verdicts[0]["cause"].is_null());
    assert_eq!(verdicts[1]["verdict"], "differs");
    assert_eq!(verdicts[1]["cause"], "a <known> cause");
    assert!(verdicts[3]["measured"].is_null() && verdicts[3]["ci95"].is_null());
}

#[test]
fn csv_files_have_every_curve_point_cell_and_run() {
    let directory = written();
    let read = |name: &str| fs::read_to_string(directory.path().join("synthetic-one").join(name)).unwrap();
    let rates = read("rates.csv");
    let lines: Vec<&str> = rates.lines().collect();
    assert_eq!(lines[0], "curve,point,rate (kbps),ci95_low,ci95_high,seeds");
    assert!(lines[1].starts_with("ours,1,300,103.67") && lines[1].ends_with(",5"), "{}", lines[1]);
    assert!(lines[2].starts_with("ours,2,600,"));
    assert_eq!(lines[3..], ["the <paper>,1,290,,,1"]);
    // The point that is not finite is none.
    assert_eq!(read("courses.csv").lines().count(), 3);
    let numbers = read("numbers.csv");
    assert!(numbers.lines().nth(1).unwrap().starts_with("\"N = 1, \"\"quoted\"\"\",rate (kbps),290.5,300,"));
    let runs = read("runs.csv");
    // Two points and five seeds with two figures each, one of which is missing twice.
    assert_eq!(runs.lines().count(), 1 + 18);
    assert!(runs.contains("\n,N = 1,2,4,rate,800,kbps\n"), "{runs}");
}

#[test]
fn the_report_needs_nothing_else_and_says_what_it_is_given() {
    let directory = written();
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let overview = read("report.html");
    assert!(overview.contains("multitcp.html#synthetic-one") && !overview.contains("<script"));
    let report = read("multitcp.html");
    assert!(!report.contains("<script"), "markup in an experiment's text became markup of the report");
    for text in [
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "A &lt;title&gt;",
        "claimed &amp; done",
        "&lt;right&gt; &amp; &quot;more&quot;",
        "a &lt;known&gt; cause",
        "300.0 ± 196",
        "anabranch lab run synthetic-one --seeds 5",
        "seeds 1 to 5",
        "the &lt;paper&gt;",
    ] {
        assert!(report.contains(text), "{text}");
    }
    for outside in ["src=", "<link", "@import", "url("] {
        assert!(!report.contains(outside), "{outside}");
    }
    assert_eq!(report.matches("<svg").count(), 2);
}

#[test]
fn the_pdf_has_the_pages_bookmarks_and_texts_of_the_report() {
    let directory = written();
    let pdf = lopdf::Document::load(directory.path().join("report.pdf")).unwrap();
    // The overview, and a paper whose experiment has two plots.
    assert_eq!(pdf.get_pages().len(), 3);
    // Without spaces: lines end elsewhere, and plots place every letter by itself.
    let close = |text: &str| text.split_whitespace().collect::<String>();
    let text = |page| close(&pdf.extract_text(&[page]).unwrap());
    for (page, has) in [
        (1, "Published results, reproduced"),
        (1, "Each paper by itself: MultiTCP"),
        (1, "1 of 3"),
        (2, "MultiTCP, reproduced"),
        (2, "A <title>"),
        (2, "The paper: claimed & done"),
        (2, "<rates>"),
        (3, "300.0 ± 196 kbps"),
        (3, "a <known> cause"),
        (3, "<script>alert(1)</script>"),
        (3, "Made by anabranch lab run synthetic-one --seeds 5, version"),
    ] {
        assert!(text(page).contains(&close(has)), "{has} is not on page {page}: {}", text(page));
    }
    let bookmarks: Vec<_> =
        pdf.get_toc().unwrap().toc.into_iter().map(|entry| (entry.level, entry.title, entry.page)).collect();
    let wanted = [
        (1, "Published results, reproduced", 1),
        (1, "MultiTCP, reproduced", 2),
        (2, "synthetic-one: A <title>", 2),
    ];
    assert_eq!(bookmarks, wanted.map(|(level, title, page)| (level, title.to_owned(), page)));
}

#[test]
fn the_page_of_documentation_has_every_difference_with_its_cause() {
    let (mut experiment, results) = results(2);
    experiment.relations[1].cause = None;
    experiment.relations[2].published = "ours: no more".into();
    let outcome = Outcome::of(&experiment, &results);
    let page = anabranch_lab::reproduction::page(&[outcome]);
    // `right` and `double` reproduce; `wrong` differs without a cause, `nothing` with one; `gap` is ours.
    assert!(page.contains("| MultiTCP | 1 | 4 | 2 | 2 | 0 | 1 |"), "{page}");
    assert!(page.contains("| all | 1 | 4 | 2 | 2 | 0 | 1 |"), "{page}");
    let line =
        |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{page}"));
    assert!(line("| `synthetic-one` | wrong:").ends_with("300.0 ± 196 kbps | cause not found |"), "{page}");
    assert!(line("| `synthetic-one` | nothing:").contains("a <known> cause"), "{page}");
    assert!(line("| `synthetic-one` | <gap>").contains("| behind | not measured with seed 3"), "{page}");
    assert!(!page.contains("right:") && !page.contains("Provisional"), "{page}");
}

#[test]
fn rows_of_ours_are_ahead_level_or_behind_and_our_own_experiments_count_apart() {
    let (mut experiment, results) = results(2);
    for relation in &mut experiment.relations[..3] {
        relation.published = "ours: no more".into();
    }
    let paper = Outcome::of(&experiment, &results);
    let mut own = paper.clone();
    own.paper.is_ours = true;
    own.paper.name = "Mine".into();
    let page = anabranch_lab::reproduction::page(&[paper, own]);
    assert!(
        page.contains("Of 3 rows ours is ahead on 1, level on 1 ") && page.contains("behind on 1."),
        "{page}"
    );
    let (papers, apart) = page.split_once("## Experiments of our own").unwrap();
    assert!(papers.contains("| all | 1 | 2 | 1 | 1 | 0 | 0 |") && !papers.contains("Mine"), "{page}");
    assert!(apart.contains("| Mine | 1 | 2 | 1 | 1 | 0 | 0 |"), "{page}");
}

#[test]
fn finished_runs_are_not_repeated_after_an_interruption() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path().join("runs");
    let count = Counter::default();
    let experiments = [experiment(&count)];
    // Interrupted when three of ten runs are done.
    let stop = AtomicBool::new(false);
    let told = Mutex::new(Vec::new());
    let progress = |Progress { done, total, .. }: Progress| {
        told.lock().unwrap().push((done, total));
        stop.store(done == 3, Ordering::Relaxed);
    };
    let options = RunOptions {
        seeds: SEEDS,
        quick: false,
        jobs: NonZeroUsize::MIN,
        cache: Some(&runs),
        stop: &stop,
        progress: &progress,
    };
    let interrupted = anabranch_lab::run(&experiments, &options).unwrap_err();
    assert!(matches!(interrupted, RunError::Stopped { done: 3, total: 10 }), "{interrupted}");
    assert_eq!(*told.lock().unwrap(), [(0, 10), (1, 10), (2, 10), (3, 10)]);
    assert_eq!(count.load(Ordering::Relaxed), 3);

    // A kept run that was damaged is made again.
    let program = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_dir(program).unwrap().next().unwrap().unwrap().path();
    fs::write(&kept, "{\"figures\":[[\"rate\",1").unwrap();
    stop.store(false, Ordering::Relaxed);
    let resumed = run(&experiments, 2, Some(&runs), &stop).unwrap().remove(0);
    assert_eq!(count.load(Ordering::Relaxed), 3 + 7 + 1);
    let (_, fresh) = results(1);
    assert_eq!(Outcome::of(&experiments[0], &resumed), Outcome::of(&experiments[0], &fresh));
}

#[test]
fn only_the_runs_of_this_program_are_kept_and_nothing_else_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path();
    let other = runs.join("0123456789abcdef0123456789abcdef");
    fs::create_dir(&other).unwrap();
    for left in [other.join("some-run.json"), runs.join("a-run-of-an-earlier-version.json")] {
        fs::write(left, "{}").unwrap();
    }
    let mine = runs.join("notes.txt");
    fs::write(&mine, "mine").unwrap();
    let stop = AtomicBool::new(false);
    let count = Counter::default();
    let experiments = [experiment(&count)];
    run(&experiments, 1, Some(runs), &stop).unwrap();
    assert!(mine.exists() && !other.exists());
    assert_eq!(fs::read_dir(runs).unwrap().count(), 2, "the runs of this program, and the notes");
    run(&experiments, 1, Some(runs), &stop).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 10, "nothing was repeated");

    anabranch_lab::forget_runs(runs).unwrap();
    assert_eq!(fs::read_dir(runs).unwrap().count(), 1, "the notes");
    run(&experiments, 1, Some(runs), &stop).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 20);
}

#[test]
fn a_simulation_that_two_experiments_look_at_runs_once() {
    use anabranch_sim::model::{Flow, Kind, Link, Model, Node, Run, Source, Tcp, When};
    use anabranch_units::{Duration, Rate, Time};

    let watching = |id: &'static str, name: &'static str, rate: u64| Experiment {
        id: id.into(),
        jobs: Jobs::new(move |seed| {
            let link =
                |from, to| Link::drop_tail(from, to, Rate::from_kbps(rate), Duration::from_millis(10), 20);
            let source = Kind::Tcp { from: 0, to: 1, tcp: Tcp::DEPLOYED, source: Source::Greedy };
            let flow = Flow { name: "tcp".into(), start: When::At(Time::ZERO), stop: None, kind: source };
            let model = Model {
                nodes: ["a", "b"].map(Node::new).into(),
                links: vec![link(0, 1), link(1, 0)],
                flows: vec![flow],
                run: Run {
                    duration: Duration::from_secs(5),
                    seed,
                    sampling: Duration::from_secs(1),
                    warm_up: Duration::ZERO,
                },
            };
            vec![Job {
                case: Case::new(scheme::N1, 0.0),
                models: vec![model],
                decisions: &[],
                measure: Box::new(move |recordings| {
                    let delivered = recordings[0].totals.flows[0].delivered.as_f64();
                    Measured::default().figure(name, delivered, "bytes")
                }),
            }]
        }),
        ..experiment(&Counter::default())
    };
    let experiments =
        [watching("one", "delivered", 500), watching("two", "again", 500), watching("three", "other", 700)];
    let stop = AtomicBool::new(false);
    let told = Mutex::new(Vec::new());
    let progress = |Progress { done, .. }: Progress| told.lock().unwrap().push(done);
    let options = RunOptions {
        seeds: 1,
        quick: false,
        jobs: NonZeroUsize::MIN,
        cache: None,
        stop: &stop,
        progress: &progress,
    };
    let results = anabranch_lab::run(&experiments, &options).unwrap();
    assert_eq!(*told.lock().unwrap(), [0, 2, 3], "the second experiment had a simulation of its own");
    let figure = |index: usize, name: &str| {
        results[index].each_seed().next().unwrap().figure(scheme::N1, 0.0, name).unwrap()
    };
    assert!(figure(0, "delivered") > 100_000.0);
    assert_eq!(figure(0, "delivered"), figure(1, "again"));
    assert!(figure(2, "other") > figure(0, "delivered"));
}

#[test]
fn two_runs_of_one_name_are_an_error() {
    let double = Experiment {
        jobs: Jobs::new(|seed| {
            let job = || job(scheme::N1, 1.0, seed, Counter::default());
            vec![job(), job()]
        }),
        ..experiment(&Counter::default())
    };
    let error = run(&[double], 2, None, &AtomicBool::new(false)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "synthetic-one, N = 1 at 1, seed 1: two runs of the experiment have this name"
    );
}

#[test]
fn an_experiment_without_randomness_runs_once() {
    let steady = Experiment { random: false, ..experiment(&Counter::default()) };
    let results = run(std::slice::from_ref(&steady), 2, None, &AtomicBool::new(false)).unwrap().remove(0);
    let outcome = Outcome::of(&steady, &results);
    assert_eq!(outcome.seeds, 1);
    assert_eq!(outcome.verdicts[0].measured.unwrap().interval(), None);
}

#[test]
fn an_experiment_runs_with_the_seeds_that_it_needs() {
    let many = Experiment { least_seeds: 7, ..experiment(&Counter::default()) };
    let results = run(std::slice::from_ref(&many), 2, None, &AtomicBool::new(false)).unwrap().remove(0);
    assert_eq!(results.seeds().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_directory_without_results_is_told_so() {
    let empty = tempfile::tempdir().unwrap();
    let error = files::bind(empty.path()).unwrap_err().to_string();
    assert!(error.contains("has no results of experiments"), "{error}");
    let error = files::bind(&empty.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("cannot read"), "{error}");
}

#[test]
fn a_word_means_an_id_the_beginning_of_ids_or_all() {
    let named = |id: &str| Experiment { id: id.into(), ..experiment(&Counter::default()) };
    let chosen = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let experiments = ["multitcp-fig8.2", "multitcp-fig8.20", "rome-fig8", "rome-fig9"].map(named);
        anabranch_lab::select(experiments.into(), &words)
            .map(|chosen| chosen.iter().map(|experiment| experiment.id.clone()).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    assert_eq!(chosen(&["multitcp-fig8.2"]).unwrap(), ["multitcp-fig8.2"]);
    assert_eq!(chosen(&["rome", "rome-fig9"]).unwrap(), ["rome-fig8", "rome-fig9"]);
    assert_eq!(chosen(&["all"]).unwrap().len(), 4);
    assert_eq!(
        chosen(&["rome", "rome-fig7"]).unwrap_err(),
        "there is no experiment 'rome-fig7'; did you mean rome-fig8 or rome-fig9?"
    );
    assert_eq!(
        chosen(&["xyz"]).unwrap_err(),
        "there is no experiment 'xyz'; 'anabranch lab list' tells their names"
    );
    assert!(chosen(&[""]).is_err());
}
