//! What a player says to the host that it talks to through the proxy, and to no other.

use anabranch_http::{ExtraHeaders, HeaderError, Origin};
use http::header::{AUTHORIZATION, COOKIE, HeaderValue};
use http::{HeaderMap, HeaderName};

use crate::endpoint::Asker;

/// A player's `Authorization` and `Cookie`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Secrets {
    authorization: Option<HeaderValue>,
    cookie: Option<HeaderValue>,
}

impl Secrets {
    /// Those in a request. A browser sends the cookies of whatever else is on this machine, as cookies know
    /// no ports, and what was typed for another host behind the proxy: of a page only what its script says
    /// itself is meant.
    pub(super) fn of(headers: &HeaderMap, asker: Asker) -> Self {
        let first = |name: HeaderName| headers.get(name).cloned();
        match asker {
            Asker::Program => Self { authorization: first(AUTHORIZATION), cookie: cookies(headers) },
            Asker::Page => Self { authorization: first(AUTHORIZATION), cookie: None },
            Asker::Browser => Self::default(),
        }
    }

    /// Has requests to `origin` say them.
    ///
    /// # Errors
    /// There are too many headers.
    pub(super) fn add_to(&self, headers: &mut ExtraHeaders, origin: &Origin) -> Result<(), HeaderError> {
        for (name, value) in [(AUTHORIZATION, &self.authorization), (COOKIE, &self.cookie)] {
            if let Some(value) = value {
                headers.replace_for(origin, &name, value)?;
            }
        }
        Ok(())
    }
}

/// All lines as one (RFC 6265, section 5.4).
fn cookies(headers: &HeaderMap) -> Option<HeaderValue> {
    let lines: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    HeaderValue::from_bytes(&lines.join(&b"; "[..])).ok().filter(|line| !line.is_empty())
}
