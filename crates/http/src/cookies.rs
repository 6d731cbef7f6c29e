//! Cookies that servers set on the way to a film and with its bytes: some lead there, or go on, only with
//! what they gave before.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use ::http::header::SET_COOKIE;
use cookie_store::CookieStore;
use url::Url;

use super::head::ResponseHead;
use super::request::ExtraHeaders;
use super::target::Origin;

/// Most bytes of cookies that are sent to a server.
const MOST: usize = 8 * 1024;
/// Most cookies that are kept. Those that are there already can still change.
const MOST_COOKIES: usize = 100;
/// The longest that is taken (RFC 6265, section 6.1).
const LONGEST: usize = 4096;

/// What is said with every request for a film: a user's headers, and the cookies that its server has set.
/// They are kept as long as the film is got, and no longer.
pub struct CookieJar {
    headers: ExtraHeaders,
    url: Url,
    origin: Origin,
    cookies: Mutex<Cookies>,
}

impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieJar").finish_non_exhaustive()
    }
}

impl CookieJar {
    pub(super) fn new(headers: ExtraHeaders, url: Url, origin: Origin, cookies: Cookies) -> Self {
        Self { headers, url, origin, cookies: Mutex::new(cookies) }
    }

    /// Takes what an answer sets.
    pub fn take(&self, head: &ResponseHead) {
        if head.headers.contains_key(SET_COOKIE) {
            self.cookies.lock().unwrap_or_else(PoisonError::into_inner).take(head, &self.url);
        }
    }

    /// What the next request says.
    pub fn headers(&self) -> ExtraHeaders {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner).header_for(&self.url);
        self.headers.with_cookies(&self.origin, cookies.as_deref())
    }
}

/// The cookies of one film. To whom each is told is the library's business (RFC 6265, 5.4).
#[derive(Default)]
pub(super) struct Cookies(CookieStore);

impl Cookies {
    /// Takes what the answer from `url` sets. What is no cookie, or one for others, is left out.
    pub(super) fn take(&mut self, head: &ResponseHead, url: &Url) {
        for value in head.headers.get_all(SET_COOKIE) {
            let Ok(cookie) = value.to_str() else { continue };
            let name = cookie.split(['=', ';']).next().unwrap_or_default().trim();
            let is_known = || self.0.iter_any().any(|known| known.name() == name);
            if cookie.len() <= LONGEST && (self.0.iter_any().count() < MOST_COOKIES || is_known()) {
                let _ = self.0.parse(cookie, url);
            }
        }
    }

    /// What to tell the server of `url`; `None`: nothing.
    pub(super) fn header_for(&self, url: &Url) -> Option<String> {
        let mut header = String::new();
        for (name, value) in self.0.get_request_values(url) {
            if header.len() + name.len() + value.len() + 3 > MOST {
                break;
            }
            let separator = if header.is_empty() { "" } else { "; " };
            header.push_str(&format!("{separator}{name}={value}"));
        }
        (!header.is_empty()).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_go_to_their_hosts_and_paths_and_are_bounded() {
        let url = |url: &str| Url::parse(url).unwrap();
        let lines = [
            "a=1; Path=/",
            "b=2; Path=/films; Secure",
            "c=3; Domain=other.example",
            "d=4; Max-Age=0",
            "nonsense",
            "\u{1}=5",
        ];
        let lines: String = lines.iter().map(|line| format!("Set-Cookie: {line}\r\n")).collect();
        let text = format!("HTTP/1.1 302 Found\r\n{}\r\n", lines.replace('\u{1}', "\u{e4}"));
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut cookies = Cookies::default();
        cookies.take(&head, &url("https://a.example/login"));
        let told = |to: &str| cookies.header_for(&url(to)).unwrap_or_default();
        assert_eq!(told("http://a.example/films/x"), "a=1");
        let both = told("https://a.example/films/x");
        assert!(both.contains("a=1") && both.contains("b=2") && both.len() == 8, "{both}");
        assert_eq!(told("https://other.example/films"), "");
        let many: String = (0..90).map(|i| format!("Set-Cookie: n{i}={}\r\n", "x".repeat(500))).collect();
        let (head, _) =
            ResponseHead::parse(format!("HTTP/1.1 302 Found\r\n{many}\r\n").as_bytes()).unwrap().unwrap();
        cookies.take(&head, &url("https://a.example/"));
        assert!(cookies.header_for(&url("https://a.example/")).unwrap().len() <= MOST);
        for number in 0..1000 {
            let line = format!("HTTP/1.1 200 OK\r\nSet-Cookie: x{number}=y\r\n\r\n");
            let (head, _) = ResponseHead::parse(line.as_bytes()).unwrap().unwrap();
            cookies.take(&head, &url("https://a.example/"));
        }
        assert!(cookies.0.iter_any().count() <= MOST_COOKIES);
    }
}
