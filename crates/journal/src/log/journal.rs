//! The operations of a journal, on the logs of its runs.

use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::REMOVED;
use super::cache::{LogCache, lock_log};
use super::changes::ChangeBell;
use super::count_file::CountFile;
use super::file_io::{create_folder, io_error};
use super::run_log::{LOG_FILE, RunLog};
use super::threads::map_on_threads;
use crate::{Digest, Error, Journal, Lease, Message, MessageId, NewRecord, Owner, Record, RunId, RunSummary};

/// Options for opening a journal for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The crashes that a finished operation survives.
    pub durability: Durability,
}

/// The crashes that a finished operation survives. The files stay consistent in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power failure: each operation waits for the disk.
    #[default]
    Synced,
    /// A crash of the program. After a power failure the last operations may be missing.
    Relaxed,
}

/// Stores records in a log file per run. Threads share one `LogJournal`; processes open the same folder.
#[derive(Debug)]
pub struct LogJournal {
    dir: PathBuf,
    access: Access,
    logs: LogCache,
    bell: ChangeBell,
}

#[derive(Debug, Clone, Copy)]
enum Access {
    Write { is_synced: bool },
    Read,
}

impl LogJournal {
    /// Opens the journal whose runs have their folders in `dir`, for reading and writing. Creates a missing one; only the
    /// user can read what is in it (mode 0600).
    ///
    /// # Errors
    /// [`Error::Io`]. What is wrong with a run is the error of the operations on it: [`Error::Damaged`],
    /// [`Error::RecordsLost`], [`Error::NoFile`] for a folder, FIFO or device in place of its log. The log of a newer
    /// format can be read, but writing to it fails with [`Error::TooNew`].
    pub fn open(dir: impl Into<PathBuf>, options: Options) -> Result<Self, Error> {
        let dir = dir.into();
        create_folder(&dir)?;
        let is_synced = options.durability == Durability::Synced;
        Ok(Self::with_access(dir, Access::Write { is_synced }))
    }

    /// Opens the journal whose runs have their folders in `dir` for reading, also while other processes write to it.
    /// Changes and creates nothing.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such folder; [`Error::Io`]. Writing fails with [`Error::ReadOnly`].
    pub fn open_read_only(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let dir = dir.into();
        match fs::metadata(&dir) {
            Ok(found) if found.is_dir() => Ok(Self::with_access(dir, Access::Read)),
            Ok(_) => Err(Error::Missing { path: dir }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(Error::Missing { path: dir })
            }
            Err(source) => Err(io_error(&dir, "look at")(source)),
        }
    }

    fn with_access(dir: PathBuf, access: Access) -> Self {
        LogJournal { dir, access, logs: LogCache::default(), bell: ChangeBell::default() }
    }

    fn read_log<T>(
        &self,
        run: &RunId,
        read: impl FnOnce(&mut RunLog) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_writable = matches!(self.access, Access::Write { .. });
        match self.logs.open(&self.dir, run, is_writable) {
            Ok(log) => read(&mut lock_log(&log)),
            Err(error) => Err(self.explain_missing(run, error)),
        }
    }

    fn write_log<T>(
        &self,
        run: &RunId,
        write: impl FnOnce(&mut RunLog, bool) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_synced = self.is_synced()?;
        let written = self.read_log(run, |log| write(log, is_synced))?;
        self.bell.ring(&self.dir);
        Ok(written)
    }

    /// Whether writing waits for the disk; an error if nothing may be written.
    fn is_synced(&self) -> Result<bool, Error> {
        match self.access {
            Access::Write { is_synced } => Ok(is_synced),
            Access::Read => Err(Error::ReadOnly { path: self.dir.clone() }),
        }
    }

    /// Records of a run whose log is gone are lost; without any the run never was.
    fn explain_missing(&self, run: &RunId, error: Error) -> Error {
        if !matches!(error, Error::NoSuchRun { .. }) {
            return error;
        }
        let folder = self.dir.join(run.as_str());
        let count_file = CountFile::of(&folder);
        match count_file.get() {
            Ok(0) => error,
            Err(unreadable) => unreadable,
            Ok(noted) => Error::RecordsLost {
                path: folder.join(LOG_FILE),
                run: run.clone(),
                found: 0,
                noted,
                note: count_file.path().to_owned(),
            },
        }
    }

    /// What a list says of a run, and when exactly it was created; `None` if there is no such run.
    fn summarize(&self, run: RunId) -> Option<(RunSummary, u64)> {
        let folder = self.dir.join(run.as_str());
        let mut created_ns = 0;
        let mut summary = RunSummary {
            run: run.clone(),
            created_at_ms: 0,
            has_records: false,
            owner: None,
            damage: None,
            version: None,
        };
        let mut look = || {
            let log = RunLog::open(&folder, &run, false)?
                .ok_or_else(|| self.explain_missing(&run, Error::NoSuchRun { run: run.clone() }))?;
            (summary.created_at_ms, created_ns) = log.created();
            summary.owner = log.read_holder(false)?.map(|lease| lease.owner);
            summary.has_records = log.has_records()?;
            Ok(())
        };
        match look() {
            Err(Error::NoSuchRun { .. }) => return None,
            Err(error) => summary.damage = Some(error.to_string()),
            Ok(()) => {}
        }
        Some((summary, created_ns))
    }
}

impl Journal for LogJournal {
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error> {
        let is_synced = self.is_synced()?;
        let folder = self.dir.join(run.as_str());
        if RunLog::open(&folder, run, false)?.is_none() {
            match self.explain_missing(run, Error::NoSuchRun { run: run.clone() }) {
                Error::NoSuchRun { .. } => {}
                lost => return Err(lost),
            }
        }
        RunLog::create(&folder, run, at_ms, is_synced)?;
        self.bell.ring(&self.dir);
        Ok(())
    }

    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error> {
        self.write_log(&lease.run, |log, is_synced| log.append(lease, expected_seq, record, is_synced))?;
        tracing::trace!(run = %lease.run, seq = expected_seq, bytes = record.body.len(), "append");
        Ok(())
    }

    fn append_copy(&self, lease: &Lease, from: &RunId, count: u64, then: NewRecord<'_>) -> Result<(), Error> {
        // Opened anew: two logs that are shared could be locked in either order.
        let source = RunLog::open(&self.dir.join(from.as_str()), from, false)?
            .ok_or_else(|| self.explain_missing(from, Error::NoSuchRun { run: from.clone() }))?;
        self.write_log(&lease.run, |log, is_synced| log.append_copy(lease, &source, count, then, is_synced))
    }

    fn remove(&self, lease: &Lease) -> Result<(), Error> {
        let aside = self.dir.join(format!("{REMOVED}{}", lease.run));
        self.write_log(&lease.run, |log, _| log.move_away(lease, &aside))?;
        self.logs.forget(&lease.run);
        fs::remove_dir_all(&aside).map_err(io_error(&aside, "remove"))
    }

    fn read_each(
        &self,
        run: &RunId,
        from_seq: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut from = self.read_log(run, |log| Ok(log.cursor_before(from_seq)))?;
        loop {
            // The log is free while the records are handed out: their reader may want the texts that they name.
            let page = self.read_log(run, |log| log.read_page(from, from_seq))?;
            for record in page.records {
                if each(record).is_break() {
                    return Ok(());
                }
            }
            match (page.damage, page.next) {
                (Some(damage), _) => return Err(damage),
                (None, Some(next)) => from = next,
                (None, None) => return Ok(()),
            }
        }
    }

    fn blob(&self, run: &RunId, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        self.read_log(run, |log| log.blob(digest))
    }

    fn runs(&self) -> Result<Vec<RunSummary>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(source) => return Err(io_error(&self.dir, "read")(source)),
        };
        let named = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let runs: Vec<RunId> = named.filter_map(|name| RunId::try_from(name).ok()).collect();
        let summaries = map_on_threads(&runs, |run| self.summarize(run.clone())).into_iter();
        let mut runs: Vec<(RunSummary, u64)> = summaries.flatten().collect();
        runs.sort_by(|(a, a_ns), (b, b_ns)| {
            (b.created_at_ms, b_ns, &a.run).cmp(&(a.created_at_ms, a_ns, &b.run))
        });
        Ok(runs.into_iter().map(|(run, _)| run).collect())
    }

    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error> {
        self.write_log(run, |log, is_synced| log.acquire(owner, is_synced))
    }

    fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.write_log(&lease.run, |log, _| log.release(lease))
    }

    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error> {
        self.read_log(run, |log| log.read_holder(matches!(self.access, Access::Write { .. })))
    }

    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error> {
        self.write_log(run, |log, is_synced| log.post(at_ms, body, is_synced))
    }

    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error> {
        self.read_log(run, RunLog::list_waiting)
    }
}
