//! The clock of a run writer: the machine's, or a simulated one, in which waiting takes no real time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Monotonic time since the clock started. It excludes the time that the machine sleeps.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub(crate) struct MachineClock {
    started: Instant,
}

impl MachineClock {
    pub(crate) fn new() -> MachineClock {
        MachineClock { started: Instant::now() }
    }
}

impl Clock for MachineClock {
    fn now_ms(&self) -> i64 {
        now_ms()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The time, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A clock that advances only by calls.
#[derive(Debug, Default)]
pub(crate) struct SimulatedClock {
    elapsed_ms: AtomicU64,
}

/// Start time of simulated runs: 2020-01-01T00:00:00Z, in milliseconds since 1970.
const START_MS: i64 = 1_577_836_800_000;

impl SimulatedClock {
    /// Advances by `ms` milliseconds.
    pub(crate) fn pass(&self, ms: u64) {
        self.elapsed_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Advances to a moment, in milliseconds since 1970. A past moment changes nothing.
    pub(crate) fn wait_until(&self, moment_ms: i64) {
        self.pass(u64::try_from(moment_ms.saturating_sub(self.now_ms())).unwrap_or(0));
    }
}

impl Clock for SimulatedClock {
    fn now_ms(&self) -> i64 {
        START_MS.saturating_add_unsigned(self.elapsed_ms.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_advances_only_by_calls() {
        let clock = SimulatedClock::default();
        let began = clock.now_ms();
        clock.pass(5);
        clock.wait_until(began + 100);
        clock.wait_until(began + 20);
        assert_eq!((clock.now_ms() - began, clock.elapsed()), (100, Duration::from_millis(100)));
    }
}
