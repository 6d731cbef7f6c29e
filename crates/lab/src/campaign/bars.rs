//! A column of a table as bars.

use maud::html;

use crate::plot::FAMILY;

const WIDTH: f64 = 800.0;
/// A bar with the room around it.
const ROW: f64 = 28.0;
const TOP: f64 = 48.0;
/// Room for names on the left, and for numbers on the right.
const LEFT: f64 = 240.0;
const RIGHT: f64 = 80.0;

/// An SVG document of the bars, each with its name and number.
pub(super) fn svg(title: &str, what: &str, bars: &[(&str, f64)]) -> String {
    let longest = bars.iter().map(|(_, number)| *number).fold(0.0, f64::max);
    let scale = if longest > 0.0 { (WIDTH - LEFT - RIGHT) / longest } else { 0.0 };
    let height = TOP + ROW * bars.len() as f64 + 12.0;
    let heading = if title.is_empty() { what.to_owned() } else { format!("{title}: {what}") };
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 \
            {WIDTH} {height}")) width=(WIDTH) height=(height)
            role="img" aria-label=(heading) font-family=(FAMILY) font-size="12" {
            rect width=(WIDTH) height=(height) fill="#ffffff" {}
            text x=(WIDTH / 2.0) y="26" text-anchor="middle" font-size="15" { (heading) }
            @for (index, (name, number)) in bars.iter().enumerate() {
                @let top = TOP + ROW * index as f64;
                @let length = (number * scale).max(0.0);
                text x=(LEFT - 8.0) y=(top + 15.0) text-anchor="end" { (name) }
                rect x=(LEFT) y=(top) width=(format!("{length:.1}")) height=(ROW - 8.0) fill="#0072b2" {}
                text x=(format!("{:.1}", LEFT + length + 6.0)) y=(top + 15.0) { (crate::statistics::significant(*number, 3)) }
            }
        }
    }
    .into_string()
}
