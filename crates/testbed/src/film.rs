//! The media of a run: an MPEG transport stream of exactly the film's rate, or of what it has at the most.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anabranch_units::{Bytes, Duration, Rate};

use crate::Error;
use crate::scenario::{Film, Scenario};

/// What the pictures and the sound of a rate are like.
struct Quality {
    /// Up to this rate.
    below: Rate,
    /// Size and rate of the pictures.
    pictures: &'static str,
    /// Pictures between two key pictures, two seconds.
    key: &'static str,
    /// The share of the rate that the pictures get; the rest is sound, headers and stuffing.
    share: f64,
    /// ffmpeg's options for the sound, none where it has no room beside its own headers.
    sound: &'static [&'static str],
    /// How hard the encoder works: it does not get down to the lowest rates otherwise.
    preset: &'static str,
}

/// Pictures large enough that a high rate is not mostly stuffing.
const LARGE: Quality = Quality {
    below: Rate::MAX,
    pictures: "testsrc2=size=1280x720:rate=25",
    key: "50",
    share: 0.75,
    sound: &["-b:a", "32k"],
    preset: "ultrafast",
};

/// From the lowest rate on.
const QUALITIES: [Quality; 6] = [
    Quality {
        below: Rate::from_bps(45_000),
        pictures: "testsrc2=size=64x36:rate=5",
        key: "10",
        share: 0.4,
        sound: &[],
        preset: "veryfast",
    },
    Quality {
        below: Rate::from_bps(100_000),
        pictures: "testsrc2=size=96x54:rate=5",
        key: "10",
        share: 0.53,
        sound: &["-b:a", "4k", "-ac", "1", "-ar", "8000"],
        preset: "veryfast",
    },
    Quality {
        below: Rate::from_bps(360_000),
        pictures: "testsrc2=size=160x90:rate=25/2",
        key: "25",
        share: 0.6,
        sound: &["-b:a", "8k", "-ac", "1", "-ar", "16000"],
        preset: "veryfast",
    },
    Quality { below: Rate::from_bps(1_200_000), pictures: "testsrc2=size=320x180:rate=25", ..LARGE },
    Quality { below: Rate::from_mbps(3), pictures: "testsrc2=size=640x360:rate=25", ..LARGE },
    LARGE,
];

/// The share of the mean rate that the pictures of a film without stuffing get.
const VARIABLE_SHARE: f64 = 0.82;

/// How far the file may be from its rate: ffmpeg goes over it where pictures and sound do not fit.
const TOLERANCE: f64 = 0.02;

/// A film on disk.
#[derive(Debug)]
pub struct MadeFilm {
    /// The file.
    pub file: PathBuf,
    made: bool,
}

impl MadeFilm {
    /// Removes the file, if it was made for the run.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        if self.made {
            fs::remove_file(&self.file).map_err(Error::io(self.file.display().to_string()))?;
        }
        Ok(())
    }
}

/// The scenario's film: the file that it names, else made in `directory` with ffmpeg, at a constant rate.
///
/// # Errors
/// When ffmpeg fails or is not there.
pub fn make(scenario: &Scenario, directory: &Path) -> Result<Option<MadeFilm>, Error> {
    fs::create_dir_all(directory).map_err(Error::io(directory.display().to_string()))?;
    let Some(film) = &scenario.film else { return Ok(None) };
    if let Some(file) = &film.file {
        return Ok(Some(MadeFilm { file: file.clone(), made: false }));
    }
    let file = directory.join("film.ts");
    encode(&file, film.rate, film.is_variable, film.duration)?;
    Ok(Some(MadeFilm { file, made: true }))
}

/// Makes `file` with ffmpeg: H.264 and AAC in an MPEG transport stream of a constant rate, with stuffing. One
/// of variable rate has this mean without its stuffing, and [`Film::PEAK`] times as much with it.
///
/// # Errors
/// When ffmpeg fails, is not there, or cannot get down to the rate.
pub fn encode(file: &Path, rate: Rate, is_variable: bool, duration: Duration) -> Result<(), Error> {
    let quality = QUALITIES.iter().find(|quality| rate < quality.below).unwrap_or(&LARGE);
    let share = if is_variable { VARIABLE_SHARE } else { quality.share };
    let pictures = format!("{:.0}", rate.as_f64() * share);
    let rate = if is_variable { rate * Film::PEAK } else { rate };
    let mut command = Command::new("ffmpeg");
    command.args(["-y", "-loglevel", "error", "-f", "lavfi", "-i", quality.pictures]);
    if !quality.sound.is_empty() {
        command.args(["-f", "lavfi", "-i", "sine=frequency=440"]);
    }
    command
        .args(["-t", &duration.as_secs_f64().to_string()])
        .args(["-c:v", "libx264", "-preset", quality.preset, "-g", quality.key, "-pix_fmt", "yuv420p"])
        .args(["-b:v", &pictures, "-maxrate", &pictures, "-bufsize", &pictures]);
    if !quality.sound.is_empty() {
        command.args(["-c:a", "aac"]).args(quality.sound);
    }
    // Tables once a second; ten times are a third of the lowest rates.
    command.args([
        "-f",
        "mpegts",
        "-pat_period",
        "1",
        "-sdt_period",
        "10",
        "-muxrate",
        &rate.as_bps().to_string(),
    ]);
    let output = command
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Program { program: "ffmpeg".into(), cause: error.to_string() })?;
    let failed = |cause: String| Err(Error::Program { program: "ffmpeg".into(), cause });
    if !output.status.success() {
        return failed(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    let bytes = fs::metadata(file).map_err(Error::io(file.display().to_string()))?.len();
    let made = Rate::of(Bytes::new(bytes), duration);
    match (made.ratio_to(rate) - 1.0).abs() <= TOLERANCE {
        true => Ok(()),
        false => failed(format!("a film of {rate} came out at {made}")),
    }
}
