//! What the typed options mean: the settings of a stream, with defaults and presets resolved.

mod headers;

use anabranch_client::{RateControl, Settings};
use anabranch_film::session::Pace;
use anabranch_film::{auto, mul, multitcp, rome};
use anabranch_http::Proxies;
use anabranch_sockets::tls::TlsClient;
use anabranch_units::{Bytes, Duration};
use url::Url;

use crate::arguments::{
    AlgorithmArguments, AlgorithmName, FilmUrl, ModelName, NetworkArguments, Preset, RateArgument,
    SourceArguments,
};
use crate::failure::Failure;

/// What a stream is for; it decides what a rate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A player takes it: the rate is the media's, and the buffer is kept between its thresholds.
    Play,
    /// A file takes it: the rate is a limit.
    Fetch,
}

/// Size of a segment of TCP-ROME where none is given. The paper has no value.
const SEGMENT: Bytes = Bytes::kib(64);
/// As many connections as `fixed` has where none are given: as download programs do by default, about.
const FIXED_CONNECTIONS: u32 = 4;

/// The settings of a stream of these replicas.
///
/// # Errors
/// Options that do not fit together are wrong usage; a file of certificates that cannot be used is a failure.
pub fn settings(urls: &[FilmUrl], source: &SourceArguments, purpose: Purpose) -> Result<Settings, Failure> {
    let urls: Vec<Url> = urls.iter().map(|url| url.0.clone()).collect();
    let NetworkArguments {
        per_host,
        interface,
        header,
        header_for,
        user_agent,
        cacert,
        timeout,
        connect_timeout,
        no_stripe,
        http3_only,
    } = &source.network;
    let defaults = Settings::new(urls);
    let pace = pace(source.rate, purpose);
    let mut playback = defaults.playback;
    playback.prebuffer = source.prebuffer.unwrap_or(playback.prebuffer);
    playback.stall = source.stall_rule.unwrap_or(playback.stall);
    let headers = headers::resolve(&defaults.urls, header, header_for, user_agent.as_deref())?;
    // Who asks for more connections than a host gets by default means it.
    let asked = source.connections.map_or(0, as_usize);
    Ok(Settings {
        headers,
        tls: TlsClient::new(cacert).map_err(Failure::failed)?,
        proxies: Proxies::from_environment(),
        interfaces: interface.clone(),
        algorithm: algorithm(&source.algorithm, source.connections)?,
        pace,
        per_host: per_host.map_or(defaults.per_host.max(asked), as_usize),
        connect_timeout: connect_timeout.unwrap_or(defaults.connect_timeout),
        give_up_after: timeout.unwrap_or(defaults.give_up_after),
        memory: source.memory.unwrap_or(defaults.memory),
        playback,
        probe_media: pace == Pace::Media(None),
        stripe: !no_stripe,
        http3: *http3_only,
        ..defaults
    })
}

fn pace(rate: Option<RateArgument>, purpose: Purpose) -> Pace {
    match (rate, purpose) {
        (Some(RateArgument::Max), _) | (None, Purpose::Fetch) => Pace::Max,
        (Some(RateArgument::Auto), _) | (None, Purpose::Play) => Pace::Media(None),
        (Some(RateArgument::Fixed(rate)), Purpose::Play) => Pace::Media(Some(rate)),
        (Some(RateArgument::Fixed(rate)), Purpose::Fetch) => Pace::Limit(rate),
    }
}

/// Which controllers know a parameter.
fn check_owners(name: AlgorithmName, arguments: &AlgorithmArguments) -> Result<(), Failure> {
    use AlgorithmName::{Advanced, Auto, Basic, Rome};
    let AlgorithmArguments {
        algorithm: _,
        preset,
        delta,
        alpha,
        lambda,
        f,
        cf,
        x,
        start_connections,
        model,
        rate_low,
        rate_high,
        segment_size,
        buffer_low,
        buffer_high,
        margin,
    } = arguments;
    let owners: [(&str, bool, &[AlgorithmName]); 15] = [
        ("--preset", preset.is_some(), &[Basic, Advanced]),
        ("--delta", delta.is_some(), &[Basic, Advanced, Rome]),
        ("--alpha", alpha.is_some(), &[Basic, Advanced, Rome]),
        ("--lambda", lambda.is_some(), &[Basic, Advanced]),
        ("--f", f.is_some(), &[Basic, Advanced]),
        ("--cf", cf.is_some(), &[Advanced]),
        ("--x", x.is_some(), &[Advanced]),
        ("--start-connections", start_connections.is_some(), &[Auto, Advanced]),
        ("--model", model.is_some(), &[Rome]),
        ("--rate-low", rate_low.is_some(), &[Rome]),
        ("--rate-high", rate_high.is_some(), &[Rome]),
        ("--segment-size", segment_size.is_some(), &[Rome]),
        ("--buffer-low", buffer_low.is_some(), &[Auto, Rome]),
        ("--buffer-high", buffer_high.is_some(), &[Auto, Rome]),
        ("--margin", margin.is_some(), &[Auto]),
    ];
    for (option, is_given, names) in owners {
        if is_given && !names.contains(&name) {
            let names: Vec<_> = names.iter().map(|name| format!("--algorithm {}", shown(*name))).collect();
            return Err(Failure::usage(format_args!("{option} needs {}", names.join(" or "))));
        }
    }
    Ok(())
}

fn shown(name: AlgorithmName) -> &'static str {
    match name {
        AlgorithmName::Basic => "basic",
        AlgorithmName::Advanced => "advanced",
        AlgorithmName::Mul => "mul",
        AlgorithmName::Rome => "rome",
        AlgorithmName::Fixed => "fixed",
        AlgorithmName::Auto => "auto",
    }
}

fn algorithm(arguments: &AlgorithmArguments, connections: Option<u32>) -> Result<RateControl, Failure> {
    let name = arguments.algorithm.unwrap_or(match arguments.preset {
        None => AlgorithmName::Auto,
        Some(Preset::Table81 | Preset::Table82) => AlgorithmName::Basic,
        Some(Preset::Table83) => AlgorithmName::Advanced,
    });
    check_owners(name, arguments)?;
    Ok(match name {
        AlgorithmName::Basic => {
            RateControl::Basic(multitcp(multitcp::Parameters::default(), arguments, connections))
        }
        AlgorithmName::Advanced => {
            let defaults = multitcp::AdvancedParameters::default();
            RateControl::Advanced(multitcp::AdvancedParameters {
                basic: multitcp(defaults.basic, arguments, connections),
                initial_connections: arguments.start_connections.unwrap_or(defaults.initial_connections),
                congestion_factor: arguments.cf.unwrap_or(defaults.congestion_factor),
                silence: arguments.x.unwrap_or(defaults.silence),
                ..defaults
            })
        }
        AlgorithmName::Mul => {
            let defaults = mul::Parameters::default();
            RateControl::Mul(mul::Parameters {
                most_connections: connections.unwrap_or(defaults.most_connections),
                ..defaults
            })
        }
        AlgorithmName::Rome => {
            let defaults = rome::Parameters::default();
            let (buffer_low, buffer_high) = buffer(arguments, (defaults.buffer_low, defaults.buffer_high))?;
            let parameters = rome::Parameters {
                connections: connections.unwrap_or(defaults.connections),
                model: arguments.model.map_or(defaults.model, |model| match model {
                    ModelName::Strict => rome::Model::StrictFairness,
                    ModelName::Compensation => rome::Model::Compensation,
                }),
                low: arguments.rate_low.unwrap_or(defaults.low),
                high: arguments.rate_high.unwrap_or(defaults.high),
                buffer_low,
                buffer_high,
                interval: arguments.delta.unwrap_or(defaults.interval),
                smoothing: arguments.alpha.unwrap_or(defaults.smoothing),
                ..defaults
            };
            RateControl::Rome(parameters, arguments.segment_size.unwrap_or(SEGMENT))
        }
        AlgorithmName::Fixed => RateControl::Fixed(connections.unwrap_or(FIXED_CONNECTIONS)),
        AlgorithmName::Auto => {
            let defaults = auto::Parameters::default();
            RateControl::Auto(auto::Parameters {
                most: connections.map_or(defaults.most, as_usize),
                at_start: arguments.start_connections.map_or(defaults.at_start, as_usize),
                buffer: buffer(arguments, defaults.buffer)?,
                margin: arguments.margin.unwrap_or(defaults.margin),
                ..defaults
            })
        }
    })
}

fn multitcp(
    defaults: multitcp::Parameters,
    arguments: &AlgorithmArguments,
    connections: Option<u32>,
) -> multitcp::Parameters {
    let preset = match arguments.preset {
        None => defaults,
        Some(Preset::Table81) => multitcp::Parameters::TABLE_8_1,
        Some(Preset::Table82) => multitcp::Parameters::TABLE_8_2,
        Some(Preset::Table83) => multitcp::Parameters::TABLE_8_3,
    };
    multitcp::Parameters {
        connections: connections.unwrap_or(preset.connections),
        interval: arguments.delta.unwrap_or(preset.interval),
        smoothing: arguments.alpha.unwrap_or(preset.smoothing),
        threshold: arguments.lambda.unwrap_or(preset.threshold),
        spike_factor: arguments.f.unwrap_or(preset.spike_factor),
    }
}

fn buffer(
    arguments: &AlgorithmArguments,
    defaults: (Duration, Duration),
) -> Result<(Duration, Duration), Failure> {
    let (low, high) =
        (arguments.buffer_low.unwrap_or(defaults.0), arguments.buffer_high.unwrap_or(defaults.1));
    if low < high {
        Ok((low, high))
    } else {
        Err(Failure::usage(format_args!(
            "the buffer's lower threshold ({low}) has to be below the upper one ({high}): set --buffer-low \
             and --buffer-high"
        )))
    }
}

fn as_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
