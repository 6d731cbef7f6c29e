//! The terminal under the progress line, which may become narrower while the line is there.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use console::Term;
use indicatif::TermLike;

/// Standard error as a terminal. One that becomes narrower folds the line into several rows, and all of them
/// have to go.
#[derive(Debug)]
pub struct Screen {
    term: Term,
    line: Mutex<Line>,
}

/// The last line that was drawn.
#[derive(Debug, Default)]
struct Line {
    characters: usize,
    /// Spaces behind it up to the margin, which are written only where another line follows: they would be
    /// folded as text is.
    filler: String,
}

impl Screen {
    /// Standard error.
    pub fn stderr() -> Self {
        Self { term: Term::buffered_stderr(), line: Mutex::default() }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        self.term.size().1
    }

    fn height(&self) -> u16 {
        self.term.size().0
    }

    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.term.move_cursor_up(rows)
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.term.move_cursor_down(rows)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.term.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.term.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.term.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut line = self.line();
        if !text.is_empty() && text.chars().all(|c| c == ' ') {
            line.filler.push_str(text);
            return Ok(());
        }
        let filler = std::mem::take(&mut line.filler);
        line.characters = if filler.is_empty() { line.characters } else { 0 };
        line.characters += text.chars().filter(|c| !c.is_control()).count();
        self.term.write_str(&filler)?;
        self.term.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        let Line { characters, .. } = std::mem::take(&mut *self.line());
        for _ in 0..folds(characters, self.width()) {
            self.term.clear_line()?;
            self.term.move_cursor_up(1)?;
        }
        self.term.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.term.flush()
    }
}

/// How often so many characters are folded.
fn folds(characters: usize, columns: u16) -> usize {
    characters.saturating_sub(1) / usize::from(columns.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_folded_where_it_does_not_fit() {
        assert_eq!([folds(0, 80), folds(80, 80), folds(81, 80), folds(200, 40)], [0, 0, 1, 4]);
        assert_eq!(folds(3, 0), 2);
    }
}
