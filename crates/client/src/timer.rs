//! A timer that wakes a thread once.
//!
//! The runtime keeps its timers in a wheel (64 slots of a millisecond, then 64 of 64 ms, ...), and wakes for one
//! of more than 64 ms twice: when its slot begins, and when it is due. Where little is to be read, to be woken
//! is what it costs.

use anabranch_units::Duration;

/// What the wheel wakes for once.
#[cfg(target_os = "linux")]
const SHORT: Duration = Duration::from_millis(64);

/// For the waits of one task, one after the other.
#[derive(Debug, Default)]
pub(super) struct Timer(#[cfg(target_os = "linux")] std::sync::OnceLock<Option<linux::Timer>>);

impl Timer {
    /// Waits so long.
    pub(super) async fn wait(&self, wait: Duration) {
        #[cfg(target_os = "linux")]
        if wait > SHORT
            && let Some(timer) = self.0.get_or_init(|| linux::Timer::new().ok())
            && timer.wait(wait).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(wait.into()).await;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use anabranch_units::Duration;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel (timerfd_create(2)).
    #[derive(Debug)]
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // SAFETY: it owns the descriptor, which is the same one until it is dropped.
            #[allow(unsafe_code, reason = "the runtime has no safe call for a descriptor of any kind")]
            let registered = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) };
            Ok(Self(registered?))
        }

        /// Waits so long, and no shorter for an earlier wait that was given up.
        pub(super) async fn wait(&self, wait: Duration) -> io::Result<()> {
            let wait = Timespec::try_from(std::time::Duration::from(wait))
                .map_err(|_| io::ErrorKind::InvalidInput)?;
            let once = Itimerspec { it_interval: Timespec::default(), it_value: wait };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            self.0
                .async_io(Interest::READABLE, |timer| Ok(rustix::io::read(timer, &mut [0; 8])?))
                .await
                .map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_wait_is_as_long_as_it_is_to_be_also_after_one_that_was_given_up() {
        let timer = Timer::default();
        for wait in [70, 3, 90].map(Duration::from_millis) {
            tokio::select! {
                biased;
                () = timer.wait(wait) => {}
                () = std::future::ready(()) => {}
            }
            std::thread::sleep(std::time::Duration::from_millis(80));
            let began = Instant::now();
            timer.wait(wait).await;
            assert!(Duration::from(began.elapsed()) >= wait, "{wait} was {:?}", began.elapsed());
        }
    }
}
