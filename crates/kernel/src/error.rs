//! Why a control cannot be loaded, and what to do about it.

use std::io;
use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not root, or without the capabilities.
    #[error(
        "the kernel lets only root load, change and list congestion controls (CAP_BPF, CAP_NET_ADMIN and \
         CAP_SYS_ADMIN): try it with sudo"
    )]
    NotRoot,
    /// The kernel has no type information.
    #[error(
        "this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF): use a kernel with BTF, as \
         Debian, Ubuntu and Fedora have it"
    )]
    NoBtf,
    /// The kernel is older than what the programs need.
    #[error("this kernel is Linux {0}: 6.4 or later is needed")]
    TooOld(String),
    /// There is no file system for what outlives its program.
    #[error("cannot mount the BPF file system at {}: {source}; mount it with: mount \
             -t bpf bpf {}", .path.display(), .path.display())]
    NoBpfFs {
        /// Where it should be.
        path: PathBuf,
        /// Why it could not be mounted.
        source: io::Error,
    },
    /// The control is loaded already.
    #[error(
        "{0} is loaded already: change it with 'anabranch cc set {0}', or unload it first with 'anabranch cc \
         unload {0}'"
    )]
    Loaded(&'static str),
    /// Another congestion control has this name.
    #[error(
        "the kernel has another congestion control with the name {0}, which is not from anabranch: unload \
         that one first"
    )]
    NameTaken(&'static str),
    /// The control is not loaded.
    #[error("{0} is not loaded ('anabranch cc list' shows what is): load it \
             with '{load}'", load = example(.0))]
    NotLoaded(&'static str),
    /// The control is there in part.
    #[error(
        "{0} is loaded by half: its loading was ended, or goes on; if it does not, take it away with \
         'anabranch cc unload {0}'"
    )]
    Half(&'static str),
    /// What is in a control's place is not what was left there.
    #[error(
        "{} {problem}, so it is not what 'anabranch cc' left there: look at what it is, and take it away as \
         root with: rm -r {}", .path.display(), .path.display()
    )]
    Foreign {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The kernel refused something.
    #[error("the kernel refuses to {what}: {problem}")]
    Refused {
        /// What it was asked for.
        what: &'static str,
        /// What it says, of the verifier's log the end.
        problem: String,
    },
    /// What a loaded control left does not fit this version.
    #[error(
        "{0} was loaded by another version of anabranch, or changed by something else: unload it with \
         'anabranch cc unload {0}', and load it again"
    )]
    OtherVersion(&'static str),
    /// A program may not choose the control for its connections.
    #[error(
        "only root may choose {0} (CAP_NET_ADMIN), unless it is loaded with 'anabranch cc load {0} --anyone'"
    )]
    MayNotChoose(&'static str),
    /// There are as many groups as there can be.
    #[error(
        "the kernel has room for 16 groups, with 'default', and those of rules and of pools that have \
         connections are more ('anabranch cc status --groups' shows them)"
    )]
    NoRoom,
    /// A file of a loaded control could not be read or removed.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What loads a control, with the parameters that it needs.
fn example(name: &str) -> String {
    let parameters = match name {
        "ttfwc" => " --tuning 0.9",
        "multcp" => " --flows 4",
        _ => "",
    };
    format!("anabranch cc load {name}{parameters}")
}

impl Error {
    /// What libbpf says to one request.
    pub(crate) fn refused(what: &'static str, error: &libbpf_rs::Error) -> Self {
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Self::NotRoot,
            _ => Self::Refused { what, problem: format!("{error:#}") },
        }
    }
}
