//! The agents with which a run goes on.

use std::path::Path;

use cuegate_engine::{AgentPlan, RunStarted};
use cuegate_flow::model::Flow;

use super::resume_run::ResumeRequest;
use crate::agents::{plan_servers_of_project, reassign_roles};
use crate::config::Config;
use crate::{Failure, providers};

/// The agents beside the usual one with which a run goes on. `is_own`: whether the run was made here; another one gets the
/// servers of the project at `root` instead of its own.
pub(super) fn plan_of_resumed_run(
    flow: &Flow,
    started: &RunStarted,
    again: &ResumeRequest,
    root: &Path,
    is_own: bool,
    config: &Config,
) -> Result<AgentPlan, Failure> {
    let mut plan = started.agents.clone();
    if !is_own {
        plan.tool_servers = plan_servers_of_project(flow, root, config)?;
    }
    if let Some((usual, stand_ins)) = again.agents.split_first() {
        if usual.agent == "scripted" {
            // A script answers all calls.
            plan = AgentPlan { tool_servers: plan.tool_servers, ..AgentPlan::default() };
        }
        plan.effort.clone_from(&usual.effort);
        plan.stand_ins = stand_ins.to_vec();
    }
    for choice in &again.agents {
        providers::check_name(&choice.agent, config)?;
    }
    match again.roles.is_empty() {
        true => Ok(plan),
        false => reassign_roles(flow, &plan, &again.roles, config),
    }
}
