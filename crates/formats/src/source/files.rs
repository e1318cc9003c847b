//! The files of a project, as a dialect sees them.

use std::collections::BTreeMap;

/// Reads the files of a project. All reading of a definition goes through this, so that a run can keep what it
/// was loaded from and be loaded again from exactly that.
pub trait Files: Sync {
    /// The content of a file.
    ///
    /// The path is relative to the project root, separated by `/`, without `.` and `..` segments.
    ///
    /// # Errors
    /// Why it cannot be read; [`ReadError::NotFound`] and [`ReadError::Folder`] are ordinary answers, as prompts are
    /// looked for in several places.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError>;
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("there is no such file")]
    NotFound,
    /// There is a folder instead, which is the same to whoever only looks for a file.
    #[error("it is a folder")]
    Folder,
    /// It lies outside the project, perhaps through a symbolic link.
    #[error("it lies outside the project")]
    Escapes,
    /// It is larger than [`FILE_BYTES_MAX`].
    #[error("it is larger than 16 MiB")]
    TooLarge,
    /// Anything else, in the words of the system.
    #[error("{0}")]
    Other(String),
}

/// The most bytes of a file of a definition: 16 MiB. The largest real prompt seen has 40 KiB; registries and pieces have a
/// kibibyte for each step, so that this is room for ten thousand steps and more in one file. It bounds what reading takes:
/// some ten times as much memory, and a second.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Files held in memory, by path.
impl Files for BTreeMap<String, Vec<u8>> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.get(path).cloned().ok_or(ReadError::NotFound)
    }
}

/// A path inside `base`, normalised; `None` when it is absolute or leads out of the project.
pub(crate) fn join(base: &str, path: &str) -> Option<String> {
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    if path.starts_with(['/', '\\']) || drive || path.contains('\0') {
        return None;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in base.split('/').chain(path.split(['/', '\\'])) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            name => segments.push(name),
        }
    }
    Some(segments.join("/"))
}

/// Whether a normalised path lies in a normalised folder, or is it.
pub(crate) fn lies_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{join, lies_in};

    #[test]
    fn joins_inside_the_project_only() {
        let cases = [
            (".agent/x", "prompts/", Some(".agent/x/prompts")),
            (".agent/x", "./a/../b.json", Some(".agent/x/b.json")),
            (".agent/x", "../../shared/a.md", Some("shared/a.md")),
            (".agent/x", "../../../etc/passwd", None),
            ("", "..", None),
            ("a", "/etc/passwd", None),
            ("a", "C:/x", None),
            ("a", "..\\..\\x", None),
            ("a", "", Some("a")),
        ];
        for (base, path, expected) in cases {
            assert_eq!(join(base, path).as_deref(), expected, "{base} + {path}");
        }
    }

    #[test]
    fn a_sibling_with_the_same_beginning_lies_outside() {
        assert!(lies_in("a/b", "a") && lies_in("a", "a") && lies_in("x", ""));
        assert!(!lies_in("ab/c", "a"));
    }
}
