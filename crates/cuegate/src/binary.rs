//! The cuegate binary and its hidden subcommands.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use cuegate_provider::{driven::DriverProgram, openai::OpenAiProgram, scripted::ScriptedProgram};
use cuegate_runner::process::Shim;

use crate::Failure;

/// The binary that serves the hidden subcommands of a run.
#[derive(Debug, Clone)]
pub struct Program {
    exe: PathBuf,
}

impl Program {
    /// The binary at this path, which must be `cuegate`.
    pub fn new(exe: impl Into<PathBuf>) -> Program {
        Program { exe: exe.into() }
    }

    /// The running binary.
    ///
    /// # Errors
    /// When the system does not report its path.
    pub fn current() -> Result<Program, Failure> {
        let exe = std::env::current_exe()
            .map_err(|error| Failure::environment(format!("failed to find the running program: {error}")))?;
        Ok(Program { exe })
    }

    /// Call this first in `main` of a program that runs definitions: cuegate starts the same program again for its
    /// hidden subcommands. `Ok` is the binary to pass to runs; `Err` means that a hidden subcommand ran.
    ///
    /// Do not print, spawn or open anything before: a hidden subcommand inherits the pipes of an agent.
    ///
    /// # Errors
    /// The exit code of a hidden subcommand, to return from `main`.
    pub fn enter() -> Result<Program, ExitCode> {
        let args: Vec<OsString> = std::env::args_os().collect();
        match hidden_part(&args) {
            Some(code) => Err(code),
            None => Program::current().map_err(|_| ExitCode::from(crate::exit::ENVIRONMENT)),
        }
    }

    /// The path of the binary.
    pub(crate) fn path(&self) -> &Path {
        &self.exe
    }

    pub(crate) fn shim(&self) -> Shim {
        Shim { exe: self.exe.clone(), args: vec!["__shim".into()] }
    }

    /// The hidden subcommand that runs inside the sandbox.
    pub(crate) fn inside(&self) -> Shim {
        Shim { exe: self.exe.clone(), args: vec!["__sandbox".into()] }
    }

    pub(crate) fn openai(&self) -> OpenAiProgram {
        OpenAiProgram { exe: self.exe.clone(), args: vec!["__openai".into()] }
    }

    pub(crate) fn driver(&self) -> DriverProgram {
        DriverProgram {
            exe: self.exe.clone(),
            args: vec!["__driver".into()],
            answer_server: vec!["__answer".to_owned()],
        }
    }

    pub(crate) fn scripted(&self) -> ScriptedProgram {
        ScriptedProgram { exe: self.exe.clone(), args: vec!["__scripted".into()] }
    }
}

/// Runs a hidden subcommand if the arguments name one.
pub(crate) fn hidden_part(args: &[OsString]) -> Option<ExitCode> {
    match args.get(1).and_then(|word| word.to_str()) {
        Some("__shim") => Some(cuegate_runner::process::shim_main(args.iter().skip(2).cloned())),
        Some("__sandbox") => Some(cuegate_runner::sandbox::sandbox_main(args.iter().skip(2).cloned())),
        Some("__scripted") => Some(cuegate_provider::scripted::scripted_main()),
        Some("__driver") => Some(cuegate_provider::driven::driver_main()),
        Some("__answer") => Some(cuegate_provider::answer_server_main(args.iter().skip(2).cloned())),
        Some("__openai") => Some(cuegate_provider::openai::openai_main()),
        _ => None,
    }
}
