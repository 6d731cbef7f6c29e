//! A share of the runs of a sweep or of experiments, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// There are no more shares.
const MOST: usize = 10_000;

/// One of several shares of runs, written `2/4`: every fourth run, beginning with the second.
///
/// Runs that follow each other are much alike in what they take, so this divides the time about evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    number: usize,
    of: usize,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Share `number` (from 1) of so many; `None` when there is no such share.
    pub fn new(number: usize, of: usize) -> Option<Self> {
        ((1..=MOST).contains(&of) && (1..=of).contains(&number)).then_some(Self { number, of })
    }

    /// Which, from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// Of how many.
    pub fn of(self) -> usize {
        self.of
    }

    /// Whether a run belongs to it.
    pub fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }

    /// How many of so many runs belong to it.
    pub fn count(self, runs: usize) -> usize {
        (runs + self.of - self.number) / self.of
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(one, all)| Some((one.parse().ok()?, all.parse().ok()?)));
        let Some((number, of)) = parts else {
            return Err("write it as I/N, such as 1/4 for the first of four".into());
        };
        Self::new(number, of).ok_or_else(|| match of {
            1..=MOST => format!("there is no share {number} of {of}: they are 1/{of} to {of}/{of}"),
            _ => format!("there can be 1 to {MOST} shares"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_run_is_in_one_share(runs in 0usize..500, of in 1usize..20) {
            let shares: Vec<Share> = (1..=of).map(|number| Share::new(number, of).unwrap()).collect();
            for run in 0..runs {
                prop_assert_eq!(shares.iter().filter(|share| share.has(run)).count(), 1);
            }
            for share in shares {
                prop_assert_eq!(share.count(runs), (0..runs).filter(|run| share.has(*run)).count());
                prop_assert_eq!(share.to_string().parse(), Ok(share));
            }
        }

        #[test]
        fn no_text_is_a_panic(text in "[0-9/ -]{0,30}") {
            let _ = text.parse::<Share>();
        }
    }

    #[test]
    fn a_share_that_is_not_there_is_told() {
        let wrong = |text: &str| text.parse::<Share>().unwrap_err();
        assert_eq!(wrong("5/4"), "there is no share 5 of 4: they are 1/4 to 4/4");
        assert_eq!(wrong("0/4"), "there is no share 0 of 4: they are 1/4 to 4/4");
        assert_eq!(wrong("1/0"), "there can be 1 to 10000 shares");
        for text in ["", "4", "1/4/2", "-1/4", "1/99999999999999999999999"] {
            assert!(wrong(text).contains("such as 1/4"), "{text}");
        }
    }
}
