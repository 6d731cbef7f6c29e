use std::fs;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::real::Testbed;

const CAMPAIGN: &str = r#"
title = "Speed"
aim = "Twice as fast."
needs = ["sh"]

[run]
command = ["sh", "-c", "echo '{\"who\": \"peer\", \"of\": {\"bytes\": 100}, \"seconds\": 10}'; echo '{\"who\": \"ours\", \"of\": {\"bytes\": 100}, \"seconds\": {rounds}}'"]

[[table]]
title = "Bytes, and \"seconds\""
row = ["who"]
plot = "B/s"
column = [
    { title = "B/s", value = "of_bytes / seconds", decimals = 1 },
    { title = "beside", value = "of_bytes / seconds", beside = "peer" },
    { title = "lacks", value = "nowhere" },
    { title = "name, again", text = "who" },
]

[[table]]
row = ["of_bytes"]
across = "who"
column = [{ title = "", value = "seconds", take = "mean", decimals = 0 }]

[[bound]]
text = "twice as fast"
row = "ours"
column = "beside"
at_least = 2
"#;

fn campaign(directory: &Path, text: &str) -> Result<Campaign, CampaignError> {
    fs::write(directory.join("speed.toml"), text).unwrap();
    let mut all = all(directory)?;
    assert_eq!(all.len(), 1);
    Ok(all.remove(0))
}

fn run_it(directory: &Path, rounds: u32, text: &str) -> Result<(PathBuf, Tables), CampaignError> {
    let campaign = campaign(directory, text)?;
    let out = directory.join("results");
    let testbed = Testbed::find(None).unwrap();
    let options = BenchOptions {
        program: "sh".as_ref(),
        testbed: &testbed,
        rounds,
        clients: &[],
        out: &out,
        stop: &AtomicBool::new(false),
    };
    let made = run(&campaign, &options)?;
    assert_eq!(newest(&out, "speed").unwrap(), Some(made.clone()));
    let tables = Tables::of_run(&campaign, &made)?;
    Ok((made, tables))
}

#[test]
fn a_campaign_is_run_and_its_tables_are_made_of_what_was_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (made, tables) = run_it(directory.path(), 4, CAMPAIGN).unwrap();
    let expected = r#"**Bytes, and "seconds"**

| who | B/s | beside | lacks | name, again |
| --- | --- | --- | --- | --- |
| peer | 10.0 | 1.00 | – | peer |
| ours | 25.0 | 2.50 | – | ours |

| of_bytes | peer | ours |
| --- | --- | --- |
| 100 | 10 | 4 |

- ours: twice as fast: held (2.50)
"#;
    let markdown = tables.markdown();
    assert!(markdown.starts_with(expected), "{markdown}");
    let kept = |name: &str| fs::read_to_string(made.join(name)).unwrap();
    assert_eq!(kept("table.md"), markdown);
    assert!(
        kept("table.csv").starts_with("who,B/s,beside,lacks,\"name, again\"\npeer,10.0,"),
        "{}",
        kept("table.csv")
    );
    assert!(kept("plot.svg").contains(">25.0<"), "{}", kept("plot.svg"));
    assert_eq!(kept("raw.jsonl").lines().count(), 2);
    let date = made.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    assert!(date.starts_with("20") && date.as_bytes()[10] == b'-', "{date}");
    let machine: Machine = serde_json::from_str(&kept("machine.json")).unwrap();
    assert!(date.ends_with(&machine.commit), "{machine:?}");
    // The tables need the raw results alone.
    fs::write(made.join("raw.jsonl"), kept("raw.jsonl").replace(":4", ":8")).unwrap();
    let again = Tables::of_run(&load(&directory.path().join("speed.toml")).unwrap(), &made).unwrap();
    assert_eq!(
        again.held()[0],
        Held { text: "ours: twice as fast".into(), measured: Some(1.25), is_held: false }
    );
}

#[test]
fn what_goes_wrong_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let driver = |text: &str| CAMPAIGN.replacen("echo '{\\\"who", &format!("{text}; echo '{{\\\"who"), 1);
    for (text, told) in [
        (driver("echo hello"), "'hello' is no result: "),
        (driver("exit 3"), "it ended with exit status: 3"),
        (driver("exit 0"), "it printed no results"),
        (CAMPAIGN.replace("[\"sh\"]", "[\"sh\", \"no-such-program\"]"), "speed needs no-such-program, which"),
        (CAMPAIGN.replace("beside = \"peer\"", "besides = \"peer\""), "did you mean `beside`?"),
        (CAMPAIGN.replace("column = \"beside\"", "column = \"besides\""), "did you mean 'beside'?"),
        (CAMPAIGN.replace("at_least = 2", ""), "`at_least` or `at_most`"),
        (CAMPAIGN.replace("seconds\", decimals = 1", "seconds +\", decimals = 1"), "this is no formula"),
        (CAMPAIGN.replace("take = \"mean\"", "take = \"middle\""), "middle"),
        (
            CAMPAIGN.replace("command = ", "scenario = \"x.toml\"\ncommand = "),
            "either a `command`, or a `scenario`",
        ),
    ] {
        let error = run_it(directory.path(), 1, &text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(told), "{told} is not in: {error}");
    }
}

#[test]
fn a_driver_that_takes_its_time_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let campaign = campaign(directory.path(), &CAMPAIGN.replacen("echo", "sleep 1; echo", 1)).unwrap();
    let testbed = Testbed::find(None).unwrap();
    let options = BenchOptions {
        program: "sh".as_ref(),
        testbed: &testbed,
        rounds: 1,
        clients: &[],
        out: directory.path(),
        stop: &AtomicBool::new(true),
    };
    assert!(matches!(run(&campaign, &options), Err(CampaignError::Stopped)));
}

#[test]
fn columns_over_time_are_measured_in_a_runs_files() {
    let directory = tempfile::tempdir().unwrap();
    let series = |take: &str| {
        let text = format!(
            "{}\n[run]\nscenario = \"x.toml\"\nmeasure = \
             [{{ name = \"rate\", file = \"traffic.csv\", of = {{ flow = \"film\" }}, from = 2, \
             to = \"seconds + 0.5\", value = \"bps / 2\", take = \"{take}\" \
             }}]\n[[table]]\nrow = [\"client\"]\ncolumn = [{{ title = \"a\", value = \"rate\" }}]",
            "title = \"a\"\naim = \"b\""
        );
        let campaign = campaign(directory.path(), &text).unwrap();
        let document::Driver::Scenario { series, .. } = campaign.document.driver else {
            panic!("a scenario")
        };
        series.into_iter().next().unwrap()
    };
    // Two paths carry the film: what they carry in one bin of time is added up.
    let lines = "time_s,path,flow,bps\n1,a,film,100\n2,a,film,4\n2,b,film,6\n2,b,cross,1000\n3,a,film,20\n4,a,film,7000\n";
    fs::write(directory.path().join("traffic.csv"), lines).unwrap();
    let summary = Row::parse("{\"seconds\": 3}").unwrap();
    let of = |take: &str| series(take).measure(directory.path(), &summary).unwrap();
    assert_eq!((of("mean"), of("largest"), of("sum")), (Some(7.5), Some(10.0), Some(15.0)));
    fs::remove_file(directory.path().join("traffic.csv")).unwrap();
    assert_eq!(of("mean"), None);
}

#[test]
fn tables_are_put_into_a_page() {
    let document =
        "A\n<!-- table:one -->\nold\n<!-- /table -->\nB\n<!-- table:two -->\nkept\n<!-- /table -->\nC\n";
    let tables = [("one".to_owned(), "new\n".to_owned())];
    let page = page("page.md".as_ref(), document, &tables).unwrap();
    assert_eq!(page, document.replace("old", "new"));
    let error = super::page("page.md".as_ref(), "nothing", &tables).unwrap_err();
    assert!(error.to_string().starts_with("page.md has no '<!-- table:NAME -->'"), "{error}");
}

/// The campaigns of this repository are right, and so are the scenarios that they name.
#[test]
fn our_own_campaigns_can_be_read() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/campaigns"));
    let all = all(directory).unwrap();
    assert!(all.len() >= 15, "{}", all.len());
    for campaign in &all {
        if let document::Driver::Scenario { file, .. } = &campaign.document.driver {
            assert!(campaign.directory.join(file).exists(), "{file}");
        }
    }
}
