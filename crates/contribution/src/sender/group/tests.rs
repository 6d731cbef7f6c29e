use std::time::Duration;

use anabranch_units::Rate;
use tokio::time::timeout;

use super::*;

fn settings(directory: &Path) -> GroupSettings {
    GroupSettings {
        name: "cameras".parse().unwrap(),
        weight: Weight::ONE,
        directory: Some(directory.join("run")),
    }
}

fn link() -> Uplink {
    Uplink::new("127.0.0.1:9".parse().unwrap(), None)
}

fn standing(kbps: u64) -> Standing {
    Standing {
        weight: Weight::new(2.5).unwrap(),
        allowed: Rate::from_kbps(kbps),
        wanted: Rate::from_kbps(9 * kbps),
    }
}

async fn heard(group: &Group) -> (u64, Vec<(UplinkId, Option<Standing>)>) {
    timeout(Duration::from_secs(10), group.hear()).await.unwrap()
}

#[tokio::test]
async fn members_hear_each_other_and_who_goes() {
    let place = tempfile::tempdir().unwrap();
    let join = || Group::join(&settings(place.path()), &[link()]).unwrap();
    let (mut first, second) = (join(), join());
    first.tell(&[(UplinkId(0), standing(700))]);
    assert_eq!(heard(&second).await, (first.member, vec![(UplinkId(0), Some(standing(700)))]));
    let gone = first.member;
    drop(first);
    assert_eq!(heard(&second).await, (gone, vec![(UplinkId(0), None)]));
    let left: Vec<u64> = members(&second.directory).unwrap().into_iter().collect();
    assert_eq!(left, [second.member]);
}

#[tokio::test]
async fn what_a_killed_member_left_is_removed_and_garbage_is_no_message() {
    let place = tempfile::tempdir().unwrap();
    let join = || Group::join(&settings(place.path()), &[link()]).unwrap();
    let (mut first, second) = (join(), join());
    let stale = first.directory.join(file_name(7));
    drop(Socket::bind(&stale).unwrap());
    // What is no member's socket stays.
    let foreign = first.directory.join("notes.txt");
    std::fs::write(&foreign, "").unwrap();
    let stranger = Socket::unbound().unwrap();
    let to = second.directory.join(file_name(second.member));
    for garbage in [&b""[..], b"ANABGRP1", &[0xff; 2000]] {
        stranger.send_to(garbage, &to).unwrap();
    }
    first.tell(&[(UplinkId(0), standing(1))]);
    assert_eq!(heard(&second).await.0, first.member);
    assert!(!stale.exists() && foreign.exists());
}

#[tokio::test]
async fn a_member_that_reads_nothing_keeps_nobody_from_hearing() {
    let place = tempfile::tempdir().unwrap();
    let join = || Group::join(&settings(place.path()), &[link()]).unwrap();
    let (mut first, second) = (join(), join());
    // One on either side of it.
    let hangs = [0, u64::MAX].map(|member| Socket::bind(first.directory.join(file_name(member))).unwrap());
    for kbps in 1..2000 {
        first.tell(&[(UplinkId(0), standing(kbps))]);
        assert_eq!(heard(&second).await.1, [(UplinkId(0), Some(standing(kbps)))]);
    }
    drop(hangs);
}

#[tokio::test]
async fn a_directory_that_was_cleared_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let join = || Group::join(&settings(place.path()), &[link()]).unwrap();
    let (mut first, mut second) = (join(), join());
    std::fs::remove_dir_all(place.path().join("run")).unwrap();
    let told = [(UplinkId(0), standing(5))];
    first.tell(&told);
    second.tell(&told);
    first.tell(&told);
    assert_eq!(heard(&second).await.0, first.member);
}

#[tokio::test]
async fn uplinks_are_told_apart_by_their_names() {
    let place = tempfile::tempdir().unwrap();
    let named = |name: &str| Uplink::new("127.0.0.1:9".parse().unwrap(), Some(name.parse().unwrap()));
    let mut first = Group::join(&settings(place.path()), &[named("lo"), named("127.0.0.1")]).unwrap();
    let second = Group::join(&settings(place.path()), &[named("127.0.0.1"), link()]).unwrap();
    first.tell(&[(UplinkId(0), standing(1)), (UplinkId(1), standing(2))]);
    let expected = vec![(UplinkId(0), Some(standing(2))), (UplinkId(1), None)];
    assert_eq!(heard(&second).await.1, expected);
}
