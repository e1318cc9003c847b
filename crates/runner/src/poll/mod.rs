//! Polls resources outside of a run: checks whether a file, a service or an issue has the state that a verdict waits for.
//!
//! A poll changes nothing and takes at most 30 s.

mod api;
mod file;
mod on_github;

pub use file::check_polled_path;

use std::path::Path;

use cuegate_flow::model::{PollState, Resource};

use crate::effect_plan::EffectPlan;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PollResult {
    /// Whether the resource has the wanted state. `Err` when it could not be read.
    pub(crate) holds: Result<bool, ()>,
    /// The state of the resource, in words.
    pub(crate) description: String,
}

impl PollResult {
    fn is(holds: bool, description: String) -> PollResult {
        PollResult { holds: Ok(holds), description }
    }

    fn failed(description: String) -> PollResult {
        PollResult { holds: Err(()), description }
    }
}

/// Polls one kind of resource.
pub(crate) trait Poller: Send + Sync {
    /// Polls the resource that `which` names, relative to the working folder of the run. Blocks.
    fn look(&self, which: &str, wanted: &PollState, work: &Path) -> PollResult;
}

/// The poller of a kind of resource.
pub(crate) fn create_poller(resource: Resource, plan: &EffectPlan) -> Box<dyn Poller> {
    let on_github = |project| {
        let none = || Err("the run has no repository on GitHub".to_owned());
        let github = plan.github.clone().unwrap_or_else(none);
        Box::new(on_github::GithubPoller { github, project, issue: plan.issue })
    };
    match resource {
        Resource::File => Box::new(file::FilePoller),
        Resource::Api => Box::new(api::ApiPoller),
        Resource::Issue => on_github(false),
        Resource::Project => on_github(true),
    }
}

/// The first 80 characters, on one line.
fn abbreviate_text(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let line: String =
        text.trim().chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().count() > CHARS_MAX { format!("{line}…") } else { line }
}
