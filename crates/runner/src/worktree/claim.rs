//! Claims tasks by creating branches on a remote. Of several machines that create the same branch, the server lets one
//! win. Each claim is a commit of its own, so that after a crash a machine recognises its claim.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::WorktreeError;
use super::finalize::{pushed_ref, separate_git_failure, set_fallback_author, trim_output};
use super::git::Git;
use super::remote_heads::{REMOTE_MAX, fetch_objects, list_remote_refs};

/// The line of a claim's message that says who claims, in the form `HOST BATCH TIME`.
const TRAILER: &str = "Cuegate-Claim: ";

/// The branch that claims an issue.
pub fn branch_of_issue(issue: u64) -> String {
    format!("cuegate/issue-{issue}")
}

/// Who claims a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    pub host: String,
    pub batch: String,
    /// When, as RFC 3339.
    pub at: String,
}

/// Whether a claim was won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimResult {
    /// The branch was created, or had been created with this claim.
    Yes,
    /// The branch exists.
    No,
}

/// Creates the commit of a claim: one without files and without a parent, so that it publishes nothing of the user's.
/// Changes no branch.
///
/// # Errors
/// When git fails.
pub fn create_claim_commit(repo: &Path, what: &str, by: &Claimant) -> Result<String, WorktreeError> {
    let git = Git::new(repo);
    let tree = git.word(&["hash-object", "-t", "tree", "-w", "--stdin"])?;
    let message = format!(
        "Claim {what}\n\nCuegate works on it. The work replaces this commit; to give the claim back, delete the \
         branch.\n\n{TRAILER}{} {} {}\n",
        by.host, by.batch, by.at
    );
    set_fallback_author(git, repo)?.word(&["commit-tree", "--no-gpg-sign", "-m", &message, &tree])
}

/// Creates `branch` on the remote with a claim, if it does not exist there.
///
/// # Errors
/// When git cannot be started, and with the words of the remote when it refuses for another reason than the branch.
pub fn push_claim(
    repo: &Path,
    remote: &str,
    branch: &str,
    commit: &str,
) -> Result<Result<ClaimResult, String>, WorktreeError> {
    let git = Git::new(repo).within(REMOTE_MAX);
    let (to, only_new) = (format!("refs/heads/{branch}"), format!("--force-with-lease=refs/heads/{branch}:"));
    let refs = format!("{commit}:{to}");
    let pushed = git.output(&["push", "--porcelain", "--no-verify", &only_new, remote, &refs], b"")?;
    let output = String::from_utf8_lossy(&pushed.stdout).into_owned();
    // `*` is a new branch. A branch that another machine created with another commit is refused.
    let state = output.lines().find(|line| line.contains(&format!(":{to}\t"))).and_then(|l| l.chars().next());
    if state == Some('*') && pushed.status.success() {
        return Ok(Ok(ClaimResult::Yes));
    }
    match on_remote(repo, remote, branch)? {
        Ok(found) if found.as_deref() == Some(commit) => Ok(Ok(ClaimResult::Yes)),
        Ok(Some(_)) => Ok(Ok(ClaimResult::No)),
        Ok(None) => {
            let stderr = String::from_utf8_lossy(&pushed.stderr).trim().replace('\n', "; ");
            Ok(Err(if stderr.is_empty() { pushed.status.to_string() } else { stderr }))
        }
        Err(why) => Ok(Err(why)),
    }
}

/// The commit of a branch on the remote; `None` if there is no such branch.
///
/// # Errors
/// When git cannot be started; with the words of the remote when it cannot be asked.
pub fn on_remote(
    repo: &Path,
    remote: &str,
    branch: &str,
) -> Result<Result<Option<String>, String>, WorktreeError> {
    let found = list_remote_refs(repo, remote, &format!("refs/heads/{branch}"))?;
    Ok(found.map(|found| found.into_values().next()))
}

/// The issues that are claimed on the remote, with the commits of their branches.
///
/// # Errors
/// When git cannot be started; with the words of the remote when it cannot be asked.
pub fn claimed_issues(
    repo: &Path,
    remote: &str,
) -> Result<Result<BTreeMap<u64, String>, String>, WorktreeError> {
    let prefix = format!("refs/heads/{}", branch_of_issue(0).trim_end_matches('0'));
    let found = list_remote_refs(repo, remote, &format!("{prefix}*"))?;
    let number = |name: &str| name.strip_prefix(&prefix)?.parse().ok();
    Ok(found.map(|found| found.into_iter().filter_map(|(name, to)| Some((number(&name)?, to))).collect()))
}

/// Whether a commit was pushed for a branch of the repository, or is on it.
///
/// # Errors
/// When git cannot be started.
pub fn is_commit_on_branch(repo: &Path, branch: &str, commit: &str) -> Result<bool, WorktreeError> {
    let git = Git::new(repo);
    for name in [format!("refs/heads/{branch}"), pushed_ref(branch)] {
        if git.succeeds(&["merge-base", "--is-ancestor", commit, &name])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the repository has a commit to start from.
///
/// # Errors
/// When git cannot be started.
pub fn has_commit(repo: &Path) -> Result<bool, WorktreeError> {
    Git::new(repo).succeeds(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])
}

/// Describes who has a branch: the claimant, or the last commit of the work.
///
/// # Errors
/// When git cannot be started.
pub fn find_branch_holder(
    repo: &Path,
    remote: &str,
    branch: &str,
    commit: &str,
) -> Result<BranchHolder, WorktreeError> {
    let git = Git::new(repo).within(REMOTE_MAX);
    if !git.succeeds(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?
        && fetch_objects(&git, remote, &[&format!("refs/heads/{branch}")])?.is_err()
    {
        return Ok(BranchHolder::Unknown);
    }
    let shown = git.run(&["show", "--no-patch", "--format=%an%x00%cs%x00%s%x00%B", commit]);
    let Ok(shown) = shown.map(trim_output) else { return Ok(BranchHolder::Unknown) };
    let parts: Vec<&str> = shown.splitn(4, '\0').collect();
    let [author, date, subject, body] = parts[..] else { return Ok(BranchHolder::Unknown) };
    let words = body.lines().find_map(|line| line.strip_prefix(TRAILER));
    let words: Vec<&str> = words.unwrap_or_default().split(' ').collect();
    Ok(match words[..] {
        [host, batch, at] => BranchHolder::Claim(Claimant {
            host: host.to_owned(),
            batch: batch.to_owned(),
            at: at.to_owned(),
        }),
        _ => {
            let (author, date, subject) = (author.to_owned(), date.to_owned(), subject.to_owned());
            BranchHolder::Work { author, date, subject }
        }
    })
}

/// Who has a branch that claims a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchHolder {
    /// A batch claims it and has pushed no work.
    Claim(Claimant),
    /// It has work.
    Work {
        /// The author of its last commit.
        author: String,
        date: String,
        /// The first line of its message.
        subject: String,
    },
    /// The branch cannot be read.
    Unknown,
}

/// Deletes the branch of a claim on the remote, if it still is at the claim: no work is lost. Returns whether it is gone.
///
/// # Errors
/// When git cannot be started; with the words of the remote when it refuses.
pub fn release_claim(
    repo: &Path,
    remote: &str,
    branch: &str,
    commit: &str,
) -> Result<Result<bool, String>, WorktreeError> {
    let found = match on_remote(repo, remote, branch)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    match found {
        None => return Ok(Ok(true)),
        Some(found) if found != commit => return Ok(Ok(false)),
        Some(_) => {}
    }
    let git = Git::new(repo).within(REMOTE_MAX);
    let lease = format!("--force-with-lease=refs/heads/{branch}:{commit}");
    let refs = format!(":refs/heads/{branch}");
    let deleted = separate_git_failure(git.run(&["push", "--quiet", "--no-verify", &lease, remote, &refs]))?;
    Ok(deleted.map(|()| true))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A bare repository and a clone of it for each machine.
    fn machines() -> (tempfile::TempDir, Vec<std::path::PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let run = |folder: &Path, args: &[&str]| Git::new(folder).run(args).unwrap();
        fs::create_dir(at("hub")).unwrap();
        run(&at("hub"), &["init", "--quiet", "--bare", "--initial-branch", "main"]);
        let names = ["one", "two"];
        for name in names {
            run(dir.path(), &["clone", "--quiet", "hub", name]);
            run(&at(name), &["config", "user.name", name]);
            run(&at(name), &["config", "user.email", "a@localhost"]);
        }
        fs::write(at("one").join("file"), "text\n").unwrap();
        run(&at("one"), &["checkout", "--quiet", "-B", "main"]);
        run(&at("one"), &["add", "--all"]);
        run(&at("one"), &["commit", "--quiet", "--message", "base"]);
        run(&at("one"), &["push", "--quiet", "origin", "main"]);
        run(&at("two"), &["pull", "--quiet", "origin", "main"]);
        let clones = names.map(at).to_vec();
        (dir, clones)
    }

    fn by(host: &str) -> Claimant {
        Claimant {
            host: host.to_owned(),
            batch: "bcdfghjk".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn one_of_two_machines_wins_and_the_other_learns_who() {
        let (_dir, clones) = machines();
        let branch = branch_of_issue(7);
        let commits: Vec<String> = clones
            .iter()
            .zip(["a", "b"])
            .map(|(repo, host)| create_claim_commit(repo, "#7", &by(host)).unwrap())
            .collect();
        assert_ne!(commits[0], commits[1]);
        // The same push again, as after a crash, is won as well.
        for _ in 0..2 {
            assert_eq!(push_claim(&clones[0], "origin", &branch, &commits[0]).unwrap(), Ok(ClaimResult::Yes));
            assert_eq!(push_claim(&clones[1], "origin", &branch, &commits[1]).unwrap(), Ok(ClaimResult::No));
        }
        let found = claimed_issues(&clones[1], "origin").unwrap().unwrap();
        assert_eq!(found, BTreeMap::from([(7, commits[0].clone())]));
        assert_eq!(
            find_branch_holder(&clones[1], "origin", &branch, &found[&7]).unwrap(),
            BranchHolder::Claim(by("a"))
        );
        // Only the claim itself is given back.
        assert_eq!(release_claim(&clones[1], "origin", &branch, &commits[1]).unwrap(), Ok(false));
        assert_eq!(release_claim(&clones[0], "origin", &branch, &commits[0]).unwrap(), Ok(true));
        assert_eq!(push_claim(&clones[1], "origin", &branch, &commits[1]).unwrap(), Ok(ClaimResult::Yes));
    }

    #[test]
    fn pushes_at_the_same_time_have_one_winner() {
        let (_dir, clones) = machines();
        for issue in 1..=10 {
            let branch = branch_of_issue(issue);
            let won: Vec<ClaimResult> = std::thread::scope(|scope| {
                let threads: Vec<_> = clones
                    .iter()
                    .zip(["a", "b"])
                    .map(|(repo, host)| {
                        let branch = &branch;
                        scope.spawn(move || {
                            let commit = create_claim_commit(repo, "it", &by(host)).unwrap();
                            push_claim(repo, "origin", branch, &commit).unwrap().unwrap()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(won.iter().filter(|won| **won == ClaimResult::Yes).count(), 1, "{won:?}");
        }
    }

    #[test]
    fn work_replaces_a_claim_and_a_remote_that_is_gone_says_why() {
        let (dir, clones) = machines();
        let branch = branch_of_issue(8);
        let claim = create_claim_commit(&clones[0], "#8", &by("a")).unwrap();
        assert_eq!(push_claim(&clones[0], "origin", &branch, &claim).unwrap(), Ok(ClaimResult::Yes));
        let work = Git::new(&clones[0]);
        work.run(&["checkout", "--quiet", "-b", "work"]).unwrap();
        fs::write(clones[0].join("new"), "x\n").unwrap();
        work.run(&["add", "--all"]).unwrap();
        work.run(&["commit", "--quiet", "--message", "Mend it"]).unwrap();
        let lease = format!("--force-with-lease=refs/heads/{branch}:{claim}");
        work.run(&["push", "--quiet", &lease, "origin", &format!("work:refs/heads/{branch}")]).unwrap();
        let now = on_remote(&clones[1], "origin", &branch).unwrap().unwrap().unwrap();
        let found = find_branch_holder(&clones[1], "origin", &branch, &now).unwrap();
        assert!(
            matches!(&found, BranchHolder::Work { author, subject, .. } if author == "one" && subject == "Mend it")
        );
        assert!(
            !clones[1].join(".git/FETCH_HEAD").exists()
                || !fs::read_to_string(clones[1].join(".git/FETCH_HEAD")).unwrap().contains("issue-8")
        );
        assert_eq!(release_claim(&clones[0], "origin", &branch, &claim).unwrap(), Ok(false));
        fs::rename(dir.path().join("hub"), dir.path().join("gone")).unwrap();
        let why = push_claim(&clones[0], "origin", &branch_of_issue(9), &claim).unwrap().unwrap_err();
        assert!(why.contains("hub"), "{why}");
    }
}
