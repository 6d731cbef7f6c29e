//! The command line of Anabranch.
fn main() {}
