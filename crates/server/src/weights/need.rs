//! The key `by_need` of a rule: what a player tells of itself gives the weight.

use anabranch_congestion::need::{NeedRule, Told};
use anabranch_congestion::vps::Weight;
use anabranch_protocol::cmcd::Cmcd;
use anabranch_units::Duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// What is said of a number that is no weight.
pub(super) const NO_WEIGHT: &str = "a weight is a number from 0.001 to 1000, such as 4";

/// What a player tells that the rule goes by; `None`: it tells nothing of this.
pub(super) fn told(cmcd: &Cmcd) -> Option<Told> {
    let told = Told { buffer: cmcd.buffer, waits: cmcd.is_urgent };
    (told != Told::default()).then_some(told)
}

/// `true`, or a table with the rule's parameters; what it leaves out is as usual. `false` is no rule.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NeedRule>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "by_need is true, or a table of `low`, `high`, `most` and `least`")]
    enum Written {
        IsOn(bool),
        Parameters(Parameters),
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parameters {
        low: Option<String>,
        high: Option<String>,
        most: Option<f64>,
        least: Option<f64>,
    }
    let usual = NeedRule::default();
    let Parameters { low, high, most, least } = match Written::deserialize(deserializer)? {
        Written::IsOn(is_on) => return Ok(is_on.then_some(usual)),
        Written::Parameters(parameters) => parameters,
    };
    let time = |text: Option<String>, usual: Duration| {
        text.map_or(Ok(usual), |text| text.parse::<Duration>().map_err(D::Error::custom))
    };
    let weight = |number: Option<f64>, usual| {
        number.map_or(Some(usual), Weight::new).ok_or_else(|| D::Error::custom(NO_WEIGHT))
    };
    let (low, high) = (time(low, usual.low)?, time(high, usual.high)?);
    let (most, least) = (weight(most, usual.most)?, weight(least, usual.least)?);
    if low > high {
        return Err(D::Error::custom(format_args!("`low` ({low}) is above `high` ({high})")));
    }
    if most < least {
        return Err(D::Error::custom(format_args!("`most` ({most}) is below `least` ({least})")));
    }
    Ok(Some(NeedRule { low, high, most, least }))
}
