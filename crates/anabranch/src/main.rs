//! `anabranch`: media streaming over several connections.

mod arguments;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod control;
mod demo;
#[cfg(test)]
mod documented;
mod endpoint;
mod failure;
mod fetch;
mod handover;
#[cfg(feature = "lab")]
mod lab;
mod live;
mod metrics;
mod open_files;
mod opening;
mod output;
mod play;
mod player;
mod proxy;
mod report;
mod screen;
mod serve;
mod settings;
#[cfg(feature = "sim")]
mod simulate;
mod stop;
mod weights;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::FromArgMatches;

use arguments::{Cli, Command, RateArgument};
use failure::Failure;
use output::Output;
use stop::Stop;

fn main() -> ExitCode {
    let matches = match arguments::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return usage(error),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    #[cfg(target_os = "linux")]
    if let Command::Player(arguments) = &cli.command {
        // Before there are threads and handlers of signals.
        let failure = player::become_it(arguments);
        eprintln!("anabranch: {failure}");
        return failure.exit_code().into();
    }
    let mut builder = match is_paced(&cli.command) {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("anabranch: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    // On a worker, as everything else: between this thread and theirs every step would be handed to and fro.
    let ended = match runtime.block_on(runtime.spawn(start(cli))) {
        Ok(ended) => ended,
        // It has said why.
        Err(_panicked) => ExitCode::from(101),
    };
    // A task that hangs in a system call, such as a write to a pipe that nobody reads, must not hold up the
    // end.
    runtime.shutdown_background();
    ended
}

/// Whether a command has one stream at a rate of its own: then one thread has time for everything, and several
/// would wake each other.
fn is_paced(command: &Command) -> bool {
    match command {
        Command::Play(arguments) => !matches!(arguments.source.rate, Some(RateArgument::Max)),
        Command::Fetch(arguments) => matches!(arguments.source.rate, Some(RateArgument::Fixed(_))),
        Command::Send(_) => true,
        Command::Receive(arguments) => arguments.senders == 1,
        _ => false,
    }
}

/// Help and version are no errors; what is one begins like all that this program says.
fn usage(error: clap::Error) -> ExitCode {
    let error = arguments::without_secrets(error);
    let mut text = error.render().to_string();
    if let Some(why) = arguments::left_out(&error) {
        text = format!("error: {why}\n");
    }
    // A terminal or a reader that is gone is no reason for another message.
    let _ = match text.strip_prefix("error: ") {
        Some(text) => io::stderr().write_all(format!("anabranch: {text}").as_bytes()),
        None => error.print(),
    };
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

async fn start(cli: Cli) -> ExitCode {
    let stop = match Stop::listen() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("anabranch: cannot wait for signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    let output = Output::new(cli.globals, stop);
    output.show_warnings();
    let code = match run(cli.command, &output).await {
        Ok(()) => 0,
        Err(failure) => {
            output.fail(&failure);
            failure.exit_code()
        }
    };
    #[cfg(feature = "srt")]
    if !live::has_ended() {
        anabranch_srt::leave(code);
    }
    code.into()
}

async fn run(command: Command, output: &Output) -> Result<(), Failure> {
    match command {
        Command::Play(arguments) => play::run(arguments, output).await,
        Command::Proxy(arguments) => proxy::run(arguments, output).await,
        // It computes all the time: the thread for it is the one that nothing else waits for.
        #[cfg(feature = "sim")]
        Command::Sim(arguments) => tokio::task::block_in_place(|| simulate::run(&arguments, output)),
        #[cfg(all(feature = "kernel", target_os = "linux"))]
        Command::Cc(arguments) => control::run(arguments, output),
        #[cfg(target_os = "linux")]
        Command::Player(arguments) => Err(player::become_it(&arguments)),
        Command::Demo(arguments) => demo::run(arguments, output).await,
        Command::Fetch(arguments) => fetch::run(arguments, output).await,
        #[cfg(feature = "lab")]
        Command::Lab(arguments) => lab::run(arguments, output).await,
        Command::Send(arguments) => live::send(arguments, output).await,
        Command::Receive(arguments) => live::receive(arguments, output).await,
        Command::Serve(arguments) => serve::run(arguments, output).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut arguments::command(), "anabranch", &mut script);
            io::stdout().write_all(&script).map_err(|error| Failure::output(&error))
        }
        Command::Man { directory } => arguments::write_manual(&directory).map_err(|error| {
            Failure::failed(format_args!("cannot write to {}: {error}", directory.display()))
        }),
    }
}
