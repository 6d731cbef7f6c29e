//! Opening a stream: what the URLs lead to, whether the replicas agree, and which rate the media needs.

use std::fmt;
use std::ops::Range;

use ::http::HeaderValue;
use anabranch_http::{
    ConnectOptions, Connection, ExtraHeaders, Probe, ProbeError, ResponseHead, probe, probe_head, shown,
};
use anabranch_media::{MediaFacts, MediaProbe, Step};
use anabranch_protocol::ranges::RangeSet;
use anabranch_protocol::stripe::TOKEN_HEADER;
use anabranch_units::{Bytes, Duration};
use bytes::BytesMut;
use url::Url;

use super::disk::Medium;
use super::replica::{Growth, Replica, Strictness};
use super::settings::Settings;

/// What is known of a film when it is opened.
#[derive(Clone)]
pub struct FilmInfo {
    /// Where the first replica was found, behind all redirects. Its query can be a secret: it is for asking,
    /// not for showing.
    pub location: Url,
    /// Its size, if the server tells.
    pub size: Option<u64>,
    /// Where it is in what is there, when it is a part of that.
    pub within: Option<Within>,
    /// Its entity tag, as the first replica gives it.
    pub etag: Option<String>,
    /// When it was changed last, as the first replica says.
    pub last_modified: Option<String>,
    /// Its media type.
    pub content_type: Option<String>,
    /// Whether ranges can be had.
    pub accepts_ranges: bool,
    /// What the container tells, if it was asked.
    pub media: Option<MediaFacts>,
    /// Where the replicas are, as they are [shown].
    pub replicas: Vec<String>,
    /// Replicas that cannot be used, and why.
    pub lost: Vec<(String, String)>,
    /// Replicas whose validator is another one than the first's, but samples of whose content agree.
    pub differing: Vec<String>,
}

/// What a film is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The position of the film's first byte there.
    pub start: u64,
    /// The size of all that is there.
    pub size: u64,
}

impl fmt::Debug for FilmInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilmInfo").field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

/// A stream cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no URL.
    #[error("no URL was given")]
    NoUrl,
    /// No URL leads to something that can be streamed.
    #[error("{0}")]
    Unusable(String),
    /// No URL does, and the first one's server says so by a status.
    #[error("{message}")]
    Refused {
        /// For the user.
        message: String,
        /// The server's status.
        status: u16,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// A part is wanted, and the server gives no parts.
    #[error("{0}: the server knows no ranges")]
    NoParts(String),
    /// The place where the film is to go cannot be used.
    #[error("{0}")]
    Storage(String),
    /// What is there already is of another film.
    #[error("{0}")]
    AnotherFilm(String),
}

/// A replica, and what its first answer told.
struct Candidate {
    replica: Replica,
    url: Url,
    head: ResponseHead,
    first: BytesMut,
    coming: u64,
    /// Of all that is there, also where the film is a part of it.
    size: Option<u64>,
    accepts_ranges: bool,
}

/// What probing found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) info: FilmInfo,
    pub(super) replicas: Vec<Replica>,
    /// Bytes that came with the probing, by position.
    pub(super) first: Vec<(u64, BytesMut)>,
    /// How many from the start on are under way on the first replica's connection.
    pub(super) coming: u64,
}

/// How much of two replicas is compared at each place when their validators differ.
pub(super) const SAMPLE: u64 = 16 * 1024;
/// How many places are looked at, and how much at each, where it is in doubt that what is in a file is of the
/// same film: there is no second copy to go on with, and nothing else would show it.
const SAMPLES: u64 = 16;
pub(super) const LARGE_SAMPLE: u64 = 64 * 1024;
/// Most bytes that are read to find the media's rate.
const MOST_FOR_MEDIA: usize = 24 << 20;

pub(super) async fn open(settings: &Settings) -> Result<Opened, OpenError> {
    if settings.urls.is_empty() {
        return Err(OpenError::NoUrl);
    }
    let mut probes = tokio::task::JoinSet::new();
    for (index, url) in settings.urls.iter().cloned().enumerate() {
        let (headers, settings) = (settings.headers.clone(), settings.clone());
        probes.spawn(async move {
            let result = probe_over_any(index, &url, &headers, &settings).await;
            (index, url, Some(result))
        });
    }
    let mut found = answers(probes).await;
    found.extend(
        (0..settings.urls.len())
            .filter(|index| found.iter().all(|(found, ..)| found != index))
            .map(|index| (index, settings.urls[index].clone(), None))
            .collect::<Vec<_>>(),
    );
    found.sort_by_key(|(index, ..)| *index);
    let mut lost = Vec::new();
    let mut usable = Vec::new();
    let mut refused = None;
    for (index, url, result) in found {
        match result {
            Some(Ok(probe)) => usable.push(Candidate::from(probe)),
            None => lost.push((shown(&url), "no answer while others had long answered".into())),
            Some(Err(error)) => {
                if let (0, ProbeError::Status { status, retry_after, .. }) = (index, &error) {
                    refused = Some((*status, *retry_after));
                }
                lost.push((shown(&url), error.to_string()));
            }
        }
    }
    // With several replicas, those with ranges count: a server without them cannot share the work.
    if usable.len() > 1 && usable.iter().any(|candidate| candidate.accepts_ranges) {
        usable.retain(|candidate| {
            if !candidate.accepts_ranges {
                lost.push((candidate.replica.url.clone(), "the server knows no ranges".into()));
            }
            candidate.accepts_ranges
        });
    }
    let mut usable = usable.into_iter();
    let Some(mut reference) = usable.next() else {
        let errors: Vec<_> = lost.into_iter().map(|(_, error)| error).collect();
        let message = errors.join("; ");
        return Err(match refused {
            Some((status, retry_after)) => OpenError::Refused { message, status, retry_after },
            None => OpenError::Unusable(message),
        });
    };
    // Positions need an end: of a film whose size nobody tells, all is asked for at once.
    reference.accepts_ranges &= reference.size.is_some();
    if reference.coming > 0 && !reference.accepts_ranges {
        // What comes is a part of it, and the whole is wanted in one answer.
        reference.coming = 0;
        reference.replica.connection = None;
    }
    if settings.part.is_some() && !reference.accepts_ranges {
        return Err(OpenError::NoParts(reference.replica.url));
    }
    let options = settings.connect_options(settings.interfaces.first());
    let mut differing = Vec::new();
    let mut replicas = Vec::new();
    if reference.accepts_ranges {
        for mut other in usable {
            match agree(&mut reference, &mut other, &options).await {
                Ok(Agreement::Same) => {}
                Ok(Agreement::SamplesOnly) => differing.push(other.replica.url.clone()),
                Err(error) => {
                    lost.push((other.replica.url, error));
                    continue;
                }
            }
            replicas.push(other.replica);
        }
    } else {
        // Their order decides; the connection of each but the first is dropped.
        lost.extend(usable.map(|other| (other.replica.url, "the server knows no ranges".to_owned())));
    }
    let media = if settings.probe_media && settings.part.is_none() && reference.accepts_ranges {
        media(&mut reference, &options).await
    } else {
        None
    };
    let Candidate { replica, url, head, first, coming, size, accepts_ranges } = reference;
    replicas.insert(0, replica);
    let within = settings.part.as_ref().zip(size).map(|(part, size)| Within { start: part.start, size });
    let size = match (&settings.part, size) {
        (Some(part), Some(size)) => Some(size.min(part.end).saturating_sub(part.start)),
        (_, size) => size,
    };
    let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let info = FilmInfo {
        location: url,
        size,
        within,
        etag: head.etag.as_ref().map(ToString::to_string),
        last_modified: text(head.last_modified.as_ref()),
        content_type: head.content_type,
        accepts_ranges,
        media,
        replicas: replicas.iter().map(|replica| replica.url.clone()).collect(),
        lost,
        differing,
    };
    Ok(Opened { info, replicas, first: vec![(0, first)], coming })
}

impl From<Probe> for Candidate {
    fn from(probe: Probe) -> Self {
        let usable = probe.connection.is_open() || !probe.accepts_ranges || probe.coming > 0;
        let replica = Replica {
            url: shown(&probe.url),
            stripes: probe.head.headers.get(TOKEN_HEADER).is_some_and(|value| value == "1"),
            target: probe.target,
            jar: probe.jar,
            validator: probe.validator,
            version: probe.version,
            growth: Growth::default(),
            connection: usable.then_some(probe.connection),
        };
        Self {
            replica,
            url: probe.url,
            head: probe.head,
            first: probe.first,
            coming: probe.coming,
            size: probe.size,
            accepts_ranges: probe.accepts_ranges,
        }
    }
}

/// A replica's place among the URLs, its URL, and what probing it gave; `None`: nothing in time.
type Found = (usize, Url, Option<Result<Probe, ProbeError>>);

/// Collects answers. Once one replica can be used, the others have a little more time: a replica that hangs
/// must not hold up the start.
async fn answers(mut probes: tokio::task::JoinSet<Found>) -> Vec<Found> {
    let begin = tokio::time::Instant::now();
    let mut found = Vec::new();
    let mut deadline = None;
    loop {
        let next = async {
            match deadline {
                None => probes.join_next().await,
                Some(deadline) => tokio::time::timeout_at(deadline, probes.join_next()).await.ok().flatten(),
            }
        };
        let Some(Ok(answer)) = next.await else { return found };
        if matches!(answer.2, Some(Ok(_))) && deadline.is_none() {
            deadline = Some(tokio::time::Instant::now() + (begin.elapsed() * 3).max(PATIENCE));
        }
        found.push(answer);
    }
}

/// How long the other replicas have at least, once one can be used.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// What the replicas behind the first are asked for: enough to see whether they begin alike.
const GLANCE: Bytes = Bytes::kib(4);

/// Probes over the first interface that leads there.
async fn probe_over_any(
    index: usize,
    url: &Url,
    headers: &ExtraHeaders,
    settings: &Settings,
) -> Result<Probe, ProbeError> {
    let (last, others) = match settings.interfaces.split_last() {
        Some((last, others)) => (Some(last), others),
        None => (None, &[][..]),
    };
    let options = |interface| {
        let usual = settings.connect_options(interface);
        let first_bytes = if index == 0 { usual.first_bytes } else { GLANCE.min(usual.first_bytes) };
        ConnectOptions { first_bytes, ..usual }
    };
    for interface in others {
        let result = probe(url, headers, &options(Some(interface))).await;
        if !matches!(result, Err(ProbeError::Connect(_))) {
            return result;
        }
    }
    if settings.streams_at_once() {
        return probe_head(url, headers, &options(last)).await;
    }
    probe(url, headers, &options(last)).await
}

enum Agreement {
    Same,
    SamplesOnly,
}

/// Replicas must be the same film: of one size, beginning alike, and with the same strong validator. Mirrors
/// are often copied without their dates, so that entity tags made from dates differ: then samples of the
/// content decide.
async fn agree(
    one: &mut Candidate,
    other: &mut Candidate,
    options: &ConnectOptions,
) -> Result<Agreement, String> {
    if one.size != other.size {
        let size = |size: Option<u64>| size.map_or("an unknown number of".into(), |size| size.to_string());
        return Err(format!("it is another film: {} bytes instead of {}", size(other.size), size(one.size)));
    }
    let alike = one.first.len().min(other.first.len());
    if one.first[..alike] != other.first[..alike] {
        return Err("it is another film: its first bytes differ".into());
    }
    let (one, seen, size) = (&mut one.replica, one.first.len(), one.size.unwrap_or(0));
    let other = &mut other.replica;
    if let (Some(validator), Some(others)) = (&one.validator, &other.validator)
        && validator == others
    {
        return Ok(Agreement::Same);
    }
    for place in [1, 2, 3, 4u64] {
        let start = (size / 4 * place).saturating_sub(SAMPLE).max(Bytes::of(seen).get());
        let range = start..(start + SAMPLE).min(size);
        if range.is_empty() {
            continue;
        }
        let (ours, theirs) = tokio::join!(one.fetch(range.clone(), options), other.fetch(range, options));
        if ours? != theirs? {
            return Err("it is another film: samples of its content differ".into());
        }
    }
    Ok(Agreement::SamplesOnly)
}

/// Samples of what is in a file, by their positions.
pub(super) fn samples_of(file: &dyn Medium, have: &RangeSet) -> Result<Vec<(u64, Vec<u8>)>, OpenError> {
    let read = |range: Range<u64>| {
        let mut bytes = vec![0; Bytes::new(range.end - range.start).as_usize()];
        file.read(&mut bytes, range.start)
            .map_err(|error| OpenError::Storage(format!("cannot read what is there: {error}")))?;
        Ok((range.start, bytes))
    };
    samples(have, LARGE_SAMPLE).into_iter().map(read).collect()
}

/// Compares samples of what has come with what the replica has at the same places now. Its version does not
/// matter.
pub(super) async fn compare(
    replica: &Replica,
    connection: &mut Option<Connection>,
    samples: &[(u64, Vec<u8>)],
    options: &ConnectOptions,
) -> Result<(), OpenError> {
    for (start, ours) in samples {
        let range = *start..*start + Bytes::of(ours.len()).get();
        let theirs = replica.fetch_over(connection, range, Strictness::AnyVersion, options).await;
        let theirs = theirs.map_err(|error| OpenError::Unusable(format!("{}: {error}", replica.url)))?;
        if theirs != *ours {
            return Err(OpenError::AnotherFilm(format!("the bytes from {start} on are other ones")));
        }
    }
    Ok(())
}

/// What to look at in what is there: all of it where it is little, else parts that are spread over it.
pub(super) fn samples(have: &RangeSet, length: u64) -> Vec<Range<u64>> {
    let total = have.total();
    let mut samples = Vec::new();
    let mut seen = 0;
    for part in 1..=SAMPLES {
        // Counted over what is there, without the gaps.
        let end = total / SAMPLES * part + total % SAMPLES * part / SAMPLES;
        let start = end.saturating_sub(length).max(seen);
        seen = end;
        let mut before = 0;
        for range in have.iter() {
            let after = before + (range.end - range.start);
            let (first, last) = (start.max(before), end.min(after));
            if first < last {
                samples.push(range.start + (first - before)..range.start + (last - before));
            }
            before = after;
        }
    }
    samples
}

/// The rate that the media needs, as its container tells.
async fn media(reference: &mut Candidate, options: &ConnectOptions) -> Option<MediaFacts> {
    let mut media = MediaProbe::new(reference.size, reference.head.content_type.as_deref());
    let mut budget = MOST_FOR_MEDIA;
    loop {
        let (offset, length) = match media.next() {
            Step::Done(facts) => return facts,
            Step::Need { offset, length } => (offset, length),
        };
        let end = offset.saturating_add(length);
        let end = reference.size.map_or(end, |size| end.min(size));
        if end <= Bytes::of(reference.first.len()).get() {
            let range = Bytes::new(offset).as_usize()..Bytes::new(end).as_usize();
            media.provide(offset, reference.first.get(range)?);
            continue;
        }
        if offset >= end {
            return None;
        }
        let bytes = reference.replica.fetch(offset..end, options).await.ok()?;
        budget = budget.checked_sub(bytes.len())?;
        if bytes.is_empty() {
            return None;
        }
        media.provide(offset, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_over_what_is_there() {
        let of = |ranges: &[Range<u64>]| {
            let mut have = RangeSet::new();
            ranges.iter().for_each(|range| {
                have.insert(range.clone());
            });
            samples(&have, LARGE_SAMPLE)
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[7..8, 9..10]), [7..8, 9..10]);
        let spread = of(&[0..4_000_000, 9_000_000..13_000_000]);
        assert_eq!(spread.len(), 16);
        assert_eq!((spread[0].clone(), spread[15].clone()), (434_464..500_000, 12_934_464..13_000_000));
        assert!(spread.iter().all(|sample| sample.end <= 4_000_000 || sample.start >= 9_000_000));
        // Of a little nothing is left out.
        let total =
            |samples: &[Range<u64>]| samples.iter().map(|sample| sample.end - sample.start).sum::<u64>();
        assert_eq!(total(&of(&[10..900_000, 950_000..950_010])), 900_000);
    }
}
