//! The clock of a run writer: the machine's, or a simulated one, in which waiting takes no real time.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Monotonic time since the clock started. It excludes the time that the machine sleeps.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock. It never goes back: waits are until a time of day, and after the time of day is set back a wait
/// of seconds could take years.
#[derive(Debug)]
pub(crate) struct MachineClock {
    started: Instant,
    /// The newest time that it has shown, in milliseconds since 1970, and when.
    shown: Mutex<(i64, Instant)>,
}

impl MachineClock {
    pub(crate) fn new() -> MachineClock {
        MachineClock::not_before(0)
    }

    /// A clock that shows at least `floor_ms`, the time of the last record.
    pub(crate) fn not_before(floor_ms: i64) -> MachineClock {
        MachineClock { started: Instant::now(), shown: Mutex::new((now_ms().max(floor_ms), Instant::now())) }
    }
}

impl Clock for MachineClock {
    fn now_ms(&self) -> i64 {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = i64::try_from(shown.1.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = now_ms();
        if now >= shown.0.saturating_add(elapsed) {
            *shown = (now, Instant::now());
        }
        shown.0.saturating_add(i64::try_from(shown.1.elapsed().as_millis()).unwrap_or(i64::MAX))
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
    fn the_machine_clock_does_not_go_back() {
        let later = now_ms() + 1_000_000;
        let clock = MachineClock::not_before(later);
        assert!((later..later + 60_000).contains(&clock.now_ms()));
        assert!(MachineClock::not_before(0).now_ms() < later);
    }

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
