//! Names of segments by a template (ISO/IEC 23009-1, section 5.3.9.4.4).

/// What the identifiers of a template stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) representation: &'a str,
    pub(super) bandwidth: u64,
    pub(super) number: u64,
    pub(super) time: u64,
}

/// A longer name is one of nothing.
const LONGEST: usize = 8 << 10;
/// No number has more digits.
const MOST_DIGITS: usize = 20;

/// The template with its identifiers replaced; `None`: it has others, or is written wrongly.
pub(super) fn filled(template: &str, values: Values<'_>) -> Option<String> {
    let mut name = String::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('$') {
        let (identifier, after) = after.split_once('$')?;
        name.push_str(text);
        let (identifier, width) = match identifier.split_once("%0") {
            Some((identifier, format)) => (identifier, format.strip_suffix('d')?.parse().ok()?),
            None => (identifier, 1),
        };
        let number = match identifier {
            "" => {
                name.push('$');
                None
            }
            "RepresentationID" => {
                name.push_str(values.representation);
                None
            }
            "Number" => Some(values.number),
            "Time" => Some(values.time),
            "Bandwidth" => Some(values.bandwidth),
            _ => return None,
        };
        if let Some(number) = number {
            name.push_str(&format!("{number:0width$}", width = MOST_DIGITS.min(width)));
        }
        if name.len() > LONGEST {
            return None;
        }
        rest = after;
    }
    name.push_str(rest);
    (name.len() <= LONGEST).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_replaced() {
        let values = Values { representation: "v1", bandwidth: 800, number: 7, time: 9000 };
        for (template, name) in [
            ("a.mp4", Some("a.mp4")),
            ("$RepresentationID$/$Number%05d$.m4s", Some("v1/00007.m4s")),
            ("$Bandwidth$-$Time$", Some("800-9000")),
            ("$$1", Some("$1")),
            ("$Number%099999999999999999d$", Some("00000000000000000007")),
            ("$Number%0d$", None),
            ("$Number%05x$", None),
            ("$SubNumber$", None),
            ("$Number", None),
        ] {
            assert_eq!(filled(template, values).as_deref(), name, "{template}");
        }
    }
}
