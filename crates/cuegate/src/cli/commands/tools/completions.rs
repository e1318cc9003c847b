//! `completions`: made of the definition of the command line.

use clap::CommandFactory as _;

use crate::cli::args::Cli;
use crate::cli::print;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

pub(in crate::cli::commands) fn print_completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cuegate", &mut text);
    print::print_exact(&String::from_utf8_lossy(&text));
    Ok(exit::DONE)
}
