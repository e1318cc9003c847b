//! Access to the files of a project.

use std::collections::BTreeMap;

/// Reads the files of a project. Every reader of a definition uses it, so that a run can store the files it was
/// loaded from and load exactly those again.
pub trait Files: Sync {
    /// The content of a file.
    ///
    /// The path is relative to the project root, separated by `/`, without `.` and `..` segments.
    ///
    /// # Errors Why it cannot be read. [`ReadError::NotFound`] and [`ReadError::Folder`] are expected, because
    /// prompts are looked up in several places.
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError>;
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("there is no such file")]
    NotFound,
    /// There is a folder at this path; for a file lookup this equals `NotFound`.
    #[error("it is a folder")]
    Folder,
    /// It is outside the project, perhaps through a symbolic link.
    #[error("it lies outside the project")]
    Escapes,
    /// It is larger than [`FILE_BYTES_MAX`].
    #[error("it is larger than 16 MiB")]
    TooLarge,
    /// Any other error, with the message of the operating system.
    #[error("{0}")]
    Other(String),
}

/// The size limit of a definition file: 16 MiB. The largest real prompt seen has 40 KiB; registries and workflows take
/// about 1 KiB for each step, so one file can hold more than ten thousand steps. The limit bounds the cost of
/// reading: about ten times the file size in memory, and one second.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// In-memory files by path.
impl Files for BTreeMap<String, Vec<u8>> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.get(path).cloned().ok_or(ReadError::NotFound)
    }
}

/// Joins `path` to `base` and normalizes it; `None` if it is absolute or leaves the project.
pub(crate) fn join_path(base: &str, path: &str) -> Option<String> {
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

/// Whether a normalized path equals a normalized folder or is below it.
pub(crate) fn lies_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{join_path, lies_in};

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
            assert_eq!(join_path(base, path).as_deref(), expected, "{base} + {path}");
        }
    }

    #[test]
    fn a_sibling_with_the_same_beginning_lies_outside() {
        assert!(lies_in("a/b", "a") && lies_in("a", "a") && lies_in("x", ""));
        assert!(!lies_in("ab/c", "a"));
    }
}
