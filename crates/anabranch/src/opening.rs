//! Opening a film for somebody who waits for it.

use anabranch_client::{Film, FilmInfo, OpenError, Settings, Storage};
use anabranch_units::Duration;
use tokio::time::{Instant, sleep};

use crate::output::Output;

/// How long a server is left alone that asks for it without saying how long; doubled each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// A server that says that it needs no rest gets this much.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// Opens a film. A server that is too busy for it (429, 503) is asked again when it says, as long as that is
/// within the time after which a film that brings nothing is given up. `storage` is called at most once with
/// success.
///
/// # Errors
/// Those of the last try.
pub async fn open(
    settings: Settings,
    mut storage: impl FnMut(&FilmInfo) -> Result<Storage, OpenError>,
    output: &Output,
) -> Result<Film, OpenError> {
    let begin = Instant::now();
    let mut usual = FIRST_WAIT;
    loop {
        let (message, wait) = match Film::open_with(settings.clone(), &mut storage).await {
            Err(OpenError::Refused { message, status: 429 | 503, retry_after }) => {
                (message, retry_after.unwrap_or(usual).max(SHORTEST_WAIT))
            }
            other => return other,
        };
        let waited = Duration::from(begin.elapsed());
        if waited + wait >= settings.give_up_after {
            let message = format!(
                "{message}; it wants to be asked again after {wait}, which is not within --timeout {}",
                settings.give_up_after
            );
            return Err(OpenError::Unusable(message));
        }
        output.say(format_args!("{message}; asks again after {wait}"));
        sleep(wait.into()).await;
        usual = usual * 2;
    }
}
