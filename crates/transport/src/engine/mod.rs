//! Drives a receiver session over real connections.
