//! Every experiment's texts on pages. Nothing was measured, so that every cause of a difference is there.

use std::collections::BTreeSet;

use super::*;
use crate::experiments;
use crate::outcome::Outcome;
use crate::plot::{drawn, svg};
use crate::report::chapters;
use crate::results::Results;

fn everything() -> (Vec<Chapter>, usize) {
    let all = experiments::all(None).unwrap();
    let outcomes: Vec<Outcome> = all.iter().map(|one| Outcome::of(one, &Results::default())).collect();
    let picture = |outcome: &Outcome, id: &str| {
        let plots = all.iter().filter(|one| one.id == outcome.id).flat_map(|one| &one.plots);
        let plot = plots.into_iter().find(|plot| plot.id == id).ok_or("no such plot")?;
        Ok::<_, &str>(svg(plot, &drawn(plot, &Results::default())))
    };
    (chapters(&outcomes, picture).unwrap(), all.len())
}

#[test]
fn nothing_is_beyond_a_page_s_margins() {
    let layout = Layout::of(&everything().0).unwrap();
    for (index, page) in layout.pages.iter().enumerate() {
        assert!(!page.is_empty(), "page {index} is empty");
        for item in page {
            let (texts, [left, right, top, bottom]) = match item {
                Item::Line { x, baseline, size, line } => (
                    line.runs.iter().map(|run| &*run.text).collect::<String>(),
                    [*x, x + line.width, baseline - size, *baseline],
                ),
                Item::Rule { x, y, width } => ("rule".into(), [*x, x + width, *y, *y]),
                Item::Shade { x, y, width, height } => ("shade".into(), [*x, x + width, *y, y + height]),
                Item::Figure { x, y, width, height, .. } => {
                    ("figure".into(), [*x, x + width, *y, y + height])
                }
            };
            // A tenth of a point is rounding.
            let (within, below) = (LEFT - 0.1..LEFT + WIDTH + 0.1, layout::TOP - 0.1..BOTTOM + 0.1);
            assert!(
                within.contains(&left) && within.contains(&right),
                "page {index}: {texts}: {left} to {right}"
            );
            assert!(
                below.contains(&top) && below.contains(&bottom),
                "page {index}: {texts}: {top} to {bottom}"
            );
        }
    }
}

#[test]
fn every_experiment_is_in_the_outline_and_every_link_leads_somewhere() {
    let (chapters, experiments) = everything();
    let layout = Layout::of(&chapters).unwrap();
    assert_eq!(layout.marks.len(), chapters.len() + experiments);
    let mut links = 0;
    for item in layout.pages.iter().flatten() {
        let Item::Line { line, .. } = item else { continue };
        for place in line.runs.iter().filter_map(|run| run.link.as_ref()) {
            assert!(destination(place, &layout.marks).is_some(), "{place:?}");
            links += 1;
        }
    }
    assert!(links >= 2 * experiments, "{links}");
}

#[test]
fn the_fonts_have_every_letter_of_the_report() {
    let layout = Layout::of(&everything().0).unwrap();
    let mut missing = BTreeSet::new();
    for (font, is_bold_font) in [(plot::FONT, false), (text::BOLD, true)] {
        let face = rustybuzz::ttf_parser::Face::parse(font, 0).unwrap();
        for item in layout.pages.iter().flatten() {
            let Item::Line { line, .. } = item else { continue };
            let runs = line.runs.iter().filter(|run| is_bold(run.style) == is_bold_font);
            missing.extend(
                runs.flat_map(|run| run.text.chars()).filter(|letter| face.glyph_index(*letter).is_none()),
            );
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
