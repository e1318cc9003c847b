//! `export`: a run in one file.

use std::{
    fs,
    io::{BufWriter, Write as _},
    path::PathBuf,
};

use cuegate_view::plural;

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::exported_run::{DamageRule, write_run, write_snapshots};
use crate::run_changes::open_trees;
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run: its id, a unique prefix of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The file to write; `replay`, `report`, `status`, `log` and `why` read it in place of a run
    pub(crate) file: PathBuf,
    /// With the files that the run changed, before and after each change, for `diff` and the page
    #[arg(long)]
    pub(crate) snapshots: bool,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

pub(in crate::cli::commands) fn export_run(place: &ProjectPlace, args: &ExportArgs) -> Result<u8, Failure> {
    let journal = place.view()?;
    let id = project::find_run_id(&place.home, &*journal, &args.run)?;
    let shown = args.file.display();
    let failed = |error: std::io::Error| Failure::environment(format!("failed to write `{shown}`: {error}"));
    if args.file.exists() && !args.force {
        return Err(Failure::usage(format!("`{shown}` is there already"), "replace it with `--force`"));
    }
    // A part of a run is never left under this name.
    let partial = args.file.with_extension(format!("partial-{}", std::process::id()));
    let write = || {
        let mut file = BufWriter::new(fs::File::create(&partial).map_err(failed)?);
        let summary = write_run(&*journal, &id, &mut file, DamageRule::Refuse)?;
        if args.snapshots {
            let run = cuegate_runner::read_run(&*journal, &id)?;
            let trees = open_trees(&place.home, &run)?.ok_or_else(|| {
                Failure::environment(format!("`{}` is not in a git repository", place.home.root().display()))
            })?;
            write_snapshots(&*journal, &id, &trees, &mut file)?;
        }
        file.flush().map_err(failed)?;
        fs::rename(&partial, &args.file).map_err(failed)?;
        Ok::<_, Failure>(summary)
    };
    let summary = write().inspect_err(|_| _ = fs::remove_file(&partial))?;
    print::print_line(&format!(
        "run {id}: {} and {} in `{shown}`",
        plural(summary.records, "record"),
        plural(summary.texts, "text")
    ));
    if summary.redacted > 0 {
        let what = plural(summary.redacted, "text");
        print::print_line(&format!("note: {what} with the value of a secret environment variable left out"));
    }
    print::print_line(match args.snapshots {
        true => {
            "note: prompts, answers, output of commands, the workflow and the files that it changed are in it"
        }
        false => "note: prompts, answers, output of commands and the workflow are in it; its files are not",
    });
    Ok(exit::DONE)
}
