//! Repositories inside the working tree that git of the user enters by itself: those of submodules, and of whatever the
//! index has as a submodule. Their `.git` names the settings that it obeys, and agents write in the tree.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{RepositoryPair, write_dot_git_file};
use crate::worktree::{
    error::{WorktreeError, io_at},
    tree_edit::GITLINK,
};

/// What the `.git` of a folder is.
fn state_of_dot(folder: &Path) -> String {
    let dot = folder.join(".git");
    match dot.symlink_metadata() {
        Err(_) => String::new(),
        Ok(about) if about.is_file() => fs::read_to_string(&dot).unwrap_or_default(),
        Ok(about) if about.is_dir() => "a folder".to_owned(),
        Ok(_) => "a link".to_owned(),
    }
}

/// The folders of the working tree that a listing of the index has as submodules.
pub(super) fn links_of(listed: &[u8]) -> Vec<String> {
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| {
        let entry = std::str::from_utf8(entry).ok()?;
        let (about, path) = entry.split_once('\t')?;
        about.split(' ').any(|word| word == GITLINK).then(|| path.to_owned())
    });
    entries.collect()
}

impl RepositoryPair {
    /// The `.git` of each submodule of the user's index.
    pub(super) fn read_dots(&self, links: &[String]) -> BTreeMap<String, String> {
        links.iter().map(|link| (link.clone(), state_of_dot(&self.real.top.join(link)))).collect()
    }

    /// Puts back the `.git` of submodules that agents replaced. Returns what was done, in words.
    pub(super) fn put_dots_back(
        &self,
        dots: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, WorktreeError> {
        let mut moved = Vec::new();
        for (link, before) in dots {
            let folder = self.real.top.join(link);
            if state_of_dot(&folder) == *before || !is_real_folder(&self.real.top, link) {
                continue;
            }
            if let Some(what) = self.move_dot(link)? {
                moved.push(what);
            }
            if before.starts_with("gitdir:") && folder.is_dir() {
                write_dot_git_file(&folder, before)?;
            }
        }
        Ok(moved)
    }

    /// Moves the `.git` of a folder that becomes a submodule by a commit of an agent, unless it names a repository of the
    /// user.
    pub(super) fn move_new_dot(&self, link: &str) -> Result<Option<String>, WorktreeError> {
        let folder = self.real.top.join(link);
        let named = state_of_dot(&folder);
        let named = named.strip_prefix("gitdir:").map(|named| folder.join(named.trim()));
        let is_of_user = named.is_some_and(|named| {
            let common = fs::canonicalize(&self.real.common);
            fs::canonicalize(named).is_ok_and(|named| common.is_ok_and(|common| named.starts_with(common)))
        });
        if is_of_user || !is_real_folder(&self.real.top, link) { Ok(None) } else { self.move_dot(link) }
    }

    fn move_dot(&self, link: &str) -> Result<Option<String>, WorktreeError> {
        let folder = self.real.top.join(link);
        let dot = folder.join(".git");
        if dot.symlink_metadata().is_err() {
            return Ok(None);
        }
        let free = (1..).map(|n| folder.join(format!(".git.by-agent-{n}")));
        let free: PathBuf =
            free.into_iter().find(|path| path.symlink_metadata().is_err()).unwrap_or_default();
        fs::rename(&dot, &free).map_err(io_at("rename", &dot))?;
        let name = free.file_name().unwrap_or_default().display().to_string();
        Ok(Some(format!("the repository in `{link}`, whose `.git` is now `{name}`")))
    }
}

/// Whether no folder of a path is a link, which would lead elsewhere.
fn is_real_folder(top: &Path, link: &str) -> bool {
    let mut at = top.to_owned();
    Path::new(link).components().all(|part| {
        at.push(part);
        at.symlink_metadata().is_ok_and(|about| about.is_dir())
    })
}
