//! Keys of a scenario as a sweep names them: `run.duration`, `link.2.rate`, `flow.film.algorithm`.

use toml::{Table, Value};

/// Sets the value at a key. An element of an array of tables is meant by its `name`, a link's also by
/// `FROM-TO`, or by its number from 1 on.
///
/// A table on the way that is not there is made: whether a scenario knows it, is told when the scenario is
/// read.
///
/// # Errors
/// What is wrong with the key.
pub(crate) fn set(scenario: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let (way, last) = key.rsplit_once('.').unwrap_or(("", key));
    if last.is_empty() || key.split('.').any(str::is_empty) {
        return Err(format!("'{key}' is no key; write it like link.1.rate or run.duration"));
    }
    let mut table = scenario;
    let mut steps = way.split('.').filter(|step| !step.is_empty());
    while let Some(step) = steps.next() {
        table = match table.entry(step).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(inner) => inner,
            Value::Array(elements) => {
                let which = steps.next().ok_or_else(|| {
                    format!(
                        "'{key}' does not say which {step}: write {step}.1.{last}, or its name for the number"
                    )
                })?;
                element(elements, step, which)?
            }
            _ => return Err(format!("'{key}': {step} is a value, which has nothing in it")),
        };
    }
    if table.get(last).is_some_and(|old| {
        old.is_array() && old.as_array().is_some_and(|all| all.iter().all(Value::is_table))
    }) {
        return Err(format!("'{key}' is a list of tables; write {key}.1.KEY, or its name for the number"));
    }
    table.insert(last.to_owned(), value);
    Ok(())
}

fn element<'a>(elements: &'a mut [Value], what: &str, which: &str) -> Result<&'a mut Table, String> {
    let names: Vec<Option<String>> = elements.iter().map(name).collect();
    let number = which.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let index = names.iter().position(|name| name.as_deref() == Some(which)).or(number);
    match index.and_then(|index| elements.get_mut(index)) {
        Some(Value::Table(element)) => Ok(element),
        _ => {
            let count = names.len();
            let known: Vec<String> = names.into_iter().flatten().take(20).collect();
            Err(format!("there is no {what} '{which}'; there are {count}: {}", known.join(", ")))
        }
    }
}

/// What an element of an array is called.
fn name(element: &Value) -> Option<String> {
    let text = |key: &str| element.get(key).and_then(Value::as_str);
    text("name").map(Into::into).or_else(|| Some(format!("{}-{}", text("from")?, text("to")?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCENARIO: &str =
        "run.duration = '1s'\n[[link]]\nfrom = 'a'\nto = 'b'\n[[link]]\nname = 'x'\n[[link]]\nname = '1'\n";

    fn after(key: &str) -> Result<String, String> {
        let mut scenario: Table = SCENARIO.parse().unwrap();
        set(&mut scenario, key, Value::Integer(7)).map(|()| scenario.to_string())
    }

    #[test]
    fn elements_are_meant_by_name_or_number() {
        let set_in = |key: &str| {
            let scenario: Table = after(key).unwrap().parse().unwrap();
            let links = scenario["link"].as_array().unwrap().clone();
            links.iter().position(|link| link.get("rate") == Some(&Value::Integer(7)))
        };
        assert_eq!(set_in("link.a-b.rate"), Some(0));
        assert_eq!(set_in("link.x.rate"), Some(1));
        assert_eq!(set_in("link.2.rate"), Some(1));
        // A name comes before a number.
        assert_eq!(set_in("link.1.rate"), Some(2));
        assert!(after("run.duration").unwrap().contains("duration = 7"));
        assert!(after("tcp.segment").unwrap().contains("[tcp]"));
    }

    #[test]
    fn what_is_not_there_is_told() {
        for (key, said) in [
            ("link.y.rate", "there is no link 'y'; there are 3: a-b, x, 1"),
            ("link.0.rate", "there is no link '0'"),
            ("link.99.rate", "there is no link '99'"),
            ("link.rate", "does not say which link"),
            ("link", "is a list of tables"),
            ("run.duration.x", "duration is a value"),
            ("run..x", "is no key"),
            ("", "is no key"),
        ] {
            let error = after(key).unwrap_err();
            assert!(error.contains(said), "{key}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_key_is_a_panic(key in "[a-z0-9.-]{0,20}") {
            let _ = after(&key);
        }
    }
}
