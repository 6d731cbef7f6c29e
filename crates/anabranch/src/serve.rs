//! `anabranch serve`: a directory over HTTP, HTTPS and HTTP/3.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use anabranch_server::{
    AccessLog, Caps, Config, Http3, Inherited, Listener, Rotation, Server, Shape, connections_within,
    raise_descriptor_limit,
};
use anabranch_sockets::{ListenError, tls};
use http::HeaderValue;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::arguments::{LogTarget, ServeArguments};
use crate::failure::Failure;
use crate::handover;
use crate::metrics::{self, ServerCollector};
use crate::output::Output;
use crate::weights;

/// Where it listens when nothing is said: this machine only.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

/// Serves until a signal comes, which is how it is meant to end.
///
/// # Errors
/// It cannot start.
pub async fn run(arguments: ServeArguments, output: &Output) -> Result<(), Failure> {
    if arguments.congestion.is_paced() && arguments.weights.is_some() && !arguments.h3.is_empty() {
        return Err(Failure::usage(format!(
            "'{}' paces each connection by itself: --weights needs another --congestion, such as reno",
            arguments.congestion
        )));
    }
    if arguments.congestion.is_scalable() {
        return Err(Failure::usage(format!(
            "'{}' goes by how much the path marks, which is not told over HTTP/3: it is for `anabranch sim`, and \
             --congestion takes another one, such as cubic",
            arguments.congestion
        )));
    }
    let mut http = arguments.http.clone();
    if http.is_empty() && arguments.https.is_empty() && arguments.h3.is_empty() {
        http.push(DEFAULT);
    }
    let rotation = Rotation::default();
    let _rotating = rotate(&arguments, &rotation).map_err(Failure::failed)?;
    let kinds = [&http, &arguments.https, &arguments.h3].iter().filter(|listen| !listen.is_empty()).count();
    let mut _reloading = None;
    let weights = match &arguments.weights {
        Some(path) => {
            let weights = weights::load(path, output)?;
            let receiver = weights.subscribe();
            _reloading = Some(weights::keep(path.clone(), weights, output.clone())?);
            Some(receiver)
        }
        None => None,
    };
    let is_over_tcp = !http.is_empty() || !arguments.https.is_empty();
    let over_tcp = weights.clone().filter(|_| is_over_tcp);
    let tcp_sharing = over_tcp.and_then(|weights| weights::over_tcp(weights, output));
    let mut _sharing = JoinSet::new();
    if let Some(sharing) = tcp_sharing.clone() {
        _sharing.spawn(async move { sharing.run().await });
    }
    let basis = Config {
        max_connections: most_connections(&arguments, kinds, tcp_sharing.is_some(), output),
        tcp_sharing,
        log_rotation: rotation,
        listener: output.is_verbose().then(|| {
            let output = output.clone();
            Listener(Arc::new(move |line| output.detail(line)))
        }),
        ..config(&arguments)
    };
    let at = |listen: &[SocketAddr]| Config { listen: listen.to_vec(), ..basis.clone() };
    let mut inherited = Inherited::from_environment().map_err(|error| {
        Failure::usage(format!("a socket that LISTEN_FDS tells of cannot be listened at: {error}"))
    })?;
    let mut servers = Vec::new();
    if !http.is_empty() {
        servers.push(("http", bind(at(&http), &mut inherited)?));
    }
    if let (Some(certificate), Some(key)) = (&arguments.cert, &arguments.key) {
        let mut alt_svc = None;
        if !arguments.h3.is_empty() {
            let identity = tls::load_quic_server(certificate, key).map_err(Failure::failed)?;
            let http3 = Http3 { identity, congestion: arguments.congestion, weights };
            let server = bind(Config { http3: Some(http3), ..at(&arguments.h3) }, &mut inherited)?;
            alt_svc = alternative(&server.local_addrs().map_err(Failure::failed)?, &arguments.https);
            servers.push(("h3", server));
        }
        if !arguments.https.is_empty() {
            let tls = Some(tls::load_server(certificate, key).map_err(Failure::failed)?);
            let https = Config { tls, alt_svc, ..at(&arguments.https) };
            servers.push(("https", bind(https, &mut inherited)?));
        }
    }
    let counters = servers.iter().map(|(scheme, server)| ((*scheme).to_owned(), server.metrics())).collect();
    let mut sockets = Vec::new();
    for (_, server) in &servers {
        sockets.extend(server.sockets().map_err(Failure::failed)?);
    }
    let _metrics = match arguments.metrics {
        Some(address) => {
            let socket = inherited.listen(address).map_err(|error| {
                Failure::failed(format_args!("no metrics: {}", ListenError::new(address, &error)))
            })?;
            sockets.push(socket.as_fd().try_clone_to_owned().map_err(Failure::failed)?);
            let mut registry = Registry::with_prefix("anabranch");
            registry.register_collector(Box::new(ServerCollector(counters)));
            Some(metrics::Listener::start_at(socket, Arc::new(registry), output)?)
        }
        None => None,
    };
    if let [left, ..] = inherited.left()[..] {
        return Err(Failure::usage(format!(
            "the socket at {left} was handed over, and nothing is to be served there: say so with --http, \
             --https or --metrics"
        )));
    }
    let (over, _handing) = hand_over(&arguments, sockets, output).map_err(Failure::failed)?;
    let mut running = JoinSet::new();
    for (scheme, server) in servers {
        for address in server.local_addrs().map_err(Failure::failed)? {
            let (scheme, how) = if scheme == "h3" { ("https", " with HTTP/3") } else { (scheme, "") };
            let directory = arguments.directory.display();
            output.say(format_args!("serves {directory}{how} at {scheme}://{address}/"));
        }
        let (stop, mut over, grace) = (output.stop().clone(), over.clone(), arguments.stop_grace.into());
        running.spawn(server.run_until(async move {
            let handed_over = async {
                if over.wait_for(|over| *over).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                _ = stop.signal() => Some(grace),
                () = handed_over => None,
            }
        }));
    }
    handover::tell_ready().map_err(|error| Failure::failed(format_args!("cannot tell systemd: {error}")))?;
    let ending = async { while running.join_next().await.is_some() {} };
    let impatience = async {
        output.stop().signal().await;
        if !*over.borrow() {
            // The servers have heard it themselves.
            std::future::pending::<()>().await;
        }
        sleep(arguments.stop_grace.into()).await;
    };
    tokio::select! {
        () = ending => {}
        () = impatience => {}
    }
    match output.stop().received() {
        Some(signal) => Err(Failure::stopped(signal, "")),
        None if *over.borrow() => Ok(()),
        None => Err(Failure::failed("the server has ended by itself")),
    }
}

/// What HTTPS says of HTTP/3, where that is served at one of its addresses: the port, for a day (RFC 7838,
/// section 3).
fn alternative(h3: &[SocketAddr], https: &[SocketAddr]) -> Option<HeaderValue> {
    let same = |at: &&SocketAddr| at.ip().is_unspecified() || https.iter().any(|https| https.ip() == at.ip());
    let port = h3.iter().find(same)?.port();
    HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok()
}

fn bind(config: Config, inherited: &mut Inherited) -> Result<Server, Failure> {
    Server::bind_with(config, inherited).map_err(Failure::failed)
}

/// On SIGUSR2 has another run serve at the sockets; answers what becomes true when one does. It goes on until
/// the second is dropped.
///
/// # Errors
/// The system does not let us listen for the signal.
fn hand_over(
    arguments: &ServeArguments,
    sockets: Vec<OwnedFd>,
    output: &Output,
) -> std::io::Result<(watch::Receiver<bool>, JoinSet<()>)> {
    let (sender, receiver) = watch::channel(false);
    let mut signals = signal(SignalKind::user_defined2())?;
    let (speaks_http3, output) = (!arguments.h3.is_empty(), output.clone());
    let mut handing = JoinSet::new();
    handing.spawn(async move {
        if speaks_http3 {
            while signals.recv().await.is_some() {
                output.warn(
                    "HTTP/3's connections share one socket, which cannot be handed over: this run goes on. Stop \
                     it with SIGTERM, or serve HTTP/3 by a process of its own",
                );
            }
            return;
        }
        handover::to_a_new_run(signals, sockets, output).await;
        sender.send_replace(true);
    });
    Ok((receiver, handing))
}

/// How many connections each of so many servers may have: as many as the options say, where the system
/// permits the files. Those that `share` by weights need more.
fn most_connections(arguments: &ServeArguments, servers: usize, share: bool, output: &Output) -> usize {
    let wanted = as_usize(arguments.max_connections);
    let descriptors = raise_descriptor_limit();
    let possible = connections_within(descriptors, servers, share);
    if let Some(descriptors) = descriptors.filter(|_| possible < wanted) {
        output.warn(format_args!(
            "at most {possible} connections at a time in place of {wanted}: each needs {} files, and the \
             system permits {descriptors} \
             open ones (raise `ulimit -Hn`, or LimitNOFILE= of a systemd unit)",
            if share { "three" } else { "two" }
        ));
    }
    wanted.min(possible)
}

/// Opens the access log again on SIGUSR1, and where there is one on SIGHUP, until what is answered is
/// dropped.
///
/// # Errors
/// The system does not let us listen for the signals.
fn rotate(arguments: &ServeArguments, rotation: &Rotation) -> std::io::Result<JoinSet<()>> {
    let mut signals = vec![signal(SignalKind::user_defined1())?];
    if arguments.access_log.is_some() {
        // Without it, the end of a terminal ends the server as well.
        signals.push(signal(SignalKind::hangup())?);
    }
    let mut rotating = JoinSet::new();
    for signal in signals {
        rotating.spawn(on_each(signal, rotation.clone()));
    }
    Ok(rotating)
}

async fn on_each(mut signal: Signal, rotation: Rotation) {
    while signal.recv().await.is_some() {
        rotation.rotate();
    }
}

fn as_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn config(arguments: &ServeArguments) -> Config {
    let is_shaped = arguments.shape_rate.is_some() || arguments.shape_delay.is_some();
    Config {
        max_connections_per_client: as_usize(arguments.max_connections_per_client),
        caps: Caps { per_response: arguments.max_rate, per_client: arguments.max_rate_per_client },
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
