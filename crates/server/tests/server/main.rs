//! `anabranch serve` as its clients see it, over real sockets on loopback.

#[cfg(test)]
mod changes;
#[cfg(test)]
mod client;
#[cfg(test)]
mod files;
#[cfg(test)]
mod http3;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod stripe;
#[cfg(test)]
mod weights;
