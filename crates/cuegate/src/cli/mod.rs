//! The command line: parses arguments, prints output, returns exit codes. Nothing else prints.

mod args;
mod commands;
mod help_groups;
mod live;
mod logging;
mod notify;
pub(crate) mod params;
mod print;
mod set_values;
mod status_line;
mod stop;

use std::{ffi::OsString, process::ExitCode};

use crate::exit;

/// Runs the program.
///
/// Cuegate starts its own binary for hidden subcommands. They run first, before any async runtime exists.
pub fn main(args: Vec<OsString>) -> ExitCode {
    if let Some(code) = crate::binary::hidden_part(&args) {
        return code;
    }
    match commands::dispatch_command(args) {
        // Lost output must not look like complete output.
        Ok(exit::DONE) if print::is_lost() => ExitCode::from(exit::ENVIRONMENT),
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print::print_failure(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Prints what to do after a panic, which is a bug of cuegate.
pub fn explain_bug() {
    print::print_bug_notice();
}

/// The exit code of a bug, for the panic hook.
pub const BUG: u8 = exit::BUG;
