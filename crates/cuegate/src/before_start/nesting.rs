//! A run inside a run: an agent that starts one would spend what no budget knows of.

use std::{fs, os::unix::ffi::OsStrExt as _};

use cuegate_runner::WITHIN_VARIABLE;

use crate::Failure;

/// The run whose agent started this process, directly or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OuterRun {
    run: String,
}

impl OuterRun {
    /// Looks at this process and at those that started it: Codex hands its servers a few variables only.
    pub(crate) fn find() -> Option<OuterRun> {
        // A variable that was emptied says nothing: the ancestors are asked then, too.
        let own = std::env::var_os(WITHIN_VARIABLE);
        if let Some(outer) = own.and_then(|value| OuterRun::parse(value.as_bytes())) {
            return Some(outer);
        }
        let mut pid = std::process::id();
        loop {
            pid = parent_of(pid)?;
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut entries = environ.split(|byte| *byte == 0);
            let found =
                entries.find_map(|entry| entry.strip_prefix(WITHIN_VARIABLE.as_bytes())?.strip_prefix(b"="));
            if let Some(outer) = found.and_then(OuterRun::parse) {
                return Some(outer);
            }
        }
    }

    fn parse(value: &[u8]) -> Option<OuterRun> {
        let run = String::from_utf8_lossy(value).into_owned();
        (!run.is_empty()).then_some(OuterRun { run })
    }

    pub(crate) fn refusal(&self) -> Failure {
        Failure::usage(
            format!(
                "an agent of run {} may not start or continue a run: its budget would not hold",
                self.run
            ),
            "add a step or a called workflow for it; only `cuegate run --script`, which calls no agent, may run here",
        )
    }
}

/// The parent of a process, by the second field after its name, which may hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_run_is_named() {
        assert!(OuterRun::parse(b"abcdefgh").unwrap().refusal().message.contains("run abcdefgh"));
        assert_eq!(OuterRun::parse(b""), None);
        assert!(parent_of(std::process::id()).is_some());
    }
}
