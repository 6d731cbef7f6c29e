//! The comparison as a page of documentation, and as a table of everything.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::finding::{Finding, Ns2Comparison};
use crate::statistics::significant;

/// What the page says before its tables.
const PREFACE: &str = include_str!("preface.md");

fn in_words(finding: Finding) -> &'static str {
    match finding {
        Finding::Within => "within",
        Finding::Ns2Rules => "ns-2's rules",
        Finding::Phase => "phase effect",
        Finding::Differs => "**differs**",
    }
}

/// The numbers of comparisons by group and finding, as a table in Markdown.
pub fn summary(comparisons: &[Ns2Comparison]) -> String {
    let mut text = String::from(
        "| group | compared | within | explained by ns-2's rules | phase effects | differs |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (name, group) in by_group(comparisons) {
        let count = |finding| group.iter().filter(|comparison| comparison.finding() == finding).count();
        let [within, rules, phase, differs] =
            [Finding::Within, Finding::Ns2Rules, Finding::Phase, Finding::Differs].map(count);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {} | {within} | {rules} | {phase} | {differs} |", group.len());
    }
    text
}

fn by_group(comparisons: &[Ns2Comparison]) -> BTreeMap<&str, Vec<&Ns2Comparison>> {
    let mut groups: BTreeMap<&str, Vec<&Ns2Comparison>> = BTreeMap::new();
    for comparison in comparisons {
        groups.entry(comparison.group).or_default().push(comparison);
    }
    groups
}

/// The page: what it is about, the summary, and every comparison that is not within the tolerance.
pub fn page(comparisons: &[Ns2Comparison], seeds: u64) -> String {
    let mut text = format!("{PREFACE}\n## Summary\n\nSeeds 1 to {seeds}.\n\n{}", summary(comparisons));
    for (name, group) in by_group(comparisons) {
        let outside = || group.iter().filter(|comparison| comparison.finding() != Finding::Within);
        if outside().count() == 0 {
            continue;
        }
        let _ = write!(
            text,
            "\n## {name}: outside the tolerance\n\n| scenario | metric | ns-2 | tolerance | ours | with \
             ns-2's rules | |\n\
             | --- | --- | ---: | ---: | ---: | ---: | --- |\n"
        );
        for comparison in outside() {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                comparison.configuration,
                comparison.metric,
                significant(comparison.reference, 4),
                significant(comparison.tolerance, 2),
                significant(comparison.measured, 4),
                significant(comparison.with_ns2_rules, 4),
                in_words(comparison.finding()),
            );
        }
    }
    text
}

/// Every comparison, as comma-separated values.
pub fn everything(comparisons: &[Ns2Comparison]) -> String {
    let mut text = String::from("group,scenario,metric,ns2,tolerance,ours,with_ns2_rules,finding\n");
    for comparison in comparisons {
        let Ns2Comparison {
            group,
            configuration,
            metric,
            reference,
            tolerance,
            measured,
            with_ns2_rules,
            ..
        } = comparison;
        let finding = in_words(comparison.finding()).trim_matches('*');
        let [reference, tolerance, measured, with_ns2_rules] =
            [reference, tolerance, measured, with_ns2_rules].map(|value| significant(*value, 6));
        let _ = writeln!(
            text,
            "{group},{configuration},{metric},{reference},{tolerance},{measured},{with_ns2_rules},{finding}"
        );
    }
    text
}
