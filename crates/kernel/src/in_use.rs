//! Which groups have connections, as the list of flows tells.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::pins::list_of_flows;
use crate::setting::Setting;

/// What a line about a group begins with.
pub(crate) const GROUP: &str = "group ";

/// The numbers of the groups that connections are in, or wait for.
pub(crate) fn groups_in_use() -> Result<BTreeSet<u32>, Error> {
    list_of_flows(Setting::Group.name()).map(|list| numbers(&list))
}

/// A line about a flow ends with the number of its group.
fn numbers(list: &str) -> BTreeSet<u32> {
    let lines = list.lines().filter(|line| !line.starts_with(GROUP));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_with_flows_are_in_use() {
        let list = "10.0.0.1:443 10.0.0.2:51000 32 16 3 1 0 65536 3\n\
                    10.0.0.1:443 10.0.0.2:51001 1 1 0 0 0 0 0\ngroup 5 0 0 0 0\n";
        assert_eq!(numbers(list), BTreeSet::from([0, 3]));
    }
}
