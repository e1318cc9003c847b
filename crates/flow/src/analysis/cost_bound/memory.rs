//! The memory parts of states, interned by number.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::rc::Rc;

use foldhash::fast::FixedState;

use crate::model::monitor_watch;
use crate::model::{Monitor, StepId};

/// The values of tracked counters by place, without zeros.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CounterValues(Vec<(u32, u32)>);

impl CounterValues {
    /// The value of one counter.
    pub(super) fn of(&self, place: u32) -> u32 {
        self.0.iter().find(|(known, _)| *known == place).map_or(0, |(_, count)| *count)
    }

    fn with(&self, place: u32, count: u32) -> CounterValues {
        let others = self.0.iter().copied().filter(|(known, _)| *known != place);
        let mut all: Vec<(u32, u32)> = others.chain((count > 0).then_some((place, count))).collect();
        all.sort_unstable();
        CounterValues(all)
    }
}

/// The last origin of each step that was handed off to, sorted by step.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LastOrigins(Vec<(StepId, StepId)>);

impl LastOrigins {
    /// The step that last handed off to a step.
    pub(super) fn of(&self, to: StepId) -> Option<StepId> {
        let at = self.0.binary_search_by_key(&to, |(to, _)| *to).ok()?;
        Some(self.0[at].1)
    }

    fn with(&self, to: StepId, from: StepId) -> LastOrigins {
        let mut all = self.0.clone();
        match all.binary_search_by_key(&to, |(to, _)| *to) {
            Ok(at) => all[at].1 = from,
            Err(at) => all.insert(at, (to, from)),
        }
        LastOrigins(all)
    }
}

/// Interned values with numbers. The default value has number 0.
#[derive(Debug)]
pub(super) struct InternTable<T> {
    all: Vec<Rc<T>>,
    numbers: HashMap<Rc<T>, u32, FixedState>,
}

impl<T: Default + Eq + Hash> Default for InternTable<T> {
    fn default() -> InternTable<T> {
        let mut none = InternTable { all: Vec::new(), numbers: HashMap::default() };
        none.number(T::default());
        none
    }
}

impl<T: Eq + Hash> InternTable<T> {
    /// The value of a number.
    pub(super) fn of(&self, number: u32) -> &T {
        &self.all[number as usize]
    }

    /// The shared value of a number.
    pub(super) fn get(&self, number: u32) -> Rc<T> {
        self.all[number as usize].clone()
    }

    fn number(&mut self, thing: T) -> u32 {
        if let Some(known) = self.numbers.get(&thing) {
            return *known;
        }
        let (thing, number) = (Rc::new(thing), self.all.len() as u32);
        self.all.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }
}

/// The interned memory of all states.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The counter values.
    pub(super) spent: InternTable<CounterValues>,
    /// The last origins.
    pub(super) origins: InternTable<LastOrigins>,
    /// What monitors have observed.
    pub(super) histories: InternTable<Vec<u32>>,
    /// The steps whose validators fail.
    failing: InternTable<BTreeSet<StepId>>,
    /// Cached results of appending a visit.
    further: HashMap<(u32, StepId), u32, FixedState>,
}

impl Memory {
    /// Increments a counter.
    pub(super) fn spend(&mut self, spent: u32, place: u32) -> u32 {
        let before = self.spent.of(spent);
        let after = before.with(place, before.of(place) + 1);
        self.spent.number(after)
    }

    /// Resets a counter.
    pub(super) fn reset(&mut self, spent: u32, place: u32) -> u32 {
        let before = self.spent.of(spent);
        if before.of(place) == 0 {
            return spent;
        }
        let after = before.with(place, 0);
        self.spent.number(after)
    }

    /// Records a handoff to a step.
    pub(super) fn hand_off(&mut self, origins: u32, to: StepId, from: StepId) -> u32 {
        let before = self.origins.of(origins);
        if before.of(to) == Some(from) {
            return origins;
        }
        let after = before.with(to, from);
        self.origins.number(after)
    }

    /// Records whether the validators of a step failed.
    pub(super) fn validate(&mut self, failing: u32, step: StepId, failed: bool) -> u32 {
        let before = self.failing.of(failing);
        if before.contains(&step) == failed {
            return failing;
        }
        let mut after = before.clone();
        if failed {
            after.insert(step)
        } else {
            after.remove(&step)
        };
        self.failing.number(after)
    }

    /// Records a finished visit.
    pub(super) fn visit(&mut self, monitors: &[Monitor<StepId>], history: u32, visit: StepId) -> u32 {
        if monitors.is_empty() {
            return history;
        }
        if let Some(known) = self.further.get(&(history, visit)) {
            return *known;
        }
        let mut after = self.histories.of(history).clone();
        monitor_watch::advance_monitors(monitors, &mut after, visit);
        let number = self.histories.number(after);
        self.further.insert((history, visit), number);
        number
    }
}
