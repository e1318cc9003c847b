//! States of a working tree for another machine that goes on with the run: exact copies, as thin packs of git.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::object_id;
use super::error::WorktreeError;
use super::git::Git;
use super::git_state::{list_stash_commits, list_state_branches, list_state_objects};
use super::snapshots::snapshot::Trees;

/// A state of a working tree by the names of its objects, as in `TreeState` of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedState<'s> {
    pub tree: &'s str,
    pub head: Option<&'s str>,
    pub git: Option<&'s str>,
}

/// The packs of a state.
#[derive(Debug, PartialEq, Eq)]
pub struct PackedState {
    /// The files, and the files of the worktree's git folder.
    pub files: Vec<u8>,
    /// The commits that HEAD and the stash have now, if there are new ones.
    pub commits: Option<Vec<u8>>,
}

/// Whoever made the commits by which files are packed: they are on no branch and nobody sees them.
const NOBODY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "cuegate"),
    ("GIT_AUTHOR_EMAIL", "cuegate@localhost"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_NAME", "cuegate"),
    ("GIT_COMMITTER_EMAIL", "cuegate@localhost"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

impl Trees {
    /// Packs what a machine needs to make the state `to`, if it has the commit of the state `start` and the state `from`. The
    /// inner error is the size of the objects in bytes, if that is more than `bytes_max`.
    ///
    /// # Errors
    /// When git fails.
    pub fn pack_state(
        &self,
        start: NamedState<'_>,
        from: Option<NamedState<'_>>,
        to: NamedState<'_>,
        bytes_max: u64,
    ) -> Result<Result<PackedState, u64>, WorktreeError> {
        let _guard = self.guard()?;
        let mut wanted = vec![self.commit_of_tree(to.tree)?];
        let mut known: Vec<String> = Vec::new();
        if let Some(base) = start.head {
            known.push(object_id(base)?.to_owned());
        }
        if let Some(from) = from {
            known.push(self.commit_of_tree(from.tree)?);
        }
        let before = from.and_then(|from| from.git).map(|git| self.objects_of_git_state(git)).transpose()?;
        let before = before.unwrap_or_default();
        if let Some(git) = to.git {
            wanted.extend(self.objects_of_git_state(git)?.difference(&before).cloned());
        }
        let size = measure_objects(&self.git, &wanted, &known)?;
        if size > bytes_max {
            return Ok(Err(size));
        }
        let files = pack_objects(&self.git, &wanted, &known)?;
        let mut had = self.own_commits(start, start)?;
        if let Some(from) = from {
            had.extend(self.own_commits(start, from)?);
        }
        let commits: Vec<String> = self.own_commits(start, to)?.difference(&had).cloned().collect();
        if commits.is_empty() {
            return Ok(Ok(PackedState { files, commits: None }));
        }
        let had: Vec<String> = had.into_iter().collect();
        let size = measure_objects(&self.git, &commits, &had)?;
        if size > bytes_max {
            return Ok(Err(size));
        }
        Ok(Ok(PackedState { files, commits: Some(pack_objects(&self.git, &commits, &had)?) }))
    }

    /// Makes the branches that a run made since the state `start` and that this repository lacks. Other branches are no work
    /// of the run.
    ///
    /// # Errors
    /// When git fails.
    pub fn restore_new_branches(
        &self,
        start: NamedState<'_>,
        to: NamedState<'_>,
    ) -> Result<(), WorktreeError> {
        let git = self.user_git();
        for (name, commit) in self.new_branches(start, to)? {
            let reference = format!("refs/heads/{name}");
            if !git.succeeds(&["show-ref", "--verify", "--quiet", &reference])? {
                git.run(&["update-ref", &reference, object_id(&commit)?])?;
            }
        }
        Ok(())
    }

    /// Takes the files of a packed state into our store.
    ///
    /// # Errors
    /// When the pack is damaged, a state that it builds on is missing, or the store cannot be written.
    pub fn unpack_files(&self, pack: &[u8]) -> Result<(), WorktreeError> {
        let _guard = self.guard()?;
        self.git.run_with(&["index-pack", "--stdin", "--fix-thin"], pack).map(|_| ())
    }

    /// Takes the commits of a packed state into the repository. No branch has them yet.
    ///
    /// # Errors
    /// As [`unpack_files`](Self::unpack_files).
    pub fn unpack_commits(&self, pack: &[u8]) -> Result<(), WorktreeError> {
        self.user_git().run_with(&["index-pack", "--stdin", "--fix-thin"], pack).map(|_| ())
    }

    /// Whether the repository has a commit with all of its files.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has_commit(&self, commit: &str) -> Result<bool, WorktreeError> {
        let commit = object_id(commit)?;
        self.git.succeeds(&["rev-list", "--objects", "--no-walk", "--quiet", commit])
    }

    /// A commit of a tree alone: git packs the differences between trees best if commits have them.
    fn commit_of_tree(&self, tree: &str) -> Result<String, WorktreeError> {
        let git = NOBODY.into_iter().fold(self.git.clone(), |git, (name, value)| git.with(name, value));
        git.word(&["commit-tree", "--no-gpg-sign", "-m", "snapshot", object_id(tree)?])
    }

    /// A git state and the objects that it names.
    fn objects_of_git_state(&self, state: &str) -> Result<BTreeSet<String>, WorktreeError> {
        Ok(list_state_objects(&self.read_git_state(state)?).into_iter().chain([state.to_owned()]).collect())
    }

    /// The commits of a run: those of HEAD, of its stash, and of branches that are new since `start`.
    fn own_commits(
        &self,
        start: NamedState<'_>,
        state: NamedState<'_>,
    ) -> Result<BTreeSet<String>, WorktreeError> {
        let mut commits: BTreeSet<String> = self.new_branches(start, state)?.into_values().collect();
        commits.extend(state.head.map(str::to_owned));
        if let Some(git) = state.git {
            commits.extend(list_stash_commits(&self.read_git_state(git)?));
        }
        Ok(commits)
    }

    fn new_branches(
        &self,
        start: NamedState<'_>,
        state: NamedState<'_>,
    ) -> Result<BTreeMap<String, String>, WorktreeError> {
        let (Some(first), Some(git)) = (start.git, state.git) else { return Ok(BTreeMap::new()) };
        let known = list_state_branches(&self.read_git_state(first)?);
        let mut branches = list_state_branches(&self.read_git_state(git)?);
        branches.retain(|name, _| !known.contains_key(name));
        Ok(branches)
    }

    fn read_git_state(&self, state: &str) -> Result<Vec<u8>, WorktreeError> {
        self.git.run(&["cat-file", "blob", object_id(state)?])
    }
}

/// The objects that are reachable from `wanted` and not from `known`, as lines for git.
fn lines_of(wanted: &[String], known: &[String]) -> String {
    let mut lines = String::new();
    wanted.iter().for_each(|id| lines.extend([id, "\n"]));
    known.iter().for_each(|id| lines.extend(["^", id, "\n"]));
    lines
}

fn measure_objects(git: &Git, wanted: &[String], known: &[String]) -> Result<u64, WorktreeError> {
    let size = git.run_with(
        &["rev-list", "--objects", "--disk-usage", "--stdin"],
        lines_of(wanted, known).as_bytes(),
    )?;
    Ok(String::from_utf8_lossy(&size).trim().parse().unwrap_or(u64::MAX))
}

fn pack_objects(git: &Git, wanted: &[String], known: &[String]) -> Result<Vec<u8>, WorktreeError> {
    let words = ["pack-objects", "--quiet", "--revs", "--thin", "--stdout"];
    git.run_with(&words, lines_of(wanted, known).as_bytes())
}
