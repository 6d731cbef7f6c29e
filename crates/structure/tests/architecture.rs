//! The page on the architecture says what is there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Which rooms each room uses, by the names of their folders.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).unwrap()
}

/// What the manifests say, without what only tests use.
fn built() -> Uses {
    let room = |package: &str| package.strip_prefix("anabranch-").map(str::to_owned);
    let mut uses = Uses::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let entry = entry.unwrap();
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let here = |table: &toml::Table| table.get("dependencies").and_then(toml::Value::as_table).cloned();
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        let targets = targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
        let dependencies = std::iter::once(&manifest).chain(targets).filter_map(here);
        let used =
            dependencies.flat_map(|table| table.into_iter().filter_map(|(name, _)| room(&name))).collect();
        uses.insert(entry.file_name().into_string().unwrap(), used);
    }
    uses
}

fn reached(uses: &Uses, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(room) = next.pop() {
        for used in &uses[room] {
            if reached.insert(used.clone()) {
                next.push(used);
            }
        }
    }
    reached
}

#[test]
fn the_drawing_has_every_arrow_that_does_not_follow_from_others() {
    let uses = built();
    let direct = |room: &str| -> BTreeSet<String> {
        let follows = |used: &&String| {
            uses[room].iter().any(|other| other != *used && reached(&uses, other).contains(*used))
        };
        uses[room].iter().filter(|used| !follows(used)).cloned().collect()
    };
    let expected: Uses = uses.keys().map(|room| (room.clone(), direct(room))).collect();
    let page = page();
    let drawing = page.split("```mermaid").nth(1).unwrap().split("```").next().unwrap();
    let mut drawn = Uses::new();
    for line in drawing.lines().skip(2) {
        let mut rooms = line.trim().split(" --> ").map(str::to_owned);
        let from = rooms.next().unwrap();
        drawn.entry(from).or_default().extend(rooms.next());
    }
    for room in drawn.values().flatten().cloned().collect::<Vec<_>>() {
        drawn.entry(room).or_default();
    }
    assert_eq!(drawn, expected);
}

#[test]
fn every_room_is_on_the_map() {
    let page = page();
    for room in built().keys() {
        assert!(page.contains(&format!("\n  {room}/")), "{room} is not in the list of rooms");
    }
}

#[test]
fn every_file_that_the_page_names_is_there() {
    let page = page();
    let named =
        page.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") || name.ends_with(".c"));
    let mut count = 0;
    for name in named.filter(|name| name.contains('/') && !name.contains('*')) {
        assert!(root().join("crates").join(name).is_file(), "{name} is not there");
        count += 1;
    }
    assert!(count > 30, "only {count} files are named: is the page read?");
}
