//! A server that answers what a test says, right or wrong.

mod answer;
mod asked;
mod record;

use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use answer::{Answer, status, whole};
pub use asked::{Asked, part};
use record::Record;

/// A server on a free port. A connection is closed after an answer that says so (`Connection: close`), and
/// where its steps say it. Dropping the server cuts its connections and frees its port.
#[derive(Debug)]
pub struct ScriptedServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its root: `http://HOST:PORT/`.
    pub url: String,
    running: Arc<Running>,
    accepting: Option<JoinHandle<()>>,
}

/// What the threads of a server share.
#[derive(Debug, Default)]
struct Running {
    record: Record,
    streams: Mutex<Vec<Weak<TcpStream>>>,
    ended: AtomicBool,
}

impl ScriptedServer {
    /// Starts one. Requests on different connections are answered at the same time.
    ///
    /// # Panics
    /// No port is free.
    pub fn start<A: Into<Answer>>(answer: impl Fn(&Asked) -> A + Send + Sync + 'static) -> Self {
        Self::of(&[], answer)
    }

    /// Starts one of a film, from which [`Asked::good`] and others answer.
    ///
    /// # Panics
    /// No port is free.
    pub fn of<A: Into<Answer>>(film: &[u8], answer: impl Fn(&Asked) -> A + Send + Sync + 'static) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), film, answer)
    }

    /// Starts one of a film at an address that another one may have had.
    ///
    /// # Panics
    /// The address is taken.
    pub fn at<A: Into<Answer>>(
        address: SocketAddr,
        film: &[u8],
        answer: impl Fn(&Asked) -> A + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let running = Arc::new(Running::default());
        let (film, answer, its) = (Arc::new(film.to_vec()), Arc::new(answer), running.clone());
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if its.ended.load(Ordering::SeqCst) {
                    break;
                }
                let (film, answer, its) = (film.clone(), answer.clone(), its.clone());
                let stream = Arc::new(stream);
                its.keep(&stream);
                thread::spawn(move || {
                    // A client that leaves early is no failure of the server.
                    let _ = serve(&stream, &film, |asked| answer(asked).into(), &its.record);
                });
            }
        });
        Self { address, url: format!("http://{address}/"), running, accepting: Some(accepting) }
    }

    /// Lets it run until the test program ends, and says where it listens.
    pub fn keep(self) -> SocketAddr {
        let address = self.address;
        std::mem::forget(self);
        address
    }

    /// The URL of a film at its root.
    pub fn film_url(&self) -> String {
        format!("{}film.bin", self.url)
    }

    /// The heads of all requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.running.record.heads()
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.heads().len()
    }

    /// When connections came.
    pub fn connections(&self) -> Vec<Instant> {
        self.running.record.connections()
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.running.record.open()
    }

    /// The most connections that were open at the same time.
    pub fn most_open(&self) -> usize {
        self.running.record.most_open()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.running.ended.store(true, Ordering::SeqCst);
        // The thread that accepts notices with the next connection.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
        self.running.cut();
    }
}

impl Running {
    fn keep(&self, stream: &Arc<TcpStream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    fn cut(&self) {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.iter().filter_map(Weak::upgrade) {
            // It may have ended by itself.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Answers requests on a connection until one of the two ends it.
fn serve(
    stream: &TcpStream,
    film: &Arc<Vec<u8>>,
    answer: impl Fn(&Asked) -> Answer,
    record: &Record,
) -> io::Result<()> {
    let (connection, _open) = record.accepted();
    let mut input = BufReader::new(stream);
    for nth in 0.. {
        let Some(head) = asked::read_head(&mut input)? else { break };
        let request = record.requested(head.clone());
        let asked = Asked::new(head, film, connection, request, nth);
        if !answer(&asked).send_on(stream, &mut input)? {
            break;
        }
    }
    Ok(())
}
