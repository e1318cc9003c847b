//! Notices writes to the main checkout by a run that works in its own worktree.
//!
//! A person may work in the main checkout meanwhile, so a change counts as the agent's only if one of its tool calls
//! writes that very file.

use std::path::{Component, Path, PathBuf};

use cuegate_engine::{OutsideWrites, ToolCall, Tools};

use super::{LocalExecutor, run_blocking};
use crate::{drive::ExecutorMessage, error::Error, worktree::DirtyFiles};

/// Tools whose target is a file that they write.
const WRITERS: [&str; 6] = ["Write", "Edit", "MultiEdit", "NotebookEdit", "file_change", "write"];
/// Tools whose target is a shell command.
const SHELLS: [&str; 3] = ["Bash", "command_execution", "run"];
/// Commands that write the files in their arguments.
const WRITING_COMMANDS: [&str; 14] = [
    "rm", "mv", "cp", "tee", "sed", "touch", "install", "ln", "truncate", "dd", "patch", "chmod", "rsync",
    "git",
];
/// How many paths of each kind are kept.
const PATHS_MAX: usize = 100;

impl LocalExecutor {
    /// The uncommitted files of the main checkout; `None` if the run works there itself, or they cannot be read.
    pub(super) async fn main_checkout(&self) -> Result<Option<DirtyFiles>, Error> {
        let Some(main) = self.setting.main.clone() else { return Ok(None) };
        let read = run_blocking(move || Ok(DirtyFiles::read(&main))).await?;
        Ok(read
            .map_err(|error| {
                let warning = format!("changes of the main checkout cannot be noticed: {error}");
                let _ = self.setting.heard.try_send(ExecutorMessage::Warning(warning));
            })
            .ok())
    }

    /// The changes of the main checkout since `before`.
    pub(super) async fn outside(
        &self,
        before: Option<DirtyFiles>,
        tools: &Tools,
    ) -> Result<OutsideWrites, Error> {
        let mut outside = OutsideWrites::default();
        let Some(before) = before else { return Ok(outside) };
        let (Some(main), Some(now)) = (&self.setting.main, self.main_checkout().await?) else {
            return Ok(outside);
        };
        for path in now.changed_since(&before) {
            let path = main.join(path);
            // The worktree itself may be a folder of the main checkout.
            if path.starts_with(&self.setting.work) || self.setting.work.starts_with(&path) {
                continue;
            }
            let by_agent = tools.calls.iter().any(|call| is_write_to_file(call, &path, &self.setting.cwd));
            let list = if by_agent { &mut outside.by_agent } else { &mut outside.by_others };
            match list.len() {
                PATHS_MAX.. => outside.more += 1,
                _ => list.push(path.display().to_string()),
            }
        }
        Ok(outside)
    }
}

/// Whether a tool call writes this file.
fn is_write_to_file(call: &ToolCall, path: &Path, work: &Path) -> bool {
    let target = call.target.as_str();
    if WRITERS.contains(&call.tool.as_str()) {
        // `file_change` has several files.
        return target.split(", ").any(|file| resolve_path_lexically(work, file) == path);
    }
    SHELLS.contains(&call.tool.as_str()) && shell_writes(target, path, work)
}

/// Whether a shell command writes this file, as far as its words show it.
fn shell_writes(command: &str, path: &Path, work: &Path) -> bool {
    let spaced: String = command
        .chars()
        .flat_map(|c| match c {
            ';' | '|' | '&' | '>' | '(' | ')' | '\n' => vec![' ', c, ' '],
            '"' | '\'' => vec![' '],
            c => vec![c],
        })
        .collect();
    let (mut folder, mut before, mut writing) = (work.to_owned(), "", false);
    for word in spaced.split_ascii_whitespace() {
        match word {
            ";" | "|" | "&" | "(" | ")" => writing = false,
            _ if before == "cd" => folder = resolve_path_lexically(&folder, word),
            _ if WRITING_COMMANDS.contains(&word) => writing = true,
            _ if (before == ">" || writing) && resolve_path_lexically(&folder, word) == path => return true,
            _ => {}
        }
        before = word;
    }
    false
}

/// The path without `.` and `..`, absolute.
fn resolve_path_lexically(folder: &Path, path: &str) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => _ = whole.pop(),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use cuegate_engine::ToolResult;

    use super::*;

    fn call(tool: &str, target: &str) -> ToolCall {
        ToolCall {
            tool: tool.to_owned(),
            target: target.to_owned(),
            result: ToolResult::Ok,
            at_ms: None,
            duration_ms: None,
            output: None,
            output_bytes: None,
        }
    }

    #[test]
    fn only_a_write_of_that_file_is_the_agents() {
        let work = Path::new("/p/.cuegate/worktrees/r1");
        let writes =
            |tool: &str, target: &str| is_write_to_file(&call(tool, target), Path::new("/p/src/a.txt"), work);
        for (tool, target) in [
            ("Write", "/p/src/a.txt"),
            ("Edit", "../../../src/a.txt"),
            ("file_change", "/p/b, /p/src/a.txt"),
            ("Bash", "echo x > /p/src/a.txt"),
            ("Bash", "echo x >>'/p/src/a.txt'"),
            ("run", "cd /p && echo x > src/a.txt"),
            ("run", "cd ../../..; cd src; rm -f a.txt"),
            ("command_execution", "/bin/bash -lc 'sed -i s/1/2/ ../../../src/a.txt'"),
        ] {
            assert!(writes(tool, target), "{tool} {target}");
        }
        for (tool, target) in [
            ("Read", "/p/src/a.txt"),
            ("Grep", "a.txt"),
            ("Write", "src/a.txt"),
            ("Write", "/p/src/a.txt.bak"),
            ("Bash", "cat /p/src/a.txt"),
            ("Bash", "cat ../../../src/a.txt > copy.txt"),
            ("Bash", "rm x; cat /p/src/a.txt"),
            ("Bash", "echo x > src/a.txt"),
            ("Bash", "cd src && cat ../../../../src/a.txt"),
        ] {
            assert!(!writes(tool, target), "{tool} {target}");
        }
    }
}
