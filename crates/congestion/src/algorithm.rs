//! The window controllers by name: what a scenario, a command line and a trace call them.

use std::fmt;
use std::str::FromStr;

use crate::bbr::Bbr;
use crate::control::{Controller, Start};
use crate::cubic::Cubic;
use crate::dctcp::Dctcp;
use crate::loss_history::Weights;
use crate::multcp::{MOST_FLOWS, MulTcp};
use crate::tfwc::{Addition, Parameters, Tfwc, Tuning, Update};

/// A window controller with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// One flow as so many: from 1 to [`MOST_FLOWS`].
    MulTcp(f64),
    /// TFWC, or TTFWC with its tuning parameter.
    Tfwc(Parameters),
    /// BBRv3 (draft-ietf-ccwg-bbr).
    Bbr,
    /// DCTCP (RFC 8257).
    Dctcp,
}

impl Algorithm {
    /// How they are written.
    pub const FORMS: &'static str = "reno, cubic, multcp:N (N from 1, such as multcp:4), tfwc, ttfwc:TP or \
                                     ttfwc-approximate:TP \
         (TP from 0 to 1, such as ttfwc:0.9; readings after a comma), bbr, dctcp";

    /// A controller for a flow that begins.
    pub fn controller(&self, start: &Start) -> Box<dyn Controller> {
        match *self {
            Self::Reno => Box::new(MulTcp::reno(start)),
            Self::Cubic => Box::new(Cubic::new(start)),
            Self::MulTcp(flows) => Box::new(MulTcp::new(start, flows)),
            Self::Tfwc(parameters) => Box::new(Tfwc::new(start, parameters)),
            Self::Bbr => Box::new(Bbr::new(start)),
            Self::Dctcp => Box::new(Dctcp::new(start)),
        }
    }

    /// Whether its controller is [paced](crate::control): only a driver that paces and keeps the books of
    /// deliveries can run it.
    pub fn is_paced(&self) -> bool {
        matches!(self, Self::Bbr)
    }

    /// Whether its controller goes by how much is marked (RFC 9331, section 4.3): only a driver that tells it
    /// of marks ([`Controller::on_feedback`]) can run it, and only over packets that can be marked.
    pub fn is_scalable(&self) -> bool {
        matches!(self, Self::Dctcp)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Reno => f.write_str("reno"),
            Self::Cubic => f.write_str("cubic"),
            Self::MulTcp(flows) => write!(f, "multcp:{flows}"),
            Self::Tfwc(Parameters::TFWC) => f.write_str("tfwc"),
            Self::Tfwc(Parameters { tuning, update, weights, addition }) => {
                let name = if update == Update::Accurate { "ttfwc" } else { "ttfwc-approximate" };
                write!(f, "{name}:{tuning}")?;
                if weights == Weights::Geometric {
                    f.write_str(",geometric")?;
                }
                if addition == Addition::Listing {
                    f.write_str(",listing")?;
                }
                Ok(())
            }
            Self::Bbr => f.write_str("bbr"),
            Self::Dctcp => f.write_str("dctcp"),
        }
    }
}

/// A name that is none, or a parameter out of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnAlgorithm {
    problem: String,
}

impl NotAnAlgorithm {
    /// What is wrong, without what would be right.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for NotAnAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; write one of {}", self.problem, Algorithm::FORMS)
    }
}

impl std::error::Error for NotAnAlgorithm {}

impl FromStr for Algorithm {
    type Err = NotAnAlgorithm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |problem: String| Err(NotAnAlgorithm { problem });
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let tuned = |update| match parameter.map(|parameter| tuned(parameter, update)) {
            Some(Ok(parameters)) => Ok(Self::Tfwc(parameters)),
            Some(Err(problem)) => wrong(format!("'{text}': {problem}")),
            None => wrong(format!("'{text}' needs a tuning parameter")),
        };
        match (name, parameter) {
            ("reno", None) => Ok(Self::Reno),
            ("cubic", None) => Ok(Self::Cubic),
            ("bbr", None) => Ok(Self::Bbr),
            ("dctcp", None) => Ok(Self::Dctcp),
            ("tfwc", None) => Ok(Self::Tfwc(Parameters::TFWC)),
            ("multcp", Some(flows)) => match flows.parse() {
                Ok(flows) if (1.0..=MOST_FLOWS).contains(&flows) => Ok(Self::MulTcp(flows)),
                _ => wrong(format!("'{text}': a number of flows is from 1 to {MOST_FLOWS}")),
            },
            ("multcp", None) => wrong("'multcp' needs a number of flows".to_owned()),
            ("ttfwc", _) => tuned(Update::Accurate),
            ("ttfwc-approximate", _) => tuned(Update::Approximate),
            ("reno" | "cubic" | "tfwc" | "bbr" | "dctcp", Some(_)) => {
                wrong(format!("'{name}' has no parameter"))
            }
            _ => wrong(format!("there is no congestion control '{text}'")),
        }
    }
}

/// TTFWC from its tuning parameter and what it is read by, such as `0.9,geometric,listing`.
fn tuned(parameter: &str, update: Update) -> Result<Parameters, &'static str> {
    let mut words = parameter.split(',');
    let tuning = Tuning::from_str(words.next().unwrap_or_default())?;
    let mut parameters = Parameters { update, ..Parameters::tuned(tuning) };
    for word in words {
        match word {
            "geometric" => parameters.weights = Weights::Geometric,
            "listing" => parameters.addition = Addition::Listing,
            _ => return Err("after the tuning parameter come `geometric` and `listing`, each after a comma"),
        }
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "reno",
            "cubic",
            "multcp:1",
            "multcp:4",
            "multcp:2.5",
            "tfwc",
            "ttfwc:0.9",
            "ttfwc-approximate:0.4",
            "ttfwc:0.9,geometric",
            "ttfwc:0,listing",
            "ttfwc-approximate:0.9,geometric,listing",
            "bbr",
            "dctcp",
        ] {
            assert_eq!(name.parse::<Algorithm>().unwrap().to_string(), name);
        }
        // The two are the same.
        assert_eq!("ttfwc:0".parse::<Algorithm>().unwrap().to_string(), "tfwc");
    }

    #[test]
    fn a_control_says_whether_it_is_paced_as_its_controller_does() {
        let start = Start {
            segment: anabranch_units::Bytes::new(1000),
            initial_window: anabranch_units::Bytes::new(10_000),
            initial_ssthresh: None,
            seed: 0,
        };
        for name in ["reno", "cubic", "multcp:4", "ttfwc:0.9", "bbr", "dctcp"] {
            let algorithm: Algorithm = name.parse().unwrap();
            assert_eq!(algorithm.controller(&start).pacing().is_some(), algorithm.is_paced(), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        for (text, problem) in [
            ("", "there is no congestion control ''"),
            ("bbr2", "there is no congestion control 'bbr2'"),
            ("bbr:3", "'bbr' has no parameter"),
            ("reno:1", "'reno' has no parameter"),
            ("multcp", "'multcp' needs a number of flows"),
            ("multcp:0.5", "a number of flows is from 1 to 10000"),
            ("multcp:NaN", "a number of flows is from 1 to 10000"),
            ("ttfwc", "'ttfwc' needs a tuning parameter"),
            ("ttfwc:1.5", "a tuning parameter is a number from 0 to 1"),
            ("ttfwc:0.9,squared", "come `geometric` and `listing`"),
            ("ttfwc:nan", "a tuning parameter is a number from 0 to 1"),
        ] {
            let told = text.parse::<Algorithm>().unwrap_err().to_string();
            assert!(told.contains(problem) && told.contains("ttfwc:0.9"), "{text}: {told}");
        }
    }
}
