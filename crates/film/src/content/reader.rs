//! Who reads.

/// Someone who reads the media from some position on: the player, or the file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(pub u32);

/// A reader's position and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The next byte it takes.
    pub position: u64,
    /// The byte that is being played: play times count from here. At most `position`.
    pub play_position: u64,
    /// Where it began.
    pub began: u64,
    /// Where it ends.
    pub end: u64,
}
