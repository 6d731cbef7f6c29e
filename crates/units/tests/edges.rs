//! Nothing wraps, panics or becomes another sign: every quantity at its edges, and in between against whole
//! numbers of twice the width.

use anabranch_units::{Bytes, Duration, Packets, Quantity, Rate, Ratio, Time};
use proptest::prelude::*;

/// Numbers near the edges, where arithmetic goes wrong, and all others.
fn number() -> impl Strategy<Value = u64> {
    let edges = [
        0,
        1,
        2,
        7,
        8,
        999,
        1_000,
        1 << 32,
        (1 << 53) - 1,
        (1 << 53) + 1,
        u64::MAX / 8,
        u64::MAX - 1,
        u64::MAX,
    ];
    prop_oneof![prop::sample::select(edges.to_vec()), any::<u64>(), 0u64..1_000_000]
}

/// Floats of every kind.
fn float() -> impl Strategy<Value = f64> {
    let edges = [
        0.0,
        -0.0,
        -1.0,
        f64::MIN_POSITIVE,
        0.5,
        1.0,
        1e19,
        1.9e19,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    prop_oneof![prop::sample::select(edges.to_vec()), any::<f64>(), 0.0..1e6]
}

/// A whole number of twice the width, cut to the largest.
fn cut(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// What a float is as a whole number: cut at both ends, nothing when it is no number.
fn whole(float: f64) -> u64 {
    match float {
        f if f.is_nan() || f <= 0.0 => 0,
        // The smallest float that is too large is 2 to the power of 64.
        f if f >= 18_446_744_073_709_551_616.0 => u64::MAX,
        f => format!("{:.0}", f.trunc()).parse().expect("digits"),
    }
}

proptest! {
    #[test]
    fn sums_differences_and_products_stop_at_the_edges(a in number(), b in number()) {
        let (sum, product) = (cut(u128::from(a) + u128::from(b)), cut(u128::from(a) * u128::from(b)));
        let difference = a.saturating_sub(b);
        let bytes = [Bytes::new(a) + Bytes::new(b), Bytes::new(a) - Bytes::new(b), Bytes::new(a) * b];
        prop_assert_eq!(bytes.map(Bytes::get), [sum, difference, product]);
        let packets = [Packets::new(a) + Packets::new(b), Packets::new(a) - Packets::new(b), Packets::new(a) * b];
        prop_assert_eq!(packets.map(Packets::get), [sum, difference, product]);
        prop_assert_eq!((Packets::new(a) * Bytes::new(b)).get(), product);
        let spans = [
            Duration::from_nanos(a) + Duration::from_nanos(b),
            Duration::from_nanos(a) - Duration::from_nanos(b),
            Duration::from_nanos(a) * b,
        ];
        prop_assert_eq!(spans.map(Duration::as_nanos), [sum, difference, product]);
        let (time, span) = (Time::from_nanos(a), Duration::from_nanos(b));
        prop_assert_eq!([(time + span).as_nanos(), (time - span).as_nanos()], [sum, difference]);
        prop_assert_eq!(time.since(Time::from_nanos(b)).as_nanos(), difference);
        let rates = [Rate::from_bps(a) + Rate::from_bps(b), Rate::from_bps(a) - Rate::from_bps(b)];
        prop_assert_eq!(rates.map(Rate::as_bps), [sum, difference]);
        prop_assert_eq!([Bytes::new(a), Bytes::new(b)].into_iter().sum::<Bytes>().get(), sum);
        prop_assert_eq!([Rate::from_bps(a), Rate::from_bps(b)].into_iter().sum::<Rate>().as_bps(), sum);
    }

    #[test]
    fn units_are_multiples_that_stop_at_the_edge(count in number()) {
        let times = |factor: u128| cut(u128::from(count) * factor);
        prop_assert_eq!(Bytes::kib(count).get(), times(1 << 10));
        prop_assert_eq!(Bytes::mib(count).get(), times(1 << 20));
        prop_assert_eq!(Rate::from_kbps(count).as_bps(), times(1_000));
        prop_assert_eq!(Rate::from_mbps(count).as_bps(), times(1_000_000));
        prop_assert_eq!(Duration::from_micros(count).as_nanos(), times(1_000));
        prop_assert_eq!(Duration::from_millis(count).as_nanos(), times(1_000_000));
        prop_assert_eq!(Duration::from_secs(count).as_nanos(), times(1_000_000_000));
        let span = Duration::from_nanos(count);
        prop_assert_eq!((span.as_micros(), span.as_millis()), (count / 1_000, count / 1_000_000));
        prop_assert_eq!(Duration::from(std::time::Duration::from(span)), span);
    }

    #[test]
    fn amounts_rates_and_times_agree_to_the_last_bit(amount in number(), nanos in number(), bits in number()) {
        let (bytes, span, rate) = (Bytes::new(amount), Duration::from_nanos(nanos), Rate::from_bps(bits));
        let of = (u128::from(amount) * 8_000_000_000).checked_div(u128::from(nanos)).map_or(0, cut);
        prop_assert_eq!(Rate::of(bytes, span).as_bps(), of);
        prop_assert_eq!(rate.amount_in(span).get(), cut(u128::from(bits) * u128::from(nanos) / 8_000_000_000));
        let time = (u128::from(amount) * 8_000_000_000).checked_div(u128::from(bits)).map_or(u64::MAX, cut);
        prop_assert_eq!(rate.time_for(bytes).as_nanos(), time);
        // Nobody gets more than goes in the time.
        if !rate.is_zero() && rate.time_for(bytes) < Duration::MAX {
            prop_assert!(rate.amount_in(rate.time_for(bytes)) <= bytes);
        }
    }

    #[test]
    fn division_by_nothing_is_defined(a in number(), b in number()) {
        let packets = (u128::from(a) + u128::from(b).saturating_sub(1)).checked_div(u128::from(b)).map_or(0, cut);
        prop_assert_eq!(Bytes::new(a).in_packets(Bytes::new(b)).get(), packets);
        prop_assert_eq!((Duration::from_nanos(a) / b).as_nanos(), a.checked_div(b).unwrap_or(u64::MAX));
        let ratios = [
            Rate::from_bps(a).ratio_to(Rate::from_bps(b)),
            Duration::from_nanos(a).ratio_to(Duration::from_nanos(b)),
        ];
        prop_assert!(ratios.iter().all(|ratio| ratio.is_finite() && (*ratio == 0.0) == (a == 0 || b == 0)), "{ratios:?}");
    }

    #[test]
    fn floats_become_the_nearest_quantity_there_is(float in float()) {
        prop_assert_eq!(Bytes::from_f64(float).get(), whole(float));
        prop_assert_eq!(Rate::from_bps_f64(float).as_bps(), whole(float));
        prop_assert_eq!(Packets::from_f64_ceil(float).get(), whole(float.ceil()));
        prop_assert_eq!(Duration::from_secs_f64(float).as_nanos(), whole(float * 1e9));
        let ratio = Ratio::from_f64(float);
        prop_assert!(ratio.as_f64() >= 0.0 && ratio.as_f64().is_finite());
        prop_assert!((0.0..=1.0).contains(&ratio.complement().as_f64()));
    }

    #[test]
    fn a_part_is_no_more_than_the_whole(amount in number(), part in float()) {
        let ratio = Ratio::from_f64(part);
        let parts = [
            (Bytes::new(amount) * ratio).get(),
            (Packets::new(amount) * ratio).get(),
            (Duration::from_nanos(amount) * ratio).as_nanos(),
            (Rate::from_bps(amount) * ratio).as_bps(),
        ];
        prop_assert!(parts.iter().all(|one| *one == parts[0]), "{parts:?}");
        // A float has 53 bits.
        let slack = amount >> 52;
        if ratio <= Ratio::ONE {
            prop_assert!(parts[0] <= amount.saturating_add(slack), "{parts:?}");
        } else {
            prop_assert!(parts[0] >= amount.saturating_sub(slack), "{parts:?}");
        }
    }

    #[test]
    fn what_is_written_can_be_read(number in 1u64..1 << 53) {
        let in_units = |units: &[(&'static str, f64)]| units.iter().map(|(unit, _)| format!("{number}{unit}")).collect::<Vec<_>>();
        for text in in_units(Rate::UNITS) {
            prop_assert!(Rate::read(&text).is_ok() || number > 1 << 33, "{text}");
        }
        for text in in_units(Bytes::UNITS) {
            prop_assert!(Bytes::read(&text).is_ok() || number > 1 << 33, "{text}");
        }
        prop_assert_eq!(Rate::read(&format!("{number}bps")), Ok(Rate::from_bps(number)));
        prop_assert_eq!(Bytes::read_with_unit(&format!("{number}B")), Ok(Bytes::new(number)));
        prop_assert!(Bytes::read_with_unit(&number.to_string()).is_err());
    }

    #[test]
    fn no_text_is_taken_for_what_it_is_not(text in "\\PC{0,20}") {
        // Whatever was typed: a quantity or an error that repeats it and says what is right.
        if let Err(error) = Rate::read(&text) {
            let told = error.to_string();
            prop_assert!(told.contains(&text) && told.contains(Rate::EXAMPLES), "{told}");
        }
        if let Ok(span) = Duration::read(&text) {
            prop_assert!(text.trim().starts_with(|first: char| first == '.' || first.is_ascii_digit()), "{text} {span}");
        }
    }

    #[test]
    fn everything_can_be_shown(a in number()) {
        let shown = [
            Bytes::new(a).to_string(), Packets::new(a).to_string(), Rate::from_bps(a).to_string(),
            Duration::from_nanos(a).to_string(), Time::from_nanos(a).to_string(),
        ];
        prop_assert!(shown.iter().all(|text| text.len() < 32 && text.starts_with(|first: char| first.is_ascii_digit())), "{shown:?}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        " ",
        "-1",
        "1e400",
        "nan",
        "inf",
        "1..5",
        "5 furlongs",
        "0x10",
        "1,5M",
        "18446744073709551616",
        "1.8e19",
    ] {
        assert!(Rate::read(text).is_err(), "{text}");
        assert!(Bytes::read(text).is_err(), "{text}");
    }
    // A rate of nothing would never end; a size and a time of nothing are some.
    assert!(Rate::read("0").is_err() && Rate::read("0.5bps").is_err());
    assert_eq!((Bytes::read("0"), Duration::read_with_unit("0")), (Ok(Bytes::ZERO), Ok(Duration::ZERO)));
}

#[test]
fn sizes_and_rates_are_shown_in_the_largest_unit_that_they_reach() {
    let bytes =
        [1023, 1024, (1 << 20) - 1, 1 << 20, 1 << 40, u64::MAX].map(|bytes| Bytes::new(bytes).to_string());
    assert_eq!(bytes, ["1023 B", "1.0 KiB", "1024.0 KiB", "1.0 MiB", "1.0 TiB", "16777216.0 TiB"]);
    let rates = [999, 1_000, 999_999, 1_000_000, 1_000_000_000].map(|bits| Rate::from_bps(bits).to_string());
    assert_eq!(rates, ["999 bps", "1 kbps", "1000 kbps", "1.00 Mbps", "1.00 Gbps"]);
    assert_eq!([Packets::new(1), Packets::new(2)].map(|count| count.to_string()), ["1 packet", "2 packets"]);
}
