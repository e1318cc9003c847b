//! The second stage of the shim: it becomes the program.
//!
//! What has to be set in the child between fork and exec (session, death signal) would need unsafe code in the parent. A
//! program of our own may set it for itself and then `exec`.

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

/// The second stage's arguments after [`FLAG`].
pub(super) fn args(refused: &Path, program: OsString, rest: Vec<OsString>) -> Vec<OsString> {
    let mut args = vec![std::process::id().to_string().into(), refused.into(), program];
    args.extend(rest);
    args
}

/// Becomes the program. Returns only when that fails, after leaving the reason in the file `refused`.
pub(super) fn exec(args: &[OsString]) -> Result<(), String> {
    let [parent, refused, program, rest @ ..] = args else {
        return Err("the second stage of the shim got too few arguments".to_owned());
    };
    let prepared = die_with(parent).and_then(|()| {
        // A session of its own has a process group of its own and no terminal: nothing it starts can wait for a
        // password that nobody will type.
        rustix::process::setsid().map(drop).map_err(io::Error::from)
    });
    let error = match prepared {
        Ok(()) => Command::new(program).args(rest).exec(),
        Err(error) => error,
    };
    let record = refusal(&error, &format!("`{}`: {error}", program.display()));
    fs::write(refused, to_json(&record))
        .map_err(|error| format!("failed to write `{}`: {error}", refused.display()))?;
    Err(String::new())
}

/// Sorts why a program did not start.
pub(super) fn refusal(error: &io::Error, text: &str) -> ExitRecord {
    match error.kind() {
        io::ErrorKind::NotFound => ExitRecord::NotFound(text.to_owned()),
        _ => ExitRecord::NotStarted(text.to_owned()),
    }
}

/// Has the kernel kill us, and the program that we become, when the shim dies, even by SIGKILL.
#[cfg(target_os = "linux")]
fn die_with(parent: &OsString) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before the signal was set.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().to_string());
    match now.as_deref() == parent.to_str() {
        true => Ok(()),
        false => Err(io::Error::other("the shim is gone")),
    }
}

/// There is no such signal here. A killed shim leaves the child running until the next start kills its group.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: &OsString) -> io::Result<()> {
    Ok(())
}
