//! libsrt is opened, and its functions looked for.

use std::error::Error as _;
use std::ffi::{c_char, c_int, c_void};

use libc::sockaddr;

/// Where it is looked for: as upstream and OpenSSL's flavour of Debian are called, and GnuTLS's.
const NAMES: [&str; 2] = ["libsrt.so.1.5", "libsrt-gnutls.so.1.5"];
/// Another file in place of these.
const VARIABLE: &str = "ANABRANCH_SRT_LIBRARY";
/// Major and minor, of `srt_getversion`.
const VERSION: u32 = 0x01_05;
/// What the library says on standard error: nothing below a disaster, as its words are for its own developers.
const CRITICAL: c_int = 2;
/// `srt_listen_callback_fn`.
pub(super) type HookCall =
    unsafe extern "C" fn(*mut c_void, c_int, c_int, *const sockaddr, *const c_char) -> c_int;

/// `SRT_EPOLL_EVENT`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Ready {
    pub(super) socket: c_int,
    pub(super) events: c_int,
}

/// The functions, in the order of `srt.h`.
pub(super) struct Calls {
    pub(super) startup: unsafe extern "C" fn() -> c_int,
    pub(super) cleanup: unsafe extern "C" fn() -> c_int,
    pub(super) create_socket: unsafe extern "C" fn() -> c_int,
    pub(super) bind: unsafe extern "C" fn(c_int, *const sockaddr, c_int) -> c_int,
    pub(super) listen: unsafe extern "C" fn(c_int, c_int) -> c_int,
    pub(super) accept: unsafe extern "C" fn(c_int, *mut sockaddr, *mut c_int) -> c_int,
    pub(super) listen_callback: unsafe extern "C" fn(c_int, HookCall, *mut c_void) -> c_int,
    pub(super) connect: unsafe extern "C" fn(c_int, *const sockaddr, c_int) -> c_int,
    pub(super) close: unsafe extern "C" fn(c_int) -> c_int,
    pub(super) getsockname: unsafe extern "C" fn(c_int, *mut sockaddr, *mut c_int) -> c_int,
    pub(super) getsockflag: unsafe extern "C" fn(c_int, c_int, *mut c_void, *mut c_int) -> c_int,
    pub(super) setsockflag: unsafe extern "C" fn(c_int, c_int, *const c_void, c_int) -> c_int,
    pub(super) sendmsg2: unsafe extern "C" fn(c_int, *const c_char, c_int, *mut c_void) -> c_int,
    pub(super) recvmsg2: unsafe extern "C" fn(c_int, *mut c_char, c_int, *mut c_void) -> c_int,
    pub(super) getlasterror_str: unsafe extern "C" fn() -> *const c_char,
    pub(super) getlasterror: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub(super) getsockstate: unsafe extern "C" fn(c_int) -> c_int,
    pub(super) epoll_create: unsafe extern "C" fn() -> c_int,
    pub(super) epoll_add_usock: unsafe extern "C" fn(c_int, c_int, *const c_int) -> c_int,
    pub(super) epoll_uwait: unsafe extern "C" fn(c_int, *mut Ready, c_int, i64) -> c_int,
    pub(super) epoll_release: unsafe extern "C" fn(c_int) -> c_int,
    pub(super) setloglevel: unsafe extern "C" fn(c_int),
    pub(super) getrejectreason: unsafe extern "C" fn(c_int) -> c_int,
    pub(super) rejectreason_str: unsafe extern "C" fn(c_int) -> *const c_char,
    pub(super) setrejectreason: unsafe extern "C" fn(c_int, c_int) -> c_int,
    pub(super) getversion: unsafe extern "C" fn() -> u32,
}

impl Calls {
    /// The functions of the library of this machine, which is started.
    ///
    /// # Errors
    /// It is not there, or another one, in words.
    pub(super) fn open() -> Result<Self, String> {
        let named = std::env::var_os(VARIABLE);
        let names = named.map_or_else(|| NAMES.map(Into::into).to_vec(), |name| vec![name]);
        let mut why = String::new();
        for name in names {
            // SAFETY: what libsrt does when it is loaded is to construct its own static objects.
            match unsafe { libloading::Library::new(&name) } {
                // Never closed: the functions must stay where they are.
                Ok(library) => return Self::of(Box::leak(Box::new(library))),
                Err(error) if why.is_empty() => {
                    // The system's words are behind it.
                    why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                }
                Err(_) => {}
            }
        }
        Err(why)
    }

    fn of(library: &'static libloading::Library) -> Result<Self, String> {
        macro_rules! calls {
            ($($name:ident),*) => {
                Calls {$(
                    // SAFETY: the type is that of srt.h, which has not changed since 1.4.2; `library` stays.
                    $name: unsafe { *library.get(concat!("srt_", stringify!($name))).map_err(|e| e.to_string())? },
                )*}
            };
        }
        let calls = calls!(
            startup,
            cleanup,
            create_socket,
            bind,
            listen,
            accept,
            listen_callback,
            connect,
            close,
            getsockname,
            getsockflag,
            setsockflag,
            sendmsg2,
            recvmsg2,
            getlasterror_str,
            getlasterror,
            getsockstate,
            epoll_create,
            epoll_add_usock,
            epoll_uwait,
            epoll_release,
            setloglevel,
            getrejectreason,
            rejectreason_str,
            setrejectreason,
            getversion
        );
        // SAFETY: it only answers with a constant.
        let version = unsafe { (calls.getversion)() };
        if version >> 8 != VERSION {
            return Err(format!(
                "what was found is version {}.{}",
                version >> 16 & 0xff,
                version >> 8 & 0xff
            ));
        }
        // SAFETY: called once, before anything else; a negative answer is a failure.
        if unsafe { (calls.startup)() } < 0 {
            return Err("it cannot start".into());
        }
        // SAFETY: it sets a number.
        unsafe { (calls.setloglevel)(CRITICAL) };
        Ok(calls)
    }
}
