//! Chapters as pages of HTML that need nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::OVERVIEW;
use super::content::{Block, Chapter, Place, Span, Style, Table, Text};

const STYLE: &str = include_str!("../../assets/report.css");

/// The file of a chapter.
pub(crate) fn file(chapter: &str) -> String {
    format!("{chapter}.html")
}

/// The page of a chapter.
pub(crate) fn page(chapter: &Chapter) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Anabranch: " (chapter.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @if chapter.name != OVERVIEW { p { a href=(file(OVERVIEW)) { "All papers" } } }
                h1 { (chapter.title) }
                @for block in &chapter.intro { (shown(block)) }
                @for section in &chapter.sections {
                    section id=(section.name) {
                        h2 { (section.title) }
                        @for block in &section.blocks { (shown(block)) }
                    }
                }
            }
        }
    }
    .into_string()
}

fn shown(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Heading(title) => h3 { (title) },
            Block::Paragraph(words) => p { (text(words)) },
            Block::List(items) => ul { @for item in items { li { (text(item)) } } },
            // Made by our own plots, which escape what they are given.
            Block::Figure(svg) => figure { (PreEscaped(svg)) },
            Block::Table(filled) => (table(filled)),
        }
    }
}

fn table(table: &Table) -> Markup {
    let numbers = || table.columns.iter().map(|column| column.is_number);
    html! {
        div.wide { table {
            caption { (table.caption) }
            thead { tr { @for column in &table.columns { th.number[column.is_number] { (column.head) } } } }
            tbody { @for row in &table.rows { tr {
                @for (cell, is_number) in row.iter().zip(numbers()) { td.number[is_number] { (text(cell)) } }
            } } }
            @if let Some(foot) = &table.foot { tfoot { tr {
                @for (cell, is_number) in foot.iter().zip(numbers()) { th.number[is_number] { (text(cell)) } }
            } } }
        } }
    }
}

fn text(text: &Text) -> Markup {
    html! {
        @for span in &text.0 {
            @match span {
                Span::Break => br;,
                Span::Link(words, place) => a href=(address(place)) { (words) },
                Span::Words(words, Style::Plain) => (words),
                Span::Words(words, Style::Strong) => strong { (words) },
                Span::Words(words, Style::Code) => code { (words) },
                Span::Words(words, Style::Good) => span.good { (words) },
                Span::Words(words, Style::Bad) => span.bad { (words) },
                Span::Words(words, Style::Small) => small { (words) },
            }
        }
    }
}

fn address(place: &Place) -> String {
    let section = place.section.as_ref().map_or_else(String::new, |section| format!("#{section}"));
    file(&place.chapter) + &section
}
