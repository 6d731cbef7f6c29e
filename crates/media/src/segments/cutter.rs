//! Where segments begin and end.

use std::collections::HashMap;

use anabranch_units::{Bytes, Duration};
use mpeg2ts_reader::packet::{Packet, Pid};

use super::parts::{Part, Start};
use super::program::{Lead, Program, Role};
use super::unit::{Codec, Stamp, Unit, begins};

/// Longest segment before the target duration is known.
const LONGEST: Duration = Duration::from_secs(30);
/// The target duration is that of a segment rounded to whole seconds (RFC 8216, 4.3.3.1): it is longer by
/// less than this.
const ROUNDING: Duration = Duration::from_millis(500);
/// How far the time of day that follows from the media may be from the one at which they come.
const DRIFT: Duration = Duration::from_secs(1);
/// A picture lasts so long when nothing else is known.
const PICTURE: Duration = Duration::from_millis(40);

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whole packets: the tables of the program, then its media.
    pub bytes: Vec<u8>,
    /// From its first picture to that of the next segment.
    pub duration: Duration,
    /// When its first picture came, since 1970.
    pub date: Duration,
    /// Whether it does not go on where the one before ended (RFC 8216, 4.3.2.3).
    pub is_discontinuity: bool,
}

/// Cuts a transport stream into segments that begin with a key frame, of the first program that it has.
///
/// A segment ends at the first key frame after the wanted duration. The longest one until then (the first, as a
/// rule) decides the target duration, which may not change; where a key frame is not there by then, the segment ends
/// without one. Where time stamps jump, or the program changes, a new part begins with the next key frame.
pub struct Segmenter {
    wanted: Duration,
    most: Bytes,
    target: Option<Duration>,
    program: Program,
    open: Option<Open>,
    closing: Option<Closing>,
    /// Bytes that are missing of the last unit of each stream; `None`: until the next one begins.
    left: HashMap<Pid, Option<usize>>,
    /// Whether the next segment does not follow the last one.
    is_apart: bool,
    /// The time of day of a time stamp.
    anchor: Option<(Stamp, Duration)>,
    ready: Vec<Cut>,
    /// How long parts are at the most, if there are to be any; those that are whole, and those that wait for the last one
    /// of the segment before.
    part_target: Option<Duration>,
    parts: Vec<Part>,
    waiting: Vec<Part>,
    /// Segments that have ended.
    ended: u64,
}

/// The segment that grows.
struct Open {
    bytes: Vec<u8>,
    begins: Stamp,
    last: Stamp,
    /// From the picture before the last one to the last one.
    step: Duration,
    date: Duration,
    is_discontinuity: bool,
    part: Growing,
}

impl Open {
    /// What its first part tells.
    fn start(&self) -> Option<Start> {
        let Self { date, is_discontinuity, .. } = *self;
        (self.part.from == 0).then_some(Start { date, is_discontinuity })
    }
}

/// The part that grows.
struct Growing {
    /// Where it begins among the segment's bytes.
    from: usize,
    begins: Stamp,
    is_independent: bool,
}

/// A segment that lacks the rest of what began in it.
struct Closing {
    cut: Cut,
    /// Its last part: where it begins, and all but its bytes.
    last: (usize, Part),
    /// The streams that go on in it.
    pids: Vec<Pid>,
}

impl Segmenter {
    /// Cuts after `wanted`, which is a second at least, or after `most` bytes. A playlist that goes on has a
    /// target duration already.
    pub fn new(wanted: Duration, most: Bytes, target: Option<Duration>) -> Self {
        let wanted = wanted.max(Duration::from_secs(1));
        Self {
            wanted,
            most,
            target: target.map(|target| target.max(rounded(wanted))),
            program: Program::new(),
            open: None,
            closing: None,
            left: HashMap::new(),
            is_apart: target.is_some(),
            anchor: None,
            ready: Vec::new(),
            part_target: None,
            parts: Vec::new(),
            waiting: Vec::new(),
            ended: 0,
        }
    }

    /// There are to be parts, no longer than `target` each: of whole pictures, as many as fit.
    #[must_use]
    pub fn with_parts(mut self, target: Duration) -> Self {
        self.part_target = Some(target);
        self
    }

    /// The parts that have become whole, those of a segment before the segment itself.
    pub fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    /// What no segment is longer than, in whole seconds; known with the first segment.
    pub fn target(&self) -> Option<Duration> {
        self.target
    }

    /// The next packets of the stream, which came at this time of day, since 1970. Answers with the segments
    /// that are whole now. What is no packet is left out.
    pub fn push(&mut self, packets: &[u8], now: Duration) -> Vec<Cut> {
        for packet in packets.chunks_exact(Packet::SIZE).filter_map(Packet::try_new) {
            if packet.transport_error_indicator() {
                continue;
            }
            match self.program.role(&packet) {
                Role::Media => self.media(&packet, now),
                Role::Changed => self.break_off(),
                Role::Other => {}
            }
        }
        std::mem::take(&mut self.ready)
    }

    /// Nothing comes for long, or any more: answers with what is there. What comes then is another part.
    pub fn finish(&mut self) -> Vec<Cut> {
        self.break_off();
        std::mem::take(&mut self.ready)
    }

    fn media(&mut self, packet: &Packet<'_>, now: Duration) {
        let Some(lead) = self.program.lead() else { return };
        if packet.pid() == lead.pid {
            if let Some(unit) = begins(packet, lead.codec) {
                self.unit(unit, now);
            }
        } else {
            self.follow(packet);
        }
        if let Some(closing) = self.closing.as_mut().filter(|closing| closing.pids.contains(&packet.pid())) {
            closing.cut.bytes.extend(packet.buffer());
        } else if let Some(open) = &mut self.open {
            open.bytes.extend(packet.buffer());
        }
        self.close_if_whole();
        let size = self.open.as_ref().map_or(0, |open| open.bytes.len());
        if Bytes::of(size) > self.most {
            self.break_off();
        }
    }

    /// A picture of the stream that leads begins.
    fn unit(&mut self, unit: Unit, now: Duration) {
        let Some(decoded) = unit.decoded else { return };
        let limit = self.target.unwrap_or(LONGEST);
        if let Some(open) = &mut self.open {
            match decoded.since(open.last) {
                Some(step) if decoded.since(open.begins).is_some_and(|length| length < limit + ROUNDING) => {
                    if !step.is_zero() {
                        open.step = step;
                    }
                    open.last = decoded;
                }
                _ => self.break_off(),
            }
        }
        let Some(open) = &self.open else {
            if unit.is_key {
                self.begin(decoded, now);
            }
            return;
        };
        let length = decoded.since(open.begins).unwrap_or(Duration::ZERO);
        let is_long = length + open.step / 2 >= self.wanted;
        if (unit.is_key && is_long) || length + open.step >= limit + ROUNDING {
            self.end(length);
            self.begin(decoded, now);
        } else {
            self.end_part(decoded, unit.is_key);
        }
    }

    /// Ends the part that grows where the picture at `next` would make it too long.
    fn end_part(&mut self, next: Stamp, is_key: bool) {
        let (Some(target), Some(open)) = (self.part_target, &mut self.open) else { return };
        let duration = next.since(open.part.begins).unwrap_or(Duration::ZERO);
        if duration.is_zero() || duration + open.step <= target {
            return;
        }
        let start = open.start();
        let growing = Growing { from: open.bytes.len(), begins: next, is_independent: is_key };
        let Growing { from, is_independent, .. } = std::mem::replace(&mut open.part, growing);
        let bytes = open.bytes[from..].to_vec();
        let part = Part { segment: self.ended, bytes, duration, is_independent, start };
        if self.closing.is_some() { self.waiting.push(part) } else { self.parts.push(part) }
    }

    /// A packet of a stream that does not lead: what is still to come of its last unit.
    fn follow(&mut self, packet: &Packet<'_>) {
        let pid = packet.pid();
        if let Some(unit) = begins(packet, Codec::Sound) {
            self.left.insert(pid, unit.left);
            if let Some(closing) = &mut self.closing {
                closing.pids.retain(|it| *it != pid);
            }
        } else if let (Some(Some(left)), Some(payload)) = (self.left.get_mut(&pid), packet.payload()) {
            *left = left.saturating_sub(payload.len());
        }
    }

    fn begin(&mut self, begins: Stamp, now: Duration) {
        let told = self.anchor.and_then(|(stamp, date)| Some(date + begins.since(stamp)?));
        // The subtraction stops at zero.
        let date = told.filter(|told| (*told - now) + (now - *told) <= DRIFT).unwrap_or(now);
        self.anchor = Some((begins, date));
        self.open = Some(Open {
            bytes: self.program.tables(),
            begins,
            last: begins,
            step: PICTURE,
            date,
            is_discontinuity: std::mem::take(&mut self.is_apart),
            part: Growing { from: 0, begins, is_independent: true },
        });
    }

    /// Ends the segment that grows; streams that are in the midst of a unit go on in it.
    fn end(&mut self, duration: Duration) {
        if let Some(closing) = self.closing.take() {
            self.close(closing);
        }
        let Some(open) = self.open.take() else { return };
        self.target.get_or_insert(rounded(duration).max(rounded(self.wanted)));
        let start = open.start();
        let Open { bytes, date, is_discontinuity, part, .. } = open;
        let before = part.begins.since(open.begins).unwrap_or(Duration::ZERO);
        let last = Part {
            segment: self.ended,
            bytes: Vec::new(),
            duration: duration - before,
            is_independent: part.is_independent,
            start,
        };
        self.ended += 1;
        let lead = self.program.lead().map(|Lead { pid, .. }| pid);
        let unfinished = self.left.iter().filter(|(pid, left)| Some(**pid) != lead && **left != Some(0));
        let pids = unfinished.map(|(pid, _)| *pid).collect();
        let cut = Cut { bytes, duration, date, is_discontinuity };
        self.closing = Some(Closing { cut, last: (part.from, last), pids });
        self.close_if_whole();
    }

    fn close_if_whole(&mut self) {
        let whole = self.closing.take_if(|closing| {
            let is_large = Bytes::of(closing.cut.bytes.len()) > self.most;
            is_large || closing.pids.iter().all(|pid| self.left.get(pid) == Some(&Some(0)))
        });
        if let Some(closing) = whole {
            self.close(closing);
        }
    }

    /// A segment is whole, and with it its last part.
    fn close(&mut self, closing: Closing) {
        let Closing { cut, last: (from, last), .. } = closing;
        if self.part_target.is_some() {
            self.parts.push(Part { bytes: cut.bytes[from..].to_vec(), ..last });
            self.parts.append(&mut self.waiting);
        }
        self.ready.push(cut);
    }

    /// Ends everything here: what comes does not belong to it.
    fn break_off(&mut self) {
        if let Some(open) = &self.open {
            let length = open.last.since(open.begins).unwrap_or(Duration::ZERO) + open.step;
            self.end(length);
        }
        if let Some(closing) = self.closing.take() {
            self.close(closing);
        }
        self.left.clear();
        self.anchor = None;
        self.is_apart = self.is_apart || self.target.is_some();
    }
}

/// In whole seconds, as a target duration is compared; one at least.
fn rounded(duration: Duration) -> Duration {
    Duration::from_secs(((duration + ROUNDING).as_millis() / 1000).max(1))
}
