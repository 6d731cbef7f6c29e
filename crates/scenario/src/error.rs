//! What is wrong with a scenario, where, and what would be right.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Range;

/// A scenario that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there, or not to be read, or not text.
    #[error("cannot read {file}: {error}")]
    Read {
        /// Its name.
        file: String,
        /// Why not.
        error: io::Error,
    },
    /// The text is not a scenario.
    #[error("{0}")]
    Wrong(Mistakes),
}

/// Mistakes beyond so many are only counted.
const MOST_MISTAKES: usize = 100;

/// Everything that is wrong with a text, in the order of the places; at least one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The mistakes.
    pub told: Vec<Wrong>,
    /// How many more there are.
    more: usize,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, wrong) in self.told.iter().enumerate() {
            write!(f, "{}{wrong}", if number == 0 { "" } else { "\n" })?;
        }
        match self.more {
            0 => Ok(()),
            1 => write!(f, "\nand 1 more mistake"),
            more => write!(f, "\nand {more} more mistakes"),
        }
    }
}

/// A place in a scenario's text, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is not in the message.
    pub help: Option<String>,
    /// The line's text.
    pub text: String,
    /// How many characters of it are meant.
    pub length: usize,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, help, text, length } = self;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{file}:{line}:{column}: {message}")?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {text}")?;
        write!(f, "{margin} | {}{}", " ".repeat(column - 1), "^".repeat(*length))?;
        match help {
            Some(help) => write!(f, "\n{margin} = {help}"),
            None => Ok(()),
        }
    }
}

/// Bytes of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// Why something cannot be read.
#[derive(Clone, Debug)]
pub struct Fault(Option<Place>);

/// What is wrong at a place, before it is known which file it is in.
#[derive(Clone, Debug)]
struct Place {
    span: Span,
    message: String,
    help: Option<String>,
}

impl Fault {
    /// Nothing new is wrong here: it follows from what is among the [`Faults`] already.
    pub const TOLD: Self = Self(None);

    /// What is wrong at a place.
    pub fn new(span: Span, message: impl fmt::Display) -> Self {
        Self(Some(Place { span, message: message.to_string(), help: None }))
    }

    /// The same with what would be right.
    #[must_use]
    pub fn help(mut self, help: impl fmt::Display) -> Self {
        if let Some(place) = &mut self.0 {
            place.help = Some(help.to_string());
        }
        self
    }

    /// With the place in words: `text` is the whole text of `file`.
    pub fn locate(self, file: &str, text: &str) -> Error {
        let faults = Faults::default();
        faults.add(self);
        faults.locate(file, text)
    }
}

/// What was found wrong with a text so far.
#[derive(Debug, Default)]
pub struct Faults(RefCell<Found>);

#[derive(Debug, Default)]
struct Found {
    places: Vec<Place>,
    more: usize,
}

impl Faults {
    /// Adds one that is new.
    pub fn add(&self, fault: Fault) {
        let Some(place) = fault.0 else { return };
        let mut found = self.0.borrow_mut();
        match found.places.len() < MOST_MISTAKES {
            true => found.places.push(place),
            false => found.more += 1,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let found = self.0.borrow();
        found.places.len() + found.more
    }

    /// With the places in words: `text` is the whole text of `file`.
    pub fn locate(self, file: &str, text: &str) -> Error {
        let Found { mut places, more } = self.0.into_inner();
        places.sort_by_key(|place| (place.span.start, place.span.end));
        if places.is_empty() {
            places.push(Place { span: (0..0).into(), message: "it cannot be read".into(), help: None });
        }
        let told = places.into_iter().map(|place| place.locate(file, text)).collect();
        Error::Wrong(Mistakes { told, more })
    }
}

impl Place {
    fn locate(self, file: &str, text: &str) -> Wrong {
        let floor = |index: usize| (0..=index.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let start = floor(self.span.start).unwrap_or(0);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default();
        let line_end = line_start + line.len();
        let end = floor(self.span.end).unwrap_or(0).clamp(start, line_end.max(start));
        Wrong {
            file: file.into(),
            line: before.matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            message: self.message,
            help: self.help,
            // A tab would move the mark, and a terminal obeys escapes.
            text: line
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect::<String>()
                .trim_end()
                .into(),
            length: text[start..end].chars().count().max(1),
        }
    }
}

impl From<&toml::de::Error> for Fault {
    fn from(error: &toml::de::Error) -> Self {
        Self::new(error.span().unwrap_or(0..0).into(), error.message())
    }
}

/// The name of `names` that was probably meant by `wrong`.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is that long, and the distance takes the product of the lengths.
    let names = names.into_iter().filter(|_| wrong.len() <= 64);
    names
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .min()
        .filter(|(distance, _)| *distance <= 1 + wrong.chars().count() / 3)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_any_text() {
        let text = "a = 1\nwörd = \t2\n";
        for start in 0..text.len() + 3 {
            for end in 0..text.len() + 3 {
                let _ = Fault::new(Span { start, end }, "wrong").locate("f", text).to_string();
            }
        }
        let at = text.find('2').unwrap();
        let error = Fault::new(Span { start: at, end: at + 1 }, "wrong").help("write 3").locate("f", text);
        assert_eq!(error.to_string(), "f:2:9: wrong\n  |\n2 | wörd =  2\n  |         ^\n  = write 3");
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("queu", ["queue", "rate"]), Some("queue"));
        assert_eq!(nearest("colour", ["queue", "rate"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
