//! What can be read from media themselves: the rate that a film needs, and what a playlist refers to.
//!
//! - [`MediaProbe`]: the rate of a film, from its container (MP4, Matroska, WebM, MPEG transport streams).
//! - [`playlist`]: HLS and DASH playlists whose references are turned into others.
//! - [`segments`]: a live transport stream as segments of HLS.
//!
//! Nothing here does input or output, decodes a picture or fetches a segment. [`MediaProbe`] says which few
//! bytes of a film it wants to see and is given them; the boxes, elements and packets are read by crates, of
//! which each is given one small piece at a time, already fetched and cut to its length: none of them sees a
//! size that the film only claims.
//!
//! ```
//! use anabranch_media::{MediaProbe, Step};
//!
//! let film = std::fs::read("/dev/null")?;
//! let mut probe = MediaProbe::new(Some(film.len() as u64), Some("video/mp4"));
//! let facts = loop {
//!     match probe.next() {
//!         Step::Need { offset, length } => {
//!             let bytes = film.get(offset as usize..).unwrap_or_default();
//!             probe.provide(offset, &bytes[..bytes.len().min(length as usize)]);
//!         }
//!         Step::Done(facts) => break facts,
//!     }
//! };
//! assert_eq!(facts, None, "an empty film has no rate");
//! # Ok::<(), std::io::Error>(())
//! ```

mod film;
mod matroska;
mod mp4;
mod mpeg_ts;
pub mod playlist;
mod probe;
pub mod segments;

pub use film::{Container, MediaFacts, Step};
pub use probe::MediaProbe;
