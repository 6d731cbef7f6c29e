//! The rate controller of a stream.

use anabranch_film::control::RateController;
use anabranch_film::{auto, mul, multitcp, rome};

use super::fixed;
use crate::model::Algorithm;

/// The one that a model names.
pub(super) fn controller(algorithm: &Algorithm) -> Box<dyn RateController> {
    match algorithm {
        Algorithm::Fixed { connections, window } => Box::new(fixed::Fixed::new(*connections, *window)),
        Algorithm::Basic(parameters) => Box::new(multitcp::Basic::new(*parameters)),
        Algorithm::Advanced(parameters) => Box::new(multitcp::Advanced::new(*parameters)),
        Algorithm::Mul(parameters) => Box::new(mul::Mul::new(*parameters)),
        Algorithm::Rome(parameters) => Box::new(rome::Rome::new(*parameters)),
        Algorithm::Auto(parameters) => Box::new(auto::Auto::new(*parameters)),
    }
}
