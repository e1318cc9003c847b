//! The file in which Codex keeps a session (`sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl` in its folder). It has the usage
//! after each response of the service, which the output has only at the end of a turn.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{Usage, program::read_token_count};

/// The longest file that is read, in bytes.
const FILE_MAX: u64 = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SessionUsage {
    /// The sum of all finished responses.
    pub totals: Usage,
    /// The input and output tokens of the last one, which the next request sends again.
    pub context: u64,
    /// The bytes that the agent wrote after the last one.
    pub unreported: u64,
}

/// Reads the usage of a session; `None` if its file cannot be found or read.
pub(super) fn read_session_usage(home: &Path, session: &str) -> Option<SessionUsage> {
    let file = fs::File::open(session_file(home, session)?).ok()?;
    let mut usage = SessionUsage::default();
    for line in BufReader::new(file.take(FILE_MAX)).split(b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(&line.ok()?) else { continue };
        let payload = &line["payload"];
        match (line["type"].as_str(), payload["type"].as_str()) {
            (_, Some("token_count")) if payload["info"]["total_token_usage"].is_object() => {
                let last = tokens_of(&payload["info"]["last_token_usage"]);
                usage = SessionUsage {
                    totals: tokens_of(&payload["info"]["total_token_usage"]),
                    context: last.input_tokens.saturating_add(last.output_tokens),
                    unreported: 0,
                };
            }
            (Some("response_item"), Some(kind)) if is_written_by_agent(kind, payload) => {
                usage.unreported = usage.unreported.saturating_add(payload.to_string().len() as u64);
            }
            _ => {}
        }
    }
    Some(usage)
}

fn is_written_by_agent(kind: &str, item: &Value) -> bool {
    match kind {
        "message" => item["role"] == "assistant",
        "reasoning" => true,
        kind => kind.ends_with("_call"),
    }
}

/// The token counts of an object as in `turn.completed`.
pub(super) fn tokens_of(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).map(read_token_count).unwrap_or_default();
    Usage {
        input_tokens: number("input_tokens"),
        cached_input_tokens: number("cached_input_tokens"),
        output_tokens: number("output_tokens"),
        cost_usd: None,
        is_estimated: false,
    }
}

/// The file of a session, looked for from the newest day on.
fn session_file(home: &Path, session: &str) -> Option<PathBuf> {
    let is_plain =
        !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let mut files = is_plain.then(|| list_session_files(home))?;
    files.find(|path| session_of_file(path).as_deref() == Some(session))
}

/// Removes the files of these sessions; returns how many went.
pub(super) fn remove_sessions(home: &Path, sessions: &BTreeSet<String>) -> u64 {
    let is_one = |path: &PathBuf| session_of_file(path).is_some_and(|id| sessions.contains(&id));
    let found: Vec<PathBuf> = list_session_files(home).filter(is_one).collect();
    found.iter().filter(|path| fs::remove_file(path).is_ok()).count() as u64
}

/// The session of a file `rollout-2026-11-26T20-26-42-ID.jsonl`.
fn session_of_file(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    name.get("2026-11-26T20-26-42-".len()..).map(str::to_owned)
}

/// The files of all sessions, the newest day first.
fn list_session_files(home: &Path) -> impl Iterator<Item = PathBuf> {
    let below = |folder: PathBuf| newest_first(&folder);
    newest_first(&home.join("sessions")).into_iter().flat_map(below).flat_map(below).flat_map(below)
}

/// The entries of a folder by name, the last first.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_count_and_what_was_written_after_it_are_read() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join("sessions/2026/11/26");
        fs::create_dir_all(&day).unwrap();
        let count = |total: u64, last: u64| {
            let usage =
                |n: u64| json!({ "input_tokens": n, "cached_input_tokens": n / 2, "output_tokens": 1 });
            json!({ "type": "event_msg", "payload": { "type": "token_count",
                "info": { "total_token_usage": usage(total), "last_token_usage": usage(last) } } })
        };
        let said = |role: &str| json!({ "type": "response_item", "payload": { "type": "message", "role": role, "content": "x" } });
        let write = |lines: &[Value]| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(day.join("rollout-2026-11-26T20-26-42-abc-1.jsonl"), text + "{\"type\": \"torn")
                .unwrap();
        };
        write(&[said("user"), said("assistant"), count(10, 10), said("assistant"), count(25, 15)]);
        let usage = read_session_usage(home.path(), "abc-1").unwrap();
        assert_eq!((usage.totals.input_tokens, usage.totals.cached_input_tokens), (25, 12));
        assert_eq!((usage.context, usage.unreported), (16, 0));
        write(&[count(10, 10), said("user"), said("assistant")]);
        assert!(read_session_usage(home.path(), "abc-1").unwrap().unreported > 0);
        for absent in ["abc", "1", "", "../abc-1", "other"] {
            assert_eq!(read_session_usage(home.path(), absent), None, "{absent}");
        }
    }
}
