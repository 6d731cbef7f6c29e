//! A sender and a receiver over the loopback interface.

use std::path::Path;

use anabranch_live::{Fec, Scheme, Settings};

use super::*;
use crate::{Identity, Receiver, ReceiverSettings, Trusted};

/// No media and no probe asks for a word of the receiver in which the sender could look at the path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_begins_later_than_its_sender_is_cut_for_what_the_path_carries() {
    let latency = anabranch_units::Duration::from_millis(100);
    let identity = Identity::from_pem(Identity::make().unwrap().as_bytes(), Path::new("a test")).unwrap();
    let trusted = Trusted::Certificate(identity.fingerprint());
    let listen = "127.0.0.1:0".parse().unwrap();
    let settings = ReceiverSettings { listen, identity, token: Vec::new(), latency, keep: false, senders: 1 };
    let mut receiver = Receiver::start(settings).unwrap();
    let live = Settings {
        latency,
        retransmit: true,
        fec: Fec::Off,
        leave_out_stuffing: true,
        scheme: Scheme::TFRC,
        is_published: false,
    };
    let settings = SenderSettings {
        to: receiver.local_addr(),
        name: "localhost".into(),
        trusted,
        token: Vec::new(),
        live,
        interfaces: Vec::new(),
        group: None,
    };
    let mut sender = Sender::start(settings).unwrap();
    let patience = Duration::from_secs(10);
    timeout(patience, sender.ready.wait_for(|is_ready| *is_ready)).await.unwrap().unwrap();
    timeout(patience, sender.payload.wait_for(|most| *most == MAX_PAYLOAD)).await.unwrap().unwrap();
    sender.take_input().send([7; MAX_PAYLOAD].into()).await.unwrap();
    let packet = timeout(patience, receiver.outputs[0].recv()).await.unwrap();
    assert_eq!(packet.map(|packet| packet.len()), Some(MAX_PAYLOAD));
}
