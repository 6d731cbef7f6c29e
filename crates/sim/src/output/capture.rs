//! A capture of the packets as a pcapng file, for Wireshark and its kind.
//!
//! Every packet is written once, as its sender begins to transmit it; the interfaces are the links. The
//! payload is left out. The headers are made from what the simulator knows: addresses 10.x.y.z from the
//! nodes' numbers, ports from those of the flow and the connection, sequence numbers from zero.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use anabranch_queues::Codepoint;
use anabranch_units::Time;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::model::{FlowId, Kind, Model, NodeId};
use crate::report::{PacketKind, PacketRecord};

/// All headers fit.
const SNAP_LENGTH: u32 = 128;
/// Decimal digits of the timestamps' seconds: nanoseconds.
const NANOSECONDS: u8 = 9;
/// Windows are told in units of 1 KiB, so that 64 MiB can be (RFC 7323, section 2.2).
const WINDOW_SCALE: u8 = 10;
/// Where the ports of flows begin, and where those of a flow's connections do.
const FLOW_PORTS: u16 = 10_000;
const CONNECTION_PORTS: u16 = 20_000;
const TIME_TO_LIVE: u8 = 64;
/// What the checksum counts; left out of the file.
static PAYLOAD: [u8; 1 << 16] = [0; 1 << 16];

/// A pcapng file that is being written.
pub(super) struct Capture {
    writer: PcapNgWriter<BufWriter<File>>,
    /// Where each link begins.
    links: Vec<NodeId>,
    /// Payload of a full segment of each flow.
    segments: Vec<u16>,
    sides: BTreeMap<(FlowId, u32, bool), Side>,
}

/// What one side of a connection has said so far: every segment repeats it.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// The end of the data that it sent.
    sent: u64,
    /// What it acknowledged last, and with which window.
    acknowledged: u64,
    window: u16,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("sides", &self.sides).finish_non_exhaustive()
    }
}

impl Capture {
    pub(super) fn new(file: File, model: &Model) -> io::Result<Self> {
        // The machine's own order would make other bytes.
        let writer = PcapNgWriter::with_endianness(BufWriter::new(file), Endianness::Little);
        let mut writer = writer.map_err(as_io)?;
        for link in &model.links {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(link.name.clone())),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAP_LENGTH, options };
            writer.write_block(&block.into_block()).map_err(as_io)?;
        }
        let segment = |kind: &Kind| match kind {
            Kind::Tcp { tcp, .. } => tcp.segment.get(),
            Kind::Media(media) => media.tcp.segment.get(),
            Kind::Udp { .. } | Kind::Tfrc { .. } | Kind::Live(_) => 0,
        };
        Ok(Self {
            writer,
            links: model.links.iter().map(|link| link.from).collect(),
            segments: model.flows.iter().map(|flow| low_16(segment(&flow.kind))).collect(),
            sides: BTreeMap::new(),
        })
    }

    pub(super) fn packet(&mut self, packet: &PacketRecord) -> io::Result<()> {
        if self.links[packet.link] != packet.source {
            return Ok(());
        }
        let (source, destination) = (address(packet.source), address(packet.destination));
        let payload = usize::try_from(packet.payload.get()).unwrap_or(usize::MAX);
        let (protocol, header, payload) = match packet.what {
            PacketKind::Datagram(_) => {
                let (ports, header) = (self.ports(packet), Ipv4Header::MIN_LEN + UdpHeader::LEN);
                let payload = payload.saturating_sub(header).min(PAYLOAD.len() - 1 - header);
                let mut header =
                    UdpHeader::without_ipv4_checksum(ports.0, ports.1, payload).map_err(io::Error::other)?;
                header.checksum = header
                    .calc_checksum_ipv4_raw(source, destination, &PAYLOAD[..payload])
                    .map_err(io::Error::other)?;
                (IpNumber::UDP, header.to_bytes().to_vec(), payload)
            }
            _ => {
                let mut header = self.segment(packet)?;
                let most = PAYLOAD.len() - 1 - Ipv4Header::MIN_LEN - header.header_len();
                let payload = payload.min(most);
                header.checksum = header
                    .calc_checksum_ipv4_raw(source, destination, &PAYLOAD[..payload])
                    .map_err(io::Error::other)?;
                (IpNumber::TCP, header.to_bytes().to_vec(), payload)
            }
        };
        let length = header.len() + payload;
        let mut ip = Ipv4Header::new(low_16(length as u64), TIME_TO_LIVE, protocol, source, destination)
            .map_err(io::Error::other)?;
        ip.ecn = codepoint(packet.ecn);
        ip.header_checksum = ip.calc_header_checksum();
        let mut data = ip.to_bytes().to_vec();
        data.extend(header);
        let original = (Ipv4Header::MIN_LEN + length) as u64;
        let block = EnhancedPacketBlock {
            interface_id: u32::try_from(packet.link).map_err(io::Error::other)?,
            timestamp: packet.at.since(Time::ZERO).into(),
            original_len: u32::try_from(original.max(packet.size.get())).unwrap_or(u32::MAX),
            data: Cow::Owned(data),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map_err(as_io).map(|_| ())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    /// The ports of the two ends: the flow's at the side that was asked, the connection's at the one that
    /// opened it.
    fn ports(&self, packet: &PacketRecord) -> (u16, u16) {
        let flow = FLOW_PORTS.wrapping_add(low_16(packet.flow as u64));
        let connection = CONNECTION_PORTS.wrapping_add(low_16(packet.connection.into()));
        if packet.from_opener { (connection, flow) } else { (flow, connection) }
    }

    fn segment(&mut self, packet: &PacketRecord) -> io::Result<TcpHeader> {
        let (source, destination) = self.ports(packet);
        let key = (packet.flow, packet.connection);
        let side = self.sides.entry((key.0, key.1, packet.from_opener)).or_default();
        let mut header = TcpHeader::new(source, destination, 0, side.window);
        let mut options = Vec::new();
        match packet.what {
            PacketKind::Syn | PacketKind::SynAck => {
                header.syn = true;
                header.window_size = u16::MAX;
                options.extend([
                    TcpOptionElement::MaximumSegmentSize(self.segments[packet.flow]),
                    TcpOptionElement::SelectiveAcknowledgementPermitted,
                    TcpOptionElement::WindowScale(WINDOW_SCALE),
                ]);
                *side = Side { window: u16::MAX, ..Side::default() };
            }
            PacketKind::Data(position) => {
                header.cwr = packet.ecn_flag;
                side.sent = side.sent.max(position + packet.payload.get());
                header.sequence_number = sequence(position);
            }
            PacketKind::Ack { acknowledged, window, sack } => {
                header.ece = packet.ecn_flag;
                // Rounded up: the sender knows the window to the byte.
                let units = window.div_ceil(1 << WINDOW_SCALE).min(u16::MAX.into());
                (side.acknowledged, side.window) = (acknowledged, low_16(units));
                header.sequence_number = sequence(side.sent);
                header.window_size = side.window;
                let mut blocks = sack
                    .iter()
                    .filter(|(begin, end)| begin < end)
                    .map(|(begin, end)| (sequence(*begin), sequence(*end)));
                if let Some(first) = blocks.next() {
                    let rest = [blocks.next(), blocks.next(), None];
                    options.push(TcpOptionElement::SelectiveAcknowledgement(first, rest));
                }
            }
            PacketKind::Reset => {
                header.rst = true;
                header.sequence_number = sequence(side.sent);
            }
            PacketKind::Datagram(_) => {}
        }
        if packet.what != PacketKind::Syn {
            header.ack = true;
            header.acknowledgment_number = sequence(side.acknowledged);
        }
        header.set_options(&options).map_err(io::Error::other)?;
        Ok(header)
    }
}

const fn codepoint(ecn: Codepoint) -> IpEcn {
    match ecn {
        Codepoint::NotEct => IpEcn::NotEct,
        Codepoint::Ect1 => IpEcn::Ect1,
        Codepoint::Ect0 => IpEcn::Ect0,
        Codepoint::Ce => IpEcn::CongestionExperienced,
    }
}

/// The sequence number of a byte, behind that of the SYN. It wraps around, as it should.
const fn sequence(position: u64) -> u32 {
    position.wrapping_add(1) as u32
}

const fn low_16(number: u64) -> u16 {
    (number & 0xffff) as u16
}

/// 10.0.0.1 for the first node.
const fn address(node: NodeId) -> [u8; 4] {
    let [.., second, third, fourth] = (node as u32 + 1).to_be_bytes();
    [10, second, third, fourth]
}

fn as_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}
