//! Asks before a definition that nobody may have read does what only the user decides: it takes the name of a built-in
//! one or one of the home folder, or turns the sandbox off. An agent of an earlier run may have written it.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt as _, path::Path};

use cuegate_flow::model::{BlobRef, Flow, sandbox::SandboxRule};
use cuegate_runner::{
    StateDir,
    worktree::{TrackingState, tracking_of},
};
use cuegate_view::RunState;

use crate::project::FoldedRun;
use crate::{
    Failure,
    definition::{Location, NamedDefinition, Origin},
    init, project,
};

/// The file with the digests of definitions that the user accepted.
const FILE: &str = "reviewed.json";
/// File systems and processes have clocks of their own.
const SLACK_MS: i64 = 100;
/// The most runs whose changes are looked through, the newest first.
const RUNS_MAX: usize = 200;

/// What a definition does that needs a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewQuestion {
    /// The definition, relative to the project.
    path: String,
    digest: String,
    /// What it does, and why nobody may have read it.
    pub(crate) message: String,
    hint: String,
}

/// The definition of a name that a project's one hides: `a built-in one` or the like.
pub(crate) fn hidden_definition(named: &NamedDefinition, in_home: &[String]) -> Option<&'static str> {
    match named.origin {
        Origin::Home => None,
        Origin::Project if in_home.contains(&named.name) => Some("the one of your home folder"),
        Origin::Project => {
            let is_starter = init::STARTERS.iter().any(|starter| starter.name == named.name);
            is_starter.then_some("the built-in one")
        }
    }
}

/// The definition that the named one takes the place of.
pub(crate) fn hidden_by(
    home: &StateDir,
    here: &Path,
    typed: &str,
    location: &Location,
) -> Option<&'static str> {
    // A path means what it says.
    if location.is_elsewhere || location.built_in.is_some() || here.join(typed).exists() {
        return None;
    }
    let named = NamedDefinition { name: typed.to_owned(), path: here.to_owned(), origin: Origin::Project };
    hidden_definition(&named, &crate::definition::names_in_home(home.root()))
}

/// The question that the user answers before this definition runs; `None` if it needs no review. `typed` is its name or
/// path; `off`: whether the user turned the sandbox off anyway.
///
/// # Errors
/// When git or the journal cannot be read.
pub(crate) fn review_question(
    home: &StateDir,
    here: &Path,
    typed: &str,
    location: &Location,
    flow: &Flow,
    off: bool,
) -> Result<Option<ReviewQuestion>, Failure> {
    if location.is_elsewhere || location.built_in.is_some() {
        return Ok(None);
    }
    let hidden = hidden_by(home, here, typed, location);
    let turns_off = !off && flow.conduct.sandbox == SandboxRule::Off;
    if hidden.is_none() && !turns_off {
        return Ok(None);
    }
    let path = match &location.file {
        Some(file) if location.base.is_empty() => file.clone(),
        Some(file) => format!("{}/{file}", location.base),
        None => location.base.clone(),
    };
    let digest = digest_of(&home.root().join(&path));
    if read_reviewed(home).get(&path) == Some(&digest) {
        return Ok(None);
    }
    let why = match (writer_of(home, &path)?, turns_off) {
        (Some(run), _) => format!("run {run} worked when it was written, or changed it"),
        (None, false) => return Ok(None),
        (None, true) => match tracking_of(home.root(), &path).map_err(cuegate_runner::Error::from)? {
            TrackingState::Untracked => "it is in no commit".to_owned(),
            TrackingState::Changed => "it differs from the last commit".to_owned(),
            TrackingState::Unknown => "the project has no version control".to_owned(),
            TrackingState::Committed => return Ok(None),
        },
    };
    let off = "turns the sandbox off";
    let what = match hidden {
        Some(hidden) => {
            let both = if turns_off { format!(", and {off}") } else { String::new() };
            format!("`{path}` takes the place of {hidden} with the name `{typed}`{both}")
        }
        None => format!("`{path}` {off}"),
    };
    let message = format!("{what}; {why}: an agent may have written it");
    let flag = if turns_off { " --no-sandbox" } else { "" };
    let hint = format!(
        "read it, then run `cuegate run ./{path}{flag}`; at a terminal `cuegate run` asks whether to accept it"
    );
    Ok(Some(ReviewQuestion { path, digest, message, hint }))
}

impl ReviewQuestion {
    /// The failure of a run that nobody can be asked about.
    pub(crate) fn refusal(&self) -> Failure {
        Failure::usage(self.message.clone(), self.hint.clone())
    }

    /// Remembers that the user accepted the definition as it is now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn accept(&self, home: &StateDir) -> Result<(), Failure> {
        remember_digest(home, &self.path, &self.digest)
    }
}

fn remember_digest(home: &StateDir, path: &str, digest: &str) -> Result<(), Failure> {
    let mut all = read_reviewed(home);
    all.insert(path.to_owned(), digest.to_owned());
    let file = home.dir().join(FILE);
    let text = serde_json::to_vec_pretty(&all).unwrap_or_default();
    let failed = |error| Failure::environment(format!("failed to write `{}`: {error}", file.display()));
    fs::write(&file, text).map_err(failed)
}

fn read_reviewed(home: &StateDir) -> BTreeMap<String, String> {
    let text = fs::read(home.dir().join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The digest of a file, or of all files of a folder with their names.
fn digest_of(path: &Path) -> String {
    let mut files = BTreeMap::new();
    let mut left = vec![path.to_owned()];
    while let Some(at) = left.pop() {
        match fs::read_dir(&at) {
            Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => _ = files.insert(at.clone(), fs::read(&at).unwrap_or_default()),
        }
    }
    let all = files.into_iter().flat_map(|(file, bytes)| {
        let name = file.strip_prefix(path).unwrap_or(&file).display().to_string();
        format!("{name}\0{}\n", BlobRef::for_bytes(&bytes).digest).into_bytes()
    });
    BlobRef::for_bytes(&all.collect::<Vec<u8>>()).digest.to_string()
}

/// A run whose agents may have written a definition: it changed one of its files, or was at work when one was last
/// written. Only the system sets that time.
fn writer_of(home: &StateDir, path: &str) -> Result<Option<String>, Failure> {
    let Some(journal) = project::open_journal_read_only(home)? else { return Ok(None) };
    let written = times_of(&home.root().join(path));
    let runs = journal.runs()?.into_iter().filter(|run| run.has_records && run.damage.is_none());
    for run in runs.take(RUNS_MAX) {
        let Ok(FoldedRun { view, last_ms: last, .. }) = FoldedRun::read(&*journal, &run.run) else {
            continue;
        };
        let changed = view.changed_files.iter().any(|file| Path::new(file).starts_with(path));
        let begun = view.started_ms.unwrap_or(i64::MAX) - SLACK_MS;
        // A suspended run has no processes. One that was killed may have worked for longer than its last record says.
        let suspended = last.filter(|_| matches!(view.state, RunState::Suspended(_)));
        let ended = view.ended_ms.or(suspended).map_or(i64::MAX, |ended| ended.saturating_add(SLACK_MS));
        if changed || written.iter().any(|time| (begun..=ended).contains(time)) {
            return Ok(Some(run.run.to_string()));
        }
    }
    Ok(None)
}

/// When the files of a path were last written or replaced, in milliseconds.
fn times_of(path: &Path) -> Vec<i64> {
    let mut times = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(at) = left.pop() {
        let Ok(about) = at.symlink_metadata() else { continue };
        times.push(about.ctime() * 1000 + about.ctime_nsec() / 1_000_000);
        left.extend(fs::read_dir(&at).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    times
}
