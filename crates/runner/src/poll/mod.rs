//! Polls resources outside of a run: checks whether a file or service has the state that a verdict waits for.
//!
//! A poll changes nothing and takes at most 30 s.

mod api;
mod file;

pub use file::within;

use std::path::Path;

use cuegate_flow::model::{PollState, Resource};

/// The result of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether the resource has the wanted state. `Err` when it could not be read.
    pub(crate) holds: Result<bool, ()>,
    /// The state of the resource, in words.
    pub(crate) description: String,
}

impl Seen {
    fn is(holds: bool, description: String) -> Seen {
        Seen { holds: Ok(holds), description }
    }

    fn failed(description: String) -> Seen {
        Seen { holds: Err(()), description }
    }
}

/// Polls one kind of resource.
pub(crate) trait Poller: Send + Sync {
    /// Polls the resource that `which` names, relative to the working folder of the run. Blocks.
    fn look(&self, which: &str, wanted: &PollState, work: &Path) -> Seen;
}

/// The poller of a kind of resource.
pub(crate) fn poller(resource: Resource) -> &'static dyn Poller {
    match resource {
        Resource::File => &file::File,
        Resource::Api => &api::Api,
    }
}

/// The first 80 characters, on one line.
fn brief(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let line: String =
        text.trim().chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().count() > CHARS_MAX { format!("{line}…") } else { line }
}
