//! A run inside a run: an agent that starts one would spend what no budget knows of.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use cuegate_runner::WITHIN_VARIABLE;

use crate::Failure;

/// How many ancestors are looked at.
const ANCESTORS_MAX: usize = 32;

/// The run whose agent started this process, directly or not, and the folders that it works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OuterRun {
    pub(crate) run: String,
    folders: Vec<PathBuf>,
}

impl OuterRun {
    /// Looks at this process and at those that started it: Codex hands its servers a few variables only.
    pub(crate) fn find() -> Option<OuterRun> {
        if let Some(value) = std::env::var_os(WITHIN_VARIABLE) {
            return OuterRun::parse(value.as_bytes());
        }
        let mut pid = std::process::id();
        for _ in 0..ANCESTORS_MAX {
            pid = parent_of(pid)?;
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut entries = environ.split(|byte| *byte == 0);
            let found =
                entries.find_map(|entry| entry.strip_prefix(WITHIN_VARIABLE.as_bytes())?.strip_prefix(b"="));
            if let Some(value) = found {
                return OuterRun::parse(value);
            }
        }
        None
    }

    /// `RUN:FOLDER:…`
    fn parse(value: &[u8]) -> Option<OuterRun> {
        let mut parts = std::env::split_paths(OsStr::from_bytes(value));
        let run = parts.next()?.display().to_string();
        (!run.is_empty()).then(|| OuterRun { run, folders: parts.collect() })
    }

    /// Refuses to start a run in the project that this process works for. Another project, such as one that a test makes, has
    /// limits of its own.
    ///
    /// # Errors
    /// Always in that project.
    pub(crate) fn refuse_in(&self, root: &Path) -> Result<(), Failure> {
        if self.folders.iter().any(|folder| folder == root) { Err(self.refusal()) } else { Ok(()) }
    }

    pub(crate) fn refusal(&self) -> Failure {
        Failure::usage(
            format!(
                "an agent of run {} may not start or continue a run: its budget would not hold",
                self.run
            ),
            "put what is to be done into the workflow, as a step or a called workflow",
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
    fn only_the_project_of_the_outer_run_is_closed() {
        let outer = OuterRun::parse(b"abcdefgh:/work/project:/work/project/.cuegate/trees/abcdefgh").unwrap();
        assert!(outer.refuse_in(Path::new("/work/project")).unwrap_err().message.contains("run abcdefgh"));
        assert!(outer.refuse_in(Path::new("/work/project/.cuegate/trees/abcdefgh")).is_err());
        assert!(outer.refuse_in(Path::new("/tmp/other")).is_ok());
        assert_eq!(OuterRun::parse(b""), None);
        assert!(parent_of(std::process::id()).is_some());
    }
}
