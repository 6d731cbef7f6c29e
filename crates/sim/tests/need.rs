//! Players whose server shares its link among them by what they need.

use anabranch_sim::Simulation;
use anabranch_sim::model::Model;
use anabranch_sim::report::{Seen, Totals};
use anabranch_sim::scenario::{Beside, parse};

/// A server, and viewers behind one link of 4.4 Mbps: 1.1 times what the lowest rungs of all need.
const PATH: &str = "[run]\nduration = \"300s\"\n[[node]]\nname = \"server\"\n[[node]]\nname = \"near\"\n\
    [[node]]\nname = \"viewer{i}\"\ncount = 4\n[[node]]\nname = \"mirror\"\n\
    [[link]]\nfrom = \"server\"\nto = \"near\"\nrate = \"4400k\"\ndelay = \"20ms\"\nqueue = \"40 packets\"\n\
    [[link]]\nfrom = \"mirror\"\nto = \"near\"\nrate = \"1G\"\ndelay = \"1ms\"\n\
    [[link]]\nfrom = \"near\"\nto = \"viewer{i}\"\ncount = 4\nrate = \"1G\"\ndelay = \"1ms\"\n";

/// Two players of a film that needs 1.4 Mbps, and two of one that needs 600 kbps.
fn films(group: &str, algorithm: &str) -> String {
    let film = |name: &str, first: u32, rungs: &str| {
        (first..first + 2)
            .map(|number| {
                format!(
                    "[[flow]]\nname = \"{name}{number}\"\nkind = \"media\"\nclient = \"viewer{number}\"\n\
                     servers = [\"server\"]\npace = \"max\"\nalgorithm = {algorithm}\n{group}\
                     ladder = {{ rungs = {rungs}, rule = \"buffer\" }}\ntcp = {{ congestion = \"reno\" }}\n\
                     start = [\"0s\", \"2s\"]\n"
                )
            })
            .collect::<String>()
    };
    let (dear, cheap) = ("[\"1400k\", \"2800k\"]", "[\"600k\", \"1200k\", \"2400k\"]");
    format!("{PATH}{}{}", film("dear", 1, dear), film("cheap", 3, cheap))
}

fn model(text: &str) -> Result<Model, String> {
    parse("need.toml", text, Some(3), &mut Beside(".".as_ref())).map_err(|error| error.to_string())
}

fn run(text: &str) -> (Totals, Vec<Seen>) {
    let mut simulation = Simulation::new(model(text).expect("a scenario")).expect("a possible model");
    simulation.run_until(simulation.end(), &mut ());
    let totals = simulation.totals();
    let seen = totals.flows.iter().map(|flow| flow.media.expect("a film").seen.expect("a player")).collect();
    (totals, seen)
}

fn stalled(seen: &[Seen]) -> f64 {
    seen.iter().map(|seen| seen.stalled.as_secs_f64()).sum()
}

const EQUAL: &str = "group = \"films\"\n";
const BY_NEED: &str = "group = { name = \"films\", by_need = true }\n";

/// Equal shares of 1.1 Mbps let those stall whose lowest rung is 1.4 Mbps, and others play a higher one.
#[test]
fn by_need_they_stall_less_for_as_many_bytes() {
    let (equal, by_need) = (run(&films(EQUAL, "\"fixed\"")), run(&films(BY_NEED, "\"fixed\"")));
    let (before, after) = (stalled(&equal.1), stalled(&by_need.1));
    assert!(before > 60.0 && after < 0.2 * before, "{before} {after}");
    let delivered = |totals: &Totals| totals.flows.iter().map(|flow| flow.delivered.as_f64()).sum::<f64>();
    let part = delivered(&by_need.0) / delivered(&equal.0);
    assert!((0.97..1.1).contains(&part), "{part}");
}

/// With four connections each a player's weight is divided among them.
#[test]
fn more_connections_bring_no_larger_share() {
    let several = |group: &str| {
        let one = films(group, "\"fixed\"");
        let first = one.find("algorithm = \"fixed\"").expect("a flow");
        let (before, after) = one.split_at(first);
        format!("{before}{}", after.replacen("\"fixed\"", "{ kind = \"fixed\", connections = 4 }", 1))
    };
    let played = |seen: &[Seen]| seen.iter().map(|seen| seen.played.as_f64()).collect::<Vec<_>>();
    let (_, seen) = run(&several(BY_NEED));
    let played = played(&seen);
    let part = played.first().expect("a player") / played.get(1).expect("another");
    assert!((0.85..1.15).contains(&part), "{part}: {seen:?}");
}

/// A viewer that goes takes its member of the group with it: the others have what it had.
#[test]
fn who_leaves_leaves_its_share_to_the_others() {
    let text = films(BY_NEED, "\"fixed\"");
    let leaving = text.replace("name = \"dear1\"\n", "name = \"dear1\"\nstop = \"60s\"\n");
    let (stay, leave) = (run(&text), run(&leaving));
    let of = |seen: &[Seen]| seen.iter().skip(1).map(|seen| seen.played.as_f64()).sum::<f64>();
    assert!(of(&leave.1) > 1.15 * of(&stay.1), "{} {}", of(&stay.1), of(&leave.1));
}

#[test]
fn what_goes_with_no_need_is_told() {
    let text = films(BY_NEED, "\"fixed\"");
    let tcp = "kind = \"tcp\"\nfrom = \"server\"\nto = \"viewer1\"\n";
    for (changed, told) in [
        (text.replace("by_need = true", "by_need = true, weight = 2"), "either `weight` or `by_need`"),
        (text.replace("by_need = true", "by_need = 3"), "`by_need` is a table"),
        (
            text.replace("by_need = true", "by_need = { low = \"9s\", high = \"3s\" }"),
            "`low` (9.0 s) is above",
        ),
        (text.replace("by_need = true", "by_need = { most = 0.2 }"), "`most` (0.2) is below"),
        (text.replace("by_need = true", "by_need = { most = 0 }"), "from 0.001 to 1000"),
        (text.replace("by_need = true", "form = \"window\""), "that is for the form `vps`"),
        (text.replace("[\"server\"]", "[\"server\", \"mirror\"]"), "a group is of one"),
        (text.replacen("[\"server\"]", "[\"mirror\"]", 1), "come from several nodes"),
        (text.replace("\"reno\"", "\"bbr\""), "is in no group"),
        (text.replace("\"reno\" }", "\"reno\", ecn = \"classic\" }"), "has no `ecn`"),
        (format!("{PATH}[[flow]]\nname = \"file\"\n{tcp}{BY_NEED}"), "only a media stream"),
        (
            format!(
                "{PATH}[[flow]]\nname = \"film\"\nkind = \"media\"\nclient = \"viewer1\"\nrate = \"1M\"\n\
                 servers = [\"server\"]\nalgorithm = \"fixed\"\n{BY_NEED}"
            ),
            "a player with a `ladder`",
        ),
    ] {
        let error = match model(&changed) {
            Ok(model) => Simulation::new(model).expect_err(told).to_string(),
            Err(error) => error,
        };
        assert!(error.contains(told), "{told}: {error}");
    }
}
