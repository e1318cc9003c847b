//! How well a role fits a call.

use std::cmp::Reverse;

use cuegate_flow::model::{Ask, Permission, Role, Step, StepId};

use crate::config::AgentRole;

/// How well a role fits a call: smaller is better. Of several tags the last one of the step counts, as in TAKT.
type Fit = (u8, Reverse<usize>);

impl AgentRole {
    /// How well the role fits the calls of a step other than its reports.
    pub(crate) fn fit(&self, step: &Step<StepId>, ask: &Ask) -> Option<Fit> {
        let is_step = |name: &str| {
            *step.name == *name || step.name.rsplit_once('/').is_some_and(|(_, last)| last == name)
        };
        let is_persona = |name: &str| {
            let names = ask.persona.iter().chain(&ask.persona_names);
            names.into_iter().any(|persona| **persona == *name)
        };
        let tag = |name: &str| ask.agent_keys.tags.iter().rposition(|tag| **tag == *name);
        let of_step = |name: &str| is_step(name).then_some((0, Reverse(0)));
        let of_tag = |name: &str| tag(name).map(|index| (2, Reverse(index)));
        let of_persona = |name: &str| is_persona(name).then_some((3, Reverse(0)));
        match self {
            AgentRole::Step(name) => of_step(name),
            AgentRole::Tag(name) => of_tag(name),
            AgentRole::Persona(name) => of_persona(name),
            AgentRole::StepOf(workflow, name) => {
                let written = ask.agent_keys.written_as.as_ref();
                let (of, step) = written?;
                (**of == **workflow && **step == **name).then_some((0, Reverse(0)))
            }
            AgentRole::Seat(name) => {
                ask.agent_keys.seat.as_ref().filter(|seat| ***seat == **name).map(|_| (0, Reverse(0)))
            }
            AgentRole::Named(name) => of_step(name).or_else(|| of_tag(name)).or_else(|| of_persona(name)),
            AgentRole::Judge => (ask.role != Role::Work).then_some((1, Reverse(0))),
            AgentRole::ReadOnly => (step.boundary.permission <= Permission::Plan).then_some((4, Reverse(0))),
            AgentRole::Report => None,
        }
    }
}
