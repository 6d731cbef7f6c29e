//! Windows and rates, whatever is told.

use anabranch_congestion::bbr::Bbr;
use anabranch_congestion::control::{Begin, Controller, Delivery, Loss, Start, Timeout};
use anabranch_congestion::delivery_rate::{LostPacket, RateSample};
use anabranch_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

use crate::path::start;

/// Something that a driver could tell, with numbers that need not fit together.
#[derive(Clone, Debug)]
enum Told {
    Begin(u64),
    Loss,
    Lost([u64; 4], bool),
    Timeout(bool),
    Idle,
    Delivery([u64; 9], bool, bool, bool, bool),
}

fn told() -> impl Strategy<Value = Told> {
    let amount = || prop_oneof![0u64..20_000, 0u64..100_000_000, any::<u64>()];
    prop_oneof![
        1 => amount().prop_map(Told::Begin),
        1 => Just(Told::Loss),
        3 => (prop::array::uniform4(amount()), any::<bool>()).prop_map(|(lost, flag)| Told::Lost(lost, flag)),
        1 => any::<bool>().prop_map(Told::Timeout),
        1 => Just(Told::Idle),
        12 => (prop::array::uniform9(amount()), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(sample, has_rtt, is_limited, recovers, is_full)| {
                Told::Delivery(sample, has_rtt, is_limited, recovers, is_full)
            }),
    ]
}

fn tell(bbr: &mut Bbr, now: Time, told: &Told) {
    let bytes = Bytes::new;
    match *told {
        Told::Begin(srtt) => bbr.on_begin(&Begin { now, srtt: Duration::from_nanos(srtt) }),
        Told::Loss => bbr.on_loss(&Loss { now, flight: bbr.cwnd() }),
        Told::Timeout(is_repeated) => bbr.on_timeout(&Timeout { now, flight: bbr.cwnd(), is_repeated }),
        Told::Idle => bbr.on_idle(now),
        Told::Lost([size, in_flight, lost, delivered], is_app_limited) => bbr.on_packet_lost(&LostPacket {
            now,
            size: bytes(size),
            sent_in_flight: bytes(in_flight),
            lost: bytes(lost),
            total_delivered: bytes(delivered),
            is_app_limited,
        }),
        Told::Delivery(sample, has_rtt, is_app_limited, is_in_recovery, is_cwnd_limited) => {
            let [acked, newly_lost, rtt, rate, delivered, prior, in_flight, lost, now_in_flight] = sample;
            let sample = RateSample {
                newly_acked: bytes(acked),
                newly_lost: bytes(newly_lost),
                rtt: has_rtt.then_some(Duration::from_nanos(rtt)),
                rate: Rate::from_bps(rate),
                delivered: bytes(delivered),
                prior_delivered: bytes(prior),
                total_delivered: bytes(prior) + bytes(delivered),
                sent_in_flight: bytes(in_flight),
                lost: bytes(lost),
                in_flight: bytes(now_in_flight),
                is_app_limited,
            };
            bbr.on_delivery(&Delivery { now, sample, is_in_recovery, is_cwnd_limited });
        }
    }
}

proptest! {
    #[test]
    fn windows_and_rates_keep_their_bounds_whatever_is_told(
        events in prop::collection::vec((told(), prop_oneof![0u64..1_000_000, 0u64..20_000_000_000]), 1..400),
        seed in any::<u64>(),
        segment in prop_oneof![Just(0u64), 1u64..65_536],
    ) {
        let mut bbr = Bbr::new(&Start { segment: Bytes::new(segment), ..start(seed) });
        let mut now = Time::ZERO;
        for (event, after) in events {
            now += Duration::from_nanos(after);
            tell(&mut bbr, now, &event);
            let (cwnd, pacing) = (bbr.cwnd().get(), bbr.pacing().unwrap());
            prop_assert!((segment..=1 << 53).contains(&cwnd), "{cwnd}");
            if matches!(event, Told::Delivery(..)) {
                prop_assert!(cwnd >= 4 * segment.max(1), "{cwnd}");
            }
            prop_assert!(pacing.rate.as_bps() >= 8 * segment.max(1), "{:?}", pacing.rate);
            prop_assert!(pacing.rate.as_bps() <= 8_000_000_000_000_000, "{:?}", pacing.rate);
            prop_assert!(pacing.quantum.get() >= 2 * segment.max(1), "{:?}", pacing.quantum);
            prop_assert!(pacing.quantum.get() <= (2 * segment).max(65_536), "{:?}", pacing.quantum);
        }
    }
}
