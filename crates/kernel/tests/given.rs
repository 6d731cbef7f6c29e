//! Weights that a program gives its own connections. It needs root.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod machine;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_kernel::{
    DIRECTORY, Error, Given, GroupName, Rules, Setting, Weight, flows, groups, load, set_rules, unload,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use machine::is_alone;

/// Whether the group is loaded now; says why not.
fn is_loaded() -> bool {
    match load(Setting::Group) {
        Ok(()) => true,
        Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_) | Error::NoBpfFs { .. })) => {
            anabranch_testkit::skipped(error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn connect(listener: &TcpListener) -> TcpStream {
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    thread::spawn(move || while other.read(&mut [0; 1000]).is_ok_and(|got| got > 0) {});
    stream
}

/// The connection's group and weight, as the kernel has them.
fn shares(stream: &TcpStream) -> Option<(String, f64)> {
    let local = stream.local_addr().unwrap();
    let flow = flows("group").unwrap().into_iter().find(|flow| flow.local == local)?;
    Some((flow.group?.to_string(), flow.weight?.get()))
}

/// Has it hear acknowledgements until it shares so.
#[track_caller]
fn comes_to(stream: &mut TcpStream, group: &str, weight: f64) {
    let began = Instant::now();
    while shares(stream) != Some((group.to_owned(), weight)) {
        assert!(began.elapsed() < Duration::from_secs(10), "{group}, {weight}: {:?}", shares(stream));
        stream.write_all(&[7; 100]).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn soon(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}: {:?}", groups());
        thread::sleep(Duration::from_millis(20));
    }
}

fn name(text: &str) -> GroupName {
    text.parse().unwrap()
}

fn weight(number: f64) -> Weight {
    Weight::new(number).unwrap()
}

#[test]
fn a_program_gives_its_connections_weights_in_place_of_the_rules() {
    if !is_alone("a_program_gives_its_connections_weights_in_place_of_the_rules") {
        return;
    }
    assert!(matches!(Given::open(), Err(Error::NotLoaded(_) | Error::NotRoot)));
    if !is_loaded() {
        return;
    }
    let rules: Rules = "[[rule]]\nremote = \"127.0.0.0/8\"\nweight = 7\ngroup = \"ruled\"\n".parse().unwrap();
    set_rules(&rules).unwrap();
    let given = Given::open().unwrap();
    assert!(given.is_current());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut ruled, mut own, mut late) = (connect(&listener), connect(&listener), connect(&listener));
    for stream in [&ruled, &late] {
        socket2::SockRef::from(stream).set_tcp_congestion(b"group").unwrap();
    }
    let campus = given.group(name("campus")).unwrap();
    assert_eq!(given.group(name("campus")).unwrap(), campus);
    given.join(own.as_fd(), campus, weight(4.0)).unwrap();
    // It has the control already.
    given.join(late.as_fd(), campus, weight(2.0)).unwrap();
    comes_to(&mut ruled, "ruled", 7.0);
    comes_to(&mut own, "campus", 4.0);
    comes_to(&mut late, "campus", 2.0);
    given.weigh(own.as_fd(), campus, weight(0.5)).unwrap();
    comes_to(&mut own, "campus", 0.5);

    // Other rules are not for it, and its group stays as long as it is there.
    set_rules(&Rules::default()).unwrap();
    comes_to(&mut ruled, "default", 1.0);
    comes_to(&mut own, "campus", 0.5);
    let told: Vec<_> = groups().unwrap().iter().map(|group| group.name.to_string()).collect();
    assert_eq!(told, ["default", "campus"]);

    // Whatever is given, nobody has a weight that no file can give.
    let map = MapHandle::from_pinned_path(Path::new(DIRECTORY).join("group/given")).unwrap();
    for (garbage, weight) in [([0u8; 8], 66.0 / 65_536.0), ([0xff; 8], 1000.0)] {
        map.update(&own.as_raw_fd().to_ne_bytes(), &garbage, MapFlags::ANY).unwrap();
        comes_to(&mut own, "default", weight);
    }

    drop((own, late));
    soon("the group of nobody goes", || {
        set_rules(&Rules::default()).unwrap();
        groups().unwrap().len() == 1
    });
    let many: Vec<_> = (1..16).map(|number| (connect(&listener), name(&format!("pool-{number}")))).collect();
    for (stream, pool) in &many {
        given.join(stream.as_fd(), given.group(*pool).unwrap(), Weight::ONE).unwrap();
    }
    assert!(matches!(given.group(name("one-more")), Err(Error::NoRoom)));
    assert!(matches!(set_rules(&rules), Err(Error::NoRoom)));
    drop(many);
    soon("there is room", || given.group(name("one-more")).is_ok());
    unload("group").unwrap();
    assert!(!given.is_current());
    assert!(matches!(Given::open(), Err(Error::NotLoaded(_))));
}
