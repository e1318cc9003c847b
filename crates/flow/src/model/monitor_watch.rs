//! What monitors observe in the visits of a run.

use crate::model::{Monitor, StepId};

/// Whether the monitored cycle has completed its rounds when a visit ends.
pub(crate) fn seen(monitor: &Monitor<StepId>, history: &[StepId], visit: StepId) -> bool {
    let walked = history.iter().chain([&visit]).rev();
    let cycle = monitor.cycle.iter().rev().cycle();
    let length = walked.zip(cycle).take_while(|(walked, cycle)| walked == cycle).count();
    length / monitor.cycle.len().max(1) >= monitor.threshold as usize
}

/// Drops visits that no monitor needs any more.
pub(crate) fn forget(monitors: &[Monitor<StepId>], history: &mut Vec<StepId>) {
    let begins = |monitor: &Monitor<StepId>, tail: &[StepId]| {
        let rounds = monitor.cycle.len() * monitor.threshold as usize;
        tail.len() <= rounds && monitor.cycle.iter().cycle().zip(tail).all(|(cycle, step)| cycle == step)
    };
    let useful = |from: &usize| monitors.iter().any(|monitor| begins(monitor, &history[*from..]));
    let from = (0..history.len()).find(useful).unwrap_or(history.len());
    history.drain(..from);
}
