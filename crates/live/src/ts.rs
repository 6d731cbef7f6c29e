//! A byte stream in packets for the network: whole packets of an MPEG transport stream (ISO/IEC 13818-1,
//! 2.4.3.2) where it is one, and the pace of a file by its clock (PCR, 2.4.3.5).

use std::sync::Arc;

use anabranch_units::{Bytes, Duration, Rate};
use mpeg2ts_reader::packet::{Packet, Pid};

use anabranch_protocol::live::wire::MAX_PAYLOAD;

/// Packets that must begin where the one before ends until bytes are taken for a transport stream.
const PACKETS_IN_SYNC: usize = 3;
/// So much is looked at until it is decided what a stream is, and until a file's clock must have shown
/// itself.
const SEARCHED: usize = 4 << 20;
/// The clock starts again after this many ticks of 27 MHz, 26.5 hours.
const CLOCK_WRAPS: u64 = (1 << 33) * 300;
/// The clock has to be there ten times a second (2.7.2); after a longer step it has jumped.
const LONGEST_STEP: Duration = Duration::from_secs(5);

/// What the bytes of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An MPEG transport stream.
    Transport,
    /// Anything else: it is cut anywhere.
    Bytes,
}

/// Cuts a byte stream into payloads.
#[derive(Clone, Debug, Default)]
pub struct Packetiser {
    kind: Option<Kind>,
    buffer: Vec<u8>,
    skipped: Bytes,
}

impl Packetiser {
    /// Finds out by itself what the stream is.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the stream is, once it is known.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Bytes between packets that were skipped, since no packet began where one should.
    pub fn skipped(&self) -> Bytes {
        self.skipped
    }

    /// Whether bytes wait for more, so that a payload is full.
    pub fn is_waiting(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// More of the stream. Answers with the payloads of at most `most` bytes that are full.
    pub fn push(&mut self, bytes: &[u8], most: usize) -> Vec<Arc<[u8]>> {
        self.buffer.extend(bytes);
        self.cut(most, false)
    }

    /// No more may come for a while: answers with what is there, in whole packets. At the end of the stream
    /// (`is_end`) what is there of a last packet counts as skipped.
    pub fn flush(&mut self, most: usize, is_end: bool) -> Vec<Arc<[u8]>> {
        let mut payloads = self.cut(most, true);
        if is_end && !self.buffer.is_empty() {
            if self.kind.is_none() {
                self.kind = Some(Kind::Bytes);
                payloads.extend(self.cut(most, true));
            }
            self.skipped += Bytes::of(self.buffer.len());
            self.buffer.clear();
        }
        payloads
    }

    fn cut(&mut self, most: usize, is_flush: bool) -> Vec<Arc<[u8]>> {
        let most = most.clamp(Packet::SIZE, MAX_PAYLOAD);
        let mut payloads = Vec::new();
        if self.kind.is_none() {
            self.kind = recognise(&self.buffer);
        }
        let unit = match self.kind {
            None => return payloads,
            Some(Kind::Transport) => {
                self.skip_to_sync();
                Packet::SIZE
            }
            Some(Kind::Bytes) => 1,
        };
        let full = most / unit * unit;
        let mut start = 0;
        loop {
            let rest = &self.buffer[start..];
            let in_sync = if unit == 1 { rest.len() } else { in_sync(rest) };
            let length = in_sync.min(full);
            // A payload ends early before bytes that are no packet.
            let ends_here = is_flush || (unit > 1 && rest.len() - in_sync >= Packet::SIZE);
            if length == 0 && ends_here && rest.len() >= Packet::SIZE {
                self.buffer.drain(..start);
                start = 0;
                let before = self.buffer.len();
                self.skip_to_sync();
                if self.buffer.len() == before {
                    break;
                }
                continue;
            }
            if length == 0 || (length < full && !ends_here) {
                break;
            }
            payloads.push(rest[..length].into());
            start += length;
        }
        self.buffer.drain(..start);
        payloads
    }

    /// Skips bytes until a packet begins, and more follow as far as there are bytes.
    fn skip_to_sync(&mut self) {
        let begins = |start: &usize| {
            let mut marks = self.buffer[*start..].iter().step_by(Packet::SIZE).take(PACKETS_IN_SYNC);
            marks.all(|byte| Packet::is_sync_byte(*byte))
        };
        if begins(&0) || self.buffer.first().copied().is_some_and(Packet::is_sync_byte) {
            return;
        }
        let start = (0..self.buffer.len()).find(begins).unwrap_or(self.buffer.len());
        self.skipped += Bytes::of(start);
        self.buffer.drain(..start);
    }
}

/// Length of the packets that begin where the one before ends.
fn in_sync(bytes: &[u8]) -> usize {
    let whole = bytes.chunks_exact(Packet::SIZE).take_while(|packet| Packet::is_sync_byte(packet[0]));
    whole.count() * Packet::SIZE
}

/// What a stream is that begins like this; `None`: too little is there.
fn recognise(head: &[u8]) -> Option<Kind> {
    if head.is_empty() {
        return None;
    }
    // A transport stream may begin in the middle of a packet.
    let needed = PACKETS_IN_SYNC * Packet::SIZE;
    let marks = |start: usize| head[start..].iter().step_by(Packet::SIZE).take(PACKETS_IN_SYNC);
    let could_begin = |start: &usize| marks(*start).all(|byte| Packet::is_sync_byte(*byte));
    match (0..Packet::SIZE.min(head.len())).find(could_begin) {
        Some(start) if head.len() - start >= needed => Some(Kind::Transport),
        Some(_) if head.len() < needed + Packet::SIZE => None,
        None if head.len() < needed => Some(Kind::Bytes).filter(|_| head.len() >= Packet::SIZE),
        _ => Some(Kind::Bytes),
    }
}

/// Tells the time of every part of a file by its clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    pid: Option<Pid>,
    last: Option<u64>,
    /// Since the file began.
    now: Duration,
    /// What the clock has told so far: bytes, and how long they take.
    told: (Bytes, Duration),
    /// What has no time yet.
    waiting: Vec<Arc<[u8]>>,
    waiting_size: usize,
    /// Bytes since the clock's last value.
    since_clock: usize,
}

/// A value of the clock.
#[derive(Clone, Copy, Debug)]
struct Value {
    /// Of 27 MHz.
    ticks: u64,
    /// The file says that its clock begins anew here (discontinuity_indicator, 2.4.3.5).
    is_new: bool,
}

/// A part of a file and when it is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Payloads, one after the other.
    pub payloads: Vec<Arc<[u8]>>,
    /// When the first is sent, from the file's beginning.
    pub begins: Duration,
    /// When what follows is sent.
    pub ends: Duration,
}

/// A file tells no pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file has no clock that tells its rate: give one with --rate")]
pub struct NoClock;

impl Clock {
    /// The next payload of whole packets. Answers with a part whose time is known now.
    ///
    /// # Errors
    /// No clock has come for long.
    pub fn push(&mut self, payload: Arc<[u8]>) -> Result<Option<Part>, NoClock> {
        let value = payload.chunks_exact(Packet::SIZE).find_map(|bytes| self.value(bytes));
        let part = value.and_then(|value| self.step(value));
        self.waiting_size += payload.len();
        self.since_clock += payload.len();
        self.waiting.push(payload);
        if part.is_none() && self.waiting_size > SEARCHED {
            return if self.has_no_rate() { Err(NoClock) } else { Ok(self.finish()) };
        }
        Ok(part)
    }

    /// Whether nothing has told a rate so far.
    pub fn has_no_rate(&self) -> bool {
        self.rate().is_zero()
    }

    /// The rest of the file, at the mean rate.
    pub fn finish(&mut self) -> Option<Part> {
        // What follows begins anew: this has its time.
        self.last = None;
        self.part(self.time_for(self.waiting_size))
    }

    /// The mean: that of the last interval may be of one packet, and what it would make of a jump a stall or
    /// a burst.
    fn rate(&self) -> Rate {
        let (bytes, span) = self.told;
        if span.is_zero() { Rate::ZERO } else { Rate::of(bytes, span) }
    }

    /// How long bytes take about which the clock says nothing.
    fn time_for(&self, bytes: usize) -> Duration {
        if self.has_no_rate() { Duration::ZERO } else { self.rate().time_for(Bytes::of(bytes)) }
    }

    /// The clock in a packet, if it has one and it is that of the first program.
    fn value(&mut self, bytes: &[u8]) -> Option<Value> {
        let packet = Packet::try_new(bytes)?;
        let field = packet.adaptation_field()?;
        let clock = field.pcr().ok()?;
        let is_mine = *self.pid.get_or_insert(packet.pid()) == packet.pid();
        let value = Value { ticks: u64::from(clock) % CLOCK_WRAPS, is_new: field.discontinuity_indicator() };
        is_mine.then_some(value)
    }

    /// The clock has come to `value`, and what waits was before.
    fn step(&mut self, value: Value) -> Option<Part> {
        let last = self.last.replace(value.ticks).filter(|_| !value.is_new);
        let since = std::mem::take(&mut self.since_clock);
        let step = last.map(|last| {
            let ticks = (value.ticks + CLOCK_WRAPS - last) % CLOCK_WRAPS;
            Duration::from_nanos(ticks.saturating_mul(1000) / 27)
        });
        let step = step.filter(|step| *step <= LONGEST_STEP);
        if let Some(step) = step {
            self.told = (self.told.0 + Bytes::of(since), self.told.1 + step);
        }
        if self.has_no_rate() {
            // Sent now, it would be a burst.
            return None;
        }
        let untold = self.waiting_size - step.map_or(0, |_| since);
        self.part(step.unwrap_or(Duration::ZERO) + self.time_for(untold))
    }

    fn part(&mut self, step: Duration) -> Option<Part> {
        let payloads = std::mem::take(&mut self.waiting);
        self.waiting_size = 0;
        let begins = self.now;
        self.now += step;
        (!payloads.is_empty()).then_some(Part { payloads, begins, ends: self.now })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = MAX_PAYLOAD;

    /// A packet, with a clock if a value is given.
    fn packet(number: u8, clock: Option<u64>) -> Vec<u8> {
        let mut packet = vec![0x47, 0x01, 0x00, 0x10];
        if let Some(clock) = clock {
            let (base, extension) = (clock / 300, clock % 300);
            packet[3] = 0x30;
            packet.extend([7, 0x10]);
            packet.extend(&(base << 15 | 0x7e00 | extension).to_be_bytes()[2..]);
        }
        packet.resize(Packet::SIZE, number);
        packet
    }

    fn stream(count: u8) -> Vec<u8> {
        (0..count).flat_map(|number| packet(number, None)).collect()
    }

    #[test]
    fn payloads_are_whole_packets() {
        let mut packetiser = Packetiser::new();
        let mut payloads = packetiser.push(&stream(17), MOST);
        assert_eq!(payloads.iter().map(|payload| payload.len()).collect::<Vec<_>>(), [MOST, MOST]);
        payloads.extend(packetiser.flush(MOST, false));
        assert_eq!((payloads.concat(), packetiser.kind()), (stream(17), Some(Kind::Transport)));
        assert!(!packetiser.is_waiting() && packetiser.skipped().is_zero());
        assert_eq!(packetiser.push(&stream(12), 6 * 188 + 100)[0].len(), 6 * 188);
    }

    #[test]
    fn bytes_that_are_no_packets_are_skipped() {
        let mut packetiser = Packetiser::new();
        let mut payloads = packetiser.push(&[0; 100], MOST);
        let mut input = stream(10);
        input.extend([1; 77]);
        input.extend(stream(9));
        input.extend([0x47; 20]);
        payloads.extend(packetiser.push(&input, MOST));
        payloads.extend(packetiser.flush(MOST, true));
        assert_eq!(packetiser.kind(), Some(Kind::Transport));
        assert_eq!(payloads.concat(), [stream(10), stream(9)].concat());
        assert_eq!(packetiser.skipped(), Bytes::new(100 + 77 + 20));
    }

    #[test]
    fn a_stream_of_anything_is_cut_anywhere() {
        let input: Vec<u8> = (0..5000u32).map(|byte| (byte % 251) as u8).collect();
        let mut packetiser = Packetiser::new();
        let mut payloads = packetiser.push(&input, 1000);
        assert_eq!(payloads.len(), 5);
        payloads.extend(packetiser.flush(1000, true));
        assert_eq!((payloads.concat(), packetiser.kind()), (input, Some(Kind::Bytes)));
        let mut short = Packetiser::new();
        let mut payloads = short.push(&[0x47, 1, 2], MOST);
        payloads.extend(short.flush(MOST, true));
        assert_eq!(payloads.concat(), [0x47, 1, 2]);
    }

    proptest! {
        #[test]
        fn nothing_of_a_stream_in_sync_is_lost(cuts in prop::collection::vec(1usize..3000, 1..60)) {
            let input = stream(250);
            let mut packetiser = Packetiser::new();
            let (mut payloads, mut rest) = (Vec::new(), &input[..]);
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                payloads.extend(packetiser.push(head, MOST));
                rest = tail;
            }
            payloads.extend(packetiser.push(rest, MOST));
            payloads.extend(packetiser.flush(MOST, true));
            prop_assert!(payloads.iter().all(|payload| payload.len() % Packet::SIZE == 0));
            prop_assert_eq!(payloads.concat(), input);
        }

        #[test]
        fn anything_can_come(
            pieces in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0x47u8), any::<u8>()], 0..700), 0..20),
        ) {
            let mut packetiser = Packetiser::new();
            let (mut taken, mut given) = (0, 0);
            for piece in &pieces {
                taken += piece.len();
                let payloads = packetiser.push(piece, MOST);
                prop_assert!(payloads.iter().all(|payload| (1..=MOST).contains(&payload.len())));
                given += payloads.iter().map(|payload| payload.len()).sum::<usize>();
            }
            given += packetiser.flush(MOST, true).iter().map(|payload| payload.len()).sum::<usize>();
            prop_assert_eq!(given + packetiser.skipped().as_usize(), taken);
        }
    }

    #[test]
    fn a_file_goes_at_the_pace_of_its_clock() {
        const TICKS: u64 = 27_000_000;
        let mut clock = Clock::default();
        let mut parts = Vec::new();
        // 40 ms from value to value; the clock starts again, and jumps in the end.
        let values =
            [CLOCK_WRAPS - TICKS / 25, 0, TICKS / 25, 2 * TICKS / 25, TICKS * 100, TICKS * 100 + TICKS / 25];
        for value in values {
            parts.extend(clock.push(packet(1, Some(value)).into()).unwrap());
            parts.extend(clock.push(packet(2, None).into()).unwrap());
        }
        parts.extend(clock.finish());
        let times: Vec<_> =
            parts.iter().map(|part| (part.begins.as_millis(), part.ends.as_millis())).collect();
        assert_eq!(times, [(0, 40), (40, 80), (80, 120), (120, 160), (160, 200), (200, 240)]);
        assert!(parts.iter().all(|part| part.payloads.len() == 2));
    }

    /// Two packets for each value of the clock, or for 40 ms without one. Answers with when each part begins
    /// and ends.
    fn pace(values: &[(Option<u64>, bool)]) -> Vec<(u64, u64)> {
        let (mut clock, mut parts) = (Clock::default(), Vec::new());
        for (value, is_new) in values {
            let mut first = packet(1, *value);
            first[5] |= if *is_new { 0x80 } else { 0 };
            parts.extend(clock.push(first.into()).unwrap());
            parts.extend(clock.push(packet(2, None).into()).unwrap());
        }
        parts.extend(clock.finish());
        parts.iter().map(|part| (part.begins.as_millis(), part.ends.as_millis())).collect()
    }

    const FRAME: u64 = 27_000_000 / 25;

    #[test]
    fn behind_a_jump_a_file_goes_on_at_its_mean_rate() {
        // The twelfth interval takes ten times as long as the others: at the jump the mean is 70 ms, at the
        // end 67.7.
        let mut values: Vec<_> = (0..12).map(|number| (Some(number * FRAME), false)).collect();
        values.push((Some(21 * FRAME), false));
        values.push((Some(500_000_000_000), false));
        values.push((Some(500_000_000_000 + FRAME), false));
        let times = pace(&values);
        assert_eq!(times[11..], [(440, 840), (840, 910), (910, 950), (950, 1017)]);
    }

    #[test]
    fn a_file_may_say_that_its_clock_begins_anew() {
        let values =
            [(Some(0), false), (Some(FRAME), false), (Some(100 * FRAME), true), (Some(101 * FRAME), false)];
        assert_eq!(pace(&values), [(0, 40), (40, 80), (80, 120), (120, 160)]);
    }

    #[test]
    fn what_comes_before_a_rate_is_known_is_no_burst() {
        let values = [
            (None, false),
            (Some(FRAME), false),
            (Some(90_000_000_000), false),
            (Some(0), false),
            (Some(FRAME), false),
        ];
        assert_eq!(pace(&values), [(0, 160), (160, 200)]);
        let mut clock = Clock::default();
        for jump in 0..100 {
            let value = jump % 2 * 90_000_000_000;
            assert_eq!(clock.push(packet(1, Some(value)).into()), Ok(None));
        }
        assert!(clock.has_no_rate());
    }

    #[test]
    fn a_file_without_a_clock_is_told() {
        let mut clock = Clock::default();
        let payload: Arc<[u8]> = stream(7).into();
        assert!((0..10_000).any(|_| clock.push(payload.clone()).is_err()));
    }

    proptest! {
        #[test]
        fn a_clock_of_garbage_stops_nothing(
            heads in prop::collection::vec((any::<[u8; 12]>(), any::<bool>()), 1..200),
        ) {
            let (mut clock, mut parts, mut ends) = (Clock::default(), 0, Duration::ZERO);
            for (head, is_mine) in &heads {
                let mut packet = packet(0, None);
                packet[1..13].copy_from_slice(head);
                if *is_mine {
                    // Of the first program, and with room for a clock.
                    packet[1..6].copy_from_slice(&[1, 0, 0x30, 7, head[4] | 0x10]);
                }
                if let Ok(Some(part)) = clock.push(packet.into()) {
                    prop_assert!(part.begins == ends && part.ends >= part.begins);
                    (parts, ends) = (parts + part.payloads.len(), part.ends);
                }
            }
            parts += clock.finish().map_or(0, |part| part.payloads.len());
            prop_assert_eq!(parts, heads.len());
        }
    }
}
