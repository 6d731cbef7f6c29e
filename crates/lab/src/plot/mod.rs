//! Figures as SVG, and the same as PNG.

mod axis;
mod drawn;
mod marks;

use std::sync::Arc;

use maud::{Markup, html};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use crate::experiment::{Axis, Plot};

use axis::Layout;
use drawn::at;
pub(crate) use drawn::{Drawn, drawn, drawn_real};

/// The text of PNGs and of the PDF is drawn with this subset of DejaVu Sans, so that no machine needs a font.
pub(crate) const FONT: &[u8] = include_bytes!("../../assets/plot-font.ttf");
/// Where a figure is looked at it finds this font or one that is as wide.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 58.0;
/// Room of the legend on the right, beside its texts.
const LEGEND: f64 = 70.0;
/// A letter's mean width at the legend's size, as far as room must be left for it.
const LETTER: f64 = 6.8;
/// Pixels of a PNG for one of the figure's units.
const PIXELS: f32 = 2.0;
/// A figure as an SVG document.
pub(crate) fn svg(plot: &Plot, curves: &[Drawn]) -> String {
    let longest = curves.iter().map(|curve| curve.label.chars().count()).max().unwrap_or(0);
    let right = WIDTH - LEGEND - (longest as f64 * LETTER).min(WIDTH / 3.0);
    let xs = curves.iter().flat_map(|curve| &curve.points).map(|point| point.x);
    let ys = curves.iter().flat_map(|curve| &curve.points).flat_map(|point| {
        let [low, high] = point.y.interval().unwrap_or([point.y.mean; 2]);
        [low, high]
    });
    let x = Layout::new(&plot.x, xs, (LEFT, right));
    let y = Layout::new(&plot.y, ys, (BOTTOM, TOP));
    let middle = (LEFT + right) / 2.0;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 \
            {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT)
            role="img" aria-label=(plot.title) font-family=(FAMILY) font-size="12" {
            rect width=(WIDTH) height=(HEIGHT) fill="#ffffff" {}
            text x=(middle) y="26" text-anchor="middle" font-size="15" { (plot.title) }
            (grid(&x, &y, right))
            @for curve in curves { (marks::curve(curve, &x, &y)) }
            rect x=(LEFT) y=(TOP) width=(right - LEFT) height=(BOTTOM - TOP) fill="none" stroke="#000000" {}
            text x=(middle) y=(HEIGHT - 16.0) text-anchor="middle" font-size="13" { (label(&plot.x)) }
            text transform=(format!("translate(20 {}) \
                                     rotate(-90)", (TOP + BOTTOM) / 2.0)) text-anchor="middle"
                font-size="13" { (label(&plot.y)) }
            @for (index, curve) in curves.iter().enumerate() {
                (marks::legend(curve, right + 14.0, TOP + 12.0 + 20.0 * index as f64))
            }
        }
    }
    .into_string()
}

/// What an axis shows, with its unit.
pub(crate) fn label(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

fn grid(x: &Layout, y: &Layout, right: f64) -> Markup {
    html! {
        @for tick in &x.ticks {
            @if let Some(place) = x.place(*tick) {
                line x1=(at(place)) x2=(at(place)) y1=(TOP) y2=(BOTTOM) stroke="#dddddd" {}
                text x=(at(place)) y=(BOTTOM + 17.0) text-anchor="middle" { (x.text(*tick)) }
            }
        }
        @for tick in &y.ticks {
            @if let Some(place) = y.place(*tick) {
                line x1=(LEFT) x2=(right) y1=(at(place)) y2=(at(place)) stroke="#dddddd" {}
                text x=(LEFT - 7.0) y=(at(place + 4.0)) text-anchor="end" { (y.text(*tick)) }
            }
        }
    }
}

/// An SVG document of ours with its text laid out, whatever fonts the machine has.
///
/// # Errors
/// The document is not one of ours.
pub(crate) fn tree(svg: &str) -> Result<usvg::Tree, String> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())
}

/// An SVG document of ours as PNG, whatever fonts the machine has.
///
/// # Errors
/// The document is not one of ours.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = tree(svg)?;
    let size = tree.size().to_int_size().scale_by(PIXELS).ok_or("the figure has no size")?;
    let mut picture = Pixmap::new(size.width(), size.height()).ok_or("the figure has no size")?;
    resvg::render(&tree, Transform::from_scale(PIXELS, PIXELS), &mut picture.as_mut());
    picture.encode_png().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Curve, Points};
    use crate::results::Results;
    use crate::scheme;

    fn picture(title: &str) -> (String, Vec<u8>) {
        let curve = |label: &str, points| Curve { label: label.into(), look: scheme::N2, points };
        let plot = Plot {
            id: "plot".into(),
            title: title.into(),
            x: Axis::new("time", "s"),
            y: Axis::new("rate", "kbps"),
            curves: vec![
                curve("formula", Points::Formula(vec![(0.0, 1.0), (1.0, 2.0)])),
                curve("paper", Points::Published(vec![(0.5, 1.5)])),
            ],
        };
        let svg = svg(&plot, &drawn(&plot, &Results::default()));
        let png = png(&svg).unwrap();
        (svg, png)
    }

    #[test]
    fn the_text_of_a_png_needs_no_font_of_the_machine() {
        let (_, named) = picture("Title");
        let (_, nameless) = picture("");
        assert_eq!(named[..8], *b"\x89PNG\r\n\x1a\n");
        assert_ne!(named, nameless);
        // A letter that the font does not have would look like any other such.
        assert_ne!(picture("\u{3b1}").1, picture("\u{3b2}").1);
    }

    #[test]
    fn labels_are_escaped_and_have_units() {
        let (svg, _) = picture("a < b & c");
        for text in
            ["a &lt; b &amp; c", ">time (s)<", ">rate (kbps)<", ">formula<", "stroke-dasharray=\"2 3\""]
        {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }
}
