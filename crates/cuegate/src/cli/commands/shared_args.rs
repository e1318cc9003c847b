//! The arguments that several verbs share.

use clap::{Args, ValueEnum};
use cuegate_engine::Budget;

use crate::config::{
    AgentAssignment, AgentChain, BudgetConfig, Minutes, PhasesChoice, PositiveCount, Usd, parse_assignment,
    parse_chain,
};

/// A run of the project.
#[derive(Debug, Args)]
pub(crate) struct RunRef {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) id: String,
}

/// A run of the project, or one in a file.
#[derive(Debug, Args)]
pub(crate) struct RunOrFile {
    /// The run: its id, a unique prefix of it, or `last`; or a file that `export` wrote
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) id: String,
}

/// Parses `30d`, `12h` or `45m`.
pub(crate) fn parse_age(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || "give a number with `d`, `h` or `m`, such as `30d`".to_owned();
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(std::time::Duration::from_secs).ok_or_else(wrong)
}

/// A definition, and how it is read.
#[derive(Debug, Args)]
pub(crate) struct DefinitionArgs {
    /// An agent folder, a registry file, a workflow file, or the name of one in `.agent` or `.takt`
    pub(crate) path: String,
    /// Treat this variable as set; a value is checked against the parameter's type and rule
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(crate) phases: Option<PhasesChoice>,
}

/// The agents of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentArgs {
    /// The agent, as `cuegate agents` lists it, or `scripted`; `claude:opus#high` names its model and its effort for all calls too. Of
    /// several, separated by commas, the next steps in while one is out: its limit is reached, or it cannot be reached
    #[arg(long, value_name = "AGENT", value_parser = parse_agent_chain)]
    pub(crate) provider: Option<AgentChain>,
    /// The agent of a step, a persona, a tag, or of `judge`, `report` or `read-only` calls, as in `review=codex,claude`
    #[arg(long = "agent", value_name = "ROLE=AGENT", value_parser = parse_assignment)]
    pub(crate) roles: Vec<AgentAssignment>,
    /// The model for all calls of the agent; it replaces the models of the definition
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

/// Parses `AGENT[:MODEL][#EFFORT][,AGENT…]`.
pub(crate) fn parse_agent_chain(text: &str) -> Result<AgentChain, String> {
    parse_chain(text).map(AgentChain)
}

/// The budget of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunLimits {
    /// The cost limit of the run in US dollars, counted from its start
    #[arg(long, help_heading = "Limits", value_name = "USD")]
    budget_usd: Option<Usd>,
    /// The token limit of the run, input and output together
    #[arg(long, help_heading = "Limits", value_name = "N")]
    budget_tokens: Option<PositiveCount>,
    /// The limit on calls of agents, of all kinds
    #[arg(long, help_heading = "Limits", value_name = "N")]
    budget_calls: Option<PositiveCount>,
    /// The time limit of the run in minutes; time while it is suspended does not count
    #[arg(long, help_heading = "Limits", value_name = "N")]
    budget_minutes: Option<Minutes>,
    /// The cost limit of one call [default with --budget-usd: 5, or a fifth of the budget]
    #[arg(long, help_heading = "Limits", value_name = "USD")]
    call_usd: Option<Usd>,
    /// The token limit of one call [default with --budget-tokens: 5 million, or a fifth of the budget]
    #[arg(long, help_heading = "Limits", value_name = "N")]
    call_tokens: Option<PositiveCount>,
}

impl RunLimits {
    pub(crate) fn budget(&self) -> Budget {
        let RunLimits {
            budget_usd: usd,
            budget_tokens: tokens,
            budget_calls: calls,
            budget_minutes: minutes,
            ..
        } = *self;
        let (call_usd, call_tokens) = (self.call_usd, self.call_tokens);
        BudgetConfig { usd, tokens, calls, minutes, call_usd, call_tokens, unlimited: false }.budget()
    }
}

/// What a journal record survives once it is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DurabilityChoice {
    /// Every record survives a power failure
    Synced,
    /// Every record survives a crash of the program; a power failure may lose the last records
    Relaxed,
}
