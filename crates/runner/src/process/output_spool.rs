//! The spool file of one output stream, with a size limit and a follower.
//!
//! A stream over its limit either ends the child, or its middle is left out: then the beginning is written at once, and the
//! end, of which the newest bytes are kept in memory, when the stream is closed.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::ProcessError;
use super::spool;

const CHUNK_BYTES: usize = 32 << 10;

/// A file that one thread writes and another may follow. The follower reads from the file, so a slow one neither delays
/// the writer nor needs memory.
#[derive(Debug)]
pub(super) struct OutputSpool {
    state: Mutex<SpoolState>,
    changed: Condvar,
    bytes_max: u64,
}

#[derive(Debug)]
struct SpoolState {
    file: File,
    bytes: u64,
    closed: bool,
    /// The newest bytes behind the beginning, if the middle is left out.
    end: Option<StreamEnd>,
}

/// The end of a stream whose middle is left out.
#[derive(Debug, Default)]
struct StreamEnd {
    kept: VecDeque<u8>,
    left_out: u64,
}

/// Whether all bytes fitted below the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AppendOutcome {
    All,
    Part,
}

impl OutputSpool {
    /// `keeps_end`: whether the middle of a longer stream is left out, instead of its end.
    pub fn create(path: &Path, bytes_max: u64, keeps_end: bool) -> Result<OutputSpool, ProcessError> {
        let end = keeps_end.then(StreamEnd::default);
        let bytes_max = if keeps_end { bytes_max / 2 } else { bytes_max };
        let state = SpoolState { file: spool::create_private_file(path)?, bytes: 0, closed: false, end };
        Ok(OutputSpool { state: Mutex::new(state), changed: Condvar::new(), bytes_max })
    }

    /// Writes as much as the limit allows. Does nothing after [`OutputSpool::close`].
    pub fn append(&self, bytes: &[u8]) -> io::Result<AppendOutcome> {
        let mut state = self.lock();
        if state.closed {
            return Ok(AppendOutcome::All);
        }
        let room = usize::try_from(self.bytes_max - state.bytes).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        state.file.write_all(fitting)?;
        state.bytes += fitting.len() as u64;
        self.changed.notify_all();
        let rest = &bytes[fitting.len()..];
        if let Some(end) = &mut state.end {
            end.kept.extend(rest);
            let over = end.kept.len().saturating_sub(usize::try_from(self.bytes_max).unwrap_or(usize::MAX));
            end.left_out += over as u64;
            end.kept.drain(..over);
            return Ok(AppendOutcome::All);
        }
        Ok(if rest.is_empty() { AppendOutcome::All } else { AppendOutcome::Part })
    }

    /// Records a stream to its end. Bytes over the limit are read and dropped, so that the child does not block before
    /// it is killed. Calls `on_full` once.
    pub fn record(&self, mut stream: impl Read, mut on_full: impl FnMut()) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut full = false;
        loop {
            let read = match stream.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if self.append(&chunk[..read])? == AppendOutcome::Part && !full {
                full = true;
                on_full();
            }
        }
    }

    /// Closes the spool and syncs it to disk; returns its length in bytes.
    pub fn close(&self) -> io::Result<u64> {
        let mut state = self.lock();
        if let Some(StreamEnd { mut kept, left_out }) = state.end.take() {
            let mut end = Vec::new();
            if left_out > 0 {
                // The end begins with a whole line if there is one.
                let line = kept.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                kept.drain(..line);
                let left_out = left_out + line as u64;
                end.extend(format!("\n[{left_out} bytes of output are left out here]\n").bytes());
            }
            end.extend(kept);
            state.file.write_all(&end)?;
            state.bytes += end.len() as u64;
        }
        state.closed = true;
        self.changed.notify_all();
        // An empty file needs no sync: if it is lost, the spool is recognised as incomplete.
        if state.bytes > 0 {
            state.file.sync_all()?;
        }
        Ok(state.bytes)
    }

    /// Copies the spool to `sink` as it grows, until it is closed and copied or writing to the sink fails.
    pub fn follow(&self, path: &Path, mut sink: impl Write) -> io::Result<()> {
        let file = File::open(path)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut copied = 0;
        while self.wait_beyond(copied) {
            let read = file.read_at(&mut chunk, copied)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            sink.write_all(&chunk[..read])?;
            sink.flush()?;
            copied += read as u64;
        }
        Ok(())
    }

    /// Waits for more than `copied` bytes; false when the spool is closed without more.
    fn wait_beyond(&self, copied: u64) -> bool {
        let mut state = self.lock();
        while state.bytes <= copied && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes > copied
    }

    /// A panic while the lock was held only left a shorter file; keep recording.
    fn lock(&self) -> MutexGuard<'_, SpoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_stream_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let record = |lines: u64, bytes_max| {
            let spool = OutputSpool::create(&path, bytes_max, true).unwrap();
            let text: String = (0..lines).map(|line| format!("line {line:05}\n")).collect();
            spool.record(text.as_bytes(), || panic!("it is not full")).unwrap();
            let bytes = spool.close().unwrap();
            let kept = std::fs::read_to_string(&path).unwrap();
            assert_eq!(kept.len() as u64, bytes);
            (text, kept)
        };
        let (text, kept) = record(100, 1100);
        assert_eq!(kept, text, "what fits is whole");
        let (_, kept) = record(100_000, 110);
        assert!(kept.starts_with("line 00000\nline 00001\n"), "{kept}");
        assert!(kept.ends_with("\nline 99998\nline 99999\n"), "{kept}");
        assert!(kept.contains(" bytes of output are left out here]\nline 9"), "{kept}");
    }
}
