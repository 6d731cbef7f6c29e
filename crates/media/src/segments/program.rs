//! Which streams the program has that is cut: its tables (ISO/IEC 13818-1, 2.4.4).

use mpeg2ts_reader::StreamType;
use mpeg2ts_reader::mpegts_crc::sum32;
use mpeg2ts_reader::packet::{Packet, Pid};
use mpeg2ts_reader::psi::pat::{PAT_PID, PatSection, ProgramDescriptor};
use mpeg2ts_reader::psi::pmt::PmtSection;
use mpeg2ts_reader::psi::{
    BufferSectionSyntaxParser, CrcCheckWholeSectionSyntaxPayloadParser, CurrentNext, SectionCommonHeader,
    SectionPacketConsumer, SectionSyntaxSectionProcessor, TableSyntaxHeader, WholeSectionSyntaxPayloadParser,
};

use super::unit::Codec;

/// Tables of a program association and of a program map (2.4.4.4).
const PAT_TABLE: u8 = 0;
const PMT_TABLE: u8 = 2;
/// Header of a section with its version, and the CRC behind it.
const SECTION_HEADER: usize = SectionCommonHeader::SIZE + TableSyntaxHeader::SIZE;
const CRC: usize = 4;
/// Most streams of a program that are looked at.
const MOST_STREAMS: usize = 64;

type Sections = SectionPacketConsumer<
    SectionSyntaxSectionProcessor<
        BufferSectionSyntaxParser<CrcCheckWholeSectionSyntaxPayloadParser<CurrentSection>>,
    >,
>;

/// Keeps the section that came last, whole and with the right CRC.
struct CurrentSection;

impl WholeSectionSyntaxPayloadParser for CurrentSection {
    type Context = Option<Vec<u8>>;

    fn section<'a>(
        &mut self,
        context: &mut Self::Context,
        _: &SectionCommonHeader,
        header: &TableSyntaxHeader<'a>,
        data: &'a [u8],
    ) {
        if header.current_next_indicator() == CurrentNext::Current {
            *context = Some(data.to_vec());
        }
    }
}

fn sections() -> Sections {
    SectionPacketConsumer::new(SectionSyntaxSectionProcessor::new(BufferSectionSyntaxParser::new(
        CrcCheckWholeSectionSyntaxPayloadParser::new(CurrentSection),
    )))
}

/// The stream whose times are those of the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) pid: Pid,
    pub(super) codec: Codec,
}

/// What a packet is to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Media, or the clock.
    Media,
    /// The program's map has changed: what comes is another program.
    Changed,
    /// Not of this program, or a table, which every segment gets anew.
    Other,
}

/// The first program of a stream. A segment holds one only (RFC 8216, section 3.2).
pub(super) struct Program {
    associations: Sections,
    maps: Sections,
    number: u16,
    map_pid: Option<Pid>,
    map: Vec<u8>,
    /// Of its streams and of its clock.
    pids: Vec<Pid>,
    lead: Option<Lead>,
    /// Continuity counters of the tables that are written.
    counters: (u8, u8),
}

impl Program {
    pub(super) fn new() -> Self {
        Self {
            associations: sections(),
            maps: sections(),
            number: 0,
            map_pid: None,
            map: Vec::new(),
            pids: Vec::new(),
            lead: None,
            counters: (0, 0),
        }
    }

    /// The stream that tells the time, once the program's map has come: its video, or its sound.
    pub(super) fn lead(&self) -> Option<Lead> {
        self.lead
    }

    pub(super) fn role(&mut self, packet: &Packet<'_>) -> Role {
        let pid = packet.pid();
        if pid == PAT_PID {
            let mut section = None;
            self.associations.consume(&mut section, packet);
            return self.associate(section.as_deref());
        }
        if Some(pid) == self.map_pid {
            let mut section = None;
            self.maps.consume(&mut section, packet);
            return match section {
                Some(section) if section != self.map => self.map_changed(section),
                _ => Role::Other,
            };
        }
        if self.pids.contains(&pid) { Role::Media } else { Role::Other }
    }

    fn associate(&mut self, section: Option<&[u8]>) -> Role {
        let Some(section) = section.filter(|section| section[0] == PAT_TABLE) else { return Role::Other };
        let entries = section.get(SECTION_HEADER..section.len() - CRC).unwrap_or_default();
        // The reader takes entries of four bytes.
        let entries = &entries[..entries.len() / 4 * 4];
        let first = PatSection::new(entries).programs().find_map(|entry| match entry {
            ProgramDescriptor::Program { program_number, pid } => Some((program_number, pid)),
            ProgramDescriptor::Network { .. } => None,
        });
        match first {
            Some((number, pid)) if (number, Some(pid)) != (self.number, self.map_pid) => {
                let counters = self.counters;
                *self = Self { number, map_pid: Some(pid), counters, ..Self::new() };
                Role::Changed
            }
            _ => Role::Other,
        }
    }

    fn map_changed(&mut self, section: Vec<u8>) -> Role {
        // A stream of tables may hold those of other programs.
        let number = u16::from_be_bytes([section[3], section[4]]);
        if section[0] != PMT_TABLE || number != self.number {
            return Role::Other;
        }
        let body = section.get(SECTION_HEADER..section.len() - CRC).unwrap_or_default();
        let Ok(table) = PmtSection::from_bytes(body) else { return Role::Other };
        let streams: Vec<(StreamType, Pid)> = table
            .streams()
            .take(MOST_STREAMS)
            .map(|stream| (stream.stream_type(), stream.elementary_pid()))
            .collect();
        let of = |choose: fn(StreamType) -> Option<Codec>| {
            streams.iter().find_map(|(kind, pid)| Some(Lead { pid: *pid, codec: choose(*kind)? }))
        };
        self.lead = of(Codec::of_video).or_else(|| of(Codec::of_sound));
        self.pids = streams.iter().map(|(_, pid)| *pid).chain([table.pcr_pid()]).collect();
        self.map = section;
        Role::Changed
    }

    /// The packets with the program's tables that a segment begins with.
    pub(super) fn tables(&mut self) -> Vec<u8> {
        let Some(map_pid) = self.map_pid.filter(|_| !self.map.is_empty()) else { return Vec::new() };
        let mut association = vec![PAT_TABLE, 0xb0, 13, 0, 1, 0xc1, 0, 0];
        association.extend(self.number.to_be_bytes());
        association.extend((0xe000 | u16::from(map_pid)).to_be_bytes());
        association.extend(sum32(&association).to_be_bytes());
        let mut packets = packets(PAT_PID, &association, &mut self.counters.0);
        packets.extend(self::packets(map_pid, &self.map, &mut self.counters.1));
        packets
    }
}

/// A section in packets (2.4.4.1), with a continuity counter that goes on.
fn packets(pid: Pid, section: &[u8], counter: &mut u8) -> Vec<u8> {
    // The pointer says that the section begins at once.
    let payload = [&[0], section].concat();
    let mut packets = Vec::new();
    for (number, piece) in payload.chunks(Packet::SIZE - 4).enumerate() {
        let [high, low] = (u16::from(pid) | if number == 0 { 0x4000 } else { 0 }).to_be_bytes();
        packets.extend([Packet::SYNC_BYTE, high, low, 0x10 | *counter]);
        packets.extend(piece);
        packets.resize(packets.len() + Packet::SIZE - 4 - piece.len(), 0xff);
        *counter = (*counter + 1) % 16;
    }
    packets
}
