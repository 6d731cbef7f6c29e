//! Drives a receiver session over real connections: the engine of `play`, `fetch` and `proxy`.
//!
//! A [`Film`] is opened from one or more URLs; [`Reader`]s take bytes from any position of it. Behind it one
//! task owns the session (`owner`). A task for each connection (`connection`) sends what the owner orders and
//! reports what comes; readers take bytes from where they are kept (`store`) and report how far they are; a
//! worker writes to the disk (`disk`). What others wait for the owner publishes (`published`).
//!
//! What is asked for, where and when, is decided by `anabranch-film`; a connection belongs to
//! `anabranch-http`; who takes the bytes (a player's endpoint, a file, a pipe) is the caller's.
//!
//! ```no_run
//! # async fn play() -> Result<(), Box<dyn std::error::Error>> {
//! use anabranch_client::{Film, Settings, Storage};
//!
//! let settings = Settings::new(vec!["https://a.example/film.mp4".parse()?, "https://b.example/film.mp4".parse()?]);
//! let film = Film::open(settings, Storage::Memory).await?;
//! let mut reader = film.reader(0..u64::MAX);
//! while let Some(bytes) = reader.next().await? {
//!     println!("{} bytes up to {}", bytes.len(), reader.position());
//! }
//! # Ok(())
//! # }
//! ```

mod allowance;
mod buffers;
mod command;
mod connection;
mod connections;
mod disk;
mod error;
mod film;
mod first;
mod groups;
mod growth;
mod handle;
mod membership;
mod notice;
mod open;
mod owner;
mod pacer;
mod published;
mod read_rate;
mod reader;
mod readers;
mod replica;
mod settings;
mod shared;
mod status;
mod store;
mod stripe;
mod timer;
mod unheard;

pub use disk::Medium;
pub use error::{Cure, EngineError};
pub use film::Film;
pub use notice::{Event, Notice};
pub use open::{FilmInfo, OpenError, Within};
pub use read_rate::ReadRate;
pub use reader::Reader;
pub use settings::{PlaylistSegment, RateControl, Settings};
pub use status::{ReplicaStatus, Status};
pub use store::Storage;
