//! A sender that shares its uplinks with others by weights.

use anabranch_congestion::shares::Standing;
use anabranch_congestion::vps::Weight;
use anabranch_units::{Rate, Ratio, Time};

use super::super::UplinkId;
use super::super::sharing::Sharing;
use super::Sender;

/// A sender that is not held back sends in bursts, and sends again: so much of what comes into it is wanted.
const SPARE: Ratio = Ratio::new(5, 4);

impl Sender {
    /// It shares each of its links with other senders from now on, by weights. The driver moves what each of
    /// them says between them: [`Self::standings`] to [`Self::hear`], every
    /// [`TELL_INTERVAL`](anabranch_congestion::shares::TELL_INTERVAL).
    #[must_use]
    pub fn with_weight(mut self, weight: Weight) -> Self {
        self.sharing = Some(Sharing::new(weight));
        self
    }

    /// How it stands on each link that carries something, for the others; empty if it does not share.
    pub fn standings(&mut self, now: Time) -> Vec<(UplinkId, Standing)> {
        let Some(weight) = self.sharing.as_ref().map(Sharing::weight) else { return Vec::new() };
        let links: Vec<UplinkId> = self.links.keys().copied().collect();
        let mut standings = Vec::new();
        for link in links {
            standings.extend(self.standing(link, weight, now).map(|standing| (link, standing)));
            self.split(link, now);
        }
        standings
    }

    /// How another sender stands on a link; `None`: it is gone from there.
    pub fn hear(&mut self, link: UplinkId, member: u64, standing: Option<Standing>, now: Time) {
        if let Some(sharing) = &mut self.sharing {
            sharing.hear(link, member, standing, now);
            self.split(link, now);
        }
    }

    /// How many others it shares its links with, on the link with most of them.
    pub(super) fn shares_with(&self) -> usize {
        self.sharing.as_ref().map_or(0, Sharing::others)
    }

    /// Gives the connections of a link their part of what all are allowed there.
    pub(super) fn split(&mut self, link: UplinkId, now: Time) {
        let Some(weight) = self.sharing.as_ref().map(Sharing::weight) else { return };
        let standing = self.standing(link, weight, now);
        let share = match (&mut self.sharing, standing) {
            (Some(sharing), Some(standing)) => sharing.share(link, standing, now),
            _ => 1.0,
        };
        let mine = self.connections.values_mut().filter(|connection| connection.link == link);
        mine.for_each(|connection| connection.set_share(share));
    }

    /// `None`: nothing is known of the link, or nothing comes through.
    fn standing(&mut self, link: UplinkId, weight: Weight, now: Time) -> Option<Standing> {
        let mine =
            self.connections.values().filter(|connection| connection.link == link && !connection.is_silent());
        let allowed: Rate = mine.map(|connection| connection.rate().allowed_alone()).sum();
        let wanted = self.wanted(link, now) * SPARE;
        (!allowed.is_zero()).then_some(Standing { weight, allowed, wanted })
    }
}
