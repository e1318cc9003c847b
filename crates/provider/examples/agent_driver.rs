//! Drives an agent and serves its answers: all that the hidden subcommands `cuegate __driver` and `cuegate __answer` do.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(|word| word.to_str()) {
        Some("__answer") => cuegate_provider::answer_server_main(args),
        _ => cuegate_provider::driven::driver_main(),
    }
}
