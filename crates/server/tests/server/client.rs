//! A server in a directory of its own, and a client that sends exactly what a test says.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_server::{Config, Metrics, Server};
use anabranch_testkit::film;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server; it is cut off when this is dropped.
pub struct Running {
    pub directory: TempDir,
    pub address: SocketAddr,
    pub metrics: Arc<Metrics>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    pub fn start(configure: impl FnOnce(&mut Config)) -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::create_dir(directory.path().join("root")).unwrap();
        let mut config = Config::new(directory.path().join("root"), "127.0.0.1:0".parse().unwrap());
        configure(&mut config);
        let server = Server::bind(config).unwrap();
        let address = server.local_addr().unwrap();
        let metrics = server.metrics();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { directory, address, metrics, stop: Some(stop), task }
    }

    pub fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("root")
    }

    /// Puts a file with `length` bytes that can be told apart by their place.
    pub fn put(&self, name: impl AsRef<Path>, length: usize) -> Vec<u8> {
        let content = film(length);
        std::fs::write(self.root().join(name), &content).unwrap();
        content
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// One request on a connection of its own; `fields` are lines with their line ends.
    pub async fn request(&self, line: &str, fields: &str) -> Reply {
        let mut stream = self.connect().await;
        send(&mut stream, line, fields).await;
        receive(&mut stream, line.starts_with("HEAD")).await
    }

    pub async fn get(&self, path: &str, fields: &str) -> Reply {
        self.request(&format!("GET {path}"), fields).await
    }

    /// Begins a graceful stop.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until the server has ended.
    pub async fn ended(mut self) {
        (&mut self.task).await.unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The connection ended before the promised length.
    pub cut: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The head without what changes from one second to the next.
    pub fn stable_head(&self) -> Vec<&str> {
        self.head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:")).collect()
    }
}

pub async fn send(stream: &mut (impl AsyncWrite + Unpin), line: &str, fields: &str) {
    let request = format!("{line} HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// The head of the next response.
pub async fn receive_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let read =
            tokio::time::timeout(Duration::from_secs(20), stream.read_u8()).await.expect("an answer in time");
        head.push(read.expect("a whole head"));
    }
    String::from_utf8(head).unwrap()
}

pub async fn receive(stream: &mut (impl AsyncRead + Unpin), is_head: bool) -> Reply {
    let head = receive_head(stream).await;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut reply = Reply { status, head, body: Vec::new(), cut: false };
    let length: u64 = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
    if !is_head {
        stream.take(length).read_to_end(&mut reply.body).await.unwrap();
        reply.cut = (reply.body.len() as u64) < length;
    }
    reply
}
