//! Controls in the running kernel. One test, because the kernel has only one set of names; it needs root.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use congestion::tfwc::Tuning;
use kernel::{Error, NAMES, Rules, Setting, Weight, change, flows, list, load, rules, set_rules, unload};
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

/// How many programs, maps and links the kernel has.
fn objects() -> (usize, usize, usize) {
    (ProgInfoIter::default().count(), MapInfoIter::default().count(), LinkInfoIter::default().count())
}

fn tuned(tp: f64) -> Setting {
    Setting::Ttfwc(Tuning::new(tp).unwrap())
}

/// Whether this machine can load controls; says why not.
fn can_load() -> bool {
    match load(Setting::Tfwc) {
        Ok(()) => {
            unload("tfwc").unwrap();
            let loaded = list().unwrap();
            loaded.iter().for_each(|other| {
                println!("SKIPPED: somebody uses {} on this machine", other.setting.name());
            });
            loaded.is_empty()
        }
        Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_) | Error::NoBpfFs { .. })) => {
            println!("SKIPPED: {error}");
            false
        }
        Err(Error::Loaded(name)) => {
            println!("SKIPPED: somebody uses {name} on this machine");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The congestion window of the connection from this address, as the kernel itself tells it.
fn cwnd(local: SocketAddr) -> u64 {
    let filter = format!("sport = :{}", local.port());
    let output = Command::new("ss").args(["--no-header", "--tcp", "--info", &filter]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = text.split_whitespace().find_map(|word| word.strip_prefix("cwnd:"));
    told.unwrap_or_else(|| panic!("no cwnd in {text:?}")).parse().unwrap()
}

/// Carries `bytes` over loopback, from a sender that has this control, and shows its connection: sender, receiver.
fn carry(control: &str, bytes: usize, seen: impl FnOnce(SocketAddr, SocketAddr)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let control = control.to_owned();
    let sender = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        socket2::SockRef::from(&stream).set_tcp_congestion(control.as_bytes()).unwrap();
        stream.write_all(&vec![7; bytes]).unwrap();
        // Open until the other end has seen enough.
        let _ = stream.read(&mut [0]);
    });
    let mut stream = TcpStream::connect(address).unwrap();
    let mut got = vec![0; bytes];
    stream.read_exact(&mut got).unwrap();
    assert!(got.iter().all(|byte| *byte == 7));
    seen(address, stream.local_addr().unwrap());
    drop(stream);
    sender.join().unwrap();
}

/// Unloads what a test that failed has left, for the next one.
struct Unloading;

impl Drop for Unloading {
    fn drop(&mut self) {
        for name in NAMES {
            let _ = unload(name);
        }
    }
}

#[test]
fn controls_come_and_go() {
    let before = objects();
    if !can_load() {
        return;
    }
    let _unloading = Unloading;
    // What is not there.
    assert!(matches!(unload("ttfwc"), Err(Error::NotLoaded("ttfwc"))));
    assert!(matches!(change(tuned(0.1)), Err(Error::NotLoaded("ttfwc"))));
    assert!(matches!(flows("multcp"), Err(Error::NotLoaded("multcp"))));
    assert_eq!(list().unwrap(), []);

    for setting in [Setting::Tfwc, tuned(0.9), Setting::MulTcp(4.0), Setting::Group] {
        load(setting).unwrap();
        assert!(matches!(load(setting), Err(Error::Loaded(_))));
    }
    assert_eq!(list().unwrap().iter().map(|loaded| loaded.setting.name()).collect::<Vec<_>>(), NAMES);
    change(tuned(0.25)).unwrap();
    assert!(list().unwrap().iter().any(|loaded| loaded.setting == tuned(0.25) && loaded.flows == 0));

    // Weights come from the last rules that were set.
    assert_eq!(rules().unwrap(), Rules::default());
    for weight in [2.0, 3.0] {
        let set: Rules = format!("[[rule]]\nremote = \"127.0.0.0/8\"\nweight = {weight}").parse().unwrap();
        set_rules(&set).unwrap();
        assert_eq!(rules().unwrap(), set);
    }

    // Each of them carries, and tells of its flow.
    for name in NAMES {
        carry(name, 20_000_000, |local, remote| {
            // The last acknowledgement may still be under way, and the window moves with it.
            let agrees = (0..100).any(|_| {
                thread::sleep(Duration::from_millis(20));
                flows(name).unwrap()[0].cwnd.get() == cwnd(local)
            });
            let told = flows(name).unwrap();
            assert!(agrees, "{name}: {told:?}, and the kernel has {}", cwnd(local));
            assert_eq!(told.len(), 1, "{name}: {told:?}");
            assert_eq!((told[0].local, told[0].remote), (local, remote), "{name}");
            assert_eq!(told[0].weight, (name == "group").then(|| Weight::new(3.0).unwrap()));
        });
        unload(name).unwrap();
    }
    assert_eq!(list().unwrap(), []);

    // The group's rules too are nobody's afterwards.
    assert!(matches!(set_rules(&Rules::default()), Err(Error::NotLoaded("group"))));

    // A thousand times leaves nothing. The kernel frees what is gone a moment later.
    for _ in 0..1000 {
        load(tuned(0.4)).unwrap();
        unload("ttfwc").unwrap();
    }
    let is_back = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(100));
        objects() == before
    });
    assert!(is_back, "programs, maps and links: {before:?} before, {:?} after", objects());
}
