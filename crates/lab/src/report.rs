//! The report: an overview and a page for each paper, HTML files that need nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::experiment::Paper;
use crate::outcome::{FilledCell, FilledTable, Judgement, Outcome, Verdict};
use crate::statistics::Estimate;

const STYLE: &str = include_str!("../assets/report.css");
/// The overview's file.
pub(crate) const OVERVIEW: &str = "report.html";

/// The file of a paper's page.
pub(crate) fn page_of(paper: Paper) -> String {
    format!("{}.html", paper.to_string().to_lowercase())
}

/// The papers that outcomes are of, in order.
pub(crate) fn papers(outcomes: &[Outcome]) -> Vec<Paper> {
    let mut papers: Vec<Paper> = outcomes.iter().map(|outcome| outcome.paper).collect();
    papers.sort_unstable();
    papers.dedup();
    papers
}

/// The overview: how many statements reproduce, where ours is ahead, and what is not run.
pub(crate) fn overview(outcomes: &[Outcome]) -> String {
    document(
        "Published results, reproduced",
        &html! {
            h1 { "Published results, reproduced" }
            p {
                "Every relation is a number, computed from simulations. It reproduces when its mean over the seeds lies where the "
                "paper has it, in the bounds that are named; ± is the 95 % confidence interval of the mean."
            }
            p { "A page for each paper: "
                @for (index, paper) in papers(outcomes).into_iter().enumerate() {
                    @if index > 0 { ", " }
                    a href=(page_of(paper)) { (paper) }
                }
            }
            (summary(outcomes))
            (ours(outcomes))
            (elsewhere(outcomes))
        },
    )
}

/// The page of a paper. `picture` gives the SVG of an outcome's plot.
///
/// # Errors
/// Those of `picture`.
pub(crate) fn page<E>(
    paper: Paper,
    outcomes: &[Outcome],
    picture: impl Fn(&Outcome, &str) -> Result<String, E>,
) -> Result<String, E> {
    let own: Vec<Outcome> = outcomes.iter().filter(|outcome| outcome.paper == paper).cloned().collect();
    let sections: Vec<Markup> =
        own.iter().map(|outcome| section(outcome, &picture)).collect::<Result<_, E>>()?;
    let title = format!("{paper}, reproduced");
    Ok(document(
        &title,
        &html! {
            p { a href=(OVERVIEW) { "All papers" } }
            h1 { (title) }
            p { (paper.citation()) }
            (summary(&own))
            (ours(&own))
            (elsewhere(&own))
            @for section in sections { (section) }
        },
    ))
}

fn document(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Anabranch: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

fn summary(outcomes: &[Outcome]) -> Markup {
    let total = |verdict| outcomes.iter().map(|outcome| outcome.count(verdict)).sum::<usize>();
    html! {
        div.wide { table {
            caption { "Summary" }
            thead { tr { th { "paper" } th { "experiment" } th { "what" } th.number { "seeds" } th.number { "reproduced" }
                th.number { "differing" } } }
            tbody { @for outcome in outcomes { tr {
                td { (outcome.paper) }
                td.id { a href=(format!("{}#{}", page_of(outcome.paper), outcome.id)) { (outcome.id) } }
                td { (outcome.title) }
                td.number { (outcome.seeds) }
                td.number { (outcome.count(Verdict::Reproduces)) }
                td.number { (outcome.count(Verdict::Differs)) }
            } } }
            tfoot { tr {
                th colspan="4" { "all" }
                th.number { (total(Verdict::Reproduces)) }
                th.number { (total(Verdict::Differs)) }
            } }
        } }
    }
}

/// Ours beside the paper's schemes: where it is ahead, and where it is not.
fn ours(outcomes: &[Outcome]) -> Markup {
    let rows: Vec<(&Outcome, &Judgement)> = (outcomes.iter())
        .flat_map(|outcome| outcome.ours().map(move |judgement| (outcome, judgement)))
        .collect();
    html! { @if !rows.is_empty() { div.wide { table {
        caption { "Ours beside the papers' schemes" }
        thead { tr { th { "experiment" } th { "what" } th { "ahead when" } th.number { "measured" } th { "ours is" } } }
        tbody { @for (outcome, judgement) in rows { tr {
            td.id { a href=(format!("{}#{}", page_of(outcome.paper), outcome.id)) { (outcome.id) } }
            td { (judgement.claim) }
            td { (judgement.expected) }
            td.number { (measured(judgement.measured)) " " (judgement.unit) }
            td {
                @match judgement.verdict {
                    Verdict::Reproduces => span.reproduces { "ahead or level" },
                    Verdict::Differs => span.differs { "not ahead" },
                }
                @if let Some(cause) = &judgement.cause { span.cause { (cause) } }
            }
        } } }
    } } } }
}

fn elsewhere(outcomes: &[Outcome]) -> Markup {
    let rows = crate::elsewhere::rows(&papers(outcomes));
    html! { @if !rows.is_empty() {
        h2 { "Published results without a verdict here" }
        ul { @for row in rows { li { code { (row.id) } ": " (row.what) ". " (row.why) } } }
    } }
}

fn section<E>(outcome: &Outcome, picture: impl Fn(&Outcome, &str) -> Result<String, E>) -> Result<Markup, E> {
    let pictures =
        outcome.plots.iter().map(|(plot, _)| picture(outcome, plot)).collect::<Result<Vec<_>, E>>()?;
    Ok(html! {
        section id=(outcome.id) {
            h2 { (outcome.title) }
            p { code { (outcome.id) } ": " (outcome.paper.citation()) ", " (outcome.place) }
            p { strong { "The paper: " } (outcome.claim) }
            // Made by our own plots, which escape what they are given.
            @for picture in pictures { figure { (PreEscaped(picture)) } }
            @for table in &outcome.tables { (filled(table)) }
            (relations(outcome))
            @if !outcome.assumed.is_empty() {
                h3 { "Assumed" }
                ul { @for assumed in &outcome.assumed { li { (assumed) } } }
            }
            p {
                "Made by " code { (outcome.command) } ", version " (outcome.version) ", "
                @if outcome.seeds == 1 { "one seed." } @else { "seeds 1 to " (outcome.seeds) "." }
            }
        }
    })
}

fn relations(outcome: &Outcome) -> Markup {
    let has_variants = outcome.verdicts.iter().any(|judgement| !judgement.variant.is_empty());
    html! {
        div.wide { table {
            caption { "Relations" }
            thead { tr {
                th { "relation" }
                @if has_variants { th { "judged on" } }
                th { "published" } th { "holds" } th.number { "measured" } th { "verdict" }
            } }
            tbody { @for judgement in &outcome.verdicts { tr {
                td { (judgement.claim) }
                @if has_variants { td { (judgement.variant) } }
                td { (judgement.published) }
                td { (judgement.expected) }
                td.number { (measured(judgement.measured)) " " (judgement.unit) }
                td { (verdict(judgement)) }
            } } }
        } }
    }
}

fn verdict(judgement: &Judgement) -> Markup {
    html! {
        span class=(judgement.verdict) { (judgement.verdict) }
        @if let Some(cause) = &judgement.cause { span.cause { (cause) } }
    }
}

fn filled(table: &FilledTable) -> Markup {
    html! {
        div.wide { table {
            caption { (table.title) }
            thead { tr { @for (index, head) in table.columns.iter().enumerate() {
                th.number[index > 0] { (head) }
            } } }
            tbody { @for (label, cells) in &table.rows { tr {
                td { (label) }
                @for cell in cells { td.number { (filled_cell(*cell)) } }
            } } }
        } }
    }
}

fn filled_cell(cell: FilledCell) -> Markup {
    html! {
        (measured(cell.measured))
        @if let Some(published) = cell.published { br; small { "paper: " (published) } }
    }
}

/// What was measured, or a dash.
fn measured(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "–".into(), |estimate| estimate.to_string())
}
