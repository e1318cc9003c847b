//! Verifies what runs recorded.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use cuegate_journal::{Journal, RunSummary};

use crate::{
    Failure,
    exported_run::{DamageRule, ExportSummary, write_run},
};

/// A run whose records and texts were verified.
pub(crate) struct VerifiedRun {
    pub(crate) summary: ExportSummary,
    /// The file with what can be read of it.
    pub(crate) saved: Option<String>,
}

/// Reads all records and texts of a run. Writes those of a damaged one into a file of `folder`, as far as they can be read.
///
/// # Errors
/// When the journal cannot be read, or the file is there or cannot be written.
pub(crate) fn verify_run(
    journal: &dyn Journal,
    known: &RunSummary,
    folder: Option<&Path>,
) -> Result<VerifiedRun, Failure> {
    let mut summary = write_run(journal, &known.run, &mut io::sink(), DamageRule::LeaveOut)?;
    if let Some(damage) = known.damage.clone().filter(|_| summary.damage.is_empty()) {
        summary.damage.push(damage);
    }
    let Some(folder) = folder.filter(|_| !summary.damage.is_empty() && summary.records > 0) else {
        return Ok(VerifiedRun { summary, saved: None });
    };
    let path = folder.join(format!("{}.jsonl", known.run));
    let failed =
        |error: io::Error| Failure::environment(format!("failed to write `{}`: {error}", path.display()));
    if path.exists() {
        let hint = "give another folder with `--save`";
        return Err(Failure::usage(format!("`{}` is there already", path.display()), hint));
    }
    let mut file = BufWriter::new(fs::File::create_new(&path).map_err(failed)?);
    write_run(journal, &known.run, &mut file, DamageRule::LeaveOut)?;
    file.flush().map_err(failed)?;
    Ok(VerifiedRun { summary, saved: Some(path.display().to_string()) })
}
