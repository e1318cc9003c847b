//! What agents do right now, in a file for other processes: `watch` and `serve`. Nothing depends on it, and it goes with
//! the folder of the command; the journal keeps the uses of tools.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use cuegate_engine::CommandId;
use cuegate_journal::RunId;
use cuegate_provider::Activity;
use serde::{Deserialize, Serialize};

use crate::{clock::now_ms, state_dir::StateDir};

/// The name of the file in the folder of a command.
const FILE: &str = "activity.jsonl";
/// The most bytes of the file. It then begins anew.
const FILE_MAX: u64 = 1 << 20;
/// The most characters of a text, a target or an output.
const TEXT_MAX: usize = 500;
/// The most bytes that are read of the end of an output.
const TAIL_MAX: u64 = 16 << 10;

/// An activity and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedActivity {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    /// The activity, its texts shortened.
    #[serde(flatten)]
    pub activity: Activity,
}

/// Writes the activities of one ask.
pub(crate) struct ActivityLog {
    file: Option<File>,
    size: u64,
}

impl ActivityLog {
    /// Begins the file in the folder of a command. An error only means that nobody sees the activities.
    pub(crate) fn begin(dir: &Path) -> ActivityLog {
        // A new file: an agent without a full sandbox may have put a link there.
        let path = dir.join(FILE);
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
        ActivityLog { file: file.ok(), size: 0 }
    }

    /// Appends an activity.
    pub(crate) fn add(&mut self, activity: &Activity) {
        let Some(file) = &mut self.file else { return };
        let done = TimedActivity { at_ms: now_ms(), activity: shorten_activity(activity) };
        let Ok(mut line) = serde_json::to_vec(&done) else { return };
        line.push(b'\n');
        if self.size > FILE_MAX {
            let _ = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
            self.size = 0;
        }
        self.size += line.len() as u64;
        let _ = file.write_all(&line);
    }
}

fn shorten_activity(activity: &Activity) -> Activity {
    let mut activity = activity.clone();
    let text = match &mut activity {
        Activity::Text { text } => Some(text),
        Activity::Tool { target, .. } | Activity::Denied { target, .. } => Some(target),
        Activity::ToolEnded { output, .. } => Some(output),
        Activity::Retry { reason } => Some(reason),
        Activity::Usage(_) => None,
    };
    if let Some(text) = text {
        let end = text.char_indices().nth(TEXT_MAX).map_or(text.len(), |(end, _)| end);
        text.truncate(end);
    }
    activity
}

/// Follows the activities of a command that another process drives.
#[derive(Debug)]
pub struct ActivityReader {
    path: PathBuf,
    read: u64,
}

impl ActivityReader {
    /// A reader that begins with the first activity.
    pub fn new(home: &StateDir, run: &RunId, command: CommandId) -> ActivityReader {
        ActivityReader { path: home.command(run, command).join(FILE), read: 0 }
    }

    /// The activities since the last call.
    pub fn read_new(&mut self) -> Vec<TimedActivity> {
        let Ok(mut file) = File::open(&self.path) else { return Vec::new() };
        let size = file.metadata().map_or(0, |about| about.len());
        if size < self.read {
            self.read = 0;
        }
        let mut text = Vec::new();
        let ok = file
            .seek(SeekFrom::Start(self.read))
            .and_then(|_| file.take(FILE_MAX * 2).read_to_end(&mut text));
        if ok.is_err() {
            return Vec::new();
        }
        // The last line may not be whole yet.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.read += whole as u64;
        text[..whole]
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }
}

/// The last lines that a running validator or other command has printed, standard error last.
pub fn output_so_far(home: &StateDir, run: &RunId, command: CommandId, lines: usize) -> Vec<String> {
    let dir = home.command(run, command);
    let mut all: Vec<String> = Vec::new();
    for name in ["out", "err"] {
        let Ok(mut file) = File::open(dir.join(name)) else { continue };
        let size = file.metadata().map_or(0, |about| about.len());
        let mut text = Vec::new();
        let start = SeekFrom::Start(size.saturating_sub(TAIL_MAX));
        if file.seek(start).and_then(|_| file.read_to_end(&mut text)).is_ok() {
            all.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
        }
    }
    all.split_off(all.len().saturating_sub(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_read_as_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let home = StateDir::new(dir.path());
        let run: RunId = "r".parse().unwrap();
        let command = CommandId::new(3, None);
        let mut reader = ActivityReader::new(&home, &run, command);
        assert_eq!(reader.read_new(), []);
        let folder = home.command(&run, command);
        std::fs::create_dir_all(&folder).unwrap();
        let mut log = ActivityLog::begin(&folder);
        let tool =
            |target: &str| Activity::Tool { id: String::new(), name: "Edit".into(), target: target.into() };
        log.add(&tool("a.rs"));
        log.add(&Activity::Text { text: "ü".repeat(600) });
        let seen = reader.read_new();
        assert_eq!(seen[0].activity, tool("a.rs"));
        assert_eq!(seen[1].activity, Activity::Text { text: "ü".repeat(500) });
        assert_eq!(reader.read_new(), []);
        // A line that is still being written.
        let file = folder.join(FILE);
        let mut text = std::fs::read(&file).unwrap();
        text.extend(b"{\"at_ms\":1,\"activity\":\"te");
        std::fs::write(&file, &text).unwrap();
        assert_eq!(reader.read_new(), []);
        // The next try of the ask begins anew.
        ActivityLog::begin(&folder).add(&tool("b.rs"));
        assert_eq!(reader.read_new()[0].activity, tool("b.rs"));
    }

    #[test]
    fn a_long_file_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = ActivityLog::begin(dir.path());
        for _ in 0..5000 {
            log.add(&Activity::Text { text: "x".repeat(500) });
        }
        assert!(std::fs::metadata(dir.path().join(FILE)).unwrap().len() < FILE_MAX + 1000);
    }
}
