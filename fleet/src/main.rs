//! Runs of Cuegate on many machines: Temporal holds them, the journal on Postgres is what counts.
//!
//! A run is one workflow of Temporal that knows nothing but its id, see [`workflow`]. Its one long activity takes the run on
//! a machine and starts `cuegate` for it, see [`hold`]. What several machines decide together, such as budgets, is in tables
//! beside the journal.

/// Prints a line. A reader that has gone, such as `head`, is no error.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

mod checkout;
mod commands;
mod fairness;
mod hold;
mod program;
mod server;
mod settings;
mod submit;
mod worker;
mod workflow;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

/// Run workflows of coding agents on many machines
///
/// The address of Temporal, its namespace, TLS and keys come from its own variables (`TEMPORAL_ADDRESS`,
/// `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, …) and `temporal.toml`.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// The settings: the journal, the repositories, the accounts
    #[arg(long, global = true, value_name = "FILE", default_value = "fleet.toml", env = "CUEGATE_FLEET")]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Take runs and drive them, until SIGTERM
    Worker(worker::WorkerArgs),
    /// Add a run, or one for each issue or task
    Submit(Box<submit::SubmitArgs>),
    /// Print the runs, and what they wait for
    Runs(commands::RunsArgs),
    /// Check the server, the journal and the workers
    Doctor,
    /// End a run
    Cancel(RunArg),
    /// Answer the question of a run
    Answer(commands::AnswerArgs),
    /// Begin no further call: of a run, a repository, or all
    Pause(commands::PauseArgs),
    /// Print or set what runs may cost together
    Budget(commands::BudgetArgs),
}

#[derive(Args)]
struct RunArg {
    /// The run, by its id
    run: String,
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl From<cuegate_journal::Error> for Failure {
    fn from(error: cuegate_journal::Error) -> Failure {
        Failure { message: error.to_string(), hint: error.hint() }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { config, command } = Cli::parse();
    let done = async {
        let settings = settings::load_settings(&config)?;
        match command {
            Command::Worker(args) => worker::work(settings, args).await,
            Command::Submit(args) => submit::submit_runs(&settings, *args).await,
            Command::Runs(args) => commands::print_runs(&settings, &args).await,
            Command::Doctor => commands::check_all(&settings).await,
            Command::Cancel(RunArg { run }) => commands::cancel_run(&settings, &run).await,
            Command::Answer(args) => commands::answer_run(&settings, &args).await,
            Command::Pause(args) => commands::pause_runs(&settings, &args).await,
            Command::Budget(args) => commands::set_budget(&settings, &args).await,
        }
    };
    match done.await {
        Ok(code) => code,
        Err(Failure { message, hint }) => {
            eprintln!("error: {message}");
            if let Some(hint) = hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(4)
        }
    }
}
