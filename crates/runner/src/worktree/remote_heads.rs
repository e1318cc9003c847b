//! What a remote has. Its branches are asked for, and commits of it that are not here are fetched before anything is said of
//! them: what lies here by chance says nothing about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::error::WorktreeError;
use super::finalize::{separate_git_failure, trim_output};
use super::git::Git;

/// The time limit of one question to a remote.
pub(super) const REMOTE_MAX: Duration = Duration::from_secs(120);
/// The time limit of a fetch.
const FETCH_MAX: Duration = Duration::from_secs(10 * 60);
/// The most branches, besides the ones asked about, that are fetched to find commits.
const FETCHED_MAX: usize = 5_000;

/// The branches of a remote with their commits, by full name.
///
/// # Errors
/// When git cannot be started; with the words of the remote when it cannot be asked.
pub fn heads_of(
    repo: &Path,
    remote: &str,
) -> Result<Result<BTreeMap<String, String>, String>, WorktreeError> {
    list_remote_refs(repo, remote, "refs/heads/*")
}

pub(super) fn list_remote_refs(
    repo: &Path,
    remote: &str,
    pattern: &str,
) -> Result<Result<BTreeMap<String, String>, String>, WorktreeError> {
    let git = Git::new(repo).within(REMOTE_MAX);
    let listed = match git.run(&["ls-remote", "--refs", "--", remote, pattern]) {
        Ok(listed) => trim_output(listed),
        Err(error) => return separate_git_failure(Err(error)).map(|why| Err(why.err().unwrap_or_default())),
    };
    let pairs = listed.lines().filter_map(|line| line.split_once('\t'));
    Ok(Ok(pairs.map(|(commit, name)| (name.to_owned(), commit.to_owned())).collect()))
}

/// Fetches the objects of branches of a remote. No reference of the user moves, `FETCH_HEAD` and those of the remote
/// included.
///
/// # Errors
/// When git cannot be started; with its words when it cannot fetch them.
pub(super) fn fetch_objects(
    git: &Git,
    remote: &str,
    names: &[&str],
) -> Result<Result<(), String>, WorktreeError> {
    let options = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-auto-gc",
        "--no-recurse-submodules",
        "--no-prune",
        // Otherwise git moves the remote-tracking branches as well.
        "--refmap=",
        "--",
        remote,
    ];
    separate_git_failure(git.run(&[&options[..], names].concat()))
}

/// What a remote has, as far as it matters for commits of this repository.
#[derive(Debug, Clone)]
pub struct RemoteHeads<'r> {
    git: Git,
    remote: &'r str,
    /// The commits of its branches, by full name.
    heads: BTreeMap<String, String>,
    /// Those that are in the repository.
    known: BTreeSet<String>,
}

impl<'r> RemoteHeads<'r> {
    /// Asks a remote for its branches, and fetches those of `wanted` whose commits are not here, by their short names.
    ///
    /// # Errors
    /// When git cannot be started; with the words of the remote when it cannot be asked.
    pub fn ask(
        repo: &Path,
        remote: &'r str,
        wanted: &[&str],
    ) -> Result<Result<RemoteHeads<'r>, String>, WorktreeError> {
        let heads = match heads_of(repo, remote)? {
            Ok(heads) => heads,
            Err(why) => return Ok(Err(why)),
        };
        let git = Git::new(repo).within(FETCH_MAX);
        let mut asked = RemoteHeads { git, remote, heads, known: BTreeSet::new() };
        asked.learn_known()?;
        let wanted: Vec<String> = wanted.iter().map(|name| format!("refs/heads/{name}")).collect();
        let unknown = asked.unknown(|name| wanted.iter().any(|wanted| wanted == name));
        if !unknown.is_empty() {
            let fetched = fetch_objects(&asked.git, remote, &unknown)?;
            asked.learn_known()?;
            if let Err(why) = fetched {
                return Ok(Err(why));
            }
        }
        Ok(Ok(asked))
    }

    /// The name of the remote.
    pub fn remote(&self) -> &str {
        self.remote
    }

    /// Its branches with their commits, by full name.
    pub fn list(&self) -> &BTreeMap<String, String> {
        &self.heads
    }

    /// The commit of a branch, if it is there and its history is here.
    pub fn find(&self, branch: &str) -> Option<&str> {
        let commit = self.heads.get(&format!("refs/heads/{branch}"))?;
        self.known.get(commit).map(String::as_str)
    }

    /// How many commits of a branch of the remote `of` lacks, if they are here.
    ///
    /// # Errors
    /// When git fails.
    pub fn count_missing(&self, branch: &str, of: &str) -> Result<usize, WorktreeError> {
        let Some(head) = self.find(branch) else { return Ok(0) };
        let count = self.git.word(&["rev-list", "--count", &format!("{of}..{head}")])?;
        Ok(count.parse().unwrap_or(0))
    }

    /// How many commits `of` has that the remote has on no branch, nor had when it was last fetched from.
    ///
    /// # Errors
    /// When git fails.
    pub fn count_unpublished(&mut self, of: &str) -> Result<usize, WorktreeError> {
        let count = self.count(of)?;
        // One branch may have them that was made since.
        let unknown = self.unknown(|_| true);
        if count == 0 || unknown.is_empty() || unknown.len() > FETCHED_MAX {
            return Ok(count);
        }
        // Those that cannot be fetched tell nothing.
        let _ = fetch_objects(&self.git, self.remote, &unknown)?;
        self.learn_known()?;
        self.count(of)
    }

    /// The commit of the remote on which the unpublished commits of `of` are built: the only one, or the one that contains
    /// the others. `None` if they are built on several, or on none.
    ///
    /// # Errors
    /// When git fails.
    pub fn find_published_base(&self, of: &str) -> Result<Option<String>, WorktreeError> {
        let listed = self.rev_list(&["--boundary"], of)?;
        let bases: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix('-')).collect();
        if bases.is_empty() {
            return Ok(None);
        }
        let newest = self.git.run(&[&["merge-base", "--independent"][..], &bases].concat())?;
        let newest = trim_output(newest);
        Ok(Some(newest).filter(|newest| !newest.contains('\n')))
    }

    fn count(&self, of: &str) -> Result<usize, WorktreeError> {
        Ok(self.rev_list(&["--count"], of)?.trim().parse().unwrap_or(0))
    }

    fn rev_list(&self, options: &[&str], of: &str) -> Result<String, WorktreeError> {
        let known: String = self.known.iter().map(|commit| format!("^{commit}\n")).collect();
        let tracked = format!("--remotes={}", self.remote);
        let args = [&["rev-list"][..], options, &["--stdin", of, "--not", &tracked]].concat();
        Ok(String::from_utf8_lossy(&self.git.run_with(&args, known.as_bytes())?).into_owned())
    }

    fn unknown(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        let unknown = self.heads.iter().filter(|(_, commit)| !self.known.contains(*commit));
        unknown.map(|(name, _)| name.as_str()).filter(|name| is_wanted(name)).collect()
    }

    fn learn_known(&mut self) -> Result<(), WorktreeError> {
        let asked: String = self.heads.values().map(|commit| format!("{commit}\n")).collect();
        let args = ["cat-file", "--batch-check=%(objecttype) %(objectname)"];
        let found = self.git.run_with(&args, asked.as_bytes())?;
        let found = String::from_utf8_lossy(&found).into_owned();
        self.known =
            found.lines().filter_map(|line| line.strip_prefix("commit ")).map(str::to_owned).collect();
        Ok(())
    }
}
