//! The media of a run: an MPEG transport stream of exactly the film's rate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::scenario::Scenario;

/// The share of the rate that the pictures get; the rest is sound, headers and stuffing.
const PICTURE_SHARE: f64 = 0.75;

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
    let pictures = format!("{:.0}", film.rate.as_f64() * PICTURE_SHARE);
    let rate = film.rate.as_bps().to_string();
    let output = Command::new("ffmpeg")
        .args(["-y", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"])
        .args(["-f", "lavfi", "-i", "sine=frequency=440"])
        .args(["-t", &film.duration.as_secs_f64().to_string()])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-pix_fmt", "yuv420p"])
        .args(["-b:v", &pictures, "-maxrate", &pictures, "-bufsize", &pictures])
        .args(["-c:a", "aac", "-b:a", "32k", "-f", "mpegts", "-muxrate", &rate])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Program { program: "ffmpeg".into(), cause: error.to_string() })?;
    if !output.status.success() {
        let cause = String::from_utf8_lossy(&output.stderr).trim().into();
        return Err(Error::Program { program: "ffmpeg".into(), cause });
    }
    Ok(Some(MadeFilm { file, made: true }))
}
