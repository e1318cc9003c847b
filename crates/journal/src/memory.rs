//! A journal in memory, for tests and simulations.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    Digest, Error, Journal, Lease, Liveness, Message, MessageId, NewRecord, Owner, Record, RunId, RunSummary,
};

/// Keeps records in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<RunId, Run>,
    posted: u64,
}

#[derive(Debug)]
struct Run {
    /// The number of runs created before it.
    age: usize,
    created_at_ms: i64,
    records: Vec<Record>,
    blobs: HashMap<Digest, Vec<u8>>,
    token: u64,
    owner: Option<Owner>,
    inbox: Vec<Message>,
}

impl Journal for MemoryJournal {
    fn create(&self, run: &RunId, at_ms: i64) -> Result<(), Error> {
        let mut state = self.lock();
        if state.runs.contains_key(run) {
            return Err(Error::Exists { run: run.clone() });
        }
        let age = state.runs.len();
        let created = Run {
            age,
            created_at_ms: at_ms,
            records: Vec::new(),
            blobs: HashMap::new(),
            token: 0,
            owner: None,
            inbox: Vec::new(),
        };
        state.runs.insert(run.clone(), created);
        Ok(())
    }

    fn append(&self, lease: &Lease, expected_seq: u64, record: NewRecord<'_>) -> Result<(), Error> {
        let mut state = self.lock();
        let run = state.run_mut(&lease.run)?;
        if run.owner.is_none() || run.token != lease.token {
            return Err(Error::LeaseLost { run: lease.run.clone(), token: lease.token });
        }
        let found = run.records.len() as u64;
        if found != expected_seq {
            return Err(Error::Conflict { run: lease.run.clone(), expected: expected_seq, found });
        }
        let mut inbox = run.inbox.clone();
        for &id in record.consumes {
            let Some(place) = inbox.iter().position(|message| message.id == id) else {
                return Err(Error::NoSuchMessage { run: lease.run.clone(), id });
            };
            inbox.remove(place);
        }
        run.inbox = inbox;
        run.records.push(Record { seq: found, at_ms: record.at_ms, body: record.body.to_vec() });
        run.blobs.extend(record.blobs.iter().map(|blob| (blob.digest(), blob.bytes().to_vec())));
        Ok(())
    }

    fn append_copy(&self, lease: &Lease, from: &RunId, count: u64, then: NewRecord<'_>) -> Result<(), Error> {
        let mut state = self.lock();
        let source = state.run_mut(from)?;
        let found = source.records.len() as u64;
        if found < count {
            return Err(Error::Conflict { run: from.clone(), expected: count, found });
        }
        let mut records = source.records.clone();
        records.truncate(count as usize);
        // Texts of later records do no harm here.
        let mut blobs = source.blobs.clone();
        blobs.extend(then.blobs.iter().map(|blob| (blob.digest(), blob.bytes().to_vec())));
        records.push(Record { seq: count, at_ms: then.at_ms, body: then.body.to_vec() });
        let run = state.run_mut(&lease.run)?;
        if run.owner.is_none() || run.token != lease.token {
            return Err(Error::LeaseLost { run: lease.run.clone(), token: lease.token });
        }
        let found = run.records.len() as u64;
        if found > 0 {
            return Err(Error::Conflict { run: lease.run.clone(), expected: 0, found });
        }
        (run.records, run.blobs) = (records, blobs);
        Ok(())
    }

    fn remove(&self, lease: &Lease) -> Result<(), Error> {
        let mut state = self.lock();
        let run = state.run_mut(&lease.run)?;
        if run.owner.is_none() || run.token != lease.token {
            return Err(Error::LeaseLost { run: lease.run.clone(), token: lease.token });
        }
        state.runs.remove(&lease.run);
        Ok(())
    }

    fn read_each(
        &self,
        run: &RunId,
        from_seq: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let records: Vec<Record> = {
            let mut state = self.lock();
            let records = &state.run_mut(run)?.records;
            records.iter().filter(|record| record.seq >= from_seq).cloned().collect()
        };
        let _ = records.into_iter().try_for_each(each);
        Ok(())
    }

    fn blob(&self, run: &RunId, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.lock().run_mut(run)?.blobs.get(digest).cloned())
    }

    fn runs(&self) -> Result<Vec<RunSummary>, Error> {
        let state = self.lock();
        let mut runs: Vec<_> = state.runs.iter().collect();
        runs.sort_by_key(|(_, run)| std::cmp::Reverse((run.created_at_ms, run.age)));
        let summary = |(id, run): (&RunId, &Run)| RunSummary {
            run: id.clone(),
            created_at_ms: run.created_at_ms,
            has_records: !run.records.is_empty(),
            owner: run.owner.clone(),
            damage: None,
            version: None,
        };
        Ok(runs.into_iter().map(summary).collect())
    }

    fn acquire(&self, run: &RunId, owner: &Owner) -> Result<Lease, Error> {
        let mut state = self.lock();
        let kept = state.run_mut(run)?;
        if let Some(lease) = kept.lease(run)
            && lease.owner.liveness() != Liveness::Dead
        {
            return Err(Error::Held { lease: Box::new(lease) });
        }
        kept.token += 1;
        kept.owner = Some(owner.clone());
        Ok(Lease { run: run.clone(), token: kept.token, owner: owner.clone() })
    }

    fn release(&self, lease: &Lease) -> Result<(), Error> {
        let mut state = self.lock();
        let run = state.run_mut(&lease.run)?;
        if run.token == lease.token {
            run.owner = None;
        }
        Ok(())
    }

    fn holder(&self, run: &RunId) -> Result<Option<Lease>, Error> {
        Ok(self.lock().run_mut(run)?.lease(run))
    }

    fn post(&self, run: &RunId, at_ms: i64, body: &[u8]) -> Result<MessageId, Error> {
        let mut state = self.lock();
        let id = MessageId(state.posted + 1);
        state.run_mut(run)?.inbox.push(Message { id, at_ms, body: body.to_vec() });
        state.posted += 1;
        Ok(id)
    }

    fn inbox(&self, run: &RunId) -> Result<Vec<Message>, Error> {
        Ok(self.lock().run_mut(run)?.inbox.clone())
    }
}

impl MemoryJournal {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each operation changes the state only after its last check, so a panic leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run_mut(&mut self, run: &RunId) -> Result<&mut Run, Error> {
        self.runs.get_mut(run).ok_or_else(|| Error::NoSuchRun { run: run.clone() })
    }
}

impl Run {
    fn lease(&self, run: &RunId) -> Option<Lease> {
        let owner = self.owner.clone()?;
        Some(Lease { run: run.clone(), token: self.token, owner })
    }
}
