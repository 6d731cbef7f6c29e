//! Notices, while a run goes on, that its receiver stays behind for good.

use std::time::Duration as StdDuration;

use anabranch_units::Duration;

use super::Media;

/// The time after the latency in which what is due must have come out.
const SLACK: Duration = Duration::from_secs(2);

/// What should have come out since the settling time, against what did.
#[derive(Clone, Copy, Debug)]
pub struct Deficit<'a> {
    media: &'a Media,
    /// How long the way through sender, path and receiver may take.
    delay: Duration,
    settle: Duration,
    /// What was due and what had come out when the judged part began to come out.
    base: Option<(usize, usize)>,
}

impl<'a> Deficit<'a> {
    /// For media whose packets may take `delay` on their way.
    pub fn new(media: &'a Media, delay: Duration, settle: Duration) -> Self {
        Self { media, delay: delay + SLACK, settle, base: None }
    }

    /// The share of the judged part of the whole film that has not come out in time, when `out` bytes have at
    /// `now` since the feed's start.
    pub fn share(&mut self, now: Duration, out: usize) -> f64 {
        let begin = self.settle + self.delay;
        if now < begin {
            return 0.0;
        }
        // Most programs are ahead of `due` all the time; at the film's end they are not any more, and nothing
        // is said.
        let last = self.media.length().saturating_sub(self.delay.into());
        let due = self.media.due_by(StdDuration::from(now - self.delay).min(last));
        let (due_before, out_before) = *self.base.get_or_insert((due, out));
        let judged = self.media.bytes.len() - self.media.due_by(self.settle.into());
        let behind = (due - due_before).saturating_sub(out - out_before);
        behind as f64 / judged.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Rate;

    use super::*;

    fn share_at_the_end(out: impl Fn(u64) -> u64) -> f64 {
        let media = Media::constant(vec![0; 70_000], Rate::from_bps(8000));
        let mut deficit = Deficit::new(&media, Duration::from_secs(1), Duration::from_secs(10));
        let shares =
            (0..=70u64).map(|second| deficit.share(Duration::from_secs(second), out(second) as usize));
        shares.last().unwrap()
    }

    #[test]
    fn what_comes_in_time_is_not_missed() {
        assert_eq!(share_at_the_end(|second| (second * 1000).min(70_000)), 0.0);
        // Before the judged part, anything may be missing.
        assert_eq!(share_at_the_end(|second| second.saturating_sub(9) * 1000), 0.0);
    }

    #[test]
    fn what_stays_behind_is_missed() {
        assert!((share_at_the_end(|second| second * 900) - 0.1).abs() < 0.02);
        assert!(share_at_the_end(|second| second.min(40) * 1000) > 0.4);
    }
}
