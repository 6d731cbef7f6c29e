//! Losses on a wire.

use crate::model::{GilbertElliott, LossModel};
use anabranch_scenario::random::Random;

/// A loss model at work.
#[derive(Clone, Debug)]
pub(super) enum Losses {
    None,
    Bernoulli(f64),
    GilbertElliott {
        parameters: GilbertElliott,
        is_bad: bool,
    },
    /// The places still to come, the last one first, and the next packet's place.
    Listed {
        places: Vec<u64>,
        next: u64,
    },
}

impl Losses {
    pub(super) fn new(loss: &LossModel) -> Self {
        match loss {
            LossModel::None => Self::None,
            LossModel::Bernoulli(probability) => Self::Bernoulli(*probability),
            LossModel::GilbertElliott(parameters) => {
                Self::GilbertElliott { parameters: *parameters, is_bad: false }
            }
            LossModel::Listed(places) => {
                let mut places = places.clone();
                places.sort_unstable_by(|a, b| b.cmp(a));
                places.dedup();
                Self::Listed { places, next: 0 }
            }
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(super) fn loses(&mut self, random: &mut Random) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(probability) => random.unit() < *probability,
            Self::GilbertElliott { parameters, is_bad } => {
                let leaves = if *is_bad { parameters.to_good } else { parameters.to_bad };
                *is_bad ^= random.unit() < leaves;
                random.unit() < if *is_bad { parameters.loss_bad } else { parameters.loss_good }
            }
            Self::Listed { places, next } => {
                let is_listed = places.last() == Some(next);
                if is_listed {
                    places.pop();
                }
                *next += 1;
                is_listed
            }
        }
    }
}
