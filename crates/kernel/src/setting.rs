//! Which control, and what can be set about it, in the kernel's terms.

use std::fmt;

use anabranch_congestion::algorithm::Algorithm;
use anabranch_congestion::multcp;
use anabranch_congestion::tfwc::{Parameters, Tuning};

use crate::choosers::Choosers;

/// The controls there are.
pub const NAMES: [&str; 4] = ["tfwc", "ttfwc", "multcp", "group"];

/// Their variables in the object: what takes more than a share is there twice.
pub(crate) const VARIABLES: [&str; 6] = ["tfwc", "ttfwc", "multcp", "multcp_anyone", "group", "group_anyone"];

/// Bytes of `struct parameters` (bpf/flow.h).
pub(crate) const PARAMETERS_SIZE: usize = 32;
/// Where the generation of the group's rules is in it.
pub(crate) const GENERATION: usize = 24;

const ONE_Q10: f64 = 1024.0;
const ONE_Q20: f64 = 1_048_576.0;

/// A control with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// TFWC has none.
    Tfwc,
    /// TTFWC with its tuning parameter.
    Ttfwc(Tuning),
    /// MulTCP, one flow as so many (1 to [`MOST_FLOWS`](Setting::MOST_FLOWS)).
    MulTcp(f64),
    /// A weighted group of all connections that have it; the weights are [`Rules`](crate::Rules).
    Group,
}

impl Setting {
    /// The most flows that a kernel's MulTCP stands for.
    pub const MOST_FLOWS: f64 = 1000.0;
    /// The most members of a group (bpf/members.h).
    pub const MOST_MEMBERS: usize = 256;

    /// What the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tfwc => "tfwc",
            Self::Ttfwc(_) => "ttfwc",
            Self::MulTcp(_) => "multcp",
            Self::Group => "group",
        }
    }

    /// What the core calls it; `None` for the group, which is no control of a single flow.
    pub fn algorithm(self) -> Option<Algorithm> {
        match self {
            Self::Tfwc => Some(Algorithm::Tfwc(Parameters::TFWC)),
            Self::Ttfwc(tuning) => Some(Algorithm::Tfwc(Parameters::tuned(tuning))),
            Self::MulTcp(flows) => Some(Algorithm::MulTcp(flows)),
            Self::Group => None,
        }
    }

    /// Who may choose it unless the operator says otherwise. A connection under TFWC or TTFWC takes what any
    /// other would; MulTCP takes as many shares as it is set to, and the group as many as it has members,
    /// wherever those send to.
    pub fn choosers(self) -> Choosers {
        match self {
            Self::Tfwc | Self::Ttfwc(_) => Choosers::Anyone,
            Self::MulTcp(_) | Self::Group => Choosers::Privileged,
        }
    }

    /// Its variable in the object, for these choosers.
    pub(crate) fn variable(self, choosers: Choosers) -> &'static str {
        match (self, choosers) {
            (Self::MulTcp(_), Choosers::Anyone) => "multcp_anyone",
            (Self::Group, Choosers::Anyone) => "group_anyone",
            _ => self.name(),
        }
    }

    /// What the kernel's programs know it by.
    fn code(self) -> u32 {
        match self {
            Self::Tfwc | Self::Ttfwc(_) => 1,
            Self::MulTcp(_) => 2,
            Self::Group => 3,
        }
    }

    /// `struct parameters`. `most_each`: how many packets one acknowledgement counts for where the window
    /// grows.
    pub(crate) fn to_bytes(self, most_each: u32) -> Vec<u8> {
        let (tuning, flows) = match self {
            Self::Tfwc | Self::Group => (Tuning::SMOOTHEST, 1.0),
            Self::Ttfwc(tuning) => (tuning, 1.0),
            Self::MulTcp(flows) => (Tuning::SMOOTHEST, flows.clamp(1.0, Self::MOST_FLOWS)),
        };
        let words = [
            self.code(),
            (tuning.share() * ONE_Q20).round() as u32,
            u32::from(tuning.intervals()),
            most_each,
            (flows * ONE_Q10).round() as u32,
            // As many times the initial window as fit; windows are far smaller than what the largest would
            // be.
            (multcp::tripling_factor(flows) * ONE_Q10).min(f64::from(u32::MAX)) as u32,
            0,
            0,
        ];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    /// The inverse of [`Setting::to_bytes`], for the control of this name; `None` for what it never writes.
    pub(crate) fn from_bytes(name: &str, bytes: &[u8]) -> Option<Self> {
        let word =
            |place: usize| Some(u32::from_ne_bytes(bytes.get(4 * place..4 * place + 4)?.try_into().ok()?));
        if bytes.len() != PARAMETERS_SIZE {
            return None;
        }
        let setting = match name {
            "tfwc" => Self::Tfwc,
            "ttfwc" => {
                let share = f64::from(word(1)?) / ONE_Q20;
                // The smooth mode adds the square of the parameter. Four digits are what anybody writes.
                let tuning = match word(2)? {
                    8 => share,
                    16 => share.sqrt(),
                    _ => return None,
                };
                Self::Ttfwc(Tuning::new((tuning * 1e4).round() / 1e4)?)
            }
            "multcp" => {
                let flows = (f64::from(word(4)?) / ONE_Q10 * 1e2).round() / 1e2;
                (1.0..=Self::MOST_FLOWS).contains(&flows).then_some(Self::MulTcp(flows))?
            }
            "group" => Self::Group,
            _ => return None,
        };
        (word(0)? == setting.code()).then_some(setting)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tfwc => f.write_str("tfwc"),
            Self::Ttfwc(tuning) => write!(f, "ttfwc, tuning {tuning}"),
            Self::MulTcp(flows) => write!(f, "multcp, as {flows} flows"),
            Self::Group => f.write_str("group"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let tuned = |tp| Setting::Ttfwc(Tuning::new(tp).unwrap());
        for setting in [
            Setting::Tfwc,
            tuned(0.0),
            tuned(0.4),
            tuned(0.9),
            tuned(1.0),
            Setting::MulTcp(2.5),
            Setting::Group,
        ] {
            assert_eq!(Setting::from_bytes(setting.name(), &setting.to_bytes(1)), Some(setting));
        }
        assert_eq!(Setting::from_bytes("ttfwc", &[0; 31]), None);
        assert_eq!(Setting::from_bytes("bbr", &[0; 32]), None);
    }

    #[test]
    fn garbage_is_no_setting() {
        for name in NAMES {
            assert_eq!(Setting::from_bytes(name, &[0; 32]), None);
            assert_eq!(Setting::from_bytes(name, &[0xff; 32]), None);
        }
        let ttfwc = Setting::Ttfwc(Tuning::new(0.4).unwrap()).to_bytes(1);
        let multcp = Setting::MulTcp(4.0).to_bytes(1);
        for (name, right, word, garbage) in [
            ("ttfwc", &ttfwc, 0, 2),
            ("ttfwc", &ttfwc, 1, u32::MAX),
            ("ttfwc", &ttfwc, 2, 0),
            ("ttfwc", &ttfwc, 2, 1 << 20),
            ("multcp", &multcp, 4, 0),
            ("multcp", &multcp, 4, u32::MAX),
        ] {
            let mut bytes = right.clone();
            bytes[4 * word..4 * word + 4].copy_from_slice(&u32::to_ne_bytes(garbage));
            assert_eq!(Setting::from_bytes(name, &bytes), None, "{garbage} in word {word} of {name}");
        }
    }
}
