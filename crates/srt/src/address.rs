//! A URL of SRT, as srt-live-transmit and ffmpeg write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

/// What a passphrase may be long (SRTO_PASSPHRASE), in bytes.
const PASSPHRASE_BYTES: std::ops::RangeInclusive<usize> = 10..=79;
/// What a stream id may be long (SRTO_STREAMID), in bytes.
const MOST_STREAM_ID: usize = 512;
/// The library's buffer of 8192 packets holds 8 Mbps for so long.
const MOST_LATENCY: Duration = Duration::from_secs(10);
/// What the library takes where none is given (SRTO_LATENCY in live mode).
const LATENCY: Duration = Duration::from_millis(120);
const FORM: &str = "SRT is written srt://HOST:PORT for a peer that is called, and srt://:PORT?mode=listener for one \
                    that calls";
const PARAMETERS: &str = "mode, streamid, passphrase, pbkeylen and latency";

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// This end.
    Caller,
    /// The other end.
    Listener,
}

/// Where a peer is, and what has to be agreed with it. Its passphrase and its stream id, which may be one as well,
/// are in no text that is made of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    mode: Mode,
    /// An IPv6 address without its brackets.
    host: String,
    port: u16,
    pub(crate) stream_id: Option<String>,
    pub(crate) passphrase: Option<String>,
    /// In bytes; what the peer says, or 16, without one.
    pub(crate) key_length: Option<i32>,
    pub(crate) latency: Duration,
}

impl Address {
    /// Who calls.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The other end's name or address, or, of a listener, one of this machine.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The UDP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same at another port.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The same with this passphrase where the URL has none.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn or_passphrase(mut self, passphrase: &str) -> Result<Self, String> {
        if self.passphrase.is_none() {
            self.passphrase = Some(checked_passphrase(passphrase.to_owned())?);
        }
        Ok(self)
    }
}

/// Without what is secret.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "srt://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "srt://{}:{}", self.host, self.port)
        }
    }
}

/// Without what is secret.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:?})", self.mode)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(input: &str) -> Result<Self, String> {
        let rest = input.strip_prefix("srt://").ok_or(FORM)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, port) = place.trim_end_matches('/').rsplit_once(':').ok_or(FORM)?;
        let host = match host.strip_prefix('[').map(|host| host.strip_suffix(']')) {
            Some(inside) => inside.ok_or(FORM)?,
            None if host.contains([':', '/', '@']) => return Err(FORM.into()),
            None => host,
        };
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number);
        let port: u16 = port.ok_or_else(|| format!("a port is a number up to 65535; {FORM}"))?;
        // As srt-live-transmit has it: without a host nobody can be called.
        let mode = if host.is_empty() { Mode::Listener } else { Mode::Caller };
        let mut address = Self {
            mode,
            host: host.to_owned(),
            port,
            stream_id: None,
            passphrase: None,
            key_length: None,
            latency: LATENCY,
        };
        let mut known = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if known.contains(&name) {
                return Err(format!("{name} is there twice"));
            }
            address.set(name, value)?;
            known.push(name);
        }
        match (address.mode, host) {
            (Mode::Caller, "") => Err(format!("mode=caller needs a host; {FORM}")),
            (Mode::Caller, _) if port == 0 => Err("port 0 cannot be called".into()),
            (Mode::Listener, "") => {
                address.host = "0.0.0.0".into();
                Ok(address)
            }
            _ => Ok(address),
        }
    }
}

impl Address {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let text = |what: &str| {
            let text = percent_decode_str(value).decode_utf8();
            text.map(std::borrow::Cow::into_owned).map_err(|_| format!("{what} is no UTF-8"))
        };
        match name {
            "mode" => {
                self.mode = match value {
                    "caller" | "client" => Mode::Caller,
                    "listener" | "server" => Mode::Listener,
                    _ => return Err(format!("mode is caller or listener, not '{value}'")),
                };
            }
            "streamid" => {
                let id = text("streamid")?;
                if id.is_empty() || id.len() > MOST_STREAM_ID || id.contains('\0') {
                    return Err(format!("streamid has 1 to {MOST_STREAM_ID} bytes"));
                }
                self.stream_id = Some(id);
            }
            "passphrase" => self.passphrase = Some(checked_passphrase(text("passphrase")?)?),
            "pbkeylen" => {
                self.key_length = match value {
                    "16" => Some(16),
                    "24" => Some(24),
                    "32" => Some(32),
                    _ => return Err("pbkeylen, the length of the key in bytes, is 16, 24 or 32".into()),
                };
            }
            "latency" => {
                let latency = value.parse().ok().map(Duration::from_millis);
                self.latency = latency.filter(|latency| *latency <= MOST_LATENCY).ok_or_else(|| {
                    format!(
                        "latency is in milliseconds, at most {}: ffmpeg alone counts microseconds",
                        MOST_LATENCY.as_millis()
                    )
                })?;
            }
            _ => return Err(format!("there is no parameter '{name}': an SRT URL may have {PARAMETERS}")),
        }
        Ok(())
    }
}

/// What is wrong with it is told without it.
fn checked_passphrase(passphrase: String) -> Result<String, String> {
    if PASSPHRASE_BYTES.contains(&passphrase.len()) && !passphrase.contains('\0') {
        Ok(passphrase)
    } else {
        Err(format!("a passphrase has {} to {} bytes", PASSPHRASE_BYTES.start(), PASSPHRASE_BYTES.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn a_host_is_called_and_a_port_alone_listens() {
        for (url, mode, shown) in [
            ("srt://studio.example:9000", Mode::Caller, "srt://studio.example:9000"),
            ("srt://studio.example:9000/?mode=caller", Mode::Caller, "srt://studio.example:9000"),
            ("srt://:9000", Mode::Listener, "srt://0.0.0.0:9000"),
            ("srt://:9000?mode=listener", Mode::Listener, "srt://0.0.0.0:9000"),
            ("srt://127.0.0.1:0?mode=server", Mode::Listener, "srt://127.0.0.1:0"),
            ("srt://[2001:db8::1]:9000?mode=client", Mode::Caller, "srt://[2001:db8::1]:9000"),
        ] {
            let address = parsed(url);
            assert_eq!((address.mode(), address.to_string().as_str()), (mode, shown), "{url}");
        }
    }

    #[test]
    fn parameters_are_those_of_srt_live_transmit() {
        let url = "srt://host:9000?passphrase=ten%26more%3Ftimes+1&pbkeylen=24&latency=300&\
                   streamid=#!::r=live/camera,m=publish";
        let address = parsed(url);
        assert_eq!(address.passphrase.as_deref(), Some("ten&more?times+1"));
        assert_eq!(address.stream_id.as_deref(), Some("#!::r=live/camera,m=publish"));
        assert_eq!((address.key_length, address.latency), (Some(24), Duration::from_millis(300)));
        assert_eq!(parsed("srt://host:9000").latency, LATENCY);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (query, told) in [
            ("latancy=100", "no parameter 'latancy'"),
            ("latancy=100", "mode, streamid, passphrase, pbkeylen and latency"),
            ("latency=120000", "milliseconds, at most 10000"),
            ("latency=-1", "milliseconds"),
            ("latency=1s", "milliseconds"),
            ("latency=100&latency=200", "latency is there twice"),
            ("mode=rendezvous", "caller or listener, not 'rendezvous'"),
            ("pbkeylen=128&passphrase=0123456789", "16, 24 or 32"),
            ("passphrase=SECRET", "10 to 79 bytes"),
            ("passphrase", "10 to 79 bytes"),
            ("passphrase=%ff0123456789", "no UTF-8"),
            ("streamid=", "1 to 512 bytes"),
        ] {
            let error = format!("srt://host:9000?{query}").parse::<Address>().unwrap_err();
            assert!(error.contains(told) && !error.contains("SECRET"), "{query}: {error}");
        }
        for url in [
            "srt://host",
            "srt://host:",
            "srt://host:70000",
            "srt://host:+9000",
            "srt://::1:9000",
            "srt://[::1:9000",
            "srt://user@host:9000",
            "srt:/host:9000",
            "srt://",
        ] {
            let error = url.parse::<Address>().unwrap_err();
            assert!(error.contains("srt://HOST:PORT"), "{url}: {error}");
        }
        assert!("srt://host:0".parse::<Address>().is_err());
        assert!("srt://:9000?mode=caller".parse::<Address>().unwrap_err().contains("needs a host"));
    }

    #[test]
    fn no_text_has_what_is_secret() {
        let address = parsed("srt://host:9000?passphrase=SECRET-SECRET&streamid=SECRET");
        assert!(!format!("{address} {address:?} {:?}", Some(&address)).contains("SECRET"));
        assert!(
            parsed("srt://host:9000").or_passphrase("SECRET").is_err_and(|error| !error.contains("SECRET"))
        );
        let given = parsed("srt://host:9000").or_passphrase("0123456789").map(|address| address.passphrase);
        assert_eq!(given, Ok(Some("0123456789".into())));
        let kept = address.clone().or_passphrase("0123456789");
        assert_eq!(kept, Ok(address));
    }
}
