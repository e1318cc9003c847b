//! Writes the records of a batch. Batches have a journal of their own, with the guarantees of that of runs.

use std::{ops::ControlFlow, sync::Arc};

use cuegate_engine::{Batch, BatchEvent, BatchRecord};
use cuegate_journal::{Journal, Lease, NewRecord, Owner, RunId};

use crate::{clock::now_ms, error::Error};

/// A batch that this process works on. Its lease keeps other processes from writing to it.
pub struct BatchWriter {
    journal: Arc<dyn Journal>,
    lease: Lease,
    seq: u64,
    batch: Batch,
}

/// The state of a batch, the time of its first record in milliseconds since 1970, and the number of its records.
///
/// # Errors
/// When the journal cannot be read, or holds a record of a newer format.
pub fn read_batch(journal: &dyn Journal, id: &RunId) -> Result<(Batch, i64, u64), Error> {
    let (mut batch, mut began, mut seq) = (Batch::default(), 0, 0);
    let mut unreadable = None;
    journal.read_each(id, 0, &mut |row| {
        let record = match BatchRecord::parse(&row.body) {
            Ok(record) => record,
            Err(source) => {
                unreadable = Some(Error::Record { run: id.to_string(), seq: row.seq, source });
                return ControlFlow::Break(());
            }
        };
        if seq == 0 {
            began = row.at_ms;
        }
        seq += 1;
        record.events.iter().for_each(|event| batch.apply(event));
        ControlFlow::Continue(())
    })?;
    if let Some(unreadable) = unreadable {
        return Err(unreadable);
    }
    Ok((batch, began, seq))
}

impl BatchWriter {
    /// Starts a batch.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn create(journal: Arc<dyn Journal>, id: &RunId, first: BatchEvent) -> Result<BatchWriter, Error> {
        journal.create(id, now_ms())?;
        let lease = journal.acquire(id, &Owner::current())?;
        let mut writer = BatchWriter { journal, lease, seq: 0, batch: Batch::default() };
        writer.write(first)?;
        Ok(writer)
    }

    /// Opens a batch that no other process works on.
    ///
    /// # Errors
    /// When another process holds it, or the journal cannot be read.
    pub fn open(journal: Arc<dyn Journal>, id: &RunId) -> Result<BatchWriter, Error> {
        let lease = journal.acquire(id, &Owner::current())?;
        // Read after taking the lease, so that no other process appends.
        let (batch, _, seq) = read_batch(&*journal, id)?;
        Ok(BatchWriter { journal, lease, seq, batch })
    }

    /// The batch as of the last record.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Journals an event, then applies it.
    ///
    /// # Errors
    /// When the journal fails; then nothing has changed.
    pub fn write(&mut self, event: BatchEvent) -> Result<(), Error> {
        let record = BatchRecord { v: BatchRecord::VERSION, events: vec![event] };
        let body = serde_json::to_vec(&record).expect("events of batches are JSON");
        let new = NewRecord { at_ms: now_ms(), body: &body, blobs: &[], consumes: &[] };
        self.journal.append(&self.lease, self.seq, new)?;
        self.seq += 1;
        record.events.iter().for_each(|event| self.batch.apply(event));
        Ok(())
    }
}

impl Drop for BatchWriter {
    fn drop(&mut self) {
        let _ = self.journal.release(&self.lease);
    }
}
