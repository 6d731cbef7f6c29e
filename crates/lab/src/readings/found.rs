//! What a search has found: of every set, which relations reproduce.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::sets::{self, Set};
use crate::outcome::{Judgement, Verdict};
use crate::plan::reading::Open;

/// The relations of an experiment in every set of what concerns it.
pub(super) type Judged = BTreeMap<(String, Set), Vec<Judgement>>;

/// What was found.
pub struct Found {
    open: Vec<Open>,
    /// How many relations reproduce in each set that was searched, the best first.
    counts: Vec<(usize, Set)>,
    judged: Judged,
    /// How many sets there were.
    all: usize,
}

impl Found {
    /// The sets that were listed.
    pub(super) fn of_listed(open: Vec<Open>, listed: Vec<Set>, judged: Judged) -> Self {
        let all = listed.len();
        Self { open, counts: Vec::new(), judged, all }.counted(listed)
    }

    /// Every set of what concerns several experiments, each with the best values of what concerns one alone.
    pub(super) fn of_every(open: Vec<Open>, judged: Judged) -> Self {
        let found = Self { all: sets::count(&open), open, counts: Vec::new(), judged };
        let open = &found.open;
        let shared: Vec<usize> = (0..open.len()).filter(|index| sets::is_shared(&open[*index])).collect();
        let complete = sets::every(open, &shared).into_iter().map(|values| {
            let mut set = sets::baseline(open);
            shared.iter().zip(values).for_each(|(index, value)| set[*index] = value);
            found.complete(&mut set);
            set
        });
        let complete = complete.collect();
        found.counted(complete)
    }

    fn counted(mut self, sets: Vec<Set>) -> Self {
        self.counts = sets.into_iter().map(|set| (self.of_all(&set), set)).collect();
        // Of equals the first: values stand in the order in which they are preferred.
        self.counts.sort_by(|(one, first), (other, second)| other.cmp(one).then(first.cmp(second)));
        self
    }

    /// A table of all sets, the best first: a value for all that is open, how many relations reproduce, and
    /// how many of each experiment do.
    pub fn table(&self) -> String {
        let names = self.experiments();
        let open: Vec<String> = self.open.iter().map(|open| quoted(&open.name)).collect();
        let mut text = format!("{},reproduce,{}\n", open.join(","), names.join(","));
        for (count, set) in &self.counts {
            let labels: Vec<String> = sets::labels(&self.open, set).map(|(_, label)| quoted(label)).collect();
            let each: Vec<String> =
                names.iter().map(|name| reproduced(self.of_one(name, set)).to_string()).collect();
            let _ = writeln!(text, "{},{count},{}", labels.join(","), each.join(","));
        }
        text
    }

    /// A table of every relation in every set of what concerns its experiment.
    pub fn relations(&self) -> String {
        let mut text = String::from("experiment,set,relation,measured,low,high,expected,verdict\n");
        for ((name, set), verdicts) in &self.judged {
            let concern = sets::concern(&self.open, name);
            let values =
                concern.iter().zip(set).filter_map(|(open, value)| self.open[*open].values.get(*value));
            let values: Vec<&str> = values.map(|value| value.label.as_str()).collect();
            for one in verdicts {
                let [mean, low, high] = one.measured.map_or([f64::NAN; 3], |measured| {
                    let half = measured.half_width.unwrap_or(f64::NAN);
                    [measured.mean, measured.mean - half, measured.mean + half]
                });
                let (set, relation) = (quoted(&values.join("; ")), quoted(&one.relation));
                let (expected, verdict) = (quoted(&one.expected), one.verdict);
                let _ = writeln!(text, "{name},{set},{relation},{mean},{low},{high},{expected},{verdict}");
            }
        }
        text
    }

    /// A table of the baseline and the best sets: how many relations reproduce in each, and which are not as
    /// at the baseline.
    pub fn best(&self, most: usize) -> String {
        let mut text = String::from("| set | reproduce | not as at the baseline |\n| --- | ---: | --- |\n");
        let baseline = sets::baseline(&self.open);
        let best = self.counts.iter().map(|(_, set)| set).filter(|set| **set != baseline).take(most);
        for set in [&baseline].into_iter().chain(best) {
            let (name, count) = (sets::name(&self.open, set), self.of_all(set));
            let _ = writeln!(text, "| {name} | {count} | {} |", self.not_as(&baseline, set).join("; "));
        }
        let names = self.experiments();
        let relations: usize = names.iter().map(|name| self.of_one(name, &baseline).len()).sum();
        let _ = writeln!(text, "\nof {relations} relations, in {} sets", self.all);
        text
    }

    /// The relations whose verdict is not that of the baseline, with what each has in a set.
    fn not_as(&self, baseline: &Set, set: &Set) -> Vec<String> {
        let mut others = Vec::new();
        for name in self.experiments() {
            let pairs = self.of_one(name, baseline).iter().zip(self.of_one(name, set));
            for (_, one) in pairs.filter(|(first, one)| first.verdict != one.verdict) {
                let measured = one.measured.map_or_else(|| "nothing".into(), |measured| measured.to_string());
                others.push(format!("`{name}` {} {} ({measured})", one.relation, one.verdict));
            }
        }
        others
    }

    fn experiments(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.judged.keys().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        names
    }

    fn of_one(&self, name: &str, set: &Set) -> &[Judgement] {
        let own = sets::part(set, &sets::concern(&self.open, name));
        self.judged.get(&(name.to_owned(), own)).map_or(&[], Vec::as_slice)
    }

    /// Puts the best values of what concerns one experiment alone into a set.
    fn complete(&self, set: &mut Set) {
        for name in self.experiments() {
            let own: Vec<usize> = (0..self.open.len())
                .filter(|index| self.open[*index].experiments.iter().all(|one| one == name))
                .collect();
            let with = |values: &Set| {
                let mut set = set.clone();
                own.iter().zip(values).for_each(|(index, value)| set[*index] = *value);
                set
            };
            // The last of equals is taken: of them the first is wanted.
            let best = sets::every(&self.open, &own).into_iter().rev().map(|values| with(&values));
            if let Some(best) = best.max_by_key(|set| reproduced(self.of_one(name, set))) {
                *set = best;
            }
        }
    }

    fn of_all(&self, set: &Set) -> usize {
        self.experiments().iter().map(|name| reproduced(self.of_one(name, set))).sum()
    }
}

fn reproduced(verdicts: &[Judgement]) -> usize {
    verdicts.iter().filter(|one| one.verdict == Verdict::Reproduces).count()
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}
