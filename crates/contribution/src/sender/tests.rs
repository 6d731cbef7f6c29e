//! A sender and a receiver over the loopback interface.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;

use anabranch_live::{Fec, Scheme, Settings};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{Identity, Receiver, ReceiverSettings, Trusted};

const PATIENCE: Duration = Duration::from_secs(10);
const LATENCY: anabranch_units::Duration = anabranch_units::Duration::from_millis(100);

fn identity() -> Identity {
    Identity::from_pem(Identity::make().unwrap().as_bytes(), Path::new("a test")).unwrap()
}

fn receiver(identity: Identity) -> Receiver {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (token, latency) = (Vec::new(), LATENCY);
    Receiver::start(ReceiverSettings { listen, identity, token, latency, keep: false, senders: 1 }).unwrap()
}

fn sender(to: SocketAddr, identity: &Identity) -> Sender {
    let live = Settings {
        latency: LATENCY,
        retransmit: true,
        fec: Fec::Off,
        leave_out_stuffing: true,
        scheme: Scheme::TFRC,
        is_published: false,
    };
    let settings = SenderSettings {
        to,
        name: "localhost".into(),
        trusted: Trusted::Certificate(identity.fingerprint()),
        token: Vec::new(),
        live,
        interfaces: Vec::new(),
        group: None,
    };
    Sender::start(settings).unwrap()
}

/// What a relay between both carries: where to, and the first bytes of what came from the sender and from the receiver.
#[derive(Default)]
struct Relay {
    to: Mutex<Option<SocketAddr>>,
    seen: Mutex<(Vec<u8>, Vec<u8>)>,
}

impl Relay {
    /// What tells of a packet (RFC 9000, section 17.2; RFC 9287 frees a bit), and the first one, and one that asks to come again.
    const KIND: u8 = 0xB0;
    const INITIAL: u8 = 0x80;
    const RETRY: u8 = 0xB0;

    async fn start(to: SocketAddr) -> (Arc<Self>, SocketAddr, JoinSet<()>) {
        let relay = Arc::new(Self { to: Mutex::new(Some(to)), ..Self::default() });
        let here = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (address, mut task, carries) = (here.local_addr().unwrap(), JoinSet::new(), relay.clone());
        task.spawn(async move {
            let (mut sender, mut buffer) = (None, vec![0; 2000]);
            loop {
                let Ok((length, from)) = here.recv_from(&mut buffer).await else { continue };
                let to = *carries.to.lock().unwrap();
                let is_back = Some(from) == to;
                let seen = &mut *carries.seen.lock().unwrap();
                if is_back { &mut seen.1 } else { &mut seen.0 }.push(buffer[0] & Self::KIND);
                sender = if is_back { sender } else { Some(from) };
                if let Some(to) = if is_back { sender } else { to } {
                    let _ = here.try_send_to(&buffer[..length], to);
                }
            }
        });
        (relay, address, task)
    }

    fn has_seen(&self, first: u8) -> (bool, bool) {
        let seen = self.seen.lock().unwrap();
        (seen.0.contains(&first), seen.1.contains(&first))
    }
}

/// One that nobody else asks at the time lets a sender in without a round trip for its address alone. A receiver that is silent may
/// have been killed: handshakes are asked for before anything tells, and its successor gets the stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_of_a_silent_receiver_is_asked_before_it_tells_of_itself() {
    let identity = identity();
    let first = receiver(identity.clone());
    let (relay, address, _task) = Relay::start(first.local_addr()).await;
    let mut sender = sender(address, &identity);
    timeout(PATIENCE, sender.ready.wait_for(|is_ready| *is_ready)).await.unwrap().unwrap();
    assert_eq!(
        (relay.has_seen(Relay::INITIAL), relay.has_seen(Relay::RETRY)),
        ((true, true), (false, false))
    );
    *relay.to.lock().unwrap() = None;
    *relay.seen.lock().unwrap() = Default::default();
    let input = sender.take_input();
    let begun = Instant::now();
    while !relay.has_seen(Relay::INITIAL).0 {
        assert!(begun.elapsed() < PATIENCE);
        input.send([7; MAX_PAYLOAD].into()).await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    let mut second = receiver(identity);
    *relay.to.lock().unwrap() = Some(second.local_addr());
    let mut packet = None;
    while packet.is_none() {
        assert!(begun.elapsed() < 2 * PATIENCE);
        input.send([7; MAX_PAYLOAD].into()).await.unwrap();
        packet = timeout(Duration::from_millis(10), second.outputs[0].recv()).await.unwrap_or(None);
    }
}

/// No media and no probe asks for a word of the receiver in which the sender could look at the path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_begins_later_than_its_sender_is_cut_for_what_the_path_carries() {
    let identity = identity();
    let mut receiver = receiver(identity.clone());
    let mut sender = sender(receiver.local_addr(), &identity);
    timeout(PATIENCE, sender.ready.wait_for(|is_ready| *is_ready)).await.unwrap().unwrap();
    timeout(PATIENCE, sender.payload.wait_for(|most| *most == MAX_PAYLOAD)).await.unwrap().unwrap();
    sender.take_input().send([7; MAX_PAYLOAD].into()).await.unwrap();
    let packet = timeout(PATIENCE, receiver.outputs[0].recv()).await.unwrap();
    assert_eq!(packet.map(|packet| packet.len()), Some(MAX_PAYLOAD));
}
