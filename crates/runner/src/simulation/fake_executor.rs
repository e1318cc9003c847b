//! A performer without processes: everything is answered in the moment in which it is asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuegate_engine::{Command, Event, TreeState};
use cuegate_flow::model::Flow;
use cuegate_journal::Journal;
use tokio::sync::watch;

use super::fake_world::Desk;
use crate::{
    error::Error,
    executor::{Executor, Look, Performance, Performed},
    prompt_text::join,
};

/// How many commands a run may want for each iteration that it may have, and besides: one that wants more never ends.
const COMMANDS_EACH: u32 = 200;
const COMMANDS_BESIDE: u32 = 20_000;

/// The world of one run.
pub(super) struct World {
    desk: Arc<Mutex<Desk>>,
    journal: Arc<dyn Journal>,
    /// How many commands may still be wanted.
    left: Mutex<u32>,
    most: u32,
}

impl World {
    pub(super) fn new(desk: Arc<Mutex<Desk>>, journal: Arc<dyn Journal>, iterations_max: u32) -> World {
        let most = COMMANDS_BESIDE.saturating_add(iterations_max.saturating_mul(COMMANDS_EACH));
        World { desk, journal, left: Mutex::new(most), most }
    }

    /// Tells it what was journaled.
    pub(super) fn saw(&self, events: &[Event]) {
        lock(&self.desk).saw(events);
    }

    fn answer(&self, command: &Command) -> Result<Performed, Error> {
        let mut left = lock(&self.left);
        *left = left.checked_sub(1).ok_or(Error::Endless { commands: self.most })?;
        let mut desk = lock(&self.desk);
        let completion = match command {
            Command::Ask(ask) => {
                // Every prompt has to be one that can be said. It is not kept: nobody reads it.
                for parts in [&ask.system, &ask.without_session, &ask.prompt] {
                    join(&*self.journal, parts)?;
                }
                desk.ask(ask)
            }
            Command::Exec(exec) => desk.exec(exec),
            Command::Probe(probe) => desk.probe(probe),
            Command::Effect(effect) => desk.effect(effect),
        };
        Ok(Performed { completion, texts: Vec::new() })
    }
}

impl Executor for World {
    fn perform(
        self: Arc<Self>,
        _flow: Arc<Flow>,
        command: Command,
        _cut: watch::Receiver<bool>,
    ) -> Performance {
        // Here, not when it is polled: commands are started in an order that is the same every time.
        let performed = self.answer(&command).map(Some);
        Box::pin(async move { performed })
    }

    fn look(self: Arc<Self>, _before: Option<TreeState>) -> Look {
        Box::pin(async { Ok(None) })
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked there ended the simulation.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
