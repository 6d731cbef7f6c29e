//! MPEG transport stream: no header tells its duration, but the clock that it carries (PCR, ISO/IEC 13818-1,
//! 2.4.3.5) does: the bytes and the time between two of its values give the rate.

use anabranch_units::{Bytes, Duration, Rate};
use mpeg2ts_reader::packet::{Packet, Pid};

use super::film::{Chunk, Container, Film, MediaFacts, Step};

/// How much of the film's head and of its tail is searched for the clock.
const SEARCHED: u64 = 1 << 20;
/// Ticks of the clock per second.
const TICKS_PER_SECOND: u64 = 27_000_000;
/// The clock starts again after this many ticks, 26.5 hours.
const CLOCK_WRAPS: u64 = (1 << 33) * 300;
/// Packets that must follow each other before bytes are taken for a transport stream.
const PACKETS_IN_SYNC: usize = 3;
/// By how much the rate of a whole film may differ from that of its head before the clock is taken to have
/// jumped.
const JUMP: f64 = 20.0;

/// What was seen of the film's clock.
#[derive(Debug, Default)]
pub(super) struct Walk {
    first: Option<Tick>,
    last: Option<Tick>,
    /// The rate of the head, once it was searched.
    head: Option<Rate>,
}

/// One value of the clock.
#[derive(Clone, Copy, Debug)]
struct Tick {
    pid: Pid,
    offset: u64,
    clock: u64,
}

/// Whether a film begins like this: with packets in a row, perhaps after the rest of one.
pub(super) fn begins(head: &[u8]) -> bool {
    first_packet(head).is_some()
}

/// Where the first of some packets in a row begins.
fn first_packet(bytes: &[u8]) -> Option<usize> {
    let last = (PACKETS_IN_SYNC - 1) * Packet::SIZE;
    (0..Packet::SIZE.min(bytes.len().saturating_sub(last))).find(|start| {
        bytes[*start..]
            .iter()
            .step_by(Packet::SIZE)
            .take(PACKETS_IN_SYNC)
            .all(|byte| Packet::is_sync_byte(*byte))
    })
}

impl Walk {
    pub(super) fn step(&mut self, chunk: Chunk<'_>, film: Film) -> Step {
        self.search(chunk);
        let end = chunk.offset.saturating_add(Bytes::of(chunk.bytes.len()).get());
        if self.head.is_some() {
            return self.finish(film);
        }
        // The first answer may have been a short one, and a short answer means that there is no more.
        if end < SEARCHED && !chunk.bytes.is_empty() && film.size.is_none_or(|size| end < size) {
            return film.need(end, SEARCHED - end);
        }
        self.head = Some(self.rate());
        match film.size.map(|size| size.saturating_sub(SEARCHED)) {
            Some(tail) if tail > end => film.need(tail, SEARCHED),
            Some(tail) if tail > 0 => film.need(end, SEARCHED),
            _ => self.finish(film),
        }
    }

    /// Notes the clock's values in a piece of the film. The clock is that of the first program that has one.
    fn search(&mut self, chunk: Chunk<'_>) {
        let Some(start) = first_packet(chunk.bytes) else { return };
        for (number, packet) in chunk.bytes[start..].chunks_exact(Packet::SIZE).enumerate() {
            let Some(packet) = Packet::try_new(packet) else { continue };
            let Some(Ok(clock)) = packet.adaptation_field().map(|field| field.pcr()) else { continue };
            let offset = chunk.offset + Bytes::of(start + number * Packet::SIZE).get();
            let tick = Tick { pid: packet.pid(), offset, clock: u64::from(clock) };
            if self.first.get_or_insert(tick).pid == tick.pid {
                self.last = Some(tick);
            }
        }
    }

    /// The rate between the first and the last value of the clock, zero when they do not tell.
    fn rate(&self) -> Rate {
        let (Some(first), Some(last)) = (self.first, self.last) else { return Rate::ZERO };
        let ticks = (last.clock % CLOCK_WRAPS + CLOCK_WRAPS - first.clock % CLOCK_WRAPS) % CLOCK_WRAPS;
        Rate::of(
            Bytes::new(last.offset.saturating_sub(first.offset)),
            Duration::from_nanos(ticks.saturating_mul(1000) / (TICKS_PER_SECOND / 1_000_000)),
        )
    }

    fn finish(&self, film: Film) -> Step {
        let (head, whole) = (self.head.unwrap_or_default(), self.rate());
        let ratio = whole.ratio_to(head);
        let mean_rate = if head.is_zero() || (1.0 / JUMP..JUMP).contains(&ratio) { whole } else { head };
        if mean_rate.is_zero() {
            return Step::NOTHING;
        }
        let duration = film.size.map(|size| mean_rate.time_for(Bytes::new(size)));
        Step::Done(Some(MediaFacts { container: Container::MpegTs, duration, mean_rate, index: None }))
    }
}
