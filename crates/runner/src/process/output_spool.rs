//! The spool file of one stream, with a limit and a reader that follows it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::Error;
use super::spool;

const CHUNK_BYTES: usize = 32 << 10;

/// A file that one thread writes and another may follow. The follower reads the file, so a slow one delays nobody and no
/// memory is held for it.
#[derive(Debug)]
pub(super) struct Tape {
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: u64,
}

#[derive(Debug)]
struct State {
    file: File,
    bytes: u64,
    closed: bool,
}

/// Whether there was room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    All,
    Part,
}

impl Tape {
    pub fn create(path: &Path, bytes_max: u64) -> Result<Tape, Error> {
        let state = State { file: spool::create(path)?, bytes: 0, closed: false };
        Ok(Tape { state: Mutex::new(state), changed: Condvar::new(), bytes_max })
    }

    /// Writes what there is room for. Nothing is written after [`Tape::close`].
    pub fn append(&self, bytes: &[u8]) -> io::Result<Kept> {
        let mut state = self.lock();
        if state.closed {
            return Ok(Kept::All);
        }
        let room = usize::try_from(self.bytes_max - state.bytes).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        state.file.write_all(fitting)?;
        state.bytes += fitting.len() as u64;
        self.changed.notify_all();
        Ok(if fitting.len() == bytes.len() { Kept::All } else { Kept::Part })
    }

    /// Reads a stream to its end. What is over the limit is read and dropped: the writer is to be killed, not to be
    /// blocked. `on_full` is called once.
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
            if self.append(&chunk[..read])? == Kept::Part && !full {
                full = true;
                on_full();
            }
        }
    }

    /// Ends the tape and puts it on disk; returns its length in bytes.
    pub fn close(&self) -> io::Result<u64> {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_all();
        // An empty file has nothing to lose: should it vanish, the spool is no longer whole, and that is seen.
        if state.bytes > 0 {
            state.file.sync_all()?;
        }
        Ok(state.bytes)
    }

    /// Copies the tape to `sink` as it grows, until it is closed and all is copied or the sink refuses.
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

    /// Waits for more than `copied` bytes; false when there will be none.
    fn wait_beyond(&self, copied: u64) -> bool {
        let mut state = self.lock();
        while state.bytes <= copied && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes > copied
    }

    /// A thread that panicked while holding the lock left a shorter file, which is no reason to lose the rest.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
