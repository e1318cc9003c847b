//! Writes a log from the records of another one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use super::file_io::{io_error, open_or_create_file, read_range};
use super::frame::{BlobPlace, Frame, encode_frame};
use super::run_log::shorten_digest;
use crate::{Blob, Error, NewRecord, RunId};

/// A log that is being written.
pub(super) struct LogCopy<'r> {
    run: &'r RunId,
    path: &'r Path,
    to: BufWriter<File>,
    is_synced: bool,
    /// The number of the next record.
    seq: u64,
    /// The texts that it has, by the first half of their digest.
    stored: BTreeSet<u128>,
}

impl<'r> LogCopy<'r> {
    /// Begins a log in place of what an interrupted copy left at `path`.
    pub(super) fn create(
        path: &'r Path,
        run: &'r RunId,
        header: &[u8],
        is_synced: bool,
    ) -> Result<Self, Error> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error(path, "remove")(error));
            }
            _ => {}
        }
        let to = BufWriter::new(open_or_create_file(path)?);
        let mut copy = LogCopy { run, path, to, is_synced, seq: 0, stored: BTreeSet::new() };
        copy.put(header)?;
        Ok(copy)
    }

    /// The number of records that it has.
    pub(super) fn length(&self) -> u64 {
        self.seq
    }

    /// Adds a record of another log, which is in `source`, without the messages that it consumed there.
    pub(super) fn add_frame(&mut self, frame: &Frame<'_>, source: &File) -> Result<(), Error> {
        let read = |place: &BlobPlace| read_range(source, place.offset, u64::from(place.length));
        let texts: io::Result<Vec<Vec<u8>>> = frame.blobs.iter().map(read).collect();
        let blobs: Vec<Blob> =
            texts.map_err(io_error(self.path, "copy"))?.into_iter().map(Blob::new).collect();
        self.add_record(&NewRecord {
            at_ms: frame.head.at_ms,
            body: frame.body,
            blobs: &blobs,
            consumes: &[],
        })
    }

    pub(super) fn add_record(&mut self, record: &NewRecord<'_>) -> Result<(), Error> {
        let is_new = |blob: &&Blob| self.stored.insert(shorten_digest(&blob.digest()));
        let blobs: Vec<&Blob> = record.blobs.iter().filter(is_new).collect();
        let frame = encode_frame(self.run, self.seq, record, &blobs, self.is_synced)
            .ok_or_else(|| Error::TooLong { run: self.run.clone() })?;
        self.seq += 1;
        self.put(&frame)
    }

    /// Writes what is buffered, syncs the file if it is to be synced, and returns it.
    pub(super) fn finish(self) -> Result<File, Error> {
        let written = self.to.into_inner();
        let file = written.map_err(|error| io_error(self.path, "write")(error.into_error()))?;
        if self.is_synced {
            file.sync_all().map_err(io_error(self.path, "sync"))?;
        }
        Ok(file)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.to.write_all(bytes).map_err(io_error(self.path, "write"))
    }
}
