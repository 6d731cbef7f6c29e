//! The comparison as a page of documentation.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Comparison, Finding};
use crate::statistics::significant;

fn in_words(finding: Finding) -> &'static str {
    match finding {
        Finding::Within => "within",
        Finding::Ns2Rules => "ns-2's rules",
        Finding::Phase => "phase effect",
        Finding::Differs => "**differs**",
    }
}

/// Markdown: a summary by group, then every metric of every scenario.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "| group | compared | within | explained by ns-2's rules | phase effects, no target | differs |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut groups: BTreeMap<&str, Vec<&Comparison>> = BTreeMap::new();
    for comparison in comparisons {
        groups.entry(comparison.group).or_default().push(comparison);
    }
    for (name, group) in &groups {
        let count = |finding| group.iter().filter(|comparison| comparison.finding() == finding).count();
        let [within, rules, phase, differs] =
            [Finding::Within, Finding::Ns2Rules, Finding::Phase, Finding::Differs].map(count);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {name} | {} | {within} | {rules} | {phase} | {differs} |", group.len());
    }
    for (name, group) in &groups {
        let _ = write!(
            text,
            "\n## {name}\n\n| scenario | metric | ns-2 | tolerance | ours | with ns-2's rules | |\n\
             | --- | --- | ---: | ---: | ---: | ---: | --- |\n"
        );
        for comparison in group {
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
