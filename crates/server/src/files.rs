//! From the path of a request to a file below the root.

use std::fmt::Write;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use super::conditional::Validators;
use super::source::Source;

/// What stays as it is in the path of a link.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// Four numbers of 16 digits at the most, and five signs between them.
const LONGEST_TAG: usize = 4 * 16 + 5;
/// A listing shows no more than this.
const MOST_LISTED: usize = 10_000;

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// A file to send.
    File(Opened),
    /// A directory without `index.html`: its listing.
    Listing(String),
    /// A directory named without its slash: where it is.
    Redirect(String),
    /// Nothing that this server shows.
    Nothing,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) source: Source,
    /// Where it really is.
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) validators: Validators,
}

impl Opened {
    fn new(file: File, path: PathBuf, metadata: &Metadata) -> Self {
        let source = Source::new(file, metadata);
        Self { source, path, size: metadata.len(), validators: validators(metadata) }
    }
}

/// The file that [`find`] finds, where that takes no wait for a disk: the system knows the names by heart,
/// and none is a link. `None` says nothing.
pub(super) fn find_cached(root: &Path, path: &str) -> Option<Opened> {
    let relative = safe(path).filter(|_| !path.ends_with('/'))?;
    // In one piece: this is done for each request, and growing costs more than all else here.
    let mut path = PathBuf::with_capacity(root.as_os_str().len() + 1 + relative.len());
    path.push(root);
    path.push(relative);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS;
    let file = File::from(openat2(CWD, &path, flags, Mode::empty(), resolve).ok()?);
    let metadata = file.metadata().ok().filter(Metadata::is_file)?;
    Some(Opened::new(file, path, &metadata))
}

/// Looks `path` (still percent-encoded) up below `root`, which is canonical. Blocks on the disk.
pub(super) fn find(root: &Path, path: &str) -> io::Result<Found> {
    let Some(relative) = safe(path) else { return Ok(Found::Nothing) };
    let found = match inside(root, &root.join(&relative)) {
        Ok(found) => found,
        Err(error) => return absent(error),
    };
    let Some(found) = found else { return Ok(Found::Nothing) };
    let metadata = found.metadata()?;
    if metadata.is_dir() {
        if !path.ends_with('/') {
            let path = utf8_percent_encode(&relative, PATH);
            return Ok(Found::Redirect(format!("/{path}/")));
        }
        return match inside(root, &found.join("index.html")) {
            Ok(Some(index)) if index.is_file() => open(index),
            _ => Ok(Found::Listing(listing(root, &found, &relative)?)),
        };
    }
    // A slash behind a file's name is another resource. Devices and pipes are not for sending.
    if !metadata.is_file() || path.ends_with('/') {
        return Ok(Found::Nothing);
    }
    open(found).or_else(absent)
}

/// The path relative to the root, without `.`, `..`, hidden names, NUL and anything that is not UTF-8.
fn safe(path: &str) -> Option<String> {
    let path = percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok()?;
    let hidden = path.split('/').any(|name| name.starts_with('.'));
    if hidden || path.contains('\0') {
        return None;
    }
    let mut relative = String::with_capacity(path.len());
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if !relative.is_empty() {
            relative.push('/');
        }
        relative.push_str(name);
    }
    Some(relative)
}

/// The real place of `path`, when that is below the root and not hidden there.
fn inside(root: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let real = path.canonicalize()?;
    let shown = real.strip_prefix(root).is_ok_and(|relative| {
        relative.components().all(|name| !name.as_os_str().as_encoded_bytes().starts_with(b"."))
    });
    Ok(shown.then_some(real))
}

/// Errors that mean "not here" (and tell nothing else); others are the server's fault.
fn absent(error: io::Error) -> io::Result<Found> {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound, PermissionDenied};
    match error.kind() {
        NotFound | NotADirectory | PermissionDenied | InvalidFilename | InvalidInput => Ok(Found::Nothing),
        _ if error.raw_os_error() == Some(libc::ELOOP) => Ok(Found::Nothing),
        _ => Err(error),
    }
}

/// Opens a file that is a file: a pipe, which may have taken its place, would be waited for.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::InvalidInput`] when it is something else.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

/// The path that a request's path (still percent-encoded) is looked up by, however it is written.
pub(super) fn plain(path: &str) -> String {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut plain: String =
        decoded.split('/').filter(|name| !name.is_empty()).flat_map(|name| ["/", name]).collect();
    if decoded.ends_with('/') {
        plain.push('/');
    }
    plain
}

fn open(path: PathBuf) -> io::Result<Found> {
    let file = open_regular(&path)?;
    let metadata = file.metadata()?;
    Ok(Found::File(Opened::new(file, path, &metadata)))
}

fn validators(metadata: &Metadata) -> Validators {
    let mut etag = String::with_capacity(LONGEST_TAG);
    let (size, inode) = (metadata.len(), metadata.ino());
    let _ = write!(etag, "\"{size:x}-{:x}.{:x}-{inode:x}\"", metadata.mtime(), metadata.mtime_nsec());
    // HTTP's dates go from 1970 to 9999, and none may lie in the future (RFC 9110 section 8.8.2.1).
    let modified = u64::try_from(metadata.mtime())
        .ok()
        .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(1 << 40)))
        .filter(|modified| *modified <= SystemTime::now())
        .map(Into::into);
    Validators { etag, modified }
}

/// A page with the names in a directory.
fn listing(root: &Path, directory: &Path, relative: &str) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in directory.read_dir()?.take(MOST_LISTED) {
        let Ok(mut name) = entry?.file_name().into_string() else { continue };
        if name.starts_with('.') {
            continue;
        }
        match inside(root, &directory.join(&name)) {
            Ok(Some(real)) if real.is_dir() => name.push('/'),
            Ok(Some(real)) if real.is_file() => {}
            _ => continue,
        }
        names.push(name);
    }
    names.sort_unstable();
    let title = escape(relative);
    let mut page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>/{title}</title>\n<h1>/{title}</h1>\n<ul>\n"
    );
    if !relative.is_empty() {
        page.push_str("<li><a href=\"../\">../</a></li>\n");
    }
    for name in &names {
        // "./" keeps a name with a colon from being read as a scheme.
        let _ =
            writeln!(page, "<li><a href=\"./{}\">{}</a></li>", utf8_percent_encode(name, PATH), escape(name));
    }
    page.push_str("</ul>\n");
    Ok(page)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The media type by the name's extension.
pub fn media_type(path: &Path) -> String {
    let extension =
        path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
    // Where the common tables say something else than players expect.
    match extension.as_str() {
        "ts" | "m2ts" | "mts" => "video/mp2t".to_owned(),
        "m3u8" => "application/vnd.apple.mpegurl".to_owned(),
        "mpd" => "application/dash+xml".to_owned(),
        "m4s" => "video/iso.segment".to_owned(),
        "mkv" => "video/x-matroska".to_owned(),
        _ => {
            let guess = mime_guess::from_ext(&extension).first_raw().unwrap_or("application/octet-stream");
            if guess.starts_with("text/") { format!("{guess}; charset=utf-8") } else { guess.to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_looked_up() {
        for (path, relative) in [
            ("/", Some("")),
            ("/a/b.mp4", Some("a/b.mp4")),
            ("//a///b/", Some("a/b")),
            ("/a%20b%2Fc", Some("a b/c")),
            ("/%C3%A9", Some("é")),
            ("/%ff", None),
            ("/%00", None),
            ("/..", None),
            ("/a/../b", None),
            ("/%2e%2e/b", None),
            ("/..%2fb", None),
            ("/.git/config", None),
            ("/a/.b", None),
            ("a", None),
            ("*", None),
        ] {
            assert_eq!(safe(path).as_deref(), relative, "{path}");
        }
    }

    #[test]
    fn media_types_are_those_of_players() {
        for (name, expected) in [
            ("a.mp4", "video/mp4"),
            ("a.TS", "video/mp2t"),
            ("a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.mpd", "application/dash+xml"),
            ("a.mkv", "video/x-matroska"),
            ("a.webm", "video/webm"),
            ("a.html", "text/html; charset=utf-8"),
            ("a", "application/octet-stream"),
        ] {
            assert_eq!(media_type(Path::new(name)), expected);
        }
    }
}
