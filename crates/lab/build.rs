//! The papers are part of the program: it is built again when they change.

fn main() {
    println!("cargo::rerun-if-changed=../../papers");
}
