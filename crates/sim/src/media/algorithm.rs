//! The rate controller of a stream.

use anabranch_film::control::RateController;
use anabranch_film::{auto, fixed, mul, multitcp, rome};

use anabranch_units::Time;

use crate::model::{Media, RateControl};

/// The one that a model names. Of a film in segments it is the one that goes on from segment to segment.
pub(super) fn controller(media: &Media) -> Box<dyn RateController> {
    match &media.algorithm {
        RateControl::Auto(parameters) if media.ladder.is_some() => {
            auto::Lasting::default().next_session(*parameters, Time::ZERO)
        }
        RateControl::Fixed { connections, window } => Box::new(fixed::Fixed::new(*connections, *window)),
        RateControl::Basic(parameters) => Box::new(multitcp::Basic::new(*parameters)),
        RateControl::Advanced(parameters) => Box::new(multitcp::Advanced::new(*parameters)),
        RateControl::Mul(parameters) => Box::new(mul::Mul::new(*parameters)),
        RateControl::Rome(parameters) => Box::new(rome::Rome::new(*parameters)),
        RateControl::Auto(parameters) => Box::new(auto::Auto::new(*parameters)),
    }
}
