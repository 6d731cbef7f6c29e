//! Relations, plots and tables in few words.

use crate::experiment::{Axis, Cell, Curve, Plot, Points, Row, Table, Value};
use crate::results::OneSeed;
use crate::scheme::Scheme;

/// A figure of a run.
#[derive(Clone)]
pub(super) struct Figure {
    pub scheme: Scheme,
    pub setting: String,
    pub point: f64,
    pub name: &'static str,
}

impl Figure {
    pub(super) fn of(self, seed: OneSeed<'_>) -> Option<f64> {
        seed.setting(&self.setting).figure(self.scheme, self.point, self.name)
    }

    pub(super) fn value(self) -> Value {
        Box::new(move |seed| self.clone().of(seed))
    }
}

/// A plot of a figure against the parameter.
pub(super) fn plot_figures(
    (id, title, name): (&str, &str, &'static str),
    x: Axis,
    y: Axis,
    schemes: &[Scheme],
    more: Vec<Curve>,
) -> Plot {
    let curve = |scheme: &Scheme| Curve {
        label: scheme.name.into(),
        look: *scheme,
        points: Points::Figure { scheme: *scheme, setting: String::new(), name: name.into() },
    };
    let curves = schemes.iter().map(curve).chain(more).collect();
    Plot { id: id.into(), title: title.into(), x, y, curves }
}

/// A table of figures: a row for each point and scheme.
pub(super) fn table(
    id: &str,
    title: &str,
    columns: &[(&str, &'static str)],
    rows: impl IntoIterator<Item = (String, Scheme, String, f64)>,
) -> Table {
    let row = |(label, scheme, setting, point): (String, Scheme, String, f64)| {
        let cell = |(_, name): &(&str, &'static str)| Cell {
            published: None,
            value: Figure { scheme, setting: setting.clone(), point, name }.value(),
        };
        Row { label, cells: columns.iter().map(cell).collect() }
    };
    Table {
        id: id.into(),
        title: title.into(),
        columns: std::iter::once("run")
            .chain(columns.iter().map(|(head, _)| *head))
            .map(Into::into)
            .collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}
