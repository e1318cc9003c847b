//! Chooses the entry that answers an ask. An entry is reserved at the start and used up by an answer or a fault.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::script::{Entry, OnExhausted, Script, hash_parts};
use crate::{AskKind, Fault, FaultClass, Request};

/// A script and its position.
pub(super) struct Pool {
    script: Script,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// Per entry: the number of answers, and of pending asks.
    counts: Vec<EntryCounts>,
    /// The last entry that answered, by group of asks.
    last: HashMap<u32, usize>,
}

#[derive(Clone, Copy, Default)]
struct EntryCounts {
    used: u64,
    reserved: u64,
}

impl Pool {
    pub fn new(script: Script) -> Arc<Pool> {
        let counts = vec![EntryCounts::default(); script.entries.len()];
        Arc::new(Pool { script, state: Mutex::new(PoolState { counts, last: HashMap::new() }) })
    }

    /// Counts the answers that a run has already journaled. Receipts of other scripts are ignored.
    pub fn restore(&self, receipts: &[String]) {
        let mut state = self.state();
        for receipt in receipts {
            self.mark(&mut state, receipt);
        }
    }

    /// Reserves the first unused entry whose conditions match.
    ///
    /// # Errors
    /// Returns [`FaultClass::ScriptExhausted`] if there is none.
    pub fn reserve(self: &Arc<Pool>, request: &Request) -> Result<Reservation, Fault> {
        let mut state = self.state();
        let sort = group_of(request);
        let index = self.first_left(&state, request).or_else(|| self.repeated(&state, request, sort));
        let Some(index) = index else { return Err(self.exhausted(&state, request)) };
        let counts = &mut state.counts[index];
        let nth = counts.used + counts.reserved;
        counts.reserved += 1;
        drop(state);
        Ok(Reservation { pool: Arc::clone(self), index, nth, sort, open: true })
    }

    fn first_left(&self, state: &PoolState, request: &Request) -> Option<usize> {
        let left = |&index: &usize| {
            let (entry, counts) = (&self.script.entries[index], state.counts[index]);
            let is_left = entry.times == 0 || counts.used + counts.reserved < entry.uses();
            is_left && entry.matches(request)
        };
        let conductor = |index: &usize| self.script.entries[*index].kind == Some(AskKind::Judge);
        let indices = 0..self.script.entries.len();
        if self.script.scenario && request.kind == AskKind::Judge {
            return indices.clone().filter(conductor).chain(indices).find(left);
        }
        indices.into_iter().find(left)
    }

    fn repeated(&self, state: &PoolState, request: &Request, sort: u32) -> Option<usize> {
        if self.script.on_exhausted != OnExhausted::RepeatLast {
            return None;
        }
        let last_matching = || self.script.entries.iter().rposition(|entry| entry.matches(request));
        state.last.get(&sort).copied().or_else(last_matching)
    }

    fn exhausted(&self, state: &PoolState, request: &Request) -> Fault {
        let kind = request.kind.as_str();
        let persona = request.persona.as_ref().map(|name| format!(", persona {name}")).unwrap_or_default();
        let (entries, used) =
            (self.script.len(), state.counts.iter().filter(|counts| counts.used > 0).count());
        let noun = if entries == 1 { "entry" } else { "entries" };
        let hint = match self.script.entries.iter().filter(|entry| entry.matches(request)).count() {
            0 => "no entry matches this call".to_owned(),
            n => {
                format!("{n} would match and had their `times`; add one, or set `on_exhausted: repeat_last`")
            }
        };
        Fault::new(
            FaultClass::ScriptExhausted,
            format!(
                "no scripted answer left for step `{}` (kind {kind}{persona}): {entries} {noun}, {used} used; \
                 hint: {hint}",
                request.step
            ),
        )
    }

    /// Counts an answer by its receipt. Both live and restored answers use up their entry here.
    fn mark(&self, state: &mut PoolState, receipt: &str) {
        let mut parts = receipt.split(':');
        if parts.next() != Some(self.script.digest()) {
            return;
        }
        let Some(index) = parts.next().and_then(|index| index.parse::<usize>().ok()) else { return };
        let Some(counts) = state.counts.get_mut(index) else { return };
        counts.used += 1;
        if let Some(sort) = parts.next().and_then(|sort| u32::from_str_radix(sort, 16).ok()) {
            state.last.insert(sort, index);
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        // No code panics while it holds the lock, so the state of a poisoned mutex is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reserved entry. Dropping it unsettled frees the entry.
pub(super) struct Reservation {
    pool: Arc<Pool>,
    index: usize,
    /// How often the entry was used before.
    nth: u64,
    sort: u32,
    open: bool,
}

impl Reservation {
    pub fn entry(&self) -> &Entry {
        &self.pool.script.entries[self.index]
    }

    /// Whether this use asks a person: the first one of each pair, if the entry also answers.
    pub fn asks_person(&self) -> bool {
        let entry = self.entry();
        entry.asks_user.is_some() && (!entry.asks_first() || self.nth.is_multiple_of(2))
    }

    /// The one-based number of the entry.
    pub fn number(&self) -> usize {
        self.index + 1
    }

    /// `<script>:<entry>:<group of asks>`. The third part keeps `repeat_last` stable after a resume.
    pub fn receipt(&self) -> String {
        format!("{}:{}:{:08x}", self.pool.script.digest(), self.index, self.sort)
    }

    /// Counts the answer or fault of this receipt. After a crash the answer may come from an earlier process's output
    /// spool and name another entry; the entry that answered counts.
    pub fn settle(mut self, receipt: &str) {
        let mut state = self.pool.state();
        state.counts[self.index].reserved -= 1;
        self.pool.mark(&mut state, receipt);
        drop(state);
        self.open = false;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.open {
            self.pool.state().counts[self.index].reserved -= 1;
        }
    }
}

/// The group of an ask: its step, kind and persona.
fn group_of(request: &Request) -> u32 {
    let persona = request.persona.as_deref().unwrap_or_default();
    let hash = hash_parts(&[&request.step, request.kind.as_str(), persona]);
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests;
