//! Polls files of the working tree.

use std::{
    fs, io,
    path::{Component, Path},
};

use cuegate_flow::model::PollState;

use super::{PollResult, Poller};
use crate::beneath::FolderHandle;

/// Larger files are not read.
const BYTES_MAX: u64 = 4 << 20;

/// Polls files.
pub(super) struct FilePoller;

impl Poller for FilePoller {
    fn look(&self, which: &str, wanted: &PollState, work: &Path) -> PollResult {
        let shown = format!("`{which}`");
        if check_polled_path(which, work).is_err() {
            return PollResult::failed(format!("{shown} is not a path inside the working tree"));
        }
        let there = match resolve_inside_tree(&work.join(which), work) {
            Ok(there) => there,
            Err(why) => return PollResult::failed(format!("{shown} {why}")),
        };
        let Some(path) = there else {
            let description = format!("{shown} does not exist");
            return PollResult::is(*wanted == PollState::Absent, description);
        };
        match wanted {
            PollState::Exists => PollResult::is(true, format!("{shown} exists")),
            PollState::Absent => PollResult::is(false, format!("{shown} exists")),
            PollState::Contains(text) => {
                compare_file(&path, work, &shown, |found| match found.contains(&**text) {
                    true => (true, format!("contains `{text}`")),
                    false => (false, format!("does not contain `{text}`")),
                })
            }
            PollState::Equals(text) => {
                compare_file(&path, work, &shown, |found| match found.trim() == &**text {
                    true => (true, format!("is `{text}`")),
                    false => (false, format!("is not `{text}`")),
                })
            }
            PollState::Fields(_) => PollResult::failed(format!("{shown} has no fields")),
        }
    }
}

/// Checks that a run in `work` may poll a path: a relative path without `..`, or an absolute path inside `work`.
///
/// # Errors
/// The reason, phrased to follow the path.
pub fn check_polled_path(which: &str, work: &Path) -> Result<(), &'static str> {
    if which.trim().is_empty() {
        return Err("is empty");
    }
    let path = Path::new(which);
    let real = fs::canonicalize(work).ok();
    let inside = match real.as_deref().and_then(|real| path.strip_prefix(real).ok()) {
        Some(inside) => inside,
        None => path.strip_prefix(work).unwrap_or(path),
    };
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain { Ok(()) } else { Err("lies outside of the project") }
}

/// Resolves a path; `None` if nothing is there. A link that leads out of the working tree is an error.
fn resolve_inside_tree(path: &Path, work: &Path) -> Result<Option<std::path::PathBuf>, String> {
    let cannot = |error: io::Error| format!("cannot be read: {error}");
    let work = fs::canonicalize(work).map_err(cannot)?;
    match fs::canonicalize(path) {
        Ok(real) if real.starts_with(&work) => Ok(Some(real)),
        Ok(_) => Err("leads out of the working tree".to_owned()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(cannot(error)),
    }
}

fn compare_file(
    path: &Path,
    work: &Path,
    shown: &str,
    check: impl FnOnce(&str) -> (bool, String),
) -> PollResult {
    let text = match fs::metadata(path) {
        Ok(about) if !about.is_file() => Err("is not a file".to_owned()),
        Ok(about) if about.len() > BYTES_MAX => Err("is larger than 4 MiB".to_owned()),
        // The path is without links; one that is there now was put there meanwhile.
        Ok(_) => read_resolved(path, work).map_err(|error| format!("cannot be read: {error}")),
        Err(error) => Err(format!("cannot be read: {error}")),
    };
    match text {
        Ok(bytes) => {
            let (holds, description) = check(&String::from_utf8_lossy(&bytes));
            PollResult::is(holds, format!("{shown} {description}"))
        }
        Err(why) => PollResult::failed(format!("{shown} {why}")),
    }
}

/// Reads a file of the working tree by its path without links.
fn read_resolved(path: &Path, work: &Path) -> io::Result<Vec<u8>> {
    let work = fs::canonicalize(work)?;
    let below = path.strip_prefix(&work).map_err(io::Error::other)?;
    FolderHandle::open(&work)?.read(below, BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_inside_the_tree_is_allowed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("state"), "").unwrap();
        let path = root.path().join("state").display().to_string();
        let description = format!("`{path}` exists");
        assert_eq!(
            FilePoller.look(&path, &PollState::Exists, root.path()),
            PollResult { holds: Ok(true), description }
        );
        let up = root.path().join("../x").display().to_string();
        assert_eq!(check_polled_path(&up, root.path()), Err("lies outside of the project"));
    }

    #[test]
    fn states_of_files() {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        fs::create_dir_all(work.join("out")).unwrap();
        fs::write(work.join("out/state"), "  open\n").unwrap();
        fs::write(root.path().join("secret"), "open").unwrap();
        std::os::unix::fs::symlink("../secret", work.join("link")).unwrap();
        let contains = |text: &str| PollState::Contains(text.into());
        let equals = |text: &str| PollState::Equals(text.into());
        for (which, wanted, holds, description) in [
            ("out/state", PollState::Exists, Ok(true), "`out/state` exists"),
            ("./out/state", PollState::Absent, Ok(false), "`./out/state` exists"),
            ("out", PollState::Exists, Ok(true), "`out` exists"),
            ("out/other", PollState::Exists, Ok(false), "`out/other` does not exist"),
            ("out/state/x", PollState::Absent, Ok(true), "`out/state/x` does not exist"),
            ("out/other", contains("o"), Ok(false), "`out/other` does not exist"),
            ("out/state", contains("pen"), Ok(true), "`out/state` contains `pen`"),
            ("out/state", contains("closed"), Ok(false), "`out/state` does not contain `closed`"),
            ("out/state", equals("open"), Ok(true), "`out/state` is `open`"),
            ("out/state", equals("ope"), Ok(false), "`out/state` is not `ope`"),
            ("out", equals("open"), Err(()), "`out` is not a file"),
            ("../secret", PollState::Exists, Err(()), "`../secret` is not a path inside the working tree"),
            (
                "/etc/passwd",
                PollState::Exists,
                Err(()),
                "`/etc/passwd` is not a path inside the working tree",
            ),
            ("link", equals("open"), Err(()), "`link` leads out of the working tree"),
            ("", PollState::Absent, Err(()), "`` is not a path inside the working tree"),
        ] {
            assert_eq!(
                FilePoller.look(which, &wanted, &work),
                PollResult { holds, description: description.to_owned() }
            );
        }
    }
}
