//! The arguments of `work`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use cuegate_engine::{Amounts, Budget};

use crate::cli::commands::shared_args::{AgentArgs, DurabilityChoice};
use crate::config::{BudgetConfig, Minutes, PhasesChoice, PositiveCount, Usd};

/// The arguments that a batch keeps from its start.
const OF_A_START: [&str; 33] = [
    "cd",
    "agent",
    "label",
    "from",
    "max",
    "parallel",
    "once",
    "watch",
    "dry_run",
    "set",
    "provider",
    "roles",
    "script",
    "model",
    "merge",
    "push",
    "pull_request",
    "no_sandbox",
    "max_iterations",
    "repairs",
    "no_baseline",
    "phases",
    "unlimited",
    "durability",
    "budget_usd",
    "budget_tokens",
    "budget_calls",
    "run_usd",
    "run_tokens",
    "run_calls",
    "run_minutes",
    "call_usd",
    "call_tokens",
];

/// The budget of a batch, and the limits of each of its runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BatchLimits {
    /// The cost limit of all runs together, in US dollars
    #[arg(long, help_heading = "Limits", value_name = "USD")]
    budget_usd: Option<Usd>,
    /// The token limit of all runs together, input and output
    #[arg(long, help_heading = "Limits", value_name = "N")]
    budget_tokens: Option<PositiveCount>,
    /// The limit on calls of agents of all runs together
    #[arg(long, help_heading = "Limits", value_name = "N")]
    budget_calls: Option<PositiveCount>,
    /// The cost limit of each run [default: `usd` in `[budget]` of cuegate.toml]
    #[arg(long, help_heading = "Limits", value_name = "USD")]
    run_usd: Option<Usd>,
    /// The token limit of each run
    #[arg(long, help_heading = "Limits", value_name = "N")]
    run_tokens: Option<PositiveCount>,
    /// The limit on calls of agents of each run
    #[arg(long, help_heading = "Limits", value_name = "N")]
    run_calls: Option<PositiveCount>,
    /// The time limit of each run in minutes
    #[arg(long, help_heading = "Limits", value_name = "N")]
    run_minutes: Option<Minutes>,
    /// The cost limit of one call
    #[arg(long, help_heading = "Limits", value_name = "USD")]
    call_usd: Option<Usd>,
    /// The token limit of one call
    #[arg(long, help_heading = "Limits", value_name = "N")]
    call_tokens: Option<PositiveCount>,
}

impl BatchLimits {
    /// What all runs together may use.
    pub(crate) fn all(&self) -> Amounts {
        Amounts {
            usd_micro: self.budget_usd.map(|usd| usd.micro),
            tokens: self.budget_tokens.map(|tokens| tokens.0),
            asks: self.budget_calls.map(|calls| calls.0),
        }
    }

    /// The limits of each run.
    pub(crate) fn each(&self) -> Budget {
        let BatchLimits { run_usd: usd, run_tokens: tokens, run_calls: calls, run_minutes: minutes, .. } =
            *self;
        let (call_usd, call_tokens) = (self.call_usd, self.call_tokens);
        BudgetConfig { usd, tokens, calls, minutes, call_usd, call_tokens, unlimited: false }.budget()
    }
}

#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// The workflow, as for `run`
    #[arg(value_name = "PATH", required_unless_present_any = ["resume", "show", "list"])]
    pub(crate) agent: Option<String>,
    /// Work on the open issues of GitHub with this label, from the oldest to the newest
    #[arg(long, value_name = "LABEL", conflicts_with = "from")]
    pub(crate) label: Option<String>,
    /// Work on the tasks of a file: one in each line, or a list in YAML if its name ends in `.yaml`
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// The most tasks to take
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
    /// How many runs work at the same time, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) parallel: u16,
    /// Read the queue once. Without this it is read again when all runs have ended, until no task is left
    #[arg(long, conflicts_with = "watch")]
    pub(crate) once: bool,
    /// Read the queue every so many seconds, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    pub(crate) watch: Option<u64>,
    /// Print which tasks would be taken, why others would not, and what that costs at most; change nothing
    #[arg(long, conflicts_with = "watch")]
    pub(crate) dry_run: bool,
    /// Continue a batch: its id, a unique prefix of it, or the last one
    #[arg(
        long,
        value_name = "BATCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "last",
        conflicts_with_all = OF_A_START
    )]
    pub(crate) resume: Option<String>,
    /// Also if another container or machine worked on the batch, and nobody here can see whether it still does
    #[arg(long, requires = "resume")]
    pub(crate) take_over: bool,
    /// Print what became of the tasks of a batch: its id, a unique prefix of it, or the last one
    #[arg(
        long,
        value_name = "BATCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "last",
        conflicts_with_all = OF_A_START,
        conflicts_with = "resume"
    )]
    pub(crate) show: Option<String>,
    /// Print all batches, the newest first
    #[arg(long, conflicts_with_all = OF_A_START, conflicts_with_all = ["resume", "show"])]
    pub(crate) list: bool,
    /// Set a parameter or a variable of each run
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
    /// The answers of the scripted agent; implies `--provider scripted`
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Work in this folder of the project: agents and commands start there, and its own definitions are found by name
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cd: Option<PathBuf>,
    /// When a run has completed, merge its work into the branch from which it started
    #[arg(long)]
    pub(crate) merge: bool,
    /// When a run has completed, push its work to this remote
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, require_equals = true, default_missing_value = "origin")]
    pub(crate) push: Option<String>,
    /// When a run has completed, propose its work as a pull request into this branch [default: the branch from which it
    /// started]
    #[arg(
        long,
        value_name = "BRANCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "merge"
    )]
    pub(crate) pull_request: Option<String>,
    /// Run without a sandbox: agents and validators have the rights of your user
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// The iteration limit of each run [default: the definition's]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(..=100))]
    pub(crate) repairs: Option<u32>,
    /// Do not run the validators before the first call of each run
    #[arg(long)]
    pub(crate) no_baseline: bool,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(crate) phases: Option<PhasesChoice>,
    #[command(flatten)]
    pub(crate) limits: BatchLimits,
    /// Work without any limit of cost
    #[arg(long, help_heading = "Limits")]
    pub(crate) unlimited: bool,
    /// What every journal record of a run survives
    #[arg(long, value_enum, default_value = "synced")]
    pub(crate) durability: DurabilityChoice,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
