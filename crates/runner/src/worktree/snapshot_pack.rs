//! Snapshots for another machine: what one needs to see the changes between them.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::changes::object_id;
use super::error::{WorktreeError, io_at};
use super::snapshots::snapshot::Trees;
use super::tree_edit::{GITLINK, TreeEdit};

/// A file that changed between snapshots: its path and one of its contents.
pub struct ChangedContent<'c> {
    pub path: &'c str,
    pub bytes: &'c [u8],
}

impl Trees {
    /// All folders of some trees, in their order, and the contents of the files that differ between one and the next, as a pack
    /// of git. Files that are the same in all of them are left out. `accepts` is called with each content; the inner
    /// error has the paths of those that it refuses.
    ///
    /// # Errors
    /// When git fails, or knows one of the trees no more.
    pub fn pack_changes(
        &self,
        trees: &[String],
        accepts: &mut dyn FnMut(ChangedContent<'_>) -> bool,
    ) -> Result<Result<Vec<u8>, BTreeSet<String>>, WorktreeError> {
        let mut contents: BTreeMap<String, String> = BTreeMap::new();
        for pair in trees.windows(2) {
            for edit in self.edits(&pair[0], &pair[1])? {
                let TreeEdit { before, after, .. } = &edit;
                for (mode, id) in [before, after] {
                    let is_absent = id.bytes().all(|digit| digit == b'0');
                    if !is_absent && mode != GITLINK {
                        contents.entry(id.clone()).or_insert_with(|| edit.name());
                    }
                }
            }
        }
        let mut refused = BTreeSet::new();
        for (id, path) in &contents {
            let bytes = self.git.run(&["cat-file", "blob", id])?;
            if !accepts(ChangedContent { path, bytes: &bytes }) {
                refused.insert(path.clone());
            }
        }
        if !refused.is_empty() {
            return Ok(Err(refused));
        }
        let mut input = String::new();
        for tree in trees {
            input.push_str(object_id(tree)?);
            input.push('\n');
        }
        let words =
            ["rev-list", "--objects", "--no-object-names", "--filter=blob:none", "--stdin", "--no-walk"];
        let folders = self.git.run_with(&words, input.as_bytes())?;
        let mut ids = String::from_utf8_lossy(&folders).into_owned();
        contents.keys().for_each(|id| {
            ids.push_str(id);
            ids.push('\n');
        });
        Ok(Ok(self.git.run_with(&["pack-objects", "--quiet", "--stdout"], ids.as_bytes())?))
    }

    /// Takes a pack into our store.
    ///
    /// # Errors
    /// When it is damaged, or the store cannot be written.
    pub fn unpack_changes(&self, pack: &[u8]) -> Result<(), WorktreeError> {
        self.git.run_with(&["unpack-objects", "-q"], pack).map(|_| ())
    }
}

/// Makes an empty repository for snapshots of another machine, with object ids of `id_length` hex digits.
///
/// # Errors
/// When it cannot be written.
pub fn create_empty_repository(root: &Path, id_length: usize) -> Result<(), WorktreeError> {
    let git = root.join(".git");
    for folder in ["objects", "refs/heads"] {
        let folder = git.join(folder);
        fs::create_dir_all(&folder).map_err(io_at("create", &folder))?;
    }
    let format = match id_length {
        64 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
        }
        _ => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    };
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", format)] {
        let file = git.join(name);
        fs::write(&file, text).map_err(io_at("write", &file))?;
    }
    Ok(())
}
