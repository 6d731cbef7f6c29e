//! How the references in a playlist lead through a local endpoint.

use url::Url;

/// The longest playlist that is rewritten.
pub const LARGEST_PLAYLIST: usize = 8 << 20;

/// What a playlist may grow to.
pub(super) const LARGEST_RESULT: usize = 32 << 20;

/// A longer reference stays as it is: no server takes it.
pub(super) const LONGEST_REFERENCE: usize = 8 << 10;

/// How references lead through a local endpoint.
pub trait Route {
    /// What every reference through the endpoint begins with, such as `http://127.0.0.1:8080/`.
    fn endpoint(&self) -> &str;

    /// What a reference to `url` begins with: the endpoint, and perhaps more that ends in a slash. `None`
    /// stands for a host that only the player knows; when that has no answer, the reference stays as it is.
    fn prefix(&self, url: Option<&Url>) -> Option<String>;

    /// Whether plain relative references lead there by themselves, and stay as they are.
    fn keeps_relative(&self) -> bool {
        true
    }
}

/// The same prefix, which ends in a slash, for all references.
impl Route for str {
    fn endpoint(&self) -> &str {
        self
    }

    fn prefix(&self, _: Option<&Url>) -> Option<String> {
        Some(self.to_owned())
    }
}

/// Why a playlist was not rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaylistError {
    /// It is longer than [`LARGEST_PLAYLIST`], or would be four times as long after.
    #[error("the playlist is too long: {0} bytes")]
    TooLong(usize),
    /// It is not UTF-8.
    #[error("the playlist is not UTF-8 text")]
    NotText(#[from] std::str::Utf8Error),
    /// It is something else.
    #[error("this is no playlist: {0}")]
    NotPlaylist(&'static str),
    /// It is not well-formed XML.
    #[error("the media presentation description is not well-formed: {0}")]
    Xml(#[from] quick_xml::Error),
}

/// A reference as it must be written to go by `route`; `None` when it stays as it is.
pub(super) fn through<R: Route + ?Sized>(reference: &str, base: &Url, route: &R) -> Option<String> {
    let trimmed = reference.trim();
    if trimmed.is_empty()
        || trimmed.len() > LONGEST_REFERENCE
        || route.keeps_relative() && is_plain_relative(trimmed)
        || trimmed.starts_with(route.endpoint())
    {
        return None;
    }
    let url = base.join(trimmed).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(format!("{}{url}", route.prefix(Some(&url))?))
}

/// Whether a reference leads to the same place below `PREFIXURL` as below `URL`: it has no scheme, does not
/// begin at the root, and does not climb, which could lead above the root of `URL`.
fn is_plain_relative(reference: &str) -> bool {
    let path = reference.split(['?', '#']).next().unwrap_or_default();
    let climbs = path.contains("..") || path.to_ascii_lowercase().contains("%2e");
    let first = path.split('/').next().unwrap_or_default();
    !climbs && !path.starts_with('/') && !path.contains('\\') && !first.contains(':')
}

/// Adds to a result that may not grow without bound.
pub(super) fn push(result: &mut String, text: &str) -> Result<(), PlaylistError> {
    if result.len() + text.len() > LARGEST_RESULT {
        return Err(PlaylistError::TooLong(result.len() + text.len()));
    }
    result.push_str(text);
    Ok(())
}
