//! Answers that are not what was asked for.

use std::sync::Arc;

use anabranch_client::{Event, Settings};

use crate::server::{Answered, Exchange, Server, film};
use crate::viewer::{Fetch, comes_right, events, in_time, millis, open, read, settings};

/// A server that answers well at first, and then with `lie`. The stream ends with `error` when it is alone,
/// and comes right when there is another replica.
async fn lies<S, A>(error: &str, lie: S)
where
    S: Fn(Exchange) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answered> + Send,
{
    let content = film(800_000);
    // Honest while it is probed and compared with another one.
    let start = async |honest| {
        let lie = lie.clone();
        let script = move |x: Exchange| {
            let lie = lie.clone();
            async move { if x.request < honest { x.good().await } else { lie(x).await } }
        };
        Server::start(&content, script).await
    };
    let liar = start(2).await;
    let fetch = Fetch::begin(short(&[&liar])).await;
    let told = fetch.fails().await;
    assert!(told.contains(error), "{told:?} instead of {error:?}");
    liar.is_left().await;
    let requests = liar.record.requests();
    assert!(requests < 20, "{requests} requests to a server that lies");
    let good = Server::start(&content, async |x| x.paced(1_000_000).await).await;
    let liar = start(1).await;
    comes_right(short(&[&liar, &good]), &content).await;
    let liar = start(1).await;
    comes_right(short(&[&good, &liar]), &content).await;
}

fn short(servers: &[&Server]) -> Settings {
    let mut settings = settings(servers.iter().map(|server| server.url()).collect());
    settings.give_up_after = millis(2500);
    settings
}

/// An answer that says it is these bytes, and is.
async fn instead(x: Exchange, first: usize, end: usize, total: usize) -> Answered {
    let body = x.film[first..end].to_vec();
    let range = format!("Content-Range: bytes {first}-{}/{total}", end - 1);
    let lines = [range, format!("Content-Length: {}", body.len()), "ETag: \"one\"".into()];
    x.head("206 Partial Content", &lines).await?.raw(body).await
}

#[tokio::test]
async fn ranges_are_forgotten_in_mid_stream() {
    lies("stopped knowing ranges", Exchange::whole).await;
}

#[tokio::test]
async fn the_wrong_start() {
    lies("cannot be trusted", async |x| {
        let asked = x.asked();
        let total = x.film.len();
        instead(x, asked.start - 1, asked.end - 1, total).await
    })
    .await;
}

#[tokio::test]
async fn the_wrong_total() {
    lies("the film changed on the server: it had 800000 bytes and has 800001 now", async |x| {
        let asked = x.asked();
        let total = x.film.len() + 1;
        instead(x, asked.start, asked.end, total).await
    })
    .await;
}

#[tokio::test]
async fn another_length_than_that_of_the_range() {
    lies("cannot be trusted", async |x| {
        let mut lines = x.lines_for(x.asked());
        lines[0] = format!("Content-Length: {}", x.asked().len() - 1);
        let bytes = x.bytes();
        x.head("206 Partial Content", &lines).await?.raw(&bytes[1..]).await
    })
    .await;
}

#[tokio::test]
async fn no_word_about_the_range() {
    lies("does not say which range", async |x| {
        let lines = [format!("Content-Length: {}", x.asked().len())];
        let bytes = x.bytes();
        x.head("206 Partial Content", &lines).await?.raw(bytes).await
    })
    .await;
}

#[tokio::test]
async fn more_than_was_asked_for() {
    lies("cannot be trusted", async |x| {
        let asked = x.asked();
        let total = x.film.len();
        // More at the front where the film ends.
        let end = (asked.end + 100).min(total);
        instead(x, asked.start - 100, end, total).await
    })
    .await;
}

#[tokio::test]
async fn more_than_the_range_that_was_promised() {
    let content = film(400_000);
    let server = Server::start(&content, async |x| {
        if x.request == 0 {
            return x.good().await;
        }
        let lines = x.lines_for(x.asked());
        let (length, bytes) = (x.asked().len() + 10, x.bytes());
        let lines = [lines[1].clone(), lines[2].clone(), "Transfer-Encoding: chunked".into()];
        let x = x.head("206 Partial Content", &lines).await?.raw(format!("{length:x}\r\n")).await?;
        x.raw(bytes).await?.raw("0123456789\r\n0\r\n\r\n").await
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
}

#[tokio::test]
async fn bytes_behind_the_answer() {
    let content = film(400_000);
    let server = Server::start(&content, async |x| {
        x.good().await?.raw("and some more that nobody asked for").await?.silence().await
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
}

#[tokio::test]
async fn a_promise_of_bytes_that_never_come() {
    lies("the server sends less than it says", async |x| {
        let lines = x.lines_for(x.asked());
        let lines = [lines[1].clone(), lines[2].clone(), "Transfer-Encoding: chunked".into()];
        x.head("206 Partial Content", &lines).await?.raw("0\r\n\r\n").await
    })
    .await;
}

#[tokio::test]
async fn a_head_that_is_cut_off() {
    // A request that was not read makes a reset of the end.
    lies("the last error: the server ", async |x| {
        x.raw("HTTP/1.1 206 Partial Content\r\nContent-Le").await?.hang_up()
    })
    .await;
}

#[tokio::test]
async fn a_head_that_never_ends() {
    lies("its head does not end within 64 KiB", async |x| {
        let mut x = x.raw("HTTP/1.1 206 Partial Content\r\n").await?;
        loop {
            x = x.raw("X-Filler: more and more and more\r\n".repeat(100)).await?;
        }
    })
    .await;
}

#[tokio::test]
async fn a_new_entity_tag_in_mid_stream() {
    lies("the film changed on the server", async |x| {
        let mut lines = x.lines_for(x.asked());
        lines[2] = "ETag: \"two\"".into();
        let body: Vec<u8> = x.bytes().iter().map(|byte| !byte).collect();
        x.head("206 Partial Content", &lines).await?.raw(body).await
    })
    .await;
}

#[tokio::test]
async fn a_later_answer_that_is_compressed_is_no_part_of_the_film() {
    lies("the server sends it encoded (gzip)", async |x| {
        let mut lines = x.lines_for(x.asked());
        lines.push("Content-Encoding: gzip".into());
        let body: Vec<u8> = x.bytes().iter().map(|byte| !byte).collect();
        x.head("206 Partial Content", &lines).await?.raw(body).await
    })
    .await;
}

#[tokio::test]
async fn another_film_instead_of_the_range() {
    lies("the film changed on the server", async |x| {
        assert_eq!(x.if_range.as_deref(), Some("\"one\""));
        let body = vec![0; x.film.len()];
        let lines = [format!("Content-Length: {}", body.len()), "ETag: \"two\"".into()];
        x.head("200 OK", &lines).await?.raw(body).await
    })
    .await;
}

#[tokio::test]
async fn fewer_bytes_than_asked_for_as_the_server_says() {
    let content = film(300_000);
    let server = Server::start(&content, async |x| {
        let asked = x.asked();
        let total = x.film.len();
        if x.request == 0 {
            return x.good().await;
        }
        instead(x, asked.start, asked.end.min(asked.start + 7_001), total).await
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
}

#[tokio::test]
async fn fewer_bytes_than_the_server_says() {
    let content = film(500_000);
    let server = Server::start(&content, async |x| {
        if x.request % 3 != 2 {
            return x.good().await;
        }
        let bytes = x.bytes();
        x.good_head().await?.raw(&bytes[..bytes.len() / 2]).await?.hang_up()
    })
    .await;
    comes_right(settings(vec![server.url()]), &content).await;
}

#[tokio::test]
async fn answers_in_other_clothes() {
    let content = film(700_000);
    let chunked = Server::start(&content, async |x| {
        let lines = x.lines_for(x.asked());
        let lines = [lines[1].clone(), lines[2].clone(), "Transfer-Encoding: chunked".into()];
        let bytes = x.bytes();
        let mut x = x.head("206 Partial Content", &lines).await?;
        for chunk in bytes.chunks(9_999) {
            x = x
                .raw(format!("{:X};note=\"x\"\r\n", chunk.len()))
                .await?
                .raw(chunk)
                .await?
                .raw("\r\n")
                .await?;
        }
        x.raw("0\r\nTrailer: x\r\n\r\n").await
    })
    .await;
    comes_right(settings(vec![chunked.url()]), &content).await;
    let interim = Server::start(&content, async |x| {
        let x = x.raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n").await?;
        x.good().await
    })
    .await;
    comes_right(settings(vec![interim.url()]), &content).await;
    let old = Server::start(&content, async |x| {
        let range = x.lines_for(x.asked())[1].clone();
        let bytes = x.bytes();
        let head = format!("HTTP/1.0 206 Partial Content\r\n{range}\r\n\r\n");
        x.raw(head).await?.raw(bytes).await?.hang_up()
    })
    .await;
    comes_right(settings(vec![old.url()]), &content).await;
}

#[tokio::test]
async fn another_film_under_the_same_name() {
    let content = film(900_000);
    let first = Server::start(&content, Exchange::good).await;
    let mut same_size = content.to_vec();
    same_size[500_000..].fill(7);
    let mut same_beginning = content.to_vec();
    same_beginning.truncate(800_000);
    for (other, words) in
        [(same_size, "samples of its content differ"), (same_beginning, "800000 bytes instead of 900000")]
    {
        let second = Server::start(&Arc::new(other), async |x| {
            let mut lines = x.lines_for(x.asked());
            lines[2] = "ETag: \"another\"".into();
            let bytes = x.bytes();
            x.head("206 Partial Content", &lines).await?.raw(bytes).await
        })
        .await;
        let film = open(settings(vec![first.url(), second.url()])).await;
        assert_eq!(film.info().replicas, [first.url().to_string()]);
        let [(url, why)] = &film.info().lost[..] else { panic!("{:?}", film.info().lost) };
        assert_eq!(*url, second.url().to_string());
        assert!(why.contains(words), "{why}");
        assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content);
    }
}

#[tokio::test]
async fn replicas_with_other_tags_that_close_after_each_answer_are_compared() {
    let content = film(400_000);
    let tagged = async |tag: &'static str| {
        Server::start(&content, move |x| async move {
            let mut lines = x.lines_for(x.asked());
            lines[2] = format!("ETag: \"{tag}\"\r\nConnection: close");
            let bytes = x.bytes();
            x.head("206 Partial Content", &lines).await?.raw(bytes).await?.hang_up()
        })
        .await
    };
    let (one, two) = (tagged("a").await, tagged("b").await);
    let film = open(settings(vec![one.url(), two.url()])).await;
    assert_eq!((film.info().replicas.len(), film.info().differing.len()), (2, 1), "{:?}", film.info().lost);
    assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content);
}

#[tokio::test]
async fn a_body_that_trickles_beside_a_good_replica() {
    // Larger than the look-ahead, so that what trickles holds up the reader and not the end.
    let content = film(6_000_000);
    let good = Server::start(&content, async |x| x.paced(4_000_000).await).await;
    let trickling = Server::start(&content, async |x| {
        if x.request < 2 {
            return x.good().await;
        }
        let bytes = x.bytes();
        let mut x = x.good_head().await?;
        for byte in bytes {
            x = x.raw([byte]).await?;
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        Ok(x)
    })
    .await;
    let mut settings = settings(vec![trickling.url(), good.url()]);
    settings.memory = anabranch_units::Bytes::mib(2);
    let film = open(settings).await;
    let mut notices = film.notices();
    assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content);
    let told = events(&mut notices);
    assert!(told.len() < 1000, "{} notices", told.len());
    let asked = told.iter().filter(|event| matches!(event, Event::Request { .. })).count();
    assert!(asked > 2);
    in_time(async { drop(film) }).await;
}
