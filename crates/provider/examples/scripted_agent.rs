//! Performs one scripted job: all that the hidden subcommand `cuegate __scripted` does, as the smallest program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuegate_provider::scripted::scripted_main()
}
