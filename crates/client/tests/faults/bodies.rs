//! Answers that are not what was asked for.

use std::time::Duration;

use anabranch_client::{Event, Settings};
use anabranch_testkit::{Answer, Asked, ScriptedServer, film};

use crate::viewer::{Fetch, comes_right, events, in_time, is_left, millis, open, read, settings};

/// A server that answers well at first, and then with `lie`. The stream ends with `error` when it is alone,
/// and comes right when there is another replica.
async fn lies(error: &str, lie: impl Fn(&Asked) -> Answer + Copy + Send + Sync + 'static) {
    let content = film(800_000);
    // Honest while it is probed and compared with another one.
    let start =
        |honest| ScriptedServer::of(&content, move |x| if x.number < honest { x.good() } else { lie(x) });
    let liar = start(2);
    let fetch = Fetch::begin(short(&[&liar])).await;
    let told = fetch.fails().await;
    assert!(told.contains(error), "{told:?} instead of {error:?}");
    is_left(&liar).await;
    let requests = liar.requests();
    assert!(requests < 20, "{requests} requests to a server that lies");
    let good = ScriptedServer::of(&content, |x| x.paced(1_000_000));
    let liar = start(1);
    comes_right(short(&[&liar, &good]), &content).await;
    let liar = start(1);
    comes_right(short(&[&good, &liar]), &content).await;
}

fn short(servers: &[&ScriptedServer]) -> Settings {
    let mut settings = settings(&servers.iter().map(|server| server.film_url()).collect::<Vec<_>>());
    settings.give_up_after = millis(2500);
    settings
}

/// An answer that says it is these bytes, and is.
fn instead(x: &Asked, first: usize, end: usize, total: usize) -> Answer {
    let body = x.film[first..end].to_vec();
    let range = format!("Content-Range: bytes {first}-{}/{total}", end - 1);
    let lines = [range, format!("Content-Length: {}", body.len()), "ETag: \"one\"".into()];
    Answer::head("206 Partial Content", &lines).send(body)
}

#[tokio::test]
async fn ranges_are_forgotten_in_mid_stream() {
    lies("stopped knowing ranges", Asked::whole).await;
}

#[tokio::test]
async fn the_wrong_start() {
    lies("cannot be trusted", |x| {
        let asked = x.within();
        let total = x.film.len();
        instead(x, asked.start - 1, asked.end - 1, total)
    })
    .await;
}

#[tokio::test]
async fn the_wrong_total() {
    lies("the film changed on the server: it had 800000 bytes and has 800001 now", |x| {
        let asked = x.within();
        let total = x.film.len() + 1;
        instead(x, asked.start, asked.end, total)
    })
    .await;
}

#[tokio::test]
async fn another_length_than_that_of_the_range() {
    lies("cannot be trusted", |x| {
        let mut lines = x.lines_for(x.within());
        lines[0] = format!("Content-Length: {}", x.within().len() - 1);
        let bytes = x.bytes();
        Answer::head("206 Partial Content", &lines).send(&bytes[1..])
    })
    .await;
}

#[tokio::test]
async fn no_word_about_the_range() {
    lies("does not say which range", |x| {
        let lines = [format!("Content-Length: {}", x.within().len())];
        let bytes = x.bytes();
        Answer::head("206 Partial Content", &lines).send(bytes)
    })
    .await;
}

#[tokio::test]
async fn more_than_was_asked_for() {
    lies("cannot be trusted", |x| {
        let asked = x.within();
        let total = x.film.len();
        // More at the front where the film ends.
        let end = (asked.end + 100).min(total);
        instead(x, asked.start - 100, end, total)
    })
    .await;
}

#[tokio::test]
async fn more_than_the_range_that_was_promised() {
    let content = film(400_000);
    let server = ScriptedServer::of(&content, |x| {
        if x.number == 0 {
            return x.good();
        }
        let lines = x.lines_for(x.within());
        let (length, bytes) = (x.within().len() + 10, x.bytes());
        let lines = [lines[1].clone(), lines[2].clone(), "Transfer-Encoding: chunked".into()];
        // At once, so that what is too many comes in the read that has the end of the range.
        let all = [format!("{length:x}\r\n").as_bytes(), &bytes, b"0123456789\r\n0\r\n\r\n"].concat();
        Answer::head("206 Partial Content", &lines).send(all)
    });
    comes_right(settings(&[server.film_url()]), &content).await;
}

#[tokio::test]
async fn bytes_behind_the_answer() {
    let content = film(400_000);
    let server =
        ScriptedServer::of(&content, |x| x.good().send("and some more that nobody asked for").silence());
    comes_right(settings(&[server.film_url()]), &content).await;
}

#[tokio::test]
async fn a_promise_of_bytes_that_never_come() {
    lies("the server sends less than it says", |x| {
        let lines = x.lines_for(x.within());
        let lines = [lines[1].clone(), lines[2].clone(), "Transfer-Encoding: chunked".into()];
        Answer::head("206 Partial Content", &lines).send("0\r\n\r\n")
    })
    .await;
}

#[tokio::test]
async fn a_head_that_is_cut_off() {
    // A request that was not read makes a reset of the end.
    lies("the last error: the server ", |_| {
        Answer::default().send("HTTP/1.1 206 Partial Content\r\nContent-Le").hang_up()
    })
    .await;
}

#[tokio::test]
async fn a_head_that_never_ends() {
    lies("its head does not end within 64 KiB", |_| {
        let head = Answer::default().send("HTTP/1.1 206 Partial Content\r\n");
        head.send_for_ever("X-Filler: more and more and more\r\n".repeat(100))
    })
    .await;
}

#[tokio::test]
async fn a_new_entity_tag_in_mid_stream() {
    lies("the film changed on the server", |x| {
        let mut lines = x.lines_for(x.within());
        lines[2] = "ETag: \"two\"".into();
        let body: Vec<u8> = x.bytes().iter().map(|byte| !byte).collect();
        Answer::head("206 Partial Content", &lines).send(body)
    })
    .await;
}

#[tokio::test]
async fn a_later_answer_that_is_compressed_is_no_part_of_the_film() {
    lies("the server sends it encoded (gzip)", |x| {
        let mut lines = x.lines_for(x.within());
        lines.push("Content-Encoding: gzip".into());
        let body: Vec<u8> = x.bytes().iter().map(|byte| !byte).collect();
        Answer::head("206 Partial Content", &lines).send(body)
    })
    .await;
}

#[tokio::test]
async fn another_film_instead_of_the_range() {
    lies("the film changed on the server", |x| {
        assert_eq!(x.field("if-range"), Some("\"one\""));
        let body = vec![0; x.film.len()];
        let lines = [format!("Content-Length: {}", body.len()), "ETag: \"two\"".into()];
        Answer::head("200 OK", &lines).send(body)
    })
    .await;
}

#[tokio::test]
async fn fewer_bytes_than_asked_for_as_the_server_says() {
    let content = film(300_000);
    let server = ScriptedServer::of(&content, |x| {
        let asked = x.within();
        let total = x.film.len();
        if x.number == 0 {
            return x.good();
        }
        instead(x, asked.start, asked.end.min(asked.start + 7_001), total)
    });
    comes_right(settings(&[server.film_url()]), &content).await;
}

#[tokio::test]
async fn fewer_bytes_than_the_server_says() {
    let content = film(500_000);
    let server = ScriptedServer::of(&content, |x| {
        if x.number % 3 != 2 {
            return x.good();
        }
        let bytes = x.bytes();
        x.good_head().send(&bytes[..bytes.len() / 2]).hang_up()
    });
    comes_right(settings(&[server.film_url()]), &content).await;
}

#[tokio::test]
async fn answers_in_other_clothes() {
    let content = film(700_000);
    let chunked = ScriptedServer::of(&content, |x| {
        let lines = x.lines_for(x.within());
        let lines = [lines[1].clone(), lines[2].clone(), "Transfer-Encoding: chunked".into()];
        let bytes = x.bytes();
        let mut x = Answer::head("206 Partial Content", &lines);
        for chunk in bytes.chunks(9_999) {
            x = x.send(format!("{:X};note=\"x\"\r\n", chunk.len())).send(chunk).send("\r\n");
        }
        x.send("0\r\nTrailer: x\r\n\r\n")
    });
    comes_right(settings(&[chunked.film_url()]), &content).await;
    let interim = ScriptedServer::of(&content, |x| {
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
        Answer::default().send(interim).then(x.good())
    });
    comes_right(settings(&[interim.film_url()]), &content).await;
    let old = ScriptedServer::of(&content, |x| {
        let range = x.lines_for(x.within())[1].clone();
        let bytes = x.bytes();
        let head = format!("HTTP/1.0 206 Partial Content\r\n{range}\r\n\r\n");
        Answer::default().send(head).send(bytes).hang_up()
    });
    comes_right(settings(&[old.film_url()]), &content).await;
}

#[tokio::test]
async fn another_film_under_the_same_name() {
    let content = film(900_000);
    let first = ScriptedServer::of(&content, Asked::good);
    let mut same_size = content.to_vec();
    same_size[500_000..].fill(7);
    let mut same_beginning = content.to_vec();
    same_beginning.truncate(800_000);
    for (other, words) in
        [(same_size, "samples of its content differ"), (same_beginning, "800000 bytes instead of 900000")]
    {
        let second = ScriptedServer::of(&other, |x| {
            let mut lines = x.lines_for(x.within());
            lines[2] = "ETag: \"another\"".into();
            let bytes = x.bytes();
            Answer::head("206 Partial Content", &lines).send(bytes)
        });
        let film = open(settings(&[first.film_url(), second.film_url()])).await;
        assert_eq!(film.info().replicas, [first.film_url()]);
        let [(url, why)] = &film.info().lost[..] else { panic!("{:?}", film.info().lost) };
        assert_eq!(*url, second.film_url());
        assert!(why.contains(words), "{why}");
        assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content);
    }
}

#[tokio::test]
async fn replicas_with_other_tags_that_close_after_each_answer_are_compared() {
    let content = film(400_000);
    let tagged = |tag: &'static str| {
        ScriptedServer::of(&content, move |x| {
            let mut lines = x.lines_for(x.within());
            lines[2] = format!("ETag: \"{tag}\"\r\nConnection: close");
            let bytes = x.bytes();
            Answer::head("206 Partial Content", &lines).send(bytes).hang_up()
        })
    };
    let (one, two) = (tagged("a"), tagged("b"));
    let film = open(settings(&[one.film_url(), two.film_url()])).await;
    assert_eq!((film.info().replicas.len(), film.info().differing.len()), (2, 1), "{:?}", film.info().lost);
    assert!(read(&mut film.reader(0..u64::MAX)).await.unwrap() == *content);
}

#[tokio::test]
async fn a_body_that_trickles_beside_a_good_replica() {
    // Larger than the look-ahead, so that what trickles holds up the reader and not the end.
    let content = film(6_000_000);
    let good = ScriptedServer::of(&content, |x| x.paced(4_000_000));
    let trickling = ScriptedServer::of(&content, |x| {
        if x.number < 2 {
            return x.good();
        }
        let bytes = x.bytes();
        x.good_head().send_in_pieces(bytes, 1, Duration::from_secs(1))
    });
    let mut settings = settings(&[trickling.film_url(), good.film_url()]);
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
