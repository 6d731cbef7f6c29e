//! Traces of a link's capacity: delivery opportunities as mahimahi has them, or rates over time.

use anabranch_units::{Bytes, Duration, Quantity, Rate, Time};

use crate::error::Fault;
use crate::files::Files;
use crate::model::{Change, Opportunities};
use crate::table::Item;

/// Most lines of a trace: a quarter of an hour at 13 Mbit/s for mahimahi's.
const MOST_LINES: usize = 1_000_000;
/// What goes in one of mahimahi's opportunities.
const OPPORTUNITY: Bytes = Bytes::new(1500);

/// A link's capacity over time.
pub(crate) enum Trace {
    /// When it can transmit, and the mean rate of that.
    Opportunities(Opportunities, Rate),
    /// The first rate, and those after it.
    Rates(Rate, Vec<Change>),
}

/// Reads the file that is named by `item`. One whose lines have a comma is a trace of rates.
pub(crate) fn read(item: Item<'_>, files: &mut dyn Files) -> Result<Trace, Fault> {
    let name = item.text()?;
    let text = files
        .read(name)
        .map_err(|error| item.fault(format_args!("cannot read the trace {name}: {error}")))?;
    let parsed = if text.contains(',') { rates(&text) } else { opportunities(&text) };
    parsed.map_err(|(line, message)| {
        item.fault(match line {
            0 => format!("the trace {name} {message}"),
            line => format!("the trace {name}, line {line}: {message}"),
        })
    })
}

/// A line's number, 0 for the file as a whole, and what is wrong.
type Wrong = (usize, String);

/// The lines that are not empty, with their numbers.
fn lines(text: &str) -> Result<impl Iterator<Item = (usize, &str)>, Wrong> {
    let lines = || text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    match lines().take(MOST_LINES + 1).count() {
        0 => Err((0, "is empty".into())),
        count if count > MOST_LINES => Err((0, format!("has more than {MOST_LINES} lines"))),
        _ => Ok(lines().map(|(index, line)| (index + 1, line))),
    }
}

/// One moment a line, in milliseconds; the last is also the length of the period.
fn opportunities(text: &str) -> Result<Trace, Wrong> {
    let mut at: Vec<Time> = Vec::new();
    for (number, line) in lines(text)? {
        let wrong = || (number, format!("'{}' is no whole number of milliseconds", shortened(line)));
        let millis: u32 = line.parse().map_err(|_| wrong())?;
        let moment = Time::ZERO + Duration::from_millis(millis.into());
        if at.last().is_some_and(|last| *last > moment) {
            return Err((number, "the time goes back".into()));
        }
        at.push(moment);
    }
    let period = at.last().map_or(Duration::ZERO, |last| last.since(Time::ZERO));
    if period.is_zero() {
        return Err((0, "has no time above zero, so that it would never repeat".into()));
    }
    let mean = Rate::of(at.iter().map(|_| OPPORTUNITY).sum(), period);
    Ok(Trace::Opportunities(Opportunities { at, period, size: OPPORTUNITY }, mean))
}

/// Seconds and a rate a line; a first line that names the columns is skipped.
fn rates(text: &str) -> Result<Trace, Wrong> {
    let mut changes: Vec<Change> = Vec::new();
    for (index, (number, line)) in lines(text)?.enumerate() {
        let wrong =
            |what: &str| (number, format!("{what} in '{}'; a line is written 1.5,6Mbps", shortened(line)));
        let (seconds, rate) = line.split_once(',').ok_or_else(|| wrong("there is no comma"))?;
        let (seconds, rate) = (seconds.trim(), rate.trim());
        if index == 0 && seconds.starts_with(char::is_alphabetic) {
            continue;
        }
        let seconds = seconds.parse::<f64>().ok().filter(|seconds| (0.0..=1e8).contains(seconds));
        let at = Time::ZERO + Duration::from_secs_f64(seconds.ok_or_else(|| wrong("there are no seconds"))?);
        // Zero stands for an outage, which is no rate elsewhere.
        let rate = match rate {
            "0" => Rate::ZERO,
            rate => Rate::read_with_unit(rate).map_err(|_| wrong("there is no rate with its unit"))?,
        };
        match changes.last() {
            None if at > Time::ZERO => {
                return Err((number, "the first rate is not that of 0 seconds".into()));
            }
            Some(last) if last.at >= at => return Err((number, "the time does not rise".into())),
            _ => changes.push(change_of_rate(at, rate)),
        }
    }
    let first =
        changes.first().and_then(|change| change.rate).ok_or_else(|| (0, "has no rates".to_owned()))?;
    if first.is_zero() {
        return Err((0, "begins with a rate of zero: begin it when the link first is up".into()));
    }
    changes.remove(0);
    Ok(Trace::Rates(first, changes))
}

/// The beginning of a line, for a message.
fn shortened(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// A change of the rate alone.
const fn change_of_rate(at: Time, rate: Rate) -> Change {
    Change { at, rate: Some(rate), delay: None, loss: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_repeat_after_the_last() {
        let Ok(Trace::Opportunities(found, mean)) = opportunities("5\n5\n\n10\n") else { panic!("no trace") };
        let moments: Vec<_> = found.at.iter().map(|at| at.as_nanos()).collect();
        assert_eq!(moments, [5_000_000, 5_000_000, 10_000_000]);
        assert_eq!(found.period, Duration::from_millis(10));
        assert_eq!(mean, Rate::from_kbps(3600));
    }

    #[test]
    fn rates_over_time() {
        let Ok(Trace::Rates(first, changes)) = rates("seconds,rate\n0,6M\n1.5, 0\n2,800k\n") else {
            panic!("no trace")
        };
        assert_eq!(first, Rate::from_mbps(6));
        let found: Vec<_> =
            changes.iter().map(|change| (change.at.as_nanos() / 1_000_000, change.rate.unwrap())).collect();
        assert_eq!(found, [(1500, Rate::ZERO), (2000, Rate::from_kbps(800))]);
    }

    #[test]
    fn wrong_traces_say_where() {
        for (text, line, expected) in [
            ("", 0, "is empty"),
            ("\n \n", 0, "is empty"),
            ("0\n0\n", 0, "never repeat"),
            ("5\n4\n", 2, "goes back"),
            ("5\nx\n", 2, "milliseconds"),
            ("-5\n", 1, "milliseconds"),
            ("0,6M\n1\n", 2, "no comma"),
            ("1,6M\n", 1, "0 seconds"),
            ("0,6M\n0,7M\n", 2, "does not rise"),
            ("0,fast\n", 1, "no rate with"),
            ("0,6M\nNaN,6M\n", 2, "no seconds"),
            ("seconds,rate\n", 0, "no rates"),
            ("0,0\n1,6M\n", 0, "begins with a rate of zero"),
        ] {
            let parsed = if text.contains(',') { rates(text) } else { opportunities(text) };
            let Err((found, message)) = parsed else { panic!("{text:?} was read") };
            assert!(found == line && message.contains(expected), "{text:?}: {found} {message}");
        }
    }
}
