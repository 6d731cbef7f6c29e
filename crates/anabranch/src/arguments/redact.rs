//! What was typed wrongly is shown, but not what may be secret in it.

use clap::error::{ContextKind, ContextValue};

/// Options whose values are never shown.
const SECRET_OPTIONS: [&str; 2] = ["--header", "--token"];
/// What stands for a secret.
const HIDDEN: &str = "...";

/// The error without secrets: no value of an option that takes one, and of nothing that looks like a URL its
/// user, password and query.
pub fn without_secrets(mut error: clap::Error) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let argument = text(&error, ContextKind::InvalidArg).unwrap_or_default();
    let is_secret = SECRET_OPTIONS.iter().any(|option| argument.starts_with(option));
    if let Some(value) = text(&error, ContextKind::InvalidValue) {
        let shown = if is_secret { HIDDEN.to_owned() } else { of_url(&value) };
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    // A URL where none belongs.
    if argument.contains("://") {
        error.insert(ContextKind::InvalidArg, ContextValue::String(of_url(&argument)));
    }
    error
}

/// What is typed as a URL need not be one: only its marks count.
fn of_url(value: &str) -> String {
    let (scheme, rest) = match value.split_once("//") {
        Some((scheme, rest)) => (format!("{scheme}//"), rest),
        None => (String::new(), value),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) if !scheme.is_empty() || query.contains('=') => (rest, format!("?{HIDDEN}")),
        _ => (rest, String::new()),
    };
    // A password may hold a slash, or another of these.
    let rest = match rest.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => rest.to_owned(),
    };
    format!("{scheme}{rest}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lose_their_secrets_and_keep_the_rest() {
        for (typed, shown) in [
            ("htp://user:PASSWORD@host/film?token=T", "htp://...@host/film?..."),
            ("htp://us@er:PASS/WORD@host/film", "htp://...@host/film"),
            ("user:PASSWORD@host/film", "...@host/film"),
            ("srt:/host:9000?passphrase=SECRET", "srt:/host:9000?..."),
            ("film.mp4", "film.mp4"),
            ("http://[::1/film", "http://[::1/film"),
            ("3 Mbps?", "3 Mbps?"),
        ] {
            assert_eq!(of_url(typed), shown);
        }
    }
}
