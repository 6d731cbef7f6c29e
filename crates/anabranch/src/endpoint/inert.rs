//! Answers that no browser runs. What comes from anywhere in the network is shown here as if it came from
//! this machine, so it must not be a page, a script, or a document that holds one.

use http::header::{
    self, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, SERVER, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use mime::Mime;

/// Whether pages of another origin may take in what is answered.
pub(super) const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Bytes of which nobody makes anything.
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// A document of what was answered runs nothing, loads nothing, and is shown in no frame.
const NOTHING: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
/// The same, but it may go on loading itself from here: a browser shows a film by a document with a player in
/// it.
const ITSELF: HeaderValue = HeaderValue::from_static(
    "sandbox allow-same-origin; default-src 'none'; media-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);
/// What players ask for that is neither picture nor sound.
const MEDIA: [&str; 13] = [
    "application/dash+xml",
    "application/mp4",
    "application/mpegurl",
    "application/mxf",
    "application/ogg",
    "application/ttml+xml",
    "application/vnd.apple.mpegurl",
    "application/vnd.rn-realmedia",
    "application/x-matroska",
    "application/x-mpegurl",
    "application/x-subrip",
    "text/vtt",
    "video/vnd.mpeg.dash.mpd",
];

/// The media type that is told of what a server calls `said`, or whose name suggests that: the same when it
/// is that of media, and else that of octets.
pub(crate) fn media_type(said: &str) -> String {
    match said.parse::<Mime>() {
        Ok(kind) if is_media(&kind) => {
            // A browser takes the last type of a list: without quotes and commas there is no list.
            let parameters = kind.params().filter(|(_, value)| is_token(value.as_str()));
            parameters
                .fold(kind.essence_str().to_owned(), |all, (name, value)| format!("{all};{name}={value}"))
        }
        _ => "application/octet-stream".to_owned(),
    }
}

fn is_media(kind: &Mime) -> bool {
    is_shown(kind) || MEDIA.contains(&kind.essence_str())
}

/// Whether a browser shows it by its own player, and not by what is written in it, as it does with SVG.
fn is_shown(kind: &Mime) -> bool {
    let is_xml = kind.suffix() == Some(mime::XML) || kind.subtype() == mime::XML;
    let is_playlist = ["mpegurl", "x-mpegurl", "vnd.mpeg.dash.mpd"].contains(&kind.subtype().as_str());
    [mime::AUDIO, mime::IMAGE, mime::VIDEO].contains(&kind.type_()) && !is_xml && !is_playlist
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
}

/// Makes an answer with these headers one that no browser runs, whatever it is.
pub(super) fn seal(headers: &mut HeaderMap) {
    let kind =
        headers.get(CONTENT_TYPE).map(|value| value.to_str().ok().and_then(|text| text.parse::<Mime>().ok()));
    let (is_played, is_own_text) = match &kind {
        Some(Some(kind)) => (is_shown(kind), is_own(kind)),
        _ => (false, false),
    };
    let is_known = match &kind {
        // No body.
        None => true,
        Some(kind) => kind
            .as_ref()
            .is_some_and(|kind| is_own(kind) || is_media(kind) || *kind == mime::APPLICATION_OCTET_STREAM),
    };
    if !is_known {
        headers.insert(CONTENT_TYPE, OCTETS);
    }
    if kind.is_some() && !is_played && !is_own_text {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    headers.insert(CONTENT_SECURITY_POLICY, if is_played { ITSELF } else { NOTHING });
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // Addresses here can hold those of films, with what is secret in them.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(SERVER, HeaderValue::from_static("anabranch"));
    // Nobody but a document from here embeds it, unless it was let in.
    if !headers.contains_key(RESOURCE_POLICY) {
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    }
    headers.append(header::VARY, HeaderValue::from_static("Origin, Sec-Fetch-Site"));
}

/// What is written here: messages, metrics, and the frame of several ranges.
fn is_own(kind: &Mime) -> bool {
    ["text/plain", "application/openmetrics-text", "multipart/byteranges"].contains(&kind.essence_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_media_is_octets() {
        for (said, told) in [
            ("video/mp4", "video/mp4"),
            ("Video/MP4", "video/mp4"),
            ("audio/L16;rate=44100;channels=2", "audio/l16;rate=44100;channels=2"),
            ("video/mp4; codecs=\"avc1.4d, mp4a\"", "video/mp4"),
            ("application/vnd.apple.mpegurl", "application/vnd.apple.mpegurl"),
            ("application/dash+xml", "application/dash+xml"),
            ("image/jpeg", "image/jpeg"),
            ("text/vtt; charset=utf-8", "text/vtt;charset=utf-8"),
            ("image/svg+xml", ""),
            ("text/html", ""),
            ("text/plain", ""),
            ("application/xhtml+xml", ""),
            ("application/xml", ""),
            ("video/xml", ""),
            ("text/javascript", ""),
            ("application/pdf", ""),
            ("application/json", ""),
            ("multipart/x-mixed-replace;boundary=x", ""),
            // A browser takes the last of several.
            ("video/mp4, text/html", ""),
            ("video/mp4;a=\"x, text/html\"", "video/mp4"),
            ("", ""),
            ("nonsense", ""),
        ] {
            let told = if told.is_empty() { "application/octet-stream" } else { told };
            assert_eq!(media_type(said), told, "{said}");
        }
    }

    #[test]
    fn every_answer_is_sealed() {
        for (kind, is_attachment, policy) in [
            (Some("video/mp4"), false, ITSELF),
            (Some("image/png"), false, ITSELF),
            (Some("text/plain; charset=utf-8"), false, NOTHING),
            (Some("text/html"), true, NOTHING),
            (Some("image/svg+xml"), true, NOTHING),
            (Some("video/mp4, text/html"), true, NOTHING),
            (Some("application/dash+xml"), true, NOTHING),
            (Some("application/octet-stream"), true, NOTHING),
            (Some("\u{fc}"), true, NOTHING),
            (None, false, NOTHING),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, HeaderValue::from_bytes(kind.as_bytes()).unwrap());
            }
            seal(&mut headers);
            assert_eq!(headers.contains_key(CONTENT_DISPOSITION), is_attachment, "{kind:?}");
            assert_eq!(headers[CONTENT_SECURITY_POLICY], policy, "{kind:?}");
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            let told = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap());
            assert!(told.is_none_or(|told| !told.contains("html") && !told.contains("svg")), "{told:?}");
        }
    }
}
