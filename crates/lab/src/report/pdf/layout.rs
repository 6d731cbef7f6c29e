//! Where everything stands: chapters on pages.

use resvg::usvg::Tree;

use super::text::{Faces, Line};
use crate::plot;
use crate::report::content::{Block, Chapter, Place, Section, Style, Text};

/// A page's width (A4), in points, as all lengths here.
pub(super) const PAGE_WIDTH: f32 = 595.28;
/// A page's height.
pub(super) const PAGE_HEIGHT: f32 = 841.89;
/// Where lines begin.
pub(super) const LEFT: f32 = 48.0;
/// How long lines are.
pub(super) const WIDTH: f32 = PAGE_WIDTH - 2.0 * LEFT;
/// Where a page's text begins.
pub(super) const TOP: f32 = 48.0;
/// Where it ends. Below is the page's number.
pub(super) const BOTTOM: f32 = PAGE_HEIGHT - 60.0;

/// A line's height as a part of its letters' size.
pub(super) const LEADING: f32 = 1.35;
/// The baseline below a line's top, likewise.
const ASCENT: f32 = 1.0;
const TITLE: f32 = 17.0;
const SECTION: f32 = 13.0;
const HEADING: f32 = 10.5;
const TEXT: f32 = 9.5;
/// Between paragraphs.
const GAP: f32 = 5.0;
const INDENT: f32 = 12.0;
/// A plot's width as a part of a line's.
const FIGURE: f32 = 0.9;
/// A heading stands above this much at least.
const BELOW_HEADING: f32 = 3.0 * TEXT * LEADING;

/// Something on a page.
pub(super) enum Item {
    /// A line of text, from its baseline's beginning.
    Line { x: f32, baseline: f32, size: f32, line: Line },
    /// A line between rows.
    Rule { x: f32, y: f32, width: f32 },
    /// The background of a table's head.
    Shade { x: f32, y: f32, width: f32, height: f32 },
    /// A plot.
    Figure { x: f32, y: f32, width: f32, height: f32, tree: Box<Tree> },
}

/// Where a chapter or section begins.
pub(super) struct Mark {
    /// Which.
    pub place: Place,
    /// Its title.
    pub title: String,
    /// The number of its page, from zero on.
    pub page: usize,
    /// Where on the page.
    pub y: f32,
}

/// Pages, laid out.
pub(super) struct Layout {
    pub faces: Faces,
    /// The pages.
    pub pages: Vec<Vec<Item>>,
    /// Where chapters and sections begin, in order.
    pub marks: Vec<Mark>,
    /// Where the next item begins on the last page.
    pub y: f32,
}

impl Layout {
    /// Lays chapters out, each from a new page on.
    ///
    /// # Errors
    /// A plot is not one of ours.
    pub fn of(chapters: &[Chapter]) -> Result<Self, String> {
        let mut layout = Self { faces: Faces::new()?, pages: Vec::new(), marks: Vec::new(), y: TOP };
        for chapter in chapters {
            layout.new_page();
            layout.mark(&chapter.name, None, &chapter.title);
            layout.title(&chapter.title, TITLE);
            for block in &chapter.intro {
                layout.block(block)?;
            }
            for section in &chapter.sections {
                layout.section(&chapter.name, section)?;
            }
        }
        Ok(layout)
    }

    fn section(&mut self, chapter: &str, section: &Section) -> Result<(), String> {
        self.y += 3.0 * GAP;
        // The first plot stands on the page of the claim before it.
        let first = section.blocks.iter().position(|block| matches!(block, Block::Figure(_)));
        let together = first.map_or(0, |figure| figure + 1);
        let mut height = self.title_height(&section.title, SECTION) + BELOW_HEADING;
        for block in &section.blocks[..together] {
            height += self.height(block)?;
        }
        self.room(height);
        self.mark(chapter, Some(&section.name), &section.title);
        self.title(&section.title, SECTION);
        section.blocks.iter().try_for_each(|block| self.block(block))
    }

    fn block(&mut self, block: &Block) -> Result<(), String> {
        match block {
            Block::Heading(title) => {
                self.room(self.title_height(title, HEADING) + BELOW_HEADING);
                self.title(title, HEADING);
            }
            Block::Paragraph(text) => {
                self.text(text, TEXT, 0.0);
                self.y += GAP;
            }
            Block::List(items) => {
                for item in items {
                    self.room(TEXT * LEADING);
                    let dash = self.faces.lines(&"–".into(), TEXT, INDENT, true);
                    let y = self.y;
                    dash.into_iter().for_each(|line| self.line(line, LEFT, y, TEXT));
                    self.text(item, TEXT, INDENT);
                }
                self.y += GAP;
            }
            Block::Figure(svg) => {
                let tree = Box::new(plot::tree(svg)?);
                let (width, height) = figure_size(&tree);
                self.room(height);
                let (x, y) = (LEFT + (WIDTH - width) / 2.0, self.y);
                self.add(Item::Figure { x, y, width, height, tree });
                self.y += height + GAP;
            }
            Block::Table(table) => self.table(table),
        }
        Ok(())
    }

    /// How high a block is that does not go over pages; of others nothing is known.
    fn height(&self, block: &Block) -> Result<f32, String> {
        Ok(match block {
            Block::Paragraph(text) => {
                self.faces.lines(text, TEXT, WIDTH, true).len() as f32 * TEXT * LEADING + GAP
            }
            Block::Figure(svg) => figure_size(&plot::tree(svg)?).1 + GAP,
            Block::Heading(_) | Block::List(_) | Block::Table(_) => 0.0,
        })
    }

    fn title_height(&self, title: &str, size: f32) -> f32 {
        let text = Text::default().and(title, Style::Strong);
        self.faces.lines(&text, size, WIDTH, true).len() as f32 * size * LEADING + GAP
    }

    fn title(&mut self, title: &str, size: f32) {
        self.text(&Text::default().and(title, Style::Strong), size, 0.0);
        self.y += GAP;
    }

    fn text(&mut self, text: &Text, size: f32, indent: f32) {
        for line in self.faces.lines(text, size, WIDTH - indent, true) {
            self.room(size * LEADING);
            let y = self.y;
            self.line(line, LEFT + indent, y, size);
            self.y += size * LEADING;
        }
    }

    /// Puts a line on the last page, its top at `y`.
    pub fn line(&mut self, line: Line, x: f32, y: f32, size: f32) {
        self.add(Item::Line { x, baseline: y + size * ASCENT, size, line });
    }

    /// Puts something on the last page.
    pub fn add(&mut self, item: Item) {
        // A chapter begins with a page.
        if let Some(page) = self.pages.last_mut() {
            page.push(item);
        }
    }

    fn mark(&mut self, chapter: &str, section: Option<&String>, title: &str) {
        let place = Place { chapter: chapter.into(), section: section.cloned() };
        let page = self.pages.len() - 1;
        self.marks.push(Mark { place, title: title.into(), page, y: self.y });
    }

    /// Goes to a new page unless this one has so much room left.
    pub fn room(&mut self, height: f32) {
        if self.y + height > BOTTOM && self.y > TOP {
            self.new_page();
        }
    }

    /// Goes to a new page.
    pub fn new_page(&mut self) {
        self.pages.push(Vec::new());
        self.y = TOP;
    }
}

fn figure_size(tree: &Tree) -> (f32, f32) {
    let width = WIDTH * FIGURE;
    (width, width * tree.size().height() / tree.size().width())
}
