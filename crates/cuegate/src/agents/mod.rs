//! The agents of a run: which one is called for what, and whether they work on this machine.

mod agent;
mod plan;
mod planned_calls;
mod request;
mod roles;
mod run_agents;
mod takt_runtime;
mod tool_servers;

pub use agent::Agent;
pub(crate) use plan::PlannedAgents;
pub(crate) use planned_calls::list_planned_calls;
pub(crate) use request::{
    AgentFlags, AgentWishes, plan_of_copy, plan_run_agents, plan_servers_of_project, plan_without_machine,
    read_takt_roles, reassign_roles,
};
pub(crate) use run_agents::{AgentQuery, RunAgents, describe_plan};
