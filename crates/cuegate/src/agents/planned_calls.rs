//! The calls that a run may make, with the agents that may answer them.

use std::collections::BTreeMap;

use cuegate_engine::{AgentChoice, AgentPlan};
use cuegate_flow::{
    Str,
    analysis::judges_of_gate,
    model::{Ask, Flow, Step, StepId},
};

use super::plan::list_asking_steps;

/// A kind of call that an agent may get: the work of a step, or its reports.
pub(crate) struct PlannedCall<'f> {
    pub(crate) step: &'f Step<StepId>,
    pub(crate) ask: &'f Ask,
    pub(crate) choice: AgentChoice,
}

/// All calls of a workflow, by step; each once for every agent that may answer it.
pub(crate) fn list_planned_calls<'f>(
    flow: &'f Flow,
    usual: &AgentChoice,
    plan: &AgentPlan,
) -> Vec<PlannedCall<'f>> {
    let judged =
        flow.steps.iter().flat_map(|step| judges_of_gate(&step.gate).map(move |judge| (judge, &step.name)));
    let judged: BTreeMap<&Str, &Str> = judged.map(|(judge, step)| (&flow.step(judge).name, step)).collect();
    let mut calls = Vec::new();
    for (step, ask) in list_asking_steps(flow) {
        let usual_chain = || std::iter::once(usual).chain(&plan.stand_ins).cloned().collect::<Vec<_>>();
        // A judge without agents of its own goes on with those of the step.
        let name = match judged.get(&step.name) {
            Some(judged) if plan.chains_of_step(&step.name).next().is_none() => *judged,
            _ => &step.name,
        };
        let own = plan.steps.get(name).cloned().unwrap_or_else(usual_chain);
        let later = plan.later.get(name).into_iter().flatten().map(|(_, chain)| chain.clone());
        let of_reports = plan.reports.get(&step.name).cloned().unwrap_or_default();
        let mut seen: Vec<AgentChoice> = Vec::new();
        for choice in std::iter::once(own).chain(later).chain([of_reports]).flatten() {
            if !seen.contains(&choice) {
                calls.push(PlannedCall { step, ask, choice: choice.clone() });
                seen.push(choice);
            }
        }
    }
    calls
}
