//! Rates, sizes and times as people write them: read or refused, and read the same from their own units.

#![no_main]

use anabranch_units::{Bytes, Duration, Rate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<Rate>() {
        assert!(!rate.is_zero());
        assert_eq!(
            format!("{}bps", rate.as_bps()).parse::<Rate>().map(|again| again.as_f64()),
            Ok(rate.as_f64())
        );
    }
    if let Ok(size) = text.parse::<Bytes>() {
        assert_eq!(size.get().to_string().parse::<Bytes>().map(|again| again.as_f64()), Ok(size.as_f64()));
    }
    if let Ok(time) = text.parse::<Duration>() {
        let again = format!("{}us", time.as_micros()).parse::<Duration>().expect("whole microseconds");
        let difference = (again.as_secs_f64() - time.as_secs_f64()).abs();
        assert!(difference <= 1e-6 + 1e-9 * time.as_secs_f64(), "{time} became {again}");
    }
});
