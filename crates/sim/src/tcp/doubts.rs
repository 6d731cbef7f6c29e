//! Whether what was taken for lost has arrived after all, so that a recovery was not needed.
//!
//! Three things say so of a range of bytes: it arrives before it was sent again; the timestamp that an
//! acknowledgement echoes is older than its first retransmission (Eifel, RFC 3522); or the receiver has had
//! it twice (D-SACK, RFC 2883), where it was sent again once (RFC 3708). A recovery was not needed when that
//! holds of all that it took for lost.

use std::collections::BTreeMap;

/// What is known of a range of bytes that was taken for lost.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    end: u64,
    /// When it was sent again first, in nanoseconds.
    again: Option<u64>,
    /// It was sent again more than once: then a duplicate may be of two retransmissions.
    is_ambiguous: bool,
    /// A copy of it has arrived, and which one is not known.
    has_arrived: bool,
}

/// All that the last loss event or time-out took for lost and that has not shown to have arrived.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// By the first byte.
    open: BTreeMap<u64, Doubt>,
    /// Something was taken for lost of which nothing can be known.
    is_hopeless: bool,
    /// There was something, and it is not told yet that nothing is left of it.
    is_due: bool,
}

impl Doubts {
    /// A loss event or a time-out: what was before it is settled. Nothing can be known where something
    /// `is_missing` that was taken for lost before and was not sent again.
    pub(super) fn begin(&mut self, is_missing: bool) {
        *self = Self { is_hopeless: is_missing, ..Self::default() };
    }

    /// Bytes `[start, end)` are taken for lost; `is_again`: they had been sent more than once. Which copy
    /// arrives cannot be said of those, unless they were in doubt already.
    pub(super) fn lost(&mut self, start: u64, end: u64, is_again: bool) {
        let known = self.cut(start, end);
        let bytes: u64 = known.iter().map(|(first, doubt)| doubt.end - first).sum();
        self.open.extend(known);
        if bytes == end - start {
            return;
        }
        self.is_hopeless |= is_again || bytes > 0;
        self.is_due = true;
        self.open.entry(start).or_insert(Doubt { end, again: None, is_ambiguous: false, has_arrived: false });
    }

    /// Bytes `[start, end)` are sent again.
    pub(super) fn sent_again(&mut self, start: u64, end: u64, now: u64) {
        for (first, mut doubt) in self.cut(start, end) {
            doubt.is_ambiguous |= doubt.again.is_some();
            doubt.again.get_or_insert(now);
            self.open.insert(first, doubt);
        }
    }

    /// Bytes `[start, end)` have arrived. `echo`: the timestamp that came with it, in microseconds modulo
    /// 2^32, where everything before `end` is acknowledged: it is that of the segment at `start` (RFC 7323,
    /// section 4.3), if there was but one gap, and nothing else in it was sent again.
    pub(super) fn arrived(&mut self, start: u64, end: u64, echo: Option<u32>) {
        let cut = self.cut(start, end);
        let mut filled = start;
        let is_simple = cut.iter().filter(|(_, doubt)| !doubt.has_arrived).all(|(first, doubt)| {
            let is_next = *first == filled && (doubt.again.is_none() || *first == start);
            filled = doubt.end;
            is_next
        });
        for (first, doubt) in cut {
            let Some(again) = doubt.again else { continue };
            let is_older = |echo: u32| (((again / 1000) as u32).wrapping_sub(echo) as i32) > 0;
            let is_told = is_simple && first == start && !doubt.has_arrived;
            if !(is_told && echo.is_some_and(is_older)) {
                self.open.insert(first, Doubt { has_arrived: true, ..doubt });
            }
        }
    }

    /// The receiver has had bytes `[start, end)` twice.
    pub(super) fn duplicated(&mut self, start: u64, end: u64) {
        for (first, doubt) in self.cut(start, end) {
            if doubt.is_ambiguous || doubt.again.is_none() {
                self.open.insert(first, doubt);
            }
        }
    }

    /// Whether all that was taken for lost has arrived after all: answered once.
    pub(super) fn are_settled(&mut self) -> bool {
        self.open.is_empty() && !self.is_hopeless && std::mem::take(&mut self.is_due)
    }

    /// Takes out what bytes `[start, end)` are of ranges in doubt.
    fn cut(&mut self, start: u64, end: u64) -> Vec<(u64, Doubt)> {
        let reaches_in = self.open.range(..start).next_back().filter(|(_, doubt)| doubt.end > start);
        let from = reaches_in.map_or(start, |(first, _)| *first);
        let touched: Vec<_> =
            self.open.range(from..end.max(from)).map(|(first, one)| (*first, *one)).collect();
        let mut taken = Vec::with_capacity(touched.len());
        for (first, doubt) in touched {
            self.open.remove(&first);
            if first < start {
                self.open.insert(first, Doubt { end: start, ..doubt });
            }
            if doubt.end > end {
                self.open.insert(end, doubt);
            }
            taken.push((first.max(start), Doubt { end: doubt.end.min(end), ..doubt }));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Two segments that were taken for lost.
    fn two() -> Doubts {
        let mut doubts = Doubts::default();
        doubts.begin(false);
        assert!(!doubts.are_settled(), "nothing was lost");
        doubts.lost(1000, 2000, false);
        doubts.lost(3000, 4000, false);
        doubts
    }

    #[test]
    fn what_arrives_before_it_is_sent_again_was_not_lost() {
        let mut doubts = two();
        doubts.arrived(3000, 4000, None);
        assert!(!doubts.are_settled());
        doubts.arrived(500, 1500, None);
        doubts.arrived(1500, 3000, None);
        assert!(doubts.are_settled());
        assert!(!doubts.are_settled(), "it is told once");
    }

    #[test]
    fn an_echo_older_than_the_retransmission_is_of_the_first_copy() {
        for (echo, is_settled) in [(19_999, true), (20_000, false), (25_000, false)] {
            let mut doubts = two();
            doubts.arrived(3000, 4000, None);
            doubts.sent_again(1000, 2000, 20 * MS);
            // The next retransmission tells nothing of the first copy.
            doubts.sent_again(1000, 2000, 30 * MS);
            doubts.arrived(1000, 4000, Some(echo));
            assert_eq!(doubts.are_settled(), is_settled, "{echo}");
        }
        // Of two gaps that one acknowledgement closes it is not known which one the echo is of, and of two
        // segments in order that were sent again it is the first one's.
        for (second, is_again, is_settled) in
            [(3000, true, false), (3000, false, false), (2000, true, false), (2000, false, true)]
        {
            let mut doubts = Doubts::default();
            doubts.lost(1000, 2000, false);
            doubts.lost(second, second + 1000, false);
            doubts.sent_again(1000, 2000, 20 * MS);
            if is_again {
                doubts.sent_again(second, second + 1000, 20 * MS);
            }
            doubts.arrived(1000, 4000, Some(10_000));
            assert_eq!(doubts.are_settled(), is_settled, "{second} {is_again}");
        }
    }

    #[test]
    fn a_duplicate_is_of_a_retransmission_that_was_not_needed_unless_there_were_two() {
        for twice in [false, true] {
            let mut doubts = two();
            doubts.sent_again(1000, 2000, 20 * MS);
            doubts.sent_again(3000, 4000, 21 * MS);
            if twice {
                doubts.sent_again(3000, 4000, 22 * MS);
            }
            doubts.arrived(1000, 4000, None);
            doubts.duplicated(1000, 2000);
            assert!(!doubts.are_settled());
            doubts.duplicated(3000, 4000);
            assert_eq!(doubts.are_settled(), !twice);
        }
        // The network's own duplicate of what was not sent again says nothing.
        let mut doubts = two();
        doubts.duplicated(1000, 4000);
        assert!(!doubts.are_settled());
    }

    #[test]
    fn nothing_is_known_of_a_copy_among_several() {
        let mut doubts = two();
        doubts.lost(5000, 6000, true);
        doubts.arrived(0, 6000, None);
        assert!(!doubts.are_settled());
        // The next recovery is judged by itself; what is in doubt already may be lost again.
        doubts.begin(false);
        doubts.lost(7000, 8000, false);
        doubts.sent_again(7000, 8000, 20 * MS);
        doubts.lost(7000, 8000, true);
        doubts.arrived(7000, 8000, Some(10));
        assert!(doubts.are_settled());
        doubts.begin(true);
        doubts.lost(9000, 10_000, false);
        doubts.arrived(9000, 10_000, None);
        assert!(!doubts.are_settled());
    }
}
