//! Which experiments are meant by the words of a command line.

use thiserror::Error;

use crate::experiment::Experiment;

/// The word that means every experiment.
const ALL: &str = "all";
/// From this similarity on (Jaro and Winkler) a name may be the one that was meant.
const SIMILAR: f64 = 0.7;

/// A word that means no experiment.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no experiment '{word}'; {}", hint(nearest))]
pub struct UnknownExperiment {
    word: String,
    nearest: Vec<String>,
}

fn hint(nearest: &[String]) -> String {
    match nearest {
        [] => "'anabranch lab list' tells their names".into(),
        names => format!("did you mean {}?", names.join(" or ")),
    }
}

/// The experiments that the words name, each once and in the order of `experiments`: a word is an id, the
/// beginning of one, or `all`.
///
/// # Errors
/// A word that means none.
pub fn select(experiments: Vec<Experiment>, words: &[String]) -> Result<Vec<Experiment>, UnknownExperiment> {
    let means = |word: &str, id: &str| word == ALL || id.starts_with(word);
    // An id is also the beginning of others: `multitcp-fig8.1` would be that of `multitcp-fig8.10`.
    let exact = |word: &str| experiments.iter().any(|experiment| experiment.id == word);
    let mut chosen = Vec::new();
    for word in words {
        let is_exact = exact(word);
        let meant = |id: &str| if is_exact { id == word } else { !word.is_empty() && means(word, id) };
        let ids: Vec<String> = experiments.iter().map(|one| one.id.clone()).filter(|id| meant(id)).collect();
        if ids.is_empty() {
            return Err(UnknownExperiment { word: word.clone(), nearest: nearest(word, &experiments) });
        }
        chosen.extend(ids);
    }
    Ok(experiments.into_iter().filter(|experiment| chosen.contains(&experiment.id)).collect())
}

fn nearest(word: &str, experiments: &[Experiment]) -> Vec<String> {
    let mut names: Vec<(f64, &str)> = experiments
        .iter()
        .map(|experiment| (strsim::jaro_winkler(word, &experiment.id), &*experiment.id))
        .collect();
    names.sort_by(|one, other| other.0.total_cmp(&one.0));
    names
        .into_iter()
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .map(|(_, name)| name.to_owned())
        .take(3)
        .collect()
}
