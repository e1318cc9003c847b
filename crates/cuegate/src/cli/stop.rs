//! Ctrl-C: the first suspends the run cleanly, the second exits at once.

use cuegate_runner::StopRequests;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::exit;

/// A channel that turns true on SIGINT, SIGTERM or SIGHUP. Spawns a task that lives as long as the runtime.
pub(super) fn on_end() -> watch::Receiver<bool> {
    let (stop, seen) = watch::channel(false);
    tokio::spawn(async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
        tokio::select! {
            Some(()) = interrupt.recv() => {}
            Some(()) = terminate.recv() => {}
            Some(()) = hangup.recv() => {}
        }
        let _ = stop.send(true);
    });
    seen
}

/// As [`on_signals`], with a drain on SIGUSR1: no further call begins, and the run is suspended when those in progress have
/// ended.
pub(super) fn of_run(resume: &'static str) -> StopRequests {
    let (drain, seen) = watch::channel(false);
    tokio::spawn(async move {
        let Ok(mut user) = signal(SignalKind::user_defined1()) else { return };
        if user.recv().await == Some(()) {
            super::print::print_line("draining: no further call begins");
            let _ = drain.send(true);
            // Without a sender nobody would be told.
            drain.closed().await;
        }
    });
    StopRequests { now: on_signals(resume), drain: Some(seen) }
}

/// A channel that turns true on SIGINT, SIGTERM or SIGHUP; `resume` is the command that continues afterwards. Spawns a task that lives as long as the runtime.
pub(super) fn on_signals(resume: &'static str) -> watch::Receiver<bool> {
    let (stop, seen) = watch::channel(false);
    tokio::spawn(async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {}
                Some(()) = terminate.recv() => {}
                Some(()) = hangup.recv() => {}
            }
            if *stop.borrow() {
                // Children exit with this process: their lifeline pipes close.
                super::print::print_line(&format!(
                    "stopped at once; `{resume}` continues from the last record"
                ));
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            super::print::print_line("interrupting … (press Ctrl-C again to stop at once)");
            let _ = stop.send(true);
        }
    });
    seen
}
