//! From what a user asks for to the agents of a run.

use std::collections::BTreeMap;
use std::path::Path;

use cuegate_engine::{AgentChoice, AgentPlan};
use cuegate_flow::Str;
use cuegate_flow::model::{Flow, McpServer};

use super::{
    plan::{AgentSources, PlannedAgents, check_flag_roles, find_assignment, list_asking_steps, plan_agents},
    takt_runtime::{RuntimeRoles, read_runtime_roles},
    tool_servers::{TaktServers, plan_tool_servers},
};
use crate::config::{AgentAssignment, AgentChain, AgentRole, Config};
use crate::{Failure, providers};

/// The agents that a user asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentWishes {
    /// The usual agent, and those that step in for it.
    pub(crate) usual: AgentChoice,
    pub(crate) stand_ins: Vec<AgentChoice>,
    /// Whether a flag names it: then the agents that the definition and TAKT's settings name do not count.
    pub(crate) is_named: bool,
    /// The roles of `--agent`.
    pub(crate) roles: Vec<AgentAssignment>,
}

/// What the flags of a command say of agents.
pub(crate) struct AgentFlags<'a> {
    /// The usual agent, and those that step in for it.
    pub(crate) chain: Option<&'a AgentChain>,
    pub(crate) model: Option<&'a str>,
    pub(crate) roles: &'a [AgentAssignment],
}

/// The usual agent, if it is known without a look at this machine, and the plan beside it.
///
/// # Errors
/// As [`plan_run_agents`], and when the usual agent or TAKT's settings are wrong.
pub(crate) fn plan_without_machine(
    flow: &Flow,
    flags: &AgentFlags<'_>,
    root: &Path,
    config: &Config,
) -> Result<(Option<AgentChoice>, PlannedAgents), Failure> {
    plan_by_settings(flow, flags, read_takt_roles(flow, root, config)?, config)
}

/// As [`plan_without_machine`], for the settings in `folder` that are a copy of those of `project`.
///
/// # Errors
/// As [`plan_without_machine`].
pub(crate) fn plan_of_copy(
    flow: &Flow,
    folder: &Path,
    project: &Path,
    config: &Config,
) -> Result<(Option<AgentChoice>, PlannedAgents), Failure> {
    let flags = AgentFlags { chain: None, model: None, roles: &[] };
    plan_by_settings(flow, &flags, read_copied_takt_roles(flow, folder, project, config)?, config)
}

fn plan_by_settings(
    flow: &Flow,
    flags: &AgentFlags<'_>,
    takt: RuntimeRoles,
    config: &Config,
) -> Result<(Option<AgentChoice>, PlannedAgents), Failure> {
    let chain = flags.chain.or(config.run.provider.as_ref()).map(|chain| chain.0.clone());
    let chain = chain.or_else(|| takt.usual.clone().map(|usual| vec![usual]));
    let mut chain = chain.unwrap_or_default().into_iter();
    let mut usual = chain.next();
    if let Some(usual) = &mut usual {
        providers::check_name(&usual.agent, config)?;
        usual.model = flags.model.map(str::to_owned).or(usual.model.take());
    }
    let wishes = AgentWishes {
        usual: usual.clone().unwrap_or_default(),
        stand_ins: chain.collect(),
        is_named: flags.chain.is_some(),
        roles: flags.roles.to_vec(),
    };
    Ok((usual, plan_run_agents(flow, &wishes, takt, config)?))
}

/// What TAKT's `runtime.yaml` says of a workflow; nothing for other definitions.
///
/// # Errors
/// As [`read_runtime_roles`].
pub(crate) fn read_takt_roles(flow: &Flow, root: &Path, config: &Config) -> Result<RuntimeRoles, Failure> {
    read_copied_takt_roles(flow, root, root, config)
}

fn read_copied_takt_roles(
    flow: &Flow,
    root: &Path,
    project: &Path,
    config: &Config,
) -> Result<RuntimeRoles, Failure> {
    match flow.dialect == "takt" {
        true => {
            let mut roles =
                read_runtime_roles(root, project, &|name| providers::check_name(name, config).is_ok())?;
            roles.servers = TaktServers::read(root)?;
            Ok(roles)
        }
        false => Ok(RuntimeRoles::default()),
    }
}

/// The plan of a run.
///
/// # Errors
/// When a role names an unknown agent, or a role of a flag fits nothing, and as [`plan_tool_servers`].
pub(crate) fn plan_run_agents(
    flow: &Flow,
    wishes: &AgentWishes,
    takt: RuntimeRoles,
    config: &Config,
) -> Result<PlannedAgents, Failure> {
    check_flag_roles(flow, &wishes.roles)?;
    let mut layers = vec![wishes.roles.clone()];
    // A script answers all calls.
    if wishes.usual.agent != "scripted" {
        layers.push(config.agents.roles.clone());
        if !wishes.is_named {
            layers.push(takt.assignments);
        }
    }
    for choice in layers.iter().flatten().flat_map(|one| &one.chain).chain(&wishes.stand_ins) {
        providers::check_name(&choice.agent, config)?;
    }
    let sources = AgentSources {
        usual: wishes.usual.clone(),
        stand_ins: wishes.stand_ins.clone(),
        ladder: if wishes.is_named { Vec::new() } else { takt.usual_ladder },
        layers,
        reads_definition: !wishes.is_named && wishes.usual.agent != "scripted",
    };
    let mut planned = plan_agents(flow, &sources, &|name| providers::check_name(name, config).is_ok());
    if wishes.usual.agent != "scripted" {
        planned.plan.effort.clone_from(&wishes.usual.effort);
        let servers = plan_tool_servers(flow, &takt.servers, config)?;
        planned.plan.tool_servers = servers.by_step;
        planned.notes.extend(servers.notes);
    }
    if !wishes.is_named {
        planned.notes.extend(takt.notes);
    }
    Ok(planned)
}

/// The MCP servers of each step, as the settings of the project say now.
///
/// # Errors
/// As [`plan_tool_servers`].
pub(crate) fn plan_servers_of_project(
    flow: &Flow,
    root: &Path,
    config: &Config,
) -> Result<BTreeMap<Str, Vec<McpServer>>, Failure> {
    let takt = read_takt_roles(flow, root, config)?;
    Ok(plan_tool_servers(flow, &takt.servers, config)?.by_step)
}

/// The plan of a run that goes on with other agents for some roles.
///
/// # Errors
/// As [`plan_run_agents`].
pub(crate) fn reassign_roles(
    flow: &Flow,
    plan: &AgentPlan,
    roles: &[AgentAssignment],
    config: &Config,
) -> Result<AgentPlan, Failure> {
    check_flag_roles(flow, roles)?;
    for choice in roles.iter().flat_map(|one| &one.chain) {
        providers::check_name(&choice.agent, config)?;
    }
    let mut plan = plan.clone();
    for (step, ask) in list_asking_steps(flow) {
        if let Some(assigned) = find_assignment(roles, step, ask) {
            plan.steps.insert(step.name.clone(), assigned.chain.clone());
            plan.later.remove(&step.name);
        }
        let of_reports = roles.iter().find(|one| one.role == AgentRole::Report);
        if let Some(of_reports) = of_reports.filter(|_| !ask.reports.is_empty()) {
            plan.reports.insert(step.name.clone(), of_reports.chain.clone());
        }
    }
    Ok(plan)
}
