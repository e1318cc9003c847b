//! The command line: arguments in, lines and exit codes out. The only part that prints.

mod args;
mod commands;
mod live;
mod notify;
pub(crate) mod params;
mod print;
mod set_values;
mod stop;

use std::{ffi::OsString, process::ExitCode};

use crate::exit;

/// Runs the program.
///
/// Hidden parts of the same binary come first: they are started by the program itself, before any runtime exists.
pub fn main(args: Vec<OsString>) -> ExitCode {
    if let Some(code) = crate::binary::hidden_part(&args) {
        return code;
    }
    match commands::dispatch(args) {
        // Half of what was asked for must not pass for all of it.
        Ok(exit::DONE) if print::is_lost() => ExitCode::from(exit::ENVIRONMENT),
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print::failure(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Says what to do after a panic of ours.
pub fn explain_bug() {
    print::bug();
}

/// The exit code of a bug, for the panic hook.
pub const BUG: u8 = exit::BUG;
