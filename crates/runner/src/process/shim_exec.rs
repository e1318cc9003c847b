//! The second stage of the shim: sets up the process and executes the program.
//!
//! Setting the session and the death signal between fork and exec would need unsafe code in the parent. This stage sets
//! them for itself and then calls `exec`.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::spool::to_json;
use super::wire::ExitRecord;

/// First argument of the second stage.
pub(super) const FLAG: &str = "--exec";

/// Builds the second stage's arguments after [`FLAG`].
pub(super) fn build_second_stage_args(
    refused: &Path,
    program: OsString,
    rest: Vec<OsString>,
) -> Vec<OsString> {
    let mut args = vec![std::process::id().to_string().into(), refused.into(), program];
    args.extend(rest);
    args
}

/// Executes the program. Returns only on failure, after writing the reason to the file `refused`.
pub(super) fn exec_program(args: &[OsString]) -> Result<(), String> {
    let [parent, refused, program, rest @ ..] = args else {
        return Err("the second stage of the shim got too few arguments".to_owned());
    };
    let prepared = die_with(parent).and_then(|()| {
        // A new session has its own process group and no terminal, so that no program can wait for a password.
        rustix::process::setsid().map(drop).map_err(io::Error::from)
    });
    let error = match prepared {
        Ok(()) => Command::new(program).args(rest).exec(),
        Err(error) => error,
    };
    let record = classify_start_error(&error, &format!("`{}`: {error}", program.display()));
    fs::write(refused, to_json(&record))
        .map_err(|error| format!("failed to write `{}`: {error}", refused.display()))?;
    Err(String::new())
}

/// Classifies why a program did not start.
pub(super) fn classify_start_error(error: &io::Error, text: &str) -> ExitRecord {
    match error.kind() {
        io::ErrorKind::NotFound => ExitRecord::NotFound(text.to_owned()),
        _ => ExitRecord::NotStarted(text.to_owned()),
    }
}

/// Asks the kernel to kill this process, and the program it executes, when the shim dies, even by SIGKILL.
#[cfg(target_os = "linux")]
fn die_with(parent: &OsString) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The shim may have died before the signal was set.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().to_string());
    match now.as_deref() == parent.to_str() {
        true => Ok(()),
        false => Err(io::Error::other("the shim has ended")),
    }
}

/// Other systems have no such signal. The child of a killed shim runs until the next start kills its group.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: &OsString) -> io::Result<()> {
    Ok(())
}
