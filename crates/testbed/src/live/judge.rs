//! Compares what came out of a receiver with the film that went into its sender.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration as StdDuration, Instant};

use mpeg2ts_reader::packet::{ContinuityCounter, Packet, Pid};
use serde::{Deserialize, Serialize};

use super::{Collected, DATAGRAM, Fed, PACKET, STUFFING};

/// Milliseconds from the feed into the sender to the way out of the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Least.
    pub least_ms: f64,
    /// Half the packets took no longer.
    pub median_ms: f64,
    /// 99 % of the packets took no longer.
    pub percentile_99_ms: f64,
    /// Most.
    pub most_ms: f64,
}

/// Packets of a film that never came out, one soon after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// When the first of them was fed, from the feed's start.
    pub at_s: f64,
    /// How much later the last one was.
    pub for_s: f64,
    /// How many they are.
    pub packets: usize,
}

/// Missing packets that were fed so closely to each other are one gap.
const ONE_GAP: StdDuration = StdDuration::from_secs(1);
/// So many gaps are told, the first ones.
const MOST_GAPS: usize = 1000;

/// What became of the packets that were fed within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Packets judged.
    pub packets: usize,
    /// Those that never came out.
    pub missing: usize,
    /// Those that came out too late.
    pub late: usize,
}

/// What became of the judged part of a film: from its first key picture after the settling time to its end.
///
/// Judged are the packets that are the only ones of their content in the film: all pictures and sound in
/// practice, without stuffing and repeated tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Packets judged.
    pub packets: usize,
    /// Those that never came out.
    pub missing: usize,
    /// When those were fed, a thousand gaps at most.
    pub gaps: Vec<Gap>,
    /// Each second of the feed, from its start.
    pub seconds: Vec<Second>,
    /// Times that one came out again.
    pub repeated: usize,
    /// Packets that came out and are not in the film at all.
    pub strange: usize,
    /// Gaps or steps back of a continuity counter (ISO/IEC 13818-1, 2.4.3.3).
    pub discontinuities: usize,
    /// How long the way took.
    pub latency: Latency,
    /// When the last packet was fed that is missing or came too late, from the feed's start; zero without
    /// one.
    pub whole_from: StdDuration,
    /// Where the judged part begins in the collected bytes; their length when none of it came.
    pub begin: usize,
}

/// How a run is judged.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How many bytes of the film's beginning do not count.
    pub settle: usize,
    /// What takes longer from the feed to the way out is late.
    pub in_time: StdDuration,
}

/// Judges a run. `start` is the feed's start.
pub fn judge(film: &[u8], rules: Rules, start: Instant, fed: &Fed, collected: &Collected) -> Judgement {
    let first = first_key_picture(film, rules.settle);
    let places = places(film);
    let mut came = vec![false; film.len() / PACKET];
    let judged: BTreeSet<usize> =
        places.values().flatten().copied().filter(|index| *index >= first).collect();
    let mut judgement =
        Judgement { packets: judged.len(), begin: collected.bytes.len(), ..Judgement::default() };
    let mut latencies = Vec::new();
    let mut counters: HashMap<u16, ContinuityCounter> = HashMap::new();
    for (at, position, packet) in packets(collected) {
        let place = places.get(packet).copied();
        if let Some(Some(index)) = place
            && index >= first
        {
            judgement.begin = judgement.begin.min(position);
            if std::mem::replace(&mut came[index], true) {
                judgement.repeated += 1;
            } else if let Some(sent) = fed.at.get(index * PACKET / DATAGRAM) {
                let latency = at.saturating_duration_since(start).saturating_sub(*sent);
                latencies.push(latency);
                if latency > rules.in_time {
                    second(&mut judgement.seconds, *sent).late += 1;
                    judgement.whole_from = judgement.whole_from.max(*sent);
                }
            }
        }
        if position >= judgement.begin {
            judgement.strange += usize::from(place.is_none());
            judgement.discontinuities += usize::from(breaks_continuity(packet, &mut counters));
        }
    }
    for index in judged {
        let at = fed.at.get(index * PACKET / DATAGRAM).copied();
        let second = at.map(|at| second(&mut judgement.seconds, at));
        let missing = usize::from(!came[index]);
        if let Some(second) = second {
            second.packets += 1;
            second.missing += missing;
        }
        if missing > 0 {
            judgement.missing += 1;
            judgement.whole_from = judgement.whole_from.max(at.unwrap_or_default());
            tell_gap(&mut judgement.gaps, at);
        }
    }
    judgement.latency = latency(latencies);
    judgement
}

/// The second in which something was fed.
fn second(seconds: &mut Vec<Second>, at: StdDuration) -> &mut Second {
    let number = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
    if seconds.len() <= number {
        seconds.resize(number + 1, Second::default());
    }
    &mut seconds[number]
}

/// Adds a missing packet that was fed then; what was never fed is in no gap.
fn tell_gap(gaps: &mut Vec<Gap>, at: Option<StdDuration>) {
    let Some(at) = at.map(|at| at.as_secs_f64()) else { return };
    let is_near = |gap: &&mut Gap| at - gap.at_s - gap.for_s <= ONE_GAP.as_secs_f64();
    if let Some(gap) = gaps.last_mut().filter(is_near) {
        *gap = Gap { at_s: gap.at_s, for_s: at - gap.at_s, packets: gap.packets + 1 };
    } else if gaps.len() < MOST_GAPS {
        gaps.push(Gap { at_s: at, for_s: 0.0, packets: 1 });
    }
}

/// The index of each packet of the film by its content, `None` where several have the same.
fn places(film: &[u8]) -> HashMap<&[u8], Option<usize>> {
    let mut places: HashMap<&[u8], Option<usize>> = HashMap::new();
    for (index, packet) in film.chunks_exact(PACKET).enumerate() {
        let only =
            Packet::try_new(packet).filter(|packet| u16::from(packet.pid()) != STUFFING).map(|_| index);
        places.entry(packet).and_modify(|place| *place = None).or_insert(only);
    }
    places
}

/// The first packet from byte `settle` on at which a decoder can begin: a random access point of the
/// pictures, which are the stream with most packets.
fn first_key_picture(film: &[u8], settle: usize) -> usize {
    let mut sizes: HashMap<u16, usize> = HashMap::new();
    let pid = |packet: &[u8]| Packet::try_new(packet).map(|packet| u16::from(packet.pid()));
    film.chunks_exact(PACKET).filter_map(pid).filter(|pid| *pid != STUFFING).for_each(|pid| {
        *sizes.entry(pid).or_default() += 1;
    });
    let pictures = sizes.into_iter().max_by_key(|(pid, size)| (*size, *pid)).map(|(pid, _)| pid);
    let random_access = |packet: &[u8]| {
        Packet::try_new(packet)
            .and_then(|packet| packet.adaptation_field())
            .is_some_and(|field| field.random_access_indicator())
    };
    let packets = film.chunks_exact(PACKET).enumerate().skip(settle.div_ceil(PACKET));
    let mut keys = packets.filter(|(_, packet)| pid(packet) == pictures && random_access(packet));
    keys.next().map_or(settle.div_ceil(PACKET), |(index, _)| index)
}

/// The packets that were collected: when, where in the bytes, and the bytes. What is not a packet is left
/// out.
fn packets(collected: &Collected) -> impl Iterator<Item = (Instant, usize, &[u8])> {
    let begins = std::iter::once(0).chain(collected.datagrams.iter().map(|(_, end)| *end));
    begins.zip(&collected.datagrams).flat_map(|(begin, (at, end))| {
        let datagram = collected.bytes.get(begin..*end).unwrap_or_default();
        let placed = datagram.chunks_exact(PACKET).enumerate();
        placed.map(move |(index, packet)| (*at, begin + index * PACKET, packet))
    })
}

/// Whether a packet with payload does not follow the one before it of its stream.
fn breaks_continuity(packet: &[u8], counters: &mut HashMap<u16, ContinuityCounter>) -> bool {
    let Some(packet) = Packet::try_new(packet) else { return true };
    let pid: u16 = Pid::into(packet.pid());
    if pid == STUFFING || !packet.adaptation_control().has_payload() {
        return false;
    }
    let counter = packet.continuity_counter();
    counters.insert(pid, counter).is_some_and(|before| !counter.follows(before))
}

fn latency(mut all: Vec<StdDuration>) -> Latency {
    all.sort();
    let at = |share: f64| {
        // Nearest rank.
        let rank = (share * all.len() as f64).ceil().max(1.0) as usize;
        all.get(rank - 1).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    };
    Latency { least_ms: at(0.0), median_ms: at(0.5), percentile_99_ms: at(0.99), most_ms: at(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of stream 256 with this content and counter; a key picture begins with one that is
    /// `random_access`.
    fn packet(content: u32, counter: u8, random_access: bool) -> Vec<u8> {
        let mut packet = vec![0xff; PACKET];
        packet[..4].copy_from_slice(&[0x47, 1, 0, 0x30 | (counter & 15)]);
        packet[4..6].copy_from_slice(&[1, if random_access { 0x40 } else { 0 }]);
        packet[6..10].copy_from_slice(&content.to_be_bytes());
        packet
    }

    fn null() -> Vec<u8> {
        let mut packet = vec![0; PACKET];
        packet[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
        packet
    }

    /// Forty packets: of seven in a datagram the last is stuffing; a key picture every ten packets.
    fn film() -> Vec<u8> {
        let mut counter = 0;
        let packets = (0..42u32).map(|index| match index % 7 {
            6 => null(),
            _ => {
                counter += 1;
                packet(index, counter, index % 10 == 0)
            }
        });
        packets.flatten().collect()
    }

    fn run(film: &[u8], output: &[Vec<u8>]) -> Judgement {
        let start = Instant::now();
        let fed = Fed { at: (0..6).map(StdDuration::from_secs).collect() };
        let mut collected = Collected::default();
        for (index, datagram) in output.iter().enumerate() {
            collected.bytes.extend_from_slice(datagram);
            let at = start + StdDuration::from_secs(index as u64) + StdDuration::from_millis(500);
            collected.datagrams.push((at, collected.bytes.len()));
        }
        let rules = Rules { settle: PACKET * 5, in_time: StdDuration::from_secs(1) };
        judge(film, rules, start, &fed, &collected)
    }

    fn datagrams(film: &[u8]) -> Vec<Vec<u8>> {
        film.chunks(DATAGRAM).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn a_film_that_came_whole_misses_nothing() {
        let film = film();
        let judgement = run(&film, &datagrams(&film));
        // From packet 10 on: 32 packets, of which five are stuffing.
        assert_eq!((judgement.packets, judgement.missing, judgement.begin), (27, 0, 10 * PACKET));
        assert_eq!((judgement.gaps.len(), judgement.whole_from), (0, StdDuration::ZERO));
        assert_eq!((judgement.repeated, judgement.strange, judgement.discontinuities), (0, 0, 0));
        assert_eq!((judgement.latency.least_ms, judgement.latency.most_ms), (500.0, 500.0));
    }

    #[test]
    fn a_lost_datagram_is_missing_and_a_gap() {
        let film = film();
        let mut output = datagrams(&film);
        output[3].clear();
        let judgement = run(&film, &output);
        assert_eq!((judgement.missing, judgement.discontinuities), (6, 1));
        assert_eq!(judgement.gaps, [Gap { at_s: 3.0, for_s: 0.0, packets: 6 }]);
        let told: Vec<_> = judgement.seconds.iter().map(|it| (it.packets, it.missing, it.late)).collect();
        // Packets 0 to 9 are not judged; the last of each seven is stuffing.
        assert_eq!(told, [(0, 0, 0), (3, 0, 0), (6, 0, 0), (6, 6, 0), (6, 0, 0), (6, 0, 0)]);
        assert_eq!(judgement.whole_from, StdDuration::from_secs(3));
        // Before the judged part nothing counts.
        let mut output = datagrams(&film);
        output[0].clear();
        assert_eq!(run(&film, &output).missing, 0);
    }

    #[test]
    fn repeated_late_and_foreign_packets_are_told() {
        let film = film();
        let mut output = datagrams(&film);
        output[4].extend_from_slice(&film[DATAGRAM * 3..DATAGRAM * 3 + PACKET]);
        output[5].extend_from_slice(&packet(99, 1, false));
        let judgement = run(&film, &output);
        assert_eq!((judgement.repeated, judgement.strange, judgement.missing), (1, 1, 0));
        assert!(judgement.discontinuities >= 1);
        // The third and the fourth datagram change places: one is a second early, one late.
        let mut output = datagrams(&film);
        output.swap(3, 4);
        let judgement = run(&film, &output);
        assert_eq!((judgement.latency.most_ms, judgement.missing), (1500.0, 0));
        assert_eq!(
            judgement.seconds.iter().map(|second| second.late).collect::<Vec<_>>(),
            [0, 0, 0, 6, 0, 0]
        );
        assert_eq!(judgement.whole_from, StdDuration::from_secs(3));
    }

    #[test]
    fn nothing_and_garbage_are_judged_too() {
        let film = film();
        let judgement = run(&film, &[]);
        assert_eq!((judgement.missing, judgement.begin), (27, 0));
        // A datagram in each second, one gap.
        assert_eq!(judgement.gaps, [Gap { at_s: 1.0, for_s: 4.0, packets: 27 }]);
        let judgement = run(&film, &[vec![7; 1000], Vec::new(), vec![0x47; 188 * 3 + 1]]);
        assert_eq!((judgement.missing, judgement.packets), (27, 27));
    }
}
