//! The worker on a medium that a test holds up.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Writes as often as a test permits.
#[derive(Debug)]
struct Slow {
    file: File,
    permits: Mutex<Receiver<()>>,
}

impl Medium for Slow {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.permits.lock().unwrap().recv().map_err(io::Error::other)?;
        self.file.write(bytes, offset)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read(bytes, offset)
    }
}

fn slow() -> (Disk, Sender<()>) {
    let (permit, permits) = channel();
    let medium = Slow { file: tempfile::tempfile().unwrap(), permits: Mutex::new(permits) };
    (Disk::start(Arc::new(medium)).unwrap(), permit)
}

fn write(disk: &Disk, have: &mut RangeSet, offset: u64, text: &'static str) {
    let range = offset..offset + text.len() as u64;
    let (there, new) = (have.iter_within(range.clone()).collect(), have.gaps(range.clone()).collect());
    disk.write(offset, Bytes::from_static(text.as_bytes()), there, new);
    have.insert(range);
}

fn found(disk: &Disk, position: u64, most: usize) -> String {
    match disk.find(position, most) {
        Place::Memory(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Place::Disk(count) => format!("{count} written"),
    }
}

#[tokio::test]
async fn what_waits_can_be_read_and_is_not_said_to_be_written() {
    let (disk, permit) = slow();
    let mut have = RangeSet::new();
    write(&disk, &mut have, 0, "abcd");
    write(&disk, &mut have, 4, "efgh");
    assert_eq!((found(&disk, 1, 9), found(&disk, 6, 1)), ("bcd".into(), "g".into()));
    assert!(disk.backlog.written(&have).is_empty());
    assert_eq!(disk.backlog.lock().bytes, 8 + 2 * PIECE_OVERHEAD);
    permit.send(()).unwrap();
    disk.backlog.below(4 + 2 * PIECE_OVERHEAD).await.unwrap();
    // Up to what waits.
    assert_eq!((found(&disk, 1, 9), found(&disk, 4, 9)), ("3 written".into(), "efgh".into()));
    permit.send(()).unwrap();
    disk.backlog.flushed().await.unwrap();
    assert_eq!((disk.backlog.written(&have).total(), disk.backlog.lock().bytes), (8, 0));
}

#[tokio::test]
async fn what_came_before_and_waits_is_compared_as_well() {
    let (disk, permit) = slow();
    let mut have = RangeSet::new();
    write(&disk, &mut have, 0, "abcd");
    write(&disk, &mut have, 2, "cdef");
    write(&disk, &mut have, 3, "dEf");
    for _ in 0..3 {
        let _ = permit.send(());
    }
    let error = disk.backlog.flushed().await.unwrap_err();
    assert!(error.message.contains("the byte at 4 "), "{error}");
}

#[tokio::test]
async fn what_cannot_be_written_is_told_and_stays_unwritten() {
    let (disk, permit) = slow();
    let mut have = RangeSet::new();
    write(&disk, &mut have, 0, "abcd");
    write(&disk, &mut have, 4, "efgh");
    drop(permit);
    let error = disk.backlog.flushed().await.unwrap_err();
    assert!(error.message.starts_with("cannot write: ") && error.cure == Cure::Again, "{error}");
    assert!(disk.backlog.written(&have).is_empty());
    assert_eq!(found(&disk, 4, 9), "efgh");
}
