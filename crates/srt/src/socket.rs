//! A socket of SRT that belongs to somebody.

use std::net::SocketAddr;
use std::time::Duration;

use super::address::{Address, Mode};
use super::error::Error;
use super::library::{Fault, Library, Setting, Until, library};

/// `SRTS_BROKEN`: what comes after it is no connection any more.
const BROKEN: i32 = 6;

/// An open socket, and what it is waited for with. It waits in `wait` alone.
pub(super) struct Socket {
    pub(super) libsrt: &'static Library,
    pub(super) id: i32,
    poll: Option<i32>,
}

impl Socket {
    /// One that has the settings of an address and is not connected.
    pub(super) fn new(address: &Address) -> Result<Self, Error> {
        let libsrt = library()?;
        let id =
            libsrt.create().map_err(|fault| Error::Call("cannot make an SRT socket", fault.to_string()))?;
        let socket = Self { libsrt, id, poll: None };
        socket.prepare(address).map_err(|fault| Error::Call("SRT refuses a setting", fault.to_string()))?;
        Ok(socket)
    }

    fn prepare(&self, address: &Address) -> Result<(), Fault> {
        let latency = i32::try_from(address.latency.as_millis()).unwrap_or(i32::MAX);
        self.set(Setting::Latency, latency)?;
        self.set(Setting::SendWaits, 0)?;
        self.set(Setting::ReceiveWaits, 0)?;
        if let Some(passphrase) = &address.passphrase {
            self.libsrt.set(self.id, Setting::Passphrase, passphrase.as_bytes())?;
        }
        if let Some(length) = address.key_length {
            self.set(Setting::KeyLength, length)?;
        }
        if let (Mode::Caller, Some(stream_id)) = (address.mode(), &address.stream_id) {
            self.libsrt.set(self.id, Setting::StreamId, stream_id.as_bytes())?;
        }
        Ok(())
    }

    /// One that a listener has let in.
    pub(super) fn accepted(libsrt: &'static Library, id: i32) -> Result<Self, Fault> {
        let mut socket = Self { libsrt, id, poll: None };
        socket.set(Setting::SendWaits, 0)?;
        socket.set(Setting::ReceiveWaits, 0)?;
        socket.wait_until(Until::Readable)?;
        Ok(socket)
    }

    pub(super) fn set(&self, setting: Setting, value: i32) -> Result<(), Fault> {
        self.libsrt.set_number(self.id, setting, value)
    }

    /// What `wait` waits for from now on.
    pub(super) fn wait_until(&mut self, until: Until) -> Result<(), Fault> {
        if let Some(poll) = self.poll.take() {
            self.libsrt.release(poll);
        }
        self.poll = Some(self.libsrt.wait_for(self.id, until)?);
        Ok(())
    }

    /// Whether it has come in that time.
    pub(super) fn wait(&self, patience: Duration) -> Result<bool, Fault> {
        match self.poll {
            Some(poll) => self.libsrt.wait(poll, patience),
            None => Err(Fault::Other("nothing is waited for".into())),
        }
    }

    /// Whether it was connected, and is not any more.
    pub(super) fn is_broken(&self) -> bool {
        !(0..BROKEN).contains(&self.libsrt.state(self.id))
    }

    pub(super) fn name(&self) -> Result<SocketAddr, Fault> {
        self.libsrt.name(self.id)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(poll) = self.poll {
            self.libsrt.release(poll);
        }
        self.libsrt.close(self.id);
    }
}
