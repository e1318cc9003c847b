//! Looking at what lies outside of a run: whether it is as its verdict wants it.
//!
//! A look never changes anything, and takes no longer than half a minute.

mod api;
mod file;

pub use file::within;

use std::path::Path;

use cuegate_flow::model::{PollState, Resource};

/// What a look saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether the resource is as it is wanted. `Err` where it could not be looked at.
    pub(crate) holds: Result<bool, ()>,
    /// What was seen, in words.
    pub(crate) said: String,
}

impl Seen {
    fn is(holds: bool, said: String) -> Seen {
        Seen { holds: Ok(holds), said }
    }

    fn failed(said: String) -> Seen {
        Seen { holds: Err(()), said }
    }
}

/// Looks at one kind of resource.
pub(crate) trait Poller: Send + Sync {
    /// Looks at the resource that `which` names, from the folder that the run works in. Blocks.
    fn look(&self, which: &str, wanted: &PollState, work: &Path) -> Seen;
}

/// Who looks at a kind of resource.
pub(crate) fn poller(resource: Resource) -> &'static dyn Poller {
    match resource {
        Resource::File => &file::File,
        Resource::Api => &api::Api,
    }
}

/// So much of a text that it can be quoted.
fn brief(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let line: String =
        text.trim().chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().count() > CHARS_MAX { format!("{line}…") } else { line }
}
