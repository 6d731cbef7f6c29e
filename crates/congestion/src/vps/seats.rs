//! Where members, virtual flows and pools are kept: each at a seat that its name tells, side by side, so that
//! nothing is looked for, and what is read one after the other lies in that order.

use super::names::Seated;

/// What belongs to names.
#[derive(Debug)]
pub(super) struct Seats<K, T>(Vec<Option<(K, T)>>);

impl<K, T> Default for Seats<K, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Seated, T> Seats<K, T> {
    pub(super) fn get(&self, name: K) -> Option<&T> {
        match self.0.get(name.seat()) {
            Some(Some((here, what))) if *here == name => Some(what),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, name: K) -> Option<&mut T> {
        match self.0.get_mut(name.seat()) {
            Some(Some((here, what))) if *here == name => Some(what),
            _ => None,
        }
    }

    /// Nobody may have the name's seat.
    pub(super) fn insert(&mut self, name: K, what: T) {
        if self.0.len() <= name.seat() {
            self.0.resize_with(name.seat() + 1, || None);
        }
        self.0[name.seat()] = Some((name, what));
    }

    pub(super) fn remove(&mut self, name: K) -> Option<T> {
        self.get(name)?;
        self.0[name.seat()].take().map(|(_, what)| what)
    }

    /// All, by their seats.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.0.iter().flatten().map(|(name, what)| (*name, what))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut T)> {
        self.0.iter_mut().flatten().map(|(name, what)| (*name, what))
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::{MemberId, Vacant};
    use super::*;

    #[test]
    fn a_seat_is_given_again_and_an_old_name_finds_nobody() {
        let (mut vacant, mut seats) = (Vacant::default(), Seats::default());
        let names: Vec<_> = (0..3).map(|number| MemberId(vacant.name(number))).collect();
        names.iter().zip("abc".chars()).for_each(|(name, what)| seats.insert(*name, what));
        assert_eq!(seats.remove(names[1]), Some('b'));
        vacant.leave(names[1]);
        let new = MemberId(vacant.name(3));
        assert!(new.seat() == names[1].seat() && new > names[2]);
        assert!(seats.get(new).is_none());
        seats.insert(new, 'd');
        assert!(seats.get(names[1]).is_none() && seats.get_mut(names[1]).is_none());
        assert!(seats.remove(names[1]).is_none());
        assert_eq!(seats.iter().map(|(_, what)| *what).collect::<String>(), "adc");
    }
}
