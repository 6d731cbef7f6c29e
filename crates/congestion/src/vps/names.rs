//! What the members, virtual flows and pools of a group are called in it.
//!
//! A name is a number, which rises from one that joins to the next, and in its lower half a seat: where what
//! has the name is kept (`seats.rs`). Names are in the order in which they were given.

/// A name that tells a seat.
pub(super) trait Seated: Copy + Eq {
    fn seat(self) -> usize;
}

/// The seats that nobody has.
#[derive(Debug, Default)]
pub(super) struct Vacant {
    left: Vec<u32>,
    /// All seats from here on are vacant.
    from: u32,
}

impl Vacant {
    /// A name at a vacant seat, which is taken by it.
    pub(super) fn name(&mut self, number: u32) -> u64 {
        let seat = self.left.pop().unwrap_or_else(|| {
            self.from += 1;
            self.from - 1
        });
        u64::from(number) << 32 | u64::from(seat)
    }

    /// Nobody has this name any more.
    pub(super) fn leave(&mut self, name: impl Seated) {
        self.left.push(name.seat() as u32);
    }
}

/// A member's name in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub(super) u64);

/// A virtual flow's name in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct VirtualId(pub u64);

/// A pool's name in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PoolId(pub u64);

/// Where a member is: the pool that it shares with others, to be told where somebody like it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub(super) PoolId);

impl Seated for MemberId {
    fn seat(self) -> usize {
        seat_of(self.0)
    }
}

impl Seated for VirtualId {
    fn seat(self) -> usize {
        seat_of(self.0)
    }
}

impl Seated for PoolId {
    fn seat(self) -> usize {
        seat_of(self.0)
    }
}

fn seat_of(name: u64) -> usize {
    name as u32 as usize
}
