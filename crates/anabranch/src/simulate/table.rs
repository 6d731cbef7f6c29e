//! What a run came to, for a person.

use std::time::Duration;

use anabranch_sim::output::{FlowSummary, LinkSummary, Summary};
use anabranch_units::Rate;

/// So many flows and links are shown; all are in `summary.json`.
const MOST_FLOWS: usize = 24;
const MOST_LINKS: usize = 12;

/// The text: a line about the run, its flows, and the links that were busiest.
pub fn of(summary: &Summary, took: Duration) -> String {
    let mut text = format!(
        "{}, seed {}: {} s simulated in {:.1} s, {} data packets\n\n",
        summary.scenario,
        summary.seed,
        summary.simulated_s,
        took.as_secs_f64(),
        short(summary.data_packets as f64),
    );
    let heading = ["flow", "goodput", "loss", "sent again", "time-outs", "RTT", "done at"];
    let shown = summary.flows.iter().take(MOST_FLOWS);
    text += &table(&heading, shown.clone().map(flow));
    text += &more(summary.flows.len(), MOST_FLOWS, "flows");
    if shown.clone().any(|flow| flow.media.is_some()) {
        let heading = ["stream", "start-up", "stalls", "stalled", "connections", "most", "came twice"];
        text.push('\n');
        text += &table(&heading, shown.clone().filter_map(stream));
    }
    if shown.clone().any(|flow| flow.live.is_some()) {
        let heading = ["live", "missing", "of", "latency", "99 %", "connections", "given up", "parity"];
        text.push('\n');
        text += &table(&heading, shown.filter_map(live));
    }
    let mut links: Vec<&LinkSummary> = summary.links.iter().filter(|link| link.offered_packets > 0).collect();
    let used = |link: &LinkSummary| link.utilisation.unwrap_or(0.0);
    links.sort_by(|one, other| used(other).total_cmp(&used(one)));
    text.push('\n');
    text += &table(
        &["link", "used", "mean queue", "most", "dropped", "lost"],
        links.iter().take(MOST_LINKS).map(|one| link(one)),
    );
    text += &more(links.len(), MOST_LINKS, "links, less used");
    let marks = links.iter().take(MOST_LINKS).filter_map(|link| {
        let marked = link.marked_packets?;
        Some([
            link.name.clone(),
            marked.to_string(),
            percent(Some(marked as f64 / link.packets.max(1) as f64)),
        ])
    });
    let marks: Vec<_> = marks.collect();
    if !marks.is_empty() {
        text.push('\n');
        text += &table(&["link", "marked", "of what left"], marks.into_iter());
    }
    text
}

fn flow(flow: &FlowSummary) -> [String; 7] {
    [
        flow.name.clone(),
        Rate::from_bps(flow.goodput_bps).to_string(),
        percent(flow.loss_rate),
        flow.retransmitted_packets.to_string(),
        flow.timeouts.to_string(),
        optional(flow.rtt_mean_s, |rtt| format!("{:.1} ms", rtt * 1e3)),
        optional(flow.completed_s, |at| format!("{at:.2} s")),
    ]
}

fn stream(flow: &FlowSummary) -> Option<[String; 7]> {
    let media = flow.media.as_ref()?;
    Some([
        flow.name.clone(),
        media.startup_s.map_or_else(|| "never".into(), |startup| format!("{startup:.2} s")),
        media.stalls.to_string(),
        format!("{:.1} s", media.stall_s),
        format!("{:.1}", media.connections_mean),
        media.connections_max.to_string(),
        anabranch_units::Bytes::new(media.duplicate_bytes).to_string(),
    ])
}

fn live(flow: &FlowSummary) -> Option<[String; 8]> {
    let live = flow.live.as_ref()?;
    let millis = |seconds| optional(seconds, |seconds: f64| format!("{:.0} ms", seconds * 1e3));
    Some([
        flow.name.clone(),
        live.missing_packets.to_string(),
        live.packets.to_string(),
        millis(live.latency_median_s),
        millis(live.latency_99_s),
        live.connections_max.to_string(),
        live.given_up_packets.to_string(),
        live.parity_packets.to_string(),
    ])
}

fn link(link: &LinkSummary) -> [String; 6] {
    [
        link.name.clone(),
        percent(link.utilisation),
        optional(link.queue_mean_packets, |queue| format!("{queue:.1}")),
        link.queue_max_packets.to_string(),
        percent(link.drop_rate),
        link.lost_packets.to_string(),
    ]
}

fn optional(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".into(), text)
}

fn percent(ratio: Option<f64>) -> String {
    optional(ratio, |ratio| format!("{:.2} %", ratio * 100.0))
}

fn more(count: usize, most: usize, what: &str) -> String {
    match count.saturating_sub(most) {
        0 => String::new(),
        left => format!("... and {left} more {what}; --out DIR writes them all\n"),
    }
}

/// Columns: the first begins at the left, the others end at the right.
fn table<const N: usize>(heading: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut rows: Vec<[String; N]> = rows.collect();
    rows.insert(0, heading.map(str::to_owned));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        cells.collect::<String>() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A large number with three digits that matter.
pub fn short(number: f64) -> String {
    match number {
        number if number >= 1e6 => format!("{:.2} million", number / 1e6),
        number if number >= 1e4 => format!("{:.0} thousand", number / 1e3),
        number => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["a".to_owned(), "1.5 s".to_owned()], ["longer".to_owned(), "-".to_owned()]];
        assert_eq!(table(&["flow", "at"], rows.into_iter()), "flow       at\na       1.5 s\nlonger      -\n");
        assert_eq!(more(3, 3, "flows"), "");
        assert_eq!(more(5, 3, "flows"), "... and 2 more flows; --out DIR writes them all\n");
        assert_eq!([short(12.0), short(12_345.0), short(2_345_678.0)], ["12", "12 thousand", "2.35 million"]);
    }
}
