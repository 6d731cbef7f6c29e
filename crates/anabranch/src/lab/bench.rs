//! `anabranch lab bench`: real programs measured, and tables of that.

use std::env;
use std::fs;
use std::path::Path;

use anabranch_lab::Progress;
use anabranch_lab::campaign::{self, BenchOptions, Campaign, CampaignError, Tables};
use anabranch_lab::real::Testbed;

use super::work::{in_background, marked, print, write};
use crate::arguments::{BenchArguments, BenchCommand};
use crate::failure::Failure;
use crate::output::Output;

/// Lists, runs, or makes tables.
///
/// # Errors
/// A campaign that is not known or wrong, a run that could not be made, results that could not be read or
/// written, or a signal.
pub(super) async fn run(arguments: BenchArguments, output: &Output) -> Result<(), Failure> {
    let BenchArguments { command, campaigns, out } = arguments;
    let all = campaign::all(&campaigns).map_err(|error| told(&error, &campaigns))?;
    match command {
        BenchCommand::List => {
            let lines =
                all.iter().map(|one| format!("{:<16} {}\n{:<16} {}\n", one.name, one.title, "", one.aim));
            print(&lines.collect::<String>())
        }
        BenchCommand::Run { names, rounds, clients, testbed } => {
            let chosen = select(all, &names)?;
            let program = env::current_exe().map_err(Failure::failed)?;
            let testbed = Testbed::find(testbed).map_err(Failure::failed)?;
            for campaign in chosen {
                output.say(format_args!("{}: {}", campaign.name, campaign.title));
                let (program, testbed, clients, out) =
                    (program.clone(), testbed.clone(), clients.clone(), out.clone());
                let (directory, tables) = in_background(output, false, move |stop, progress| {
                    progress(Progress { done: 0, total: 1, left: None });
                    let options = BenchOptions {
                        program: &program,
                        testbed: &testbed,
                        rounds,
                        clients: &clients,
                        out: &out,
                        stop,
                    };
                    let directory = campaign::run(&campaign, &options)?;
                    let tables = Tables::of_run(&campaign, &directory)?;
                    Ok((directory, tables))
                })
                .await?;
                print(&format!("{}\n{}\n", tables.markdown(), directory.display()))?;
            }
            Ok(())
        }
        BenchCommand::Tables { names, page } => {
            let chosen = if names.is_empty() { all } else { select(all, &names)? };
            let mut made = Vec::new();
            for campaign in &chosen {
                let Some(directory) = campaign::newest(&out, &campaign.name).map_err(Failure::failed)? else {
                    if names.is_empty() {
                        continue;
                    }
                    let help = format!("'anabranch lab bench run {}' makes them", campaign.name);
                    return Err(Failure::failed(format_args!(
                        "{} has no results in {}",
                        campaign.name,
                        out.display()
                    ))
                    .with(&help));
                };
                let tables = Tables::of_run(campaign, &directory).map_err(Failure::failed)?;
                output.say(format_args!("{}: of {}", campaign.name, directory.display()));
                made.push((campaign.name.clone(), tables.markdown()));
            }
            let Some(page) = page else {
                let text: String =
                    made.iter().map(|(name, table)| format!("== {name}\n\n{table}\n")).collect();
                return print(&text);
            };
            let document = fs::read_to_string(&page)
                .map_err(|error| Failure::failed(format_args!("cannot read {}: {error}", page.display())))?;
            write(&page, campaign::page(&page, &document, &made).map_err(Failure::failed)?)
        }
    }
}

/// What is wrong with the campaigns; where there are none, how to find them.
fn told(error: &CampaignError, directory: &Path) -> Failure {
    match error {
        CampaignError::Path(_) => marked(error).with(format_args!(
            "the campaigns of the source are in bench/campaigns: run it there, or --campaigns DIR says \
             where; this was {}",
            directory.display()
        )),
        error => marked(error),
    }
}

fn select(all: Vec<Campaign>, names: &[String]) -> Result<Vec<Campaign>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(all);
    }
    if let Some(wrong) = names.iter().find(|name| !all.iter().any(|campaign| campaign.name == **name)) {
        let known: Vec<&str> = all.iter().map(|campaign| campaign.name.as_str()).collect();
        return Err(Failure::usage(format_args!(
            "there is no campaign '{wrong}'; there are: {}",
            known.join(", ")
        )));
    }
    Ok(all.into_iter().filter(|campaign| names.contains(&campaign.name)).collect())
}
