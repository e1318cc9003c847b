//! Roles: what a call has to be for, so that an agent named for that role gets it.

use cuegate_engine::AgentChoice;

use super::agent_chain::parse_chain;

/// What a call has to be for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentRole {
    /// The step, the persona or the tag of this name.
    Named(String),
    Step(String),
    Persona(String),
    Tag(String),
    /// The step of this name in the workflow of this name, also where that is called by another.
    StepOf(String, String),
    /// What TAKT calls an agent for itself, such as `selector`.
    Seat(String),
    /// Calls that decide about the work of others.
    Judge,
    /// Requests of reports.
    Report,
    /// Steps that may not change files.
    ReadOnly,
}

/// A role and its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentAssignment {
    pub(crate) role: AgentRole,
    pub(crate) chain: Vec<AgentChoice>,
    /// What is called instead from the visits on at which the workflow promotes the step.
    pub(crate) ladder: Vec<AgentChoice>,
}

impl AgentRole {
    /// Reads a role as it is written in settings.
    ///
    /// # Errors
    /// With what is wrong, in words.
    pub(crate) fn parse(text: &str) -> Result<AgentRole, String> {
        let role = match text.trim().split_once(':') {
            Some(("step", name)) => AgentRole::Step(name.to_owned()),
            Some(("persona", name)) => AgentRole::Persona(name.to_owned()),
            Some(("tag", name)) => AgentRole::Tag(name.to_owned()),
            Some((kind, _)) => {
                return Err(format!("`{kind}:` is not a kind of role: write `step:`, `persona:` or `tag:`"));
            }
            None => match text.trim() {
                "judge" => AgentRole::Judge,
                "report" => AgentRole::Report,
                "read-only" => AgentRole::ReadOnly,
                name => AgentRole::Named(name.to_owned()),
            },
        };
        let name = match &role {
            AgentRole::Named(name)
            | AgentRole::Step(name)
            | AgentRole::Persona(name)
            | AgentRole::Tag(name) => name,
            AgentRole::StepOf(..) | AgentRole::Seat(_) => return Ok(role),
            AgentRole::Judge | AgentRole::Report | AgentRole::ReadOnly => return Ok(role),
        };
        match name.trim().is_empty() {
            true => Err(format!("the role `{text}` has no name")),
            false => Ok(role),
        }
    }
}

impl std::fmt::Display for AgentRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AgentRole::Named(name) => f.write_str(name),
            AgentRole::Step(name) => write!(f, "step:{name}"),
            AgentRole::Persona(name) => write!(f, "persona:{name}"),
            AgentRole::Tag(name) => write!(f, "tag:{name}"),
            AgentRole::StepOf(workflow, step) => write!(f, "step:{workflow}/{step}"),
            AgentRole::Seat(name) => write!(f, "internal:{name}"),
            AgentRole::Judge => f.write_str("judge"),
            AgentRole::Report => f.write_str("report"),
            AgentRole::ReadOnly => f.write_str("read-only"),
        }
    }
}

/// Parses `ROLE=AGENT[:MODEL][,AGENT…]`, as in `--agent`.
///
/// # Errors
/// With what is wrong, in words.
pub(crate) fn parse_assignment(text: &str) -> Result<AgentAssignment, String> {
    let (role, chain) =
        text.split_once('=').ok_or("write it like `review=codex` or `step:fix=claude:opus,codex`")?;
    Ok(AgentAssignment { role: AgentRole::parse(role)?, chain: parse_chain(chain)?, ladder: Vec::new() })
}
