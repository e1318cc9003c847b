//! Which agent is called: the plan of a run, and the agents that are out for a while.

use std::collections::BTreeMap;

use cuegate_ask::{FaultClass, McpServer};
use cuegate_flow::Str;
use serde::{Deserialize, Serialize};

use crate::{
    completion::Fault,
    event_types::{AskContext, AskRequest, RunStarted},
    run::{Node, PendingAsk, Run, Work},
};

/// How long an agent is out that is overloaded or cannot be reached, in milliseconds, if the service does not say. Twice
/// as long each time until it answers.
const OVERLOADED_MS: u64 = 60_000;
/// The same for an agent whose limit is reached.
const LIMITED_MS: u64 = 300_000;
/// The longest of these times.
const OUT_MAX_MS: u64 = 1_800_000;

/// An agent and a model: an entry of a chain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct AgentChoice {
    /// The agent's name, as in `--provider`.
    pub agent: String,
    /// The model for all its calls, as the user names it; `None`: what the definition names, else the agent's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How much the model thinks, as the agent names it, such as `high`; `None`: the agent's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

impl AgentChoice {
    /// An agent with the models of the definition.
    pub fn new(agent: impl Into<String>) -> AgentChoice {
        AgentChoice { agent: agent.into(), ..AgentChoice::default() }
    }
}

impl std::fmt::Display for AgentChoice {
    /// `AGENT`, `AGENT:MODEL` or `AGENT:MODEL#EFFORT`, as it is written in settings.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.agent)?;
        if let Some(model) = &self.model {
            write!(f, ":{model}")?;
        }
        match &self.effort {
            Some(effort) => write!(f, "#{effort}"),
            None => Ok(()),
        }
    }
}

/// The agents of a run beside its usual one, [`RunStarted::provider`]. The first agent of a chain is called; the next ones
/// step in while it is out. No chain is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentPlan {
    /// The effort of the usual agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What steps in for the usual agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<AgentChoice>,
    /// The chains of steps with agents of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<Str, Vec<AgentChoice>>,
    /// The chains of the reports of steps, where they differ from those of the steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reports: BTreeMap<Str, Vec<AgentChoice>>,
    /// The chains of steps from a number of visits on, in ascending order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub later: BTreeMap<Str, Vec<(u32, Vec<AgentChoice>)>>,
    /// The servers whose tools the agents of steps get. Their texts name variables of the environment; none holds a key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_servers: BTreeMap<Str, Vec<McpServer>>,
}

impl AgentPlan {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == AgentPlan::default()
    }

    /// Whether all calls go to the usual agent.
    pub fn is_usual(&self) -> bool {
        let AgentPlan { effort: _, stand_ins, steps, reports, later, tool_servers: _ } = self;
        stand_ins.is_empty() && steps.is_empty() && reports.is_empty() && later.is_empty()
    }

    /// The chain of a step in a visit of it; `None`: that of the usual agent.
    pub fn chain_of_step(&self, step: &str, is_report: bool, visit: u32) -> Option<&Vec<AgentChoice>> {
        let of_report = if is_report { self.reports.get(step) } else { None };
        of_report.or_else(|| {
            self.chains_of_step(step).filter(|(from, _)| *from <= visit).last().map(|(_, chain)| chain)
        })
    }

    /// The chains of a step with the visit from which each is called.
    pub fn chains_of_step(&self, step: &str) -> impl Iterator<Item = (u32, &Vec<AgentChoice>)> {
        let later = self.later.get(step).into_iter().flatten();
        self.steps
            .get(step)
            .map(|chain| (0, chain))
            .into_iter()
            .chain(later.map(|(from, chain)| (*from, chain)))
    }

    /// All choices in it.
    pub fn choices(&self) -> impl Iterator<Item = &AgentChoice> {
        let later = self.later.values().flatten().flat_map(|(_, chain)| chain);
        let own = self.steps.values().chain(self.reports.values()).flatten();
        self.stand_ins.iter().chain(own).chain(later)
    }
}

impl RunStarted {
    /// Its provider and model as one choice.
    pub fn usual_agent(&self) -> AgentChoice {
        AgentChoice {
            agent: self.provider.clone(),
            model: self.model.clone(),
            effort: self.agents.effort.clone(),
        }
    }

    /// The agents of a call for a step, in the order in which they are tried. A judge goes on with the agents of the step
    /// whose answer it judges, unless it has its own.
    pub(crate) fn chain_of_call(&self, step: &str, context: &AskContext, visit: u32) -> Vec<AgentChoice> {
        let asked = context.other().map_or(step, |other| other);
        let chain = self.agents.chain_of_step(asked, context.owing().is_some(), visit);
        let of_judged =
            || self.agents.chain_of_step(step, false, visit).filter(|_| context.judging().is_some());
        match chain.or_else(of_judged) {
            Some(chain) => chain.clone(),
            None => {
                std::iter::once(self.usual_agent()).chain(self.agents.stand_ins.iter().cloned()).collect()
            }
        }
    }
}

/// An agent that was found to be out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOutage {
    pub choice: AgentChoice,
    /// Whether the cause concerns the agent with any model, such as its login.
    pub any_model: bool,
    /// Until when it is out, in milliseconds since 1970; `None`: until the run is resumed.
    pub until_ms: Option<i64>,
    /// How often in a row it was found out.
    pub times: u32,
}

impl AgentOutage {
    fn covers(&self, choice: &AgentChoice) -> bool {
        // With another effort it is the same service.
        self.choice.agent == choice.agent && (self.any_model || self.choice.model == choice.model)
    }

    fn is_over(&self, now_ms: i64) -> bool {
        self.until_ms.is_some_and(|until| until <= now_ms)
    }
}

/// The part of a fault that makes another agent step in: how long the agent is out, and whether with any model. `None` for
/// faults that another agent would meet as well, or that a wrong answer may have caused.
fn read_outage(fault: &Fault, times: u32) -> Option<(Option<u64>, bool)> {
    let doubled = |first: u64| first.saturating_mul(1 << (times - 1).min(16)).min(OUT_MAX_MS);
    let known =
        |first: u64| Some(fault.resets_in_ms.filter(|resets| *resets > 0).unwrap_or_else(|| doubled(first)));
    match fault.class {
        FaultClass::RateLimited => Some((known(LIMITED_MS), false)),
        FaultClass::Overloaded => Some((known(OVERLOADED_MS), false)),
        FaultClass::Network => Some((known(OVERLOADED_MS), true)),
        FaultClass::UnknownModel => Some((None, false)),
        FaultClass::Auth | FaultClass::MissingProgram => Some((None, true)),
        FaultClass::Refused
        | FaultClass::ContextOverflow
        | FaultClass::SessionLost
        | FaultClass::Crashed
        | FaultClass::Timeout
        | FaultClass::Malformed
        | FaultClass::ScriptExhausted
        | FaultClass::Violation
        | FaultClass::OverCap => None,
    }
}

impl Run {
    /// The first agent of a call; `None` for the usual one.
    pub(crate) fn first_agent(
        started: &RunStarted,
        step: &str,
        context: &AskContext,
        visit: u32,
    ) -> Option<AgentChoice> {
        let first = started.chain_of_call(step, context, visit).into_iter().next()?;
        (first != started.usual_agent()).then_some(first)
    }

    /// The agent that a request goes to: the first of its chain that is not out, else the one that is back first.
    /// `None` for the usual agent.
    pub(crate) fn choose_agent(&self, request: &AskRequest, now_ms: i64) -> Option<AgentChoice> {
        let started = self.started.as_ref()?;
        let chain = started.chain_of_call(&request.step, &request.context, self.visit_number());
        let free = chain.iter().find(|choice| self.agent_out_until(choice, now_ms).is_none());
        let chosen = free.or_else(|| {
            chain
                .iter()
                .min_by_key(|choice| self.agent_out_until(choice, now_ms).flatten().unwrap_or(i64::MAX))
        })?;
        (*chosen != started.usual_agent()).then(|| chosen.clone())
    }

    /// The number of the visit that goes on, from 1.
    pub(crate) fn visit_number(&self) -> u32 {
        self.progress.visit.as_ref().map_or(1, |visit| visit.visit)
    }

    /// Until when an agent is out; `None` if it is not, `Some(None)` if nobody knows.
    pub(crate) fn agent_out_until(&self, choice: &AgentChoice, now_ms: i64) -> Option<Option<i64>> {
        let outages = self.outages.iter().filter(|outage| outage.covers(choice) && !outage.is_over(now_ms));
        outages.map(|outage| outage.until_ms).max_by_key(|until| until.unwrap_or(i64::MAX))
    }

    /// What a fault tells of an outage of an agent: whether with any model, and until when, as in [`AgentOutage`].
    pub(crate) fn find_outage(
        &self,
        choice: &AgentChoice,
        fault: &Fault,
        now_ms: i64,
    ) -> Option<(bool, Option<i64>)> {
        let before = self.outages.iter().find(|outage| outage.choice == *choice);
        let (out_ms, any_model) = read_outage(fault, before.map_or(0, |outage| outage.times) + 1)?;
        Some((any_model, out_ms.map(|out_ms| now_ms.saturating_add_unsigned(out_ms))))
    }

    /// Records that an agent is out.
    pub(crate) fn agent_is_out(&mut self, choice: &AgentChoice, any_model: bool, until_ms: Option<i64>) {
        let before = self.outages.iter().position(|outage| outage.choice == *choice);
        let times = before.map_or(0, |index| self.outages.swap_remove(index).times) + 1;
        self.outages.push(AgentOutage { choice: choice.clone(), any_model, until_ms, times });
    }

    /// Records that an agent answered.
    pub(crate) fn agent_is_back(&mut self, choice: &AgentChoice) {
        self.outages.retain(|outage| !outage.covers(choice));
    }

    /// Gives pending asks to the agents that the run has now.
    pub(crate) fn choose_agents_anew(&mut self) {
        let Some(started) = self.started.clone() else { return };
        let visit = self.visit_number();
        let choose = |step: &Str, asking: &mut PendingAsk| {
            asking.agent = Run::first_agent(&started, step, &asking.context, visit);
        };
        match self.progress.node.as_mut() {
            Some(Node { step, work: Work::Asking(asking), .. }) => choose(step, asking),
            Some(Node { work: Work::Joining(members), .. }) => {
                for member in members {
                    if let Some(asking) = &mut member.asking {
                        choose(&member.step, asking);
                    }
                }
            }
            _ => {}
        }
    }
}

/// How the schema and the session were passed to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AskDelivery {
    /// How the schema was enforced; `None` for an ask without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaEnforcement>,
    /// How the session continued.
    #[serde(default)]
    pub session: SessionContinuation,
}

/// How a schema was enforced. The answer is validated in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaEnforcement {
    /// By the provider.
    Provider,
    /// By the prompt.
    Prompt,
}

/// How a session continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionContinuation {
    /// A new session.
    #[default]
    New,
    /// The provider continued it.
    Continued,
    /// The provider forked it, so that it stays unchanged if the ask is cut off.
    Forked,
    /// The provider cannot continue sessions: earlier messages are part of the prompt.
    Retold,
}
