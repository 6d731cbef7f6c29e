//! Any text as a file of weights, and any path, query and CMCD against it: a weight is never out of its
//! bounds.

#![no_main]

use std::net::IpAddr;

use anabranch_server::Weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The file, a request's target, and what its header CMCD-Request says.
    let mut parts = bytes.splitn(3, |byte| *byte == 0).map(String::from_utf8_lossy);
    let mut part = || parts.next().unwrap_or_default();
    let Ok(weights) = part().parse::<Weights>() else { return };
    let request = http::Request::builder().uri(part().as_ref()).header("cmcd-request", part().as_ref());
    if let Ok(request) = request.body(()) {
        let weight = weights.of(IpAddr::from([10, 0, 0, 1]), &request).get();
        assert!((0.001..=1000.0).contains(&weight));
    }
});
