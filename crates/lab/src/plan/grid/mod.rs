//! A grid: many paths, each with a value of every axis, numbers across the schemes of each, and tables of
//! them.

mod across;
mod breakdown;
mod paths;
mod read;

pub(super) use across::Across;
pub(super) use breakdown::Breakdown;
pub(super) use paths::Grid;
pub(super) use read::read;
