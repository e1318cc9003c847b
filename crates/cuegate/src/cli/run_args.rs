//! The arguments of the commands that start, continue and end runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuegate_engine::Budget;

use crate::config::{BudgetConfig, Minutes, PhasesChoice, PositiveCount, Usd};

/// The budget of a run.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunLimits {
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
    pub(super) fn budget(&self) -> Budget {
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
pub(super) enum DurabilityChoice {
    /// Every record survives a power failure
    Synced,
    /// Every record survives a crash of the program; a power failure may lose the last records
    Relaxed,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The workflow: a name that `cuegate list` prints, an agent folder, a registry file, or a workflow file. The
    /// parameters that it declares become options
    pub(super) path: String,
    /// The task, as text
    pub(super) task: Option<String>,
    /// Read the task from a file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(super) input: Option<String>,
    /// Set a parameter or a variable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// The agent: `claude`, `codex`, `openai` or `scripted`
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The model for all calls; it replaces the models of the definition
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Run in a new git worktree, on a new branch
    #[arg(long)]
    pub(super) worktree: bool,
    #[command(flatten)]
    pub(super) limits: RunLimits,
    /// Run without any limit of cost, and do not prompt for one. Without a terminal, a run needs a limit or this flag
    #[arg(long, help_heading = "Limits")]
    pub(super) unlimited: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// When it has completed, commit its work and merge it into the branch from which it started; needs `--worktree`
    #[arg(long, help_heading = "Result")]
    pub(super) merge: bool,
    /// When it has completed, commit its work and push it to this remote; needs `--worktree`
    #[arg(long, help_heading = "Result", value_name = "REMOTE", num_args = 0..=1, require_equals = true, default_missing_value = "origin")]
    pub(super) push: Option<String>,
    /// When it has completed, push its branch and propose it as a pull request into this branch [default: the branch
    /// from which it started]; needs `--worktree`
    #[arg(
        long,
        help_heading = "Result",
        value_name = "BRANCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "merge"
    )]
    pub(super) pull_request: Option<String>,
    /// Work on this issue of GitHub: its texts are the task and variables; also sets a parameter with this flag
    #[arg(long, help_heading = "GitHub", value_name = "NUMBER", conflicts_with = "pr")]
    pub(super) issue: Option<String>,
    /// Work on the review of this pull request of GitHub; also sets a parameter with this flag
    #[arg(long, help_heading = "GitHub", value_name = "NUMBER")]
    pub(super) pr: Option<String>,
    /// Leave GitHub alone, whatever the definition says
    #[arg(long, help_heading = "GitHub")]
    pub(super) no_github: bool,
    /// Work in this folder of the project: agents and commands start there, and its own definitions are found by name
    #[arg(long, help_heading = "More", value_name = "FOLDER")]
    pub(super) cd: Option<PathBuf>,
    /// If another run works in this working tree, start when it has ended
    #[arg(long, help_heading = "More", conflicts_with = "worktree")]
    pub(super) wait: bool,
    /// Run in the background; `cuegate attach` follows it
    #[arg(long, help_heading = "More")]
    pub(super) detach: bool,
    /// Run in the background, and watch it in the whole terminal
    #[arg(long, help_heading = "More", conflicts_with_all = ["detach", "json"])]
    pub(super) watch: bool,
    /// The iteration limit [default: the definition's]
    #[arg(long, help_heading = "More", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, help_heading = "More", value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) repairs: Option<u32>,
    /// Do not run the validators before the first call [default: `baseline` in `[run]` of cuegate.toml]
    #[arg(long, help_heading = "More")]
    pub(super) no_baseline: bool,
    /// Run without a sandbox: agents and validators have the rights of your user
    #[arg(long, help_heading = "More")]
    pub(super) no_sandbox: bool,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, help_heading = "More", value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// The answers of the scripted agent; implies `--provider scripted`
    #[arg(long, help_heading = "More", value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// What every journal record survives
    #[arg(long, help_heading = "More", value_enum, default_value = "synced")]
    pub(super) durability: DurabilityChoice,
    /// The id of the run, given by `--detach` and `--watch` to the background process
    #[arg(long, hide = true)]
    pub(super) run_id: Option<String>,
    /// The branch on the remote that claims the issue, and its commit, given by `cuegate work`
    #[arg(long, hide = true, value_name = "BRANCH=COMMIT")]
    pub(super) claim: Option<String>,
    /// The process of `cuegate work` that this run belongs to: it is interrupted when that ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(super) batch_process: Option<i32>,
}

#[derive(Debug, Args)]
pub(super) struct AttachArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// Switch to this agent
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// Switch the scripted agent to this script, from its first answer
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// Switch to this model for all calls
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Start the agents' conversations anew; their prompts retell what is needed
    #[arg(long)]
    pub(super) new_session: bool,
    /// Continue without the sandbox that the run was started in
    #[arg(long)]
    pub(super) no_sandbox: bool,
    /// Use the settings of `cuegate.toml` as they are now; otherwise the run keeps those it was started with
    #[arg(long)]
    pub(super) reload_config: bool,
    /// Wait until the limit of the agent is reset, and wait out further limits, also of hours
    #[arg(long)]
    pub(super) wait: bool,
    /// Take the run over from a container or machine that is gone; a process that lives keeps it
    #[arg(long)]
    pub(super) take_over: bool,
    /// Belong to no terminal, so that none ends it; `serve` resumes runs so
    #[arg(long, hide = true)]
    pub(super) background: bool,
    /// The process of `cuegate work` that this run belongs to: it is interrupted when that ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(super) batch_process: Option<i32>,
    /// The iteration limit, counted from the start of the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) repairs: Option<u32>,
    #[command(flatten)]
    pub(super) limits: RunLimits,
    /// What every journal record survives
    #[arg(long, value_enum, default_value = "synced")]
    pub(super) durability: DurabilityChoice,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    pub(super) again: ResumeArgs,
    /// The step to continue at [default: the last step of the run]
    #[arg(long, value_name = "STEP")]
    pub(super) from: Option<String>,
    /// A text that is added to the prompt of that step
    #[arg(long, value_name = "TEXT")]
    pub(super) say: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct InstructArgs {
    /// The earlier run: its id, a unique prefix of it, or `last`; `last` if only the text is given
    #[arg(value_name = "RUN")]
    pub(super) run: String,
    /// What to do next
    pub(super) text: Option<String>,
    /// The agent [default: that of the earlier run]
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The answers of the scripted agent; implies `--provider scripted`
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// The model for all calls [default: that of the earlier run]
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The iteration limit [default: the definition's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// Do not run the validators before the first call [default: `baseline` in `[run]` of cuegate.toml]
    #[arg(long)]
    pub(super) no_baseline: bool,
    /// Run without a sandbox: agents and validators have the rights of your user
    #[arg(long)]
    pub(super) no_sandbox: bool,
    #[command(flatten)]
    pub(super) limits: RunLimits,
    /// Run without any limit of cost, and do not prompt for one. Without a terminal, a run needs a limit or this flag
    #[arg(long, help_heading = "Limits")]
    pub(super) unlimited: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// The run: its id, a unique prefix of it, or `last`; `last` if only the answer is given
    #[arg(value_name = "RUN")]
    pub(super) run: Option<String>,
    /// The answer
    #[arg(conflicts_with = "input")]
    pub(super) text: Option<String>,
    /// Read the answer from a file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<String>,
    /// Record the answer without resuming the run
    #[arg(long)]
    pub(super) no_continue: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
}
