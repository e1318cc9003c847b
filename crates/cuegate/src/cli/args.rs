//! Arguments as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cuegate_engine::Budget;
use cuegate_runner::simulation::Agent as StandIn;

use crate::config::{BudgetConfig, Count, Minutes, Phases, Usd};

/// Check it, price it, run it, replay it: declarative workflows of coding agents.
#[derive(Debug, Parser)]
#[command(name = "cuegate", version, about, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Write a definition to begin with into this project
    Init(Init),
    /// Find what is wrong with definitions, before a token is spent
    Check(Check),
    /// Print the manual page of a finding
    Explain(Explain),
    /// Print the JSON Schema of a kind of definition, for editors
    Schema(Schema),
    /// Print a definition as the flow that will run
    Show(Show),
    /// Say the most that a run of a definition can do and cost
    Price(Price),
    /// Draw a definition as a graph
    Graph(Graph),
    /// Walk a definition with stand-in agents, without asking anybody, and say what was covered
    Simulate(Simulate),
    /// Run a definition
    Run(Box<Run>),
    /// Continue a run after a crash, a limit or an interruption
    Resume(Resume),
    /// Answer the question that a run waits with
    Answer(Answer),
    /// End a run for good
    Cancel(Cancel),
    /// List the runs of this project
    Runs(Runs),
    /// Say where a run stands
    Status(Status),
    /// Print what happened in a run
    Log(Log),
    /// Print a run's results, costs and failures
    Report(Report),
    /// Print what a run changed
    Diff(Diff),
    /// Say what works on this machine, and what to do where something does not
    Doctor(Doctor),
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Init {
    /// Which definition: `minimal`, `develop`, or another that `--list` names
    #[arg(required_unless_present = "list")]
    pub(super) starter: Option<String>,
    /// What to call it in this project; as it is called itself unless said
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The command that has to pass before work counts as done; looked for in the project unless said
    #[arg(long, value_name = "COMMAND")]
    pub(super) test: Option<String>,
    /// Say what definitions there are
    #[arg(long, conflicts_with_all = ["starter", "name", "test"])]
    pub(super) list: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Agent folders, registry files, pieces, or names of agents below `.agent` and of pieces below `.takt/pieces`
    #[arg(required = true)]
    pub(super) paths: Vec<String>,
    /// Take warnings for errors
    #[arg(long)]
    pub(super) strict: bool,
    /// Count this variable as given; a value is held against what the definition wants of it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many asks a movement of a piece takes; as `phases` below `[piece]` says, else `fused`
    #[arg(long, value_enum)]
    pub(super) phases: Option<Phases>,
    /// In which form findings are printed
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(super) format: Format,
    /// Print JSON: the same as `--format json`
    #[arg(long)]
    pub(super) json: bool,
    /// Check again whenever a file changes that the definition reads or looks for, until interrupted
    #[arg(long)]
    pub(super) watch: bool,
}

impl Check {
    /// The form in which findings are printed.
    pub(super) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// In which form findings are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Under their lines of the source, for people
    #[default]
    Text,
    /// One object of `cuegate/check/v1`
    Json,
    /// Annotations of a GitHub workflow
    Github,
    /// A SARIF 2.1.0 log, for code hosts and editors
    Sarif,
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The code of the finding, as `check` prints it
    pub(super) code: String,
}

#[derive(Debug, Args)]
pub(super) struct Schema {
    /// Which kind; what kinds there are unless said
    pub(super) dialect: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// An agent folder, a registry file, a piece, or the name of an agent below `.agent` or of a piece below
    /// `.takt/pieces`
    pub(super) path: String,
    /// Count this variable as given; a value is held against what the definition wants of it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many asks a movement of a piece takes; as `phases` below `[piece]` says, else `fused`
    #[arg(long, value_enum)]
    pub(super) phases: Option<Phases>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Price {
    /// An agent folder, a registry file, a piece, or the name of an agent below `.agent` or a piece below `.takt/pieces`
    pub(super) path: String,
    /// Count this variable as given; a value is held against what the definition wants of it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many asks a movement of a piece takes; as `phases` below `[piece]` says, else `fused`
    #[arg(long, value_enum)]
    pub(super) phases: Option<Phases>,
    /// Whose names of models have prices
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// A model for all asks, in place of the definition's
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The most iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How often an answer that cannot be used is asked again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) repairs: Option<u32>,
    #[command(flatten)]
    pub(super) limits: Limits,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// An agent folder, a registry file, a piece, or the name of an agent below `.agent` or a piece below `.takt/pieces`
    pub(super) path: String,
    /// Give a parameter or a variable a value; what is needed and not given is made up
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// How many runs each agent gets [default: until none of its runs finds anything new]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) runs: Option<u64>,
    /// The same seed gives the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Only with this stand-in agent; can be given more than once [default: all]
    #[arg(long = "agent", value_name = "NAME", value_parser = stand_in)]
    pub(super) agents: Vec<StandIn>,
    /// Exit with 1 when less than this much was covered
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) min_coverage: Option<f64>,
    /// The most iterations of a run [default: the definition's, or fewer where many would show nothing more]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How many asks a movement of a piece takes; `fused` unless said
    #[arg(long, value_enum)]
    pub(super) phases: Option<Phases>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

fn stand_in(name: &str) -> Result<StandIn, String> {
    StandIn::named(name).ok_or_else(|| {
        let names = StandIn::ALL.map(StandIn::as_str);
        format!("there is none of that name; there are {}", names.join(", "))
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    percent.filter(|percent| (0.0..=100.0).contains(percent)).ok_or_else(|| "not 0 to 100".to_owned())
}

#[derive(Debug, Args)]
pub(super) struct Graph {
    /// An agent folder, a registry file, a piece, or the name of an agent below `.agent` or a piece below `.takt/pieces`
    pub(super) path: String,
    /// In which form it is printed
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(super) format: Drawing,
    /// Count this variable as given; a value is held against what the definition wants of it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// How many asks a movement of a piece takes; as `phases` below `[piece]` says, else `fused`
    #[arg(long, value_enum)]
    pub(super) phases: Option<Phases>,
    /// Print JSON: the same as `--format json`
    #[arg(long)]
    pub(super) json: bool,
}

/// In which form a graph is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Drawing {
    /// A Mermaid flowchart, which code hosts draw in Markdown
    #[default]
    Mermaid,
    /// Graphviz's language
    Dot,
    /// A picture that needs nothing else
    Svg,
    /// One object of `cuegate/graph/v1`
    Json,
}

/// What a run may use up.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct Limits {
    /// The most money in US dollars, counted from the beginning of the run
    #[arg(long, value_name = "USD")]
    budget_usd: Option<Usd>,
    /// The most tokens, read and written ones together
    #[arg(long, value_name = "N")]
    budget_tokens: Option<Count>,
    /// The most asks, whatever for
    #[arg(long, value_name = "N")]
    budget_asks: Option<Count>,
    /// The most minutes in which the run is driven
    #[arg(long, value_name = "N")]
    budget_minutes: Option<Minutes>,
    /// The most money of one ask; with a budget in dollars 5, or half of it, when nobody says
    #[arg(long, value_name = "USD")]
    ask_usd: Option<Usd>,
    /// The most tokens of one ask; with a budget in tokens 5 million, or half of it, when nobody says
    #[arg(long, value_name = "N")]
    ask_tokens: Option<Count>,
}

impl Limits {
    pub(super) fn budget(&self) -> Budget {
        let Limits {
            budget_usd: usd, budget_tokens: tokens, budget_asks: asks, budget_minutes: minutes, ..
        } = *self;
        let (ask_usd, ask_tokens) = (self.ask_usd, self.ask_tokens);
        BudgetConfig { usd, tokens, asks, minutes, ask_usd, ask_tokens, unlimited: false }.budget()
    }
}

/// How much a record is waited for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Durability {
    /// Every record survives a loss of power
    Synced,
    /// Every record survives the end of the program; a loss of power may cost the last ones
    Relaxed,
}

#[derive(Debug, Args)]
pub(super) struct Run {
    /// An agent folder, a registry file, a piece, or the name of an agent below `.agent` or of a piece below
    /// `.takt/pieces`. Declared parameters are further options
    pub(super) path: String,
    /// What to do, in words
    pub(super) task: Option<String>,
    /// Give a variable a value
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Read the task from a file, `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(super) input: Option<String>,
    /// Who is asked
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The scripted agent's answers; means `--provider scripted`
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// A model for all asks, in place of the definition's
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Work in a git worktree of its own, on a new branch
    #[arg(long)]
    pub(super) worktree: bool,
    /// Run without the sandbox that the definition demands
    #[arg(long)]
    pub(super) no_sandbox: bool,
    /// The most iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How often an answer that cannot be used is asked again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) repairs: Option<u32>,
    /// How many asks a movement of a piece takes; as `phases` below `[piece]` says, else `fused`
    #[arg(long, value_enum)]
    pub(super) phases: Option<Phases>,
    #[command(flatten)]
    pub(super) limits: Limits,
    /// Begin without a budget of money or tokens, and do not ask for one
    #[arg(long, help_heading = "Limits")]
    pub(super) unlimited: bool,
    /// What a record of the run has to survive
    #[arg(long, value_enum, default_value = "synced")]
    pub(super) durability: Durability,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Resume {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
    /// Ask somebody else
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// Another script for the scripted agent, from its beginning
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// Another model for all asks
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Go on without the sandbox that the definition demands, from now on
    #[arg(long)]
    pub(super) no_sandbox: bool,
    /// The most iterations, counted from the beginning of the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// How often an answer that cannot be used is asked again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(super) repairs: Option<u32>,
    #[command(flatten)]
    pub(super) limits: Limits,
    /// What a record of the run has to survive
    #[arg(long, value_enum, default_value = "synced")]
    pub(super) durability: Durability,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Answer {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
    /// The answer
    pub(super) text: String,
    /// Only record the answer
    #[arg(long)]
    pub(super) no_continue: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
}

#[derive(Debug, Args)]
pub(super) struct Runs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Status {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Log {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
    /// Go on while the run goes on
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Print a JSON object a line
    #[arg(long)]
    pub(super) json: bool,
    /// Print texts of any length in the JSON
    #[arg(long, requires = "json")]
    pub(super) full: bool,
}

#[derive(Debug, Args)]
pub(super) struct Report {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
    /// A report that it wrote: its newest text is printed as it is
    #[arg(conflicts_with = "json")]
    pub(super) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The run: its name, a beginning of it, or `last`
    pub(super) run: String,
    /// Print only how many lines changed in which file
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

    /// A parameter of a definition that has the name of one of our flags is reported: by this list.
    #[test]
    fn the_flags_of_run_are_those_that_definitions_may_not_take() {
        let mut cli = Cli::command();
        cli.build();
        let run = cli.find_subcommand("run").unwrap();
        let mut ours: Vec<String> =
            run.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
        let mut listed: Vec<String> = cuegate_formats::OWN_FLAGS.map(str::to_owned).to_vec();
        ours.sort_unstable();
        listed.sort_unstable();
        assert_eq!(ours, listed);
    }
}
