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
    fn write(&self, pieces: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.permits.lock().unwrap().recv().map_err(io::Error::other)?;
        self.file.write(pieces, offset)
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

/// Waits until the worker has begun with what it was told.
async fn taken(disk: &Disk) {
    while !disk.backlog.lock().orders.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Keeps how it was written to.
#[derive(Debug)]
struct Recorded {
    file: File,
    writes: Mutex<Vec<(u64, Vec<usize>)>>,
}

impl Medium for Recorded {
    fn write(&self, pieces: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.writes.lock().unwrap().push((offset, pieces.iter().map(|piece| piece.len()).collect()));
        self.file.write(pieces, offset)
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read(bytes, offset)
    }
}

#[test]
fn empty_pieces_are_written_as_well() {
    let file = tempfile::tempfile().unwrap();
    for pieces in [&[""][..], &["", "ab", "", "cd", ""]] {
        let mut pieces: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece.as_bytes())).collect();
        file.write(&mut pieces, 1).unwrap();
    }
    let mut all = [0; 4];
    file.read(&mut all, 1).unwrap();
    assert_eq!(&all, b"abcd");
}

#[test]
fn what_follows_on_is_written_at_once() {
    let recorded = Recorded { file: tempfile::tempfile().unwrap(), writes: Mutex::default() };
    let recorded = Arc::new(recorded);
    let disk = Disk { medium: recorded.clone(), backlog: Arc::default() };
    let mut have = RangeSet::new();
    for (offset, text) in [(4, "efgh"), (8, "ijk"), (0, "abcd"), (3, "defghijklm"), (13, "no"), (20, "u")] {
        write(&disk, &mut have, offset, text);
    }
    let long = Bytes::from(vec![7; 200 << 10]);
    for offset in [30, 30 + length(&long)] {
        let range = offset..offset + length(&long);
        have.insert(range.clone());
        disk.write(offset, long.clone(), Vec::new(), vec![range]);
    }
    disk.backlog.lock().closed = true;
    work(&*recorded, &disk.backlog);
    let writes = recorded.writes.lock().unwrap().clone();
    let expected = [
        (4, vec![4, 3]),
        (0, vec![4]),
        (3, vec![10, 2]),
        (20, vec![1]),
        (30, vec![200 << 10]),
        (30 + (200 << 10), vec![200 << 10]),
    ];
    assert_eq!(writes, expected);
    let mut all = [0; 15];
    recorded.read(&mut all, 0).unwrap();
    assert_eq!((&all, disk.backlog.written(&have) == have), (b"abcdefghijklmno", true));
}

#[tokio::test]
async fn what_waits_can_be_read_and_is_not_said_to_be_written() {
    let (disk, permit) = slow();
    let mut have = RangeSet::new();
    write(&disk, &mut have, 0, "abcd");
    taken(&disk).await;
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
