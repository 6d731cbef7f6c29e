//! The report: one HTML file that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::outcome::{FilledCell, FilledTable, Judgement, Outcome, Verdict};
use crate::statistics::Estimate;

const STYLE: &str = include_str!("../assets/report.css");

/// The report on outcomes, in their order. `picture` gives the SVG of an outcome's plot.
///
/// # Errors
/// Those of `picture`.
pub(crate) fn html<E>(
    outcomes: &[Outcome],
    picture: impl Fn(&Outcome, &str) -> Result<String, E>,
) -> Result<String, E> {
    let sections: Vec<Markup> =
        outcomes.iter().map(|outcome| section(outcome, &picture)).collect::<Result<_, E>>()?;
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Anabranch: published results, reproduced" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Published results, reproduced" }
                p {
                    "Every relation is a number, computed from simulations. It reproduces when its mean over the seeds lies where the "
                    "paper has it, in the bounds that are named; ± is the 95 % confidence interval of the mean."
                }
                (summary(outcomes))
                @for section in sections { (section) }
            }
        }
    };
    Ok(document.into_string())
}

fn summary(outcomes: &[Outcome]) -> Markup {
    let total = |verdict| outcomes.iter().map(|outcome| outcome.count(verdict)).sum::<usize>();
    html! {
        div.wide { table {
            caption { "Summary" }
            thead { tr { th { "paper" } th { "experiment" } th { "what" } th.number { "reproduced" } th.number { "differing" } } }
            tbody { @for outcome in outcomes { tr {
                td { (outcome.paper) }
                td { a href=(format!("#{}", outcome.id)) { (outcome.id) } }
                td { (outcome.title) }
                td.number { (outcome.count(Verdict::Reproduces)) }
                td.number { (outcome.count(Verdict::Differs)) }
            } } }
            tfoot { tr {
                th colspan="3" { "all" }
                th.number { (total(Verdict::Reproduces)) }
                th.number { (total(Verdict::Differs)) }
            } }
        } }
    }
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
