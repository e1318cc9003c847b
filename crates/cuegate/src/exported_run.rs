//! A run in one file, for bug reports and reviews on another machine: its records and texts, one JSON object a line.
//!
//! The first line says the format, the run and the program. `{"text": …}` lines stand before the record that first names
//! them; a text that is not UTF-8 stands as `{"bytes": […]}`. A text in which the value of a secret environment variable
//! is found is left out. With snapshots, `{"snapshots": BASE64}` is the last line: a pack of git.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Write},
    ops::ControlFlow,
    path::Path,
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cuegate_engine::Run;
use cuegate_journal::{
    Blob, Journal, NewRecord, Owner, RunId,
    log::{Durability, LogJournal, Options},
    memory::MemoryJournal,
};
use cuegate_provider::environment_secrets;
use cuegate_runner::{
    StateDir, read_each_record,
    worktree::{ChangedContent, Trees, create_empty_repository},
};
use cuegate_view::clean_to_one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Failure;

const SCHEMA: &str = "cuegate/export/v1";
/// How such a file begins.
const BEGINNING: &[u8] = br#"{"schema":"cuegate/export/"#;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum ExportLine {
    Head { schema: String, run: String, program: String },
    Record { seq: u64, at_ms: i64, record: Value },
    Text { text: String },
    Bytes { bytes: Vec<u8> },
    Snapshots { snapshots: String },
}

/// What was written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ExportSummary {
    pub(crate) records: u64,
    pub(crate) texts: u64,
    /// Texts and records in which a secret was found.
    pub(crate) redacted: u64,
    /// What is damaged and left out, if that was wanted.
    pub(crate) damage: Vec<String>,
}

impl ExportSummary {
    fn note_damage(&mut self, what: String) {
        if !self.damage.contains(&what) {
            self.damage.push(what);
        }
    }
}

/// What becomes of damaged records and texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DamageRule {
    /// They are errors.
    Refuse,
    /// Everything before the first damaged record is written, without damaged texts.
    LeaveOut,
}

/// Writes a run.
///
/// # Errors
/// When the journal cannot be read or `to` cannot be written.
pub(crate) fn write_run(
    journal: &dyn Journal,
    run: &RunId,
    to: &mut dyn Write,
    rule: DamageRule,
) -> Result<ExportSummary, Failure> {
    let mut put = |line: &ExportLine| {
        let text = serde_json::to_string(line).map_err(std::io::Error::from)?;
        writeln!(to, "{text}")
    };
    let unwritten =
        |error: std::io::Error| Failure::environment(format!("failed to write the export: {error}"));
    let (schema, program) = (SCHEMA.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    put(&ExportLine::Head { schema, run: run.to_string(), program }).map_err(unwritten)?;
    let (mut summary, mut known, mut failed) = (ExportSummary::default(), BTreeSet::new(), None);
    let mut one = |seq: u64, at_ms: i64, body: &[u8]| -> Result<ControlFlow<()>, Failure> {
        let text = String::from_utf8_lossy(body);
        let clean = environment_secrets().clean(&text);
        let mut json: Value = match serde_json::from_str(&clean) {
            Ok(json) => json,
            Err(error) => {
                let damage = format!("record {seq} of run {run} is whole, but not JSON: {error}");
                if rule == DamageRule::Refuse {
                    return Err(Failure::environment(damage));
                }
                summary.note_damage(damage);
                return Ok(ControlFlow::Break(()));
            }
        };
        summary.redacted += u64::from(clean != text);
        summary.records += 1;
        drop_fence_key(&mut json);
        let mut digests = Vec::new();
        list_digests(&json, &mut digests);
        for digest in digests {
            if !known.insert(digest.clone()) {
                continue;
            }
            let Ok(parsed) = digest.parse() else { continue };
            let bytes = match journal.blob(run, &parsed) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(error) if rule == DamageRule::LeaveOut => {
                    summary.note_damage(error.to_string());
                    continue;
                }
                Err(error) => return Err(cuegate_runner::Error::from(error).into()),
            };
            let line = match String::from_utf8(bytes) {
                Ok(text) if environment_secrets().clean(&text) != text => {
                    summary.redacted += 1;
                    continue;
                }
                Ok(text) => ExportLine::Text { text },
                Err(other) => ExportLine::Bytes { bytes: other.into_bytes() },
            };
            summary.texts += 1;
            put(&line).map_err(unwritten)?;
        }
        put(&ExportLine::Record { seq, at_ms, record: json }).map_err(unwritten)?;
        Ok(ControlFlow::Continue(()))
    };
    let read = journal.read_each(run, 0, &mut |row| match one(row.seq, row.at_ms, &row.body) {
        Ok(flow) => flow,
        Err(failure) => {
            failed = Some(failure);
            ControlFlow::Break(())
        }
    });
    match (failed, read) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(summary),
        (None, Err(error)) if rule == DamageRule::LeaveOut => {
            summary.note_damage(error.to_string());
            Ok(summary)
        }
        (None, Err(error)) => Err(cuegate_runner::Error::from(error).into()),
    }
}

/// Writes the files that a run changed, before and after each change, behind its records.
///
/// # Errors
/// When the run recorded no files, one of them holds a secret, or git or `to` fails.
pub(crate) fn write_snapshots(
    journal: &dyn Journal,
    run: &RunId,
    trees: &Trees,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let all = list_trees(journal, run)?;
    if all.is_empty() {
        let hint = "run `git init` before the next run";
        return Err(Failure::usage(
            format!("run {run} worked outside of git, so its files were not recorded"),
            hint,
        ));
    }
    let mut holds_no_secret = |content: ChangedContent<'_>| {
        let text = String::from_utf8_lossy(content.bytes);
        environment_secrets().clean(&text) == text
    };
    let packed = trees.pack_changes(&all, &mut holds_no_secret).map_err(cuegate_runner::Error::from)?;
    let pack = packed.map_err(|paths| {
        let paths: Vec<String> = paths.iter().map(|path| clean_to_one_line(path)).collect();
        Failure::usage(
            format!("the value of a secret environment variable is in {}", paths.join(", ")),
            "export the run without `--snapshots`",
        )
    })?;
    let line = ExportLine::Snapshots { snapshots: STANDARD.encode(pack) };
    let text = serde_json::to_string(&line).map_err(std::io::Error::from);
    text.and_then(|text| writeln!(to, "{text}"))
        .map_err(|error| Failure::environment(format!("failed to write the export: {error}")))
}

/// The working trees of a run in their order, each once in a row.
fn list_trees(journal: &dyn Journal, run: &RunId) -> Result<Vec<String>, Failure> {
    let (mut state, mut trees) = (Run::default(), Vec::new());
    read_each_record(journal, run, 0, |entry| {
        state.apply_record(&entry.events);
        let now = state.tree.as_ref().map(|tree| tree.tree.clone());
        trees.extend(now.filter(|now| trees.last() != Some(now)));
    })?;
    Ok(trees)
}

/// Removes the secret that marks texts of agents in prompts. A replay compares without what is made from it.
fn drop_fence_key(record: &mut Value) {
    let events = record.get_mut("events").and_then(Value::as_array_mut);
    for event in events.into_iter().flatten().filter_map(Value::as_object_mut) {
        event.shift_remove("fence_key");
    }
}

/// What looks like the digest of a text.
fn list_digests(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::String(text) if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            found.push(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|value| list_digests(value, found)),
        // Packs of files are for machines that share the journal; `--snapshots` writes the files.
        Value::Object(object) => {
            object.iter().filter(|(key, _)| *key != "pack").for_each(|(_, value)| list_digests(value, found))
        }
        _ => {}
    }
}

/// A run that was read from a file.
pub(crate) struct ExportedRun {
    /// Holds this run alone.
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) id: RunId,
}

/// A run that was read from a file into a project of its own, which is removed with it.
pub(crate) struct RunProject {
    pub(crate) home: StateDir,
    pub(crate) id: RunId,
    pub(crate) has_snapshots: bool,
    _folder: tempfile::TempDir,
}

/// Reads a run that was written to a file, with its snapshots if they were written; `None` if the file is no such run.
///
/// # Errors
/// When it cannot be read, with the line, or the project cannot be made.
pub(crate) fn open_run_project(path: &Path) -> Result<Option<RunProject>, Failure> {
    if !is_run_file(path)? {
        return Ok(None);
    }
    let failed = |error: std::io::Error| {
        Failure::environment(format!("failed to make a folder for `{}`: {error}", path.display()))
    };
    let folder = tempfile::Builder::new().prefix("cuegate-run-").tempdir().map_err(failed)?;
    // The page shows the name of the folder.
    let root = folder.path().join(path.file_stem().unwrap_or_default());
    fs::create_dir(&root).map_err(failed)?;
    let root = fs::canonicalize(root).map_err(failed)?;
    let home = StateDir::create(&root)?;
    let journal = LogJournal::open(home.runs(), Options { durability: Durability::Relaxed })?;
    let (id, pack) = read_lines(path, &journal)?;
    let has_snapshots = pack.is_some();
    if let Some(pack) = pack {
        let length = list_trees(&journal, &id)?.first().map_or(40, String::len);
        create_empty_repository(&root, length).map_err(cuegate_runner::Error::from)?;
        let trees = Trees::open(&root, &home.trees())?
            .ok_or_else(|| Failure::environment("git is not installed".to_owned()))?;
        trees.unpack_changes(&pack).map_err(cuegate_runner::Error::from)?;
    }
    Ok(Some(RunProject { home, id, has_snapshots, _folder: folder }))
}

/// Reads a run that was written to a file into a journal in memory; `None` if the file is no such run.
///
/// # Errors
/// When it cannot be read, with the line.
pub(crate) fn read_run_file(path: &Path) -> Result<Option<ExportedRun>, Failure> {
    if !is_run_file(path)? {
        return Ok(None);
    }
    let journal = MemoryJournal::default();
    let (id, _) = read_lines(path, &journal)?;
    Ok(Some(ExportedRun { journal: Arc::new(journal), id }))
}

/// Whether a file begins like an exported run. Any file may have the name that a person typed for a run.
fn is_run_file(path: &Path) -> Result<bool, Failure> {
    // Reading a FIFO would wait for a writer.
    if !fs::metadata(path).is_ok_and(|about| about.is_file()) {
        return Ok(false);
    }
    Ok(open_run_file(path)?.fill_buf().is_ok_and(|bytes| bytes.starts_with(BEGINNING)))
}

fn open_run_file(path: &Path) -> Result<BufReader<fs::File>, Failure> {
    let failed = |error| Failure::environment(format!("failed to read `{}`: {error}", path.display()));
    Ok(BufReader::new(fs::File::open(path).map_err(failed)?))
}

/// Reads the lines of an exported run into a journal. Returns its name, and the pack of its snapshots.
fn read_lines(path: &Path, journal: &dyn Journal) -> Result<(RunId, Option<Vec<u8>>), Failure> {
    let shown = path.display();
    let file = open_run_file(path)?;
    let wrong = |line: usize, why: String| {
        let hint = "write the file anew with `cuegate export RUN FILE`";
        Failure::usage(format!("`{shown}`, line {line}: {why}"), hint)
    };
    let (mut lease, mut texts, mut pack) = (None, Vec::new(), None);
    for (index, line) in file.lines().enumerate() {
        let at = index + 1;
        let line = line.map_err(|error| wrong(at, error.to_string()))?;
        let line: ExportLine = match serde_json::from_str(&line) {
            Ok(line) => line,
            Err(error) => return Err(wrong(at, format!("it is no part of a run: {error}"))),
        };
        let refused = |error: cuegate_journal::Error| wrong(at, error.to_string());
        match (line, &lease) {
            (ExportLine::Head { schema, run, .. }, None) if schema == SCHEMA => {
                let run: RunId = run.parse().map_err(|_| wrong(at, format!("`{run}` names no run")))?;
                journal.create(&run, 0).map_err(refused)?;
                lease = Some(journal.acquire(&run, &Owner::current()).map_err(refused)?);
            }
            (_, None) => return Err(wrong(at, "it is of another format".to_owned())),
            (ExportLine::Head { .. }, Some(_)) => return Err(wrong(at, "another run begins".to_owned())),
            (ExportLine::Text { text }, Some(_)) => texts.push(Blob::new(text.into_bytes())),
            (ExportLine::Bytes { bytes }, Some(_)) => texts.push(Blob::new(bytes)),
            (ExportLine::Snapshots { snapshots }, Some(_)) => {
                pack = Some(STANDARD.decode(snapshots).map_err(|error| wrong(at, error.to_string()))?);
            }
            (ExportLine::Record { seq, at_ms, record }, Some(lease)) => {
                let body = record.to_string();
                let record = NewRecord { at_ms, body: body.as_bytes(), blobs: &texts, consumes: &[] };
                journal.append(lease, seq, record).map_err(refused)?;
                texts.clear();
            }
        }
    }
    let Some(lease) = lease else { return Err(wrong(1, "it is empty".to_owned())) };
    // Nobody works on it here.
    journal.release(&lease).map_err(|error| wrong(1, error.to_string()))?;
    Ok((lease.run, pack))
}
