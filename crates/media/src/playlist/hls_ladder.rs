//! The rungs of a multivariant playlist of HLS, and that playlist with one of them alone.

use anabranch_units::Bytes;
use m3u8_rs::{MediaPlaylist, MediaSegment, Playlist, VariantStream};
use url::Url;

use super::hls_listing::mean_rate;
use super::ladder::{MOST_RUNGS, Variant};
use super::listed::join;
use super::route::{LARGEST_PLAYLIST, PlaylistError, push};

/// Play times of the same segment may differ by so many seconds: they are often rounded.
const SAME: f32 = 0.1;
/// Codecs of sound by what their names begin with (RFC 6381).
const SOUNDS: [&str; 6] = ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "fLaC"];

/// The variants among which a player could go to and fro, of rising rates: those with pictures, unless all are
/// without, that have the codecs and the renditions of the first one. Of those of one rate, which stand in for
/// each other, the first.
pub fn variants(body: &[u8], base: &Url) -> Vec<Variant> {
    let text = std::str::from_utf8(body).ok().filter(|text| text.len() <= LARGEST_PLAYLIST);
    let shown: Vec<_> = text.into_iter().flat_map(Part::all).filter_map(|part| part.stream()).collect();
    let has_pictures = shown.iter().any(|variant| !is_sound(variant));
    let mut candidates = shown.iter().filter(|variant| !(has_pictures && is_sound(variant))).peekable();
    let Some(first) = candidates.peek().copied() else { return Vec::new() };
    let alike = candidates.filter(|variant| is_like(variant, first));
    let mut found: Vec<Variant> = alike
        .filter_map(|variant| {
            let url = join(base, &variant.uri)?;
            Some(Variant {
                url,
                rate: mean_rate(variant),
                height: variant.resolution.map(|picture| picture.height),
            })
        })
        .take(MOST_RUNGS)
        .collect();
    found.sort_by_key(|variant| variant.rate);
    found.dedup_by_key(|variant| variant.rate);
    found
}

/// A part of a multivariant playlist, by its lines: what the variants are and what is left without them has to
/// be read alike.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// A variant: its lines, of these its tag and its URL; without one it is nobody's.
    Variant { lines: &'a str, tag: &'a str, uri: Option<&'a str> },
    /// A playlist of key frames alone.
    KeyFrames,
    /// Any other line.
    Line(&'a str),
}

impl<'a> Part<'a> {
    fn all(text: &'a str) -> impl Iterator<Item = Self> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let part = Self::first(rest)?;
            rest = &rest[part.0..];
            Some(part.1)
        })
    }

    /// The first part of `text`, and its bytes.
    fn first(text: &'a str) -> Option<(usize, Self)> {
        let line = text.split_inclusive('\n').next()?;
        let tag = line.trim();
        if tag.starts_with("#EXT-X-I-FRAME-STREAM-INF") {
            return Some((line.len(), Self::KeyFrames));
        }
        if !tag.starts_with("#EXT-X-STREAM-INF") {
            return Some((line.len(), Self::Line(line)));
        }
        let mut end = line.len();
        let mut found = None;
        for line in text[end..].split_inclusive('\n') {
            let content = line.trim();
            if content.starts_with("#EXT-X-STREAM-INF") {
                break;
            }
            end += line.len();
            if !content.is_empty() && !content.starts_with('#') {
                found = Some(content);
                break;
            }
        }
        Some((end, Self::Variant { lines: &text[..end], tag, uri: found }))
    }

    /// What the tag of a variant says.
    fn stream(self) -> Option<VariantStream> {
        let Self::Variant { tag, uri: Some(uri), .. } = self else { return None };
        let alone = format!("#EXTM3U\n{tag}\n{uri}\n");
        let Ok(Playlist::MasterPlaylist(master)) = m3u8_rs::parse_playlist_res(alone.as_bytes()) else {
            return None;
        };
        let stream = master.variants.into_iter().next().filter(|stream| !stream.is_i_frame)?;
        Some(VariantStream { uri: uri.to_owned(), ..stream })
    }
}

fn codecs(variant: &VariantStream) -> impl Iterator<Item = &str> {
    variant.codecs.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|codec| !codec.is_empty())
}

fn is_sound(variant: &VariantStream) -> bool {
    let is_sound = |codec: &str| SOUNDS.iter().any(|sound| codec.starts_with(sound));
    variant.resolution.is_none() && variant.codecs.is_some() && codecs(variant).all(is_sound)
}

/// Whether a player could go from one to the other.
fn is_like(one: &VariantStream, other: &VariantStream) -> bool {
    let kinds = |variant| {
        let mut kinds: Vec<_> =
            codecs(variant).filter_map(|codec| codec.split('.').next()).map(str::to_owned).collect();
        kinds.sort_unstable();
        kinds
    };
    (&one.audio, &one.video, &one.subtitles) == (&other.audio, &other.video, &other.subtitles)
        && kinds(one) == kinds(other)
}

/// The multivariant playlist with the variant at `keep` alone. Its renditions stay.
///
/// # Errors
/// It is no text, or too long.
pub fn with_variant(body: &[u8], base: &Url, keep: &Url) -> Result<Vec<u8>, PlaylistError> {
    if body.len() > LARGEST_PLAYLIST {
        return Err(PlaylistError::TooLong(body.len()));
    }
    let mut result = String::new();
    let mut is_kept = false;
    for part in Part::all(std::str::from_utf8(body)?) {
        match part {
            Part::Line(line) => push(&mut result, line)?,
            Part::Variant { lines, uri: Some(uri), .. }
                if !is_kept && join(base, uri).as_ref() == Some(keep) =>
            {
                push(&mut result, lines)?;
                is_kept = true;
            }
            Part::Variant { .. } | Part::KeyFrames => {}
        }
    }
    Ok(result.into_bytes())
}

/// Whether a player of one of these media playlists can be given the segments of the other by the same numbers,
/// and plays them: they are whole files of the same play times, without anything that goes before them, and under
/// the same keys. Each comes with its URL. Of live ones those count that both have.
pub fn are_interchangeable((one, one_url): (&[u8], &Url), (other, other_url): (&[u8], &Url)) -> bool {
    let (Some(one), Some(other)) = (media(one), media(other)) else { return false };
    let first = one.media_sequence.max(other.media_sequence);
    let from = |list: &MediaPlaylist| Bytes::new(first - list.media_sequence).as_usize();
    let pair = one.segments.iter().skip(from(&one)).zip(other.segments.iter().skip(from(&other)));
    let is_all = !one.end_list
        || one.media_sequence == other.media_sequence && one.segments.len() == other.segments.len();
    one.end_list == other.end_list
        && is_all
        && pair.clone().count() > 0
        && !one.i_frames_only
        && pair.into_iter().all(|(one, other)| is_same_segment((one, one_url), (other, other_url)))
}

fn media(body: &[u8]) -> Option<MediaPlaylist> {
    match m3u8_rs::parse_playlist_res(body).ok().filter(|_| body.len() <= LARGEST_PLAYLIST)? {
        Playlist::MasterPlaylist(_) => None,
        Playlist::MediaPlaylist(media) => Some(media),
    }
}

fn is_same_segment((one, one_url): (&MediaSegment, &Url), (other, other_url): (&MediaSegment, &Url)) -> bool {
    let key = |segment: &MediaSegment, base: &Url| {
        segment.key.as_ref().map(|key| {
            let url = key.uri.as_ref().map(|uri| join(base, uri));
            (key.method.to_string(), url, key.iv.clone(), key.keyformat.clone())
        })
    };
    [one, other].iter().all(|segment| segment.map.is_none() && segment.byte_range.is_none())
        && (one.duration - other.duration).abs() <= SAME
        && one.discontinuity == other.discontinuity
        && key(one, one_url) == key(other, other_url)
}
