//! A viewer: a player in real time that reads from the local endpoint and checks every byte.

use std::sync::Arc;
use std::time::Instant;

use anabranch_client::{Film, Settings, Status, Storage};
use anabranch_film::playback::{self, Playback, PlaybackReport};
use anabranch_http::{ConnectOptions, Connection, ExtraHeaders, Method, Received, RequestHead, Target};
use anabranch_units::{Bytes, Duration, Rate, Time};
use bytes::BytesMut;
use indicatif::ProgressBar;
use tokio::sync::oneshot;
use tokio::time::timeout;
use url::Url;

use crate::arguments::AccessArguments;
use crate::endpoint::{Endpoint, FilmResource, Guard};
use crate::failure::Failure;
use crate::output::counted;

/// What the player holds beyond its play position; more it does not take.
const PLAYER_BUFFER: Duration = Duration::from_secs(6);
/// How often it looks at its clock.
const FRAME: std::time::Duration = std::time::Duration::from_millis(40);
/// A viewer leaves when the film is not over after so many times its duration.
const PATIENCE: u64 = 3;

/// The film as it should be.
pub(super) struct Original {
    pub(super) bytes: &'static [u8],
    pub(super) duration: Duration,
}

impl Original {
    pub(super) fn size(&self) -> Bytes {
        Bytes::of(self.bytes.len())
    }

    /// The rate that it needs.
    pub(super) fn rate(&self) -> Rate {
        Rate::of(self.size(), self.duration)
    }
}

/// How it went.
pub(super) struct Viewing {
    /// What the player saw.
    pub(super) playback: PlaybackReport,
    /// How the session stood at the end.
    pub(super) status: Status,
    /// How long the film's bytes took.
    pub(super) took: Duration,
    /// Whether all of them came and every one was right.
    pub(super) intact: bool,
}

/// Plays the film from the first to the last second. `half_way` is called when half of it was played.
///
/// # Errors
/// The film cannot be opened, or is not over in reasonable time.
pub(super) async fn watch(
    settings: Settings,
    original: &Original,
    progress: &ProgressBar,
    half_way: impl FnOnce(),
) -> Result<Viewing, Failure> {
    let began = Instant::now();
    let film = Film::open(settings, Storage::Memory).await.map_err(Failure::failed)?;
    let endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into()).map_err(Failure::failed)?;
    let url = format!("http://{}/{}", endpoint.address(), super::replica::NAME);
    let guard = Guard::new(endpoint.address(), &AccessArguments::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let answers = Arc::new(FilmResource::new(film.clone()));
    let stopped = async {
        // Dropping the sender stops as well.
        let _ = stopped.await;
    };
    let serving = tokio::spawn(endpoint.serve(guard, answers, stopped, std::future::ready(())));
    let url = Url::parse(&url).map_err(Failure::failed)?;
    let mut viewer = Viewer::connect(&url, original, began).await?;
    let limit = std::time::Duration::from(original.duration * PATIENCE);
    let watched = timeout(limit, viewer.watch(&film, progress, half_way)).await;
    watched.unwrap_or_else(|_| Err(Failure::failed("the film was not over in three times its duration")))?;
    let status = film.status();
    drop(stop);
    let _ = serving.await;
    Ok(Viewing {
        playback: viewer.playback.report(),
        status,
        took: viewer.last_arrival.since(Time::ZERO),
        intact: viewer.right && viewer.received == original.size(),
    })
}

struct Viewer<'a> {
    original: &'a Original,
    connection: Connection,
    playback: Playback,
    began: Instant,
    received: Bytes,
    last_arrival: Time,
    right: bool,
}

impl<'a> Viewer<'a> {
    async fn connect(url: &Url, original: &'a Original, began: Instant) -> Result<Self, Failure> {
        let target = Target::new(url).map_err(Failure::failed)?;
        let mut connection = Connection::connect(target.origin(), &ConnectOptions::default())
            .await
            .map_err(Failure::failed)?;
        let request = RequestHead::new(Method::Get, &target, &ExtraHeaders::default());
        connection.send(&request).map_err(Failure::failed)?;
        let playback = Playback::new(playback::Parameters::default(), Some(original.rate()), Time::ZERO);
        let (received, last_arrival) = (Bytes::ZERO, Time::ZERO);
        Ok(Self { original, connection, playback, began, received, last_arrival, right: true })
    }

    fn now(&self) -> Time {
        Time::ZERO + self.began.elapsed().into()
    }

    async fn watch(
        &mut self,
        film: &Film,
        progress: &ProgressBar,
        half_way: impl FnOnce(),
    ) -> Result<(), Failure> {
        let mut half_way = Some(half_way);
        let held = self.original.rate().amount_in(PLAYER_BUFFER);
        let mut buffer = BytesMut::new();
        let mut over = false;
        while !self.playback.report().finished {
            let is_full = self.received >= self.playback.play_position() + held;
            if over || is_full {
                tokio::time::sleep(FRAME).await;
            } else if let Ok(received) = timeout(FRAME, self.connection.receive(&mut buffer)).await {
                match received.map_err(Failure::failed)? {
                    Received::Head(head) if head.status == 200 => {}
                    Received::Head(head) => {
                        return Err(Failure::failed(format_args!(
                            "the endpoint answers with {}",
                            head.status
                        )));
                    }
                    Received::Data(_) => self.take(&mut buffer),
                    _ => over = true,
                }
            }
            let now = self.now();
            self.playback.advance(now, self.received, over);
            let played = self.playback.play_position();
            if played * 2 >= self.original.size()
                && let Some(half_way) = half_way.take()
            {
                half_way();
            }
            self.show(progress, played, film);
        }
        Ok(())
    }

    /// Compares what came with what should have come.
    fn take(&mut self, buffer: &mut BytesMut) {
        let start = self.received.as_usize();
        let wanted = self.original.bytes.get(start..start + buffer.len());
        self.right &= wanted == Some(&buffer[..]);
        self.received += Bytes::of(buffer.len());
        self.last_arrival = self.now();
        buffer.clear();
    }

    fn show(&self, progress: &ProgressBar, played: Bytes, film: &Film) {
        let report = self.playback.report();
        let doing = match (report.startup, report.playing) {
            (None, _) => "buffering",
            (_, true) => "playing",
            (_, false) => "STALLED",
        };
        let second = |amount| self.original.rate().time_for(amount).as_secs_f64();
        progress.set_message(format!(
            "{doing:<9} {:4.1} of {:.0} s, {:3.1} s ahead, {}, {}",
            second(played),
            self.original.duration.as_secs_f64(),
            second(self.received - played),
            counted(film.status().session.connections.len(), "connection"),
            counted(report.stalls, "stall"),
        ));
    }
}
