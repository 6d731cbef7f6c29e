//! Text as lines of a width.

use rustybuzz::{Face, UnicodeBuffer};

use crate::plot;
use crate::report::content::{Place, Span, Style, Text};

/// The bold face of the plots' font.
pub(super) const BOLD: &[u8] = include_bytes!("../../../assets/bold-font.ttf");

/// Whether a style is set in the bold face.
pub(super) fn is_bold(style: Style) -> bool {
    matches!(style, Style::Strong | Style::Good | Style::Bad)
}

/// A piece of a line.
#[derive(Clone)]
pub(super) struct Run {
    /// Its text.
    pub text: String,
    /// How it looks.
    pub style: Style,
    /// Where it leads.
    pub link: Option<Place>,
    /// Where it begins, from the line's beginning, in points.
    pub x: f32,
    /// How long it is, in points.
    pub width: f32,
}

/// A line.
#[derive(Clone, Default)]
pub(super) struct Line {
    /// Its pieces.
    pub runs: Vec<Run>,
    /// How long it is, in points.
    pub width: f32,
}

/// What stays together: pieces without a space between them.
#[derive(Clone, Default)]
struct Word {
    runs: Vec<Run>,
    width: f32,
    begins_line: bool,
}

/// The faces that text is measured with.
pub(super) struct Faces {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Faces {
    /// The plots' font.
    ///
    /// # Errors
    /// It is not a font.
    pub fn new() -> Result<Self, String> {
        let face = |data: &'static [u8]| Face::from_slice(data, 0).ok_or("the report's font cannot be read");
        Ok(Self { regular: face(plot::FONT)?, bold: face(BOLD)? })
    }

    /// How long a text is, in points.
    pub fn width(&self, text: &str, style: Style, size: f32) -> f32 {
        let face = if is_bold(style) { &self.bold } else { &self.regular };
        let mut buffer = UnicodeBuffer::new();
        buffer.push_str(text);
        buffer.guess_segment_properties();
        let shaped = rustybuzz::shape(face, &[], buffer);
        let advance: i32 = shaped.glyph_positions().iter().map(|position| position.x_advance).sum();
        advance as f32 * size / face.units_per_em() as f32
    }

    /// Lines that are no longer than `width`. They end at spaces if `at_spaces`; a word that is longer than a
    /// line ends anywhere.
    pub fn lines(&self, text: &Text, size: f32, width: f32, at_spaces: bool) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut line = Word::default();
        for word in self.words(text, size, at_spaces) {
            // A space looks like the word behind it.
            let space = word.runs.first().map_or(0.0, |run| self.width(" ", run.style, size));
            if !line.runs.is_empty() {
                if !word.begins_line && line.width + space + word.width <= width {
                    line.width += space + word.width;
                    join(&mut line.runs, word.runs);
                    continue;
                }
                lines.push(self.placed(std::mem::take(&mut line.runs), size));
            }
            line = word;
            while line.width > width
                && line.runs.iter().map(|run| run.text.chars().count()).sum::<usize>() > 1
            {
                let (first, rest) = self.divided(&line, size, width);
                lines.push(self.placed(first, size));
                line = self.word(rest, size);
            }
        }
        if !line.runs.is_empty() {
            lines.push(self.placed(line.runs, size));
        }
        lines
    }

    /// The longest of a text's words, and the whole text on as few lines as it asks for: the least and the
    /// most that it can use.
    pub fn extent(&self, text: &Text, size: f32, at_spaces: bool) -> (f32, f32) {
        let words = self.words(text, size, at_spaces);
        let least = words.iter().map(|word| word.width).fold(0.0, f32::max);
        let lines = self.lines(text, size, f32::INFINITY, at_spaces);
        (least, lines.iter().map(|line| line.width).fold(0.0, f32::max))
    }

    fn words(&self, text: &Text, size: f32, at_spaces: bool) -> Vec<Word> {
        let mut words: Vec<Vec<Run>> = vec![Vec::new()];
        let mut begins: Vec<usize> = Vec::new();
        for span in &text.0 {
            let (span, style, link) = match span {
                Span::Words(span, style) => (span, *style, None),
                Span::Link(span, place) => (span, Style::Plain, Some(place)),
                Span::Break => {
                    begins.push(words.len());
                    words.push(Vec::new());
                    continue;
                }
            };
            for (index, piece) in span.split(|c| at_spaces && c == ' ').enumerate() {
                if index > 0 {
                    words.push(Vec::new());
                }
                if let Some(word) = words.last_mut() {
                    word.push(Run { text: piece.into(), style, link: link.cloned(), x: 0.0, width: 0.0 });
                }
            }
        }
        let word = |(index, mut runs): (usize, Vec<Run>)| {
            runs.retain(|run| !run.text.is_empty());
            let begins_line = begins.contains(&index);
            Word { begins_line, ..self.word(runs, size) }
        };
        words.into_iter().enumerate().map(word).filter(|word| !word.runs.is_empty()).collect()
    }

    fn word(&self, runs: Vec<Run>, size: f32) -> Word {
        let width = runs.iter().map(|run| self.width(&run.text, run.style, size)).sum();
        Word { runs, width, begins_line: false }
    }

    /// As much of a word as a line holds, a letter at least, and the rest.
    fn divided(&self, word: &Word, size: f32, width: f32) -> (Vec<Run>, Vec<Run>) {
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        let mut left = width;
        for run in &word.runs {
            let mut held = 0;
            for letter in run.text.chars().take_while(|_| rest.is_empty()) {
                left -= self.width(letter.encode_utf8(&mut [0; 4]), run.style, size);
                if left < 0.0 && (held > 0 || !first.is_empty()) {
                    break;
                }
                held += letter.len_utf8();
            }
            let (kept, over) = run.text.split_at(held);
            for (text, runs) in [(kept, &mut first), (over, &mut rest)] {
                if !text.is_empty() {
                    runs.push(Run { text: text.into(), ..run.clone() });
                }
            }
        }
        (first, rest)
    }

    /// A line whose pieces have their places.
    fn placed(&self, mut runs: Vec<Run>, size: f32) -> Line {
        let mut x = 0.0;
        for run in &mut runs {
            run.x = x;
            run.width = self.width(&run.text, run.style, size);
            x += run.width;
        }
        Line { runs, width: x }
    }
}

/// Appends a word after a space. Pieces of the same look become one, so that a reader finds whole lines in
/// the file.
fn join(line: &mut Vec<Run>, word: Vec<Run>) {
    for (index, run) in word.into_iter().enumerate() {
        let space = if index == 0 { " " } else { "" };
        match line.last_mut() {
            Some(last) if last.style == run.style && last.link == run.link => {
                last.text += space;
                last.text += &run.text;
            }
            _ => line.push(Run { text: format!("{space}{}", run.text), ..run }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &Text, width: f32) -> Vec<String> {
        let faces = Faces::new().unwrap();
        let lines = faces.lines(text, 10.0, width, true);
        assert!(lines.iter().all(|line| line.width <= width), "a line is too long");
        lines.iter().map(|line| line.runs.iter().map(|run| &*run.text).collect()).collect()
    }

    #[test]
    fn lines_end_at_spaces_and_where_they_are_told_to() {
        let text = Text::plain("one two three four").on_a_new_line("five", Style::Small);
        assert_eq!(texts(&text, 60.0), ["one two", "three four", "five"]);
        assert_eq!(texts(&text, 1000.0), ["one two three four", "five"]);
    }

    #[test]
    fn what_has_no_space_between_stays_together() {
        let text = Text::plain("aa ").and("bb", Style::Code).and(": cc", Style::Plain);
        assert_eq!(texts(&text, 32.0), ["aa bb:", "cc"]);
    }

    #[test]
    fn a_word_that_is_longer_than_a_line_is_divided() {
        let text = Text::plain("abcdefghijklmnopqrstuvwxyz").and("0123456789", Style::Strong);
        let lines = texts(&text, 50.0);
        assert!(lines.len() > 3, "{lines:?}");
        assert_eq!(lines.concat(), "abcdefghijklmnopqrstuvwxyz0123456789");
        assert_eq!(texts(&Text::plain("ab"), 7.0), ["a", "b"]);
    }
}
