//! The endpoint before a film whose server sends what the test wants.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_client::{Film, Settings, Storage};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::{sleep, timeout};

use super::*;
use crate::arguments::AccessArguments;

const SIZE: usize = 10_000_000;
const PROBED: usize = 64 * 1024;

/// A server that answers the first request of all with its range, and then never anything.
async fn silent_origin() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let seen = requests.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let seen = seen.clone();
            tokio::spawn(async move {
                let (read, mut write) = socket.into_split();
                let mut lines = BufReader::new(read).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    if line.is_empty() && seen.fetch_add(1, Ordering::SeqCst) == 0 {
                        let head = format!(
                            "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Length: {PROBED}\r\n\
                             Content-Range: bytes 0-{}/{SIZE}\r\n\r\n",
                            PROBED - 1
                        );
                        write.write_all(head.as_bytes()).await.unwrap();
                        write.write_all(&[7; PROBED]).await.unwrap();
                    }
                }
            });
        }
    });
    (address, requests)
}

#[tokio::test]
async fn a_player_that_leaves_while_nothing_comes_takes_its_reader_along() {
    let (origin, _) = silent_origin().await;
    let url = format!("http://{origin}/film.mp4").parse().unwrap();
    let settings = Settings { probe_media: false, stripe: false, ..Settings::new(vec![url]) };
    let film = Film::open(settings, Storage::Memory).await.unwrap();
    let resource = Arc::new(FilmResource::new(film));
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = endpoint.address();
    let guard = Guard::new(address, &AccessArguments::default());
    let serving =
        tokio::spawn(endpoint.serve(guard, resource.clone(), std::future::pending(), std::future::ready(())));

    let mut player = TcpStream::connect(address).await.unwrap();
    player.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await.unwrap();
    let mut got = Vec::new();
    while got.iter().filter(|byte| **byte == 7).count() < PROBED {
        assert_ne!(player.read_buf(&mut got).await.unwrap(), 0);
    }
    sleep(Duration::from_millis(200)).await;
    assert!(resource.delivery().is_open(), "the response waits for the server");

    drop(player);
    let gone = async {
        while resource.delivery().is_open() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(Duration::from_secs(2), gone).await.is_ok(), "the reader is still there");
    serving.abort();
}
