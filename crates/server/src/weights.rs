//! A file of weights: which clients share what as many plain flows would get, and how much each of them
//! counts.
//!
//! ```toml
//! default = 1            # the weight of whatever no rule is for
//! claims = true          # whether rules hold that go by what clients say: header, buffer_below, by_need
//! find_pools = true      # clients in no pool share where their delays show that they are behind one bottleneck
//! shared_addresses = ["192.0.2.7"] # many clients are behind such an address: there each connection is a client of its own
//!
//! [[pool]]               # clients behind one bottleneck; whoever is in no pool sends on its own, or is found one
//! name = "campus"
//! clients = ["10.0.0.0/8", "2001:db8::/32"]   # or "all"
//!
//! [[rule]]               # the first rule that is for a request gives its weight
//! path = "/premium/*"
//! weight = 8
//!
//! [[rule]]
//! client = "10.0.0.0/8"
//! header = "x-plan: gold"
//! weight = 4
//!
//! [[rule]]
//! buffer_below = "5s"    # by what the player says itself (CMCD, CTA-5004: bl)
//! weight = 6
//!
//! [[rule]]
//! by_need = true         # in place of `weight`: the less a player has in its buffer, the more it counts
//! ```

mod need;

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anabranch_congestion::need::NeedRule;
use anabranch_congestion::vps::Weight;
use anabranch_protocol::cmcd::Cmcd;
use anabranch_units::Duration;
use glob::Pattern;
use http::{HeaderName, Request};
use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::files;

/// A larger file is none of weights.
const LARGEST_FILE: u64 = 1 << 20;
/// Most rules; each request looks at them all in the worst case.
const MOST_RULES: usize = 1000;
/// Most pools: each is a group of its own that is looked after all the time.
const MOST_POOLS: usize = 100;
/// Most networks of a pool.
const MOST_NETWORKS: usize = 1000;

/// The rules of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    #[serde(default = "one", deserialize_with = "weight")]
    default: Weight,
    /// Has to be said where a rule goes by a claim.
    claims: Option<bool>,
    #[serde(default, deserialize_with = "networks")]
    shared_addresses: Vec<IpNet>,
    #[serde(default, rename = "rule", deserialize_with = "rules")]
    rules: Vec<Spanned<Rule>>,
    #[serde(default, rename = "pool", deserialize_with = "pools")]
    pools: Vec<Pool>,
    #[serde(default)]
    find_pools: bool,
}

/// Clients that the operator declares to be behind one bottleneck.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    name: String,
    clients: Clients,
}

#[derive(Debug)]
enum Clients {
    All,
    In(Vec<IpNet>),
}

/// What a rule gives a request that it is for.
#[derive(Debug)]
enum Given {
    Weight(Weight),
    /// What a player tells gives it; the rule is for requests that tell something.
    ByNeed(NeedRule),
}

#[derive(Debug)]
struct Rule {
    given: Given,
    path: Option<Pattern>,
    client: Option<IpNet>,
    header: Option<(HeaderName, Pattern)>,
    buffer_below: Option<Duration>,
}

impl Rule {
    /// Whether it goes by what a client says of itself, which any client can say.
    fn is_by_claim(&self) -> bool {
        self.header.is_some() || self.buffer_below.is_some() || matches!(self.given, Given::ByNeed(_))
    }
}

/// A file that says no weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// It is not there, or not to be read, or not text.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is written wrongly; the text has the line.
    #[error("{}:{reason}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Line and column, what, and what would be right.
        reason: String,
    },
}

impl Weights {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`WeightsError`].
    pub fn load(path: &Path) -> Result<Self, WeightsError> {
        let failure = |source| WeightsError::Read { path: path.into(), source };
        let mut text = String::new();
        files::open_regular(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text))
            .map_err(failure)?;
        let wrong = |reason| WeightsError::Wrong { path: path.into(), reason };
        if text.len() as u64 > LARGEST_FILE {
            return Err(wrong(" more than 1 MiB are no weights".into()));
        }
        text.parse().map_err(wrong)
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// How many pools there are.
    pub fn pools(&self) -> usize {
        self.pools.len()
    }

    /// Whether there is a pool of this name.
    pub(crate) fn has_pool(&self, name: &str) -> bool {
        self.pools.iter().any(|pool| pool.name == name)
    }

    /// Whether clients that are in no pool share where they are found to be behind one bottleneck.
    pub(crate) fn finds_pools(&self) -> bool {
        self.find_pools
    }

    /// The name of the pool that a client is in: the first that is declared for it. `None`: it sends on its
    /// own, or where pools are found.
    pub fn pool_of(&self, client: IpAddr) -> Option<&str> {
        let is_for = |pool: &&Pool| match &pool.clients {
            Clients::All => true,
            Clients::In(networks) => networks.iter().any(|network| network.contains(&client)),
        };
        self.pools.iter().find(is_for).map(|pool| pool.name.as_str())
    }

    /// What a request counts in its pool.
    pub fn of<B>(&self, client: IpAddr, request: &Request<B>) -> Weight {
        let cmcd = Cmcd::of(request.headers(), request.uri().query());
        let told = need::told(&cmcd);
        let path = files::plain(request.uri().path());
        let claims_hold = self.claims == Some(true);
        let is_for = |rule: &Rule| {
            let header_fits = |(name, pattern): &(HeaderName, Pattern)| {
                let values = request.headers().get_all(name).iter();
                values.filter_map(|value| value.to_str().ok()).any(|value| pattern.matches(value))
            };
            (claims_hold || !rule.is_by_claim())
                && rule.path.as_ref().is_none_or(|pattern| pattern.matches(&path))
                && rule.client.is_none_or(|net| net.contains(&client))
                && rule.header.as_ref().is_none_or(header_fits)
                && rule.buffer_below.is_none_or(|below| cmcd.buffer.is_some_and(|buffer| buffer < below))
        };
        let rules = self.rules.iter().map(Spanned::get_ref).filter(|rule| is_for(rule));
        let mut weights = rules.filter_map(|rule| match rule.given {
            Given::Weight(weight) => Some(weight),
            Given::ByNeed(need) => told.as_ref().map(|told| need.weight(told)),
        });
        weights.next().unwrap_or(self.default)
    }

    /// Whether many clients are behind this address.
    pub fn is_shared(&self, address: IpAddr) -> bool {
        self.shared_addresses.iter().any(|net| net.contains(&address))
    }
}

impl FromStr for Weights {
    type Err = String;

    /// What is wrong is told as `LINE:COLUMN: what`.
    fn from_str(text: &str) -> Result<Self, String> {
        let weights: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            place(text, start, &error.message().trim_end().replace('\n', "; "))
        })?;
        match weights.rules.iter().find(|rule| rule.get_ref().is_by_claim()) {
            Some(rule) if weights.claims.is_none() => Err(place(
                text,
                rule.span().start,
                "any client can say this of itself, and have the weight: write 'claims = true' at the head \
                 of the file if your clients do \
                 not lie, or if what is in front of the server sets the header; 'claims = false' lets \
                 such rules rest",
            )),
            _ => Ok(weights),
        }
    }
}

fn place(text: &str, at: usize, what: &str) -> String {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{line}:{column}: {what}")
}

fn one() -> Weight {
    Weight::ONE
}

fn weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Weight, D::Error> {
    let number = f64::deserialize(deserializer)?;
    Weight::new(number).ok_or_else(|| D::Error::custom(need::NO_WEIGHT))
}

fn weight_of_rule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Weight>, D::Error> {
    weight(deserializer).map(Some)
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Spanned<Rule>>, D::Error> {
    let rules = Vec::deserialize(deserializer)?;
    if rules.len() > MOST_RULES {
        return Err(D::Error::custom(format_args!("more than {MOST_RULES} rules")));
    }
    Ok(rules)
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let written: Vec<String> = Vec::deserialize(deserializer)?;
    if written.len() > MOST_RULES {
        return Err(D::Error::custom(format_args!("more than {MOST_RULES} addresses")));
    }
    written.iter().map(|text| network(text)).collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn pools<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pool>, D::Error> {
    let pools: Vec<Pool> = Vec::deserialize(deserializer)?;
    if pools.len() > MOST_POOLS {
        return Err(D::Error::custom(format_args!("more than {MOST_POOLS} pools")));
    }
    let mut names = BTreeSet::new();
    for Pool { name, .. } in &pools {
        if name.is_empty() {
            return Err(D::Error::custom("a pool has a name, such as \"campus\""));
        }
        if !names.insert(name) {
            return Err(D::Error::custom(format_args!("there are two pools with the name '{name}'")));
        }
    }
    Ok(pools)
}

impl<'de> Deserialize<'de> for Clients {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "clients are \"all\" or networks, such as [\"10.0.0.0/8\", \"2001:db8::/32\"]"
        )]
        enum Written {
            One(String),
            Several(Vec<String>),
        }
        let written = match Written::deserialize(deserializer)? {
            Written::One(all) if all == "all" => return Ok(Self::All),
            Written::One(one) => vec![one],
            Written::Several(several) => several,
        };
        if written.is_empty() || written.len() > MOST_NETWORKS {
            return Err(D::Error::custom(format_args!(
                "a pool has from one to {MOST_NETWORKS} networks, or \"all\" clients"
            )));
        }
        let networks = written.iter().map(|text| network(text)).collect::<Result<_, _>>();
        networks.map(Self::In).map_err(D::Error::custom)
    }
}

/// A value that is written as a string, with what is wrong with it said by `read`.
fn text<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, D::Error> {
    read(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text)
        .map_err(|error| format!("'{text}' is no pattern: {}; '*' is any text, '?' a character", error.msg))
}

fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Pattern>, D::Error> {
    text(deserializer, |text| {
        if text.starts_with('/') || text.starts_with('*') {
            pattern(text)
        } else {
            Err(format!("'{text}' is the path of no request; write it like \"/films/*\""))
        }
    })
}

fn client<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpNet>, D::Error> {
    text(deserializer, network)
}

fn network(text: &str) -> Result<IpNet, String> {
    let net = text.parse().or_else(|_| text.parse().map(|address: IpAddr| address.into()));
    net.map_err(|_| format!("'{text}' is no address; write it like \"10.0.0.0/8\" or \"2001:db8::1\""))
}

fn header<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(HeaderName, Pattern)>, D::Error> {
    text(deserializer, |text| {
        let wrong = || format!("'{text}' is no header; write it like \"X-Plan: gold\"");
        let (name, value) = text.split_once(':').ok_or_else(wrong)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
        Ok::<_, String>((name, pattern(value.trim())?))
    })
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    text(deserializer, str::parse)
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            #[serde(default, deserialize_with = "weight_of_rule")]
            weight: Option<Weight>,
            #[serde(default, deserialize_with = "need::read")]
            by_need: Option<NeedRule>,
            #[serde(default, deserialize_with = "path")]
            path: Option<Pattern>,
            #[serde(default, deserialize_with = "client")]
            client: Option<IpNet>,
            #[serde(default, deserialize_with = "header")]
            header: Option<(HeaderName, Pattern)>,
            #[serde(default, deserialize_with = "time")]
            buffer_below: Option<Duration>,
        }
        let Written { weight, by_need, path, client, header, buffer_below } =
            Written::deserialize(deserializer)?;
        let given = match (weight, by_need) {
            (Some(weight), None) => Given::Weight(weight),
            (None, Some(need)) => Given::ByNeed(need),
            (None, None) => return Err(D::Error::missing_field("weight")),
            (Some(_), Some(_)) => return Err(D::Error::custom("either `weight` or `by_need`, not both")),
        };
        let is_for_all = path.is_none() && client.is_none() && header.is_none() && buffer_below.is_none();
        if is_for_all && matches!(given, Given::Weight(_)) {
            return Err(D::Error::custom(
                "a rule says what it is for, by path, client, header or buffer_below; 'default' is for \
                 everything else",
            ));
        }
        Ok(Self { given, path, client, header, buffer_below })
    }
}
