//! Merges and makes branches of a remote. Neither a working tree nor a branch of the user changes.

use std::{path::Path, time::Duration};

use super::error::{WorktreeError, io_at};
use super::finalize::{separate_git_failure, set_fallback_author};
use super::git::Git;
use super::remote_heads::{fetch_objects, heads_of};

/// The time limit of a fetch or a push.
const REMOTE_MAX: Duration = Duration::from_secs(10 * 60);
/// How often a push is repeated that another one was in the way of, and the pause before.
const PUSH_AGAIN: (u32, Duration) = (3, Duration::from_secs(1));
/// What git says then: the branch is locked at the remote, or is no longer what was read.
const TAKEN: [&str; 3] = ["cannot lock ref", "stale info", "reference already exists"];
/// The longest text of a file with conflicts that is shown to an agent, in bytes.
const CONFLICT_MAX: usize = 200_000;

/// What became of a merge into a branch of the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteMerge {
    /// It has all commits already.
    UpToDate,
    /// The merge was pushed as this commit.
    Pushed(String),
    /// These files cannot be merged. Nothing was pushed.
    Conflicts(Vec<ConflictedFile>),
    /// It cannot be done, for this reason.
    Refused(String),
}

/// A file with changes on both sides that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictedFile {
    pub path: String,
    /// Its text with marks around the conflicts; `None` if it is no text, or too long.
    pub text: Option<String>,
}

/// The whole text of a file that had conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFile {
    pub path: String,
    pub text: String,
}

/// Two branches of a remote.
#[derive(Debug, Clone, Copy)]
pub struct RemoteBranches<'b> {
    pub remote: &'b str,
    /// The one that changes.
    pub into: &'b str,
    /// The one whose commits it gets.
    pub from: &'b str,
}

/// Merges a branch of a remote into another one of it and pushes the result, unless there are conflicts that `resolved` does
/// not settle. A branch that changes meanwhile is not overwritten.
///
/// # Errors
/// When git cannot be started. `git merge-tree --write-tree` needs git 2.38.
pub fn merge_on_remote(
    repo: &Path,
    branches: RemoteBranches<'_>,
    message: &str,
    resolved: &[ResolvedFile],
) -> Result<RemoteMerge, WorktreeError> {
    retry_taken_push(
        || merge_once(repo, &branches, message, resolved),
        |merged| match merged {
            RemoteMerge::Refused(why) => Some(why),
            RemoteMerge::Pushed(_) | RemoteMerge::UpToDate | RemoteMerge::Conflicts(_) => None,
        },
    )
}

/// Repeats a push that another one was in the way of: that of a run which was killed goes on at the remote for a moment.
pub(super) fn retry_taken_push<T>(
    mut push: impl FnMut() -> Result<T, WorktreeError>,
    refusal: impl Fn(&T) -> Option<&String>,
) -> Result<T, WorktreeError> {
    let mut pushed = push()?;
    for _ in 0..PUSH_AGAIN.0 {
        let is_taken = |why: &String| TAKEN.iter().any(|words| why.contains(words));
        if !refusal(&pushed).is_some_and(is_taken) {
            break;
        }
        std::thread::sleep(PUSH_AGAIN.1);
        pushed = push()?;
    }
    Ok(pushed)
}

fn merge_once(
    repo: &Path,
    branches: &RemoteBranches<'_>,
    message: &str,
    resolved: &[ResolvedFile],
) -> Result<RemoteMerge, WorktreeError> {
    let &RemoteBranches { remote, into, from } = branches;
    let git = set_fallback_author(Git::new(repo).within(REMOTE_MAX), repo)?;
    let heads = match heads_of(repo, remote)? {
        Ok(heads) => heads,
        Err(why) => return Ok(RemoteMerge::Refused(format!("`{remote}` cannot be read: {why}"))),
    };
    let head = |branch: &str| heads.get(&format!("refs/heads/{branch}")).cloned();
    let missing = |branch: &str| RemoteMerge::Refused(format!("`{remote}` has no branch `{branch}`"));
    let Some(ours) = head(into) else { return Ok(missing(into)) };
    let Some(theirs) = head(from) else { return Ok(missing(from)) };
    let refs = [into, from].map(|branch| format!("refs/heads/{branch}"));
    if let Err(why) = fetch_objects(&git, remote, &[&refs[0], &refs[1]])? {
        return Ok(RemoteMerge::Refused(format!("`{remote}` cannot be fetched: {why}")));
    }
    if git.succeeds(&["merge-base", "--is-ancestor", &theirs, &ours])? {
        return Ok(RemoteMerge::UpToDate);
    }
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", &ours, &theirs];
    let output = git.output(&args, b"")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    let tree = match (output.status.code(), parts.next()) {
        (Some(0), Some(tree)) => tree.to_owned(),
        (Some(1), Some(tree)) => {
            let paths: Vec<String> = parts.map(str::to_owned).collect();
            match resolve_conflicts(&git, tree, &paths, resolved)? {
                Some(tree) => tree,
                None => {
                    let file = |path: String| {
                        let text = git.run(&["cat-file", "blob", &format!("{tree}:{path}")]).ok();
                        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
                        ConflictedFile { path, text: text.filter(|text| text.len() <= CONFLICT_MAX) }
                    };
                    return Ok(RemoteMerge::Conflicts(paths.into_iter().map(file).collect()));
                }
            }
        }
        _ => {
            let why = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return Ok(RemoteMerge::Refused(format!("`{from}` cannot be merged into `{into}`: {why}")));
        }
    };
    let commit = git.word(&["commit-tree", &tree, "-p", &ours, "-p", &theirs, "-m", message])?;
    let lease = format!("--force-with-lease=refs/heads/{into}:{ours}");
    let target = format!("{commit}:refs/heads/{into}");
    let pushed = separate_git_failure(git.run(&["push", "--quiet", &lease, "--", remote, &target]))?;
    Ok(match pushed {
        Ok(()) => RemoteMerge::Pushed(commit),
        Err(why) => RemoteMerge::Refused(format!("`{remote}` refused `{into}`: {why}")),
    })
}

/// The tree with the texts of the files that had conflicts; `None` unless exactly those are given, without marks.
fn resolve_conflicts(
    git: &Git,
    tree: &str,
    paths: &[String],
    resolved: &[ResolvedFile],
) -> Result<Option<String>, WorktreeError> {
    let is_whole = |file: &ResolvedFile| !file.text.lines().any(|line| line.starts_with("<<<<<<< "));
    let find = |path: &String| resolved.iter().find(|file| file.path == *path && is_whole(file));
    let Some(files) = paths.iter().map(find).collect::<Option<Vec<_>>>() else { return Ok(None) };
    if resolved.len() != paths.len() {
        return Ok(None);
    }
    let folder = tempfile::tempdir().map_err(io_at("create", &std::env::temp_dir()))?;
    let git = git.clone().with("GIT_INDEX_FILE", folder.path().join("index"));
    git.run(&["read-tree", tree])?;
    for file in files {
        let blob = git.run_with(&["hash-object", "-w", "--stdin"], file.text.as_bytes())?;
        let blob = String::from_utf8_lossy(&blob).trim().to_owned();
        let mode = git.word(&["ls-tree", "--format=%(objectmode)", tree, "--", &file.path])?;
        git.run(&["update-index", "--cacheinfo", &format!("{mode},{blob},{}", file.path)])?;
    }
    git.word(&["write-tree"]).map(Some)
}

/// Makes a branch of a remote from another one, if it is missing. Returns whether it was.
///
/// # Errors
/// When git cannot be started.
pub fn create_on_remote(
    repo: &Path,
    remote: &str,
    name: &str,
    from: &str,
) -> Result<Result<bool, String>, WorktreeError> {
    retry_taken_push(|| create_once(repo, remote, name, from), |created| created.as_ref().err())
}

fn create_once(
    repo: &Path,
    remote: &str,
    name: &str,
    from: &str,
) -> Result<Result<bool, String>, WorktreeError> {
    let git = Git::new(repo).within(REMOTE_MAX);
    let heads = match heads_of(repo, remote)? {
        Ok(heads) => heads,
        Err(why) => return Ok(Err(format!("`{remote}` cannot be read: {why}"))),
    };
    if heads.contains_key(&format!("refs/heads/{name}")) {
        return Ok(Ok(false));
    }
    let Some(commit) = heads.get(&format!("refs/heads/{from}")) else {
        return Ok(Err(format!("`{remote}` has no branch `{from}` to make `{name}` from")));
    };
    if let Err(why) = fetch_objects(&git, remote, &[&format!("refs/heads/{from}")])? {
        return Ok(Err(format!("`{remote}` cannot be fetched: {why}")));
    }
    // Only if nobody has made it meanwhile.
    let lease = format!("--force-with-lease=refs/heads/{name}:");
    let target = format!("{commit}:refs/heads/{name}");
    let pushed = separate_git_failure(git.run(&["push", "--quiet", &lease, "--", remote, &target]))?;
    Ok(pushed.map(|()| true).map_err(|why| format!("`{remote}` refused `{name}`: {why}")))
}
