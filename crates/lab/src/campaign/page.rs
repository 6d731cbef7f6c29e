//! A document with the tables of campaigns in it.

use std::path::Path;

use super::error::CampaignError;

const BEGIN: &str = "<!-- table:";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- /table -->";

/// The document with every table in its place, which is between `<!-- table:NAME -->` and `<!-- /table -->`;
/// what has no table in `tables` stays.
///
/// # Errors
/// It has no place for any of them; `path` is its name.
pub fn page(path: &Path, document: &str, tables: &[(String, String)]) -> Result<String, CampaignError> {
    let mut filled = String::new();
    let mut rest = document;
    let mut count = 0;
    while let Some(begin) = rest.find(BEGIN) {
        let Some(name_end) = rest[begin..].find(BEGIN_END).map(|at| begin + at) else { break };
        let body = name_end + BEGIN_END.len();
        let Some(end) = rest[body..].find(END).map(|at| body + at) else { break };
        let name = &rest[begin + BEGIN.len()..name_end];
        filled += &rest[..body];
        match tables.iter().find(|(known, _)| known == name) {
            Some((_, table)) => {
                count += 1;
                filled += &format!("\n{}\n", table.trim());
            }
            None => filled += &rest[body..end],
        }
        filled += END;
        rest = &rest[end + END.len()..];
    }
    if count == 0 {
        return Err(CampaignError::NoPlace(path.into()));
    }
    Ok(filled + rest)
}
