//! Any bytes as the head of an HTTP response: a head is read the same however many bytes follow it, and a
//! range that is accepted lies within what was asked for.

#![no_main]

use anabranch_http::{ContentRange, EntityTag, LONGEST_HEAD, ResponseHead, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        if let Ok(range) = text.parse::<ContentRange>() {
            assert!(range.first <= range.last && range.length() > 0);
            assert!(range.total.is_none_or(|total| range.last < total));
        }
        let _ = text.parse::<EntityTag>();
    }
    let Ok(Some((head, length))) = ResponseHead::parse(input) else { return };
    assert!((1..=input.len().min(LONGEST_HEAD.as_usize())).contains(&length));
    let alone = ResponseHead::parse(&input[..length]);
    assert!(matches!(alone, Ok(Some((_, again))) if again == length));
    assert!(matches!(ResponseHead::parse(&input[..length - 1]), Ok(None) | Err(_)));
    let first = head.content_range.map_or(0, |range| range.first);
    if let Ok(range) = head.check_range(first, Some(first + 99)) {
        assert!(range.first == first && range.last <= first + 99);
    }
    let _ = head.encoding();
    let version = Version::of(&head);
    assert!(version.difference(&version).is_none(), "an answer is of its own version");
    let _ = version.strong_validator();
});
