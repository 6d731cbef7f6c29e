//! `/metrics` for Prometheus.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_server as server;
use anabranch_sockets::ListenError;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::failure::Failure;
use crate::output::Output;

/// The text format that is spoken.
pub const MEDIA_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
/// Scrapers at a time.
const MOST_CONNECTIONS: usize = 16;
/// Longest time for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Rest after the system could not give us another connection.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// All metrics as text of [`MEDIA_TYPE`].
pub fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut text, registry);
    text
}

/// A listener for `--metrics`; it ends when this is dropped.
#[derive(Debug)]
pub struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    /// Serves the metrics at `address`, within a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub async fn start(
        address: SocketAddr,
        registry: Arc<Registry>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let failure =
            |error| Failure::failed(format_args!("no metrics: {}", ListenError::new(address, &error)));
        let listener = TcpListener::bind(address).await.map_err(failure)?;
        Self::start_at(listener, registry, output)
    }

    /// The same at a socket that is listened at already.
    ///
    /// # Errors
    /// The system does not say where that is.
    pub fn start_at(
        listener: TcpListener,
        registry: Arc<Registry>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let failure = |error| Failure::failed(format_args!("no metrics: {error}"));
        let real = listener.local_addr().map_err(failure)?;
        output.say(format_args!("metrics at http://{real}/metrics"));
        Ok(Self(tokio::spawn(accept(listener, registry)).abort_handle()))
    }
}

async fn accept(listener: TcpListener, registry: Arc<Registry>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_REST).await;
            continue;
        };
        let registry = registry.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = answer(&request, &registry);
                async move { Ok::<_, Infallible>(response) }
            });
            // A scraper that breaks off is no event.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(socket), service)
                .await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    if request.uri().path() != "/metrics" {
        *response.status_mut() = StatusCode::NOT_FOUND;
    } else if request.method() != Method::GET && request.method() != Method::HEAD {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    } else {
        *response.body_mut() = Full::from(encode(registry));
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
    }
    response
}

/// Labels of one value.
pub type Labels = Vec<(&'static str, String)>;

/// Encodes metrics from values that exist elsewhere.
#[derive(Debug)]
pub struct Families<'a>(pub DescriptorEncoder<'a>);

impl Families<'_> {
    /// Values that go up and down.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn gauge(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        let values = values.into_iter().map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.family(name, help, MetricType::Gauge, values)
    }

    /// Values that only go up; `_total` is added to the name.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) -> fmt::Result {
        let values = values.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.family(name, help, MetricType::Counter, values)
    }

    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Iterator<Item = (Labels, impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            if labels.is_empty() {
                // The one value of a family without labels.
                return value.encode(metric);
            }
            value.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// One counter of a server.
type Counter = fn(&server::Metrics) -> &AtomicU64;

/// The metrics of `serve`: each listener's name and counters.
#[derive(Debug)]
pub struct ServerCollector(pub Vec<(String, Arc<server::Metrics>)>);

impl Collector for ServerCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let of_servers = |value: Counter| {
            let values =
                self.0.iter().map(move |(name, metrics)| (name, value(metrics).load(Ordering::Relaxed)));
            values.map(|(name, value)| (vec![("listener", name.clone())], value)).collect::<Vec<_>>()
        };
        let mut families = Families(encoder);
        let connections = of_servers(|metrics| &metrics.connections);
        let connections = connections
            .into_iter()
            .map(|(labels, value)| (labels, anabranch_units::Bytes::new(value).as_f64()));
        families.gauge("server_connections", "Connections now", connections)?;
        let responses = self.0.iter().flat_map(|(name, metrics)| {
            (1..).zip(&metrics.responses).map(move |(class, count): (u8, _)| {
                let labels = vec![("listener", name.clone()), ("status", format!("{class}xx"))];
                (labels, count.load(Ordering::Relaxed))
            })
        });
        families.counter("server_responses", "Responses by class of their status", responses)?;
        let counters: [(&str, &str, Counter); 8] = [
            ("server_accepted_connections", "Connections accepted", |metrics| &metrics.connections_total),
            ("server_refused_connections", "Connections beyond a limit", |metrics| {
                &metrics.connections_refused
            }),
            (
                "server_replaced_connections",
                "Connections that got the place of one whose client kept the server waiting",
                |metrics| &metrics.connections_replaced,
            ),
            ("server_sent_bytes", "Bytes written to clients, TLS not counted", |metrics| &metrics.bytes_sent),
            ("server_errors", "Connections that ended by an error", |metrics| &metrics.errors),
            ("server_stripe_groups", "Stripe groups opened", |metrics| &metrics.stripe_groups),
            ("server_stripe_connections", "Connections in stripe groups", |metrics| {
                &metrics.stripe_connections
            }),
            ("server_lost_log_lines", "Lines that the access log did not take", |metrics| {
                &metrics.log_lines_lost
            }),
        ];
        for (name, help, value) in counters {
            families.counter(name, help, of_servers(value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_a_server_is_documented() {
        let counters = vec![("http".to_owned(), Arc::new(server::Metrics::default()))];
        crate::documented::metrics(Box::new(ServerCollector(counters)));
    }
}
