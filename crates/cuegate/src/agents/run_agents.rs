//! All agents of a run.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{AgentChoice, AgentPlan, Budget, Event, Run};
use cuegate_flow::model::{Act, Flow, Role};
use cuegate_runner::{CalledAgent, CalledAgents};

use super::{
    agent::{Agent, AgentInputs, name_steps},
    planned_calls::{PlannedCall, list_planned_calls},
    tool_servers::check_tool_servers,
};
use crate::config::Config;
use crate::{Failure, Program, doctor};

/// What the agents of a run are found with.
pub(crate) struct AgentQuery<'a> {
    /// The usual agent; its model replaces those of the definition in its calls.
    pub(crate) usual: AgentChoice,
    pub(crate) plan: &'a AgentPlan,
    /// The path and the text of a script for `scripted`.
    pub(crate) script: Option<&'a (String, String)>,
    pub(crate) flow: &'a Flow,
    pub(crate) budget: &'a Budget,
    pub(crate) program: &'a Program,
    pub(crate) config: &'a Config,
}

/// The agents of a run, inspected on this machine.
pub struct RunAgents {
    usual: AgentChoice,
    plan: AgentPlan,
    /// By name; the usual one is among them.
    agents: BTreeMap<String, Agent>,
    /// Agents that do not work here and that others step in for, and those that cannot use servers.
    notes: Vec<String>,
}

impl RunAgents {
    /// The agents of a run that calls none.
    pub(crate) fn none() -> RunAgents {
        let usual = AgentChoice::new("none");
        let agents = [(usual.agent.clone(), Agent::none())].into();
        RunAgents { usual, plan: AgentPlan::default(), agents, notes: Vec::new() }
    }

    /// Finds the agents of a run and checks their settings, programs, logins, models and prices, before any file is
    /// created. An agent that does not work here is only noted if another one steps in wherever it is called.
    ///
    /// # Errors
    /// When one of them is missing, or a budget in dollars is set and a price is unknown.
    pub(crate) fn find(query: &AgentQuery<'_>) -> Result<RunAgents, Failure> {
        let AgentQuery { usual, plan, script, flow, budget, program, config } = query;
        let calls = list_planned_calls(flow, usual, plan);
        let mut names: BTreeSet<&str> = calls.iter().map(|call| call.choice.agent.as_str()).collect();
        // A flow without asks, and a run that calls its usual agent nowhere, have it all the same: it may be resumed.
        names.insert(&usual.agent);
        let mut agents = BTreeMap::new();
        for name in names {
            let model = usual.model.as_deref().filter(|_| name == usual.agent);
            let inputs = AgentInputs { name, script: *script, model, flow, program, config };
            let own: Vec<&PlannedCall<'_>> = calls.iter().filter(|call| call.choice.agent == name).collect();
            agents.insert(name.to_owned(), Agent::create(&inputs, &own)?);
        }
        let mut found = RunAgents { usual: usual.clone(), plan: (*plan).clone(), agents, notes: Vec::new() };
        found.check_chains(flow)?;
        found.check_tool_servers(flow)?;
        if budget.usd_micro.is_some() || budget.ask_usd_micro.is_some() {
            found.prices_known(flow)?;
        }
        Ok(found)
    }

    /// Checks that one agent of each chain works here, and notes those that do not.
    fn check_chains(&mut self, flow: &Flow) -> Result<(), Failure> {
        let broken: BTreeMap<&str, Failure> =
            self.agents.iter().filter_map(|(name, agent)| Some((name.as_str(), agent.problem()?))).collect();
        let calls = self.calls(flow);
        let is_called = |agent: &str| calls.iter().any(|call| call.choice.agent == agent);
        let usual_chain: Vec<AgentChoice> =
            std::iter::once(&self.usual).chain(&self.plan.stand_ins).cloned().collect();
        let later = self.plan.later.values().flatten().map(|(_, chain)| chain);
        let own = self.plan.steps.values().chain(self.plan.reports.values()).chain(later);
        let is_usual_called = self.plan.is_usual() || is_called(&self.usual.agent);
        for chain in own.chain(Some(&usual_chain).filter(|_| is_usual_called)) {
            let failing = chain.iter().map(|choice| self.agents.get(&choice.agent)?.problem());
            // Without one that works, the first one is to be mended.
            if let Some(failures) = failing.collect::<Option<Vec<Failure>>>()
                && let Some(first) = failures.into_iter().next()
            {
                return Err(first);
            }
        }
        let notes = broken.iter().filter(|(name, _)| is_called(name));
        let notes = notes.map(|(name, failure)| {
            format!("{name} does not work here, another agent steps in: {}", failure.message)
        });
        self.notes = notes.collect();
        Ok(())
    }

    /// Checks that the agents can use the servers whose tools they get, and notes those that have no such tools.
    fn check_tool_servers(&mut self, flow: &Flow) -> Result<(), Failure> {
        let mut without = BTreeSet::new();
        for call in self.calls(flow) {
            let Some(servers) = self.plan.tool_servers.get(&call.step.name) else { continue };
            let Some(agent) = self.agents.get(&call.choice.agent) else { continue };
            match agent.provider.tool_transports() {
                [] => _ = without.insert(call.choice.agent.clone()),
                transports => check_tool_servers(servers, &call, transports)?,
            }
        }
        self.notes.extend(without.iter().map(|agent| format!("{agent} gets no tools of MCP servers")));
        Ok(())
    }

    fn by_agent<'c, 'f>(&self, calls: &'c [PlannedCall<'f>]) -> Vec<(&Agent, Vec<&'c PlannedCall<'f>>)> {
        let of = |name: &str| calls.iter().filter(|call| call.choice.agent == name).collect();
        self.agents.iter().map(|(name, agent)| (agent, of(name))).collect()
    }

    fn calls<'f>(&self, flow: &'f Flow) -> Vec<PlannedCall<'f>> {
        list_planned_calls(flow, &self.usual, &self.plan)
    }

    /// Checks that every call has a known price with every agent that may answer it: a budget in dollars needs it.
    ///
    /// # Errors
    /// With the model whose price is missing.
    pub(crate) fn prices_known(&self, flow: &Flow) -> Result<(), Failure> {
        let calls = self.calls(flow);
        self.by_agent(&calls).into_iter().try_for_each(|(agent, own)| agent.prices_known(&own))
    }

    /// The plan that they are for.
    pub(crate) fn plan(&self) -> &AgentPlan {
        &self.plan
    }

    /// The usual agent.
    pub(crate) fn usual(&self) -> &Agent {
        &self.agents[&self.usual.agent]
    }

    /// The models of the usual agent, as it names them; `None` if it chooses.
    pub(crate) fn usual_models(&self, flow: &Flow) -> Option<String> {
        let calls = self.calls(flow);
        let own: Vec<_> = calls.iter().filter(|call| call.choice.agent == self.usual.agent).collect();
        self.usual().models(&own)
    }

    /// What the user should know: features of the flow that an agent does not support, agents that do not work here.
    pub(crate) fn cannot(&self, flow: &Flow) -> Vec<String> {
        let calls = self.calls(flow);
        let cannot = self.by_agent(&calls).into_iter().flat_map(|(agent, own)| agent.cannot(flow, &own));
        self.notes.iter().cloned().chain(cannot).collect()
    }

    /// The agents beside the usual one and their steps, one line each: who is called, and who steps in.
    pub(crate) fn describe_others(&self, flow: &Flow) -> Vec<String> {
        describe_plan(flow, &self.usual, &self.plan, &|name| {
            let agent = self.agents.get(name)?;
            let version = agent.inspection.version.as_deref();
            let login = doctor::describe_login(&agent.inspection.login);
            Some(format!(
                "{name}{}, login: {login}",
                version.map_or(String::new(), |version| format!(" {version}"))
            ))
        })
    }

    /// The agent settings that are loaded, in words.
    pub(crate) fn loads(&self) -> String {
        let mut texts = vec![self.usual().provider.loads()];
        for (name, agent) in &self.agents {
            let text = agent.provider.loads();
            if *name != self.usual.agent && !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts.join("; ")
    }

    /// Whether costs are notional because subscriptions pay.
    pub(crate) fn is_notional(&self) -> bool {
        self.agents.values().all(Agent::is_notional)
    }

    /// The paths of the agents' programs, by name; that of the usual one as `agent`.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (String, String)> {
        self.agents.iter().filter_map(|(name, agent)| {
            let key = if *name == self.usual.agent { "agent" } else { name };
            Some((key.to_owned(), agent.inspection.at.clone()?))
        })
    }

    /// Hands the agents what they journaled of a run.
    pub(crate) fn restore<'e>(&self, records: impl Iterator<Item = &'e [Event]> + Clone) {
        for (name, agent) in &self.agents {
            agent.provider.restore(&Run::receipts(records.clone(), name));
        }
    }

    pub(crate) fn into_called(mut self) -> CalledAgents {
        let usual = self.agents.remove(&self.usual.agent).unwrap_or_else(Agent::none);
        let others = self.agents.into_iter().map(|(name, agent)| (name, agent.into_called())).collect();
        let usual = CalledAgent { effort: self.usual.effort, ..usual.into_called() };
        CalledAgents { usual, others, tool_servers: self.plan.tool_servers }
    }
}

/// Who is called for which steps, and who steps in, one line each. `about` says more of an agent, where it is first named.
pub(crate) fn describe_plan(
    flow: &Flow,
    usual: &AgentChoice,
    plan: &AgentPlan,
    about: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut seen: BTreeSet<String> = [usual.agent.clone()].into();
    let mut describe = |chain: &[AgentChoice]| {
        let words: Vec<String> = chain
            .iter()
            .map(|choice| {
                let more = seen.insert(choice.agent.clone()).then(|| about(&choice.agent)).flatten();
                match (more, &choice.model) {
                    (Some(more), Some(model)) => format!("{more}, model {model}"),
                    (Some(more), None) => more,
                    (None, _) => choice.to_string(),
                }
            })
            .collect();
        words.join("; then ")
    };
    let mut lines = Vec::new();
    if let Some(effort) = &usual.effort {
        lines.push(format!("effort of {}: {effort}", usual.agent));
    }
    if !plan.stand_ins.is_empty() {
        lines.push(format!("if {} is out: {}", usual.agent, describe(&plan.stand_ins)));
    }
    let order: Vec<&str> = flow.steps.iter().map(|step| &*step.name).collect();
    for (which, chains) in [("", &plan.steps), ("reports of ", &plan.reports)] {
        let mut groups: Vec<(&Vec<AgentChoice>, Vec<&str>)> = Vec::new();
        for name in &order {
            let Some(chain) = chains.get(*name) else { continue };
            match groups.iter_mut().find(|(known, _)| *known == chain) {
                Some((_, steps)) => steps.push(name),
                None => groups.push((chain, vec![name])),
            }
        }
        for (chain, steps) in groups {
            let steps = name_steps(steps).unwrap_or_default();
            lines.push(format!("{which}{steps}: {}", describe(chain)));
        }
    }
    for name in order {
        for (from, chain) in plan.later.get(name).into_iter().flatten() {
            lines.push(format!("`{name}` from visit {from} on: {}", describe(chain)));
        }
    }
    let mut steps: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let works = |step: &str| {
        flow.steps
            .iter()
            .any(|one| *one.name == *step && matches!(&one.act, Act::Ask(ask) if ask.role == Role::Work))
    };
    for (step, servers) in plan.tool_servers.iter().filter(|(step, _)| works(step)) {
        servers.iter().for_each(|server| steps.entry(&server.name).or_default().push(step));
    }
    let servers = steps.into_iter().map(|(server, steps)| {
        format!("tools of the MCP server {server}: {}", name_steps(steps).unwrap_or_default())
    });
    lines.extend(servers);
    lines
}
