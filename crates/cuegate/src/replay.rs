//! Replays recorded runs through an edited workflow, and says what the rest of such a run could cost.

use std::sync::Arc;

use cuegate_engine::{RunStarted, State};
use cuegate_flow::{
    analysis::cost_bound::{Certificate, Terms, price_without_sensitivity},
    model::{BlobRef, Flow},
};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{
    Entry, StateDir,
    replay::{EditedReplay, FlowLoader, ReplayStop, replay_in_flow},
};
use cuegate_view::{Liveness, RunView, StampedRecord, VisitRow, run_view};
use serde_json::{Value, json};

use crate::{
    Failure,
    config::Config,
    project::view_of,
    run::limits::{ModelChoice, cost_terms_of_flow},
    run::{resume_run::reload_recorded_flow, start_run::reads_report_dir},
};

/// What a recorded run does in an edited workflow.
pub(crate) struct EditedRun {
    /// Its state there, as far as the recording reaches.
    pub(crate) view: RunView,
    /// The first visit that differs: as it was recorded, and as it is now. `None` on a side without a visit.
    pub(crate) other: Option<(Option<VisitRow>, Option<VisitRow>)>,
    pub(crate) used: usize,
    pub(crate) recorded: usize,
    pub(crate) asked_otherwise: Vec<(String, u32, &'static str)>,
    pub(crate) stop: ReplayStop,
    /// The most that the rest can do, if the recording does not reach the end.
    pub(crate) rest: Option<Certificate>,
}

impl EditedRun {
    /// Whether the run takes the recorded path to its end.
    pub(crate) fn is_same(&self) -> bool {
        self.other.is_none() && !matches!(self.stop, ReplayStop::Needs { .. })
    }

    pub(crate) fn to_json(&self) -> Value {
        let row = |row: &Option<VisitRow>| {
            row.as_ref().map(|row| {
                json!({"step": row.step, "visit": row.visit, "outcome": row.outcome, "target": row.target})
            })
        };
        let other = self.other.as_ref().map(|(was, is)| json!({"recorded": row(was), "now": row(is)}));
        let asked = self.asked_otherwise.iter();
        let needs = match &self.stop {
            ReplayStop::Needs { step, visit, is_call, why } => {
                json!({"step": step, "visit": visit, "call": is_call, "why": why})
            }
            ReplayStop::Ended | ReplayStop::Waits => Value::Null,
        };
        let usd = |micro: u64| micro as f64 / 1e6;
        json!({
            "same": self.is_same(),
            "state": self.view.state.as_str(),
            "results_used": self.used,
            "results_recorded": self.recorded,
            "other": other,
            "asked_otherwise": asked
                .map(|(step, visit, what)| json!({"step": step, "visit": visit, "differs": what}))
                .collect::<Vec<_>>(),
            "needs": needs,
            "rest": self.rest.as_ref().map(|rest| {
                json!({"calls_max": rest.asks_max(), "cost_usd_max": rest.usd_micro.map(usd)})
            }),
        })
    }
}

/// Calls `replay` with what loads the definitions that a run adopted.
///
/// # Errors
/// As `replay`, and when such a definition cannot be loaded.
pub(crate) fn with_adopted_flows<T>(
    journal: &dyn Journal,
    id: &RunId,
    replay: impl FnOnce(&mut FlowLoader<'_>) -> Result<T, cuegate_runner::Error>,
) -> Result<T, Failure> {
    let mut failed = None;
    let mut load = |started: &RunStarted| {
        reload_recorded_flow(journal, id, started).map_err(|failure| failed = Some(failure)).ok()
    };
    let replayed = replay(&mut load);
    match failed {
        Some(failure) => Err(failure),
        None => Ok(replayed?),
    }
}

/// Replays a run in an edited flow.
///
/// # Errors
/// When the journal cannot be read, or the edited workflow needs a parameter that the run has no value of.
pub(crate) fn replay_edited(
    home: &StateDir,
    journal: &dyn Journal,
    id: &RunId,
    flows: (&Arc<Flow>, &Arc<Flow>),
    same_answers: bool,
    config: &Config,
) -> Result<EditedRun, Failure> {
    let (recorded, edited) = flows;
    let first = cuegate_runner::read_first_record(journal, id)?;
    let started = match first.as_ref().and_then(|first| first.events.first()) {
        Some(cuegate_engine::Event::RunStarted(started)) => (**started).clone(),
        _ => return Err(Failure::environment(format!("run {id} has no first record"))),
    };
    let start = start_in_flow(home, id, started, recorded, edited)?;
    let replay = with_adopted_flows(journal, id, |load| {
        replay_in_flow(journal, id, recorded, edited, start.clone(), load, same_answers)
    })?;
    let was = view_of(journal, id)?;
    let view = view_of_entries(id, &replay.entries);
    let other = find_other_visit(&was, &view, &replay.stop);
    // A limit that was raised in the recorded run can be reached.
    let iterations_max = was.iterations_max.max(replay.run.progress.iterations_max);
    let rest = match replay.stop {
        ReplayStop::Needs { .. } => price_rest(&start, &replay, edited, iterations_max, config),
        ReplayStop::Ended | ReplayStop::Waits => None,
    };
    let EditedReplay { used, recorded, asked_otherwise, stop, .. } = replay;
    Ok(EditedRun { view, other, used, recorded, asked_otherwise, stop, rest })
}

/// How the run would have started with an edited flow.
fn start_in_flow(
    home: &StateDir,
    id: &RunId,
    started: RunStarted,
    recorded: &Flow,
    edited: &Flow,
) -> Result<RunStarted, Failure> {
    let mut params = started.params.clone();
    for param in edited.params.iter().filter(|param| !started.params.contains_key(&param.name)) {
        match &param.default {
            Some(default) => {
                params.insert(param.name.clone(), BlobRef::for_bytes(default.as_bytes()));
            }
            None if param.required => {
                return Err(Failure::usage(
                    format!(
                        "run {id} has no value for the parameter `{}` of the edited workflow",
                        param.name
                    ),
                    "give the parameter a default, or start a new run",
                ));
            }
            None => {}
        }
    }
    // A limit that nobody gave is the workflow's.
    let iterations_max = match started.iterations_max == recorded.limits.iterations_max {
        true => edited.limits.iterations_max,
        false => started.iterations_max,
    };
    let terms = Terms { iterations_max, repairs_max: started.repairs_max, ..Terms::default() };
    Ok(RunStarted {
        flow: edited.name.clone(),
        params,
        iterations_max,
        asks_max: price_without_sensitivity(edited, &terms).asks_max(),
        // As the recorded prompts name it, also on another machine.
        report_dir: started
            .report_dir
            .clone()
            .or_else(|| reads_report_dir(edited).then(|| home.reports(id).display().to_string().into())),
        ..started
    })
}

fn view_of_entries(id: &RunId, entries: &[Entry]) -> RunView {
    let records: Vec<StampedRecord> = entries
        .iter()
        .map(|entry| StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events.clone() })
        .collect();
    run_view(id.as_str(), &records, Liveness::None)
}

/// The first visit that leads elsewhere.
fn find_other_visit(
    was: &RunView,
    is: &RunView,
    stop: &ReplayStop,
) -> Option<(Option<VisitRow>, Option<VisitRow>)> {
    let path =
        |row: &VisitRow| (row.step.clone(), row.visit, row.attempt, row.outcome.clone(), row.target.clone());
    let common = was.rows.iter().zip(&is.rows).take_while(|(was, is)| path(was) == path(is)).count();
    let (was_next, is_next) = (was.rows.get(common), is.rows.get(common));
    match (was_next, is_next) {
        (None, None) => {
            let is_same = match stop {
                ReplayStop::Needs { .. } => true,
                ReplayStop::Ended => was.state == is.state,
                ReplayStop::Waits => was.state.as_str() == is.state.as_str(),
            };
            (!is_same).then_some((None, None))
        }
        // It may still go there.
        (Some(_), None) if matches!(stop, ReplayStop::Needs { .. }) => None,
        (was, is) => Some((was.cloned(), is.cloned())),
    }
}

/// The most that a run can still do from where the recording stops.
fn price_rest(
    started: &RunStarted,
    replay: &EditedReplay,
    edited: &Flow,
    iterations_max: u32,
    config: &Config,
) -> Option<Certificate> {
    let run = &replay.run;
    if matches!(run.state, State::Ended { .. }) {
        return None;
    }
    let entry = edited.find(&run.progress.node.as_ref()?.step)?;
    let asked = ModelChoice {
        provider: Some(&started.provider),
        model: started.model.as_deref(),
        plan: Some(&started.agents),
    };
    let left = iterations_max.saturating_sub(run.progress.iterations.saturating_sub(1));
    let budget = cuegate_engine::Budget::default();
    let terms = cost_terms_of_flow(edited, asked, &budget, Some(left), Some(started.repairs_max), config);
    Some(price_without_sensitivity(&Flow { entry, ..edited.clone() }, &terms))
}
