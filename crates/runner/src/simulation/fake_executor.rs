//! An executor without processes: it answers every command immediately.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuegate_engine::{Command, Event, FenceKey, TreeState};
use cuegate_flow::model::Flow;
use cuegate_journal::{Journal, RunId};
use tokio::sync::watch;

use super::fake_world::FakeWorld;
use crate::{
    error::Error,
    executor::{CommandFuture, CommandResult, Executor, TreeInspection},
    prompt_text::join_prompt_parts,
};

/// The limit of commands per allowed iteration. A run that exceeds it is considered endless.
const COMMANDS_EACH: u32 = 200;
const COMMANDS_BESIDE: u32 = 20_000;

/// The world of one run.
pub(super) struct FakeExecutor {
    desk: Arc<Mutex<FakeWorld>>,
    journal: Arc<dyn Journal>,
    run: RunId,
    /// The number of commands left.
    left: Mutex<u32>,
    most: u32,
}

impl FakeExecutor {
    pub(super) fn new(
        desk: Arc<Mutex<FakeWorld>>,
        journal: Arc<dyn Journal>,
        run: RunId,
        iterations_max: u32,
    ) -> FakeExecutor {
        let most = COMMANDS_BESIDE.saturating_add(iterations_max.saturating_mul(COMMANDS_EACH));
        FakeExecutor { desk, journal, run, left: Mutex::new(most), most }
    }

    /// Reports journaled events to the fake world.
    pub(super) fn saw(&self, events: &[Event]) {
        lock_ignoring_poison(&self.desk).saw(events);
    }

    fn answer(&self, command: &Command) -> Result<CommandResult, Error> {
        let mut left = lock_ignoring_poison(&self.left);
        *left = left.checked_sub(1).ok_or(Error::Endless { commands: self.most })?;
        let mut desk = lock_ignoring_poison(&self.desk);
        let completion = match command {
            Command::Ask(ask) => {
                // Resolve every prompt to detect broken ones; the text itself is not needed.
                for parts in [&ask.system, &ask.without_session, &ask.prompt] {
                    join_prompt_parts(&*self.journal, &self.run, &FenceKey::default(), parts)?;
                }
                desk.ask(ask)
            }
            Command::Exec(exec) => desk.exec(exec),
            Command::Probe(probe) => desk.probe(probe),
            Command::Effect(effect) => desk.effect(effect),
            Command::Read(read) => desk.read(read),
        };
        Ok(CommandResult { completion, texts: Vec::new() })
    }
}

impl Executor for FakeExecutor {
    fn perform(
        self: Arc<Self>,
        _flow: Arc<Flow>,
        command: Command,
        _cut: watch::Receiver<bool>,
    ) -> CommandFuture {
        // Answer here, not on the first poll, so that the order of commands is deterministic.
        let performed = self.answer(&command).map(Some);
        Box::pin(async move { performed })
    }

    fn look(self: Arc<Self>, _before: Option<TreeState>) -> TreeInspection {
        Box::pin(async { Ok(None) })
    }
}

pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under the lock has already ended the simulation.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
