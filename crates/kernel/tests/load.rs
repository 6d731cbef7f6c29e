//! Controls in the running kernel; it needs root.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod machine;
mod traffic;

use std::thread;
use std::time::Duration;

use anabranch_congestion::tfwc::Tuning;
use anabranch_kernel::{
    Error, NAMES, Rules, Setting, Weight, change, flows, list, load, rules, set_rules, unload,
};
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use machine::is_alone;
use traffic::{carry, cwnd};

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
            true
        }
        Err(error @ (Error::NotRoot | Error::NoBtf | Error::TooOld(_) | Error::NoBpfFs { .. })) => {
            anabranch_testkit::skipped(error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn controls_come_and_go() {
    if !is_alone("controls_come_and_go") {
        return;
    }
    let before = objects();
    if !can_load() {
        return;
    }
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
        // Of an earlier test something may have been on its way out.
        let now = objects();
        now.0 <= before.0 && now.1 <= before.1 && now.2 <= before.2
    });
    assert!(is_back, "programs, maps and links: {before:?} before, {:?} after", objects());
}
