//! What a URL leads to.

use std::sync::{Arc, Mutex};

use anabranch_http::Method;
use anabranch_http::{
    ConnectOptions, Error, ExtraHeaders, FIRST_BYTES, MOST_REDIRECTS, Probe, ProbeError, RangeError,
    RequestHead, Target, probe,
};
use anabranch_units::Duration;
use tokio::io::AsyncWriteExt;
use url::Url;

use crate::server::{answer, options, read_head, receive_response, serve, url};

async fn probe_plain(url: &Url) -> Result<Probe, ProbeError> {
    probe(url, &ExtraHeaders::default(), &options()).await
}

/// A server that answers every request by what it says, and keeps its connections. Also gives the heads that
/// came.
async fn by_head(
    respond: impl Fn(&str) -> String + Clone + Send + 'static,
) -> (std::net::SocketAddr, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let address = serve(move |mut stream| {
        let (respond, seen) = (respond.clone(), seen.clone());
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                seen.lock().unwrap().push(head.clone());
                let _ = stream.write_all(respond(&head).as_bytes()).await;
            }
        }
    })
    .await;
    (address, heads)
}

fn first_of_200000() -> String {
    let body = "x".repeat(FIRST_BYTES.as_usize());
    format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-65535/200000\r\nContent-Length: \
         65536\r\nETag: \"v1\"\r\n\r\n{body}"
    )
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_server_with_ranges() {
    let (address, heads) = by_head(|_| first_of_200000()).await;
    let mut film = probe_plain(&url(address, "/film.mp4?a=b#t=5")).await.unwrap();
    assert_eq!((film.size, film.accepts_ranges, film.first.len()), (Some(200_000), true, 65536));
    assert_eq!(film.validator.as_ref().unwrap(), "\"v1\"");
    assert_eq!(film.url.as_str(), format!("http://{address}/film.mp4?a=b"));
    // The connection serves further requests.
    assert!(film.connection.is_open());
    let again = RequestHead::new(Method::Get, &film.target, &film.jar.headers()).range(0, Some(65535));
    film.connection.send(&again).unwrap();
    assert_eq!(receive_response(&mut film.connection).await.unwrap().1.len(), 65536);
    assert!(heads.lock().unwrap()[0].contains("range: bytes=0-65535\r\n"));
}

#[tokio::test]
async fn a_server_without_ranges_goes_on_with_its_one_response() {
    let address =
        answer(format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000))).await;
    let mut film = probe_plain(&url(address, "/")).await.unwrap();
    assert_eq!((film.size, film.accepts_ranges, film.first.len()), (Some(100_000), false, 0));
    let mut body = bytes::BytesMut::new();
    while !matches!(film.connection.receive(&mut body).await.unwrap(), anabranch_http::Received::End { .. }) {
    }
    assert_eq!(body.len(), 100_000);
}

#[tokio::test]
async fn small_empty_and_endless_films() {
    let small = answer("HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/3\r\nContent-Length: 3\r\n\r\nabc").await;
    let film = probe_plain(&url(small, "/")).await.unwrap();
    assert_eq!((film.size, &film.first[..]), (Some(3), b"abc".as_slice()));
    let empty = answer("HTTP/1.1 416 X\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n").await;
    let film = probe_plain(&url(empty, "/")).await.unwrap();
    assert_eq!((film.size, film.first.len()), (Some(0), 0));
    let live = answer("HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/*\r\nContent-Length: 3\r\n\r\nabc").await;
    assert_eq!(probe_plain(&url(live, "/")).await.unwrap().size, None);
}

#[tokio::test]
async fn a_server_that_lies_about_its_range() {
    let range = async |head: &str| {
        let address = answer(format!("HTTP/1.1 206 X\r\n{head}\r\n\r\nabc")).await;
        match probe_plain(&url(address, "/")).await.unwrap_err() {
            ProbeError::Range { source, .. } => source,
            other => panic!("{other}"),
        }
    };
    assert!(matches!(
        range("Content-Range: bytes 1-3/9\r\nContent-Length: 3").await,
        RangeError::Different { .. }
    ));
    assert!(matches!(range("Content-Range: bytes 0-99999/100000").await, RangeError::Different { .. }));
    assert!(matches!(
        range("Content-Range: bytes 0-3/9\r\nContent-Length: 3").await,
        RangeError::Length { .. }
    ));
    assert!(matches!(range("Content-Length: 3").await, RangeError::Missing));
}

#[tokio::test]
async fn a_server_that_sends_more_or_less_than_its_range() {
    let failure = async |response: &'static str| {
        let address = answer(response).await;
        match probe_plain(&url(address, "/")).await.unwrap_err() {
            ProbeError::Failed { source, .. } => source,
            other => panic!("{other}"),
        }
    };
    let more = "HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/9\r\nConnection: close\r\n\r\nabcd";
    assert!(matches!(failure(more).await, Error::Malformed(_)));
    let less = "HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/9\r\nConnection: close\r\n\r\nab";
    assert!(matches!(failure(less).await, Error::Truncated { .. }));
    assert!(matches!(
        failure("HTTP/1.1 206 X\r\nContent-Range: bytes 3-2/9\r\n\r\n").await,
        Error::Malformed(_)
    ));
    assert!(matches!(failure("").await, Error::Truncated { .. }));
}

#[tokio::test]
async fn refusals_keep_their_status_and_waiting_time() {
    for (status, words) in
        [(401, "Unauthorized"), (403, "Forbidden"), (404, "Not Found"), (503, "Service Unavailable")]
    {
        let address =
            answer(format!("HTTP/1.1 {status} No\r\nRetry-After: 9\r\nContent-Length: 2\r\n\r\nno")).await;
        let secret = Url::parse(&format!("http://user:secret@{address}/film")).unwrap();
        let error = probe_plain(&secret).await.unwrap_err();
        let wait = Some(Duration::from_secs(9));
        assert!(
            matches!(error, ProbeError::Status { status: told, retry_after, .. } if told == status && retry_after == wait),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("/film") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn user_and_password_are_told_to_their_host_only() {
    let (elsewhere, their_heads) = by_head(|_| first_of_200000()).await;
    let (address, heads) = by_head(move |head| match head.split(' ').nth(1) {
        _ if !head.contains("authorization: Basic dXNlcjpzZWNyZXQ=\r\n") => {
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".into()
        }
        Some("/film") => redirect("/moved"),
        _ => redirect(url(elsewhere, "/final").as_ref()),
    })
    .await;
    assert!(matches!(probe_plain(&url(address, "/film")).await, Err(ProbeError::Status { status: 401, .. })));
    let mut headers = ExtraHeaders::default();
    let own = Target::new(&url(address, "/")).unwrap();
    headers.add_for(&[own.origin().clone()], "X-Token: secret").unwrap();
    headers.add("Via: 1.1 us").unwrap();
    let with_password = Url::parse(&format!("http://user:secret@{address}/film")).unwrap();
    let film = probe(&with_password, &headers, &options()).await.unwrap();
    assert_eq!(film.url, url(elsewhere, "/final"));
    assert!(!format!("{film:?}").contains("secret"));
    let (heads, their_heads) = (heads.lock().unwrap(), their_heads.lock().unwrap());
    assert!(heads[2].starts_with("GET /moved ") && heads[2].contains("x-token: secret"), "{heads:?}");
    assert!(
        !their_heads[0].contains("authorization")
            && !their_heads[0].contains("x-token")
            && their_heads[0].contains("via: 1.1 us"),
        "{their_heads:?}"
    );
}

#[tokio::test]
async fn redirects_that_lead_nowhere() {
    let (circle, _) = by_head(|head| redirect(if head.starts_with("GET /a ") { "/b" } else { "/a" })).await;
    assert!(matches!(probe_plain(&url(circle, "/a")).await, Err(ProbeError::RedirectLoop { .. })));
    let (onward, heads) = by_head(|head| {
        let path = head.split(' ').nth(1).unwrap();
        redirect(&format!("{path}x"))
    })
    .await;
    assert!(matches!(probe_plain(&url(onward, "/")).await, Err(ProbeError::TooManyRedirects { .. })));
    assert_eq!(heads.lock().unwrap().len(), MOST_REDIRECTS + 1);
    for location in ["", "Location:\r\n", "Location: http://\r\n"] {
        let address = answer(format!("HTTP/1.1 301 Moved\r\n{location}Content-Length: 0\r\n\r\n")).await;
        let error = probe_plain(&url(address, "/")).await.unwrap_err();
        assert!(matches!(error, ProbeError::RedirectNowhere { .. }), "{error}");
    }
    let (other_scheme, _) = by_head(|_| redirect("file:///etc/passwd")).await;
    assert!(matches!(probe_plain(&url(other_scheme, "/")).await, Err(ProbeError::Target(_))));
}

#[tokio::test]
async fn a_film_that_comes_encoded() {
    let address = answer("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx").await;
    assert!(matches!(probe_plain(&url(address, "/")).await, Err(ProbeError::Encoded { .. })));
}

#[tokio::test]
async fn servers_that_hang_or_trickle() {
    let options = ConnectOptions { response_timeout: Duration::from_millis(100), ..options() };
    for response in ["", "HTTP/1.1 206 X\r\nContent-Range: bytes 0-999/1000\r\nContent-Length: 1000\r\n\r\n"]
    {
        let address = serve(move |mut stream| async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(response.as_bytes()).await;
            while !response.is_empty() && stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        })
        .await;
        let error = probe(&url(address, "/"), &ExtraHeaders::default(), &options).await.unwrap_err();
        assert!(matches!(error, ProbeError::Timeout { .. }), "{error}");
    }
}
