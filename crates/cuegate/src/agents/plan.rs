//! Computes from settings and a workflow which agents are called for each of its steps.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{AgentChoice, AgentPlan};
use cuegate_flow::{
    Str,
    analysis::judges_of_gate,
    model::{Act, Ask, Flow, Role, Step, StepId},
};

use crate::Failure;
use crate::config::{AgentAssignment, AgentRole};

/// What says which agents are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentSources {
    /// The agent of calls that nothing else names one for.
    pub(crate) usual: AgentChoice,
    /// What steps in for it.
    pub(crate) stand_ins: Vec<AgentChoice>,
    /// The further stages of its ladder in TAKT's `runtime.yaml`.
    pub(crate) ladder: Vec<AgentChoice>,
    /// Assignments, the strongest layer first: of flags, of cuegate.toml, of TAKT's `runtime.yaml`.
    pub(crate) layers: Vec<Vec<AgentAssignment>>,
    /// Whether agents that the definition itself names count.
    pub(crate) reads_definition: bool,
}

/// The plan of a run, and what a user should know of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlannedAgents {
    pub(crate) plan: AgentPlan,
    pub(crate) notes: Vec<String>,
}

/// Computes the plan. `is_known` tells whether there is an agent of a name.
pub(crate) fn plan_agents(
    flow: &Flow,
    sources: &AgentSources,
    is_known: &dyn Fn(&str) -> bool,
) -> PlannedAgents {
    let mut planned = PlannedAgents::default();
    let usual: Vec<AgentChoice> =
        std::iter::once(sources.usual.clone()).chain(sources.stand_ins.iter().cloned()).collect();
    planned.plan.stand_ins.clone_from(&sources.stand_ins);
    let mut chains: BTreeMap<Str, Vec<AgentChoice>> = BTreeMap::new();
    let mut unknown: BTreeMap<Str, Vec<Str>> = BTreeMap::new();
    for (step, ask) in list_asking_steps(flow) {
        let assigned = sources.layers.iter().find_map(|layer| find_assignment(layer, step, ask));
        let named = assigned.map(|assigned| assigned.chain.clone());
        let own = ask.agent_keys.agent.as_ref().filter(|_| sources.reads_definition && named.is_none());
        let own = own.and_then(|name| {
            let agent = agent_of_takt_name(name);
            if !is_known(agent) {
                unknown.entry(name.clone()).or_default().push(step.name.clone());
                return None;
            }
            Some(vec![AgentChoice::new(agent)])
        });
        let ladder = match (assigned, &own) {
            (Some(assigned), _) => &assigned.ladder,
            (None, None) => &sources.ladder,
            (None, Some(_)) => &Vec::new(),
        };
        let later = ask.agent_keys.promoted_at.iter().enumerate().filter_map(|(index, from)| {
            let stage = ladder.get(index).or(ladder.last())?;
            Some((*from, vec![stage.clone()]))
        });
        let later: Vec<(u32, Vec<AgentChoice>)> = later.collect();
        if !later.is_empty() {
            planned.plan.later.insert(step.name.clone(), later);
        } else if !ask.agent_keys.promoted_at.is_empty() && sources.reads_definition {
            planned.notes.push(format!(
                "`promotion` of `{}` has no effect: no `ladder` in runtime.yaml is for it",
                step.name
            ));
        }
        if let Some(chain) = named.or(own) {
            chains.insert(step.name.clone(), chain);
        }
    }
    for (step, ask) in list_asking_steps(flow) {
        let own = chains.get(&step.name).unwrap_or(&usual);
        let is_report = |assignment: &&AgentAssignment| assignment.role == AgentRole::Report;
        let of_reports = sources.layers.iter().find_map(|layer| layer.iter().find(is_report));
        if let Some(of_reports) = of_reports.filter(|found| !ask.reports.is_empty() && found.chain != *own) {
            planned.plan.reports.insert(step.name.clone(), of_reports.chain.clone());
        }
    }
    // A judge follows the step whose answer it judges, unless it has a chain, be it the usual one.
    let judges: BTreeSet<&Str> = flow
        .steps
        .iter()
        .flat_map(|step| judges_of_gate(&step.gate))
        .map(|judge| &flow.step(judge).name)
        .collect();
    chains.retain(|name, chain| *chain != usual || judges.contains(name));
    planned.plan.steps = chains;
    for (name, steps) in unknown {
        let steps: Vec<String> = steps.iter().map(|step| format!("`{step}`")).collect();
        planned.notes.push(format!(
            "unknown agent `{name}` of {} in the workflow: {} is called",
            steps.join(", "),
            sources.usual.agent
        ));
    }
    planned
}

/// The steps that ask an agent.
pub(super) fn list_asking_steps(flow: &Flow) -> impl Iterator<Item = (&Step<StepId>, &Ask)> {
    flow.steps.iter().filter_map(|step| match &step.act {
        Act::Ask(ask) => Some((step, ask)),
        _ => None,
    })
}

/// The assignment that fits a step best.
pub(super) fn find_assignment<'l>(
    layer: &'l [AgentAssignment],
    step: &Step<StepId>,
    ask: &Ask,
) -> Option<&'l AgentAssignment> {
    let fitting = layer.iter().filter_map(|one| Some((one.role.fit(step, ask)?, one)));
    fitting.min_by_key(|(fit, _)| *fit).map(|(_, one)| one)
}

/// Our name of an agent that a TAKT definition names.
pub(super) fn agent_of_takt_name(name: &str) -> &str {
    match name {
        "claude-sdk" | "claude-terminal" => "claude",
        other => other,
    }
}

/// Checks that each assignment of a flag is about something in the workflow.
///
/// # Errors
/// When a role fits no call, with the names that would, or is given twice.
pub(crate) fn check_flag_roles(flow: &Flow, flags: &[AgentAssignment]) -> Result<(), Failure> {
    for (index, AgentAssignment { role, .. }) in flags.iter().enumerate() {
        if flags[..index].iter().any(|before| before.role == *role) {
            return Err(Failure::usage(
                format!("`--agent {role}=…` is given twice"),
                format!("separate agents that step in by commas: `--agent {role}=FIRST,NEXT`"),
            ));
        }
        let fits = |(step, ask): (&Step<StepId>, &Ask)| match role {
            AgentRole::Report => !ask.reports.is_empty(),
            _ => role.fit(step, ask).is_some(),
        };
        if list_asking_steps(flow).any(fits) {
            continue;
        }
        let mut names: Vec<&str> = Vec::new();
        for (step, ask) in list_asking_steps(flow) {
            names.extend(ask.agent_keys.tags.iter().chain(&ask.persona).map(|name| &**name));
            // A call that judges has a name of ours; it is meant by `judge`.
            if ask.role == Role::Work {
                names.push(&step.name);
            }
        }
        names.sort_unstable();
        names.dedup();
        const SHOWN: usize = 12;
        let more = if names.len() > SHOWN { ", …" } else { "" };
        names.truncate(SHOWN);
        return Err(Failure::usage(
            format!("`--agent {role}=…` fits no call of this workflow"),
            format!(
                "name a step, a persona or a tag ({}{more}), `judge`, `report` or `read-only`",
                names.join(", ")
            ),
        ));
    }
    Ok(())
}
