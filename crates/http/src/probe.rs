//! The first request to a URL: follows redirects, and finds out how large the film is and whether ranges of
//! it can be had.

use ::http::HeaderValue;
use anabranch_units::{Bytes, Duration};
use bytes::BytesMut;
use url::Url;

use super::connect::ConnectOptions;
use super::connection::Connection;
use super::cookies::{CookieJar, Cookies};
use super::decoder::Received;
use super::error::{ConnectError, Error};
use super::head::{RangeError, ResponseHead};
use super::request::{ExtraHeaders, Method, RequestHead};
use super::status::status_in_words;
use super::target::{Target, TargetError};
use super::version::Version;

/// Most redirects that are followed.
pub const MOST_REDIRECTS: usize = 10;

/// What a URL leads to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Probe {
    /// Where the redirects ended, without user and password.
    pub url: Url,
    /// What to ask for from now on.
    pub target: Target,
    /// What to say with it: the user's headers, and the cookies that were set so far.
    pub jar: CookieJar,
    /// The connection. With ranges it waits for requests if it [is open](Connection::is_open), unless first
    /// bytes are `coming`; without, the body of the one response is under way on it.
    pub connection: Connection,
    /// The head of the response.
    pub head: ResponseHead,
    /// What it says about the version of the film.
    pub version: Version,
    /// The first bytes of the film, up to [`ConnectOptions::first_bytes`]; empty without ranges.
    pub first: BytesMut,
    /// How many of them are under way on the connection, and not in `first`.
    pub coming: u64,
    /// Size of all that the URL leads to, when the server tells.
    pub size: Option<u64>,
    /// A validator for `If-Range`, when the server gives one that is good for it.
    pub validator: Option<HeaderValue>,
    /// Whether ranges can be had.
    pub accepts_ranges: bool,
}

/// A URL leads to nothing that can be streamed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// Not a URL to ask for.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection failed.
    #[error("{target}: {source}")]
    Failed {
        /// What was asked for.
        target: Box<Target>,
        /// Why.
        source: Error,
    },
    /// The response did not come in time.
    #[error("{target}: no answer within {after}")]
    Timeout {
        /// What was asked for.
        target: Box<Target>,
        /// How long was waited.
        after: Duration,
    },
    /// The server has not what was asked for, or does not give it.
    #[error("{target}: the server answers with {}", status_in_words(*status))]
    Status {
        /// What was asked for.
        target: Box<Target>,
        /// Its status.
        status: u16,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The server sends something else than the range that was asked for.
    #[error("{target}: {source}")]
    Range {
        /// What was asked for.
        target: Box<Target>,
        /// What is wrong.
        source: RangeError,
    },
    /// The server sends an encoded form although none was asked for; positions in it are not positions in the
    /// film.
    #[error("{target}: the server sends it encoded ({encoding})")]
    Encoded {
        /// What was asked for.
        target: Box<Target>,
        /// How.
        encoding: String,
    },
    /// A redirect that does not say where to.
    #[error("{target}: redirected to nowhere")]
    RedirectNowhere {
        /// What was asked for.
        target: Box<Target>,
    },
    /// Redirects lead back.
    #[error("{target}: redirected in a circle")]
    RedirectLoop {
        /// Where it was noticed.
        target: Box<Target>,
    },
    /// Too many redirects.
    #[error("{target}: more than {MOST_REDIRECTS} redirects")]
    TooManyRedirects {
        /// Where it ended.
        target: Box<Target>,
    },
    /// A redirect away from TLS.
    #[error("{target}: redirected from https to the insecure {to}")]
    Downgrade {
        /// What was asked for.
        target: Box<Target>,
        /// Where it leads.
        to: Box<Target>,
    },
}

/// Asks for the first bytes of what `url` leads to, and waits for them.
///
/// # Errors
/// Every [`ProbeError`].
pub async fn probe(url: &Url, headers: &ExtraHeaders, options: &ConnectOptions) -> Result<Probe, ProbeError> {
    let mut probe = probe_head(url, headers, options).await?;
    let length = std::mem::take(&mut probe.coming);
    if probe.accepts_ranges && probe.size != Some(0) {
        probe.first.reserve(options.first_bytes.as_usize() + 1);
        let reading = read_first(&mut probe.connection, &mut probe.first, length);
        in_time(&probe.target, options, reading).await?;
    }
    Ok(probe)
}

/// Asks for the first bytes of what `url` leads to, and waits for the head of the answer: they are
/// [coming](Probe::coming) then.
///
/// # Errors
/// Every [`ProbeError`].
pub async fn probe_head(
    url: &Url,
    headers: &ExtraHeaders,
    options: &ConnectOptions,
) -> Result<Probe, ProbeError> {
    let mut url = url.clone();
    let mut target = Target::new(&url)?;
    let must_stay_secure = target.origin().is_secure();
    let mut visited = Vec::new();
    let mut cookies = Cookies::default();
    loop {
        let told = cookies.header_for(&url);
        let sent = headers.with_cookies(target.origin(), told.as_deref());
        let asked = ask(&target, &sent, options).await?;
        if !matches!(asked.head.status, 301 | 302 | 303 | 307 | 308) {
            // A connection that is shown to nobody needs no password.
            let _ = (url.set_username(""), url.set_password(None));
            url.set_fragment(None);
            cookies.take(&asked.head, &url);
            let jar = CookieJar::new(headers.clone(), url.clone(), target.origin().clone(), cookies);
            return asked.into_probe(url, target, jar, options);
        }
        visited.push((target.clone(), told));
        cookies.take(&asked.head, &url);
        let location = asked.head.location.filter(|location| !location.is_empty());
        let next_url = location.and_then(|location| url.join(&location).ok());
        let Some(next_url) = next_url else {
            return Err(ProbeError::RedirectNowhere { target: target.into() });
        };
        let mut next = Target::new(&next_url)?;
        if must_stay_secure && !next.origin().is_secure() {
            return Err(ProbeError::Downgrade { target: target.into(), to: next.into() });
        }
        if target.origin().may_share_secrets_with(next.origin()) {
            next = next.with_credentials_of(&target);
        }
        // The same again with what was set on the way is no circle.
        if visited.contains(&(next.clone(), cookies.header_for(&next_url))) {
            return Err(ProbeError::RedirectLoop { target: next.into() });
        }
        if visited.len() > MOST_REDIRECTS {
            return Err(ProbeError::TooManyRedirects { target: next.into() });
        }
        (url, target) = (next_url, next);
    }
}

/// A response whose head has come.
struct Asked {
    connection: Connection,
    head: ResponseHead,
}

async fn ask(target: &Target, headers: &ExtraHeaders, options: &ConnectOptions) -> Result<Asked, ProbeError> {
    let connection = Connection::connect(target.origin(), options).await?;
    let is_reused = connection.is_reused();
    match ask_over(connection, target, headers, options).await {
        // Its server has ended it meanwhile.
        Err(ProbeError::Failed { .. }) if is_reused => {
            let connection = Connection::connect_anew(target.origin(), options).await?;
            ask_over(connection, target, headers, options).await
        }
        asked => asked,
    }
}

async fn ask_over(
    mut connection: Connection,
    target: &Target,
    headers: &ExtraHeaders,
    options: &ConnectOptions,
) -> Result<Asked, ProbeError> {
    let request =
        RequestHead::new(Method::Get, target, headers).range(options.start, Some(options.last_first_byte()));
    let failed = |source| ProbeError::Failed { target: target.clone().into(), source };
    connection.send(&request).map_err(failed)?;
    let mut nothing = BytesMut::new();
    let received = in_time(target, options, connection.receive(&mut nothing)).await?;
    match received {
        Received::Head(head) => Ok(Asked { connection, head: *head }),
        _ => Err(failed(Error::Truncated { missing: None })),
    }
}

impl Asked {
    fn into_probe(
        self,
        url: Url,
        target: Target,
        jar: CookieJar,
        options: &ConnectOptions,
    ) -> Result<Probe, ProbeError> {
        let Self { connection, head } = self;
        if let Some(encoding) = head.encoding() {
            return Err(ProbeError::Encoded { target: target.into(), encoding });
        }
        let first = BytesMut::new();
        let (size, coming, accepts_ranges) =
            match head.check_range(options.start, Some(options.last_first_byte())) {
                Ok(range) => (range.total, range.length(), true),
                Err(RangeError::Ignored) => (head.content_length, 0, false),
                // An empty film has no first byte.
                Err(RangeError::Unsatisfied { total: Some(0) }) => (Some(0), 0, true),
                Err(RangeError::Unsatisfied { .. } | RangeError::Status(_)) => {
                    return Err(ProbeError::Status {
                        target: target.into(),
                        status: head.status,
                        retry_after: head.retry_after,
                    });
                }
                Err(source) => return Err(ProbeError::Range { target: target.into(), source }),
            };
        let version = Version::of(&head);
        let validator = version.strong_validator();
        Ok(Probe {
            url,
            target,
            jar,
            connection,
            head,
            version,
            first,
            coming,
            size,
            validator,
            accepts_ranges,
        })
    }
}

/// Reads a body that has to be `length` bytes long.
async fn read_first(connection: &mut Connection, first: &mut BytesMut, length: u64) -> Result<(), Error> {
    loop {
        let received = connection.receive(first).await?;
        let have = Bytes::of(first.len()).get();
        match received {
            Received::Data(_) if have <= length => {}
            Received::End { .. } if have == length => return Ok(()),
            Received::Data(_) => return Err(super::Malformed("it is longer than its range").into()),
            _ => return Err(Error::Truncated { missing: Some(Bytes::new(length.saturating_sub(have))) }),
        }
    }
}

async fn in_time<T>(
    target: &Target,
    options: &ConnectOptions,
    response: impl Future<Output = Result<T, Error>>,
) -> Result<T, ProbeError> {
    let after = options.response_timeout;
    match tokio::time::timeout(after.into(), response).await {
        Ok(result) => result.map_err(|source| ProbeError::Failed { target: target.clone().into(), source }),
        Err(_) => Err(ProbeError::Timeout { target: target.clone().into(), after }),
    }
}
