//! Holds docs/statistics.md against the program: what it can write, the page has to tell.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/statistics.md");

/// Every key of a line of `--stats` is on the page, in the part of it that begins with `part`.
#[track_caller]
pub fn keys(part: &str, line: &impl Serialize) {
    let part = PAGE.split_once(part).unwrap_or_else(|| panic!("the page has no '{part}'")).1;
    walk(part, &serde_json::to_value(line).unwrap());
}

#[track_caller]
fn walk(page: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                assert!(key == "at_s" || page.contains(&format!("`{key}`")), "{key} is not on the page");
                walk(page, value);
            }
            if let Some(event) = fields.get("event").and_then(Value::as_str) {
                assert!(page.contains(&format!("`{event}`")), "the event {event} is not on the page");
            }
        }
        Value::Array(values) => values.iter().for_each(|value| walk(page, value)),
        _ => {}
    }
}

/// Every metric is on the page.
#[track_caller]
pub fn metrics(collector: Box<dyn Collector>) {
    let mut registry = Registry::with_prefix("anabranch");
    registry.register_collector(collector);
    let mut encoded = String::new();
    text::encode(&mut encoded, &registry).unwrap();
    let mut count = 0;
    for words in encoded.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = words.split_once(' ').unwrap();
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        assert!(PAGE.contains(&format!("`{name}`")), "{name} is not on the page");
        count += 1;
    }
    assert!(count > 5, "{encoded}");
}
