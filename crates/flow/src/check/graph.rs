//! Walking a flow.

use std::collections::VecDeque;

use crate::{Act, Edge, Flow, Gate, Outcome, Reader, Step, StepId, Target};

/// The steps that a target can lead to.
pub(crate) fn targets(to: &Target<StepId>) -> Vec<StepId> {
    match to {
        Target::Step(step) => vec![*step],
        Target::End(_) => Vec::new(),
        Target::Origin { among } => among.clone(),
        Target::Select { cases, default, .. } => {
            cases.iter().map(|(_, step)| *step).chain(*default).collect()
        }
        Target::Jump { among, default, .. } => among.iter().copied().chain(*default).collect(),
    }
}

/// Every way out of a step: its edges, and for a parallel step its members.
pub(super) fn ways(flow: &Flow, from: StepId) -> Vec<(Option<&Edge<StepId>>, StepId)> {
    let step = flow.step(from);
    let mut ways: Vec<_> = step
        .edges
        .iter()
        .flat_map(|edge| targets(&edge.to).into_iter().map(move |to| (Some(edge), to)))
        .collect();
    if let Act::All { members, .. } = &step.act {
        ways.extend(members.iter().map(|member| (None, *member)));
    }
    for monitor in &flow.monitors {
        if monitor.cycle.last() == Some(&from) {
            ways.push((None, monitor.judge));
        }
    }
    ways.extend(judges(&step.gate).into_iter().map(|judge| (None, judge)));
    ways
}

/// The steps that are asked when a gate cannot read an outcome by itself.
pub(crate) fn judges(gate: &Gate<StepId>) -> Vec<StepId> {
    match gate {
        Gate::Readers(readers) => readers
            .iter()
            .filter_map(|reader| match reader {
                Reader::Judge { step } => Some(*step),
                _ => None,
            })
            .collect(),
        Gate::Join { judges, .. } => judges.clone(),
        Gate::Exit | Gate::Always(_) => Vec::new(),
    }
}

/// Which steps can be reached from some steps, them included.
pub(super) fn reachable(flow: &Flow, from: &[StepId]) -> Vec<bool> {
    let mut seen = vec![false; flow.steps.len()];
    let mut queue: VecDeque<StepId> = from.iter().copied().collect();
    while let Some(step) = queue.pop_front() {
        if std::mem::replace(&mut seen[step.0 as usize], true) {
            continue;
        }
        queue.extend(ways(flow, step).into_iter().map(|(_, to)| to));
    }
    seen
}

/// A shortest path from the entry to a step that passes no step of `avoid` before it, one hop an entry.
pub(super) fn shortest_trace(flow: &Flow, to: StepId, avoid: Option<StepId>) -> Option<Vec<String>> {
    let mut came_from: Vec<Option<(StepId, String)>> = vec![None; flow.steps.len()];
    let mut seen = vec![false; flow.steps.len()];
    let mut queue = VecDeque::from([flow.entry]);
    seen[flow.entry.0 as usize] = true;
    while let Some(at) = queue.pop_front() {
        if at == to {
            let mut trace = vec![flow.step(at).name.to_string()];
            let mut step = at;
            while let Some((previous, hop)) = came_from[step.0 as usize].take() {
                trace.push(hop);
                step = previous;
            }
            trace.reverse();
            return Some(trace);
        }
        if Some(at) == avoid {
            continue;
        }
        for (edge, next) in ways(flow, at) {
            if !std::mem::replace(&mut seen[next.0 as usize], true) {
                let name = &flow.step(at).name;
                let hop = match edge {
                    Some(edge) => format!("{name} --{}→", edge.on),
                    None => format!("{name} →"),
                };
                came_from[next.0 as usize] = Some((at, hop));
                queue.push_back(next);
            }
        }
    }
    None
}

/// Every outcome that a step's gate can yield.
pub(crate) fn outcomes(flow: &Flow, step: &Step<StepId>) -> Vec<Outcome> {
    let mut all = Vec::new();
    match &step.gate {
        Gate::Always(outcome) => all.push(outcome.clone()),
        Gate::Join { rules, .. } => all.extend(rules.iter().map(|rule| rule.outcome.clone())),
        Gate::Exit => {
            all.push(Outcome::Pass);
            if let Act::Exec { commands } = &step.act {
                all.extend((0..commands.len()).map(|index| Outcome::Fail(index as u16)));
            }
        }
        Gate::Readers(readers) => {
            for (index, reader) in readers.iter().enumerate() {
                match reader {
                    // The next reader takes what this one leaves.
                    Reader::Field { words, .. } => all.extend(
                        words
                            .iter()
                            .map(|(_, outcome)| outcome.clone())
                            .filter(|outcome| *outcome != Outcome::None || index + 1 == readers.len()),
                    ),
                    Reader::Tag { outcomes, .. } => {
                        all.extend(outcomes.iter().filter(|outcome| **outcome != Outcome::None).cloned());
                    }
                    Reader::Said { words, .. } => {
                        all.extend(words.iter().map(|(_, outcome)| outcome.clone()));
                    }
                    Reader::Judge { .. } | Reader::Silence(_) => {}
                    Reader::Otherwise(outcome)
                    | Reader::Fallback(outcome)
                    | Reader::FirstFallback(outcome) => all.push(outcome.clone()),
                }
            }
        }
    }
    for judge in judges(&step.gate) {
        all.extend(outcomes(flow, flow.step(judge)).into_iter().filter(|outcome| *outcome != Outcome::None));
    }
    all.sort();
    all.dedup();
    all
}
