//! The capture, read again.

use std::fs::File;

use anabranch_units::{Bytes, Duration, Rate, Time};
use etherparse::{SlicedPacket, TcpOptionElement, TransportSlice};
use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;
use crate::Simulation;
use crate::model::*;
use crate::scenario;

struct NoFiles;

impl scenario::Files for NoFiles {
    fn read(&mut self, _name: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A file of twenty segments over a path that loses the third data packet, and five datagrams.
const SCENARIO: &str = r#"
[run]
duration = "5s"
[[node]]
name = "a"
[[node]]
name = "middle"
[[node]]
name = "b"
[[link]]
from = "a"
to = "middle"
rate = "10Mbps"
delay = "10ms"
[[link]]
from = "middle"
to = "b"
rate = "1Mbps"
delay = "10ms"
loss = { kind = "listed", packets = [3] }
reverse = { loss = 0 }
[[flow]]
name = "file"
kind = "tcp"
from = "a"
to = "b"
size = "29200B"
tcp = { delayed_ack = false, receive_window = "30000B" }
[[flow]]
name = "datagrams"
kind = "udp"
from = "b"
to = "a"
rate = "16kbps"
packet_size = "500B"
start = "1s"
stop = "1900ms"
"#;

/// What a TCP segment of the capture says.
#[derive(Debug)]
struct Seen {
    from: [u8; 4],
    is_syn: bool,
    sequence: u32,
    acknowledged: u32,
    window: u16,
    length: u32,
    has_sack: bool,
}

#[test]
fn a_capture_tells_the_whole_story_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("packets.pcapng");
    let model = scenario::parse("test", SCENARIO, None, &mut NoFiles).unwrap();
    let mut output = Output::default().capture(&file, &model).unwrap();
    let mut simulation = Simulation::new(model).unwrap();
    simulation.run_until(simulation.end(), &mut output);
    output.finish(&Summary::new("test", simulation.model(), simulation.now(), &simulation.totals())).unwrap();

    let mut reader = PcapNgReader::new(File::open(&file).unwrap()).unwrap();
    let (mut interfaces, mut seen, mut datagrams) = (0, Vec::new(), 0);
    let mut last = std::time::Duration::ZERO;
    while let Some(block) = reader.next_block() {
        let packet = match block.unwrap() {
            Block::InterfaceDescription(_) => {
                interfaces += 1;
                continue;
            }
            Block::EnhancedPacket(packet) => packet,
            other => panic!("{other:?}"),
        };
        assert!(packet.timestamp >= last, "the time goes back");
        last = packet.timestamp;
        let ip = etherparse::Ipv4HeaderSlice::from_slice(&packet.data).unwrap();
        assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
        assert!(u32::from(ip.total_len()) <= packet.original_len);
        // What was left out of the file are zeros.
        let mut whole = packet.data.to_vec();
        whole.resize(ip.total_len().into(), 0);
        let sliced = SlicedPacket::from_ip(&whole).unwrap();
        match sliced.transport.unwrap() {
            TransportSlice::Tcp(tcp) => {
                let (source, destination) = (ip.source(), ip.destination());
                assert_eq!(
                    tcp.checksum(),
                    tcp.to_header().calc_checksum_ipv4_raw(source, destination, tcp.payload()).unwrap()
                );
                let sack = |option| matches!(option, Ok(TcpOptionElement::SelectiveAcknowledgement(..)));
                seen.push(Seen {
                    from: source,
                    is_syn: tcp.syn(),
                    sequence: tcp.sequence_number(),
                    acknowledged: tcp.acknowledgment_number(),
                    window: tcp.window_size(),
                    length: u32::try_from(tcp.payload().len()).unwrap(),
                    has_sack: tcp.options_iterator().any(sack),
                });
            }
            TransportSlice::Udp(udp) => {
                assert_eq!((ip.source(), udp.payload().len()), ([10, 0, 0, 3], 500 - 28));
                datagrams += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((interfaces, datagrams), (4, 4));
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 3]);
    assert!(seen[0].is_syn && seen[0].from == a && seen[1].is_syn && seen[1].from == b);
    assert_eq!((seen[0].sequence, seen[1].sequence, seen[1].acknowledged), (0, 0, 1));
    let data: Vec<_> = seen.iter().filter(|segment| segment.length > 0).collect();
    let sent = |number: u32| data.iter().filter(|segment| segment.sequence == 1 + number * 1460).count();
    assert!((0..20).all(|number| sent(number) >= 1) && data.iter().all(|segment| segment.length == 1460));
    // The packets with the numbers 0 to 2 are the SYN and two segments.
    assert_eq!([1, 2, 3].map(sent), [1, 2, 1]);
    assert!(seen.iter().any(|segment| segment.has_sack), "the loss is told of");
    let last = seen.iter().rfind(|segment| segment.from == b).unwrap();
    assert_eq!((last.acknowledged, last.window), (29_201, 30));
}

#[test]
fn a_link_s_capacity_follows_its_changes() {
    let second = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let change = |at, rate| Change { at: second(at), rate: Some(rate), delay: None, loss: None };
    let link = Link {
        name: "a".into(),
        from: 0,
        to: 1,
        rate: Rate::from_bps(100),
        delay: Duration::ZERO,
        queue: Queue { limit: Limit::Bytes(Bytes::kib(64)), discipline: Discipline::DropTail },
        policer: None,
        shaper: None,
        loss: LossModel::None,
        jitter: None,
        duplicate: 0.0,
        changes: vec![
            change(2, Rate::ZERO),
            Change { rate: None, ..change(3, Rate::ZERO) },
            change(5, Rate::from_bps(7)),
        ],
        opportunities: None,
    };
    let bits = |from, to| capacity::capacity(&link, second(from), second(to)) / 1_000_000_000;
    assert_eq!((bits(0, 2), bits(1, 4), bits(3, 6), bits(5, 7), bits(4, 4)), (200, 100, 7, 14, 0));
}
