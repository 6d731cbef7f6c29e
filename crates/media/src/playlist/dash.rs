//! DASH, as a stream of XML events: what is not a reference is written as it was read.

use quick_xml::Writer;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::{BytesStart, BytesText, Event};
use quick_xml::reader::Reader;
use url::Url;

use super::route::{LARGEST_RESULT, LONGEST_REFERENCE, PlaylistError, Route, through};

/// Elements whose text is a reference.
const TEXT_REFERENCES: [&str; 3] = ["BaseURL", "Location", "PatchLocation"];
/// Attributes that are references.
const ATTRIBUTE_REFERENCES: [&str; 6] =
    ["media", "initialization", "index", "bitstreamSwitching", "sourceURL", "href"];
/// A description that is nested deeper is refused.
const DEEPEST: usize = 64;

/// What references count from, inside the element at `depth`.
struct Base {
    depth: usize,
    url: Url,
}

pub(super) fn rewrite<R: Route + ?Sized>(
    text: &str,
    base: &Url,
    route: &R,
) -> Result<Vec<u8>, PlaylistError> {
    let mut reader = Reader::from_str(text);
    let mut writer = Writer::new(Vec::with_capacity(text.len()));
    let mut bases = vec![Base { depth: 0, url: base.clone() }];
    let mut depth = 0;
    let mut is_description = false;
    loop {
        let event = reader.read_event()?;
        // The first base stays: it has depth zero, and only deeper ones are dropped.
        let current = bases.last().map_or(base, |base| &base.url);
        match event {
            Event::Eof => break,
            Event::Start(start) => {
                is_description |= depth == 0 && start.local_name().as_ref() == "MPD";
                let is_reference = TEXT_REFERENCES.contains(&start.local_name().as_ref());
                let is_base = start.local_name().as_ref() == "BaseURL";
                write(&mut writer, Event::Start(rewrite_attributes(&start, current, route)))?;
                if is_reference {
                    let raw = reader.read_text(start.name())?.into_inner();
                    let reference = (!raw.contains('<')).then(|| unescape(&raw).ok()).flatten();
                    let rewritten = reference.as_deref().and_then(|text| through(text, current, route));
                    let written = rewritten.as_deref().map_or(raw.as_ref().into(), escape);
                    let new_base = reference
                        .filter(|text| is_base && text.len() <= LONGEST_REFERENCE)
                        .and_then(|text| current.join(text.trim()).ok());
                    write(&mut writer, Event::Text(BytesText::from_escaped(written)))?;
                    write(&mut writer, Event::End(start.to_end()))?;
                    // Of several alternatives the first is what references count from.
                    if let Some(url) =
                        new_base.filter(|_| bases.last().is_some_and(|base| base.depth < depth))
                    {
                        bases.push(Base { depth, url });
                    }
                } else {
                    depth += 1;
                    if depth > DEEPEST {
                        return Err(PlaylistError::NotPlaylist("it is nested too deep"));
                    }
                }
            }
            Event::Empty(empty) => {
                write(&mut writer, Event::Empty(rewrite_attributes(&empty, current, route)))?;
            }
            Event::End(end) => {
                bases.retain(|base| base.depth < depth || base.depth == 0);
                depth = depth.saturating_sub(1);
                write(&mut writer, Event::End(end))?;
            }
            other => write(&mut writer, other)?,
        }
    }
    if !is_description {
        return Err(PlaylistError::NotPlaylist("its root is not MPD"));
    }
    Ok(writer.into_inner())
}

/// Writes an event to a result that may not grow without bound.
fn write(writer: &mut Writer<Vec<u8>>, event: Event<'_>) -> Result<(), PlaylistError> {
    writer.write_event(event).map_err(quick_xml::Error::from)?;
    match writer.get_mut().len() {
        length if length > LARGEST_RESULT => Err(PlaylistError::TooLong(length)),
        _ => Ok(()),
    }
}

/// The tag with its references led by `route`; the very same when there is nothing to change in it.
fn rewrite_attributes<'a, R: Route + ?Sized>(tag: &BytesStart<'a>, base: &Url, route: &R) -> BytesStart<'a> {
    let unchanged = tag.clone();
    let mut name_and_attributes = String::from(tag.name().as_ref());
    let name_length = name_and_attributes.len();
    let mut changed = false;
    for attribute in tag.attributes().with_checks(false) {
        // What cannot be read is no reference, and the player will say so.
        let Ok(attribute) = attribute else { return unchanged };
        let is_reference = ATTRIBUTE_REFERENCES.contains(&attribute.key.local_name().as_ref());
        let rewritten = is_reference
            .then(|| unescape(&attribute.value).ok())
            .flatten()
            .and_then(|reference| through(&reference, base, route));
        changed |= rewritten.is_some();
        let value =
            rewritten.map_or(attribute.value.clone(), |reference| escape(reference).into_owned().into());
        let quote = if value.contains('"') { '\'' } else { '"' };
        name_and_attributes.push_str(&format!(" {}={quote}{value}{quote}", attribute.key.as_ref()));
    }
    if changed { BytesStart::from_content(name_and_attributes, name_length) } else { unchanged }
}
