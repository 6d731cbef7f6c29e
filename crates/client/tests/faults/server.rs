//! A scripted HTTP server: a script gets every request and answers with whatever bytes it likes.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

/// A film of so many bytes, different at every position, so that a byte at the wrong place shows.
pub fn film(size: usize) -> Arc<Vec<u8>> {
    let byte = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    Arc::new((0..size as u64).map(byte).collect())
}

/// What happened to a server.
#[derive(Default)]
pub struct Record {
    /// When requests came.
    requests: Mutex<Vec<Instant>>,
    /// When connections came.
    connections: Mutex<Vec<Instant>>,
    /// Connections that are open now, and the most that ever were.
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// A connection that is counted while it is open.
struct Counted(Arc<Record>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, SeqCst);
    }
}

impl Record {
    pub fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub fn connections(&self) -> Vec<Instant> {
        self.connections.lock().unwrap().clone()
    }

    pub fn open(&self) -> usize {
        self.open.load(SeqCst)
    }

    pub fn most_open(&self) -> usize {
        self.most_open.load(SeqCst)
    }

    fn accepted(self: &Arc<Self>) -> (usize, Counted) {
        let open = self.open.fetch_add(1, SeqCst) + 1;
        self.most_open.fetch_max(open, SeqCst);
        let mut connections = self.connections.lock().unwrap();
        connections.push(Instant::now());
        (connections.len() - 1, Counted(self.clone()))
    }

    fn requested(&self) -> usize {
        let mut requests = self.requests.lock().unwrap();
        requests.push(Instant::now());
        requests.len() - 1
    }
}

/// One request, and the connection to answer it on.
pub struct Exchange {
    pub film: Arc<Vec<u8>>,
    stream: TcpStream,
    /// What was read of later requests.
    unread: Vec<u8>,
    /// Which connection of the server, from 0 on.
    pub connection: usize,
    /// Which request of all that the server got, from 0 on: the first is the probe.
    pub request: usize,
    /// Which request on this connection, from 0 on.
    pub nth: usize,
    /// The path of the request line.
    pub path: String,
    /// The range that was asked for; its end is exclusive and within the film.
    pub range: Option<Range<usize>>,
    /// The value of If-Range.
    pub if_range: Option<String>,
    _counted: Counted,
}

/// The connection when it goes on; an error when the script or the client ended it.
pub type Answered = std::io::Result<Exchange>;

impl Exchange {
    /// Writes any bytes.
    pub async fn raw(mut self, bytes: impl AsRef<[u8]>) -> Answered {
        self.stream.write_all(bytes.as_ref()).await?;
        Ok(self)
    }

    /// A head with this status and these lines.
    pub async fn head(self, status: &str, lines: &[String]) -> Answered {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        self.raw(format!("HTTP/1.1 {status}\r\n{lines}\r\n")).await
    }

    /// A status without a body, and these lines besides.
    pub async fn status(self, status: &str, lines: &[&str]) -> Answered {
        let mut lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        lines.push("Content-Length: 0".into());
        self.head(status, &lines).await
    }

    /// Everything, as a server without ranges answers.
    pub async fn whole(self) -> Answered {
        let film = self.film.clone();
        self.head("200 OK", &[format!("Content-Length: {}", film.len())]).await?.raw(&film[..]).await
    }

    pub fn asked(&self) -> Range<usize> {
        self.range.clone().unwrap_or(0..self.film.len())
    }

    /// The bytes that were asked for.
    pub fn bytes(&self) -> Vec<u8> {
        self.film[self.asked()].to_vec()
    }

    /// What a good server says of these bytes of the film.
    pub fn lines_for(&self, range: Range<usize>) -> Vec<String> {
        vec![
            format!("Content-Length: {}", range.len()),
            format!("Content-Range: bytes {}-{}/{}", range.start, range.end - 1, self.film.len()),
            "ETag: \"one\"".to_owned(),
        ]
    }

    /// The head of a good answer.
    pub async fn good_head(self) -> Answered {
        let lines = self.lines_for(self.asked());
        self.head("206 Partial Content", &lines).await
    }

    /// A good answer.
    pub async fn good(self) -> Answered {
        let bytes = self.bytes();
        self.good_head().await?.raw(bytes).await
    }

    /// A good answer at this rate.
    pub async fn paced(self, bytes_per_second: usize) -> Answered {
        let bytes = self.bytes();
        let mut this = self.good_head().await?;
        for piece in bytes.chunks(bytes_per_second.div_ceil(50)) {
            this = this.raw(piece).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(this)
    }

    /// Says nothing until the client hangs up.
    pub async fn silence(mut self) -> Answered {
        let mut buffer = [0; 1024];
        while self.stream.read(&mut buffer).await? > 0 {}
        self.hang_up()
    }

    /// Closes the connection in good order.
    pub fn hang_up(self) -> Answered {
        Err(std::io::ErrorKind::ConnectionAborted.into())
    }

    /// Cuts the connection with a reset.
    pub async fn reset(self) -> Answered {
        // What was written before has to arrive before.
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.stream.set_zero_linger()?;
        self.hang_up()
    }

    /// Waits for the next request and takes it apart.
    async fn next_request(&mut self, record: &Record) -> std::io::Result<()> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|end| end == b"\r\n\r\n") {
                break end + 4;
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).expect("a request in ASCII");
        let value = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        self.path = head.split(' ').nth(1).expect("a path").to_owned();
        self.if_range = value("if-range");
        self.range = value("range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            let end = last.parse().map_or(self.film.len(), |last: usize| self.film.len().min(last + 1));
            Some(first.parse().ok()?..end)
        });
        self.request = record.requested();
        Ok(())
    }
}

/// A running server. Dropping it cuts its connections and frees its port.
pub struct Server {
    pub address: SocketAddr,
    pub record: Arc<Record>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server of `film` on a free port that gives every request to `script`.
    pub async fn start<S, A>(film: &Arc<Vec<u8>>, script: S) -> Self
    where
        S: Fn(Exchange) -> A + Send + Sync + 'static,
        A: Future<Output = Answered> + Send,
    {
        Self::start_at(([127, 0, 0, 1], 0).into(), film, script).await
    }

    /// Starts one at an address that another one may have had.
    pub async fn start_at<S, A>(address: SocketAddr, film: &Arc<Vec<u8>>, script: S) -> Self
    where
        S: Fn(Exchange) -> A + Send + Sync + 'static,
        A: Future<Output = Answered> + Send,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let record = Arc::new(Record::default());
        let (film, script, its_record) = (film.clone(), Arc::new(script), record.clone());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (film, script, record) = (film.clone(), script.clone(), its_record.clone());
                connections.spawn(async move {
                    let _ = serve(stream, film, &*script, &record).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, record, task }
    }

    pub fn url(&self) -> Url {
        format!("http://{}/film.bin", self.address).parse().unwrap()
    }

    /// Waits until no connection is open.
    pub async fn is_left(&self) {
        let begin = Instant::now();
        while self.record.open() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(3), "{} connections stay open", self.record.open());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn serve<S, A>(
    stream: TcpStream,
    film: Arc<Vec<u8>>,
    script: &S,
    record: &Arc<Record>,
) -> std::io::Result<()>
where
    S: Fn(Exchange) -> A,
    A: Future<Output = Answered>,
{
    let (connection, counted) = record.accepted();
    let mut exchange = Exchange {
        film,
        stream,
        unread: Vec::new(),
        connection,
        request: 0,
        nth: 0,
        path: String::new(),
        range: None,
        if_range: None,
        _counted: counted,
    };
    loop {
        exchange.next_request(record).await?;
        exchange = script(exchange).await?;
        exchange.nth += 1;
    }
}
