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
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|(known, _)| known == run) {
            let (_, log) = &open[at];
            let is_usable = {
                let log = lock_log(log);
                match log.is_in_place() {
                    false if log.is_written() => return Err(Error::Vanished { path: log.path().to_owned() }),
                    is_in_place => is_in_place,
                }
            };
            let entry = open.remove(at);
            if is_usable {
                let log = entry.1.clone();
                open.insert(0, entry);
                return Ok(log);
            }
        }
        let folder = dir.join(run.as_str());
        let log =
            RunLog::open(&folder, run, is_writable)?.ok_or_else(|| Error::NoSuchRun { run: run.clone() })?;
        let log = Arc::new(Mutex::new(log));
        open.insert(0, (run.clone(), log.clone()));
        open.truncate(OPEN_MAX);
        Ok(log)
    }
}

/// A panicking thread leaves a log as it is in the file, or to be looked at again.
pub(super) fn lock_log(log: &SharedLog) -> MutexGuard<'_, RunLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
