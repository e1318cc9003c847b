//! Time as a book sees it: the machine's, or that of a simulation, in which waiting takes none.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// How long the clock has been going. Stands still while the machine sleeps, and never goes back.
    fn gone(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub(crate) struct MachineClock {
    begun: Instant,
}

impl MachineClock {
    pub(crate) fn new() -> MachineClock {
        MachineClock { begun: Instant::now() }
    }
}

impl Clock for MachineClock {
    fn now_ms(&self) -> i64 {
        now_ms()
    }

    fn gone(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// The time, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A clock that only goes on when it is told to.
#[derive(Debug, Default)]
pub(crate) struct SimulatedClock {
    gone_ms: AtomicU64,
}

/// When simulated runs begin: the first second of 2020, in milliseconds since 1970.
const BEGINNING_MS: i64 = 1_577_836_800_000;

impl SimulatedClock {
    /// Lets so much time pass, in milliseconds.
    pub(crate) fn pass(&self, ms: u64) {
        self.gone_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Lets time pass until a moment, in milliseconds since 1970; a past one is no reason to wait.
    pub(crate) fn wait_until(&self, moment_ms: i64) {
        self.pass(u64::try_from(moment_ms.saturating_sub(self.now_ms())).unwrap_or(0));
    }
}

impl Clock for SimulatedClock {
    fn now_ms(&self) -> i64 {
        BEGINNING_MS.saturating_add_unsigned(self.gone_ms.load(Ordering::Relaxed))
    }

    fn gone(&self) -> Duration {
        Duration::from_millis(self.gone_ms.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_passes_when_told() {
        let clock = SimulatedClock::default();
        let began = clock.now_ms();
        clock.pass(5);
        clock.wait_until(began + 100);
        clock.wait_until(began + 20);
        assert_eq!((clock.now_ms() - began, clock.gone()), (100, Duration::from_millis(100)));
    }
}
