//! Memory that is used again: what connections read into is free once it is written or taken, and the system
//! need not give new pages all the time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::BytesMut;

/// Length of a buffer.
const LENGTH: usize = 512 << 10;
/// Used buffers that are looked through for one that is free.
const KEPT: usize = 16;

/// The buffers that have been used.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<VecDeque<BytesMut>>);

impl Buffers {
    /// Puts an empty buffer in the place of one that is used up. It may have been used, where nobody has
    /// anything in it any more.
    pub(super) fn renew(&self, buffer: &mut BytesMut) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = used.iter_mut().position(|used| used.try_reclaim(LENGTH));
        let next = free.and_then(|at| used.remove(at)).unwrap_or_else(|| BytesMut::with_capacity(LENGTH));
        used.push_back(std::mem::replace(buffer, next));
        if used.len() > KEPT {
            used.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_stays_what_it_is_while_buffers_are_used_again() {
        let (buffers, mut buffer) = (Buffers::default(), BytesMut::new());
        let mut kept = VecDeque::new();
        for round in 0..200u8 {
            if buffer.capacity() < 200_000 {
                buffers.renew(&mut buffer);
            }
            buffer.extend_from_slice(&vec![round; 200_000]);
            kept.push_back((round, buffer.split().freeze()));
            if kept.len() > 4 {
                let (round, bytes) = kept.pop_front().unwrap();
                assert!(bytes.len() == 200_000 && bytes.iter().all(|byte| *byte == round));
            }
        }
    }
}
