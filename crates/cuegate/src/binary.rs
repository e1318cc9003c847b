//! Our own binary, and its hidden parts.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use cuegate_provider::{openai::OpenAiProgram, scripted::ScriptedProgram};
use cuegate_runner::process::Shim;

use crate::Failure;

/// How our own binary is started again for its hidden parts.
#[derive(Debug, Clone)]
pub struct Program {
    exe: PathBuf,
}

impl Program {
    /// The binary at this path, which has to be `cuegate` itself.
    pub fn at(exe: impl Into<PathBuf>) -> Program {
        Program { exe: exe.into() }
    }

    /// The running binary.
    ///
    /// # Errors
    /// When the system does not say which it is.
    pub fn current() -> Result<Program, Failure> {
        let exe = std::env::current_exe()
            .map_err(|error| Failure::environment(format!("failed to find the running program: {error}")))?;
        Ok(Program { exe })
    }

    /// What a program that runs definitions calls first of all in `main`: the hidden parts of a run are this program
    /// again, started with other arguments. It is one of them, has done its work and ends with the code in `Err`; or it
    /// is the program itself, and runs are given what is in `Ok`.
    ///
    /// Nothing may be printed, spawned or opened before: such a part keeps an agent's ends in hand.
    ///
    /// # Errors
    /// The exit code of a hidden part, to return from `main` as it is.
    pub fn enter() -> Result<Program, ExitCode> {
        let args: Vec<OsString> = std::env::args_os().collect();
        match hidden_part(&args) {
            Some(code) => Err(code),
            None => Program::current().map_err(|_| ExitCode::from(crate::exit::ENVIRONMENT)),
        }
    }

    pub(crate) fn shim(&self) -> Shim {
        Shim { exe: self.exe.clone(), args: vec!["__shim".into()] }
    }

    /// How it is started in a room behind the sandbox.
    pub(crate) fn inside(&self) -> Shim {
        Shim { exe: self.exe.clone(), args: vec!["__sandbox".into()] }
    }

    pub(crate) fn openai(&self) -> OpenAiProgram {
        OpenAiProgram { exe: self.exe.clone(), args: vec!["__openai".into()] }
    }

    pub(crate) fn scripted(&self) -> ScriptedProgram {
        ScriptedProgram { exe: self.exe.clone(), args: vec!["__scripted".into()] }
    }
}

/// Acts as a hidden part of a run, when these are the arguments of one.
pub(crate) fn hidden_part(args: &[OsString]) -> Option<ExitCode> {
    match args.get(1).and_then(|word| word.to_str()) {
        Some("__shim") => Some(cuegate_runner::process::shim_main(args.iter().skip(2).cloned())),
        Some("__sandbox") => Some(cuegate_runner::sandbox::sandbox_main(args.iter().skip(2).cloned())),
        Some("__scripted") => Some(cuegate_provider::scripted::scripted_main()),
        Some("__openai") => Some(cuegate_provider::openai::openai_main()),
        _ => None,
    }
}
