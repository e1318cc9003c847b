//! `man`: made of the definition of the command line.

use std::{fs, io};

use clap::CommandFactory as _;

use crate::cli::args::Cli;
use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<std::path::PathBuf>,
}

pub(in crate::cli::commands) fn write_manual(place: &ProjectPlace, args: &ManArgs) -> Result<u8, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(wrap_manual_error)?;
        print::print_exact(&String::from_utf8_lossy(&page));
        return Ok(exit::DONE);
    };
    let folder = place.here.join(folder);
    fs::create_dir_all(&folder)
        .and_then(|()| clap_mangen::generate_to(command, &folder))
        .map_err(wrap_manual_error)?;
    print::print_line(&format!(
        "the pages are in {}; `man -M` needs them in a folder man1",
        folder.display()
    ));
    Ok(exit::DONE)
}

fn wrap_manual_error(error: io::Error) -> Failure {
    Failure::environment(format!("failed to write the manual: {error}"))
}
