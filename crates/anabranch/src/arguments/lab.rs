//! `anabranch lab`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anabranch_lab::Share;
use clap::{Args, Subcommand};

/// Options of `anabranch lab`.
#[derive(Args, Debug)]
pub struct LabArguments {
    /// What to do with them.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What is done with experiments.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List the experiments
    List(PapersArguments),
    /// Write an experiment of this program into a directory, as a beginning for one of your own
    Copy {
        /// Its name, as 'lab list' has it
        #[arg(value_name = "ID")]
        id: String,
        /// Where PAPER/NAME is made: what '--papers' takes
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Run experiments, judge what their papers report, and write verdicts, tables, plots and a report
    Run(RunArguments),
    /// Bind everything that a directory has results of into its verdicts.json, a report of a page for each
    /// paper, and report.pdf
    Report {
        /// The directory: what 'lab run --out' was given
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Write what reproduces, and every difference with its cause, as a page in Markdown
        #[arg(long, value_name = "FILE.md")]
        markdown: Option<PathBuf>,
    },
    /// Search what a paper leaves open: which values of it reproduce most of the paper's own relations
    Readings(ReadingsArguments),
    /// Run a scenario of the simulator at many points of its parameters, into one table
    Sweep(SweepArguments),
    /// Check that every share of a sweep is there and whole, and make its table
    Merge {
        /// The directory: what 'lab sweep --out' was given
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Where the table goes [default: DIR/table.csv]
        #[arg(long, value_name = "FILE.csv")]
        out: Option<PathBuf>,
    },
    /// Compare the simulator with ns-2, whose results come with this program
    Validate(ValidateArguments),
    /// Measure real programs, ours beside others, and make tables of what was measured
    Bench(BenchArguments),
}

/// Options of `anabranch lab bench`.
#[derive(Args, Debug)]
pub struct BenchArguments {
    /// What to do with the benchmarks.
    #[command(subcommand)]
    pub command: BenchCommand,
    /// Where the campaigns are: a TOML file each
    #[arg(long, value_name = "DIR", default_value = "bench/campaigns", global = true)]
    pub campaigns: PathBuf,
    /// The directory of all results; a run's are in DATE-COMMIT/NAME below it
    #[arg(long, value_name = "DIR", default_value = "bench/results", global = true)]
    pub out: PathBuf,
}

/// What is done with benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// List the campaigns
    List,
    /// Run campaigns one after the other; keep their raw results, and make their tables
    Run {
        /// The campaigns; 'all' for all of them
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// How often a program that measures does so; tables have the median
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// In scenarios of the testbed only these clients
        #[arg(long, value_name = "A,B", value_delimiter = ',')]
        clients: Vec<String>,
        /// The testbed's program [default: the one beside this program, else the one on the PATH]
        #[arg(long, value_name = "FILE")]
        testbed: Option<PathBuf>,
    },
    /// Make the tables and plots again of raw results that were kept; the newest of each campaign
    Tables {
        /// The campaigns [default: all that have results]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Put the tables into this page, between '<!-- table:NAME -->' and '<!-- /table -->'
        #[arg(long, value_name = "FILE.md")]
        page: Option<PathBuf>,
    },
}

/// Options of `anabranch lab sweep`.
#[derive(Args, Debug)]
pub struct SweepArguments {
    /// What is varied: a scenario and its parameters' values as TOML; docs/lab.md has the format
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,
    /// Make share I of N only, so that several machines divide the work; 'lab merge' makes the table of all
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Share>,
    /// So many runs at a time [default: the number of processors]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Where the runs and the table go; a sweep that was interrupted or killed goes on with what is there
    #[arg(long, value_name = "DIR", default_value = "sweep-results")]
    pub out: PathBuf,
}

/// Options of `anabranch lab validate`.
#[derive(Args, Debug)]
pub struct ValidateArguments {
    /// Groups of scenarios: the beginnings of their names, such as R5; all when none is given
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Run everything random with seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: u64,
    /// So many runs at a time [default: the number of processors]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Write the comparison as a page in Markdown, and everything that was compared beside it as CSV
    #[arg(long, value_name = "FILE.md")]
    pub out: Option<PathBuf>,
}

/// Options of `anabranch lab run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// Experiments: their names or the beginnings of them, such as multitcp; or all
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub papers: PapersArguments,
    /// Run everything random with seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: u64,
    /// So many runs at a time [default: the number of processors]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// One seed only, so without confidence intervals: a look at everything in two minutes
    #[arg(long, conflicts_with = "seeds")]
    pub quick: bool,
    /// Make every Nth run only, from the Ith on, and no report: for several machines with one directory
    #[arg(long, value_name = "I/N", conflicts_with_all = ["fresh", "real"])]
    pub shard: Option<Share>,
    /// Repeat every run, also those that an earlier call has finished
    #[arg(long)]
    pub fresh: bool,
    /// Run real programs over emulated paths as well, and put what they measure beside the simulation ('lab
    /// list' tells where)
    #[arg(long)]
    pub real: bool,
    /// Make every real run N times, as seeds 1 to N: they take as long as they say
    #[arg(long, value_name = "N", default_value_t = 1, requires = "real", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub real_seeds: u64,
    /// The testbed's program [default: anabranch-testbed beside this program, else on the PATH]
    #[arg(long, value_name = "FILE", requires = "real")]
    pub testbed: Option<PathBuf>,
    /// Where the results go; a run that was interrupted or killed goes on with what is there
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
}

/// Options of `anabranch lab readings`.
#[derive(Args, Debug)]
pub struct ReadingsArguments {
    /// The paper's folder, such as multitcp; its readings.toml has what is open
    #[arg(value_name = "PAPER")]
    pub paper: String,
    /// The paper of this directory in place of the program's own
    #[arg(long, value_name = "DIR")]
    pub papers: Option<PathBuf>,
    /// Only values with TEXT in their label or in the name of what is open, beside the first ones; more than once:
    /// any of them
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// Run everything random with seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: u64,
    /// So many runs at a time [default: the number of processors]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Where PAPER-sets.csv, PAPER-relations.csv and finished runs go
    #[arg(long, value_name = "DIR", default_value = "lab-readings")]
    pub out: PathBuf,
}

/// Where experiments are besides those of the program.
#[derive(Args, Debug)]
pub struct PapersArguments {
    /// Experiments of your own as well: folders PAPER/NAME with a plan in this directory; docs/experiments.md
    /// has the format
    #[arg(long = "papers", value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
