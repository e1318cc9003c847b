//! The calls of a run in which all goes well.

use crate::{
    analysis::graph::targets,
    model::{Act, Ending, Flow, Step, StepId, Target, Verdict},
};

/// The least number of calls with which a run can complete by its steps; `None` if something else than a step completes
/// it, or nothing does. Judges, repairs and reports that are asked for apart come on top.
pub fn least_calls(flow: &Flow) -> Option<u64> {
    if !matches!(flow.verdict, Verdict::Flow) {
        return None;
    }
    let cost = |step: &Step<StepId>| match &step.act {
        Act::Ask(_) => 1,
        Act::All { members, .. } => members.len() as u64,
        Act::Exec { .. } | Act::Person { .. } => 0,
    };
    // Dijkstra's algorithm; definitions are small, so that the nearest step is looked for.
    let mut least: Vec<Option<u64>> = vec![None; flow.steps.len()];
    let mut is_done = vec![false; flow.steps.len()];
    least[flow.entry.0 as usize] = Some(cost(flow.step(flow.entry)));
    loop {
        let open = least.iter().zip(&is_done).enumerate().filter(|(_, (_, done))| !**done);
        let (at, calls) =
            open.filter_map(|(at, (calls, _))| Some((at, (*calls)?))).min_by_key(|(_, calls)| *calls)?;
        is_done[at] = true;
        let step = &flow.steps[at];
        if step.edges.iter().any(|edge| matches!(edge.to, Target::End(Ending::Completed))) {
            return Some(calls);
        }
        for next in step.edges.iter().flat_map(|edge| targets(&edge.to)) {
            let sum = calls + cost(flow.step(next));
            let known = &mut least[next.0 as usize];
            *known = Some(known.map_or(sum, |known| known.min(sum)));
        }
    }
}
