//! The rate that a film needs, read from the film itself.
