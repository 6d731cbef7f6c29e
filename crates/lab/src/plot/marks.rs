//! Lines, bands, error bars, markers and the legend.

use maud::{Markup, html};

use super::axis::Layout;
use super::drawn::{Drawn, MARKERS, Style, at};
use crate::scheme::Marker;

/// Half a marker's size.
const HALF: f64 = 4.0;
/// A formula is a thin dotted line in the colour of what it is the formula of.
const FORMULA_DASHES: &str = "2 3";
/// What real programs gave has the scheme's colour and marker, another line and open markers.
const REAL_DASHES: &str = "4 2";

/// A point on the page, with the ends of its confidence interval.
struct Place {
    x: f64,
    y: f64,
    interval: Option<[f64; 2]>,
}

/// A curve.
pub(super) fn curve(curve: &Drawn, x: &Layout, y: &Layout) -> Markup {
    let places: Vec<Place> = (curve.points.iter())
        .filter_map(|point| {
            let interval = point.y.interval().and_then(|[low, high]| Some([y.place(low)?, y.place(high)?]));
            Some(Place { x: x.place(point.x)?, y: y.place(point.y.mean)?, interval })
        })
        .collect();
    let line = || line(curve, &places.iter().map(|place| (place.x, place.y)).collect::<Vec<_>>());
    // Curves that have their markers at the same places hide each other's: every one starts elsewhere.
    let step = (places.len() / MARKERS).max(1);
    let some = |place: &(usize, &Place)| place.0 % step == step / 2;
    html! {
        @match curve.style {
            Style::Figure => {
                @for place in &places { (error_bar(curve, place)) }
                (line())
                @for place in &places { (marker(curve, place.x, place.y)) }
            }
            Style::Course => {
                (band(curve, &places))
                (line())
                @for (_, place) in places.iter().enumerate().filter(some) { (marker(curve, place.x, place.y)) }
            }
            Style::Published => { @for place in &places { (marker(curve, place.x, place.y)) } }
            Style::Formula => { (line()) }
        }
    }
}

/// A line of the legend.
pub(super) fn legend(curve: &Drawn, x: f64, y: f64) -> Markup {
    let middle = x + 17.0;
    html! {
        @if curve.style != Style::Published { (line(curve, &[(x, y), (x + 34.0, y)])) }
        @if curve.style != Style::Formula { (marker(curve, middle, y)) }
        text x=(at(x + 42.0)) y=(at(y + 4.0)) { (curve.label) }
    }
}

fn line(curve: &Drawn, places: &[(f64, f64)]) -> Markup {
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (dashes, width) = match curve.style {
        Style::Formula => (FORMULA_DASHES, "1.2"),
        _ if curve.is_real => (REAL_DASHES, "1.2"),
        _ => (curve.look.dashes, "1.8"),
    };
    let dashes = Some(dashes).filter(|dashes| !dashes.is_empty());
    html! {
        @if places.len() > 1 {
            polyline points=(points.join(" ")) fill="none" stroke=(curve.look.colour) stroke-width=(width)
                stroke-linejoin="round" stroke-dasharray=[dashes] {}
        }
    }
}

fn band(curve: &Drawn, places: &[Place]) -> Markup {
    let edge = |which: usize| {
        places
            .iter()
            .filter_map(move |place| place.interval.map(|ends| format!("{:.1},{:.1}", place.x, ends[which])))
    };
    let mut points: Vec<String> = edge(0).collect();
    points.extend(edge(1).collect::<Vec<_>>().into_iter().rev());
    html! {
        @if points.len() > 2 {
            polygon points=(points.join(" ")) fill=(curve.look.colour) fill-opacity="0.18" {}
        }
    }
}

fn error_bar(curve: &Drawn, place: &Place) -> Markup {
    html! {
        @if let Some([low, high]) = place.interval {
            path d=(format!(
                "M{0:.1} {2:.1}H{1:.1}M{0:.1} {3:.1}H{1:.1}M{4:.1} {2:.1}V{3:.1}",
                place.x - HALF, place.x + HALF, low, high, place.x
            )) stroke=(curve.look.colour) fill="none" {}
        }
    }
}

fn marker(curve: &Drawn, x: f64, y: f64) -> Markup {
    let (left, right, top, bottom) = (x - HALF, x + HALF, y - HALF, y + HALF);
    let path = match curve.look.marker {
        Marker::Circle => format!("M{left:.1} {y:.1}a{HALF} {HALF} 0 1 0 8 0a{HALF} {HALF} 0 1 0 -8 0Z"),
        Marker::Square => format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z"),
        Marker::Diamond => format!("M{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {bottom:.1}L{left:.1} {y:.1}Z"),
        Marker::Triangle => format!("M{x:.1} {top:.1}L{right:.1} {bottom:.1}H{left:.1}Z"),
        Marker::Wedge => format!("M{left:.1} {top:.1}H{right:.1}L{x:.1} {bottom:.1}Z"),
        Marker::Cross => {
            format!("M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}L{right:.1} {top:.1}")
        }
    };
    let is_open = curve.style == Style::Published || curve.is_real;
    let fill = if is_open { "#ffffff" } else { curve.look.colour };
    html! { path d=(path) fill=(fill) stroke=(curve.look.colour) stroke-width="1.3" {} }
}
