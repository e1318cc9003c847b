//! Keeps the logs that are in use open.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::run_log::RunLog;
use crate::{Error, RunId};

/// The most logs that are open at the same time. Another one is opened again when it is needed.
const OPEN_MAX: usize = 64;

/// A log that several threads share.
pub(super) type SharedLog = Arc<Mutex<RunLog>>;

/// The logs that were used last, the last one first.
#[derive(Debug, Default)]
pub(super) struct LogCache(Mutex<Vec<(RunId, SharedLog)>>);

impl LogCache {
    /// The log of a run, in the folder of its runs.
    pub(super) fn open(&self, dir: &Path, run: &RunId, is_writable: bool) -> Result<SharedLog, Error> {
        if let Some(log) = self.find(run) {
            // The list is free meanwhile: the log may be waiting for the disk.
            let log_now = lock_log(&log);
            if log_now.is_in_place() {
                drop(log_now);
                return Ok(log);
            }
            if log_now.is_written() {
                return Err(Error::Vanished { path: log_now.path().to_owned() });
            }
            self.lock().retain(|(_, known)| !Arc::ptr_eq(known, &log));
        }
        let folder = dir.join(run.as_str());
        let log =
            RunLog::open(&folder, run, is_writable)?.ok_or_else(|| Error::NoSuchRun { run: run.clone() })?;
        let log = Arc::new(Mutex::new(log));
        let mut open = self.lock();
        // Two threads may have opened it: they share one, which knows what was written.
        if let Some((_, other)) = open.iter().find(|(known, _)| known == run) {
            return Ok(other.clone());
        }
        open.insert(0, (run.clone(), log.clone()));
        open.truncate(OPEN_MAX);
        Ok(log)
    }

    /// Closes a log.
    pub(super) fn forget(&self, run: &RunId) {
        self.lock().retain(|(known, _)| known != run);
    }

    /// A log that is open, which becomes the last one that was used.
    fn find(&self, run: &RunId) -> Option<SharedLog> {
        let mut open = self.lock();
        let at = open.iter().position(|(known, _)| known == run)?;
        open[..=at].rotate_right(1);
        Some(open[0].1.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(RunId, SharedLog)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A panicking thread leaves a log as it is in the file, or to be looked at again.
pub(super) fn lock_log(log: &SharedLog) -> MutexGuard<'_, RunLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
