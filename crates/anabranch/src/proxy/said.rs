//! What a player says with a request that is relayed as it came: its query with CMCD, and CMCD in headers.

use anabranch_http::{ExtraHeaders, HeaderError, Origin};
use anabranch_protocol::cmcd::{is_cmcd, without_cmcd};
use http::HeaderMap;
use url::Url;

/// What a request says besides what it asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// The whole query, where there is CMCD in it.
    query: Option<String>,
    headers: HeaderMap,
}

impl Said {
    /// What a request for `url` says, and the URL without that: requests for the same thing say different
    /// things.
    pub(super) fn of(url: &Url, headers: &HeaderMap) -> (Self, Url) {
        let mut plain = url.clone();
        plain.set_query(url.query().and_then(without_cmcd).as_deref());
        let query = url.query().filter(|_| plain != *url).map(str::to_owned);
        let headers = headers.iter().filter(|(name, _)| is_cmcd(name.as_str()));
        let headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
        (Self { query, headers }, plain)
    }

    /// Has a URL, and requests to its origin, say it.
    ///
    /// # Errors
    /// There are too many headers.
    pub(super) fn add_to(
        &self,
        url: &mut Url,
        headers: &mut ExtraHeaders,
        origin: &Origin,
    ) -> Result<(), HeaderError> {
        if let Some(query) = &self.query {
            url.set_query(Some(query));
        }
        self.headers.iter().try_for_each(|(name, value)| headers.replace_for(origin, name, value))
    }
}
