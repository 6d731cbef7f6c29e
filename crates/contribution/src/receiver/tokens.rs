//! Tokens by which senders show that their addresses are their own (RFC 9000, section 8.1.4): each counts once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quinn::{TokenLog, TokenReuseError};

/// So many that were used are remembered, of this process. Who uses one again after as many others makes a receiver
/// answer no other address than the one for which it got the token.
const MOST_USED: usize = 4096;

/// Tokens that were used.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    numbers: BTreeSet<u128>,
    oldest_first: VecDeque<u128>,
}

impl TokenLog for Tokens {
    fn check_and_insert(&self, nonce: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.numbers.insert(nonce) {
            return Err(TokenReuseError);
        }
        used.oldest_first.push_back(nonce);
        if used.oldest_first.len() > MOST_USED
            && let Some(oldest) = used.oldest_first.pop_front()
        {
            used.numbers.remove(&oldest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_once_and_memory_is_bounded() {
        let tokens = Tokens::default();
        let is_let_in =
            |nonce| tokens.check_and_insert(nonce, SystemTime::UNIX_EPOCH, Duration::ZERO).is_ok();
        assert!(is_let_in(7) && !is_let_in(7));
        assert!((100..100 + MOST_USED as u128 * 2).all(is_let_in));
        let used = tokens.0.lock().unwrap();
        assert_eq!((used.numbers.len(), used.oldest_first.len()), (MOST_USED, MOST_USED));
    }
}
