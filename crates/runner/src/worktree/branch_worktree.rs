//! Creates git worktrees for runs. Unlike snapshots, these belong to the repository: a branch and a registered folder.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::changes::ChangeKind;
use super::error::{WorktreeError, io_at};
use super::git::Git;
use super::repository::Repository;
use super::snapshots::snapshot::Trees;

/// What commands of its setup may have written into a new worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupState {
    /// Nothing.
    None,
    /// They ended: files that git ignores.
    Finished,
    /// They were cut off: anything.
    Unfinished,
}

/// A git worktree of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder, absolute.
    pub path: PathBuf,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit it was created from.
    pub base: String,
}

/// Creates the branch `branch` from the commit `base` (default: HEAD of `repo`) and a worktree of it in the folder
/// `at`, which must be missing or empty. Uncommitted changes in `repo` are not copied, see [`is_dirty`].
///
/// # Errors
/// [`WorktreeError::Branch`], [`WorktreeError::PathTaken`], [`WorktreeError::NoCommit`] before anything is created; [`WorktreeError::Git`] when git
/// fails for another reason. Each has a [`WorktreeError::hint`].
pub fn create_worktree(
    repo: &Path,
    at: &Path,
    branch: &str,
    base: Option<&str>,
) -> Result<Worktree, WorktreeError> {
    let made = create_empty_worktree(repo, at, branch, base)?;
    Git::new(&made.path).run(&["reset", "--quiet", "--hard"])?;
    Ok(made)
}

/// As [`create_worktree`], without files and with an empty index, for [`Trees::fill_worktree`].
///
/// # Errors
/// As [`create_worktree`].
pub fn create_empty_worktree(
    repo: &Path,
    at: &Path,
    branch: &str,
    base: Option<&str>,
) -> Result<Worktree, WorktreeError> {
    let git = Git::new(repo);
    let path = std::path::absolute(at).map_err(io_at("find", at))?;
    let branch_ref = format!("refs/heads/{branch}");
    let fail = |why| Err(WorktreeError::Branch { branch: branch.to_owned(), why });
    if branch.starts_with('-') || !git.succeeds(&["check-ref-format", &branch_ref])? {
        return fail("not a valid branch name");
    }
    if git.succeeds(&["show-ref", "--verify", "--quiet", &branch_ref])? {
        return fail("it already exists");
    }
    if path.symlink_metadata().is_ok() && path.read_dir().map_or(true, |mut entries| entries.next().is_some())
    {
        return Err(WorktreeError::PathTaken { path });
    }
    let base = resolve_commit(&git, base.unwrap_or("HEAD"))?;
    let _alone = lock_worktrees(repo)?;
    // Pass the commit, not its name: for the name of a remote branch git would set up tracking.
    let args = ["worktree", "add", "--quiet", "--no-checkout", "-b", branch, "--"].map(OsStr::new);
    git.run(&[&args[..], &[path.as_os_str(), OsStr::new(&base)]].concat())?;
    Ok(Worktree { path, branch: branch.to_owned(), base })
}

/// Keeps other processes of ours from adding and removing worktrees of a repository until the result is dropped. Git reads
/// the files of all worktrees and fails at one that another git is just making.
fn lock_worktrees(repo: &Path) -> Result<File, WorktreeError> {
    let common = common_dir(repo)?;
    let folder = File::open(&common).map_err(io_at("open", &common))?;
    // Some network file systems cannot lock a folder. A run must start there too, with the small risk that git fails.
    let _ = flock(&folder, FlockOperation::LockExclusive);
    Ok(folder)
}

/// Removes the worktree of `branch`, whose folder is called `name`, and the branch, if nobody has worked there: the
/// branch has no commits of its own, and each file is as in its commit, missing, or half written by git; except for
/// what the setup wrote. Returns whether it was removed. Snapshots go to `state`.
///
/// # Errors
/// When git fails.
pub fn remove_unused(
    repo: &Path,
    state: &Path,
    name: &str,
    branch: &str,
    setup: SetupState,
) -> Result<bool, WorktreeError> {
    let git = Git::new(repo);
    let _alone = lock_worktrees(repo)?;
    remove_half_made(repo, name)?;
    let branch_ref = format!("refs/heads/{branch}");
    if !git.succeeds(&["show-ref", "--verify", "--quiet", &branch_ref])? {
        return Ok(false);
    }
    let log = git.run(&["log", "--walk-reflogs", "--format=%H", &branch_ref, "--"])?;
    // A deletion that was killed leaves the branch without its log.
    let created = log.iter().filter(|byte| **byte == b'\n').count() <= 1;
    let holders =
        git.run(&["for-each-ref", "--contains", &branch_ref, "--format=%(refname)", "refs/heads"])?;
    let elsewhere = String::from_utf8_lossy(&holders).lines().any(|holder| holder != branch_ref);
    if !created || !elsewhere {
        return Ok(false);
    }
    if let Some(path) = checkout_of(repo, &branch_ref)? {
        if path.is_dir()
            && setup != SetupState::Unfinished
            && !holds_only_committed_files(&path, state, setup)?
        {
            return Ok(false);
        }
        // Moved at once: git would begin with the file by which it knows the worktree, and a kill would leave the rest.
        let aside = set_aside(&path);
        if path.is_dir() {
            fs::rename(&path, &aside).map_err(io_at("move", &path))?;
        }
        if aside.is_dir() {
            fs::remove_dir_all(&aside).map_err(io_at("remove", &aside))?;
        }
        // Forced twice, because an unfinished `git worktree add` leaves it locked.
        let args = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        git.run(&[&args[..], &[path.as_os_str()]].concat())?;
    }
    git.run(&["branch", "--quiet", "-D", branch])?;
    Ok(true)
}

/// Removes the worktree in the folder `at` and its branch. Commits of the branch and of the worktree's HEAD that no other
/// branch has stay reachable by `keep` and `keep-head`. Returns the refs that were made. Call it again after a kill.
///
/// # Errors
/// When git fails.
pub fn remove_worktree(
    repo: &Path,
    at: &Path,
    branch: &str,
    keep: &str,
) -> Result<Vec<String>, WorktreeError> {
    let git = Git::new(repo);
    let _alone = lock_worktrees(repo)?;
    let branch_ref = format!("refs/heads/{branch}");
    let has_branch = git.succeeds(&["show-ref", "--verify", "--quiet", &branch_ref])?;
    let own = |commit: &str| -> Result<bool, WorktreeError> {
        let args = ["for-each-ref", "--contains", commit, "--format=%(refname)", "refs/heads"];
        let holders = git.run(&args)?;
        Ok(!String::from_utf8_lossy(&holders).lines().any(|holder| holder != branch_ref))
    };
    let mut kept = Vec::new();
    let mut keep_as = |name: String, commit: &str| -> Result<(), WorktreeError> {
        git.run(&["update-ref", &name, commit])?;
        kept.push(name);
        Ok(())
    };
    if has_branch && own(&branch_ref)? {
        keep_as(keep.to_owned(), &branch_ref)?;
    }
    if at.is_dir() {
        let head = Git::new(at).word(&["rev-parse", "HEAD"])?;
        let on_branch = has_branch && git.succeeds(&["merge-base", "--is-ancestor", &head, &branch_ref])?;
        if !on_branch && own(&head)? {
            keep_as(format!("{keep}-head"), &head)?;
        }
        // Moved at once: what a kill leaves is never a half of a worktree in which somebody may go on.
        let aside = set_aside(at);
        fs::rename(at, &aside).map_err(io_at("move", at))?;
    }
    let line = format!("worktree {}", at.display());
    if Repository::working_trees(repo)?.concat().contains(&line) {
        let args = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new);
        git.run(&[&args[..], &[at.as_os_str()]].concat())?;
    }
    if has_branch {
        git.run(&["branch", "--quiet", "-D", "--", branch])?;
    }
    let aside = set_aside(at);
    if aside.is_dir() {
        fs::remove_dir_all(&aside).map_err(io_at("remove", &aside))?;
    }
    Ok(kept)
}

/// The name under which a worktree that is being removed lies beside its place. If it exists, [`remove_worktree`] was cut off and
/// can be called again.
pub fn set_aside(at: &Path) -> PathBuf {
    let name = at.file_name().unwrap_or_default().to_string_lossy();
    at.with_file_name(format!(".removing-{name}"))
}

/// Whether submodules were checked out in a worktree. Their commits are in its git folder and in no snapshot.
///
/// # Errors
/// When git cannot be started.
pub fn has_submodules(at: &Path) -> Result<bool, WorktreeError> {
    let Some(found) = Repository::find(at)? else { return Ok(false) };
    Ok(fs::read_dir(found.git_dir.join("modules")).is_ok_and(|mut entries| entries.next().is_some()))
}

/// The repositories inside a worktree that have files there: submodules that are checked out, and those that somebody
/// made. Snapshots hold at most the name of their commit.
///
/// # Errors
/// When git fails.
pub fn inner_repositories(at: &Path) -> Result<Vec<String>, WorktreeError> {
    let git = Git::new(at);
    let others = git.run(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    let links = git.run(&["ls-files", "-z", "--stage"])?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // A repository is listed as a folder, everything else as a file.
    let others = others.split(|byte| *byte == 0).filter(|name| name.ends_with(b"/")).map(text);
    let links = links.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    let links = links.filter_map(|entry| Some(text(entry).split_once('\t')?.1.to_owned()));
    let mut all: Vec<String> =
        others.chain(links).filter(|name| at.join(name).join(".git").exists()).collect();
    all.sort();
    all.dedup();
    Ok(all)
}

/// The changed files of a repository inside a worktree, which no snapshot sees; new ones too if `with_new`. Paths are
/// relative to the repository.
///
/// # Errors
/// When git fails, as in a damaged repository.
pub(super) fn changed_inside(repository: &Path, with_new: bool) -> Result<Vec<String>, WorktreeError> {
    let new = if with_new { "--untracked-files=all" } else { "--untracked-files=no" };
    let args = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all", new];
    let listed = Git::new(repository).run(&args)?;
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    Ok(entries.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// Removes what a killed `git worktree add` left before it had written all files of the worktree's git folder. Nothing
/// was checked out then, and `git worktree` fails in the whole repository.
fn remove_half_made(repo: &Path, name: &str) -> Result<(), WorktreeError> {
    let dir = common_dir(repo)?.join("worktrees").join(name);
    let text = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default().trim().to_owned();
    let complete = ["gitdir", "commondir", "HEAD"].iter().all(|file| !text(file).is_empty());
    // With an index files were checked out; the worktree may only have been moved.
    let checked_out = dir.join("index").exists();
    if !dir.is_dir() || checked_out || complete && Path::new(&text("gitdir")).exists() {
        return Ok(());
    }
    if let Some(folder) = Path::new(&text("gitdir")).parent().filter(|folder| folder.is_absolute()) {
        let _ = fs::remove_file(folder.join(".git"));
        // Only if it is empty.
        let _ = fs::remove_dir(folder);
    }
    fs::remove_dir_all(&dir).map_err(io_at("remove", &dir))
}

/// Whether each file of a worktree is as in its commit, missing, or a beginning of it. Compares contents: an unfinished
/// checkout has no index.
fn holds_only_committed_files(path: &Path, state: &Path, setup: SetupState) -> Result<bool, WorktreeError> {
    let Some(trees) = Trees::open(path, state)? else { return Ok(false) };
    let ignored = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory"];
    if setup == SetupState::None && !Git::new(path).run(&ignored)?.is_empty() {
        return Ok(false);
    }
    let commit = Git::new(path).word(&["rev-parse", "HEAD^{tree}"])?;
    let is = trees.snapshot()?.tree;
    for change in trees.changes(&commit, &is)? {
        let file = |tree: &str| trees.git.run(&["cat-file", "blob", &format!("{tree}:{}", change.path)]);
        let half_written = || Ok::<_, WorktreeError>(file(&commit)?.starts_with(&file(&is)?));
        if change.kind != ChangeKind::Deleted && !(change.kind == ChangeKind::Modified && half_written()?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The branch that is checked out in `repo`; `None` for a detached HEAD.
///
/// # Errors
/// When git cannot be started.
pub fn current_branch(repo: &Path) -> Result<Option<String>, WorktreeError> {
    // Not `--short`, which depends on the names of tags.
    match Git::new(repo).word(&["symbolic-ref", "--quiet", "HEAD"]) {
        Ok(branch) => Ok(branch.strip_prefix("refs/heads/").map(str::to_owned)),
        Err(WorktreeError::Git { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The branches that runs made and nobody removed.
///
/// # Errors
/// When git cannot be started.
pub fn run_branches(repo: &Path) -> Result<Vec<String>, WorktreeError> {
    if Repository::find(repo)?.is_none() {
        return Ok(Vec::new());
    }
    let listed =
        Git::new(repo).run(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/cuegate/"])?;
    Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
}

/// The names of the remotes of a repository.
///
/// # Errors
/// When git fails.
pub fn list_remotes(repo: &Path) -> Result<Vec<String>, WorktreeError> {
    let listed = Git::new(repo).run(&["remote"])?;
    Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
}

/// Whether two folders are in working trees of the same repository.
///
/// # Errors
/// When git cannot be started.
pub fn same_repository(one: &Path, other: &Path) -> Result<bool, WorktreeError> {
    let common = |folder: &Path| Ok::<_, WorktreeError>(Repository::find(folder)?.map(|found| found.common));
    Ok(common(one)?.is_some_and(|one| common(other).is_ok_and(|other| other == Some(one))))
}

/// The folder of a repository that its worktrees share.
fn common_dir(repo: &Path) -> Result<PathBuf, WorktreeError> {
    let none =
        || WorktreeError::Git { command: "rev-parse".to_owned(), stderr: "not a git repository".to_owned() };
    Ok(Repository::find(repo)?.ok_or_else(none)?.common)
}

/// The working tree in which a branch is checked out.
pub(super) fn checkout_of(repo: &Path, branch_ref: &str) -> Result<Option<PathBuf>, WorktreeError> {
    let line = format!("branch {branch_ref}");
    let listed = Repository::working_trees(repo)?;
    let entry = listed.iter().find(|entry| entry.contains(&line));
    Ok(entry.and_then(|entry| entry.first()?.strip_prefix("worktree ")).map(PathBuf::from))
}

/// Whether the working tree of `work` has uncommitted changes: changed, staged or untracked files. Ignored files and
/// `.cuegate` do not count.
///
/// # Errors
/// `work` is in no working tree, or git fails.
pub fn is_dirty(work: &Path) -> Result<bool, WorktreeError> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=normal",
        "--ignore-submodules=none",
    ];
    let paths = ["--", ":/", ":(top,exclude,literal).cuegate"];
    Ok(!Git::new(work).run(&[&args[..], &paths].concat())?.is_empty())
}

fn resolve_commit(git: &Git, base: &str) -> Result<String, WorktreeError> {
    let commit = format!("{base}^{{commit}}");
    match git.word(&["rev-parse", "--quiet", "--verify", "--end-of-options", &commit]) {
        // Git before 2.30 also prints the option.
        Ok(found) => Ok(found.lines().last().unwrap_or_default().to_owned()),
        Err(WorktreeError::Git { .. }) => Err(WorktreeError::NoCommit { base: base.to_owned() }),
        Err(error) => Err(error),
    }
}

/// Finds the commit from which the changes of a task are counted: where the branch left the one that it is for, or where it
/// was made, whichever is newer. As TAKT does, its own notes come first, then the default branch. `None` without a
/// commit, or if no branch says it.
///
/// # Errors
/// When git cannot be run.
pub fn find_review_base(repo: &Path) -> Result<Option<String>, WorktreeError> {
    let git = Git::new(repo);
    let Ok(head) = git.word(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) else { return Ok(None) };
    let branch = current_branch(repo)?;
    let noted =
        branch.iter().flat_map(|branch| ["pr-base", "base"].map(|kind| format!("refs/takt/{kind}/{branch}")));
    let usual = ["refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"].map(str::to_owned);
    let mut left = None;
    for name in noted.chain(usual) {
        if git.succeeds(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])? {
            left = git.word(&["merge-base", &head, &name]).ok();
            break;
        }
    }
    // The oldest note of a branch is where it was made.
    let made = branch.and_then(|branch| {
        git.word(&["reflog", "show", "--format=%H", &format!("refs/heads/{branch}")]).ok()
    });
    let made = made.and_then(|lines| Some(lines.lines().last()?.to_owned()));
    let made =
        made.filter(|made| git.succeeds(&["merge-base", "--is-ancestor", made, &head]).unwrap_or(false));
    Ok(match (left, made) {
        (Some(left), Some(made)) if git.succeeds(&["merge-base", "--is-ancestor", &left, &made])? => {
            Some(made)
        }
        (Some(left), _) => Some(left),
        (None, made) => made,
    })
}
