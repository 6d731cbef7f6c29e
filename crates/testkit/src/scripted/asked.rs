//! A request, and what a good server says to it.

use std::io::{self, BufRead};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::answer::{Answer, whole};

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Which request of all that the server got, from 0 on.
    pub number: usize,
    /// Which connection of the server it came on, from 0 on.
    pub connection: usize,
    /// Which request on this connection, from 0 on.
    pub nth: usize,
    /// What the request line asks for.
    pub target: String,
    /// The head as it came.
    pub head: String,
    /// The range that was asked for; its end is exclusive, and may be behind the film.
    pub range: Option<Range<usize>>,
    /// The server's film; empty where it was started without one.
    pub film: Arc<Vec<u8>>,
}

/// The next head, or `None` at the end of the connection.
pub(super) fn read_head(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if input.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

impl Asked {
    pub(super) fn new(
        head: String,
        film: &Arc<Vec<u8>>,
        connection: usize,
        number: usize,
        nth: usize,
    ) -> Self {
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut asked = Self { number, connection, nth, target, head, range: None, film: film.clone() };
        asked.range = asked.field("range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some(first.parse().ok()?..last.parse::<usize>().map_or(usize::MAX, |last| last + 1))
        });
        asked
    }

    /// The value of a field of the head, whose name is written in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The range within the film; all of it where no range was asked for.
    pub fn within(&self) -> Range<usize> {
        let range = self.range.clone().unwrap_or(0..usize::MAX);
        range.start..range.end.min(self.film.len())
    }

    /// The bytes that were asked for.
    pub fn bytes(&self) -> Vec<u8> {
        self.film[self.within()].to_vec()
    }

    /// What a good server says of these bytes of the film: length, range, entity tag.
    pub fn lines_for(&self, range: Range<usize>) -> Vec<String> {
        vec![
            format!("Content-Length: {}", range.len()),
            format!("Content-Range: bytes {}-{}/{}", range.start, range.end - 1, self.film.len()),
            "ETag: \"one\"".to_owned(),
        ]
    }

    /// The head of a good answer.
    pub fn good_head(&self) -> Answer {
        Answer::head("206 Partial Content", &self.lines_for(self.within()))
    }

    /// A good answer.
    pub fn good(&self) -> Answer {
        self.good_head().send(self.bytes())
    }

    /// A good answer at this rate.
    pub fn paced(&self, bytes_per_second: usize) -> Answer {
        let piece = bytes_per_second.div_ceil(50);
        self.good_head().send_in_pieces(self.bytes(), piece, Duration::from_millis(20))
    }

    /// All of the film, as a server without ranges answers.
    pub fn whole(&self) -> Answer {
        whole(&self.film)
    }
}

/// The range that was asked for; each of the lines besides ends in CR and LF.
///
/// # Panics
/// None was.
pub fn part(asked: &Asked, film: &[u8], lines: &str) -> Answer {
    let range = asked.range.clone().expect("a request for a range");
    let range = range.start..range.end.min(film.len());
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n{lines}\r\n",
        range.len(),
        range.start,
        range.end - 1,
        film.len()
    );
    Answer::default().send(head).send(&film[range])
}
