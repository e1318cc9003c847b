//! Compares what we do with recorded facts of the original program: the same inputs, its results, ours.
//!
//! One file a family of subjects. Adapters only dress a case up and call what `check` and `run` call; no rule of
//! the formats lives here. Where we differ on purpose, `docs/internals/deviations.md` says so, case by case.
//!
//! It links the readers and the engine, which `cargo xtask` itself does not, so that that builds quickly.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a development tool that prints its results")]

mod case;
mod checked;
mod compare;
mod complete;
mod declared;
mod direct;
mod drive;
mod entry;
mod inputs;
mod interpret;
mod older;
mod project;
mod report;
mod route;
mod runs;
mod settings;
mod stepflow;
mod verdict;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("error: name the folder with the recorded cases");
        return ExitCode::from(2);
    };
    match report::compare_folder(folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
