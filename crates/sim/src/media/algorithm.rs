//! The rate controller of a stream.

use anabranch_film::control::RateController;
use anabranch_film::{auto, fixed, mul, multitcp, rome};

use crate::model::RateControl;

/// The one that a model names.
pub(super) fn controller(algorithm: &RateControl) -> Box<dyn RateController> {
    match algorithm {
        RateControl::Fixed { connections, window } => Box::new(fixed::Fixed::new(*connections, *window)),
        RateControl::Basic(parameters) => Box::new(multitcp::Basic::new(*parameters)),
        RateControl::Advanced(parameters) => Box::new(multitcp::Advanced::new(*parameters)),
        RateControl::Mul(parameters) => Box::new(mul::Mul::new(*parameters)),
        RateControl::Rome(parameters) => Box::new(rome::Rome::new(*parameters)),
        RateControl::Auto(parameters) => Box::new(auto::Auto::new(*parameters)),
    }
}
