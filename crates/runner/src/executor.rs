//! The executor interface: performs the commands of the engine.

use std::{future::Future, pin::Pin, sync::Arc};

use cuegate_engine::{Command, CommandId, Completion, Run, TreeChange, TreeState};
use cuegate_flow::model::Flow;
use tokio::sync::watch;

use crate::error::Error;

/// A completion and the texts that it names by digest.
#[derive(Debug)]
pub struct CommandResult {
    /// What happened.
    pub completion: Completion,
    /// Texts to journal together with the completion.
    pub texts: Vec<Vec<u8>>,
}

/// A command in progress. `None` when it was cut off before it had a result.
pub type CommandFuture = Pin<Box<dyn Future<Output = Result<Option<CommandResult>, Error>> + Send>>;

/// An inspection of the working tree. `None` without git.
pub type TreeInspection = Pin<Box<dyn Future<Output = Result<Option<TreeChange>, Error>> + Send>>;

/// Performs commands, on this machine or in a simulation. Both share the loop in `drive`.
pub trait Executor: Send + Sync {
    /// Performs a command. When `cut` turns true, ends what it started and returns soon.
    fn perform(
        self: Arc<Self>,
        flow: Arc<Flow>,
        command: Command,
        cut: watch::Receiver<bool>,
    ) -> CommandFuture;

    /// Inspects the working tree: its state and the changes since `before`. Call it only when no command runs there.
    fn look(self: Arc<Self>, before: Option<TreeState>) -> TreeInspection;

    /// Writes the report files of a run so that they match its records.
    ///
    /// # Errors
    /// When they cannot be written.
    fn keep(&self, _run: &Run) -> Result<(), Error> {
        Ok(())
    }

    /// Called when the completion of a command is journaled: its spool is no longer needed.
    fn forget(&self, _id: CommandId) {}
}
