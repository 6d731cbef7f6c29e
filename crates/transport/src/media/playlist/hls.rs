//! HLS, line by line: RFC 8216 defines a playlist by its lines (section 4.1), so that tags that are not known here,
//! comments, and the order and ends of lines all stay as they are.

use url::Url;

use super::{PlaylistError, push, through_or_same};

pub(super) fn rewrite(text: &str, base: &Url, prefix: &str) -> Result<String, PlaylistError> {
    if !text.trim_start_matches('\u{feff}').starts_with("#EXTM3U") {
        return Err(PlaylistError::NotPlaylist("it does not begin with #EXTM3U"));
    }
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        if content.trim_start_matches('\u{feff}').starts_with('#') {
            rewrite_tag(&mut result, content, base, prefix)?;
        } else {
            push(&mut result, &uri(content, base, prefix))?;
        }
        push(&mut result, &line[content.len()..])?;
    }
    Ok(result)
}

/// Rewrites the quoted values of attributes whose name ends in `URI` (`URI` of keys, maps and renditions, `SERVER-URI`
/// of content steering, `X-ASSET-URI` of interstitials) in a tag with an attribute list (section 4.2).
fn rewrite_tag(result: &mut String, line: &str, base: &Url, prefix: &str) -> Result<(), PlaylistError> {
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
                    push(result, &uri(quoted, base, prefix))?;
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

/// One reference. A variable in it (`{$name}`, RFC 8216bis) is put in by the player, so that it cannot be resolved
/// here: such a reference stays as it is, unless it begins like an absolute one that does not lead through `prefix` yet.
fn uri<'a>(reference: &'a str, base: &Url, prefix: &str) -> std::borrow::Cow<'a, str> {
    if !reference.contains("{$") {
        through_or_same(reference, base, prefix)
    } else if !reference.starts_with(prefix)
        && ["http://", "https://"].iter().any(|start| reference.starts_with(start))
    {
        format!("{prefix}{reference}").into()
    } else {
        reference.into()
    }
}
