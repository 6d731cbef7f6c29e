//! A file of weights for the group: how much a connection counts, by what the kernel knows of it while its
//! program knows nothing.
//!
//! ```toml
//! default = 1                  # the weight of whatever no rule is for
//!
//! [[rule]]                     # the first rule that is for a connection gives its weight
//! remote = "192.0.2.7"         # an address, or a network such as "192.0.2.0/24"
//! remote_port = 1935
//! weight = 4
//!
//! [[rule]]
//! local_port = 8080
//! cgroup = "/sys/fs/cgroup/system.slice/camera.service"   # that the connection was made in
//! weight = 2
//! group = "cameras"            # the group that it shares in; "default" where none is said
//! ```

mod groups;
mod network;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anabranch_congestion::vps::Weight;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use groups::GROUPS_SIZE;
pub(crate) use groups::Groups;
pub use groups::{GroupName, MOST_GROUPS};
use network::Network;

/// Most rules (bpf/weights.h); a connection's weight is looked up among them when it begins, and when they
/// change.
pub const MOST_RULES: usize = 64;
/// A larger file is none of weights.
const LARGEST_FILE: u64 = 1 << 20;
/// Bytes of `struct rule`, of what is before the groups and of what is before the rules in `struct rules`.
const RULE_SIZE: usize = 56;
const COUNT_SIZE: usize = 8;
const HEAD_SIZE: usize = COUNT_SIZE + GROUPS_SIZE;
/// Bytes of `struct rules`.
pub(crate) const RULES_SIZE: usize = HEAD_SIZE + MOST_RULES * RULE_SIZE;
const ONE_Q16: f64 = 65_536.0;

/// The weights of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(default = "one", deserialize_with = "weight")]
    default: Weight,
    #[serde(default, rename = "rule", deserialize_with = "bounded")]
    rules: Vec<Rule>,
}

/// Which connections have a weight. What is `None` may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(deserialize_with = "weight")]
    weight: Weight,
    #[serde(default, deserialize_with = "network")]
    remote: Option<Network>,
    #[serde(default, deserialize_with = "port")]
    remote_port: Option<u16>,
    #[serde(default, deserialize_with = "port")]
    local_port: Option<u16>,
    /// The number of its directory.
    #[serde(default, deserialize_with = "cgroup")]
    cgroup: Option<u64>,
    #[serde(default = "default_group", deserialize_with = "group")]
    group: GroupName,
}

/// A file of weights that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too large to be one.
    #[error("{} has more than {LARGEST_FILE} bytes: that is no file of weights", .0.display())]
    TooLarge(PathBuf),
    /// It is written wrongly.
    #[error("{}: {problem}", .path.display())]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Where and why.
        problem: String,
    },
}

impl Default for Rules {
    /// All count alike.
    fn default() -> Self {
        Self { default: Weight::ONE, rules: Vec::new() }
    }
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is written wrongly: with its line and what would be right.
    pub fn read(path: &Path) -> Result<Self, RulesError> {
        let io = |source| RulesError::Io { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(io)?;
        file.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(io)?;
        if text.len() as u64 > LARGEST_FILE {
            return Err(RulesError::TooLarge(path.to_owned()));
        }
        text.parse().map_err(|problem| RulesError::Wrong { path: path.to_owned(), problem })
    }

    /// How many rules there are, the default not counted.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether all count alike.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The groups of these rules after those of `before`, see [`Groups::following`].
    pub(crate) fn groups(
        &self,
        before: &Groups,
        asked: Option<GroupName>,
        is_used: impl Fn(u32) -> bool,
    ) -> Option<Groups> {
        Groups::following(before, self.rules.iter().map(|rule| rule.group), asked, is_used)
    }

    /// `struct rules` with these groups.
    pub(crate) fn to_bytes(&self, groups: &Groups) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RULES_SIZE);
        bytes.extend((self.rules.len() as u32).to_ne_bytes());
        bytes.extend(fixed(self.default).to_ne_bytes());
        bytes.extend(groups.to_bytes());
        for rule in &self.rules {
            let remote = rule.remote.unwrap_or(Network { address: 0, mask: 0 });
            bytes.extend(remote.address.to_be_bytes());
            bytes.extend(remote.mask.to_be_bytes());
            bytes.extend(rule.cgroup.unwrap_or(0).to_ne_bytes());
            bytes.extend(fixed(rule.weight).to_ne_bytes());
            bytes.extend(rule.local_port.unwrap_or(0).to_ne_bytes());
            bytes.extend(rule.remote_port.unwrap_or(0).to_ne_bytes());
            bytes.extend(groups.number(rule.group).unwrap_or(0).to_ne_bytes());
            bytes.extend([0; 4]);
        }
        bytes.resize(RULES_SIZE, 0);
        bytes
    }

    /// The inverse of [`Rules::to_bytes`], with the groups by their numbers.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<(Self, Groups)> {
        if bytes.len() != RULES_SIZE {
            return None;
        }
        let groups = Groups::from_bytes(bytes.get(COUNT_SIZE..HEAD_SIZE)?)?;
        let count = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        if count > MOST_RULES {
            return None;
        }
        let weight = |at: &[u8]| Weight::new(f64::from(u32::from_ne_bytes(*at.first_chunk()?)) / ONE_Q16);
        let rule = |bytes: &[u8]| {
            let mask = u128::from_be_bytes(*bytes.get(16..)?.first_chunk()?);
            let address = u128::from_be_bytes(*bytes.first_chunk()?);
            let cgroup = u64::from_ne_bytes(*bytes.get(32..)?.first_chunk()?);
            let port = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
            Some(Rule {
                weight: weight(bytes.get(40..)?)?,
                remote: (mask != 0).then_some(Network { address, mask }),
                remote_port: Some(port(46)?).filter(|port| *port != 0),
                local_port: Some(port(44)?).filter(|port| *port != 0),
                cgroup: Some(cgroup).filter(|cgroup| *cgroup != 0),
                group: groups.name(u32::from_ne_bytes(*bytes.get(48..)?.first_chunk()?))?,
            })
        };
        let rules = bytes.get(HEAD_SIZE..)?.chunks_exact(RULE_SIZE).take(count).map(rule);
        Some((Self { default: weight(bytes.get(4..)?)?, rules: rules.collect::<Option<_>>()? }, groups))
    }
}

pub(crate) fn fixed(weight: Weight) -> u32 {
    (weight.get() * ONE_Q16).round() as u32
}

impl FromStr for Rules {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            // In a line, without the picture of the place.
            let told = error.to_string();
            let place = told.lines().next().unwrap_or_default();
            format!("{place}: {}", error.message().trim_end().replace('\n', "; "))
        })
    }
}

impl fmt::Display for Rules {
    /// A line each, as `anabranch cc list` shows them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            write!(f, "  {}", rule.weight)?;
            let told = [
                rule.remote.map(|remote| format!("remote {remote}")),
                rule.remote_port.map(|port| format!("remote port {port}")),
                rule.local_port.map(|port| format!("local port {port}")),
                rule.cgroup.map(|cgroup| format!("cgroup number {cgroup}")),
            ];
            let told: Vec<_> = told.into_iter().flatten().collect();
            write!(f, ": {}", if told.is_empty() { "all".to_owned() } else { told.join(", ") })?;
            let is_named = rule.group != GroupName::DEFAULT;
            writeln!(f, "{}", if is_named { format!(", in group {}", rule.group) } else { String::new() })?;
        }
        writeln!(f, "  {}: all others", self.default)
    }
}

fn one() -> Weight {
    Weight::ONE
}

fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Weight, D::Error> {
    let number = f64::deserialize(deserializer)?;
    Weight::new(number).ok_or_else(|| D::Error::custom("a weight is a number from 0.001 to 1000, such as 4"))
}

fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let port = u16::try_from(number).ok().filter(|port| *port > 0);
    port.map(Some).ok_or_else(|| D::Error::custom("a port is a number from 1 to 65535"))
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Network>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
}

fn cgroup<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let path = String::deserialize(deserializer)?;
    let found = fs::metadata(&path).map_err(|error| D::Error::custom(format!("cgroup '{path}': {error}")))?;
    if !found.is_dir() {
        return Err(D::Error::custom(format!(
            "cgroup '{path}' is not a directory of the cgroup file system"
        )));
    }
    Ok(Some(found.ino()))
}

fn default_group() -> GroupName {
    GroupName::DEFAULT
}

fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GroupName, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(deserializer)?;
    if rules.len() > MOST_RULES {
        return Err(D::Error::custom(format!(
            "there are {} rules, at most {MOST_RULES} are allowed",
            rules.len()
        )));
    }
    let mut names = vec![GroupName::DEFAULT];
    for rule in &rules {
        if !names.contains(&rule.group) {
            names.push(rule.group);
        }
    }
    if names.len() > MOST_GROUPS {
        return Err(D::Error::custom(format!(
            "there are {} groups with 'default', at most {MOST_GROUPS} are allowed",
            names.len()
        )));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "default = 0.5\n[[rule]]\nremote = \"10.0.0.0/8\"\nremote_port = 1935\nweight = 4\n\
                        [[rule]]\nremote = \"2001:db8::/32\"\nlocal_port = 9\ncgroup = \"/proc\"\n\
                        weight = 1000\ngroup = \"cameras\"\n";

    #[test]
    fn what_is_written_is_read() {
        let rules: Rules = FILE.parse().unwrap();
        let bytes = rules.to_bytes(&rules.groups(&Groups::default(), None, |_| false).unwrap());
        let (read, groups) = Rules::from_bytes(&bytes).unwrap();
        assert_eq!((read, groups.name(1).unwrap().as_str()), (rules.clone(), "cameras"));
        assert_eq!(rules.to_bytes(&groups), bytes);
        let told = rules.to_string();
        for line in [
            "4: remote 10.0.0.0/8, remote port 1935\n",
            "1000: remote 2001:db8::/32, local port 9, cgroup number ",
            ", in group cameras\n",
            "0.5: all others\n",
        ] {
            assert!(told.contains(line), "{told}");
        }
        assert_eq!(Rules::from_bytes(&bytes[1..]), None);
        for (place, garbage) in [
            (0, 65u32),
            (4, 0),
            (4, u32::MAX),
            (8, u32::MAX),
            (16, 0),
            (HEAD_SIZE + 40, 0),
            (HEAD_SIZE + 48, 2),
        ] {
            let mut bytes = bytes.clone();
            bytes[place..place + 4].copy_from_slice(&garbage.to_ne_bytes());
            assert_eq!(Rules::from_bytes(&bytes), None, "{garbage} at {place}");
        }
        assert_eq!("".parse(), Ok(Rules::default()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let many = "[[rule]]\nweight = 1\n".repeat(MOST_RULES + 1);
        let groups: String =
            (0..MOST_GROUPS).map(|n| format!("[[rule]]\nweight = 1\ngroup = \"g{n}\"\n")).collect();
        for (text, line, reason) in [
            ("default = 0", "line 1", "from 0.001 to 1000"),
            ("default = nan", "line 1", "from 0.001 to 1000"),
            ("[[rule]]\nweight = \"4\"", "line 2", "invalid type"),
            ("[[rule]]\nremote_port = 1", "line 1", "missing field `weight`"),
            ("[[rule]]\nweight = 1\nremote_port = 0", "line 3", "from 1 to 65535"),
            ("[[rule]]\nweight = 1\nremote_port = 70000", "line 3", "from 1 to 65535"),
            ("[[rule]]\nweight = 1\nremote = \"10.0.0.0/33\"", "line 3", "no address"),
            ("[[rule]]\nweight = 1\nremote = \"host\"", "line 3", "no address"),
            ("[[rule]]\nweight = 1\ncgroup = \"/no/such\"", "line 3", "/no/such"),
            ("[[rule]]\nweight = 1\nport = 5", "line 3", "unknown field `port`"),
            ("[[rule", "line 1", ""),
            ("[[rule]]\nweight = 1\ngroup = \"a b\"", "line 3", "1 to 31 letters"),
            (many.as_str(), "line 1", "at most 64"),
            (groups.as_str(), "line 1", "at most 16"),
        ] {
            let problem = text.parse::<Rules>().unwrap_err();
            assert!(problem.contains(line) && problem.contains(reason), "{text}: {problem}");
        }
    }
}
