//! Maps a run to its state in the state graph.

use cuegate_engine::Run;
use cuegate_flow::{
    analysis::state_graph::{RunState, StateGraph},
    model::StepId,
};

/// The state of a run; `None` while there is no current step.
pub(super) fn state_of_run(reach: &StateGraph, run: &Run) -> Option<RunState> {
    let flow = reach.flow();
    let at = flow.find(&run.progress.node.as_ref()?.step)?;
    let visit = run.progress.visit.as_ref();
    let origins = run.progress.origins.iter();
    let history: Vec<StepId> = run.progress.history.iter().filter_map(|step| flow.find(step)).collect();
    Some(RunState {
        at,
        visit: visit.and_then(|visit| flow.find(&visit.step)).unwrap_or(at),
        judged: visit.is_some_and(|visit| visit.monitor.is_some()),
        counters: flow
            .counters
            .iter()
            .map(|counter| run.progress.counters.get(&counter.name).copied().unwrap_or(0))
            .collect(),
        origins: origins.filter_map(|(step, origin)| Some((flow.find(step)?, flow.find(origin)?))).collect(),
        newest: reach.keys().iter().map(|key| run.newest(key)).collect(),
        watched: flow.observed(&history),
        finished: run.progress.finished,
        checks: run.checks(),
        failing: run.checks.failing.keys().filter_map(|(step, _)| flow.find(step)).collect(),
        is_first: run.progress.iterations <= 1,
    })
}
