//! Small crates whose circles are known.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use anabranch_structure::{Circle, circles};

/// The circles of a crate that consists of these files below `src/`.
fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut found = circles(&folder.path().join("src/lib.rs")).unwrap();
    for circle in &mut found {
        for path in
            circle.files.iter_mut().chain(circle.arrows.iter_mut().flat_map(|a| [&mut a.from, &mut a.to]))
        {
            *path = path.strip_prefix(folder.path().join("src")).unwrap().to_path_buf();
        }
    }
    found
}

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; fn f() { let _ = super::a::A; }"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].files, [Path::new("a.rs"), Path::new("b.rs")]);
    assert!(found[0].arrows[0].names.contains("crate::b::B"), "{found:?}");
}

#[test]
fn one_way_is_no_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B;"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn a_re_export_leads_to_the_file_behind_it() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod house;"),
        ("a.rs", "pub fn low() { crate::house::high() }"),
        ("house/mod.rs", "mod attic; pub(crate) use attic::high;"),
        ("house/attic.rs", "pub fn high() { crate::a::low() }"),
    ]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].files, [Path::new("a.rs"), Path::new("house/attic.rs")]);
}

#[test]
fn a_parent_that_uses_its_child_and_is_used_by_it_is_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod parent;"),
        ("parent.rs", "mod child; pub struct P; fn f() { child::g() }"),
        ("parent/child.rs", "use super::*; pub fn g() { let _: Option<P> = None; }"),
    ]);
    assert_eq!(found.len(), 1, "a glob brings the parent's names");
}

#[test]
fn the_arguments_of_macros_count() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn a() -> String { format!(\"{}\", [crate::b::b()].len()) }"),
        ("b.rs", "pub fn b() { crate::a::a(); }"),
    ]);
    assert_eq!(found.len(), 1);
}

#[test]
fn attributes_do_not_count() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::*; #[doc(hidden)] pub struct A;"),
        ("b.rs", "pub fn doc() { let _ = crate::a::A; }"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn a_variable_is_no_function_of_its_name() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::b; pub struct A; fn f(b: u8) -> String { format!(\"{}\", b) }"),
        ("b.rs", "pub fn b() { let _ = crate::a::A; }"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn tests_do_not_count() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b::B;"),
        ("b.rs", "pub struct B(crate::a::A);"),
    ]);
    assert_eq!(found, []);
}

#[test]
fn imports_that_name_each_other_end() {
    assert_eq!(
        circles_of(&[("lib.rs", "mod a; use a::*; fn f() { gone() }"), ("a.rs", "pub use super::*;")]),
        []
    );
}

#[test]
fn a_file_that_is_no_rust_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("lib.rs");
    fs::write(&root, "fn (").unwrap();
    let error = circles(&root).unwrap_err().to_string();
    assert!(error.contains("lib.rs"), "{error}");
}
