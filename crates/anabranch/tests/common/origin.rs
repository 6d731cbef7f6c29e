//! A server that answers what a test says.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One request.
pub struct Asked {
    /// How many came before it.
    pub number: usize,
    /// What the request line asks for.
    pub target: String,
    /// The head as it came.
    pub head: String,
    /// The range that was asked for; its end is exclusive.
    pub range: Option<Range<usize>>,
}

/// A server on a free port, until the test ends. A connection is closed by an empty answer.
pub struct Origin {
    pub url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    pub fn start(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (answer, numbers, told) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)), heads.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, numbers, told) = (answer.clone(), numbers.clone(), told.clone());
                std::thread::spawn(move || {
                    let _ = serve(&stream.unwrap(), &*answer, &numbers, &told);
                });
            }
        });
        Self { url, heads }
    }

    /// The heads of all requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(
    stream: &TcpStream,
    answer: &dyn Fn(&Asked) -> Vec<u8>,
    numbers: &AtomicUsize,
    told: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut input = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if input.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        told.lock().unwrap().push(head.clone());
        let range = head.lines().find_map(|line| {
            let (first, last) = line.strip_prefix("range: bytes=")?.split_once('-')?;
            Some(first.parse().ok()?..last.parse::<usize>().map_or(usize::MAX, |last| last + 1))
        });
        let target = head.split(' ').nth(1).unwrap().to_owned();
        let number = numbers.fetch_add(1, Ordering::SeqCst);
        let answer = answer(&Asked { number, target, head, range });
        if answer.is_empty() {
            return Ok(());
        }
        (&*stream).write_all(&answer)?;
    }
}

/// A status without a body.
pub fn status(status: &str, lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{lines}\r\n").into_bytes()
}

/// Everything, as a server without ranges answers.
pub fn whole(film: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", film.len());
    [head.as_bytes(), film].concat()
}

/// The range that was asked for.
pub fn part(asked: &Asked, film: &[u8], lines: &str) -> Vec<u8> {
    let range = asked.range.clone().unwrap();
    let range = range.start..range.end.min(film.len());
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n{lines}\r\n",
        range.len(),
        range.start,
        range.end - 1,
        film.len()
    );
    [head.as_bytes(), &film[range]].concat()
}
