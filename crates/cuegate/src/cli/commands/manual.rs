//! `completions` and `man`: made of the definition of the command line.

use std::{fs, io};

use clap::CommandFactory as _;

use super::ProjectPlace;
use crate::{
    Failure,
    cli::{
        args::{Cli, CompletionsArgs, ManArgs},
        print,
    },
    exit,
};

pub(super) fn print_completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cuegate", &mut text);
    print::print_exact(&String::from_utf8_lossy(&text));
    Ok(exit::DONE)
}

pub(super) fn write_manual(place: &ProjectPlace, args: &ManArgs) -> Result<u8, Failure> {
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
