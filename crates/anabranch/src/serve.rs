//! `anabranch serve`: a directory over HTTP, HTTPS and HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use transport::server::{AccessLog, Config, Http3, Server, Shape};
use transport::tls;

use crate::arguments::{LogTarget, ServeArguments};
use crate::failure::Failure;
use crate::metrics::{Listener, ServerCollector};
use crate::output::Output;
use crate::weights;

/// Where it listens when nothing is said: this machine only.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

/// Serves until a signal comes, which is how it is meant to end.
///
/// # Errors
/// It cannot start.
pub async fn run(arguments: ServeArguments, output: &Output) -> Result<(), Failure> {
    let mut http = arguments.http.clone();
    if http.is_empty() && arguments.https.is_empty() && arguments.h3.is_empty() {
        http.push(DEFAULT);
    }
    let mut servers = Vec::new();
    let mut _reloading = None;
    if !http.is_empty() {
        servers.push(("http", bind(config(&arguments, http))?));
    }
    if let (Some(certificate), Some(key)) = (&arguments.cert, &arguments.key) {
        let mut alt_svc = None;
        if !arguments.h3.is_empty() {
            let identity = tls::load_quic_server(certificate, key).map_err(Failure::failed)?;
            let weights = match &arguments.weights {
                Some(path) => {
                    let weights = weights::load(path)?;
                    let receiver = weights.subscribe();
                    _reloading = Some(weights::keep(path.clone(), weights, output.clone())?);
                    Some(receiver)
                }
                None => None,
            };
            let http3 = Http3 { identity, congestion: arguments.congestion, weights };
            let server = bind(Config { http3: Some(http3), ..config(&arguments, arguments.h3.clone()) })?;
            alt_svc = alternative(&server.local_addrs().map_err(Failure::failed)?, &arguments.https);
            servers.push(("h3", server));
        }
        if !arguments.https.is_empty() {
            let tls = Some(tls::load_server(certificate, key).map_err(Failure::failed)?);
            let https = Config { tls, alt_svc, ..config(&arguments, arguments.https.clone()) };
            servers.push(("https", bind(https)?));
        }
    }
    let counters = servers.iter().map(|(scheme, server)| ((*scheme).to_owned(), server.metrics())).collect();
    let _metrics = match arguments.metrics {
        Some(address) => {
            let mut registry = Registry::with_prefix("anabranch");
            registry.register_collector(Box::new(ServerCollector(counters)));
            Some(Listener::start(address, Arc::new(registry), output).await?)
        }
        None => None,
    };
    let mut running = JoinSet::new();
    for (scheme, server) in servers {
        for address in server.local_addrs().map_err(Failure::failed)? {
            let (scheme, how) = if scheme == "h3" { ("https", " with HTTP/3") } else { (scheme, "") };
            let directory = arguments.directory.display();
            output.say(format_args!("serves {directory}{how} at {scheme}://{address}/"));
        }
        let stop = output.stop().clone();
        running.spawn(server.run(async move {
            stop.signal().await;
        }));
    }
    while running.join_next().await.is_some() {}
    match output.stop().received() {
        Some(signal) => Err(Failure::stopped(signal, "")),
        None => Err(Failure::failed("the server has ended by itself")),
    }
}

/// What HTTPS says of HTTP/3, where that is served at one of its addresses: the port, for a day (RFC 7838, section 3).
fn alternative(h3: &[SocketAddr], https: &[SocketAddr]) -> Option<HeaderValue> {
    let same = |at: &&SocketAddr| at.ip().is_unspecified() || https.iter().any(|https| https.ip() == at.ip());
    let port = h3.iter().find(same)?.port();
    HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok()
}

fn bind(config: Config) -> Result<Server, Failure> {
    Server::bind(config).map_err(Failure::failed)
}

fn config(arguments: &ServeArguments, listen: Vec<SocketAddr>) -> Config {
    let as_usize = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let is_shaped = arguments.shape_rate.is_some() || arguments.shape_delay.is_some();
    Config {
        listen,
        max_connections: as_usize(arguments.max_connections),
        max_connections_per_client: as_usize(arguments.max_connections_per_client),
        max_header_bytes: arguments.max_header.as_usize(),
        header_timeout: arguments.header_timeout.into(),
        idle_timeout: arguments.idle_timeout.into(),
        write_timeout: arguments.write_timeout.into(),
        stop_grace: arguments.stop_grace.into(),
        access_log: arguments.access_log.as_ref().map(|target| match target {
            LogTarget::Standard => AccessLog::Stdout,
            LogTarget::File(path) => AccessLog::File(path.clone()),
        }),
        shape: is_shaped.then(|| Shape {
            rate: arguments.shape_rate,
            first_byte_delay: arguments.shape_delay.unwrap_or_default().into(),
        }),
        ..Config::new(&arguments.directory, DEFAULT)
    }
}
