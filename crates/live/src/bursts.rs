//! How datagrams are lost: their loss rate and the length of bursts, in the order in which they left,
//! whatever their connections. That is the order in which the packets of a block leave, so these are the
//! losses that a block sees.

use std::collections::VecDeque;

use super::fec::choice::Losses;

/// Datagrams that were sent count less and less: after so many by a factor e.
const MEMORY: f64 = 2000.0;
/// So many datagrams without a loss are taken for granted, lest the first loss seem to be the rule.
const GRANTED: f64 = 100.0;
/// Datagrams whose fate may be open at a time.
const MOST_OPEN: usize = 1 << 16;

/// So many of the last datagrams are kept one by one.
const MOST_RECENT: usize = 2000;

/// Whether each of the last datagrams was lost, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(VecDeque<bool>);

impl Recent {
    fn push(&mut self, is_lost: bool) {
        self.0.push_back(is_lost);
        if self.0.len() > MOST_RECENT {
            self.0.pop_front();
        }
    }

    /// How many of `packets` in a row were lost, at the most.
    pub(super) fn most_lost(&self, packets: usize) -> usize {
        let (mut lost, mut most) = (0, 0);
        for (index, is_lost) in self.0.iter().enumerate() {
            lost += usize::from(*is_lost);
            most = most.max(lost);
            let leaves = (index + 1).checked_sub(packets).and_then(|first| self.0.get(first));
            lost -= usize::from(leaves == Some(&true));
        }
        most
    }
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrived,
    Lost,
    /// Its connection was silent or is gone: it says nothing about losses on the way.
    Unknown,
}

/// Follows the datagrams of a sender.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    /// The fates of datagrams from number `first` on, as far as they are known.
    fates: VecDeque<Option<Fate>>,
    first: u64,
    is_in_burst: bool,
    sent: f64,
    lost: f64,
    bursts: f64,
    recent: Recent,
}

impl Default for Bursts {
    fn default() -> Self {
        Self {
            fates: VecDeque::new(),
            first: 0,
            is_in_burst: false,
            sent: GRANTED,
            lost: 0.0,
            bursts: 0.0,
            recent: Recent::default(),
        }
    }
}

impl Bursts {
    /// A datagram leaves: its number.
    pub(super) fn leaves(&mut self) -> u64 {
        if self.fates.len() >= MOST_OPEN {
            self.fates.pop_front();
            self.first += 1;
        }
        self.fates.push_back(None);
        self.first + u64::try_from(self.fates.len()).unwrap_or(0) - 1
    }

    /// The fate of a datagram is known.
    pub(super) fn known(&mut self, number: u64, fate: Fate) {
        let place = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(open) = place.and_then(|index| self.fates.get_mut(index)) {
            open.get_or_insert(fate);
        }
        while let Some(Some(fate)) = self.fates.front().copied() {
            self.fates.pop_front();
            self.first += 1;
            self.count(fate);
        }
    }

    fn count(&mut self, fate: Fate) {
        if fate == Fate::Unknown {
            self.is_in_burst = false;
            return;
        }
        let is_lost = fate == Fate::Lost;
        let begins = is_lost && !self.is_in_burst;
        self.is_in_burst = is_lost;
        self.recent.push(is_lost);
        for (count, more) in [(&mut self.sent, true), (&mut self.lost, is_lost), (&mut self.bursts, begins)] {
            *count = *count * (1.0 - 1.0 / MEMORY) + f64::from(u8::from(more));
        }
    }

    /// The last datagrams one by one.
    pub(super) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// The losses of the last few thousand datagrams.
    pub(super) fn losses(&self) -> Losses {
        Losses { rate: self.lost / self.sent.max(1.0), burst: (self.lost / self.bursts.max(1e-9)).max(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bursts_are_measured_in_the_order_in_which_datagrams_left() {
        let mut bursts = Bursts::default();
        // Two of each hundred in bursts of two; the fates become known in another order, as of several
        // connections.
        for _ in 0..200 {
            let numbers: Vec<u64> = (0..100).map(|_| bursts.leaves()).collect();
            let fate = |index: usize| if index % 50 < 2 { Fate::Lost } else { Fate::Arrived };
            for index in (0..100).step_by(2).chain((1..100).step_by(2)) {
                bursts.known(numbers[index], fate(index));
            }
        }
        let losses = bursts.losses();
        assert!((losses.rate - 0.04).abs() < 0.005 && (losses.burst - 2.0).abs() < 0.05, "{losses:?}");
    }

    #[test]
    fn the_most_losses_of_so_many_packets_are_counted() {
        let mut recent = Recent::default();
        for is_lost in "..x...x.x.xx....x".chars().map(|fate| fate == 'x') {
            recent.push(is_lost);
        }
        let most: Vec<usize> = [1, 2, 3, 4, 6, 10, 100].map(|packets| recent.most_lost(packets)).into();
        assert_eq!(most, [1, 2, 2, 3, 4, 5, 6]);
        (0..MOST_RECENT).for_each(|_| recent.push(false));
        assert_eq!((recent.most_lost(100), recent.0.len()), (0, MOST_RECENT));
    }

    #[test]
    fn silence_says_nothing_about_losses() {
        let mut bursts = Bursts::default();
        for _ in 0..1000 {
            let number = bursts.leaves();
            bursts.known(number, Fate::Unknown);
        }
        assert_eq!(bursts.losses(), Losses { rate: 0.0, burst: 1.0 });
        let number = bursts.leaves();
        bursts.known(number, Fate::Lost);
        assert!(bursts.losses().rate < 0.011);
    }

    proptest! {
        #[test]
        fn whatever_becomes_known_the_figures_are_possible_and_memory_bounded(
            steps in prop::collection::vec((any::<bool>(), 0u64..200, 0u8..3), 0..500),
        ) {
            let mut bursts = Bursts::default();
            for (leaves, number, fate) in steps {
                if leaves {
                    bursts.leaves();
                }
                let fate = [Fate::Arrived, Fate::Lost, Fate::Unknown][usize::from(fate)];
                bursts.known(number, fate);
                let losses = bursts.losses();
                prop_assert!((0.0..=1.0).contains(&losses.rate) && losses.burst >= 1.0 && losses.burst.is_finite());
                prop_assert!(bursts.fates.len() <= MOST_OPEN);
            }
        }
    }
}
