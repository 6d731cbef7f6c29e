//! BBRv3 on a path made by hand, and its bounds whatever it is told.

mod appendix;
mod bounds;
mod courses;
mod path;
