//! The course of a run as a picture.

use std::fmt::Write;

use anabranch_units::{Duration, Rate};

use super::world::{Outcome, Path};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 40.0;

/// The link's capacity and what the encoder made.
pub fn svg(path: &Path, outcome: &Outcome, end: Duration) -> String {
    let top = path.capacity.iter().map(|(_, rate)| rate.as_f64()).fold(0.0, f64::max) * 1.3;
    let x = |time: Duration| LEFT + WIDTH * time.as_secs_f64() / end.as_secs_f64();
    let y = |rate: Rate| HEIGHT * (1.0 - (rate.as_f64() / top).min(1.0)) + 10.0;
    let steps = |course: &[(Duration, Rate)]| {
        let mut line = String::new();
        let mut last: Option<Rate> = None;
        for (time, rate) in course.iter().filter(|(time, _)| *time <= end) {
            if let Some(last) = last {
                let _ = write!(line, "{:.1},{:.1} ", x(*time), y(last));
            }
            let _ = write!(line, "{:.1},{:.1} ", x(*time), y(*rate));
            last = Some(*rate);
        }
        let _ = write!(line, "{:.1},{:.1}", x(end), y(last.unwrap_or(Rate::ZERO)));
        line
    };
    let mut axes = String::new();
    for seconds in (0..=end.as_millis() / 1000).step_by(10) {
        let at = x(Duration::from_secs(seconds));
        let _ = writeln!(
            axes,
            "<text x=\"{at:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{seconds}</text>",
            HEIGHT + 30.0
        );
    }
    let mut mbps = 0;
    while Rate::from_mbps(mbps).as_f64() <= top {
        let at = y(Rate::from_mbps(mbps));
        let _ = writeln!(
            axes,
            "<path d=\"M{LEFT} {at:.1}h{WIDTH}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{mbps}</text>",
            LEFT - 8.0,
            at + 4.0
        );
        mbps += 1;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{axes}\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#999\" stroke-width=\"2\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"1.5\"/>\n\
         <text x=\"{}\" y=\"{}\">seconds; Mbit/s: the link (grey) and what the encoder makes (blue)</text>\n</svg>\n",
        LEFT + WIDTH + 20.0,
        HEIGHT + BOTTOM + 20.0,
        steps(&path.capacity),
        steps(&outcome.rates),
        LEFT,
        HEIGHT + BOTTOM + 12.0,
    )
}
