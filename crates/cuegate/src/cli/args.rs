//! The command-line arguments.

use clap::{Args, Parser, Subcommand, ValueEnum};
use cuegate_runner::simulation::Agent as StandIn;

pub(super) use super::run_args::{
    AnswerArgs, AttachArgs, CancelArgs, DurabilityChoice, InstructArgs, ResumeArgs, RetryArgs, RunArgs,
    RunLimits,
};
use super::work_args::WorkArgs;
use crate::config::PhasesChoice;

/// Check it, price it, run it: declarative workflows of coding agents.
#[derive(Debug, Parser)]
#[command(name = "cuegate", version, about, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Verb,
    /// The package folder of TAKT, or `builtins` in it, for workflows that name TAKT's own definitions [default:
    /// `builtins` in `[takt]` of cuegate.toml, else that of an installed TAKT]
    #[arg(long, global = true, value_name = "PATH")]
    builtins: Option<std::path::PathBuf>,
    /// When to use colours; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub(super) color: Color,
    /// Print only results, questions and errors
    #[arg(long, global = true, help_heading = "Output")]
    pub(super) quiet: bool,
    /// Print what Cuegate itself does, for bug reports: programs, git, GitHub. `-vv`: records too. `CUEGATE_LOG` chooses
    /// by place, such as `cuegate_runner=trace`
    #[arg(short = 'v', global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    pub(super) verbose: u8,
    /// Show no status line
    #[arg(long, global = true, help_heading = "Output")]
    pub(super) no_progress: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Write a starter workflow into this project
    Init(InitArgs),
    /// List the workflows that can be run here
    List(ListArgs),
    /// Report errors and warnings in workflows, without running them
    Check(CheckArgs),
    /// Explain a finding code
    Explain(ExplainArgs),
    /// Print the JSON Schema of a workflow format, for editors
    Schema(SchemaArgs),
    /// Print the steps and edges that a workflow compiles to
    Show(ShowArgs),
    /// Print the prompt of a step as an agent would get it
    Prompt(PromptArgs),
    /// Compute the most steps, calls, tokens and money of a run
    Price(PriceArgs),
    /// Print a workflow as a graph
    Graph(GraphArgs),
    /// Run a workflow with simulated agents and report coverage
    Simulate(SimulateArgs),
    /// Run a workflow
    Run(Box<RunArgs>),
    /// Run a workflow for each issue or task of a queue
    Work(Box<WorkArgs>),
    /// Resume a run after a crash, a limit or an interruption
    Resume(ResumeArgs),
    /// Continue a run that failed, after the cause was fixed
    Retry(Box<RetryArgs>),
    /// Continue the work of an ended run with a new task
    Instruct(Box<InstructArgs>),
    /// Answer the question that a suspended run asks
    Answer(AnswerArgs),
    /// Follow a run that works in the background
    Attach(AttachArgs),
    /// Cancel a run; it cannot be resumed
    Cancel(CancelArgs),
    /// List the runs of this project
    Runs(RunsArgs),
    /// Watch a run, or all runs, in the whole terminal
    Watch(WatchArgs),
    /// Show the runs of this project on a page in the browser
    Serve(ServeArgs),
    /// Print the state of a run
    Status(StatusArgs),
    /// Print the events of a run
    Log(LogArgs),
    /// Print the results, costs and failures of a run
    Report(ReportArgs),
    /// Print and settle the effects of a run on GitHub and branches
    Effect(EffectArgs),
    /// Print the file changes of a run
    Diff(DiffArgs),
    /// Remove worktrees of ended runs; their changes are kept
    Clean(CleanArgs),
    /// Bring the changes of a worktree run into this working tree
    Apply(ApplyArgs),
    /// Take back what a run changed here, without what may be yours
    Undo(UndoArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(ManArgs),
    /// Check this machine: git, disk space, agents and the sandbox
    Doctor(DoctorArgs),
    /// Print the settings in effect, and the files that they come from
    Config(ConfigArgs),
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Try attacks on the sandbox of this machine, and print which are held
    #[arg(long)]
    pub(super) sandbox: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "PATH")]
    pub(super) dir: Option<std::path::PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// The run: its id, a unique prefix of it, or `last`; without one, the list of runs
    pub(super) run: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    pub(super) command: ConfigVerb,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigVerb {
    /// Print the settings in effect, and the files that they come from
    Show(ConfigShowArgs),
}

#[derive(Debug, Args)]
pub(super) struct ConfigShowArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The port, on this machine only [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(super) port: u16,
    /// Listen on this socket file, which only you can connect to, instead of a port
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "open"])]
    pub(super) socket: Option<std::path::PathBuf>,
    /// Let the page answer, cancel, resume and start runs
    #[arg(long)]
    pub(super) allow_control: bool,
    /// Open the page in the browser, or this run on it; also that of a server that runs already
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) open: Option<String>,
    /// Print the link as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The starter: `minimal`, `develop`, or another that `--list` prints
    pub(super) starter: Option<String>,
    /// The name of the new definition [default: the name of the starter]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The test command that must pass before work is done [default: detected from the project's files]
    #[arg(long, value_name = "COMMAND")]
    pub(super) test: Option<String>,
    /// A further command that must pass before work is done, such as a linter; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub(super) check: Vec<String>,
    /// Do not run the test command once to see whether it works
    #[arg(long)]
    pub(super) no_try: bool,
    /// List the starters
    #[arg(long, conflicts_with_all = ["starter", "name", "test", "check"])]
    pub(super) list: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Agent folders, registry files, workflows of TAKT, or names of agents in `.agent` and of workflows in `.takt` [default: all
    /// definitions of the project]
    pub(super) paths: Vec<String>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(super) strict: bool,
    /// Treat this variable as set; a value is checked against the parameter's type and rule
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(super) format: CheckFormat,
    /// Print JSON: the same as `--format json`
    #[arg(long)]
    pub(super) json: bool,
    /// Check again whenever a file of the definition changes, until interrupted
    #[arg(long)]
    pub(super) watch: bool,
}

impl CheckArgs {
    /// The output format.
    pub(super) fn format(&self) -> CheckFormat {
        if self.json { CheckFormat::Json } else { self.format }
    }
}

/// The output format of `check`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum CheckFormat {
    /// Findings with the source lines they refer to
    #[default]
    Text,
    /// One `cuegate/check/v1` object
    Json,
    /// GitHub workflow annotations
    Github,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// A finding code, as `check` prints it
    pub(super) code: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The format; without it, the formats are listed
    pub(super) dialect: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// An agent folder, a registry file, a workflow file, or the name of one in `.agent` or `.takt`
    pub(super) path: String,
    /// Treat this variable as set; a value is checked against the parameter's type and rule
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PriceArgs {
    /// An agent folder, a registry file, a workflow file, or the name of one in `.agent` or `.takt`
    pub(super) path: String,
    /// Treat this variable as set; a value is checked against the parameter's type and rule
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// The agent whose model names and prices apply
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The model for all calls; it replaces the models of the definition
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The iteration limit [default: the definition's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) repairs: Option<u32>,
    #[command(flatten)]
    pub(super) limits: RunLimits,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// An agent folder, a registry file, a workflow file, or the name of one in `.agent` or `.takt`
    pub(super) path: String,
    /// Set a parameter or a variable; required values that are not set are generated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// How many runs each agent gets [default: until its runs cover nothing new]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) runs: Option<u64>,
    /// The time limit of the runs in seconds; what it leaves out is listed [default: 20, none with --runs]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) time: Option<u64>,
    /// The random seed; the same seed gives the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// The simulated agent to use; repeatable [default: all]
    #[arg(long = "agent", value_name = "NAME", value_parser = stand_in)]
    pub(super) agents: Vec<StandIn>,
    /// Exit with 1 when coverage is below this percentage
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(super) min_coverage: Option<f64>,
    /// The iteration limit of a run [default: the definition's, or fewer where more would cover nothing new]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How many calls a step of a TAKT workflow takes [default: fused]
    #[arg(long, value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

fn stand_in(name: &str) -> Result<StandIn, String> {
    StandIn::named(name).ok_or_else(|| {
        let names = StandIn::ALL.map(StandIn::as_str);
        format!("unknown agent; use one of {}", names.join(", "))
    })
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "not a percentage from 0 to 100".to_owned())
}

#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// An agent folder, a registry file, a workflow file, or the name of one in `.agent` or `.takt`
    pub(super) path: String,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(super) format: GraphFormat,
    /// Treat this variable as set; a value is checked against the parameter's type and rule
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// Print JSON: the same as `--format json`
    #[arg(long)]
    pub(super) json: bool,
}

/// The output format of `graph`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum GraphFormat {
    /// A Mermaid flowchart, which code hosts render in Markdown
    #[default]
    Mermaid,
    /// The DOT language of Graphviz
    Dot,
    /// A self-contained SVG image
    Svg,
    /// One `cuegate/graph/v1` object
    Json,
}

#[derive(Debug, Args)]
pub(super) struct PromptArgs {
    /// An agent folder, a registry file, a workflow file, or a name
    pub(super) path: String,
    /// The step [default: the first]
    pub(super) step: Option<String>,
    /// The task
    #[arg(long, value_name = "TEXT")]
    pub(super) task: Option<String>,
    /// Set a parameter or a variable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(super) phases: Option<PhasesChoice>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunsArgs {
    /// Only runs in this state
    #[arg(long, value_name = "STATE", value_parser = ["running", "suspended", "completed", "failed", "aborted", "exhausted", "cancelled"])]
    pub(super) state: Option<String>,
    /// At most this many runs, the newest ones
    #[arg(short, value_name = "N")]
    pub(super) n: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// Keep printing events until the run ends or suspends
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Also print each tool call of the agents
    #[arg(long)]
    pub(super) tools: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
    /// Include texts of any length in the JSON
    #[arg(long, requires = "json")]
    pub(super) full: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// Print the newest version of this report, verbatim
    #[arg(conflicts_with = "json")]
    pub(super) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct EffectArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// The number of the effect in the list, or its id
    pub(super) effect: Option<String>,
    /// Take the effect as done: this is what it created
    #[arg(long, value_name = "URL", conflicts_with = "send_again")]
    pub(super) adopt: Option<String>,
    /// Send the effect again; a comment that was created nevertheless is then there twice
    #[arg(long)]
    pub(super) send_again: bool,
    /// What every journal record survives
    #[arg(long, value_enum, default_value = "synced", hide = true)]
    pub(super) durability: DurabilityChoice,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CleanArgs {
    /// Remove the worktree of this run: its id, a unique prefix of it, or `last` [default: list all worktrees]
    pub(super) run: Option<String>,
    /// Remove those whose changes are in this working tree
    #[arg(long, conflicts_with = "run")]
    pub(super) merged: bool,
    /// Remove those of runs that ended longer ago than this: `30d`, `12h`
    #[arg(long, value_name = "TIME", conflicts_with_all = ["run", "merged"], value_parser = parse_age)]
    pub(super) older_than: Option<std::time::Duration>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Parses `30d`, `12h` or `45m`.
fn parse_age(text: &str) -> Result<std::time::Duration, String> {
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

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// Only list the files that would change
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// Also files that no tool call of the agent names, which you may have changed while the run worked
    #[arg(long)]
    pub(super) all: bool,
    /// Only list the files that would change
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(default_value = "last")]
    pub(super) run: String,
    /// With the changes of the earlier runs that this one follows in its worktree
    #[arg(long)]
    pub(super) whole: bool,
    /// Print only the changed line counts of each file
    #[arg(long)]
    pub(super) stat: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// `check` uses `OWN_FLAGS` to report a parameter whose flag collides with one of ours.
    #[test]
    fn own_flags_lists_every_flag_of_run() {
        let mut cli = Cli::command();
        cli.build();
        let run = cli.find_subcommand("run").unwrap();
        let mut ours: Vec<String> =
            run.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
        let listed = cuegate_formats::OWN_FLAGS.iter().chain(&cuegate_formats::SHARED_FLAGS);
        let mut listed: Vec<String> = listed.map(|flag| (*flag).to_owned()).collect();
        ours.sort_unstable();
        listed.sort_unstable();
        assert_eq!(ours, listed);
    }
}
