//! Tables: columns as wide as their texts ask for, and pages that begin with the head again.

use super::layout::{BOTTOM, Item, LEADING, LEFT, Layout, TOP, WIDTH};
use super::text::{Faces, Line};
use crate::report::content::{Column, Style, Table, Text};

const CAPTION: f32 = 9.0;
/// The size of letters, and that of a table which would be too wide else.
const SIZES: [f32; 2] = [8.0, 7.0];
/// Beside a cell's text.
const BESIDE: f32 = 3.5;
/// Above and below a cell's text.
const ABOVE: f32 = 2.0;
/// Below a table.
const BELOW: f32 = 9.0;

/// A table with its columns' widths.
struct Fitted {
    size: f32,
    widths: Vec<f32>,
}

/// A row's cells as lines.
struct Row {
    cells: Vec<Vec<Line>>,
}

impl Row {
    fn lines(&self) -> usize {
        self.cells.iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl Layout {
    /// Puts a table below what is there, over as many pages as it takes. Where it is too wide, its columns go
    /// below each other.
    pub fn table(&mut self, table: &Table) {
        for (part, fitted) in parts(&self.faces, table) {
            self.part(&part, &fitted);
        }
    }

    fn part(&mut self, table: &Table, fitted: &Fitted) {
        let height = |lines: usize| lines as f32 * fitted.size * LEADING + 2.0 * ABOVE;
        let heads: Vec<Text> =
            table.columns.iter().map(|column| Text::default().and(&column.head, Style::Strong)).collect();
        let head = self.row(table, fitted, &heads, true);
        let caption = Text::default().and(&table.caption, Style::Strong);
        let caption = self.faces.lines(&caption, CAPTION, WIDTH, true);
        let above = caption.len() as f32 * CAPTION * LEADING + ABOVE;
        self.room(above + height(head.lines()) + height(3));
        for line in caption {
            let y = self.y;
            self.line(line, LEFT, y, CAPTION);
            self.y += CAPTION * LEADING;
        }
        self.y += ABOVE;
        self.head(table, fitted, &head);
        let whole_page = BOTTOM - TOP - height(head.lines());
        for cells in table.rows.iter().chain(&table.foot) {
            let row = self.row(table, fitted, cells, false);
            let mut from = 0;
            while from < row.lines() {
                let left = row.lines() - from;
                let fitting = ((BOTTOM - self.y - 2.0 * ABOVE) / (fitted.size * LEADING)).max(0.0) as usize;
                // A row goes over pages only when it has no room on one.
                if fitting < left && (height(left) <= whole_page || fitting == 0) {
                    self.new_page();
                    self.head(table, fitted, &head);
                    continue;
                }
                let to = from + left.min(fitting);
                self.lines_of(table, fitted, &row, from..to);
                from = to;
            }
        }
        self.y += BELOW;
    }

    fn row(&self, table: &Table, fitted: &Fitted, cells: &[Text], is_head: bool) -> Row {
        let cell = |((text, column), width): ((&Text, &Column), &f32)| {
            let divides = is_head || !column.is_number;
            self.faces.lines(text, fitted.size, width - 2.0 * BESIDE, divides)
        };
        Row { cells: cells.iter().zip(&table.columns).zip(&fitted.widths).map(cell).collect() }
    }

    fn head(&mut self, table: &Table, fitted: &Fitted, head: &Row) {
        let height = head.lines() as f32 * fitted.size * LEADING + 2.0 * ABOVE;
        let width = fitted.widths.iter().sum();
        self.add(Item::Shade { x: LEFT, y: self.y, width, height });
        self.lines_of(table, fitted, head, 0..head.lines());
    }

    fn lines_of(&mut self, table: &Table, fitted: &Fitted, row: &Row, which: std::ops::Range<usize>) {
        let line_height = fitted.size * LEADING;
        let mut x = LEFT;
        for ((cell, column), width) in row.cells.iter().zip(&table.columns).zip(&fitted.widths) {
            let lines = cell.iter().skip(which.start).take(which.len());
            for (index, line) in lines.enumerate() {
                let spare = if column.is_number { width - 2.0 * BESIDE - line.width } else { 0.0 };
                let y = self.y + ABOVE + index as f32 * line_height;
                self.line(line.clone(), x + BESIDE + spare, y, fitted.size);
            }
            x += width;
        }
        self.y += which.len() as f32 * line_height + 2.0 * ABOVE;
        self.add(Item::Rule { x: LEFT, y: self.y, width: x - LEFT });
    }
}

/// A table in the largest letters with which every column holds its longest word. When none are small enough,
/// it is divided into tables that have the first column in common.
fn parts(faces: &Faces, table: &Table) -> Vec<(Table, Fitted)> {
    let fits = |extents: &[Extent]| extents.iter().map(|extent| extent.least).sum::<f32>() <= WIDTH;
    let mut size = SIZES[0];
    let mut extents = Vec::new();
    for tried in SIZES {
        size = tried;
        extents = self::extents(faces, table, size);
        if fits(&extents) {
            return vec![(table.clone(), Fitted { size, widths: widths(&extents) })];
        }
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for index in 1..extents.len() {
        let with = |part: &[usize]| {
            [0].iter().chain(part).chain([&index]).map(|index| extents[*index]).collect::<Vec<_>>()
        };
        match parts.last_mut() {
            Some(part) if fits(&with(part)) => part.push(index),
            _ => parts.push(vec![index]),
        }
    }
    let part = |mut columns: Vec<usize>| {
        columns.insert(0, 0);
        let extents: Vec<Extent> = columns.iter().map(|index| extents[*index]).collect();
        (of_columns(table, &columns), Fitted { size, widths: widths(&extents) })
    };
    parts.into_iter().map(part).collect()
}

fn of_columns(table: &Table, columns: &[usize]) -> Table {
    let cells = |row: &Vec<Text>| columns.iter().filter_map(|index| row.get(*index)).cloned().collect();
    Table {
        caption: table.caption.clone(),
        columns: columns.iter().filter_map(|index| table.columns.get(*index)).cloned().collect(),
        rows: table.rows.iter().map(cells).collect(),
        foot: table.foot.as_ref().map(cells),
    }
}

/// How wide a column can be: the least holds every word, the most every text on a line.
#[derive(Clone, Copy)]
struct Extent {
    least: f32,
    most: f32,
}

fn extents(faces: &Faces, table: &Table, size: f32) -> Vec<Extent> {
    let extent = |(index, column): (usize, &Column)| {
        let head = Text::default().and(&column.head, Style::Strong);
        let cells = table.rows.iter().chain(&table.foot).filter_map(|row| row.get(index));
        let mut extents: Vec<_> = cells.map(|cell| faces.extent(cell, size, !column.is_number)).collect();
        extents.push(faces.extent(&head, size, true));
        // What rounding adds is no reason to end a line.
        let beside = 2.0 * BESIDE + 0.1;
        let widest = |of: fn(&(f32, f32)) -> f32| extents.iter().map(of).fold(0.0, f32::max) + beside;
        Extent { least: widest(|extent| extent.0), most: widest(|extent| extent.1) }
    };
    table.columns.iter().enumerate().map(extent).collect()
}

/// Columns get what they need. What is left of the line they share by the root of what they could use beyond
/// it: a long text gets more than a short one, but does not make it narrow.
fn widths(extents: &[Extent]) -> Vec<f32> {
    let least: f32 = extents.iter().map(|extent| extent.least).sum();
    if least > WIDTH {
        return extents.iter().map(|extent| extent.least * WIDTH / least).collect();
    }
    let want = |extent: &Extent| extent.most - extent.least;
    let mut wants: Vec<f32> = extents.iter().map(want).collect();
    wants.sort_by(f32::total_cmp);
    let mut left = WIDTH - least;
    let mut roots: f32 = wants.iter().map(|want| want.sqrt()).sum();
    // From here on columns do not get all that they could use.
    let mut long = f32::INFINITY;
    for want in wants {
        if want > left * want.sqrt() / roots {
            long = want;
            break;
        }
        left -= want;
        roots -= want.sqrt();
    }
    let part = |extent: &Extent| {
        let want = want(extent);
        extent.least + if want < long { want } else { left * want.sqrt() / roots }
    };
    extents.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths_of(extents: &[(f32, f32)]) -> Vec<f32> {
        widths(&extents.iter().map(|(least, most)| Extent { least: *least, most: *most }).collect::<Vec<_>>())
    }

    #[test]
    fn a_column_of_long_texts_leaves_the_others_what_they_can_use() {
        let near = |found: &[f32], wanted: &[f32]| {
            assert!(
                found.iter().zip(wanted).all(|(one, other)| (one - other).abs() < 0.01),
                "{found:?} {wanted:?}"
            );
        };
        let half = WIDTH / 2.0;
        near(&widths_of(&[(10.0, 50.0), (half, half)]), &[50.0, half]);
        near(&widths_of(&[(10.0, 20.0), (10.0, 4010.0)]), &[20.0, WIDTH - 20.0]);
        near(
            &widths_of(&[(10.0, 1010.0), (10.0, 9010.0)]),
            &[10.0 + (WIDTH - 20.0) / 4.0, 10.0 + (WIDTH - 20.0) * 0.75],
        );
        near(&widths_of(&[(WIDTH, WIDTH), (WIDTH, WIDTH)]), &[half, half]);
    }

    #[test]
    fn a_table_that_is_too_wide_is_divided_and_loses_nothing() {
        let columns = std::iter::once(Column::text("run"))
            .chain((1..=12).map(|index| Column::number(&format!("throughput {index}"))));
        let row = std::iter::once(Text::from("the first"))
            .chain((1..=12).map(|index| format!("{index}.25 ± 0.0125").into()));
        let table = Table {
            caption: "wide".into(),
            columns: columns.collect(),
            rows: vec![row.collect()],
            foot: None,
        };
        let parts = parts(&Faces::new().unwrap(), &table);
        assert!((2..=4).contains(&parts.len()), "{}", parts.len());
        let heads: Vec<&str> = parts
            .iter()
            .flat_map(|(part, fitted)| {
                assert_eq!(part.columns[0].head, "run");
                assert_eq!(part.rows[0].len(), part.columns.len());
                assert!(fitted.widths.iter().sum::<f32>() <= WIDTH + 0.01);
                part.columns[1..].iter().map(|column| &*column.head)
            })
            .collect();
        assert_eq!(heads, table.columns[1..].iter().map(|column| &*column.head).collect::<Vec<_>>());
    }
}
