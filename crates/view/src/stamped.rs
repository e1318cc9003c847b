//! Records with their journal position and time.

use std::collections::BTreeSet;

use cuegate_engine::{Event, Record, UnreadableRecord};
use cuegate_flow::model::BlobRef;

/// Looks up a stored text by its digest; `None` when it is missing or not UTF-8.
pub type Texts<'t> = &'t dyn Fn(&BlobRef) -> Option<String>;

/// A record with its position in the run and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct StampedRecord {
    /// The position in the run, from 0, without gaps.
    pub seq: u64,
    /// The time of writing, in milliseconds since 1970.
    pub at_ms: i64,
    /// The events that one completion caused, in order.
    pub events: Vec<Event>,
}

impl StampedRecord {
    /// Keeps `files` up to date: files that were found changed when a run was resumed after its process had died, and that
    /// no tool call of the agent that was cut off names. The agent or a person changed them.
    pub fn update_unknown_changes(&self, files: &mut BTreeSet<String>) {
        let has = |is: fn(&Event) -> bool| self.events.iter().any(is);
        if has(|event| matches!(event, Event::Resumed { .. })) {
            let seen = self.events.iter().flat_map(|event| match event {
                Event::TreeSeen { changed_files, .. } => changed_files.as_slice(),
                _ => &[],
            });
            files.extend(seen.cloned());
        }
        // What the agent did before it was cut off is known once its output was read.
        if has(|event| matches!(event, Event::AskCut { .. })) {
            let calls = self.events.iter().flat_map(|event| match event {
                Event::ToolsUsed { calls, .. } => calls.as_slice(),
                _ => &[],
            });
            let targets: Vec<&str> = calls.map(|call| &*call.target).collect();
            files.retain(|path| !targets.iter().any(|target| names_file(target, path)));
        }
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When a later version wrote it, or when it is damaged.
    pub fn decode(seq: u64, at_ms: i64, body: &[u8]) -> Result<StampedRecord, UnreadableRecord> {
        Ok(StampedRecord { seq, at_ms, events: Record::parse(body)?.events })
    }
}

/// Whether the target of a tool call, a path or a shell line, contains the name of a file as a whole word.
pub(crate) fn names_file(target: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    target
        .match_indices(name)
        .any(|(at, _)| !target[..at].ends_with(in_word) && !target[at + name.len()..].starts_with(in_word))
}

#[cfg(test)]
mod tests {
    use super::names_file;

    #[test]
    fn a_file_is_named_by_its_whole_name() {
        for target in ["go", "src/go", "rm -f 'src/go'; ls", "cat <go"] {
            assert!(names_file(target, "src/go"), "{target}");
        }
        for target in ["", "cargo test", "go.mod", "my-go", "gopher"] {
            assert!(!names_file(target, "src/go"), "{target}");
        }
    }
}
