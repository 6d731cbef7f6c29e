//! The functions of libsrt that are used here, found when the first is needed. What is unsafe about SRT is all in
//! this module.
//!
//! - The library is never closed, so that its functions are there for as long as the program.
//! - A socket is a number that the library looks up: one that is closed, or never was, is an error and no more.
//! - Every pointer that is handed over is one to a buffer of the caller, with its length, that the library reads or
//!   writes before it returns and does not keep. The pointer that a hook is given back is a number, never followed.
//! - Whoever is in the library holds the gate's lock for reading, and [`end`] takes it for writing: nobody is in
//!   there when the library ends, nor comes in later.
#![allow(unsafe_code, reason = "a foreign library is called")]

mod calls;

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use libc::{sockaddr, socklen_t};
use socket2::{SockAddr, SockAddrStorage};

use self::calls::{Calls, Ready};
use super::error::Error;

/// `SRT_ERROR` and `SRT_INVALID_SOCK`.
const ERROR: c_int = -1;
/// A call would have to wait (`SRT_EASYNCSND`, `SRT_EASYNCRCV`, `SRT_ETIMEOUT`).
const WOULD_WAIT: [c_int; 3] = [6001, 6002, 6003];

/// `SRT_SOCKOPT`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(super) enum Setting {
    SendWaits = 1,
    ReceiveWaits = 2,
    Unacknowledged = 19,
    Latency = 23,
    Passphrase = 26,
    KeyLength = 27,
    PeerLatency = 44,
    StreamId = 46,
    OnlyIpv6 = 54,
}

/// What a socket is waited for (`SRT_EPOLL_OPT`).
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// Something has come: a packet, a caller, or the end.
    Readable = 0x1 | 0x8,
    /// It is connected, or will not be.
    Connected = 0x4 | 0x8,
}

/// What a call did not do.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// It would have to wait.
    Waits,
    /// In the library's words.
    Other(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Waits => "it would have to wait",
            Self::Other(why) => why,
        })
    }
}

/// Is asked about a caller (`srt_listen_callback_fn`): the number that was given, the caller's address and stream
/// id. An error turns it away for that reason (`SRT_REJX_...`). It must call nothing of the library.
pub(super) type Hook = fn(usize, SocketAddr, &str) -> Result<(), c_int>;

/// libsrt.
pub(super) struct Library {
    calls: Calls,
    /// Whether it has ended.
    gate: RwLock<bool>,
    /// The sockets that listen.
    listeners: Mutex<BTreeSet<c_int>>,
}

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
static HOOK: OnceLock<Hook> = OnceLock::new();

/// The library, which is opened now if it was not.
///
/// # Errors
/// It is not there, or another one than is needed.
pub(super) fn library() -> Result<&'static Library, Error> {
    LIBRARY
        .get_or_init(|| {
            Calls::open().map(|calls| Library {
                calls,
                gate: RwLock::new(false),
                listeners: Mutex::default(),
            })
        })
        .as_ref()
        .map_err(|why| Error::NoLibrary(why.clone()))
}

/// Closes all that is open, if the library was used. Calls fail from then on.
pub(super) fn end() {
    let Some(Ok(library)) = LIBRARY.get() else { return };
    let mut has_ended = library.gate.write().unwrap_or_else(PoisonError::into_inner);
    if !std::mem::replace(&mut *has_ended, true) {
        // Listeners first: version 1.5.1 waits for ever when somebody calls one that it closes while it ends
        // (its collector has the lock of all sockets and wants that of the listener, its receiver the other way).
        for listener in library.listeners().iter() {
            // SAFETY: a number is looked up.
            unsafe { (library.calls.close)(*listener) };
        }
        // SAFETY: no other thread of ours is in the library: the lock is held. It joins its own.
        unsafe { (library.calls.cleanup)() };
    }
}

/// Ends the program without the destructors of its libraries. Nothing is flushed: whoever writes may wait for ever.
pub(super) fn leave(code: u8) -> ! {
    // SAFETY: it takes a number, and does not return.
    unsafe { libc::_exit(code.into()) }
}

impl Library {
    /// A call, if the library has not ended. Its error is one of this thread, and so is asked for at once.
    fn call(&self, call: impl FnOnce(&Calls) -> c_int) -> Result<c_int, Fault> {
        let has_ended = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        if *has_ended {
            return Err(Fault::Other("SRT has ended".into()));
        }
        let answer = call(&self.calls);
        if answer != ERROR {
            return Ok(answer);
        }
        // SAFETY: the pointer for the system's error may be null; the text is one of this thread, whole until its
        // next call, and copied before.
        let (code, text) = unsafe {
            let code = (self.calls.getlasterror)(std::ptr::null_mut());
            (code, text((self.calls.getlasterror_str)()))
        };
        Err(if WOULD_WAIT.contains(&code) { Fault::Waits } else { Fault::Other(text) })
    }

    pub(super) fn create(&self) -> Result<c_int, Fault> {
        // SAFETY: it takes nothing.
        self.call(|calls| unsafe { (calls.create_socket)() })
    }

    fn listeners(&self) -> MutexGuard<'_, BTreeSet<c_int>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self, socket: c_int) {
        self.listeners().remove(&socket);
        // One that is gone is closed. SAFETY: a number is looked up.
        let _ = self.call(|calls| unsafe { (calls.close)(socket) });
    }

    pub(super) fn bind(&self, socket: c_int, address: SocketAddr) -> Result<(), Fault> {
        let address = SockAddr::from(address);
        let length = length(address.len());
        // SAFETY: `address` is read for its length, during the call.
        self.call(|calls| unsafe { (calls.bind)(socket, address.as_ptr().cast(), length) }).map(drop)
    }

    pub(super) fn listen(&self, socket: c_int, waiting: c_int) -> Result<(), Fault> {
        self.listeners().insert(socket);
        // SAFETY: numbers.
        self.call(|calls| unsafe { (calls.listen)(socket, waiting) }).map(drop)
    }

    /// Asks the hook about every caller from now on, with this number. All sockets have one hook.
    pub(super) fn ask(&self, socket: c_int, hook: Hook, number: usize) -> Result<(), Fault> {
        HOOK.get_or_init(|| hook);
        let number = std::ptr::without_provenance_mut(number);
        // SAFETY: `asked` is there as long as the program; the number that comes with it is never followed.
        self.call(|calls| unsafe { (calls.listen_callback)(socket, asked, number) }).map(drop)
    }

    pub(super) fn accept(&self, socket: c_int) -> Result<(c_int, SocketAddr), Fault> {
        let mut accepted = ERROR;
        let address = self.address(|calls, address, length| {
            // SAFETY: `address` has room for `length` bytes, which the library writes during the call.
            accepted = unsafe { (calls.accept)(socket, address, length) };
            accepted
        });
        address.map(|address| (accepted, address))
    }

    pub(super) fn name(&self, socket: c_int) -> Result<SocketAddr, Fault> {
        self.address(|calls, address, length| {
            // SAFETY: `address` has room for `length` bytes, which the library writes during the call.
            unsafe { (calls.getsockname)(socket, address, length) }
        })
    }

    fn address(
        &self,
        fill: impl FnOnce(&Calls, *mut sockaddr, *mut c_int) -> c_int,
    ) -> Result<SocketAddr, Fault> {
        let mut storage = SockAddrStorage::zeroed();
        let mut length = length(storage.size_of());
        self.call(|calls| fill(calls, (&raw mut storage).cast(), &raw mut length))?;
        let length = socklen_t::try_from(length).unwrap_or(0).min(storage.size_of());
        // SAFETY: the library has written an address of that many bytes, which the storage has.
        let address = unsafe { SockAddr::new(storage, length) };
        address.as_socket().ok_or_else(|| Fault::Other("a peer without an address of IP".into()))
    }

    pub(super) fn connect(&self, socket: c_int, address: SocketAddr) -> Result<(), Fault> {
        let address = SockAddr::from(address);
        let length = length(address.len());
        // SAFETY: `address` is read for its length, during the call.
        self.call(|calls| unsafe { (calls.connect)(socket, address.as_ptr().cast(), length) }).map(drop)
    }

    pub(super) fn set_number(&self, socket: c_int, setting: Setting, value: c_int) -> Result<(), Fault> {
        self.set(socket, setting, &value.to_ne_bytes())
    }

    /// A number, or a text without its end.
    pub(super) fn set(&self, socket: c_int, setting: Setting, value: &[u8]) -> Result<(), Fault> {
        let length = length(value.len());
        // SAFETY: `value` is read for its length, during the call.
        self.call(|calls| unsafe {
            (calls.setsockflag)(socket, setting as c_int, value.as_ptr().cast(), length)
        })
        .map(drop)
    }

    pub(super) fn number(&self, socket: c_int, setting: Setting) -> Result<c_int, Fault> {
        let (mut value, mut length): (c_int, c_int) = (0, size_of::<c_int>() as c_int);
        let (to, room) = (&raw mut value, &raw mut length);
        // SAFETY: `value` has room for `length` bytes, and both are written during the call.
        self.call(|calls| unsafe { (calls.getsockflag)(socket, setting as c_int, to.cast(), room) })?;
        Ok(value)
    }

    pub(super) fn send(&self, socket: c_int, message: &[u8]) -> Result<(), Fault> {
        let (from, length) = (message.as_ptr().cast(), length(message.len()));
        // SAFETY: `message` is copied during the call; there need not be a control block.
        self.call(|calls| unsafe { (calls.sendmsg2)(socket, from, length, std::ptr::null_mut()) }).map(drop)
    }

    /// How many bytes of the buffer are a message.
    pub(super) fn receive(&self, socket: c_int, buffer: &mut [u8]) -> Result<usize, Fault> {
        let (to, room) = (buffer.as_mut_ptr().cast(), length(buffer.len()));
        // SAFETY: `buffer` has room for that many bytes, and is written during the call; there need not be a
        // control block.
        let received =
            self.call(|calls| unsafe { (calls.recvmsg2)(socket, to, room, std::ptr::null_mut()) })?;
        Ok(usize::try_from(received).unwrap_or(0).min(buffer.len()))
    }

    /// `SRT_SOCKSTATUS`.
    pub(super) fn state(&self, socket: c_int) -> c_int {
        // SAFETY: a number is looked up.
        self.call(|calls| unsafe { (calls.getsockstate)(socket) }).unwrap_or(ERROR)
    }

    /// Why a connection was not made: the reason's number, and what the library calls it.
    pub(super) fn rejection(&self, socket: c_int) -> Result<(c_int, String), Fault> {
        // SAFETY: a number is looked up.
        let reason = self.call(|calls| unsafe { (calls.getrejectreason)(socket) })?;
        let mut told = String::new();
        self.call(|calls| {
            // SAFETY: the texts are constants of the library.
            told = unsafe { text((calls.rejectreason_str)(reason)) };
            0
        })?;
        Ok((reason, told))
    }

    /// Waits for one socket: the number of what it waits with, to be released.
    pub(super) fn wait_for(&self, socket: c_int, until: Until) -> Result<c_int, Fault> {
        // SAFETY: it takes nothing.
        let poll = self.call(|calls| unsafe { (calls.epoll_create)() })?;
        let events = until as c_int;
        // SAFETY: `events` is read during the call.
        let added = self.call(|calls| unsafe { (calls.epoll_add_usock)(poll, socket, &raw const events) });
        if let Err(fault) = added {
            self.release(poll);
            return Err(fault);
        }
        Ok(poll)
    }

    /// Whether it has come in that time.
    pub(super) fn wait(&self, poll: c_int, patience: Duration) -> Result<bool, Fault> {
        let mut ready = Ready::default();
        let patience = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        // SAFETY: `ready` has room for the one event, and is written during the call.
        match self.call(|calls| unsafe { (calls.epoll_uwait)(poll, &raw mut ready, 1, patience) }) {
            Ok(count) => Ok(count > 0),
            Err(Fault::Waits) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn release(&self, poll: c_int) {
        // One that is gone is released. SAFETY: a number is looked up.
        let _ = self.call(|calls| unsafe { (calls.epoll_release)(poll) });
    }
}

/// What the library's threads call. They are in the library, so that the gate is not theirs to take.
unsafe extern "C" fn asked(
    number: *mut c_void,
    socket: c_int,
    _version: c_int,
    peer: *const sockaddr,
    stream_id: *const c_char,
) -> c_int {
    let (Some(hook), Some(Ok(library))) = (HOOK.get(), LIBRARY.get()) else { return ERROR };
    // SAFETY: the library hands over an address of its family, and a text, both there during this call.
    let (Some(peer), stream_id) = (unsafe { (address(peer), text(stream_id)) }) else { return ERROR };
    match hook(number.addr(), peer, &stream_id) {
        Ok(()) => 0,
        Err(reason) => {
            // SAFETY: a number is looked up; the socket is the library's while it asks.
            unsafe { (library.calls.setrejectreason)(socket, reason) };
            ERROR
        }
    }
}

/// A copy of an address of IP.
///
/// # Safety
/// It must be null, or one that is as long as its family says.
unsafe fn address(from: *const sockaddr) -> Option<SocketAddr> {
    if from.is_null() {
        return None;
    }
    // SAFETY: every address begins with its family.
    let length = match c_int::from(unsafe { (*from).sa_family }) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: that many bytes are there, as the caller says, and the storage has room for any address; the two
    // do not overlap. The copy is an address of that length.
    let address = unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut storage).cast::<u8>(), length);
        SockAddr::new(storage, socklen_t::try_from(length).ok()?)
    };
    address.as_socket()
}

fn length<N: TryInto<c_int>>(length: N) -> c_int {
    // No buffer of ours is that long.
    length.try_into().unwrap_or(c_int::MAX)
}

/// A copy of a text of the library's.
///
/// # Safety
/// The text must be one that ends with a zero, or null.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
