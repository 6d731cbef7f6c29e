//! The round trip without queues, and when it has to be looked at again (section 5.3.4.3, `UpdateMinRTT`).

use anabranch_units::{Duration, Time};

use super::parameters::{MIN_RTT_FILTER, PROBE_RTT_INTERVAL};

/// `BBR.min_rtt` and `BBR.probe_rtt_min_delay`.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt`; `None`: infinite, before the first measurement.
    pub rtt: Option<Duration>,
    /// `BBR.min_rtt_stamp`.
    stamp: Time,
    /// `BBR.probe_rtt_min_delay`.
    probe_rtt: Option<Duration>,
    /// `BBR.probe_rtt_min_stamp`.
    probe_stamp: Time,
    /// `BBR.probe_rtt_expired`.
    pub is_expired: bool,
}

impl MinRtt {
    /// That of a flow that begins, which may know a round trip from its set-up.
    pub(super) fn new(now: Time, srtt: Duration) -> Self {
        let rtt = (!srtt.is_zero()).then_some(srtt);
        Self { rtt, stamp: now, probe_rtt: rtt, probe_stamp: now, is_expired: false }
    }

    /// `UpdateMinRTT`.
    pub(super) fn update(&mut self, now: Time, rtt: Option<Duration>) {
        self.is_expired = now > self.probe_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (self.is_expired || self.probe_rtt.is_none_or(|least| rtt < least))
        {
            self.probe_rtt = Some(rtt);
            self.probe_stamp = now;
        }
        let has_expired = now > self.stamp + MIN_RTT_FILTER;
        if let Some(probed) = self.probe_rtt
            && (has_expired || self.rtt.is_none_or(|least| probed < least))
        {
            self.rtt = Some(probed);
            self.stamp = self.probe_stamp;
        }
    }

    /// It was looked at: the next time is an interval from now (`CheckProbeRTTDone`).
    pub(super) fn probed(&mut self, now: Time) {
        self.probe_stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_trip_is_kept_for_ten_seconds_and_looked_at_after_five() {
        let millis = |millis| Some(Duration::from_millis(millis));
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut least = MinRtt::new(at(0), Duration::ZERO);
        least.update(at(100), millis(40));
        least.update(at(1000), millis(90));
        assert_eq!((least.rtt, least.is_expired), (millis(40), false));
        least.update(at(5100), millis(90));
        assert!(!least.is_expired);
        // Due: what is measured from here on counts for the next five seconds, and after ten for the model.
        least.update(at(5101), millis(80));
        assert!(least.is_expired);
        least.update(at(5200), millis(70));
        assert_eq!((least.rtt, least.is_expired), (millis(40), false));
        least.update(at(10_101), millis(75));
        assert_eq!(least.rtt, millis(70));
        // The path has become shorter.
        least.update(at(10_102), millis(20));
        assert_eq!(least.rtt, millis(20));
    }
}
