//! The rate that a film needs, read from the film itself, and playlists of films.
//!
//! [`MediaProbe`] says which few bytes of a film it wants to see and is given them; it does no input or output.
//! The boxes, elements and packets are read by crates, of which each is given one small piece at a time, already
//! fetched and cut to its length: none of them sees a size that the film only claims.

mod film;
mod matroska;
mod mp4;
mod mpeg_ts;
pub mod playlist;
mod probe;

pub use film::{Container, MediaFacts, Step};
pub use probe::MediaProbe;
