//! Ctrl-C: once suspends the run cleanly, twice ends at once.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::exit;

/// Turns true when somebody wants the program to stop. Spawns a task that lives as long as the runtime.
pub(super) fn on_signals() -> watch::Receiver<bool> {
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
                // Children end with us: their lifelines do.
                super::print::line("ended at once; `cuegate resume last` goes on from the last record");
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            super::print::line("interrupting … (once more ends at once)");
            let _ = stop.send(true);
        }
    });
    seen
}
