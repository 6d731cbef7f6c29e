//! `docs/reproduction.md`: what reproduces, every difference with its cause, and ours beside the papers.

use std::fmt::Write;

use crate::comparison::{Compared, Comparison};
use crate::outcome::{Judgement, Outcome, Verdict};
use crate::paper::Paper;
use crate::report::papers;
use crate::statistics::significant;

/// A verdict over fewer seeds is told apart: the interval is wide or missing.
const SEEDS: usize = 5;
/// Within a fifth of one, either way.
const NEAR: (f64, f64) = (1.0 / 1.2, 1.2);
const NOT_FOUND: &str = "cause not found";

const PREFACE: &str = "# Are the papers right?\n\n\
    Made by `anabranch lab report DIR --markdown docs/reproduction.md` from what `anabranch lab run all` \
    leaves in DIR. Do not edit it.\n\n\
    A *relation* is a statement of a paper as a number. It reproduces when the mean over the seeds lies \
    where the paper has it. How the lab\n\
    works, and how to see the figures: [lab.md](lab.md).\n";

/// The page.
pub fn page(outcomes: &[Outcome]) -> String {
    let mut text = format!("{PREFACE}\n## Counts\n\n");
    let (own, papers): (Vec<Paper>, Vec<Paper>) =
        papers(outcomes).into_iter().partition(|paper| paper.is_ours);
    count(&papers, outcomes, &mut text);
    text += "\nOurs beside the papers' schemes is in a table of its own, and not in these counts.\n";
    few_seeds(outcomes, &mut text);
    for paper in papers {
        differences(&paper, outcomes, &mut text);
    }
    ours(&outcomes.iter().filter(|outcome| !outcome.paper.is_ours).collect::<Vec<_>>(), &mut text);
    real(outcomes, &mut text);
    if !own.is_empty() {
        text += "\n## Experiments of our own\n\nTheir relations are bars that we set ourselves.\n\n";
        count(&own, outcomes, &mut text);
        for paper in own {
            differences(&paper, outcomes, &mut text);
        }
    }
    text
}

/// A row for each paper, and one for all.
fn count(papers: &[Paper], outcomes: &[Outcome], text: &mut String) {
    *text += "| paper | experiments | relations | reproduce | differ | of these, reproduce in a run that shows the \
              cause | cause not found |\n\
              | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    let of = |papers: &[Paper]| -> Vec<&Outcome> {
        outcomes.iter().filter(|outcome| papers.contains(&outcome.paper)).collect()
    };
    // Writing to a string does not fail.
    for paper in papers {
        let _ = writeln!(text, "| {paper} | {} |", counts(&of(std::slice::from_ref(paper))));
    }
    let _ = writeln!(text, "| all | {} |", counts(&of(papers)));
}

fn published(outcome: &Outcome) -> impl Iterator<Item = &Judgement> {
    outcome.verdicts.iter().filter(|judgement| !judgement.is_ours())
}

/// Whether nobody knows why it differs, or why it differs by so much.
fn is_unexplained(judgement: &Judgement) -> bool {
    let cause = judgement.cause.as_deref().unwrap_or_default();
    cause.is_empty() || cause.contains("not found")
}

fn counts(outcomes: &[&Outcome]) -> String {
    let all: Vec<&Judgement> = outcomes.iter().flat_map(|outcome| published(outcome)).collect();
    let differ: Vec<&&Judgement> =
        all.iter().filter(|judgement| judgement.verdict == Verdict::Differs).collect();
    let shown = differ.iter().filter(|judgement| !judgement.reproduces_in.is_empty()).count();
    let unexplained = differ.iter().filter(|judgement| is_unexplained(judgement)).count();
    let [relations, differ] = [all.len(), differ.len()];
    format!("{} | {relations} | {} | {differ} | {shown} | {unexplained}", outcomes.len(), relations - differ)
}

fn few_seeds(outcomes: &[Outcome], text: &mut String) {
    let random = |outcome: &&Outcome| outcome.command.contains("--seeds");
    let few: Vec<String> = (outcomes.iter().filter(random))
        .filter(|outcome| outcome.seeds < SEEDS)
        .map(|outcome| format!("`{}` ({})", outcome.id, outcome.seeds))
        .collect();
    if !few.is_empty() {
        let _ = writeln!(
            text,
            "\n**Provisional**: these ran with fewer than {SEEDS} seeds (the number in brackets), so that \
             their verdicts may change: {}.",
            few.join(", ")
        );
    }
}

fn differences(paper: &Paper, outcomes: &[Outcome], text: &mut String) {
    let _ = write!(text, "\n## {paper}\n\n{}.\n", paper.citation);
    let own = outcomes.iter().filter(|outcome| outcome.paper == *paper);
    let differing = own.flat_map(|outcome| {
        let differs = |judgement: &&Judgement| judgement.verdict == Verdict::Differs;
        published(outcome).filter(differs).map(move |judgement| (outcome, judgement))
    });
    let rows: Vec<String> = differing
        .map(|(outcome, judgement)| {
            let measured =
                judgement.measured.map_or_else(|| "nothing".into(), |estimate| estimate.to_string());
            let why = judgement.cause.as_deref().unwrap_or(NOT_FOUND);
            row(&[
                &format!("`{}`", outcome.id),
                &judgement.in_words(),
                &judgement.published,
                &format!("{measured} {}", judgement.unit),
                why,
            ])
        })
        .collect();
    if rows.is_empty() {
        text.push_str("\nEverything that ran reproduces.\n");
    } else {
        text.push_str(
            "\n| experiment | relation that differs | published | measured | cause |\n| --- | --- \
                       | --- | --- | --- |\n",
        );
        text.extend(rows);
    }
}

fn ours(outcomes: &[&Outcome], text: &mut String) {
    let all: Vec<&Judgement> = outcomes.iter().flat_map(|outcome| outcome.ours()).collect();
    let ahead = all.iter().filter(|judgement| judgement.verdict == Verdict::Reproduces).count();
    let level = all.iter().filter(|judgement| judgement.is_level).count();
    let _ = write!(
        text,
        "\n## Ours beside the papers' schemes\n\nOf {} rows ours is ahead on {ahead}, level on {level} (the \
         interval over the seeds has both sides in it), and behind on {}.\n\n\
         | experiment | what | ahead when | measured | ours is | cause, where it is not ahead |\n| --- | --- \
         | --- | --- | --- | --- |\n",
        all.len(),
        all.len() - ahead - level
    );
    for (outcome, judgement) in
        outcomes.iter().flat_map(|outcome| outcome.ours().map(move |judgement| (outcome, judgement)))
    {
        let measured = judgement.measured.map_or_else(|| "nothing".into(), |estimate| estimate.to_string());
        let (standing, why) = match judgement.verdict {
            Verdict::Reproduces => ("ahead", ""),
            Verdict::Differs if judgement.is_level => {
                ("level", judgement.cause.as_deref().unwrap_or_default())
            }
            Verdict::Differs => ("behind", judgement.cause.as_deref().unwrap_or(NOT_FOUND)),
        };
        text.push_str(&row(&[
            &format!("`{}`", outcome.id),
            &judgement.claim,
            &judgement.expected,
            &format!("{measured} {}", judgement.unit),
            standing,
            why,
        ]));
    }
}

/// What real programs gave, as multiples of what was simulated.
fn real(outcomes: &[Outcome], text: &mut String) {
    let ran = outcomes.iter().filter_map(|outcome| Some((outcome, outcome.measured.as_ref()?)));
    let ran: Vec<(&Outcome, &Comparison)> = ran.collect();
    let rows: Vec<(&Outcome, &Compared)> =
        ran.iter().flat_map(|(outcome, real)| real.rows.iter().map(|row| (*outcome, row))).collect();
    let ratios: Vec<f64> = rows.iter().filter_map(|(_, compared)| compared.ratio()).collect();
    if ratios.is_empty() {
        return;
    }
    let close = ratios.iter().filter(|ratio| (NEAR.0..=NEAR.1).contains(*ratio)).count();
    let _ = write!(
        text,
        "\n## Beside real programs\n\n{} experiments ran with real programs as well (`--real`). Of {} ratios {close} \
         lie within a fifth of one.\nIn what the runs differ, and why these figures do: [real.md](real.md).\n\n\
         | experiment | run | figure | simulated | real | real / simulated |\n\
         | --- | --- | --- | ---: | ---: | ---: |\n",
        ran.len(),
        ratios.len()
    );
    for (outcome, compared) in rows {
        let simulated = compared.simulated.map_or_else(|| "–".into(), |estimate| estimate.to_string());
        let ratio = compared.ratio().map_or_else(|| "–".into(), |ratio| significant(ratio, 3));
        text.push_str(&row(&[
            &format!("`{}`", outcome.id),
            &compared.case,
            &compared.figure,
            &format!("{simulated} {}", compared.unit),
            &compared.measured.to_string(),
            &ratio,
        ]));
    }
}

/// A row of a table. A bar or a line's end in a cell would be another cell or the table's end.
fn row(cells: &[&str]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.trim().replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}
