//! Statuses in words.

/// A status with its name, and what helps against it where that is known.
pub fn status_in_words(status: u16) -> String {
    let name = ::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
    let hint = match status {
        401 => {
            ": give user and password in the URL, as in http://USER:PASSWORD@HOST/, or --header \
             'Authorization: ...'"
        }
        407 => ": give user and password in the proxy's URL, as in http_proxy=http://USER:PASSWORD@HOST:PORT",
        _ => "",
    };
    format!("status {status}{name}{hint}")
}
