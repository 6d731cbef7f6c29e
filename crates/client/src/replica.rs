//! A server that has the film, and what is known of the film there.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use ::http::HeaderValue;
use anabranch_http::{ConnectOptions, Connection, CookieJar, Method, Received, RequestHead, Target, Version};
use anabranch_units::Bytes;
use bytes::BytesMut;

/// A replica that was found.
#[derive(Debug)]
pub(super) struct Replica {
    /// As it is shown.
    pub(super) url: String,
    pub(super) target: Target,
    pub(super) jar: CookieJar,
    pub(super) validator: Option<HeaderValue>,
    /// What its first answer says about the version of the film: later ones must not say anything else.
    pub(super) version: Version,
    /// Its server is one of ours and says that it stripes.
    pub(super) stripes: bool,
    /// Whether it has become longer.
    pub(super) growth: Growth,
    /// Its first connection, not given out yet.
    pub(super) connection: Option<Connection>,
}

/// Whether an answer has to be of the version that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    ThisVersion,
    AnyVersion,
}

impl Replica {
    /// Asks for a range, on the connection that there is or, where the server closed it, on a new one.
    pub(super) async fn fetch(
        &mut self,
        range: Range<u64>,
        options: &ConnectOptions,
    ) -> Result<BytesMut, String> {
        let mut connection = self.connection.take();
        let answer = self.fetch_over(&mut connection, range, Strictness::ThisVersion, options).await;
        self.connection = connection;
        answer
    }

    /// The same on the connection that is given.
    pub(super) async fn fetch_over(
        &self,
        connection: &mut Option<Connection>,
        range: Range<u64>,
        strictness: Strictness,
        options: &ConnectOptions,
    ) -> Result<BytesMut, String> {
        let answer = self.answer(connection, range, strictness, options);
        let answer = tokio::time::timeout(std::time::Duration::from_secs(20), answer).await;
        let answer = answer.unwrap_or_else(|_| Err("no answer within 20 s".into()));
        if answer.is_err() {
            // What is still on its way over it would be taken for the answer to the next request.
            *connection = None;
        }
        answer
    }

    async fn answer(
        &self,
        connection: &mut Option<Connection>,
        range: Range<u64>,
        strictness: Strictness,
        options: &ConnectOptions,
    ) -> Result<BytesMut, String> {
        let Some(last) = range.end.checked_sub(1) else { return Ok(BytesMut::new()) };
        let is_strict = strictness == Strictness::ThisVersion;
        let mut request =
            RequestHead::new(Method::Get, &self.target, &self.jar.headers()).range(range.start, Some(last));
        if let Some(validator) = self.validator.as_ref().filter(|_| is_strict) {
            request = request.if_range(validator);
        }
        let connection = match connection {
            Some(connection) if connection.is_open() => connection,
            place => {
                let connecting = Connection::connect(self.target.origin(), options).await;
                place.insert(connecting.map_err(|error| error.to_string())?)
            }
        };
        connection.send(&request).map_err(|error| error.to_string())?;
        let mut body = BytesMut::new();
        loop {
            match connection.receive(&mut body).await.map_err(|error| error.to_string())? {
                Received::Head(head) => {
                    self.jar.take(&head);
                    head.check_range(range.start, Some(last)).map_err(|error| error.to_string())?;
                    let difference = self.version.difference(&Version::of(&head));
                    if let Some(difference) = difference.filter(|_| is_strict) {
                        return Err(format!("the film changed on the server: {difference}"));
                    }
                }
                Received::Data(_) if Bytes::of(body.len()).get() <= range.end - range.start => {}
                Received::End { .. } => return Ok(body),
                _ => return Err("the connection broke".to_owned()),
            }
        }
    }
}

/// Whether a film has become longer on a server since it was opened, with what was there then still there.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Zero: it has not.
    size: AtomicU64,
    /// Held by the one who looks.
    pub(super) looking: tokio::sync::Mutex<()>,
}

impl Growth {
    /// The largest size that was seen; `None`: it is not known to grow.
    pub(super) fn size(&self) -> Option<u64> {
        Some(self.size.load(Ordering::Relaxed)).filter(|size| *size > 0)
    }

    pub(super) fn note(&self, size: u64) {
        self.size.fetch_max(size, Ordering::Relaxed);
    }
}
