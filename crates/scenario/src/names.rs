//! Names of nodes, links and flows, and of their copies.

use crate::error::{Fault, Span, nearest};
use crate::table::Item;

/// The longest name.
const LONGEST_NAME: usize = 64;

/// Names become parts of CSV lines and of the names of other things.
pub(crate) fn check_name(name: &str, span: Span) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(Fault::new(
            span,
            format_args!(
                "a name is 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.'; `{{i}}` in it becomes the \
                 number of a copy"
            ),
        ));
    }
    Ok(())
}

/// The name of copy number `copy`.
pub(crate) fn numbered(pattern: &str, copy: u32) -> String {
    pattern.replace("{i}", &copy.to_string())
}

/// The name of a copy; where several have to differ and the pattern does not say how, the number is appended.
pub(crate) fn copy_name(pattern: &str, copy: u32, count: Option<u32>) -> String {
    match count {
        Some(_) if !pattern.contains("{i}") => format!("{pattern}{copy}"),
        _ => numbered(pattern, copy),
    }
}

impl<'a> Item<'a> {
    /// A name: 1 to 64 letters, digits, '-', '_' and '.'.
    ///
    /// # Errors
    /// It is something else.
    pub fn name(self) -> Result<&'a str, Fault> {
        let name = self.text()?;
        check_name(name, self.span)?;
        Ok(name)
    }

    /// The place, among `names`, of what this names; `what` that is stands in the message.
    ///
    /// # Errors
    /// It is the name of none, or no text.
    pub fn place_in(self, names: &[&str], what: &str) -> Result<usize, Fault> {
        let wanted = self.text()?;
        names.iter().position(|name| *name == wanted).ok_or_else(|| {
            let fault = self.fault(format_args!("there is no {what} '{wanted}'"));
            // The guess may be wrong.
            let there_are = names.join(", ");
            match nearest(wanted, names.iter().copied()) {
                Some(meant) => fault.help(format_args!("did you mean '{meant}'? there are: {there_are}")),
                None if names.is_empty() => fault,
                None => fault.help(format_args!("there are: {there_are}")),
            }
        })
    }
}
