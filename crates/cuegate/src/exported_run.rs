//! A run in one file, for bug reports and reviews on another machine: its records and texts, one JSON object a line.
//!
//! The first line says the format, the run and the program. `{"text": …}` lines stand before the record that first names
//! them; a text that is not UTF-8 stands as `{"bytes": […]}`. A text in which the value of a secret environment variable
//! is found is left out.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Write},
    ops::ControlFlow,
    path::Path,
    sync::Arc,
};

use cuegate_journal::{Blob, Journal, NewRecord, Owner, RunId, memory::MemoryJournal};
use cuegate_provider::environment_secrets;
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
    let mut one = |seq: u64, at_ms: i64, body: &[u8]| -> Result<(), Failure> {
        let text = String::from_utf8_lossy(body);
        let clean = environment_secrets().clean(&text);
        summary.redacted += u64::from(clean != text);
        summary.records += 1;
        let mut json: Value =
            serde_json::from_str(&clean).map_err(std::io::Error::from).map_err(unwritten)?;
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
                    summary.damage.push(error.to_string());
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
        put(&ExportLine::Record { seq, at_ms, record: json }).map_err(unwritten)
    };
    let read = journal.read_each(run, 0, &mut |row| match one(row.seq, row.at_ms, &row.body) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            failed = Some(failure);
            ControlFlow::Break(())
        }
    });
    match (failed, read) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(summary),
        (None, Err(error)) if rule == DamageRule::LeaveOut => {
            summary.damage.push(error.to_string());
            Ok(summary)
        }
        (None, Err(error)) => Err(cuegate_runner::Error::from(error).into()),
    }
}

/// Removes the secret that marks texts of agents in prompts. No decision depends on it.
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
        Value::Object(object) => object.values().for_each(|value| list_digests(value, found)),
        _ => {}
    }
}

/// A run that was read from a file.
pub(crate) struct ExportedRun {
    /// Holds this run alone.
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) id: RunId,
}

/// Reads a run that was written to a file into a journal in memory; `None` if the file is no such run.
///
/// # Errors
/// When it cannot be read, with the line.
pub(crate) fn read_run_file(path: &Path) -> Result<Option<ExportedRun>, Failure> {
    // Reading a FIFO would wait for a writer.
    if !fs::metadata(path).is_ok_and(|about| about.is_file()) {
        return Ok(None);
    }
    let shown = path.display();
    let unread = |error: std::io::Error| Failure::environment(format!("failed to read `{shown}`: {error}"));
    let mut file = BufReader::new(fs::File::open(path).map_err(unread)?);
    // Any file may have the name that a person typed for a run.
    if !file.fill_buf().map_err(unread)?.starts_with(BEGINNING) {
        return Ok(None);
    }
    let wrong = |line: usize, why: String| {
        let hint = "write the file anew with `cuegate export RUN FILE`";
        Failure::usage(format!("`{shown}`, line {line}: {why}"), hint)
    };
    let journal = MemoryJournal::default();
    let (mut lease, mut texts) = (None, Vec::new());
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
            (ExportLine::Record { seq, at_ms, record }, Some(lease)) => {
                let body = record.to_string();
                let record = NewRecord { at_ms, body: body.as_bytes(), blobs: &texts, consumes: &[] };
                journal.append(lease, seq, record).map_err(refused)?;
                texts.clear();
            }
        }
    }
    let Some(lease) = lease else { return Ok(None) };
    // Nobody works on it here.
    journal.release(&lease).map_err(|error| wrong(1, error.to_string()))?;
    Ok(Some(ExportedRun { journal: Arc::new(journal), id: lease.run }))
}
