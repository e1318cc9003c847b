//! Repositories inside the working tree that git of the user enters by itself: those of submodules, and of whatever the
//! index has as a submodule. Their `.git` names the settings that it obeys, and agents write in the tree.
//!
//! Whether a `.git` may stay is decided by its bytes and never by where it leads: git may read it differently, and what it
//! names may change later.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use super::{DOT_GIT, RepositoryPair, SeedRecord, dot_git_text, is_missing};
use crate::{
    beneath::FolderHandle,
    worktree::{
        error::{WorktreeError, io_at},
        repository::Repository,
        tree_edit::GITLINK,
    },
};

/// The limit of the size of a `.git` file, in bytes.
const DOT_MAX: u64 = 64 << 10;
/// How a `.git` is recorded that is a folder: a repository of the user inside of another one.
const FOLDER: &str = "a folder";
/// How deep the paths of submodules are that are entered.
const LINK_DEPTH: usize = 40;
/// How many names are tried for a `.git` that is put aside.
const ASIDE_MAX: usize = 10_000;

/// The text of a `.git`: empty if there is none. `None` if it is neither a file with text nor a folder.
fn text_of_dot(folder: &FolderHandle) -> io::Result<Option<String>> {
    let dot = Path::new(DOT_GIT);
    Ok(match folder.state_of(dot)? {
        None => Some(String::new()),
        Some(state) if state.is_folder() => Some(FOLDER.to_owned()),
        Some(state) if state.is_file() => folder.read_text(dot, DOT_MAX).ok(),
        Some(_) => None,
    })
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

/// Renames the `.git` of a folder. Returns its new name.
pub(super) fn move_dot(folder: &FolderHandle) -> io::Result<String> {
    let rename = || {
        for number in 1..=ASIDE_MAX {
            let name = format!(".git.by-agent-{number}");
            match folder.rename(Path::new(DOT_GIT), OsStr::new(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => return renamed.map(|()| name),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    };
    match rename() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            folder.open_up()?;
            rename()
        }
        renamed => renamed,
    }
}

/// The submodules of a working tree, and the texts that their `.git` files may have.
#[derive(Debug, Clone, Default)]
pub(in crate::worktree) struct LinkProtection {
    /// The text of each `.git` before any agent wrote in the tree.
    before: BTreeMap<String, String>,
}

impl LinkProtection {
    /// Reads the `.git` files before the first call of an agent.
    ///
    /// # Errors
    /// When git cannot list the index, or a folder cannot be read.
    pub(in crate::worktree) fn read(repository: &Repository) -> Result<LinkProtection, WorktreeError> {
        let links = list_links(repository)?;
        let deep = list_inner_links(repository, &links);
        Ok(LinkProtection { before: read_dots(repository, &[links, deep].concat())? })
    }

    /// Puts aside each `.git` of a submodule of the index that was not there, and writes those that were replaced. Returns
    /// what was done, in words.
    ///
    /// # Errors
    /// When git cannot list the index, or a `.git` cannot be put aside.
    pub(in crate::worktree) fn enforce(&self, repository: &Repository) -> Result<Vec<String>, WorktreeError> {
        let mut moved = Vec::new();
        let mut unseen = list_links(repository)?;
        while let Some(link) = unseen.pop() {
            // Agents may have made the folder of a submodule in `.git` as well, so no other text is trusted.
            moved.extend(enforce_link(repository, &link, self.before.get(&link), &[])?);
            // This `.git` is the user's now, so the user's git enters the submodules of its index.
            if link.matches('/').count() < LINK_DEPTH {
                unseen.extend(list_links_of(repository, &link));
            }
        }
        Ok(moved)
    }
}

/// The submodules in the index of a repository inside of another one, as paths in that one. None where git does not read it.
fn list_links_of(repository: &Repository, link: &str) -> Vec<String> {
    let folder = repository.top.join(link);
    // A link on the way leads to another repository, and without a `.git` git would find the one around it.
    let dot =
        || text_of_dot(&FolderHandle::open(&repository.top).ok()?.folder(Path::new(link)).ok()?).ok()?;
    if dot().is_none_or(|text| text.is_empty()) {
        return Vec::new();
    }
    let listed = crate::worktree::git::Git::new(&folder).run(&["ls-files", "--stage", "-z"]);
    links_of(&listed.unwrap_or_default()).into_iter().map(|inner| format!("{link}/{inner}")).collect()
}

/// The submodules inside of these, at any depth.
pub(super) fn list_inner_links(repository: &Repository, links: &[String]) -> Vec<String> {
    let mut inner = Vec::new();
    let mut unseen = links.to_vec();
    while let Some(link) = unseen.pop() {
        if link.matches('/').count() < LINK_DEPTH {
            let below = list_links_of(repository, &link);
            inner.extend(below.iter().cloned());
            unseen.extend(below);
        }
    }
    inner
}

fn list_links(repository: &Repository) -> Result<Vec<String>, WorktreeError> {
    let git = crate::worktree::git::Git::in_repository(repository.clone());
    Ok(links_of(&git.run(&["ls-files", "--stage", "-z"])?))
}

fn read_dots(repository: &Repository, links: &[String]) -> Result<BTreeMap<String, String>, WorktreeError> {
    let top = open_top(repository)?;
    let mut dots = BTreeMap::new();
    for link in links {
        if let Ok(folder) = top.folder(Path::new(link))
            && let Ok(Some(text)) = text_of_dot(&folder)
            && !text.is_empty()
        {
            dots.insert(link.clone(), text);
        }
    }
    Ok(dots)
}

/// Lets the `.git` of a submodule be the one that was there before the first call, or the file that git writes for a
/// submodule of the user. Any other one is put aside. Returns what was done, in words.
fn enforce_link(
    repository: &Repository,
    link: &str,
    before: Option<&String>,
    of_git: &[String],
) -> Result<Option<String>, WorktreeError> {
    let top = open_top(repository)?;
    let dot = repository.top.join(link).join(DOT_GIT);
    let failed = |doing| io_at(doing, &dot);
    let folder = match top.folder(Path::new(link)) {
        // Git of the user does not enter it either: it does not follow links, and has the same rights.
        Err(error) if is_missing(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        folder => folder.map_err(failed("open"))?,
    };
    let text = text_of_dot(&folder).map_err(failed("read"))?;
    let is_ours = |text: &String| Some(text) == before || of_git.contains(text);
    if text.as_ref().is_some_and(is_ours) {
        return Ok(None);
    }
    let is_there = text.as_ref().is_none_or(|text| !text.is_empty());
    let moved = if is_there { Some(move_dot(&folder).map_err(failed("rename"))?) } else { None };
    // One that is missing is written again only if it was there.
    let wanted = before.or(of_git.first().filter(|_| is_there));
    if let Some(text) = wanted.filter(|text| text.starts_with("gitdir:")) {
        folder.write(Path::new(DOT_GIT), text.as_bytes()).map_err(failed("write"))?;
    }
    Ok(moved.map(|name| format!("the repository in `{link}`, whose `.git` is now `{name}`")))
}

fn open_top(repository: &Repository) -> Result<FolderHandle, WorktreeError> {
    FolderHandle::open(&repository.top).map_err(io_at("open", &repository.top))
}

/// The texts that git writes into the `.git` file of a submodule: with a relative path, or an absolute one. None if the
/// user has no repository of that submodule.
fn texts_by_git(repository: &Repository, link: &str) -> Vec<String> {
    let modules = repository.git_dir.join("modules");
    // One inside of another one is in the folder of that one.
    let inside = link
        .match_indices('/')
        .map(|(end, _)| modules.join(&link[..end]).join("modules").join(&link[end + 1..]));
    let known =
        std::iter::once(modules.join(link)).chain(inside).filter(|module| module.join("HEAD").is_file());
    let texts = known.flat_map(|module| {
        let relative = relative_path(&repository.top.join(link), &module);
        [dot_git_text(&relative), dot_git_text(&module)]
    });
    texts.collect()
}

/// The path from one folder to another; both are absolute and without links.
fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Path::new(".."));
    up.chain(to.components().skip(shared).map(|part| Path::new(part.as_os_str()))).collect()
}

impl RepositoryPair {
    /// The text of the `.git` of each submodule.
    pub(super) fn read_dots(&self, links: &[String]) -> Result<BTreeMap<String, String>, WorktreeError> {
        read_dots(&self.real, links)
    }

    /// Protects git of the user from what agents put in place of the `.git` of its submodules. Returns what was done, in
    /// words.
    ///
    /// # Errors
    /// When a `.git` cannot be put aside.
    pub(super) fn enforce_links(&self, known: &SeedRecord) -> Result<Vec<String>, WorktreeError> {
        let mut moved = Vec::new();
        for link in &known.links {
            moved.extend(self.enforce_link(known, link)?);
        }
        Ok(moved)
    }

    pub(super) fn enforce_link(
        &self,
        known: &SeedRecord,
        link: &str,
    ) -> Result<Option<String>, WorktreeError> {
        let before = known.dots.as_ref().and_then(|dots| dots.get(link));
        enforce_link(&self.real, link, before, &texts_by_git(&self.real, link))
    }
}
