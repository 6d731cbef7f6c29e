//! Where a picture, or a piece of sound, begins in a transport stream, and whether a player can begin there.

use mpeg2ts_reader::StreamType;
use mpeg2ts_reader::packet::Packet;
use mpeg2ts_reader::pes::{PesContents, PesHeader, PesLength, PtsDts};

/// Time stamps start again after 33 bits (ISO/IEC 13818-1, 2.4.3.7).
const WRAPS: u64 = 1 << 33;
/// Ticks a second.
const TICKS: u64 = 90_000;

/// How it is told whether a player can begin with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Sound: anywhere.
    Sound,
    /// H.264, by its NAL units.
    H264,
    /// H.265, by its NAL units.
    H265,
    /// Other video, by what the multiplexer says of it.
    Video,
}

impl Codec {
    /// Of a stream of video.
    pub(super) fn of_video(kind: StreamType) -> Option<Self> {
        match kind {
            StreamType::H264 => Some(Self::H264),
            StreamType::H265 => Some(Self::H265),
            StreamType::ISO_11172_VIDEO | StreamType::H262 | StreamType::ISO_14496_2_VISUAL => {
                Some(Self::Video)
            }
            _ => None,
        }
    }

    /// Of a stream of sound.
    pub(super) fn of_sound(kind: StreamType) -> Option<Self> {
        let is_sound = [
            StreamType::ISO_11172_AUDIO,
            StreamType::ISO_138183_AUDIO,
            StreamType::ADTS,
            StreamType::LATM,
            StreamType::ATSC_DOLBY_DIGITAL_AUDIO,
            // In DVB that of AC-3 and of Opus.
            StreamType::H222_0_PES_PRIVATE_DATA,
        ]
        .contains(&kind);
        is_sound.then_some(Self::Sound)
    }

    /// Whether what begins like this shows a picture without those before it. Only the packet in which it
    /// begins is looked at: there are the parameter sets that encoders of live media repeat for that.
    fn is_key(self, begins: &[u8]) -> bool {
        let mut units = begins.windows(4).filter(|bytes| bytes.starts_with(&[0, 0, 1])).map(|bytes| bytes[3]);
        match self {
            Self::Sound => true,
            // IDR picture, sequence parameter set (H.264, table 7-1).
            Self::H264 => units.any(|unit| matches!(unit & 0x1f, 5 | 7)),
            // Pictures of random access, parameter sets (H.265, table 7-1).
            Self::H265 => units.any(|unit| matches!(unit >> 1 & 0x3f, 16..=21 | 32 | 33)),
            // A sequence header (H.262, 6.2.2.1).
            Self::Video => units.any(|unit| unit == 0xb3),
        }
    }
}

/// A time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u64);

impl Stamp {
    pub(super) fn new(ticks: u64) -> Self {
        Self(ticks % WRAPS)
    }

    /// How much later this is than another one; `None` when it is earlier.
    pub(super) fn since(self, other: Self) -> Option<anabranch_units::Duration> {
        let ticks = (self.0 + WRAPS - other.0) % WRAPS;
        (ticks < WRAPS / 2).then(|| anabranch_units::Duration::from_nanos(ticks * 1_000_000 / TICKS * 1000))
    }
}

/// What begins in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// When it is decoded, which never goes back; `None`: it does not say.
    pub(super) decoded: Option<Stamp>,
    /// Whether a player can begin here.
    pub(super) is_key: bool,
    /// Bytes of it that come in later packets; `None`: it ends where the next begins.
    pub(super) left: Option<usize>,
}

/// What begins in this packet of a stream of media.
pub(super) fn begins(packet: &Packet<'_>, codec: Codec) -> Option<Unit> {
    let payload = packet.payload().filter(|_| packet.payload_unit_start_indicator())?;
    let header = PesHeader::from_bytes(payload)?;
    let left = match header.pes_packet_length() {
        PesLength::Bounded(length) => Some((usize::from(length.get()) + 6).saturating_sub(payload.len())),
        PesLength::Unbounded => None,
    };
    let PesContents::Parsed(Some(contents)) = header.contents() else {
        return Some(Unit { decoded: None, is_key: false, left });
    };
    let decoded = match contents.pts_dts() {
        Ok(PtsDts::PtsOnly(Ok(stamp)) | PtsDts::Both { dts: Ok(stamp), .. }) => {
            Some(Stamp::new(stamp.value()))
        }
        _ => None,
    };
    let is_marked = packet.adaptation_field().is_some_and(|field| field.random_access_indicator());
    Some(Unit { decoded, is_key: is_marked || codec.is_key(contents.payload()), left })
}
