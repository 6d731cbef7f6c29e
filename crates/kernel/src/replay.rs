//! A trace of events on the BPF code.

use libbpf_rs::{MapHandle, Object, ProgramInput};

use anabranch_congestion::control::Start;
use anabranch_congestion::joint::MemberReport;
use anabranch_congestion::trace::{Event, Windows};
use anabranch_congestion::vps::Weight;
use anabranch_units::{Bytes, Time};

use crate::error::Error;
use crate::machine::check_kernel;
use crate::object::{Wanted, map, prepare, write_parameters};
use crate::setting::{PARAMETERS_SIZE, Setting};

const BITS: u32 = 20;
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Bytes of `struct event` (bpf/control.bpf.c), and where its answers begin.
const EVENT_SIZE: usize = 40;
const ANSWERS: usize = 24;

fn object(program: &'static str) -> Result<Object, Error> {
    check_kernel()?;
    prepare(Wanted::Replay(program))?.load().map_err(|error| Error::refused("take the program", &error))
}

/// Runs a program of the object once on an event, which it changes.
fn run(object: &mut Object, name: &'static str, event: &mut [u8]) -> Result<(), Error> {
    let program = object.progs_mut().find(|program| program.name() == name);
    let missing = || Error::Refused { what: name, problem: "the program is not in the object".to_owned() };
    let input = ProgramInput { context_in: Some(event), ..Default::default() };
    let output = program.ok_or_else(missing)?.test_run(input);
    match output.map_err(|error| Error::refused(name, &error))?.return_value {
        0 => Ok(()),
        answer => Err(Error::Refused { what: name, problem: format!("the program answers {answer}") }),
    }
}

/// A flow without a socket, whose events happen in the kernel.
#[derive(Debug)]
pub struct Replay {
    object: Object,
    segment: u64,
    /// Bytes acknowledged until now: the BPF code counts in packets.
    acked: u64,
    parameters: MapHandle,
}

impl Replay {
    /// A flow that begins.
    ///
    /// # Errors
    /// When the kernel cannot or will not load the program.
    pub fn new(setting: Setting, start: &Start) -> Result<Self, Error> {
        let object = object("replay")?;
        let parameters = map(&object, "parameters")?;
        // As the core has it: an acknowledgement counts for one packet where the window grows, however much
        // it acknowledges.
        write_parameters(&parameters, &setting.to_bytes(1))?;
        let segment = start.segment.get().max(1);
        let packets = |bytes: Bytes| u32::try_from(bytes.get() / segment).unwrap_or(u32::MAX);
        let mut replay = Self { object, segment, acked: 0, parameters };
        let threshold = start.initial_ssthresh.map_or(NO_THRESHOLD, packets);
        replay.tell([0, packets(start.initial_window), 0, threshold, 0, 0])?;
        Ok(replay)
    }

    /// Writes what no [`Setting`] gives into the parameters, as another program of root's could.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn garble(&mut self, words: [u32; PARAMETERS_SIZE / 4]) -> Result<(), Error> {
        write_parameters(&self.parameters, &words.map(u32::to_ne_bytes).concat())
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

    /// The kernel asks for a threshold with so much in flight; answers the windows after it. More often than
    /// a loss event happens.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn threshold(&mut self, flight: Bytes) -> Result<Windows, Error> {
        self.tell([5, self.packets(flight), 0, 0, 0, 0])
    }

    fn packets(&self, bytes: Bytes) -> u32 {
        u32::try_from(bytes.get() / self.segment).unwrap_or(u32::MAX)
    }

    fn tell(&mut self, words: [u32; 6]) -> Result<Windows, Error> {
        let mut event = [0; EVENT_SIZE];
        for (place, byte) in event.iter_mut().zip(words.into_iter().flat_map(u32::to_ne_bytes)) {
            *place = byte;
        }
        run(&mut self.object, "replay", &mut event)?;
        let window = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|i| event[at + i]);
            Bytes::new(((u128::from(u64::from_ne_bytes(bytes)) * u128::from(self.segment)) >> BITS) as u64)
        };
        let (cwnd, ssthresh) = (window(ANSWERS), window(ANSWERS + 8));
        let has_threshold = ssthresh.get() < u64::from(NO_THRESHOLD) * self.segment;
        Ok(Windows { cwnd, ssthresh: if has_threshold { ssthresh } else { Bytes::MAX } })
    }
}

/// Bytes of `struct group_event` (bpf/control.bpf.c), and where its answers are.
const GROUP_EVENT_SIZE: usize = 56;
const PLACE: usize = 4;
const WINDOW: usize = 44;
const TOTAL: usize = 48;

/// A group without sockets, whose events happen in the kernel.
#[derive(Debug)]
pub struct ReplayGroup {
    object: Object,
    weights: Vec<Weight>,
}

impl ReplayGroup {
    /// A group without members.
    ///
    /// # Errors
    /// When the kernel cannot or will not load the program.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { object: object("replay_group")?, weights: vec![Weight::ONE; Setting::MOST_MEMBERS] })
    }

    /// A connection joins. Answers its place; `None` when the group is full.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn join(&mut self, weight: Weight, now: Time) -> Result<Option<usize>, Error> {
        self.join_late(weight, 0, NO_THRESHOLD, now)
    }

    /// A connection that was on its own joins with its window and threshold, packets. Answers as
    /// [`ReplayGroup::join`].
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn join_late(
        &mut self,
        weight: Weight,
        cwnd: u32,
        ssthresh: u32,
        now: Time,
    ) -> Result<Option<usize>, Error> {
        let event = self.tell(1, 0, weight, now, [0, 0, 0, 0, cwnd, 0, ssthresh])?;
        let place = u32::from_ne_bytes(std::array::from_fn(|i| event[PLACE + i])) as usize;
        let own = self.weights.get_mut(place);
        Ok(own.map(|own| {
            *own = weight;
            place
        }))
    }

    /// A connection ends.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn leave(&mut self, place: usize, now: Time) -> Result<(), Error> {
        self.tell(2, place, Weight::ONE, now, [0; 7]).map(|_| ())
    }

    /// Another weight from its next event on.
    pub fn set_weight(&mut self, place: usize, weight: Weight) {
        if let Some(own) = self.weights.get_mut(place) {
            *own = weight;
        }
    }

    /// A member hears something. Answers its window and the joint one, packets.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn heard(&mut self, place: usize, heard: &MemberReport) -> Result<(u32, f64), Error> {
        let words = [
            heard.delivered,
            heard.lost,
            u32::from(heard.has_timed_out),
            u32::try_from(heard.srtt.as_micros()).unwrap_or(u32::MAX),
            heard.used,
            u32::from(heard.is_limited),
            0,
        ];
        let weight = self.weights.get(place).copied().unwrap_or(Weight::ONE);
        let event = self.tell(3, place, weight, heard.now, words)?;
        let window = u32::from_ne_bytes(std::array::from_fn(|i| event[WINDOW + i]));
        let total = u64::from_ne_bytes(std::array::from_fn(|i| event[TOTAL + i]));
        Ok((window, total as f64 / f64::from(1u32 << BITS)))
    }

    fn tell(
        &mut self,
        what: u32,
        place: usize,
        weight: Weight,
        now: Time,
        words: [u32; 7],
    ) -> Result<[u8; GROUP_EVENT_SIZE], Error> {
        let mut event = [0; GROUP_EVENT_SIZE];
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        let head = [what, place].into_iter().flat_map(u32::to_ne_bytes).chain(now.as_nanos().to_ne_bytes());
        let weight = (weight.get() * 65_536.0).round() as u32;
        let rest = [weight].into_iter().chain(words).flat_map(u32::to_ne_bytes);
        for (byte, value) in event.iter_mut().zip(head.chain(rest)) {
            *byte = value;
        }
        run(&mut self.object, "replay_group", &mut event)?;
        Ok(event)
    }
}
