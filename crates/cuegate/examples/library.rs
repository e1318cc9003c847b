//! Runs an agent from a program of one's own and prints its history.
//!
//! `library FOLDER AGENT TOPIC SCRIPT` runs the agent `AGENT` of the project in `FOLDER` with the scripted agent; another
//! provider needs no script: `RunOptions::new(program, "claude")`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example says what it did")]

use std::path::Path;
use std::process::ExitCode;

use cuegate::{Definition, Failure, Program, RunOptions, RunResult};

fn main() -> ExitCode {
    // First of all: the hidden parts of a run are this program again.
    let program = match Program::enter() {
        Ok(program) => program,
        Err(code) => return code,
    };
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, agent, topic, script] = args.as_slice() else {
        eprintln!("usage: library FOLDER AGENT TOPIC SCRIPT");
        return ExitCode::from(2);
    };
    match improve_topic(program, Path::new(folder), agent, topic, script) {
        Ok(result) => ExitCode::from(result.exit_code()),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

fn improve_topic(
    program: Program,
    folder: &Path,
    agent: &str,
    topic: &str,
    script: &str,
) -> Result<RunResult, Failure> {
    let definition = Definition::load(agent, folder)?;
    let options = RunOptions::scripted(program, script).arg("topic", topic);
    let result = cuegate::run(&definition, options)?;

    println!("Success: {}", result.success());
    println!("Final Step: {}", result.final_step().unwrap_or("none"));
    println!("Completion: {}", result.completion_reason().unwrap_or("none"));
    for entry in result.history() {
        let message = entry.check.and_then(|check| check.message).unwrap_or_default();
        println!("{}: {} ({message})", entry.step, entry.transition.unwrap_or("again"));
    }
    Ok(result)
}
