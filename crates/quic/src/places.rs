//! Where clients were in a group, for when they come again.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_congestion::vps::Place;
use anabranch_units::{Duration, Time};

/// Most clients that are remembered.
const MOST: usize = 1024;
/// For so long: a way that nobody has gone for longer may be another one.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// Places by the addresses of clients whose last connection has ended.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<IpAddr, (Place, Time)>);

impl Places {
    /// A connection of this client ends, which was there. Of too many the oldest is forgotten.
    pub(super) fn remember(&mut self, address: IpAddr, place: Place, now: Time) {
        self.0.insert(address, (place, now));
        if self.0.len() > MOST
            && let Some(oldest) = self.0.iter().min_by_key(|(_, (_, at))| *at).map(|(oldest, _)| *oldest)
        {
            self.0.remove(&oldest);
        }
    }

    /// Where this client was, if that is not too long ago.
    pub(super) fn get(&self, address: IpAddr, now: Time) -> Option<Place> {
        let (place, at) = self.0.get(&address)?;
        (now.since(*at) < REMEMBERED_FOR).then_some(*place)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use anabranch_congestion::algorithm::Algorithm;
    use anabranch_congestion::vps::{Group, Weight};

    use super::*;
    use crate::start;

    #[test]
    fn the_newest_are_remembered_for_ten_minutes() {
        let mut group = Group::new(Algorithm::Reno, start());
        let member = group.join(Weight::ONE);
        let place = group.place(member).expect("it is there");
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let address = |number: usize| Ipv4Addr::from_bits(number as u32).into();
        let mut places = Places::default();
        places.remember(address(0), place, at(0));
        assert_eq!(places.get(address(0), at(599)), Some(place));
        assert_eq!(places.get(address(0), at(600)), None);
        for number in 1..=MOST {
            places.remember(address(number), place, at(1));
        }
        assert_eq!(places.get(address(0), at(1)), None);
        assert_eq!(places.get(address(MOST), at(1)), Some(place));
    }
}
