//! A sender and a receiver over the loopback interface.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anabranch_live::{Fec, Scheme, Settings};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep};

use super::handshake::shake_hands;
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

fn settings(to: SocketAddr, identity: &Identity) -> SenderSettings {
    let live = Settings {
        latency: LATENCY,
        retransmit: true,
        fec: Fec::Off,
        leave_out_stuffing: true,
        scheme: Scheme::TFRC,
        is_published: false,
    };
    SenderSettings {
        to,
        name: "localhost".into(),
        trusted: Trusted::Certificate(identity.fingerprint()),
        token: Vec::new(),
        live,
        interfaces: Vec::new(),
        group: None,
    }
}

fn sender(to: SocketAddr, identity: &Identity) -> Sender {
    Sender::start(settings(to, identity)).unwrap()
}

fn shared(to: SocketAddr, identity: &Identity) -> Shared {
    Shared::new([Uplink::new(to, None)].into(), settings(to, identity), mpsc::channel(1).0).unwrap()
}

/// What a relay between both carries: where to, and the first bytes of what came from the sender and from the receiver.
#[derive(Default)]
struct Relay {
    to: Mutex<Option<SocketAddr>>,
    has_no_answers: AtomicBool,
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
                let is_lost = is_back && carries.has_no_answers.load(Ordering::Relaxed);
                if let Some(to) = if is_back { sender } else { to }
                    && !is_lost
                {
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

/// Nobody is there any more who could be told why the receiver did not let them in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_is_given_up_is_not_told_of() {
    let identity = identity();
    let mut receiver = receiver(identity.clone());
    let (relay, to, _task) = Relay::start(receiver.local_addr()).await;
    relay.has_no_answers.store(true, Ordering::Relaxed);
    let shared = shared(to, &identity);
    let made = timeout(Duration::from_millis(100), shake_hands(&shared, UplinkId(0), None)).await;
    assert!(made.is_err());
    let told = timeout(Duration::from_secs(1), receiver.events.recv()).await;
    assert!(told.is_err(), "{told:?}");
}

/// The receiver drops what comes from another address before it has all of a handshake, and answers nothing: a connection
/// of such a one would be waited for in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_handshake_counts_whose_link_has_got_another_socket() {
    let identity = identity();
    let receiver = receiver(identity.clone());
    let to = receiver.local_addr();
    let shared = shared(to, &identity);
    let link = UplinkId(0);
    let made = || async { timeout(PATIENCE, shake_hands(&shared, link, None)).await.unwrap().unwrap() };
    let first = made().await;
    assert!(first.is_open(&shared, link));
    shared.links[0].renew().unwrap();
    assert!(first.open(&shared, link).is_none());
    assert!(made().await.open(&shared, link).is_some());
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
