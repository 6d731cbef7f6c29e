//! A server that answers what a test says, right or wrong.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One request.
#[derive(Clone, Debug)]
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

/// A server on a free port, until the test program ends. A connection is closed after an answer that says so
/// (`Connection: close`) and by an empty one.
#[derive(Clone, Debug)]
pub struct ScriptedServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its root: `http://HOST:PORT/`.
    pub url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ScriptedServer {
    /// Starts it. Requests on different connections are answered at the same time.
    ///
    /// # Panics
    /// No port is free.
    pub fn start(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let url = format!("http://{address}/");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (answer, numbers, told) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)), heads.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, numbers, told) = (answer.clone(), numbers.clone(), told.clone());
                std::thread::spawn(move || {
                    // A client that leaves early is no failure of the server.
                    let _ = serve(&stream, &*answer, &numbers, &told);
                });
            }
        });
        Self { address, url, heads }
    }

    /// The heads of all requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        told.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
        let range = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
            if !name.eq_ignore_ascii_case("range") {
                return None;
            }
            Some(first.parse().ok()?..last.parse::<usize>().map_or(usize::MAX, |last| last + 1))
        });
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let number = numbers.fetch_add(1, Ordering::SeqCst);
        let answer = answer(&Asked { number, target, head, range });
        if answer.is_empty() {
            return Ok(());
        }
        { stream }.write_all(&answer)?;
        if says_close(&answer) {
            return Ok(());
        }
    }
}

/// Whether the head of an answer ends the connection.
fn says_close(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
    String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase().contains("\r\nconnection: close")
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
///
/// # Panics
/// None was.
pub fn part(asked: &Asked, film: &[u8], lines: &str) -> Vec<u8> {
    let range = asked.range.clone().expect("a request for a range");
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
