//! The log file of a run, if the definition configures one. It is written during the run and rewritten on each resume.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use cuegate_formats::{LogFormat, LogRule};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{Entry, read_stored_text};
use cuegate_view::{LogOptions, StampedRecord, TimeZone, Timeline, event_json};

use crate::Failure;

/// The prefix of our log files; other files in the folder are never removed.
const PREFIX: &str = "cuegate-";

/// Makes git ignore log files, so that they are no violation of a step and no uncommitted change.
const IGNORED: &str = "cuegate-*.jsonl\ncuegate-*.log\n.gitignore\n";

/// An open log file.
pub(crate) struct LogFile {
    run: RunId,
    path: PathBuf,
    file: File,
    format: LogFormat,
    timeline: Timeline,
    /// The first write error.
    trouble: Option<String>,
}

impl LogFile {
    /// Opens the log file of a run, writes all earlier records, and removes the oldest log files above the limit.
    ///
    /// # Errors
    /// When the folder leads out of the project, or cannot be written.
    pub(crate) fn open(
        root: &Path,
        rule: &LogRule,
        run: &RunId,
        journal: &dyn Journal,
        before: &[Entry],
    ) -> Result<LogFile, Failure> {
        let folder = create_log_folder(root, &rule.directory)?;
        let failed = |path: &Path, error: std::io::Error| {
            Failure::environment(format!("failed to write the log `{}`: {error}", path.display()))
        };
        let ignore = folder.join(".gitignore");
        // Never overwrite an existing entry, not even a broken link.
        match File::create_new(&ignore) {
            Ok(mut file) => file.write_all(IGNORED.as_bytes()).map_err(|error| failed(&ignore, error))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&ignore, error)),
        }
        let path = folder.join(format!("{PREFIX}{run}.{}", extension_of_format(rule.format)));
        // Removes a link itself, not its target.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&path, error)),
            _ => {}
        }
        let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
        let timeline = Timeline::new(TimeZone::system()).with_width(None);
        let format = rule.format;
        let mut log = LogFile { run: run.clone(), path, file, format, timeline, trouble: None };
        for entry in before {
            log.write(journal, entry);
        }
        if let Some(most) = rule.files_max {
            log.remove_oldest(&folder, most as usize);
        }
        Ok(log)
    }

    /// Writes a record. A write error does not stop the run, because the journal has every record.
    pub(crate) fn write(&mut self, journal: &dyn Journal, entry: &Entry) {
        let stamped = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events.clone() };
        let lines: Vec<String> = match self.format {
            LogFormat::Text => self.timeline.line(&stamped),
            LogFormat::Jsonl => {
                let texts =
                    |blob: &cuegate_flow::model::BlobRef| read_stored_text(journal, &self.run, blob).ok();
                let values = event_json(self.run.as_str(), &stamped, &texts, LogOptions::default());
                values.iter().map(ToString::to_string).collect()
            }
        };
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if self.trouble.is_none()
            && let Err(error) = self.file.write_all(text.as_bytes())
        {
            self.trouble = Some(format!("the log `{}` is incomplete: {error}", self.path.display()));
        }
    }

    /// Why the log is incomplete, if it is.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Removes our oldest log files until `most` are left, including the one of this run.
    fn remove_oldest(&self, folder: &Path, most: usize) {
        let ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(PREFIX)
                && [LogFormat::Jsonl, LogFormat::Text]
                    .iter()
                    .any(|format| name.ends_with(&format!(".{}", extension_of_format(*format))))
                && *path != self.path
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries
            .filter(ours)
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
            .collect();
        files.sort();
        let over = (files.len() + 1).saturating_sub(most);
        for (_, path) in files.into_iter().take(over) {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

fn extension_of_format(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Jsonl => "jsonl",
        LogFormat::Text => "log",
    }
}

/// Creates a folder in the project. It must not leave the project through a link.
fn create_log_folder(root: &Path, directory: &str) -> Result<PathBuf, Failure> {
    let folder = root.join(directory);
    let leads_out = || {
        Failure::usage(
            format!("the log folder `{directory}` leads out of the project"),
            "correct `runner.logging.directory`, or remove the link",
        )
    };
    let failed = |error: std::io::Error| {
        Failure::environment(format!("failed to create the folder `{directory}`: {error}"))
    };
    let real_root = fs::canonicalize(root).map_err(failed)?;
    // Check the existing part of the path before creating folders in it.
    let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(root);
    let real = fs::canonicalize(there).map_err(|_| leads_out())?;
    if !real.starts_with(&real_root) {
        return Err(leads_out());
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}
