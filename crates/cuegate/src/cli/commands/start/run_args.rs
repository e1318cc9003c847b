//! The arguments of `run`, and those that other commands share with it.

use crate::cli::commands::shared_args::{AgentArgs, DurabilityChoice, RunLimits};
use std::path::PathBuf;

use clap::Args;
use cuegate_engine::AgentPlan;

use crate::config::PhasesChoice;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The workflow: a name that `cuegate list` prints, an agent folder, a registry file, or a workflow file. The
    /// parameters that it declares become options
    pub(crate) path: String,
    /// The task, as text
    pub(crate) task: Option<String>,
    /// Read the task from a file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(crate) input: Option<String>,
    /// Set a parameter or a variable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
    /// The agents of the run that this one follows
    #[arg(skip)]
    pub(crate) inherited: Option<AgentPlan>,
    /// Run in a new git worktree, on a new branch
    #[arg(long)]
    pub(crate) worktree: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    /// Run without any limit of cost, and do not prompt for one. Without a terminal, a run needs a limit or this flag
    #[arg(long, help_heading = "Limits")]
    pub(crate) unlimited: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// When it has completed, commit its work and merge it into the branch from which it started; needs `--worktree`
    #[arg(long, help_heading = "Result")]
    pub(crate) merge: bool,
    /// When it has completed, commit its work and push it to this remote; needs `--worktree`
    #[arg(long, help_heading = "Result", value_name = "REMOTE", num_args = 0..=1, require_equals = true, default_missing_value = "origin")]
    pub(crate) push: Option<String>,
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
    pub(crate) pull_request: Option<String>,
    /// Work on this issue of GitHub: its texts are the task and variables; also sets a parameter with this flag
    #[arg(long, help_heading = "GitHub", value_name = "NUMBER", conflicts_with = "pr")]
    pub(crate) issue: Option<String>,
    /// Work on the review of this pull request of GitHub; also sets a parameter with this flag
    #[arg(long, help_heading = "GitHub", value_name = "NUMBER")]
    pub(crate) pr: Option<String>,
    /// Leave GitHub alone, whatever the definition says
    #[arg(long, help_heading = "GitHub")]
    pub(crate) no_github: bool,
    /// Work in this folder of the project: agents and commands start there, and its own definitions are found by name
    #[arg(long, help_heading = "More", value_name = "FOLDER")]
    pub(crate) cd: Option<PathBuf>,
    /// If another run works in this working tree, start when it has ended
    #[arg(long, help_heading = "More", conflicts_with = "worktree")]
    pub(crate) wait: bool,
    /// Run in the background; `cuegate attach` follows it
    #[arg(long, help_heading = "More")]
    pub(crate) detach: bool,
    /// With `--detach`: if a run of this project was started with this key, start nothing and print that run
    #[arg(long = "once", help_heading = "More", value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Run in the background, and show it on the full screen, as `cuegate watch` does
    #[arg(long, help_heading = "More", conflicts_with_all = ["detach", "json"])]
    pub(crate) watch: bool,
    /// The iteration limit [default: the definition's]
    #[arg(long, help_heading = "More", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, help_heading = "More", value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) repairs: Option<u32>,
    /// Do not run the validators before the first call [default: `baseline` in `[run]` of cuegate.toml]
    #[arg(long, help_heading = "More")]
    pub(crate) no_baseline: bool,
    /// Run without a sandbox: agents and validators have the rights of your user
    #[arg(long, help_heading = "More")]
    pub(crate) no_sandbox: bool,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, help_heading = "More", value_enum)]
    pub(crate) phases: Option<PhasesChoice>,
    /// The answers of the scripted agent; implies `--provider scripted`
    #[arg(long, help_heading = "More", value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// What every journal record survives
    #[arg(long, help_heading = "More", value_enum, default_value = "synced")]
    pub(crate) durability: DurabilityChoice,
    /// The id of the run, given by `--detach` and `--watch` to the background process
    #[arg(long, hide = true)]
    pub(crate) run_id: Option<String>,
    /// The branch on the remote that claims the issue, and its commit, given by `cuegate work`
    #[arg(long, hide = true, value_name = "BRANCH=COMMIT")]
    pub(crate) claim: Option<String>,
    /// The label of the queue that released the issue, given by `cuegate work`
    #[arg(long, hide = true, value_name = "LABEL")]
    pub(crate) released_by: Option<String>,
    /// The process of `cuegate work` that this run belongs to: it is interrupted when that ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) batch_process: Option<i32>,
}
