//! The player that `--player` starts.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::failure::Failure;

/// What stands for the film.
const PLACE: &str = "{}";
/// How long a player may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A player's command line, split as a shell does, without a shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlayerCommand {
    program: String,
    arguments: Vec<String>,
}

impl PlayerCommand {
    /// The command for this film: its URL, or `-` for standard input, stands where `{}` is, or comes last.
    ///
    /// # Errors
    /// The quotes do not match, or there is nothing.
    pub(super) fn new(template: &str, url: &str) -> Result<Self, Failure> {
        let words = shell_words::split(template)
            .map_err(|error| Failure::usage(format_args!("--player '{template}': {error}")))?;
        let has_place = words.iter().any(|word| word.contains(PLACE));
        let mut words = words.into_iter().map(|word| word.replace(PLACE, url));
        let program = words.next().ok_or_else(|| Failure::usage("--player names no program"))?;
        let mut arguments: Vec<_> = words.collect();
        if !has_place {
            arguments.push(url.to_owned());
        }
        Ok(Self { program, arguments })
    }

    /// Starts the player, with this as its standard input. With `quiet_stdout` its standard output goes where its errors go,
    /// as ours is used for reports.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(self, quiet_stdout: bool, input: Stdio) -> Result<Player, Failure> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(input).kill_on_drop(true);
        if quiet_stdout {
            command.stdout(Stdio::from(io::stderr()));
        }
        match command.spawn() {
            Ok(child) => Ok(Player { child, program: self.program }),
            Err(error) => {
                let reason = match error.kind() {
                    io::ErrorKind::NotFound => "there is no such program".to_owned(),
                    _ => error.to_string(),
                };
                Err(Failure::failed(format_args!("cannot start the player {}: {reason}", self.program)))
            }
        }
    }
}

/// A player that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Player {
    child: Child,
    program: String,
}

impl Player {
    /// Where the film goes in, when the player was started with a pipe. Only the first time.
    pub(super) fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits until the player ends.
    ///
    /// # Errors
    /// It did not end well.
    pub(super) async fn ended(&mut self) -> Result<(), Failure> {
        let failed = |how: &dyn std::fmt::Display| {
            Err(Failure::failed(format_args!("the player {} failed: {how}", self.program)))
        };
        match self.child.wait().await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => failed(&how(status)),
            Err(error) => failed(&error),
        }
    }

    /// Asks the player to end, and kills it when it does not.
    pub(super) async fn stop(mut self) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        // A player that has ended already cannot be asked.
        if pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok()) {
            let _ = timeout(GRACE, self.child.wait()).await;
        }
    }
}

fn how(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("it ended with exit code {code}"),
        None => format!("it was ended by {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_stands_where_it_should() {
        let of = |template: &str| {
            PlayerCommand::new(template, "http://x/f").map(|command| (command.program, command.arguments))
        };
        let command = |program: &str, arguments: &[&str]| {
            Ok((program.to_owned(), arguments.iter().map(|argument| (*argument).to_owned()).collect()))
        };
        assert_eq!(of("mpv"), command("mpv", &["http://x/f"]));
        assert_eq!(of("mpv {} --fs"), command("mpv", &["http://x/f", "--fs"]));
        assert_eq!(
            of("ffmpeg -i 'cache:{}' -f null -"),
            command("ffmpeg", &["-i", "cache:http://x/f", "-f", "null", "-"])
        );
        assert_eq!(of("'my player' \"a b\""), command("my player", &["a b", "http://x/f"]));
        assert!(of("").is_err() && of("mpv 'x").is_err());
    }
}
