//! `anabranch fetch`: a film to a file that can be gone on with, or in order to standard output.

mod digest;
mod file;
mod state;
mod stream;

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::arguments::{FetchArguments, Place};
use crate::failure::Failure;
use crate::output::{Output, spare_the_terminal};
use crate::report::Reporter;
use crate::settings::{Purpose, settings};

/// Runs the command.
///
/// # Errors
/// The file is not there as it should be.
pub async fn run(arguments: FetchArguments, output: &Output) -> Result<(), Failure> {
    let settings = settings(&arguments.urls, &arguments.source, Purpose::Fetch)?;
    let destination = match &arguments.output {
        Some(place) => place.clone(),
        None => Place::File(name_from(&arguments.urls[0].0)?),
    };
    if destination == Place::Standard && arguments.report.stats == Some(Place::Standard) {
        return Err(Failure::usage(
            "the film and the statistics cannot both go to standard output: use --stats FILE",
        ));
    }
    if destination == Place::Standard {
        spare_the_terminal()?;
    }
    let reporter = Reporter::start("fetch", &arguments.urls, &arguments.report, output).await?;
    let result = match destination {
        Place::Standard => stream::to_standard_output(settings, arguments.digest, &reporter, output).await,
        // A pipe or a device keeps nothing that could be gone on with.
        Place::File(path) if is_special(&path) => {
            stream::to_special_file(&path, settings, arguments.digest, &reporter, output).await
        }
        Place::File(path) => file::fetch(&path, &arguments, settings, &reporter, output).await,
    };
    reporter.finish(result).await
}

fn is_special(path: &std::path::Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The last part of the URL's path, as a file name in this directory.
fn name_from(url: &Url) -> Result<PathBuf, Failure> {
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let name = percent_decode_str(last).decode_utf8_lossy();
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\']);
    if is_name && !name.contains(char::is_control) {
        Ok(name.into_owned().into())
    } else {
        Err(Failure::usage("the URL does not end with a file's name: name one with --output FILE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_this_directory() {
        let name = |url: &str| name_from(&Url::parse(url).unwrap()).ok();
        assert_eq!(name("http://a/b/film%20one.mp4?x=/y#z"), Some("film one.mp4".into()));
        assert_eq!(name("http://a/%2e%2e%2fetc%2fpasswd"), None);
        for without in [
            "http://a/",
            "http://a/b/",
            "http://a/%2e%2e",
            "http://a/x%00",
            "http://a/x%0a",
            "http://a/..%5Cx",
        ] {
            assert_eq!(name(without), None, "{without}");
        }
    }
}
