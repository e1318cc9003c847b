//! Puts one ask to a service: all that the hidden subcommand `cuegate __openai` does, as the smallest program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuegate_provider::openai::openai_main()
}
