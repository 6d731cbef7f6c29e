//! A handshake with the receiver, and what all connections of a sender need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use anabranch_live::{ConnectionId, UplinkId};
use anabranch_protocol::live::hello::SESSION_BYTES;
use bytes::Bytes;
use quinn::{ClientConfig, Connection, ConnectionError, SendStream};
use rand::RngExt;
use tokio::sync::{mpsc, oneshot};

use super::super::{LEAST_WHOLE, code, sending_transport};
use super::events::SendError;
use super::settings::SenderSettings;
use super::uplink::Uplink;

/// How long an attempt takes at the most.
pub(super) const ATTEMPT: Duration = Duration::from_secs(5);
/// TLS says why it does not go on in codes of QUIC from here to 255 more (RFC 9001, section 4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// What all connections need.
pub(super) struct Shared {
    pub(super) links: Arc<[Uplink]>,
    /// For each link: what shows a receiver that an address is ours (RFC 9000, section 8.1.3) is not shown by another.
    pub(super) configs: Vec<ClientConfig>,
    pub(super) settings: SenderSettings,
    pub(super) session: [u8; SESSION_BYTES],
    pub(super) next_connection: AtomicU32,
    /// The oldest media packet that a receiver can still get.
    pub(super) first_media: AtomicU64,
    pub(super) events: mpsc::Sender<Event>,
}

pub(super) enum Event {
    /// It is the receiver that was asked for, and the hello has left: media may follow.
    Up {
        id: ConnectionId,
        link: UplinkId,
        connection: Connection,
        control: SendStream,
    },
    /// The receiver has let it in.
    Welcome(ConnectionId, anabranch_units::Duration),
    Datagram(ConnectionId, Bytes),
    /// The receiver has everything.
    Done,
    Down {
        id: ConnectionId,
        /// Why it was lost, where the receiver had let it in.
        why: Option<String>,
        /// What the receiver had is gone.
        is_forgotten: bool,
        /// Is told when it is known what comes next.
        is_known: oneshot::Sender<()>,
    },
    /// No connection could be made.
    Failed(UplinkId, SendError),
}

/// How long datagrams may be that its path carries.
pub(super) fn path(connection: &Connection) -> u16 {
    connection.stats().path.current_mtu
}

/// Why no connection could be made.
pub(super) fn failure(error: ConnectionError, shared: &Shared) -> SendError {
    match error {
        ConnectionError::ApplicationClosed(close) if close.error_code == code::BUSY => {
            SendError::Busy(String::from_utf8_lossy(&close.reason).into_owned())
        }
        ConnectionError::ApplicationClosed(close) if close.error_code != code::DONE => {
            SendError::Refused(String::from_utf8_lossy(&close.reason).into_owned())
        }
        ConnectionError::TransportError(error) if u64::from(error.code) & !0xff == CRYPTO_ERROR => {
            let reason = error.reason.strip_prefix("unexpected error: ").unwrap_or(&error.reason);
            SendError::NotTrusted(shared.settings.to, reason.into())
        }
        _ => SendError::NoReceiver(shared.settings.to),
    }
}

/// A connection, and how often its link had had another socket when the handshake began.
pub(super) struct Made {
    connection: Connection,
    renewals: u32,
}

impl Made {
    /// The connection, unless it is closed or the receiver may not have all of the handshake for a new socket.
    pub(super) fn open(self, shared: &Shared, link: UplinkId) -> Option<Connection> {
        self.is_open(shared, link).then_some(self.connection)
    }

    /// Whether [`Self::open`] gives it.
    pub(super) fn is_open(&self, shared: &Shared, link: UplinkId) -> bool {
        let is_same = shared.link(link).is_some_and(|(link, _)| link.renewals() == self.renewals);
        is_same && self.connection.close_reason().is_none()
    }
}

impl Shared {
    /// # Errors
    /// No usable TLS.
    pub(super) fn new(
        links: Arc<[Uplink]>,
        settings: SenderSettings,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, SendError> {
        let crypto = settings.trusted.config().map_err(|error| SendError::Tls(error.to_string()))?;
        let transport = Arc::new(sending_transport(LEAST_WHOLE));
        let config = |_| {
            let mut config = ClientConfig::new(crypto.clone());
            config.transport_config(transport.clone());
            config
        };
        Ok(Self {
            configs: links.iter().map(config).collect(),
            links,
            session: rand::rng().random(),
            next_connection: AtomicU32::new(0),
            first_media: AtomicU64::new(0),
            events,
            settings,
        })
    }

    fn link(&self, link: UplinkId) -> Option<(&Uplink, &ClientConfig)> {
        let link = usize::try_from(link.0).ok()?;
        self.links.get(link).zip(self.configs.get(link))
    }
}

/// Makes a connection.
pub(super) async fn shake_hands(
    shared: &Shared,
    link: UplinkId,
    carries: Option<u16>,
) -> Result<Made, SendError> {
    let settings = &shared.settings;
    let nobody = || SendError::NoReceiver(settings.to);
    let (link, config) = shared.link(link).ok_or_else(nobody)?;
    let mut config = config.clone();
    if let Some(carries) = carries {
        config.transport_config(Arc::new(sending_transport(carries)));
    }
    let endpoint = link.endpoint()?;
    let renewals = link.renewals();
    let connecting = endpoint
        .connect_with(config, settings.to, &settings.name)
        // An address or a name that cannot be: there is no such receiver.
        .map_err(|_| nobody())?;
    let connection = connecting.await.map_err(|error| failure(error, shared))?;
    Ok(Made { connection, renewals })
}
