//! HTTP/3 (RFC 9114): a client's connection over QUIC, from the handshake to its end.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::vps::Weight;
use anabranch_quic::{
    InFlight, Pace, PacedFactory, Pools, Sharing, SingleFactory, WeightedFactory, server_transport,
};
use anabranch_sockets::client_of;
use bytes::{Buf, Bytes};
use h3::error::{Code, StreamError};
use h3::server::RequestResolver;
use http::{Request, Response};
use http_body_util::BodyExt;
use quinn::{Incoming, ServerConfig, TransportConfig};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until, timeout};

use super::answer::answer;
use super::bounded::Bounded;
use super::context::Context;
use super::io_guard::Patience;
use super::line::{Line, Place, priority};
use super::metrics::{add, increment};
use super::shared::Shared;
use super::visit::Visit;
use super::weights::Weights;

/// What is handed to QUIC at a time: so much a client has to take within the time that a server waits.
const PIECE: usize = 16 * 1024;
/// What a client may send on a stream beyond the largest head: settings, and frames that mean nothing here.
const SLACK: usize = 64 * 1024;
/// How often it is looked at whether everything has arrived, before a connection is closed.
const LOOK: Duration = Duration::from_millis(50);

/// Serves a connection until either side ends it. The errors of one connection are only counted and traced.
pub(super) async fn serve(shared: Arc<Shared>, incoming: Incoming, visit: Visit) {
    let (metrics, client) = (shared.metrics.clone(), visit.client);
    if let Err(error) = try_serve(shared, incoming, visit).await {
        increment(&metrics.errors);
        tracing::debug!(%client, %error, "connection ended");
    }
}

/// The group of the pool that a client is in, or the one in which pools are found; without one its connection
/// sends on its own.
fn group_of(client: IpAddr, weights: &Weights, pools: &Pools) -> Option<Arc<Sharing>> {
    match weights.pool_of(client) {
        Some(name) => Some(pools.sharing(name, |name| weights.has_pool(name))),
        None => weights.finds_pools().then(|| pools.found()),
    }
}

/// Has a connection send on its own, under this control. Answers when its packets leave where it is paced.
fn congestion(transport: &mut TransportConfig, algorithm: Algorithm, in_flight: &InFlight) -> Option<Pace> {
    let in_flight = in_flight.clone();
    if !algorithm.is_paced() {
        transport.congestion_controller_factory(Arc::new(SingleFactory { algorithm, in_flight }));
        return None;
    }
    let pace = Pace::new(std::time::Instant::now());
    let factory = PacedFactory { algorithm, seed: rand::random(), in_flight, pace: pace.clone() };
    transport.enable_segmentation_offload(false).congestion_controller_factory(Arc::new(factory));
    Some(pace)
}

type Connection = h3::server::Connection<Bounded<h3_quinn::Connection>, Bytes>;
type Resolver = RequestResolver<Bounded<h3_quinn::Connection>, Bytes>;

async fn try_serve(shared: Arc<Shared>, incoming: Incoming, visit: Visit) -> io::Result<()> {
    let Visit { client, admission, mut stop } = visit;
    let Some(http3) = &shared.config.http3 else { return Ok(()) };
    let patience = Patience::of(&shared.config, true);
    let in_flight = InFlight::default();
    let mut transport = server_transport(patience.idle.max(patience.write));
    let weights = http3.weights.as_ref().map(|weights| weights.borrow().clone());
    let sharing = weights.filter(|_| !http3.congestion.is_paced()).zip(shared.pools.as_ref());
    let sharing = sharing.and_then(|(weights, pools)| group_of(client, &weights, pools));
    let group = sharing.map(|sharing| WeightedFactory::new(sharing, in_flight.clone()));
    let pace = match &group {
        Some(group) => {
            transport.congestion_controller_factory(Arc::new(group.clone()));
            None
        }
        None => congestion(&mut transport, http3.congestion, &in_flight),
    };
    let mut config = ServerConfig::with_crypto(in_flight.told_by(http3.identity.clone()));
    config.transport_config(Arc::new(transport));
    let connecting = incoming.accept_with(Arc::new(config)).map_err(io::Error::other)?;
    let greeting = async {
        let connection = connecting.await.map_err(io::Error::other)?;
        // The client has answered: it is where it says.
        let Some(permit) = admission.proven(client, &shared.limits) else { return Ok(None) };
        let weights = http3.weights.as_ref().map(|weights| weights.borrow().clone());
        let shares_weight = weights.is_none_or(|weights| !weights.is_shared(client));
        let address = shares_weight.then(|| client_of(client));
        let membership = group.map(|group| group.join(connection.clone(), address));
        let waking = pace.map(|pace| pace.wake(connection.clone(), in_flight.clone()));
        let line = Line::new(connection.clone(), in_flight.clone(), membership);
        let head_bytes = u64::try_from(shared.config.max_header_bytes).unwrap_or(u64::MAX);
        let mut builder = h3::server::builder();
        let building = builder.max_field_section_size(head_bytes).send_grease(false).build(Bounded::new(
            h3_quinn::Connection::new(connection),
            shared.config.max_header_bytes + SLACK,
        ));
        let built = building.await.map_err(io::Error::other)?;
        Ok::<_, io::Error>(Some((built, line, permit, waking)))
    };
    let greeted = timeout(patience.header, greeting).await??;
    // Beyond what is told so, nobody is told.
    let Some((mut connection, line, permit, _waking)): Option<(Connection, _, _, _)> = greeted else {
        return Ok(());
    };
    let patience = Patience::of(&shared.config, permit.is_served());
    let context =
        Arc::new(Context { shared: shared.clone(), client, served: permit.is_served(), http1: None });
    let mut requests = JoinSet::new();
    let mut idle = pin!(sleep_until(Instant::now() + patience.header));
    let mut stopping = false;
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Ok(Some(resolver)) => {
                    let weights = http3.weights.clone();
                    requests.spawn(request(context.clone(), resolver, patience, line.clone(), weights));
                }
                Ok(None) => break,
                Err(error) if error.is_h3_no_error() => break,
                Err(error) => return Err(io::Error::other(error)),
            },
            Some(ended) = requests.join_next() => {
                if let Ok(Err(error)) = ended {
                    increment(&shared.metrics.errors);
                    tracing::debug!(%client, %error, "request ended");
                }
                let rest = if stopping { LOOK } else { patience.idle };
                idle.as_mut().reset(Instant::now() + rest);
            }
            () = &mut idle, if requests.is_empty() => {
                // What was answered is still on its way; QUIC's own patience ends where nobody takes it.
                if in_flight.is_nothing() {
                    break;
                }
                idle.as_mut().reset(Instant::now() + LOOK);
            }
            () = async { let _ = stop.wait_for(|stop| *stop).await; }, if !stopping => {
                stopping = true;
                connection.shutdown(0).await.map_err(io::Error::other)?;
                idle.as_mut().reset(Instant::now() + LOOK);
            }
        }
    }
    while requests.join_next().await.is_some() {}
    Ok(())
}

/// One request, from its head to the end of its answer.
async fn request(
    context: Arc<Context>,
    resolver: Resolver,
    patience: Patience,
    line: Arc<Line>,
    weights: Option<watch::Receiver<Arc<Weights>>>,
) -> io::Result<()> {
    let resolved = timeout(patience.header, resolver.resolve_request()).await?;
    let (request, mut stream) = match resolved {
        Ok(resolved) => resolved,
        // The client was told so.
        Err(StreamError::HeaderTooBig { .. }) => {
            context.shared.metrics.count_response(http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            return Ok(());
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    // There is nothing that a body could be good for (RFC 9114, section 4.1).
    stream.stop_sending(Code::H3_NO_ERROR);
    let metrics = context.shared.metrics.clone();
    let priority = priority(request.headers());
    let mut weighed =
        weights.map(|weights| Weighed { weights, client: context.client, request: request.clone() });
    let Ok(response) = answer(context, request).await;
    let (mut head, mut body) = response.into_parts();
    // hyper adds it in HTTP/1.1 (RFC 9110, section 6.6.1).
    if let Ok(date) = httpdate::fmt_http_date(SystemTime::now()).try_into() {
        head.headers.insert(http::header::DATE, date);
    }
    in_time(patience, stream.send_response(Response::from_parts(head, ()))).await?;
    let weight = weighed.as_mut().map_or(Weight::ONE, Weighed::weight);
    let place = line.begin(priority, weight);
    loop {
        place.turn().await;
        let Some(frame) = place.paused_for(body.frame()).await else { break };
        let data = match frame {
            Ok(frame) => frame.into_data(),
            Err(error) => {
                // Half of an answer must not look like a whole one.
                stream.stop_stream(Code::H3_INTERNAL_ERROR);
                return Err(error);
            }
        };
        let Ok(mut data) = data else { continue };
        while data.has_remaining() {
            if let Some(weighed) = &mut weighed {
                weighed.look(&place);
            }
            let piece = data.split_to(data.len().min(PIECE));
            let length = piece.len();
            let _writing = place.turn_to_write(anabranch_units::Bytes::of(length)).await;
            in_time(patience, stream.send_data(piece)).await?;
            add(&metrics.bytes_sent, length);
        }
    }
    in_time(patience, stream.finish()).await
}

/// A request whose weight may change while it is answered.
struct Weighed {
    weights: watch::Receiver<Arc<Weights>>,
    client: IpAddr,
    /// Its head, for other weights.
    request: Request<()>,
}

impl Weighed {
    fn weight(&mut self) -> Weight {
        self.weights.borrow_and_update().of(self.client, &self.request)
    }

    /// Looks whether there are other weights.
    fn look(&mut self, place: &Place) {
        if self.weights.has_changed().unwrap_or(false) {
            place.set_weight(self.weight());
        }
    }
}

/// Gives up when the client takes nothing for too long.
async fn in_time(
    patience: Patience,
    sending: impl Future<Output = Result<(), StreamError>>,
) -> io::Result<()> {
    timeout(patience.write, sending).await?.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_shares_with_others_only_where_the_operator_says_so() {
        let pools = Pools::new(Algorithm::Reno);
        let group = |client: &str, weights: &str| {
            group_of(client.parse().unwrap(), &weights.parse().unwrap(), &pools)
                .map(|group| Arc::as_ptr(&group))
        };
        let rules = "default = 2\n[[rule]]\npath = \"/a\"\nweight = 8\n";
        assert_eq!(group("10.0.0.1", rules), None);

        let campus = format!("{rules}[[pool]]\nname = \"campus\"\nclients = [\"10.0.0.0/8\"]\n");
        assert!(group("10.0.0.1", &campus).is_some());
        assert_eq!(group("10.0.0.1", &campus), group("10.0.0.2", &campus));
        assert_eq!(group("192.0.2.1", &campus), None);

        // All others are watched together where the file says so.
        let found = format!("find_pools = true\n{campus}");
        assert!(group("192.0.2.1", &found).is_some());
        assert_eq!(group("192.0.2.1", &found), group("198.51.100.1", &found));
        assert_ne!(group("192.0.2.1", &found), group("10.0.0.1", &found));
    }
}
