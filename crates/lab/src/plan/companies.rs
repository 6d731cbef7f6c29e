//! Who shares with whom in groups that find that out, held against who is behind the same link.

use std::collections::BTreeMap;

use anabranch_sim::bottleneck;
use anabranch_sim::model::{FlowId, LinkId, Model};
use anabranch_sim::report::FlowSample;
use anabranch_units::Rate;

use super::quantity::Quantity;
use crate::statistics::mean;

/// The slowest link on a flow's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bottleneck {
    pub(super) link: LinkId,
    pub(super) rate: Rate,
}

/// The bottleneck of each flow of a model.
pub(super) fn bottlenecks(model: &Model) -> Vec<Option<Bottleneck>> {
    let of = |flow| {
        let link = bottleneck(model, flow)?;
        Some(Bottleneck { link, rate: model.links[link].rate })
    };
    (0..model.flows.len()).map(of).collect()
}

/// Flows that are in a group, at one moment: the company of each, and its bottleneck.
#[derive(Debug)]
pub(super) struct Companies(BTreeMap<FlowId, (FlowId, LinkId)>);

impl Companies {
    /// What the last of the samples of each flow tell.
    pub(super) fn of(samples: &[FlowSample], bottlenecks: &[Option<Bottleneck>]) -> Self {
        let mut last = BTreeMap::new();
        for sample in samples {
            let link = bottlenecks.get(sample.flow).copied().flatten().map(|bottleneck| bottleneck.link);
            last.insert(sample.flow, sample.company.zip(link));
        }
        Self(last.into_iter().filter_map(|(flow, told)| Some((flow, told?))).collect())
    }

    /// A number of these flows among all; not finite where none of them is in a group, or has anybody to be
    /// joined with.
    pub(super) fn measure(&self, quantity: Quantity, flows: &[FlowId]) -> f64 {
        let (mut sharing, mut behind, mut together) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for own in self.0.values() {
            *sharing.entry(own.0).or_insert(0) += 1;
            *behind.entry(own.1).or_insert(0) += 1;
            *together.entry(own).or_insert(0) += 1;
        }
        let of = |flow: &FlowId| {
            let own = self.0.get(flow)?;
            let (sharing, together): (i32, i32) = (sharing[&own.0], together[own]);
            match quantity {
                Quantity::Companions => Some(f64::from(sharing - 1)),
                Quantity::Joined if behind[&own.1] > 1 => Some(f64::from(u8::from(together > 1))),
                Quantity::WithStrangers => Some(f64::from(u8::from(sharing > together))),
                _ => None,
            }
        };
        mean(&flows.iter().filter_map(of).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(companies: &[Option<FlowId>], links: &[LinkId]) -> [f64; 3] {
        let sample = |(flow, company): (FlowId, &Option<FlowId>)| FlowSample {
            flow,
            company: *company,
            ..FlowSample::default()
        };
        let samples: Vec<FlowSample> = companies.iter().enumerate().map(sample).collect();
        let rate = Rate::from_mbps(1);
        let bottlenecks: Vec<_> = links.iter().map(|link| Some(Bottleneck { link: *link, rate })).collect();
        let told = Companies::of(&samples, &bottlenecks);
        let flows: Vec<FlowId> = (0..links.len()).collect();
        [Quantity::Companions, Quantity::Joined, Quantity::WithStrangers]
            .map(|what| told.measure(what, &flows))
    }

    #[test]
    fn who_shares_with_whom_is_held_against_the_links() {
        // Two pairs and one alone behind links 7, 8 and 9; the last flow is in no group.
        let links = [7, 7, 8, 8, 9, 7];
        let together = |companies: [usize; 5]| {
            let mut companies: Vec<_> = companies.into_iter().map(Some).collect();
            companies.push(None);
            measured(&companies, &links)
        };
        assert_eq!(together([0, 1, 2, 3, 4]), [0.0, 0.0, 0.0]);
        assert_eq!(together([0, 0, 2, 2, 4]), [0.8, 1.0, 0.0]);
        assert_eq!(together([0, 0, 2, 3, 4]), [0.4, 0.5, 0.0]);
        // One of each pair with one of the other, and all together.
        assert_eq!(together([0, 1, 0, 1, 4]), [0.8, 0.0, 0.8]);
        assert_eq!(together([0; 5]), [4.0, 1.0, 1.0]);
    }

    #[test]
    fn of_no_member_there_is_no_number() {
        assert!(measured(&[None, None], &[7, 7]).iter().all(|value| value.is_nan()));
    }
}
