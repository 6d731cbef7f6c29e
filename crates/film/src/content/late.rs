//! Segments that miss their play time, and who is asked for them instead (TCP-ROME section III.C).

use std::ops::Range;

use anabranch_protocol::stripe::QueueEnd;
use anabranch_units::{Bytes, Duration, Ratio, Time};

use super::Coordinator;
use super::pipe::{Pipe, Segment};
use super::policy::MissingRule;
use super::reader::Reader;
use super::request::{Reassignment, RequestId};
use crate::control::ConnectionId;

/// So many of the outstanding segments nearest to a reader are looked at in one decision. What is further
/// away is looked at when it has come nearer.
const NEAREST: usize = 8;

/// A segment that misses its play time.
#[derive(Clone)]
struct Late {
    request: RequestId,
    /// The bytes of it that are needed.
    range: Range<u64>,
    /// Where its beginning is late: the length of that, and when it is expected.
    begins: Option<(u64, Duration)>,
    /// When the first of them is played.
    plays_in: Duration,
}

impl Coordinator {
    /// Finds a segment that misses its play time and a connection that brings it sooner; asks that one. To be
    /// called until it answers `None`.
    pub fn reassign_late(&mut self, now: Time) -> Option<Reassignment> {
        let (request, to, range) = self
            .late_segments(now)
            .into_iter()
            .find_map(|late| self.rescue(&late, now).map(|(to, range)| (late.request, to, range)))?;
        let from = self.segments.get(&request)?.connection;
        if let Some(pipe) = self.pipes.get_mut(&from) {
            pipe.misses += 1;
        }
        Some(self.hand_over(request, to, range, "it would miss its play time", now))
    }

    /// When nothing is left to ask for, at the end or because a reader waits for what is late, an idle
    /// connection helps the one that would finish last, so that no slow source sets the time.
    pub fn help_at_the_end(&mut self, idle: ConnectionId, now: Time) -> Option<Reassignment> {
        let own = self.pipes.get(&idle)?;
        if own.draining
            || own.rests
            || !own.queue.is_empty()
            || self.has_work()
            || !(self.reaches_the_end() || self.is_waiting())
        {
            return None;
        }
        let last = self
            .pipes
            .iter()
            .filter(|(id, _)| **id != idle)
            .flat_map(|(_, pipe)| pipe.queue.iter().map(move |id| (pipe, *id)))
            .filter_map(|(pipe, id)| {
                let segment = self.segments.get(&id)?;
                let needed = segment.needed(&self.have, segment.range.start, segment.needed_until)?;
                Some((self.expected(pipe, segment.mark, now), id, segment.rest(needed.start)))
            })
            .max_by_key(|(expected, id, _)| (*expected, *id));
        let (_, request, range) = last?;
        let (to, range) = self.split(request, range, idle, now)?;
        Some(self.hand_over(request, to, range, "nothing else is left to ask for", now))
    }

    /// Whether all of the media, or of the segment that is got, is there or asked for.
    pub fn is_all_asked_for(&self) -> bool {
        self.end().is_some_and(|end| self.claimed.contains(&(0..end)))
    }

    /// How much of it nobody was asked for yet; `None`: its end is not known.
    pub fn unassigned(&self) -> Option<Bytes> {
        self.end().map(|end| Bytes::new(end.saturating_sub(self.claimed.total())))
    }

    /// How much of it has not come; `None`: its end is not known.
    pub fn missing(&self) -> Option<Bytes> {
        self.end().map(|end| Bytes::new(end.saturating_sub(self.have.total())))
    }

    fn end(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.end).or(self.size)
    }

    /// In how long what was asked for is there, as far as what connections deliver tells.
    pub fn ends_in(&self, now: Time) -> Duration {
        let last = |pipe: &Pipe| pipe.queue.back().and_then(|id| self.segments.get(id)).map(|last| last.mark);
        let ends = self.pipes.values().filter_map(|pipe| Some(self.expected(pipe, last(pipe)?, now)));
        ends.max().unwrap_or(Duration::ZERO)
    }

    /// Whether some reader can take nothing.
    fn is_waiting(&self) -> bool {
        self.readers.values().any(|reader| {
            reader.position < reader.end && self.have.run_end(reader.position) == reader.position
        })
    }

    /// Whether all that some reader still wants is at least assigned.
    pub(super) fn reaches_the_end(&self) -> bool {
        let end = |reader: &Reader| self.size.map_or(reader.end, |size| reader.end.min(size));
        self.readers.values().any(|reader| {
            let end = end(reader);
            reader.position < end && self.claimed.contains(&(reader.position..end))
        })
    }

    /// The segments nearest to the readers that are missing after the rule.
    fn late_segments(&self, now: Time) -> Vec<Late> {
        if self.media_rate.is_none() {
            return Vec::new();
        }
        let largest = self.policy.segment_size.1.get();
        let late = self.readers.values().flat_map(|reader| {
            let from = reader.position.saturating_sub(largest);
            let ahead = self.by_start.range((from, RequestId(0))..).filter_map(move |(_, id)| {
                let segment = self.segments.get(id)?;
                let needed_from = segment.range.start.max(reader.position);
                Some((id, segment, segment.needed(&self.have, needed_from, reader.end)?))
            });
            // What the reader has left behind is not among its nearest.
            ahead.take(NEAREST).filter_map(move |(id, segment, needed)| {
                let pipe = self.pipes.get(&segment.connection)?;
                let begins = self.begins_late(pipe, segment, needed.start, reader, now);
                let missing = match self.policy.missing {
                    MissingRule::RoundTrip | MissingRule::PlayTime => {
                        self.play_time(reader, needed.start) < pipe.rtt
                    }
                    MissingRule::Expected => {
                        let ends = self.expected(pipe, segment.mark, now);
                        begins.is_some() || ends > self.play_time(reader, segment.range.end)
                    }
                };
                let plays_in = self.play_time(reader, needed.start);
                missing.then(|| Late { request: *id, range: segment.rest(needed.start), begins, plays_in })
            })
        });
        late.collect()
    }

    /// Where a long segment is late with what is needed of it first, however early its end is, as its
    /// connection has been silent or is slower than it was: how much that is, and when it comes.
    fn begins_late(
        &self,
        pipe: &Pipe,
        segment: &Segment,
        from: u64,
        reader: &Reader,
        now: Time,
    ) -> Option<(u64, Duration)> {
        if self.policy.unhurried_from.is_none() || pipe.members > 0 {
            return None;
        }
        let first = self.segment_length(pipe);
        let end = from.saturating_add(first);
        if end >= segment.range.end {
            return None;
        }
        let expected = self.expected(pipe, segment.mark.saturating_sub(segment.range.end - end), now);
        (expected > self.play_time(reader, end)).then_some((first, expected))
    }

    /// Who brings the late bytes soonest, and which of them it is asked for.
    fn rescue(&self, late: &Late, now: Time) -> Option<(ConnectionId, Range<u64>)> {
        let Late { request, range, begins, plays_in } = late.clone();
        let segment = self.segments.get(&request)?;
        let length = range.end - range.start;
        let candidates = self.pipes.iter().filter(|(id, pipe)| {
            **id != segment.connection && !pipe.draining && self.has_room_for_repair(pipe)
        });
        match self.policy.missing {
            rule @ (MissingRule::RoundTrip | MissingRule::PlayTime) => {
                // "re-requests it over the connection with lower RTT than the expected playback time": the
                // lowest.
                let own = self.pipes.get(&segment.connection)?.rtt;
                let least = if rule == MissingRule::PlayTime { plays_in.min(own) } else { own };
                let (id, _) = candidates
                    .filter(|(_, pipe)| pipe.rtt < least)
                    .min_by_key(|(id, pipe)| (pipe.rtt, **id))?;
                Some((*id, range))
            }
            MissingRule::Expected => {
                // Who has to wait for the beginning is not helped by a part of the end.
                if let Some((first, expected)) = begins {
                    let soon = candidates.map(|(id, pipe)| (self.time_to_bring(pipe, first, now), *id)).min();
                    return soon.filter(|(soon, _)| *soon < expected * 4 / 5).map(|(_, id)| (id, range));
                }
                let (id, _) =
                    candidates.min_by_key(|(id, pipe)| (self.time_to_bring(pipe, length, now), **id))?;
                self.split(request, range, *id, now)
            }
        }
    }

    /// When a pipe would have brought so many more bytes.
    pub(super) fn time_to_bring(&self, pipe: &Pipe, length: u64, now: Time) -> Duration {
        self.expected(pipe, pipe.asked.saturating_add(length), now) + pipe.rtt
    }

    /// Divides late bytes between the connection that has them and a helper, so that both finish together:
    /// the helper gets the tail. `None` when less than a fifth of the time would be gained.
    fn split(
        &self,
        request: RequestId,
        range: Range<u64>,
        helper: ConnectionId,
        now: Time,
    ) -> Option<(ConnectionId, Range<u64>)> {
        let segment = self.segments.get(&request)?;
        let owner = self.pipes.get(&segment.connection)?;
        let pipe = self.pipes.get(&helper)?;
        let length = Bytes::new(range.end - range.start);
        let (owner_rate, helper_rate) = (self.rate_or_guess(owner), self.rate_or_guess(pipe));
        let alone = self.expected(owner, segment.mark, now).as_secs_f64();
        // When each of the two can begin with these bytes.
        let owner_free = alone - owner_rate.time_for(length).as_secs_f64();
        let helper_free = self.time_to_bring(pipe, 0, now).as_secs_f64();
        // Both done after t: owner_rate (t - owner_free) + helper_rate (t - helper_free) = length.
        let (owner_rate, helper_rate) = (owner_rate.bytes_per_second(), helper_rate.bytes_per_second());
        let together = (length.as_f64() + owner_rate * owner_free + helper_rate * helper_free)
            / (owner_rate + helper_rate).max(1.0);
        let smallest = self.policy.segment_size.0.min(length);
        let head_share = owner_rate * (together - owner_free) / length.as_f64().max(1.0);
        let head = length * Ratio::from_f64(head_share.min(1.0));
        let head = if head < smallest { Bytes::ZERO } else { head };
        let tail = length - head;
        let finish = helper_free + tail.as_f64() / helper_rate.max(1.0);
        let tail = range.start + head.get()..range.end;
        (finish < 0.8 * alone && tail.end - tail.start >= smallest.get()).then_some((helper, tail))
    }

    fn hand_over(
        &mut self,
        request: RequestId,
        to: ConnectionId,
        range: Range<u64>,
        why: &'static str,
        now: Time,
    ) -> Reassignment {
        let from = self.segments.get(&request).map_or(to, |segment| segment.connection);
        if self.is_group(from) {
            self.unassign(from, &range);
        } else if let Some(segment) = self.segments.get_mut(&request) {
            segment.needed_until = range.start;
            self.shared.insert(request);
        }
        let again = self.assign(to, range, QueueEnd::Front, why, now);
        self.shared.insert(again.id);
        Reassignment { from, to, request: again }
    }
}
