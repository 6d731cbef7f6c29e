//! What the program says to the person in front of it: on standard error, around the progress line.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::arguments::Globals;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::stop::Stop;

/// How much is said, and where. Clones speak through the same mouth.
#[derive(Clone, Debug)]
pub struct Output {
    globals: Globals,
    bars: MultiProgress,
    stop: Stop,
}

impl Output {
    /// As the options say. A progress line is shown on a terminal only.
    pub fn new(globals: Globals, stop: Stop) -> Self {
        let shown = !globals.quiet && io::stderr().is_terminal();
        let target = match shown {
            true => ProgressDrawTarget::term_like_with_hz(Box::new(Screen::stderr()), 5),
            false => ProgressDrawTarget::hidden(),
        };
        Self { globals, bars: MultiProgress::with_draw_target(target), stop }
    }

    /// When the program is to end.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// What the user wants to know without asking. Not with `--quiet`.
    pub fn say(&self, message: impl fmt::Display) {
        if !self.globals.quiet {
            self.write(message);
        }
    }

    /// What the user wants to know with `--verbose` only.
    pub fn detail(&self, message: impl fmt::Display) {
        if self.globals.verbose {
            self.write(message);
        }
    }

    /// Something that the user should know although the program goes on. Not with `--quiet`.
    pub fn warn(&self, message: impl fmt::Display) {
        self.say(format_args!("warning: {message}"));
    }

    /// Why the program ends; always.
    pub fn fail(&self, failure: &Failure) {
        if !failure.message().is_empty() {
            self.write(failure);
            for line in failure.details().lines() {
                let line = format!("{}\n", OneLine(line));
                let _ = self.bars.suspend(|| io::stderr().lock().write_all(line.as_bytes()));
            }
        }
    }

    /// Shows the warnings that libraries log, around the progress line as well. Once a program. That a
    /// datagram cannot leave, as while an interface is down, is told in our own words by who sends it.
    pub fn show_warnings(&self) {
        let level = if self.globals.quiet { LevelFilter::ERROR } else { LevelFilter::WARN };
        let bars = self.bars.clone();
        let shown = Targets::new().with_default(level).with_target("quinn_udp", LevelFilter::OFF);
        let layer = tracing_subscriber::fmt::layer()
            .without_time()
            .with_target(false)
            .with_ansi(false)
            .with_writer(move || AroundBars(bars.clone()))
            .with_filter(shown);
        tracing_subscriber::registry().with(layer).init();
    }

    /// Whether `--quiet` was given.
    #[cfg(feature = "sim")]
    pub fn is_quiet(&self) -> bool {
        self.globals.quiet
    }

    /// Whether `--verbose` was given.
    pub fn is_verbose(&self) -> bool {
        self.globals.verbose
    }

    /// A line that stays on the terminal and is drawn again and again; it is hidden where there is no
    /// terminal.
    pub fn progress(&self) -> ProgressBar {
        self.bars.add(ProgressBar::no_length())
    }

    fn write(&self, message: impl fmt::Display) {
        // A terminal that is gone is no reason to stop, so an error is not one either.
        // At once: standard error would pass on each character by itself.
        let line = format!("anabranch: {}\n", OneLine(&message.to_string()));
        let _ = self.bars.suspend(|| io::stderr().lock().write_all(line.as_bytes()));
    }
}

/// Refuses to write media to a terminal, which would obey what it finds there. To be asked before anything is
/// begun.
///
/// # Errors
/// Standard output is a terminal.
pub fn spare_the_terminal() -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::usage(
            "standard output is a terminal, which media would garble: write to a file with --output FILE, \
             or put a pipe and a player behind the command, such as '| ffplay -'",
        ));
    }
    Ok(())
}

/// A number of things: `1 connection`, `3 connections`.
pub fn counted<N: Copy + fmt::Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    format!("{count} {thing}{}", if count == N::from(1) { "" } else { "s" })
}

/// Standard error without the progress line in the way.
struct AroundBars(MultiProgress);

impl Write for AroundBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Text on one line, without control characters: parts of messages come from servers, and a terminal obeys
/// escapes.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| fmt::Write::write_char(f, if c.is_control() { ' ' } else { c }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_called_several() {
        assert_eq!([counted(0u64, "packet"), counted(1u64, "packet")], ["0 packets", "1 packet"]);
        assert_eq!(counted(2usize, "packet"), "2 packets");
    }

    #[test]
    fn a_server_cannot_command_the_terminal() {
        assert_eq!(OneLine("a\x1b[31mb\r\nc").to_string(), "a [31mb  c");
    }
}
