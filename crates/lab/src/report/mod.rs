//! The report: an overview and a chapter for each paper, as pages of HTML and as a PDF.

mod content;
mod html;
mod pdf;

use crate::comparison::{Compared, Comparison};
use crate::outcome::{FilledCell, FilledTable, Judgement, Outcome, Verdict};
use crate::paper::Paper;
use crate::statistics::{Estimate, significant};

pub(crate) use content::Chapter;
use content::{Block, Column, Place, Section, Style, Table, Text};
pub(crate) use html::{file, page};
pub(crate) use pdf::pdf;

/// The overview's name.
const OVERVIEW: &str = "report";

/// The papers that outcomes are of, in order.
pub(crate) fn papers(outcomes: &[Outcome]) -> Vec<Paper> {
    let mut papers: Vec<Paper> = outcomes.iter().map(|outcome| outcome.paper.clone()).collect();
    papers.sort_unstable();
    papers.dedup();
    papers
}

/// The report: the overview, then the papers. `picture` gives the SVG of an outcome's plot.
///
/// # Errors
/// Those of `picture`.
pub(crate) fn chapters<E>(
    outcomes: &[Outcome],
    picture: impl Fn(&Outcome, &str) -> Result<String, E>,
) -> Result<Vec<Chapter>, E> {
    let papers = papers(outcomes);
    let mut chapters = vec![overview(&papers, outcomes)];
    for paper in papers {
        chapters.push(chapter(&paper, outcomes, &picture)?);
    }
    Ok(chapters)
}

fn name(paper: &Paper) -> String {
    paper.to_string().to_lowercase()
}

fn place(outcome: &Outcome) -> Place {
    Place { chapter: name(&outcome.paper), section: Some(outcome.id.clone()) }
}

/// How many statements reproduce, and where ours is ahead.
fn overview(papers: &[Paper], outcomes: &[Outcome]) -> Chapter {
    let mut links = Text::plain("Each paper by itself: ");
    for (index, paper) in papers.iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        let place = Place { chapter: name(paper), section: None };
        links = links.and(separator, Style::Plain).link(paper.to_string(), place);
    }
    let own: Vec<&Outcome> = outcomes.iter().collect();
    let mut intro = vec![
        Block::Paragraph(
            "Every relation is a number, computed from simulations, or where it says so from real programs. It reproduces when its mean over the \
             seeds lies where the paper \
             has it, in the bounds that are named; ± is the 95 % confidence interval of the mean."
                .into(),
        ),
        Block::Paragraph(links),
    ];
    intro.extend(sums(&own));
    Chapter {
        name: OVERVIEW.into(),
        title: "Published results, reproduced".into(),
        intro,
        sections: Vec::new(),
    }
}

fn chapter<E>(
    paper: &Paper,
    outcomes: &[Outcome],
    picture: impl Fn(&Outcome, &str) -> Result<String, E>,
) -> Result<Chapter, E> {
    let own: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.paper == *paper).collect();
    let mut intro = vec![Block::Paragraph((&*paper.citation).into())];
    intro.extend(sums(&own));
    Ok(Chapter {
        name: name(paper),
        title: format!("{paper}, reproduced"),
        intro,
        sections: own.iter().map(|outcome| section(outcome, &picture)).collect::<Result<_, E>>()?,
    })
}

/// What some experiments come to.
fn sums(outcomes: &[&Outcome]) -> Vec<Block> {
    let mut blocks = vec![Block::Table(summary(outcomes))];
    blocks.extend(ours(outcomes).map(Block::Table));
    blocks
}

fn summary(outcomes: &[&Outcome]) -> Table {
    let total = |verdict| outcomes.iter().map(|outcome| outcome.count(verdict)).sum::<usize>().to_string();
    let row = |outcome: &&Outcome| {
        vec![
            outcome.paper.to_string().into(),
            Text::default().link(&outcome.id, place(outcome)),
            (&*outcome.title).into(),
            outcome.seeds.to_string().into(),
            outcome.count(Verdict::Reproduces).to_string().into(),
            outcome.count(Verdict::Differs).to_string().into(),
        ]
    };
    let sums = [total(Verdict::Reproduces), total(Verdict::Differs)].map(Text::plain);
    Table {
        caption: "Summary".into(),
        columns: vec![
            Column::text("paper"),
            Column::text("experiment"),
            Column::text("what"),
            Column::number("seeds"),
            Column::number("reproduced"),
            Column::number("differing"),
        ],
        rows: outcomes.iter().map(row).collect(),
        foot: Some(["all", "", "", ""].map(Text::plain).into_iter().chain(sums).collect()),
    }
}

/// Ours beside the papers' schemes: where it is ahead, and where it is not.
fn ours(outcomes: &[&Outcome]) -> Option<Table> {
    let row = |outcome: &Outcome, judgement: &Judgement| {
        let standing = match judgement.verdict {
            Verdict::Reproduces => Text::default().and("ahead or level", Style::Good),
            Verdict::Differs => Text::default().and("not ahead", Style::Bad),
        };
        vec![
            Text::default().link(&outcome.id, place(outcome)),
            (&*judgement.claim).into(),
            (&*judgement.expected).into(),
            with_unit(judgement),
            with_cause(standing, judgement),
        ]
    };
    let rows: Vec<Vec<Text>> = (outcomes.iter())
        .flat_map(|outcome| outcome.ours().map(move |judgement| row(outcome, judgement)))
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Ours beside the papers' schemes".into(),
        columns: vec![
            Column::text("experiment"),
            Column::text("what"),
            Column::text("ahead when"),
            Column::number("measured"),
            Column::text("ours is"),
        ],
        rows,
        foot: None,
    })
}

fn section<E>(
    outcome: &Outcome,
    picture: impl Fn(&Outcome, &str) -> Result<String, E>,
) -> Result<Section, E> {
    let source = format!(": {}, {}", outcome.paper.citation, outcome.place);
    let mut blocks = vec![
        Block::Paragraph(Text::default().and(&outcome.id, Style::Code).and(source, Style::Plain)),
        Block::Paragraph(Text::default().and("The paper: ", Style::Strong).and(&outcome.claim, Style::Plain)),
    ];
    for (plot, _) in &outcome.plots {
        blocks.push(Block::Figure(picture(outcome, plot)?));
    }
    blocks.extend(outcome.tables.iter().map(|table| Block::Table(filled(table))));
    blocks.extend(outcome.measured.as_ref().map(comparison).into_iter().flatten());
    blocks.push(Block::Table(relations(outcome)));
    if !outcome.assumed.is_empty() {
        blocks.push(Block::Heading("Assumed"));
        blocks.push(Block::List(outcome.assumed.iter().map(|assumed| (&**assumed).into()).collect()));
    }
    let seeds =
        if outcome.seeds == 1 { "one seed.".into() } else { format!("seeds 1 to {}.", outcome.seeds) };
    let made = Text::plain("Made by ")
        .and(&outcome.command, Style::Code)
        .and(format!(", version {}, {seeds}", outcome.version), Style::Plain);
    blocks.push(Block::Paragraph(made));
    Ok(Section { name: outcome.id.clone(), title: outcome.title.clone(), blocks })
}

/// What real programs gave, beside what was simulated.
fn comparison(comparison: &Comparison) -> Vec<Block> {
    let row = |compared: &Compared| {
        let ratio = compared.ratio().map_or_else(|| "–".into(), |ratio| significant(ratio, 3));
        vec![
            (&*compared.case).into(),
            (&*compared.figure).into(),
            (&*compared.unit).into(),
            measured(compared.simulated).into(),
            measured(Some(compared.measured)).into(),
            ratio.into(),
        ]
    };
    let times =
        if comparison.seeds == 1 { "once".into() } else { format!("{} times each", comparison.seeds) };
    let made = Text::plain("Measured with real programs over emulated paths, ")
        .and(times, Style::Plain)
        .and(", by ", Style::Plain)
        .and(&comparison.command, Style::Code)
        .and(". In what these runs differ from the simulated ones:", Style::Plain);
    vec![
        Block::Table(Table {
            caption: "Simulated and measured".into(),
            columns: vec![
                Column::text("run"),
                Column::text("figure"),
                Column::text("unit"),
                Column::number("simulated"),
                Column::number("measured"),
                Column::number("measured / simulated"),
            ],
            rows: comparison.rows.iter().map(row).collect(),
            foot: None,
        }),
        Block::Paragraph(made),
        Block::List(comparison.differs.iter().map(|differs| (&**differs).into()).collect()),
    ]
}

fn relations(outcome: &Outcome) -> Table {
    let row = |judgement: &Judgement| {
        let style = match judgement.verdict {
            Verdict::Reproduces => Style::Good,
            Verdict::Differs => Style::Bad,
        };
        let verdict = Text::default().and(judgement.verdict.to_string(), style);
        let mut row: Vec<Text> = vec![(&*judgement.claim).into()];
        row.extend([
            (&*judgement.published).into(),
            (&*judgement.expected).into(),
            with_unit(judgement),
            with_cause(verdict, judgement),
        ]);
        row
    };
    let mut columns = vec![Column::text("relation")];
    columns.extend([
        Column::text("published"),
        Column::text("holds"),
        Column::number("measured"),
        Column::text("verdict"),
    ]);
    Table {
        caption: "Relations".into(),
        columns,
        rows: outcome.verdicts.iter().map(row).collect(),
        foot: None,
    }
}

fn with_cause(text: Text, judgement: &Judgement) -> Text {
    match &judgement.cause {
        Some(cause) => text.on_a_new_line(cause, Style::Plain),
        None => text,
    }
}

fn with_unit(judgement: &Judgement) -> Text {
    format!("{} {}", measured(judgement.measured), judgement.unit).trim_end().into()
}

fn filled(table: &FilledTable) -> Table {
    let heads = table.columns.iter().enumerate();
    let column = |(index, head): (usize, &String)| Column { head: head.clone(), is_number: index > 0 };
    let row = |(label, cells): &(String, Vec<FilledCell>)| {
        std::iter::once((&**label).into()).chain(cells.iter().copied().map(filled_cell)).collect()
    };
    Table {
        caption: table.title.clone(),
        columns: heads.map(column).collect(),
        rows: table.rows.iter().map(row).collect(),
        foot: None,
    }
}

fn filled_cell(cell: FilledCell) -> Text {
    let text = Text::plain(measured(cell.measured));
    match cell.published {
        Some(published) => text.on_a_new_line(format!("paper: {published}"), Style::Small),
        None => text,
    }
}

/// What was measured, or a dash.
fn measured(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "–".into(), |estimate| estimate.to_string())
}
