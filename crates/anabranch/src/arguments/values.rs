//! Values that can be typed, each with an error that says what would be right.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anabranch_film::interval::Interval;
use anabranch_film::playback::StallRule;
use anabranch_http::{ExtraHeaders, Target, shown};
use anabranch_units::{Bytes, Duration, Rate, Ratio};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use url::Url;

/// The URL of a film. It is shown without user, password and query.
#[derive(Clone, PartialEq, Eq)]
pub struct FilmUrl(pub Url);

impl FromStr for FilmUrl {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        let url = Url::parse(input).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => "a URL begins with http:// or https://".into(),
            error => format!("not a URL: {error}"),
        })?;
        Target::new(&url).map_err(|error| error.to_string())?;
        Ok(Self(url))
    }
}

impl fmt::Debug for FilmUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

/// `--rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateArgument {
    /// The media's own.
    Auto,
    /// As fast as it goes.
    Max,
    /// This one.
    Fixed(Rate),
}

impl FromStr for RateArgument {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        match input {
            "auto" => Ok(Self::Auto),
            "max" => Ok(Self::Max),
            rate => match rate.parse() {
                Ok(rate) => Ok(Self::Fixed(rate)),
                Err(error) => Err(format!("{error}, or 'auto' or 'max'")),
            },
        }
    }
}

/// A file, or a standard stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard output.
    Standard,
    /// This file.
    File(PathBuf),
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(input: &str) -> Result<Self, Infallible> {
        Ok(if input == "-" { Self::Standard } else { Self::File(input.into()) })
    }
}

/// A header `Name: value`, which is never shown: it can be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Header(pub String);

impl FromStr for Header {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        ExtraHeaders::default().add(input).map_err(|error| error.to_string())?;
        Ok(Self(input.into()))
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.split(':').next().unwrap_or_default())
    }
}

/// Text that is never shown: it can be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Untold(pub String);

impl From<&str> for Untold {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl FromStr for Digest {
    type Err = String;

    /// Takes `sha-256=` and then hex, base64, or base64 between colons (a byte sequence of RFC 9530).
    fn from_str(input: &str) -> Result<Self, String> {
        const FORMS: &str = "a digest is written sha-256=HEX, sha-256=BASE64 or sha-256=:BASE64:";
        let (name, value) = input.split_once('=').ok_or(FORMS)?;
        if !name.eq_ignore_ascii_case("sha-256") && !name.eq_ignore_ascii_case("sha256") {
            return Err(format!("the digest {name} is not known: only sha-256 is"));
        }
        let bytes = if value.len() == 64 { from_hex(value) } else { None };
        let encoded = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).unwrap_or(value);
        bytes
            .or_else(|| BASE64_STANDARD.decode(encoded).ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| FORMS.into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha-256=")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    Some(digits?.chunks_exact(2).map(|pair| (pair[0] << 4) | pair[1]).collect())
}

/// A player's command line.
pub(super) fn player(input: &str) -> Result<String, String> {
    match shell_words::split(input) {
        Ok(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(input.into()),
        Ok(_) => Err("it names no program; write it like mpv or 'mpv --fs {}'".into()),
        Err(_) => Err("a quote is not closed".into()),
    }
}

/// A seed of random numbers.
#[cfg(feature = "sim")]
pub(super) fn seed(input: &str) -> Result<u64, String> {
    input.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// A rate at which something arrives some day.
pub(super) fn positive_rate(input: &str) -> Result<Rate, String> {
    let rate: Rate = input.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
    if rate == Rate::ZERO { Err("nothing would be sent: give a rate above 0".into()) } else { Ok(rate) }
}

/// A time above zero.
pub(super) fn positive_time(input: &str) -> Result<Duration, String> {
    let time: Duration = input.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
    if time.is_zero() { Err("a time above zero is needed".into()) } else { Ok(time) }
}

/// A measuring interval: `300ms` or `8rtt`.
pub(super) fn interval(input: &str) -> Result<Interval, String> {
    const FORMS: &str = "an interval is written 300ms, or 8rtt for so many round-trip times";
    if let Some(count) = input.strip_suffix("rtt") {
        let count = count.trim().parse().ok().filter(|count| (1..=1000).contains(count));
        return count.map(Interval::RoundTrips).ok_or_else(|| FORMS.into());
    }
    let time: Duration = input.parse().map_err(|_| FORMS)?;
    if (Interval::LEAST..=Interval::MOST).contains(&time) {
        Ok(Interval::Fixed(time))
    } else {
        Err(format!("an interval is {} at the least and {} at the most", Interval::LEAST, Interval::MOST))
    }
}

/// What the player does when it runs out of media: `rebuffer:2s`, `pause:5s`.
pub(super) fn stall_rule(input: &str) -> Result<StallRule, String> {
    const FORMS: &str = "a stall rule is written rebuffer:2s or pause:5s";
    let (name, time) = input.split_once(':').ok_or(FORMS)?;
    match name {
        "rebuffer" => {
            let resume_at = time.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
            Ok(StallRule::Rebuffer { resume_at })
        }
        "pause" => Ok(StallRule::FixedPause(positive_time(time)?.max(Duration::from_millis(1)))),
        _ => Err(FORMS.into()),
    }
}

/// Memory in which a session can work.
pub(super) fn memory(input: &str) -> Result<Bytes, String> {
    sized(input, Bytes::mib(1), Bytes::mib(1 << 20))
}

/// A segment that is worth a request.
pub(super) fn segment_size(input: &str) -> Result<Bytes, String> {
    sized(input, Bytes::kib(1), Bytes::mib(64))
}

fn sized(input: &str, least: Bytes, most: Bytes) -> Result<Bytes, String> {
    let size: Bytes = input.parse().map_err(|error: anabranch_units::ParseError| error.to_string())?;
    if (least..=most).contains(&size) {
        Ok(size)
    } else {
        Err(format!("a size from {least} to {most} is needed"))
    }
}

/// A ratio from 0 to below 1.
pub(super) fn part(input: &str) -> Result<Ratio, String> {
    ratio(input, |ratio| (0.0..1.0).contains(&ratio), "from 0 to below 1")
}

/// A ratio from 0 to 1.
pub(super) fn lower_ratio(input: &str) -> Result<Ratio, String> {
    ratio(input, |ratio| (0.0..=1.0).contains(&ratio), "from 0 to 1")
}

/// A ratio from 1 on.
pub(super) fn upper_ratio(input: &str) -> Result<Ratio, String> {
    ratio(input, |ratio| (1.0..=100.0).contains(&ratio), "from 1 to 100")
}

/// A factor above zero.
pub(super) fn factor(input: &str) -> Result<Ratio, String> {
    ratio(input, |ratio| ratio > 0.0 && ratio <= 1000.0, "above 0, up to 1000")
}

/// A factor above two.
pub(super) fn spike(input: &str) -> Result<Ratio, String> {
    ratio(input, |ratio| ratio > 2.0 && ratio <= 1000.0, "above 2, up to 1000")
}

fn ratio(input: &str, is_right: impl Fn(f64) -> bool, bounds: &str) -> Result<Ratio, String> {
    match input.parse() {
        Ok(ratio) if is_right(ratio) => Ok(Ratio::from_f64(ratio)),
        _ => Err(format!("a number {bounds} is needed")),
    }
}
