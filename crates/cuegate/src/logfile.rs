//! The log file of a run, where a definition wants one: written while the run goes on, whole again after each resume.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use cuegate_formats::{LogFormat, LogRule};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{Entry, lookup};
use cuegate_view::{LogOptions, Stamped, TimeZone, Timeline, event_json};

use crate::Failure;

/// What our log files are called, before the run's name: others in the folder are not ours to remove.
const PREFIX: &str = "cuegate-";

/// Keeps git from seeing log files, so that no step is blamed for them and no tree is dirty because of them.
const IGNORED: &str = "cuegate-*.jsonl\ncuegate-*.log\n.gitignore\n";

/// An open log file.
pub(crate) struct LogFile {
    run: String,
    path: PathBuf,
    file: File,
    format: LogFormat,
    timeline: Timeline,
    /// Why it could not be written any more.
    trouble: Option<String>,
}

impl LogFile {
    /// Opens the log file of a run with all that happened before, and removes the oldest ones that are too many.
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
        let folder = inside(root, &rule.directory)?;
        let failed = |path: &Path, error: std::io::Error| {
            Failure::environment(format!("failed to write the log `{}`: {error}", path.display()))
        };
        let ignore = folder.join(".gitignore");
        // Whatever is there, a link that leads nowhere too, is not ours to write.
        match File::create_new(&ignore) {
            Ok(mut file) => file.write_all(IGNORED.as_bytes()).map_err(|error| failed(&ignore, error))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&ignore, error)),
        }
        let path = folder.join(format!("{PREFIX}{run}.{}", extension(rule.format)));
        // A link of that name is removed, and what it leads to stays as it is.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&path, error)),
            _ => {}
        }
        let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
        let timeline = Timeline::new(TimeZone::system());
        let (run, format) = (run.to_string(), rule.format);
        let mut log = LogFile { run, path, file, format, timeline, trouble: None };
        for entry in before {
            log.write(journal, entry);
        }
        if let Some(most) = rule.files_max {
            log.remove_oldest(&folder, most as usize);
        }
        Ok(log)
    }

    /// Adds what a record tells. A log that cannot be written does not stop the run: the journal has all of it.
    pub(crate) fn write(&mut self, journal: &dyn Journal, entry: &Entry) {
        let stamped = Stamped { seq: entry.seq, at_ms: entry.at_ms, events: entry.events.clone() };
        let lines: Vec<String> = match self.format {
            LogFormat::Text => self.timeline.line(&stamped),
            LogFormat::Jsonl => {
                let texts = |blob: &cuegate_flow::model::BlobRef| lookup(journal, blob).ok();
                let values = event_json(&self.run, &stamped, &texts, LogOptions::default());
                values.iter().map(ToString::to_string).collect()
            }
        };
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if self.trouble.is_none()
            && let Err(error) = self.file.write_all(text.as_bytes())
        {
            self.trouble = Some(format!("the log `{}` is not whole: {error}", self.path.display()));
        }
    }

    /// Why it is not whole, if it is not.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Removes the oldest of our log files until so many are left. This run's own is the newest.
    fn remove_oldest(&self, folder: &Path, most: usize) {
        let ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(PREFIX)
                && [LogFormat::Jsonl, LogFormat::Text]
                    .iter()
                    .any(|format| name.ends_with(&format!(".{}", extension(*format))))
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
            // One that stays is one too many, nothing worse.
            let _ = fs::remove_file(path);
        }
    }
}

fn extension(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Jsonl => "jsonl",
        LogFormat::Text => "log",
    }
}

/// Makes a folder of the project, which must not lead out of it through a link.
fn inside(root: &Path, directory: &str) -> Result<PathBuf, Failure> {
    let folder = root.join(directory);
    let leads_out = || {
        Failure::usage(
            format!("the log folder `{directory}` leads out of the project"),
            "correct `runner.logging.directory`, or remove the link",
        )
    };
    let failed = |error: std::io::Error| {
        Failure::environment(format!("failed to make the folder `{directory}`: {error}"))
    };
    let real_root = fs::canonicalize(root).map_err(failed)?;
    // What is there already of the way is looked at before anything is made below it.
    let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(root);
    let real = fs::canonicalize(there).map_err(|_| leads_out())?;
    if !real.starts_with(&real_root) {
        return Err(leads_out());
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}
