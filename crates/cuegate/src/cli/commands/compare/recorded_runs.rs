//! What recorded runs of changed workflows would do now.

use cuegate_engine::Event;
use cuegate_runner::{read_first_record, replay::ReplayStop};
use cuegate_view::clean_to_one_line;
use serde_json::{Value, json};

use super::difference::{Fate, WorkflowDifference};
use crate::Failure;
use crate::cli::commands::{ProjectPlace, load_as, sound_flow};
use crate::cli::print;
use crate::config::Config;
use crate::project;
use crate::replay::replay_edited;
use crate::run::resume_run::reload_recorded_flow;

/// How many runs are replayed, the newest ones: what was done long ago says less, and each costs its time.
const RUNS_MAX: usize = 50;

/// The recorded runs of a workflow, decided again by its changed definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ReplayedRuns {
    pub(super) workflow: String,
    /// How many go the same way to their end.
    pub(super) same: usize,
    /// The ids of those that go another way.
    pub(super) other: Vec<String>,
    /// The ids of those that need an answer that was not recorded, because a prompt, a command or a step changed.
    pub(super) open: Vec<String>,
}

impl ReplayedRuns {
    /// ``3 recorded runs of `it`: 1 as it went, 1 takes another path (abcdefgh), …``
    pub(super) fn describe(&self) -> String {
        let list = |runs: &[String]| {
            let more = if runs.len() > 3 { ", …" } else { "" };
            format!("{}{more}", runs[..runs.len().min(3)].join(", "))
        };
        let mut parts = Vec::new();
        if self.same > 0 {
            parts.push(format!("{} as recorded", self.same));
        }
        if !self.other.is_empty() {
            parts.push(format!("{} by another path ({})", self.other.len(), list(&self.other)));
        }
        if !self.open.is_empty() {
            parts.push(format!("{} not known without new answers ({})", self.open.len(), list(&self.open)));
        }
        let count = self.same + self.other.len() + self.open.len();
        format!(
            "{} of `{}` would now go: {}",
            cuegate_view::plural(count as u64, "recorded run"),
            clean_to_one_line(&self.workflow),
            parts.join(", ")
        )
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "workflow": self.workflow, "same": self.same, "other": self.other, "open": self.open })
    }
}

/// Replays the runs of this project of each changed workflow through what `head` has of it.
///
/// # Errors
/// When the journal cannot be read. A run that cannot be replayed is told and left out.
pub(super) fn replay_recorded_runs(
    place: &ProjectPlace,
    head: &ProjectPlace,
    config: &Config,
    differences: &[WorkflowDifference],
) -> Result<Vec<ReplayedRuns>, Failure> {
    let changed: Vec<(&str, &str)> = differences
        .iter()
        .filter(|workflow| workflow.errors == 0 && workflow.after.is_some())
        .filter_map(|workflow| match &workflow.fate {
            Fate::Changed => Some((workflow.name.as_str(), workflow.name.as_str())),
            Fate::Renamed(from) => Some((from.as_str(), workflow.name.as_str())),
            Fate::New | Fate::Deleted | Fate::Same => None,
        })
        .collect();
    let mut found: Vec<ReplayedRuns> = Vec::new();
    let journal = match project::open_journal_read_only(&place.home)? {
        Some(journal) if !changed.is_empty() => journal,
        _ => return Ok(found),
    };
    let mut runs = journal.runs()?;
    runs.sort_by_key(|run| std::cmp::Reverse(run.created_at_ms));
    for run in runs.into_iter().filter(|run| run.has_records && run.damage.is_none()).take(RUNS_MAX) {
        let mut replay = || -> Result<Option<(usize, Replayed)>, Failure> {
            let first = read_first_record(&*journal, &run.run)?;
            let Some(Event::RunStarted(started)) = first.as_ref().and_then(|first| first.events.first())
            else {
                return Ok(None);
            };
            let recorded = reload_recorded_flow(&*journal, &run.run, started)?;
            let Some((_, now)) = changed.iter().find(|(before, _)| **before == *recorded.name) else {
                return Ok(None);
            };
            let at = match found.iter().position(|one| one.workflow == *now) {
                Some(at) => at,
                None => {
                    found.push(ReplayedRuns { workflow: (*now).to_owned(), ..ReplayedRuns::default() });
                    found.len() - 1
                }
            };
            let edited = sound_flow(&load_as(&head.locate(now)?, &started.set, &started.load)?, now)?;
            let edited =
                replay_edited(&place.home, &*journal, &run.run, (&recorded, &edited), false, config)?;
            Ok(Some((
                at,
                match (&edited.other, &edited.stop) {
                    (Some(_), _) => Replayed::Other,
                    (None, ReplayStop::Needs { .. }) => Replayed::Open,
                    (None, ReplayStop::Ended | ReplayStop::Waits) => Replayed::Same,
                },
            )))
        };
        match replay() {
            Ok(Some((at, Replayed::Same))) => found[at].same += 1,
            Ok(Some((at, Replayed::Other))) => found[at].other.push(run.run.to_string()),
            Ok(Some((at, Replayed::Open))) => found[at].open.push(run.run.to_string()),
            Ok(None) => {}
            Err(failure) => {
                print::print_line(&format!("note: run {} was not replayed: {}", run.run, failure.message));
            }
        }
    }
    found.retain(|one| one.same + one.other.len() + one.open.len() > 0);
    Ok(found)
}

enum Replayed {
    Same,
    Other,
    Open,
}
