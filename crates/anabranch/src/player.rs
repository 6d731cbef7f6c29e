//! The player that `--player` starts. It ends with this program, also where that is killed.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

#[cfg(target_os = "linux")]
use crate::arguments::PlayerArguments;
use crate::failure::Failure;
#[cfg(target_os = "linux")]
use crate::open_files;

/// This program, also where its file was replaced by a newer one.
#[cfg(target_os = "linux")]
const THIS_PROGRAM: &str = "/proc/self/exe";
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

    /// Starts the player, with this as its standard input. With `quiet_stdout` its standard output goes where
    /// its errors go, as ours is used for reports. It is told to end when the thread ends that calls this:
    /// that has to be the main thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(self, quiet_stdout: bool, input: Stdio) -> Result<Player, Failure> {
        let mut command = self.command();
        command.stdin(input).kill_on_drop(true);
        if quiet_stdout {
            command.stdout(Stdio::from(io::stderr()));
        }
        let found =
            if is_there(&self.program) { command.spawn() } else { Err(io::ErrorKind::NotFound.into()) };
        match found {
            Ok(child) => Ok(Player { child, program: self.program }),
            Err(error) => Err(cannot_start(&self.program, &error)),
        }
    }

    /// The player by way of this program, which has the system end it.
    #[cfg(target_os = "linux")]
    fn command(&self) -> Command {
        if !Path::new(THIS_PROGRAM).exists() {
            return self.plain_command();
        }
        let mut command = Command::new(THIS_PROGRAM);
        command.arg0("anabranch").arg("player");
        if let Some(files) = open_files::limit_before() {
            command.arg("--open-files").arg(files.to_string());
        }
        command.arg(std::process::id().to_string()).arg("--").arg(&self.program).args(&self.arguments);
        command
    }

    #[cfg(not(target_os = "linux"))]
    fn command(&self) -> Command {
        self.plain_command()
    }

    fn plain_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

fn cannot_start(program: &str, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        _ => error.to_string(),
    };
    Failure::failed(format_args!("cannot start the player {program}: {reason}"))
}

/// Whether there is a file that a shell would start by this name.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).exists();
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| directory.join(program).exists())
}

/// Becomes the player, which the system asks to end when the thread that started it does. Answers only when
/// that fails.
#[cfg(target_os = "linux")]
pub(super) fn become_it(arguments: &PlayerArguments) -> Failure {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Resource, Rlimit, getppid, getrlimit, set_parent_process_death_signal, setrlimit};

    let Some((program, rest)) = arguments.command.split_first() else {
        return Failure::usage("there is no player");
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return Failure::failed(error);
    }
    // One that had ended before that sends no signal.
    if getppid().map(Pid::as_raw_pid) != Some(arguments.parent) {
        return Failure::failed("who started the player is gone");
    }
    if let Some(files) = arguments.open_files {
        // Programs may not expect more than the usual limit; with a higher one they start all the same.
        let maximum = getrlimit(Resource::Nofile).maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum });
    }
    let error = std::process::Command::new(program).args(rest).exec();
    cannot_start(&program.to_string_lossy(), &error)
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
