//! Who does what the engine wants done.

use std::{future::Future, pin::Pin, sync::Arc};

use cuegate_engine::{Command, CommandId, Completion, Run, Seen, TreeState};
use cuegate_flow::model::Flow;
use tokio::sync::watch;

use crate::error::Error;

/// A completion, and the texts that it names.
#[derive(Debug)]
pub struct Performed {
    /// What happened.
    pub completion: Completion,
    /// Texts to keep with it.
    pub texts: Vec<Vec<u8>>,
}

/// A performance. `None` when it was cut before there was anything to tell.
pub type Performance = Pin<Box<dyn Future<Output = Result<Option<Performed>, Error>> + Send>>;

/// A look at the working tree. `None` where nobody can tell.
pub type Look = Pin<Box<dyn Future<Output = Result<Option<Seen>, Error>> + Send>>;

/// Performs commands. The local runner and a simulation are two of these; the loop around them is one.
pub trait Executor: Send + Sync {
    /// Performs a command. When `cut` turns true it ends what it started and comes back soon.
    fn perform(self: Arc<Self>, flow: Arc<Flow>, command: Command, cut: watch::Receiver<bool>)
    -> Performance;

    /// Looks at the working tree, when nothing is at work there any more: as it is, and what differs from `before`.
    fn look(self: Arc<Self>, before: Option<TreeState>) -> Look;

    /// Brings the files that a run is kept in for others to read in line with its records: its reports.
    ///
    /// # Errors
    /// When they cannot be written.
    fn keep(&self, _run: &Run) -> Result<(), Error> {
        Ok(())
    }

    /// Told when the completion of a command is journaled: what was kept for adopting it can go.
    fn forget(&self, _id: CommandId) {}
}
