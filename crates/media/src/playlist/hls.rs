//! HLS, line by line: RFC 8216 defines a playlist by its lines (section 4.1), so that tags that are not known
//! here, comments, and the order and ends of lines all stay as they are.

use std::borrow::Cow;

use url::Url;

use super::route::{PlaylistError, Route, push, through};

pub(super) fn rewrite<R: Route + ?Sized>(text: &str, base: &Url, route: &R) -> Result<String, PlaylistError> {
    if !text.trim_start_matches('\u{feff}').starts_with("#EXTM3U") {
        return Err(PlaylistError::NotPlaylist("it does not begin with #EXTM3U"));
    }
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        if content.trim_start_matches('\u{feff}').starts_with('#') {
            rewrite_tag(&mut result, content, base, route)?;
        } else {
            push(&mut result, &uri(content, base, route))?;
        }
        push(&mut result, &line[content.len()..])?;
    }
    Ok(result)
}

/// Rewrites the quoted values of attributes whose name ends in `URI` (`URI` of keys, maps and renditions,
/// `SERVER-URI` of content steering, `X-ASSET-URI` of interstitials) in a tag with an attribute list (section
/// 4.2).
fn rewrite_tag<R: Route + ?Sized>(
    result: &mut String,
    line: &str,
    base: &Url,
    route: &R,
) -> Result<(), PlaylistError> {
    let attributes = match line.split_once(':') {
        Some((tag, attributes)) if tag.starts_with("#EXT-X-") => attributes,
        _ => return push(result, line),
    };
    push(result, &line[..line.len() - attributes.len()])?;
    let mut rest = attributes;
    while !rest.is_empty() {
        let Some((name, value)) = rest.split_once('=') else { return push(result, rest) };
        push(result, name)?;
        push(result, "=")?;
        let after = match value.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((quoted, after)) => {
                let is_uri = name.trim_start_matches([',', ' ']).ends_with("URI");
                push(result, "\"")?;
                if is_uri {
                    push(result, &uri(quoted, base, route))?;
                } else {
                    push(result, quoted)?;
                }
                push(result, "\"")?;
                after
            }
            None => value,
        };
        let end = after.find(',').unwrap_or(after.len());
        push(result, &after[..end])?;
        rest = &after[end..];
        // The comma goes before the next name.
        if let Some(next) = rest.strip_prefix(',') {
            push(result, ",")?;
            rest = next;
        }
    }
    Ok(())
}

/// One reference. A variable in it (`{$name}`, RFC 8216bis) is put in by the player, so that it cannot be
/// resolved here: such a reference stays as it is, unless it begins like an absolute one that does not go by
/// `route` yet.
fn uri<'a, R: Route + ?Sized>(reference: &'a str, base: &Url, route: &R) -> Cow<'a, str> {
    let rewritten = match reference.split_once("{$") {
        None => through(reference, base, route),
        Some((known, _)) if is_absolute(reference) && !reference.starts_with(route.endpoint()) => {
            // The host is known when a path has begun.
            let url = known.splitn(4, '/').nth(3).and_then(|_| Url::parse(known).ok());
            route.prefix(url.as_ref()).map(|prefix| format!("{prefix}{reference}"))
        }
        Some(_) => None,
    };
    rewritten.map_or(Cow::Borrowed(reference), Cow::Owned)
}

fn is_absolute(reference: &str) -> bool {
    ["http://", "https://"].iter().any(|start| reference.starts_with(start))
}
