//! What differs between two trees, and how it comes into files.

pub(super) mod apply;
pub(super) mod commit_difference;

use super::error::WorktreeError;
use super::snapshots::snapshot::Trees;

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Relative to the root of the working tree, with `/`. Bytes that are no UTF-8 are replaced.
    pub path: String,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// How a file differs. Moving one is a deletion and an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only in the later snapshot.
    Added,
    /// The content, the executable bit or the commit of a submodule differs.
    Modified,
    /// Only in the earlier snapshot.
    Deleted,
    /// The type differs: file, symbolic link or submodule.
    TypeChanged,
}

/// The size of a change, in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSize {
    /// As [`Change::path`].
    pub path: String,
    /// Added lines; `None` for binary files.
    pub added: Option<u64>,
    /// Removed lines; `None` for binary files.
    pub removed: Option<u64>,
}

impl Trees {
    /// Lists the changes from the tree `from` to the tree `to`, by path.
    ///
    /// # Errors
    /// Neither the state dir nor the repository knows one of the trees.
    pub fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>, WorktreeError> {
        let output = self.diff(&["--name-status", "-z"], from, to)?;
        let mut fields = output.split(|&byte| byte == 0);
        let mut changes = Vec::new();
        while let (Some([letter]), Some(path)) = (fields.next(), fields.next()) {
            let kind = match letter {
                b'A' => ChangeKind::Added,
                b'D' => ChangeKind::Deleted,
                b'T' => ChangeKind::TypeChanged,
                _ => ChangeKind::Modified,
            };
            changes.push(Change { path: decode_lossily(path), kind });
        }
        Ok(changes)
    }

    /// The changes as a patch for `git apply`.
    ///
    /// # Errors
    /// As [`Trees::changes`].
    pub fn patch(&self, from: &str, to: &str) -> Result<Vec<u8>, WorktreeError> {
        self.diff(&["--patch", "--binary", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3"], from, to)
    }

    /// The changes as line counts.
    ///
    /// # Errors
    /// As [`Trees::changes`].
    pub fn stat(&self, from: &str, to: &str) -> Result<Vec<ChangeSize>, WorktreeError> {
        let output = self.diff(&["--numstat", "-z"], from, to)?;
        let entries = output.split(|&byte| byte == 0).filter_map(|entry| {
            let mut fields = entry.splitn(3, |&byte| byte == b'\t');
            let mut number = || fields.next().map(|field| std::str::from_utf8(field).ok()?.parse().ok());
            let (added, removed) = (number()?, number()?);
            Some(ChangeSize { added, removed, path: decode_lossily(fields.next()?) })
        });
        Ok(entries.collect())
    }

    fn diff(&self, format: &[&str], from: &str, to: &str) -> Result<Vec<u8>, WorktreeError> {
        let mut args =
            vec!["diff-tree", "-r", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"];
        args.extend(["--ignore-submodules=none", "--no-relative", "-O/dev/null"]);
        args.extend(format);
        args.extend([object_id(from)?, object_id(to)?, "--"]);
        self.git.run(&args)
    }
}

/// Checks that a text is an object id, because git could take another text for an option.
pub(super) fn object_id(text: &str) -> Result<&str, WorktreeError> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Ok(text) } else { Err(WorktreeError::NoTree(text.to_owned())) }
}

fn decode_lossily(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
