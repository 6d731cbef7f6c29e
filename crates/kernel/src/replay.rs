//! A trace of events on the BPF code.

use libbpf_rs::{MapHandle, Object, ProgramInput};

use congestion::control::Start;
use congestion::trace::{Event, Windows};
use units::Bytes;

use crate::error::Error;
use crate::loaded::{check_kernel, map, prepare, write_parameters};
use crate::setting::Setting;

const BITS: u32 = 20;
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Bytes of `struct event` (bpf/control.bpf.c), and where its answers begin.
const EVENT_SIZE: usize = 40;
const ANSWERS: usize = 24;

/// A flow without a socket, whose events happen in the kernel.
#[derive(Debug)]
pub struct Replay {
    object: Object,
    segment: u64,
    /// Bytes acknowledged until now: the BPF code counts in packets.
    acked: u64,
    _parameters: MapHandle,
}

impl Replay {
    /// A flow that begins.
    ///
    /// # Errors
    /// When the kernel cannot or will not load the program.
    pub fn new(setting: Setting, start: &Start) -> Result<Self, Error> {
        check_kernel()?;
        let object = prepare(None)?.load().map_err(|error| Error::refused("take the program", &error))?;
        let parameters = map(&object, "parameters")?;
        // As the core has it: an acknowledgement counts for one packet where the window grows, however much it acknowledges.
        write_parameters(&parameters, &setting.to_bytes(1))?;
        let segment = start.segment.get().max(1);
        let packets = |bytes: Bytes| u32::try_from(bytes.get() / segment).unwrap_or(u32::MAX);
        let mut replay = Self { object, segment, acked: 0, _parameters: parameters };
        let threshold = start.initial_ssthresh.map_or(NO_THRESHOLD, packets);
        replay.tell([0, packets(start.initial_window), 0, threshold, 0, 0])?;
        Ok(replay)
    }

    /// Lets an event happen; answers the windows after it.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn event(&mut self, event: &Event) -> Result<Windows, Error> {
        match event {
            Event::Ack(ack) => {
                let before = self.acked / self.segment;
                self.acked += ack.acked.get();
                let acked = u32::try_from(self.acked / self.segment - before).unwrap_or(u32::MAX);
                self.tell([1, acked, u32::from(ack.is_cwnd_limited), 0, 0, 0])
            }
            Event::Loss(loss) => self.tell([2, self.packets(loss.flight), 0, 0, 0, 0]),
            Event::Timeout(timeout) => {
                self.tell([3, self.packets(timeout.flight), 0, 0, u32::from(timeout.is_repeated), 0])
            }
            Event::Idle(_) => self.tell([4, 0, 0, 0, 0, 0]),
        }
    }

    fn packets(&self, bytes: Bytes) -> u32 {
        u32::try_from(bytes.get() / self.segment).unwrap_or(u32::MAX)
    }

    fn tell(&mut self, words: [u32; 6]) -> Result<Windows, Error> {
        let mut event = [0; EVENT_SIZE];
        for (place, byte) in event.iter_mut().zip(words.into_iter().flat_map(u32::to_ne_bytes)) {
            *place = byte;
        }
        let program = self.object.progs_mut().find(|program| program.name() == "replay");
        let missing =
            || Error::Refused { what: "replay", problem: "the program is not in the object".to_owned() };
        let input = ProgramInput { context_in: Some(&mut event), ..Default::default() };
        let output = program.ok_or_else(missing)?.test_run(input);
        let answer = output.map_err(|error| Error::refused("replay", &error))?.return_value;
        if answer != 0 {
            return Err(Error::Refused { what: "replay", problem: format!("the program answers {answer}") });
        }
        let window = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|i| event[at + i]);
            Bytes::new(((u128::from(u64::from_ne_bytes(bytes)) * u128::from(self.segment)) >> BITS) as u64)
        };
        let (cwnd, ssthresh) = (window(ANSWERS), window(ANSWERS + 8));
        let has_threshold = ssthresh.get() < u64::from(NO_THRESHOLD) * self.segment;
        Ok(Windows { cwnd, ssthresh: if has_threshold { ssthresh } else { Bytes::MAX } })
    }
}
