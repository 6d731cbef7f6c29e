//! Datagrams there and back, and what is none.

use proptest::prelude::*;

use super::*;

fn report() -> impl Strategy<Value = Report> {
    let rate = (any::<u32>(), any::<u32>(), any::<u64>(), 0.0..=1.0f64).prop_map(
        |(timestamp, delay, rate, loss_event_rate)| RateReport {
            timestamp,
            delay: Duration::from_micros(delay.into()),
            receive_rate: Rate::from_bps(rate),
            loss_event_rate,
        },
    );
    (
        proptest::option::of(rate),
        prop::collection::vec((any::<u32>(), 1..=u16::MAX), 0..=MAX_RANGES),
        any::<u32>(),
        prop::collection::vec(any::<u8>(), 0..=MAX_MAP),
    )
        .prop_map(|(rate, arrived, settled, had)| Report { rate, arrived, settled, had })
}

fn header() -> impl Strategy<Value = Header> {
    let several = proptest::option::of((any::<u16>(), any::<u8>(), any::<u32>()));
    (any::<bool>(), any::<u32>(), any::<u32>(), any::<u32>(), several).prop_map(
        |(is_wide, sequence, timestamp, rtt, several)| {
            let width = if is_wide { Width::Wide } else { Width::Narrow };
            let low = |counter: u32| width.low(counter.into());
            let several = several.map(|(flows, member, sequence)| Several {
                flows,
                member,
                member_sequence: low(sequence),
            });
            Header {
                width,
                sequence: low(sequence),
                timestamp,
                rtt: round_trip(short_round_trip(rtt)),
                several,
            }
        },
    )
}

proptest! {
    #[test]
    fn whatever_arrives_is_read_without_a_panic_and_written_the_same(
        kind in 0..6u8, flags in any::<u8>(), rest in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        let bytes = [&[kind | flags & !KIND][..], &rest].concat();
        match Datagram::decode(&bytes) {
            Ok(Datagram::Report(report)) => {
                prop_assert!(report.arrived.len() <= MAX_RANGES && report.had.len() <= MAX_MAP);
            }
            Ok(Datagram::Data(header, content)) => prop_assert_eq!(encode_data(header, content), bytes),
            Err(_) => {}
        }
    }

    #[test]
    fn a_report_comes_back(report in report()) {
        let bytes = encode_report(&report);
        prop_assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Report(report)));
    }

    #[test]
    fn data_comes_back(
        header in header(), counter in any::<u32>(), age in prop_oneof![0..70_000u32, any::<u32>()],
        payload in prop::collection::vec(any::<u8>(), 1..=MAX_PAYLOAD),
        media in 1..=MAX_BLOCK, parity in 1..=MAX_BLOCK,
        shard in prop::collection::vec(any::<[u8; 2]>(), 4..=MAX_SHARD / 2),
    ) {
        let shard = shard.concat();
        let packed = [&[0x83, 0b101][..], &[7; 188]].concat();
        let (sequence, time) = (header.width.low(counter.into()), header.timestamp.wrapping_sub(age));
        for content in [
            Content::Media { sequence, time, is_again: false, is_packed: false, payload: &payload },
            Content::Media { sequence, time, is_again: true, is_packed: false, payload: &payload },
            Content::Media { sequence, time, is_again: false, is_packed: true, payload: &packed },
            Content::Media { sequence, time, is_again: true, is_packed: true, payload: &packed },
            Content::Parity { first: counter, media, parity, index: parity - 1, shard: &shard },
            Content::Probe,
        ] {
            let bytes = encode_data(header, content);
            prop_assert!(bytes.len() <= MAX_DATAGRAM);
            prop_assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Data(header, content)));
        }
    }

    #[test]
    fn a_counter_is_found_again(counter in any::<u64>(), distance in -0x7fff_ffff_i64..0x7fff_ffff) {
        let near = counter.saturating_add_signed(distance);
        prop_assert_eq!(expand(low_bits(counter), near), counter);
        prop_assert_eq!(Width::Wide.expand(Width::Wide.low(counter), near), counter);
    }

    #[test]
    fn a_narrow_counter_is_found_again(counter in any::<u64>(), distance in -0x7fff_i64..0x7fff) {
        let near = counter.saturating_add_signed(distance);
        prop_assert_eq!(Width::Narrow.expand(Width::Narrow.low(counter), near), counter);
    }

    #[test]
    fn a_round_trip_is_told_to_a_two_thousandth(micros in 1..134_000_000u32) {
        let told = round_trip(short_round_trip(micros));
        prop_assert!(told <= micros && told > 0 && f64::from(micros - told) < f64::from(micros) / 2000.0);
    }
}

#[test]
fn impossible_datagrams_are_refused() {
    let header = Header { width: Width::Narrow, sequence: 1, timestamp: 2, rtt: 3, several: None };
    let of = |content| encode_data(header, content);
    let media =
        |payload| of(Content::Media { sequence: 0, time: 0, is_again: false, is_packed: false, payload });
    let packed =
        |payload| of(Content::Media { sequence: 0, time: 0, is_again: false, is_packed: true, payload });
    assert_eq!(Datagram::decode(&[]), Err(DatagramError::Length));
    // No such kind, and what is special in media in none of them.
    for kind in
        [0, 6, 7, PROBE | AGAIN, PARITY | PACKED, PARITY | OLD, REPORT | WIDE, ACKNOWLEDGEMENT | SEVERAL]
    {
        assert_eq!(Datagram::decode(&[kind; 40]), Err(DatagramError::Kind), "{kind}");
    }
    assert_eq!(short_round_trip(u32::MAX), u16::MAX);
    // A round-trip time and an age that have a shorter form.
    let mut long = of(Content::Probe);
    long[7..9].copy_from_slice(&0x1001u16.to_be_bytes());
    assert_eq!(Datagram::decode(&long), Err(DatagramError::Number));
    let mut old = media(&[1]);
    old[0] |= OLD;
    old.splice(11..13, 65_535u32.to_be_bytes());
    assert_eq!(Datagram::decode(&old), Err(DatagramError::Number));
    assert_eq!(Datagram::decode(&media(&[])), Err(DatagramError::Length));
    assert_eq!(Datagram::decode(&media(&[0; MAX_PAYLOAD + 1])), Err(DatagramError::Length));
    assert_eq!(Datagram::decode(&packed(&[0; MAX_PACKED + 1])), Err(DatagramError::Length));
    for wrong in [&[0][..], &[0, 1], &[1, 0], &[33; 200]] {
        assert_eq!(Datagram::decode(&packed(wrong)), Err(DatagramError::Number));
    }
    let parity = |media, parity, index, shard| of(Content::Parity { first: 0, media, parity, index, shard });
    for (media, count, index) in [(0, 1, 0), (1, 0, 0), (129, 1, 0), (1, 129, 0), (5, 2, 2)] {
        let wrong = parity(media, count, index, &[0; 8]);
        assert_eq!(Datagram::decode(&wrong), Err(DatagramError::Number));
    }
    for shard in [&[0; 6][..], &[0; 9], &[0; MAX_SHARD + 2]] {
        assert_eq!(Datagram::decode(&parity(5, 2, 1, shard)), Err(DatagramError::Length));
    }
    let mut probe = of(Content::Probe);
    probe.push(0);
    assert_eq!(Datagram::decode(&probe), Err(DatagramError::Length));
    let rate = |loss_event_rate| {
        let rate =
            RateReport { timestamp: 0, delay: Duration::ZERO, receive_rate: Rate::ZERO, loss_event_rate };
        encode_report(&Report { rate: Some(rate), ..Report::default() })
    };
    for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        assert_eq!(Datagram::decode(&rate(wrong)), Err(DatagramError::Number));
    }
    let mut ranges = encode_report(&Report::default());
    ranges[1] = 33;
    assert_eq!(Datagram::decode(&ranges), Err(DatagramError::Number));
    let empty_range = encode_report(&Report { arrived: vec![(1, 0)], ..Report::default() });
    assert_eq!(Datagram::decode(&empty_range), Err(DatagramError::Number));
}
