//! Reading at a rate: what is there already reaches its readers as fast as the paths would bring it, so that
//! a player that chooses by how fast things come chooses what the paths hold.

use anabranch_units::{Bytes, Rate};

use super::pacer::Pacer;

/// A rate at which readers take bytes, together.
#[derive(Debug)]
pub struct ReadRate(Pacer);

impl Default for ReadRate {
    /// As fast as they can.
    fn default() -> Self {
        Self(Pacer::new())
    }
}

impl ReadRate {
    /// The rate from now on; `None`: no limit.
    pub fn set_rate(&self, rate: Option<Rate>) {
        self.0.set_rate(rate);
    }

    /// Waits until something may be taken.
    pub async fn ready(&self) {
        self.0.ready(None).await;
    }

    /// So much was taken.
    pub fn took(&self, bytes: Bytes) {
        self.0.spend(bytes.as_usize());
    }
}
