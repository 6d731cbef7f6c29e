//! Opening a stream: what the URLs lead to, whether the replicas agree, and which rate the media needs.

use std::ops::Range;

use ::http::HeaderValue;
use bytes::BytesMut;
use units::{Bytes, Duration};

use super::settings::Settings;
use crate::http::{
    ConnectOptions, Connection, ExtraHeaders, Method, Probe, ProbeError, Received, RequestHead, Target, probe,
};
use crate::media::{MediaFacts, MediaProbe, Step};
use crate::server::TOKEN_HEADER;

/// What is known of a film when it is opened.
#[derive(Clone, Debug)]
pub struct FilmInfo {
    /// Its size, if the server tells.
    pub size: Option<u64>,
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
    /// Where the replicas are, without credentials.
    pub replicas: Vec<String>,
    /// Replicas that cannot be used, and why.
    pub lost: Vec<(String, String)>,
    /// Replicas whose validator is another one than the first's, but samples of whose content agree.
    pub differing: Vec<String>,
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
    /// The place where the film is to go cannot be used.
    #[error("{0}")]
    Storage(String),
}

/// A replica that was found.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) url: String,
    pub(super) target: Target,
    pub(super) headers: ExtraHeaders,
    pub(super) validator: Option<HeaderValue>,
    /// Its server is one of ours and says that it stripes.
    pub(super) stripes: bool,
    /// Its first connection, not given out yet.
    pub(super) connection: Option<Connection>,
}

/// What probing found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) info: FilmInfo,
    pub(super) replicas: Vec<Replica>,
    /// Bytes that came with the probing, by position.
    pub(super) first: Vec<(u64, BytesMut)>,
}

/// How much of two replicas is compared at each place when their validators differ.
const SAMPLE: u64 = 16 * 1024;
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
            Some(Ok(probe)) => usable.push(probe),
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
    if usable.len() > 1 && usable.iter().any(|probe| probe.accepts_ranges) {
        usable.retain(|probe| {
            if !probe.accepts_ranges {
                lost.push((probe.url.to_string(), "the server knows no ranges".into()));
            }
            probe.accepts_ranges
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
    let options = settings.connect_options(settings.interfaces.first());
    let mut differing = Vec::new();
    let mut replicas = Vec::new();
    if reference.accepts_ranges {
        for mut other in usable {
            match agree(&mut reference, &mut other, &options).await {
                Ok(Agreement::Same) => {}
                Ok(Agreement::SamplesOnly) => differing.push(other.url.to_string()),
                Err(error) => {
                    lost.push((other.url.to_string(), error));
                    continue;
                }
            }
            replicas.push(other);
        }
    } else {
        // Their order decides; the connection of each but the first is dropped.
        lost.extend(usable.map(|other| (other.url.to_string(), "the server knows no ranges".to_owned())));
    }
    let media = if settings.probe_media && reference.accepts_ranges {
        media(&mut reference, &options).await
    } else {
        None
    };
    let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let info = FilmInfo {
        size: reference.size,
        etag: reference.head.etag.as_ref().map(ToString::to_string),
        last_modified: text(reference.head.last_modified.as_ref()),
        content_type: reference.head.content_type.clone(),
        accepts_ranges: reference.accepts_ranges,
        media,
        replicas: std::iter::once(&reference).chain(&replicas).map(|probe| probe.url.to_string()).collect(),
        lost,
        differing,
    };
    let first = vec![(0, std::mem::take(&mut reference.first))];
    let replicas = std::iter::once(reference).chain(replicas).map(Replica::from).collect();
    Ok(Opened { info, replicas, first })
}

impl From<Probe> for Replica {
    fn from(probe: Probe) -> Self {
        let usable = probe.connection.is_open() || !probe.accepts_ranges;
        let stripes = probe.head.headers.get(TOKEN_HEADER).is_some_and(|value| value == "1");
        Self {
            url: probe.url.to_string(),
            stripes,
            target: probe.target,
            headers: probe.headers,
            validator: probe.validator,
            connection: usable.then_some(probe.connection),
        }
    }
}

/// A URL for messages: without its credentials.
fn shown(url: &url::Url) -> String {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.to_string()
}

/// A replica's place among the URLs, its URL, and what probing it gave; `None`: nothing in time.
type Found = (usize, url::Url, Option<Result<Probe, ProbeError>>);

/// Collects answers. Once one replica can be used, the others have a little more time: a replica that hangs must not
/// hold up the start.
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
    url: &url::Url,
    headers: &ExtraHeaders,
    settings: &Settings,
) -> Result<Probe, ProbeError> {
    let (last, others) = match settings.interfaces.split_last() {
        Some((last, others)) => (Some(last), others),
        None => (None, &[][..]),
    };
    let options = |interface| {
        let usual = settings.connect_options(interface);
        let first_bytes = if index == 0 { usual.first_bytes } else { GLANCE };
        ConnectOptions { first_bytes, ..usual }
    };
    for interface in others {
        let result = probe(url, headers, &options(Some(interface))).await;
        if !matches!(result, Err(ProbeError::Connect(_))) {
            return result;
        }
    }
    probe(url, headers, &options(last)).await
}

enum Agreement {
    Same,
    SamplesOnly,
}

/// Replicas must be the same film: of one size, beginning alike, and with the same strong validator. Mirrors are often
/// copied without their dates, so that entity tags made from dates differ: then samples of the content decide.
async fn agree(one: &mut Probe, other: &mut Probe, options: &ConnectOptions) -> Result<Agreement, String> {
    if one.size != other.size {
        let size = |size: Option<u64>| size.map_or("an unknown number of".into(), |size| size.to_string());
        return Err(format!("it is another film: {} bytes instead of {}", size(other.size), size(one.size)));
    }
    let alike = one.first.len().min(other.first.len());
    if one.first[..alike] != other.first[..alike] {
        return Err("it is another film: its first bytes differ".into());
    }
    if let (Some(validator), Some(others)) = (&one.validator, &other.validator)
        && validator == others
    {
        return Ok(Agreement::Same);
    }
    let size = one.size.unwrap_or(0);
    for place in [1, 2, 3, 4u64] {
        let start = (size / 4 * place).saturating_sub(SAMPLE).max(Bytes::of(one.first.len()).get());
        let range = start..(start + SAMPLE).min(size);
        if range.is_empty() {
            continue;
        }
        let (ours, theirs) = tokio::join!(fetch(one, range.clone(), options), fetch(other, range, options));
        if ours? != theirs? {
            return Err("it is another film: samples of its content differ".into());
        }
    }
    Ok(Agreement::SamplesOnly)
}

/// Asks a probed replica for a range, on the connection that it has or, where the server closed it, on a new one.
async fn fetch(probe: &mut Probe, range: Range<u64>, options: &ConnectOptions) -> Result<BytesMut, String> {
    let Some(last) = range.end.checked_sub(1) else { return Ok(BytesMut::new()) };
    let mut request =
        RequestHead::new(Method::Get, &probe.target, &probe.headers).range(range.start, Some(last));
    if let Some(validator) = &probe.validator {
        request = request.if_range(validator);
    }
    let answer = async {
        if !probe.connection.is_open() {
            let connecting = Connection::connect(probe.target.origin(), options);
            probe.connection = connecting.await.map_err(|error| error.to_string())?;
        }
        probe.connection.send(&request).map_err(|error| error.to_string())?;
        let mut body = BytesMut::new();
        loop {
            match probe.connection.receive(&mut body).await.map_err(|error| error.to_string())? {
                Received::Head(head) => {
                    head.check_range(range.start, Some(last)).map_err(|error| error.to_string())?;
                }
                Received::Data(_) if Bytes::of(body.len()).get() <= range.end - range.start => {}
                Received::End { .. } => return Ok(body),
                _ => return Err("the connection broke".to_owned()),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), answer)
        .await
        .unwrap_or_else(|_| Err("no answer within 20 s".into()))
}

/// The rate that the media needs, as its container tells.
async fn media(probe: &mut Probe, options: &ConnectOptions) -> Option<MediaFacts> {
    let mut media = MediaProbe::new(probe.size, probe.head.content_type.as_deref());
    let mut budget = MOST_FOR_MEDIA;
    loop {
        let (offset, length) = match media.next() {
            Step::Done(facts) => return facts,
            Step::Need { offset, length } => (offset, length),
        };
        let end = offset.saturating_add(length);
        let end = probe.size.map_or(end, |size| end.min(size));
        if end <= Bytes::of(probe.first.len()).get() {
            let range = Bytes::new(offset).as_usize()..Bytes::new(end).as_usize();
            media.provide(offset, probe.first.get(range)?);
            continue;
        }
        if offset >= end {
            return None;
        }
        let bytes = fetch(probe, offset..end, options).await.ok()?;
        budget = budget.checked_sub(bytes.len())?;
        if bytes.is_empty() {
            return None;
        }
        media.provide(offset, &bytes);
    }
}
