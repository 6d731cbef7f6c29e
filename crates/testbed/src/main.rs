//! `anabranch-testbed`: real programs over emulated paths.

use std::path::PathBuf;
use std::process::ExitCode;

use anabranch_testbed::isolate::{self, Options};
use anabranch_testbed::{Error, compare, film, relay};
use anabranch_units::{Duration, Rate};
use clap::{Parser, Subcommand};

/// Runs real programs in network namespaces over emulated paths.
///
/// Everything that a run makes goes away with it, also when it is killed.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Carry one client through a scenario.
    Run {
        /// The scenario, a TOML file.
        scenario: PathBuf,
        /// Which of its clients; the first without this.
        #[arg(long)]
        client: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Carry several clients through a scenario, one after the other, and make a table.
    Compare {
        /// The scenario, a TOML file.
        scenario: PathBuf,
        /// Which of its clients, with commas; all without this.
        #[arg(long, value_delimiter = ',')]
        clients: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Make a film with ffmpeg: an MPEG transport stream of a constant rate, or with stuffing to be left out.
    Film {
        /// The file to write.
        file: PathBuf,
        /// Its rate: 800k, 3M.
        #[arg(long)]
        rate: Rate,
        /// That rate is the mean one, without stuffing.
        #[arg(long)]
        variable: bool,
        /// How long it plays.
        #[arg(long, default_value = "70s")]
        duration: Duration,
    },
    /// Say whether runs are possible here, and what to do if not.
    Check,
    /// The run itself, in its namespaces.
    #[command(hide = true)]
    Inside { order: String },
    /// A server of a run that has caps, behind a relay that holds them.
    #[command(hide = true)]
    Relay {
        #[command(flatten)]
        caps: relay::Caps,
        #[arg(last = true, required = true)]
        server: Vec<String>,
    },
}

#[derive(clap::Args)]
struct Common {
    /// Where the results go.
    #[arg(long, default_value = "testbed-results")]
    out: PathBuf,
    /// The program that stands for {anabranch}; without this the one beside this program, else on the PATH.
    #[arg(long)]
    anabranch: Option<PathBuf>,
    /// A film that is there, in the place of the scenario's; with --film-rate.
    #[arg(long, requires = "film_rate")]
    film: Option<PathBuf>,
    /// The rate of that film: 800k, 3M.
    #[arg(long, requires = "film")]
    film_rate: Option<Rate>,
    /// Leave everything running at a run's end, until interrupted, and keep the film.
    #[arg(long)]
    keep: bool,
}

impl Common {
    fn options(self) -> Result<Options, Error> {
        let options = Options::here(&self.out)?;
        let film = self.film.zip(self.film_rate);
        let anabranch = self.anabranch.unwrap_or(options.anabranch);
        Ok(Options { anabranch, film, keep: self.keep, ..options })
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        // The line with the result comes from the run itself.
        Command::Run { scenario, client, common } => common
            .options()
            .and_then(|options| isolate::run(&scenario, client.as_deref(), &options).map(|_| ())),
        Command::Compare { scenario, clients, common } => common
            .options()
            .and_then(|options| compare::compare(&scenario, &clients, &options))
            .map(|summaries| print!("{}", compare::markdown(&summaries))),
        Command::Film { file, rate, variable, duration } => film::encode(&file, rate, variable, duration),
        Command::Check => isolate::allowed().map(|()| println!("runs are possible here")),
        Command::Inside { order } => isolate::inside(&order),
        Command::Relay { caps, server } => relay::relay(caps, &server),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anabranch-testbed: {error}");
            ExitCode::FAILURE
        }
    }
}
