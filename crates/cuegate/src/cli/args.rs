//! The command line: the verbs, and what all of them take. The arguments of a verb stand in its own file.

use clap::{Parser, Subcommand, ValueEnum};

use crate::cli::commands::compare::CompareArgs;
use crate::cli::commands::follow_up::attach::AttachArgs;
use crate::cli::commands::follow_up::export::ExportArgs;
use crate::cli::commands::follow_up::log::LogArgs;
use crate::cli::commands::follow_up::replay::ReplayArgs;
use crate::cli::commands::follow_up::report::ReportArgs;
use crate::cli::commands::follow_up::runs::RunsArgs;
use crate::cli::commands::follow_up::serve::ServeArgs;
use crate::cli::commands::follow_up::status::StatusArgs;
use crate::cli::commands::follow_up::watch::WatchArgs;
use crate::cli::commands::follow_up::why::WhyArgs;
use crate::cli::commands::go_on::answer::AnswerArgs;
use crate::cli::commands::go_on::cancel::CancelArgs;
use crate::cli::commands::go_on::fork::ForkArgs;
use crate::cli::commands::go_on::instruct::InstructArgs;
use crate::cli::commands::go_on::resume::ResumeArgs;
use crate::cli::commands::go_on::retry::RetryArgs;
use crate::cli::commands::mcp::McpArgs;
use crate::cli::commands::setup::SetupArgs;
use crate::cli::commands::start::init::InitArgs;
use crate::cli::commands::start::list::ListArgs;
use crate::cli::commands::start::run_args::RunArgs;
use crate::cli::commands::start::work_args::WorkArgs;
use crate::cli::commands::take::apply::ApplyArgs;
use crate::cli::commands::take::clean::CleanArgs;
use crate::cli::commands::take::diff::DiffArgs;
use crate::cli::commands::take::effect::EffectArgs;
use crate::cli::commands::take::gc::GcArgs;
use crate::cli::commands::take::restore::RestoreArgs;
use crate::cli::commands::take::undo::UndoArgs;
use crate::cli::commands::tools::agents::AgentsArgs;
use crate::cli::commands::tools::completions::CompletionsArgs;
use crate::cli::commands::tools::config::ConfigArgs;
use crate::cli::commands::tools::doctor::DoctorArgs;
use crate::cli::commands::tools::man::ManArgs;
use crate::cli::commands::write::check::CheckArgs;
use crate::cli::commands::write::explain::ExplainArgs;
use crate::cli::commands::write::graph::GraphArgs;
use crate::cli::commands::write::price::PriceArgs;
use crate::cli::commands::write::prompt::PromptArgs;
use crate::cli::commands::write::schema::SchemaArgs;
use crate::cli::commands::write::show::ShowArgs;
use crate::cli::commands::write::simulate::SimulateArgs;

/// The version; that of a package names its commit, day and target too.
const VERSION: &str = match option_env!("CUEGATE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Check it, price it, run it: declarative workflows of coding agents.
#[derive(Debug, Parser)]
#[command(name = "cuegate", version = VERSION, about, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Verb,
    /// The package folder of TAKT, or `builtins` in it, for workflows that name TAKT's own definitions [default:
    /// `builtins` in `[takt]` of cuegate.toml, else that of an installed TAKT]
    #[arg(long, global = true, value_name = "PATH")]
    builtins: Option<std::path::PathBuf>,
    /// The journal of all runs, as `postgres://USER@HOST/DATABASE`, which many machines share [default: `url` in
    /// `[journal]` of cuegate.toml, else files in `.cuegate/runs`]
    #[arg(long, global = true, value_name = "URL")]
    journal: Option<String>,
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
    /// Tell how workflows and their worst case changed
    Compare(CompareArgs),
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
    /// Go on from a moment of a run as a new one, with its files
    Fork(Box<ForkArgs>),
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
    /// Explain why a run is where it is
    Why(WhyArgs),
    /// Print the events of a run
    Log(LogArgs),
    /// Write a run into one file, for another machine
    Export(ExportArgs),
    /// Decide a run again from its record, or through an edited workflow
    Replay(ReplayArgs),
    /// Print the results, costs and failures of a run
    Report(ReportArgs),
    /// Print and settle the effects of a run on GitHub and branches
    Effect(EffectArgs),
    /// Print the file changes of a run
    Diff(DiffArgs),
    /// Remove worktrees of ended runs; their changes are kept
    Clean(CleanArgs),
    /// Remove old runs, and snapshots that no run needs
    Gc(GcArgs),
    /// Bring the changes of a worktree run into this working tree
    Apply(ApplyArgs),
    /// Bring files back as they were at a moment of a run
    Restore(RestoreArgs),
    /// Take back what a run changed here, without what may be yours
    Undo(UndoArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    Man(ManArgs),
    /// List the agents, and what each can do here
    Agents(AgentsArgs),
    /// Check this machine: git, disk space, agents and the sandbox
    Doctor(DoctorArgs),
    /// Print the settings in effect, and the files that they come from
    Config(ConfigArgs),
    /// Let Claude Code or Codex use Cuegate by itself
    Setup(SetupArgs),
    /// Serve tools for agents that check, price, start and follow runs
    Mcp(McpArgs),
}

impl Verb {
    /// Whether it reads definitions and settings only. It opens nothing that they name, because they may be those of a change
    /// that is under review.
    pub(super) fn only_reads_definitions(&self) -> bool {
        matches!(
            self,
            Verb::Check(_)
                | Verb::Compare(_)
                | Verb::Explain(_)
                | Verb::Graph(_)
                | Verb::List(_)
                | Verb::Price(_)
                | Verb::Prompt(_)
                | Verb::Schema(_)
                | Verb::Show(_)
                | Verb::Simulate(_)
        )
    }

    /// Whether it starts or continues a run, and so calls agents. A script costs nothing.
    pub(super) fn calls_agents(&self) -> bool {
        matches!(self, Verb::Run(args) if args.script.is_none())
            || matches!(
                self,
                Verb::Work(_)
                    | Verb::Resume(_)
                    | Verb::Retry(_)
                    | Verb::Fork(_)
                    | Verb::Instruct(_)
                    | Verb::Answer(_)
            )
    }
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
