//! What is pinned in a control's place is not what was left there, or holds garbage. It needs root.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod machine;
mod traffic;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_congestion::tfwc::Tuning;
use anabranch_kernel::{
    DIRECTORY, Error, NAMES, Rules, Setting, change, flows, list, load, rules, set_rules, unload,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use machine::is_alone;
use traffic::{carry, cwnd};

/// Windows end there, packets (bpf/group.h).
const LARGEST_WINDOW: u64 = 1 << 19;

fn place(name: &str, file: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name).join(file)
}

fn ttfwc() -> Setting {
    Setting::Ttfwc(Tuning::new(0.4).unwrap())
}

/// Loads all of them; whether this machine can.
fn can_load() -> bool {
    for setting in [Setting::Tfwc, ttfwc(), Setting::MulTcp(4.0), Setting::Group] {
        match load(setting) {
            Ok(()) => {}
            Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_) | Error::NoBpfFs { .. })) => {
                anabranch_testkit::skipped(error);
                return false;
            }
            Err(error) => panic!("{error}"),
        }
    }
    true
}

/// A map of this shape in place of the one that was pinned there.
fn replace(path: &Path, kind: MapType, name: &str, value_size: u32, entries: u32) {
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let mut map = MapHandle::create(kind, Some(name), 4, value_size, entries, &options).unwrap();
    fs::remove_file(path).unwrap();
    map.pin(path).unwrap();
}

/// The names are taken back once the kernel has let go of them.
fn unload_all() {
    for name in NAMES {
        unload(name).unwrap();
    }
    for _ in 0..100 {
        let all = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        if !all.split_whitespace().any(|word| NAMES.contains(&word)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("a control is still registered");
}

#[test]
fn maps_of_other_shapes_are_told_and_not_read() {
    if !is_alone("maps_of_other_shapes_are_told_and_not_read") || !can_load() {
        return;
    }
    let (parameters, weights) = (place("ttfwc", "parameters"), place("group", "rules"));
    for (kind, value_size, entries) in [
        (MapType::Array, 4, 1),
        (MapType::Array, 4096, 1),
        (MapType::Array, 32, 1000),
        (MapType::Hash, 32, 1),
        (MapType::PercpuArray, 32, 1),
    ] {
        replace(&parameters, kind, "parameters", value_size, entries);
        let what = format!("{kind:?} of {entries} with {value_size} bytes");
        assert!(matches!(list(), Err(Error::OtherVersion("ttfwc"))), "{what}: {:?}", list());
        assert!(matches!(change(ttfwc()), Err(Error::OtherVersion("ttfwc"))), "{what}");
        replace(&weights, kind, "rules", value_size, entries);
        assert!(matches!(rules(), Err(Error::OtherVersion("group"))), "{what}: {:?}", rules());
        assert!(matches!(set_rules(&Rules::default()), Err(Error::OtherVersion("group"))), "{what}");
    }
    // Another program's, which only happens to look alike.
    replace(&parameters, MapType::Array, "accounts", 32, 1);
    for result in
        [list().map(|_| ()), change(ttfwc()), flows("ttfwc").map(|_| ()), load(ttfwc()), unload("ttfwc")]
    {
        let said = result.unwrap_err().to_string();
        assert!(
            said.contains("of another kind") && said.contains("rm -r /sys/fs/bpf/anabranch/ttfwc"),
            "{said}"
        );
    }
    // What it says helps.
    assert!(Command::new("rm").arg("-r").arg(parameters.parent().unwrap()).status().unwrap().success());
    load(ttfwc()).unwrap();
    unload_all();
}

#[test]
fn connections_live_whatever_the_maps_hold() {
    if !is_alone("connections_live_whatever_the_maps_hold") || !can_load() {
        return;
    }
    let garbage = [
        vec![0; 32],
        vec![0xff; 32],
        (0..32u8).map(|i| i.wrapping_mul(37)).collect(),
        [0, 0, 0, 0x80].repeat(8),
    ];
    for (number, bytes) in garbage.iter().enumerate() {
        for name in NAMES {
            let map = MapHandle::from_pinned_path(place(name, "parameters")).unwrap();
            map.update(&0u32.to_ne_bytes(), bytes, MapFlags::ANY).unwrap();
            if name == "group" {
                let rules = MapHandle::from_pinned_path(place(name, "rules")).unwrap();
                let size = rules.value_size() as usize;
                let values: Vec<u8> = bytes.iter().copied().cycle().take(size).collect();
                for set in 0..2u32 {
                    rules.update(&set.to_ne_bytes(), &values, MapFlags::ANY).unwrap();
                }
            }
            carry(name, 5_000_000, |local, _| {
                let cwnd = cwnd(local);
                assert!((1..=LARGEST_WINDOW).contains(&cwnd), "{name}, garbage {number}: a window of {cwnd}");
                let told = flows(name).unwrap();
                assert_eq!(told.len(), 1, "{name}, garbage {number}");
                // Nobody has a weight that no file can give.
                assert_eq!(told[0].weight.is_some(), name == "group", "garbage {number}: {told:?}");
            });
        }
        let said = list().unwrap_err().to_string();
        assert!(
            said.contains("or changed by something else") && said.contains("anabranch cc unload"),
            "{said}"
        );
        assert!(
            rules().is_err_and(|error| matches!(error, Error::OtherVersion("group"))),
            "garbage {number}"
        );
    }
    // They are set anew, or unloaded.
    for setting in [Setting::Tfwc, ttfwc(), Setting::MulTcp(4.0)] {
        change(setting).unwrap();
    }
    unload("group").unwrap();
    assert_eq!(list().unwrap().len(), 3);
    load(Setting::Group).unwrap();
    unload_all();
}
