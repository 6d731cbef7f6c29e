//! The report as a PDF: chapters on pages, with an outline and links. Krilla writes the file and draws the
//! plots.
//!
//! Where lines and pages end is decided here. Typst, which does that well, would bring several hundred crates
//! for tables and paragraphs.

mod layout;
mod table;
mod text;

use std::collections::VecDeque;

use krilla::annotation::{Annotation, LinkAnnotation, Target};
use krilla::color::rgb::Color;
use krilla::destination::XyzDestination;
use krilla::geom::{PathBuilder, Point, Rect, Size, Transform};
use krilla::metadata::Metadata;
use krilla::outline::{Outline, OutlineNode};
use krilla::page::{Page, PageSettings};
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla::text::{Font, TextDirection};
use krilla::{Data, Document};
use krilla_svg::{SurfaceExt, SvgSettings};

use super::content::{Chapter, Place, Style};
use crate::plot;
use layout::{BOTTOM, Item, LEFT, Layout, Mark, PAGE_HEIGHT, PAGE_WIDTH, WIDTH};
use text::{Run, is_bold};

const RULE: f32 = 0.5;
const FOOTER: f32 = 8.0;
/// Red, green and blue.
type Rgb = [u8; 3];
const LINK: Rgb = [0x00, 0x4a, 0x8f];
const GREY: Rgb = [0xc8, 0xc8, 0xc8];
const LIGHT: Rgb = [0xf0, 0xf0, 0xf0];

/// The report as a PDF.
///
/// # Errors
/// A plot is not one of ours, or the file cannot be made.
pub(crate) fn pdf(chapters: &[Chapter]) -> Result<Vec<u8>, String> {
    let layout = Layout::of(chapters)?;
    let fonts = Fonts::new().ok_or("the report's font cannot be read")?;
    let title = chapters.first().map_or("", |chapter| &chapter.title);
    let mut document = Document::new();
    let metadata = Metadata::new().title(title.into()).creator("anabranch".into()).language("en".into());
    document.set_metadata(metadata);
    for (index, items) in layout.pages.iter().enumerate() {
        let size = PageSettings::from_wh(PAGE_WIDTH, PAGE_HEIGHT).ok_or("the page has no size")?;
        let mut page = document.start_page_with(size);
        let mut surface = page.surface();
        for item in items {
            draw(&mut surface, item, &fonts).ok_or("a plot cannot be drawn")?;
        }
        let number = format!("{} of {}", index + 1, layout.pages.len());
        let right = LEFT + WIDTH - layout.faces.width(&number, Style::Plain, FOOTER);
        for (x, words) in [(LEFT, title), (right, &number)] {
            fonts.write(&mut surface, (x, BOTTOM + 3.0 * FOOTER), FOOTER, words, Style::Small, false);
        }
        surface.finish();
        link(&mut page, items, &layout.marks);
    }
    document.set_outline(outline(&layout.marks));
    document.finish().map_err(|error| format!("{error:?}"))
}

struct Fonts {
    regular: Font,
    bold: Font,
}

impl Fonts {
    fn new() -> Option<Self> {
        let font = |data: &[u8]| Font::new(Data::from(data.to_vec()), 0);
        Some(Self { regular: font(plot::FONT)?, bold: font(text::BOLD)? })
    }

    fn write(
        &self,
        surface: &mut Surface<'_>,
        (x, baseline): (f32, f32),
        size: f32,
        words: &str,
        style: Style,
        is_link: bool,
    ) {
        let font = if is_bold(style) { &self.bold } else { &self.regular };
        surface.set_fill(Some(fill(if is_link { LINK } else { colour(style) })));
        let start = Point::from_xy(x, baseline);
        surface.draw_text(start, font.clone(), size, words, false, TextDirection::LeftToRight);
    }
}

/// The colours of the pages of HTML.
fn colour(style: Style) -> Rgb {
    match style {
        Style::Plain | Style::Strong => [0x00, 0x00, 0x00],
        Style::Code => [0x3d, 0x2f, 0x6b],
        Style::Good => [0x00, 0x65, 0x4a],
        Style::Bad => [0x9c, 0x3f, 0x00],
        Style::Small => [0x55, 0x55, 0x55],
    }
}

fn fill([red, green, blue]: Rgb) -> Fill {
    Fill { paint: Color::new(red, green, blue).into(), ..Fill::default() }
}

fn draw(surface: &mut Surface<'_>, item: &Item, fonts: &Fonts) -> Option<()> {
    match item {
        Item::Line { x, baseline, size, line } => {
            for Run { text, style, link, x: within, .. } in &line.runs {
                fonts.write(surface, (x + within, *baseline), *size, text, *style, link.is_some());
            }
        }
        Item::Rule { x, y, width } => rectangle(surface, [*x, *y - RULE, *width, RULE], GREY)?,
        Item::Shade { x, y, width, height } => {
            rectangle(surface, [*x, *y, *width, *height], LIGHT)?;
        }
        Item::Figure { x, y, width, height, tree } => {
            surface.push_transform(&Transform::from_translate(*x, *y));
            let drawn = surface.draw_svg(tree, Size::from_wh(*width, *height)?, SvgSettings::default());
            surface.pop();
            drawn?;
        }
    }
    Some(())
}

fn rectangle(surface: &mut Surface<'_>, [x, y, width, height]: [f32; 4], colour: Rgb) -> Option<()> {
    let mut path = PathBuilder::new();
    path.push_rect(Rect::from_xywh(x, y, width, height)?);
    surface.set_fill(Some(fill(colour)));
    surface.draw_path(&path.finish()?);
    Some(())
}

/// Makes the links of a page's lines lead somewhere.
fn link(page: &mut Page<'_>, items: &[Item], marks: &[Mark]) {
    for item in items {
        let Item::Line { x, baseline, size, line } = item else { continue };
        for run in &line.runs {
            let rectangle = Rect::from_xywh(x + run.x, baseline - size, run.width, size * layout::LEADING);
            let destination = run.link.as_ref().and_then(|place| destination(place, marks));
            if let Some((rectangle, destination)) = rectangle.zip(destination) {
                let link = LinkAnnotation::new(rectangle, Target::Destination(destination.into()));
                page.add_annotation(Annotation::new_link(link, None));
            }
        }
    }
}

fn destination(place: &Place, marks: &[Mark]) -> Option<XyzDestination> {
    marks.iter().find(|mark| mark.place == *place).map(top)
}

fn top(mark: &Mark) -> XyzDestination {
    XyzDestination::new(mark.page, Point::from_xy(LEFT, mark.y))
}

/// The outline: chapters with their sections.
fn outline(marks: &[Mark]) -> Outline {
    let mut outline = Outline::new();
    let mut marks: VecDeque<&Mark> = marks.iter().collect();
    while let Some(chapter) = marks.pop_front() {
        let mut node = OutlineNode::new(chapter.title.clone(), top(chapter));
        while let Some(section) = marks.front().and_then(|mark| mark.place.section.as_ref()) {
            let Some(mark) = marks.pop_front() else { break };
            node.push_child(OutlineNode::new(format!("{section}: {}", mark.title), top(mark)));
        }
        outline.push_child(node);
    }
    outline
}

#[cfg(test)]
mod tests;
