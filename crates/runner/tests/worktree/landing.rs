//! The commit of a run is its snapshot, whatever the agent did to the index, the branches and the folders of its worktree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cuegate_runner::worktree::branch_worktree::{self, Worktree};
use cuegate_runner::worktree::finalize::{self, Branches, RunWork};
use cuegate_runner::worktree::{Snapshot, Trees};

use crate::support::{Repo, git};

/// Random numbers of a seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }
}

/// A repository and the worktree of a run in it.
struct Run {
    repo: Repo,
    made: Worktree,
    trees: Trees,
    start: Snapshot,
}

impl Run {
    /// Makes the worktree. `set_up` may write what its setup leaves there.
    fn start(repo: Repo, set_up: impl FnOnce(&Path)) -> Run {
        let at = repo.place.path().join("work");
        let made = branch_worktree::create_worktree(&repo.root, &at, "cuegate/r1", None).unwrap();
        set_up(&made.path);
        let trees = Trees::open(&made.path, &repo.state()).unwrap().unwrap();
        let start = trees.snapshot().unwrap();
        Run { repo, made, trees, start }
    }

    fn work(&self) -> &Path {
        &self.made.path
    }

    /// Commits and merges as the end of a run does. Returns what the two steps said.
    fn land(&self) -> (Result<String, String>, Option<Result<String, String>>) {
        let end = self.trees.snapshot().unwrap().tree;
        let work = RunWork { trees: &self.trees, base: &self.made.base, start: &self.start.tree, end: &end };
        let at = Branches {
            work: self.work(),
            branch: "cuegate/r1",
            base: Some("main"),
            hooks: false,
            into: None,
            merges: true,
            updates: false,
            is_edited: false,
            allowed: &[],
            claim: None,
        };
        let committed = finalize::commit_run_work(&at, &work, "the work").unwrap();
        if committed.is_err() {
            return (committed, None);
        }
        let again = finalize::commit_run_work(&at, &work, "the work").unwrap();
        assert_eq!(again.unwrap(), "nothing was left to commit");
        let merged = finalize::merge_run_work(
            &self.repo.root,
            &at,
            &work,
            "merge",
            &self.repo.state().join("begun"),
            &mut |_, _| Ok(Ok(String::new())),
        )
        .unwrap();
        (committed, Some(merged))
    }

    /// The mode and object of each file of a commit.
    fn files_of(&self, commit: &str) -> BTreeMap<String, String> {
        let listed = git(&self.repo.root, &["ls-tree", "-r", "-z", commit]);
        let entries = listed.split('\0').filter_map(|entry| entry.split_once('\t'));
        let entry = |(about, path): (&str, &str)| {
            let words: Vec<&str> = about.split(' ').collect();
            (path.to_owned(), format!("{} {}", words[0], words[2]))
        };
        entries.map(entry).collect()
    }
}

/// The entry of each file in a folder that git does not ignore, made by a git of its own from the files alone: with an
/// index of its own, without flags and sparse patterns.
fn files_on_disk(run: &Run, absent: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let index = run.repo.place.path().join("index-of-test");
    let _ = fs::remove_file(&index);
    let own = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let output = command
            .args(["-c", "core.sparseCheckout=false", "-c", "advice.addEmbeddedRepo=false"])
            .args(args)
            .current_dir(run.work())
            .env("GIT_INDEX_FILE", &index)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    own(&["read-tree", &run.made.base]);
    own(&["add", "--all", "--ignore-errors"]);
    // What the agent added is its work, also where git ignores it now.
    let added = git(run.work(), &["ls-files", "-z"]);
    for path in added
        .split('\0')
        .filter(|path| run.work().join(path).symlink_metadata().is_ok_and(|about| !about.is_dir()))
    {
        own(&["add", "--force", "--", path]);
    }
    let listed = own(&["ls-files", "-z", "--stage"]);
    let mut files = BTreeMap::new();
    for entry in listed.split('\0').filter(|entry| !entry.is_empty()) {
        let (about, path) = entry.split_once('\t').unwrap();
        let words: Vec<&str> = about.split(' ').collect();
        files.insert(path.to_owned(), format!("{} {}", words[0], words[1]));
    }
    for (path, entry) in absent {
        if run.work().join(path).symlink_metadata().is_err() {
            files.entry(path.clone()).or_insert_with(|| entry.clone());
        }
    }
    files
}

const PATHS: [&str; 12] = [
    "a.txt",
    "b.txt",
    "in/m",
    "in/n.txt",
    "in/deep/x",
    "out/m",
    "out/deep/y",
    "sp ace/ü.txt",
    "-dash",
    "new/z",
    "x.log",
    "kept.log",
];

/// One thing that an agent does.
fn act(rng: &mut Rng, work: &Path, made_repositories: &mut Vec<String>) {
    let path = rng.of(&PATHS);
    let at = work.join(path);
    let quiet = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args).current_dir(work);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        let _ = command.output().unwrap();
    };
    let clear = |at: &Path| {
        let _ = fs::remove_file(at);
        let _ = fs::remove_dir_all(at);
    };
    let make_parent = |at: &Path| {
        for above in at.ancestors().skip(1).take_while(|above| above.starts_with(work) && *above != work) {
            if above.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
                let _ = fs::remove_file(above);
            }
        }
        let _ = fs::create_dir_all(at.parent().unwrap());
    };
    match rng.below(20) {
        0..=6 => {
            make_parent(&at);
            if at.is_dir() && !at.is_symlink() {
                return;
            }
            let _ = fs::remove_file(&at);
            fs::write(&at, format!("{}\n", rng.below(1000))).unwrap();
        }
        7 => clear(&at),
        8 => {
            make_parent(&at);
            clear(&at);
            symlink(rng.of(&["a.txt", "/somewhere/absolute", "no/where"]), &at).unwrap();
        }
        9 => {
            if at.is_file() && !at.is_symlink() {
                fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        10 => {
            // A folder in the place of a file.
            clear(&at);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("inner"), "i\n").unwrap();
        }
        11 => quiet(&["update-index", "--skip-worktree", "--", path]),
        12 => quiet(&["update-index", "--assume-unchanged", "--", path]),
        13 => quiet(&["add", "--all"]),
        14 => {
            quiet(&["add", "--all"]);
            quiet(&["commit", "--quiet", "--message", "by the agent"]);
        }
        15 => quiet(&["rm", "--quiet", "--cached", "--", path]),
        16 => quiet(&["add", "--intent-to-add", "--", path]),
        17 => match rng.below(3) {
            0 => quiet(&["checkout", "--quiet", "--detach"]),
            1 => quiet(&["switch", "--quiet", "--create", "mine"]),
            _ => quiet(&["stash", "--quiet"]),
        },
        18 => {
            fs::write(work.join(".gitignore"), rng.of(&["*.log\n", "*.log\nnew/\n", "", "b.txt\n"])).unwrap()
        }
        _ => {
            if !rng.one_in(3) {
                return;
            }
            let name = rng.of(&["tool", "vendor/lib"]).to_owned();
            if !work.join(&name).exists() {
                quiet(&["init", "--quiet", &name]);
                fs::write(work.join(&name).join("main.c"), "int main;\n").unwrap();
                if rng.one_in(2) {
                    quiet(&["-C", &name, "add", "--all"]);
                    quiet(&["-C", &name, "commit", "--quiet", "--message", "in"]);
                }
                made_repositories.push(name);
            }
        }
    }
}

#[test]
fn the_commit_is_the_snapshot_or_the_run_says_which_files_are_missing() {
    let (mut landed, mut refused) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng(seed * 7 + 1);
        let repo = Repo::empty();
        for path in ["a.txt", "b.txt", "in/m", "in/deep/x", "out/m", "out/deep/y", "kept.log", ".gitignore"] {
            repo.write(path, if path == ".gitignore" { "*.log\n" } else { "base\n" });
        }
        git(&repo.root, &["add", "--all", "--force"]);
        git(&repo.root, &["commit", "--quiet", "--message", "base"]);
        let is_sparse = rng.one_in(3);
        if is_sparse {
            git(&repo.root, &["sparse-checkout", "set", "--cone", "in"]);
        }
        let has_setup = rng.one_in(2);
        let run = Run::start(repo, |work| {
            if has_setup {
                symlink("/an/absolute/path", work.join("link-of-setup")).unwrap();
                fs::create_dir_all(work.join("made")).unwrap();
                fs::write(work.join("made/by-setup"), "s\n").unwrap();
                fs::write(work.join("in/m"), "changed by the setup\n").unwrap();
            }
        });
        let base = run.files_of(&run.made.base);
        let absent: BTreeMap<String, String> = base
            .iter()
            .filter(|(path, _)| run.work().join(path).symlink_metadata().is_err())
            .map(|(p, e)| (p.clone(), e.clone()))
            .collect();
        assert_eq!(is_sparse, !absent.is_empty(), "seed {seed}");
        let mut repositories = Vec::new();
        for _ in 0..3 + rng.below(14) {
            act(&mut rng, run.work(), &mut repositories);
        }
        repositories.retain(|name| run.work().join(name).join(".git").exists());
        let mut wanted = files_on_disk(&run, &absent);
        if has_setup {
            // What the setup wrote, and the agent left as it was, is no work.
            wanted.retain(|path, _| !["link-of-setup", "made/by-setup"].contains(&path.as_str()));
            let at = run.work().join("in/m");
            let is_plain = at
                .symlink_metadata()
                .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 == 0);
            if is_plain && fs::read_to_string(at).unwrap() == "changed by the setup\n" {
                wanted.insert("in/m".to_owned(), base["in/m"].clone());
            }
        }
        let (committed, merged) = run.land();
        match (&committed, merged) {
            (Ok(_), Some(merged)) => {
                assert_eq!(repositories, [""; 0], "seed {seed}: a repository cannot be in the commit");
                assert_eq!(run.files_of("cuegate/r1"), wanted, "seed {seed}");
                let merged = merged.unwrap();
                assert!(
                    merged.starts_with("merged") || merged.contains("nothing to merge"),
                    "seed {seed}: {merged}"
                );
                assert_eq!(run.files_of("main"), wanted, "seed {seed}");
                assert_eq!(
                    git(&run.repo.root, &["status", "--porcelain", "--untracked-files=no"]),
                    "",
                    "seed {seed}"
                );
                assert_eq!(git(run.work(), &["symbolic-ref", "--short", "HEAD"]).trim(), "cuegate/r1");
                landed += 1;
            }
            (Err(why), _) => {
                assert!(
                    repositories.iter().any(|name| why.contains(name)),
                    "seed {seed}: {why}; {repositories:?}"
                );
                assert_eq!(run.files_of("main"), base, "seed {seed}");
                refused += 1;
            }
            (Ok(_), None) => unreachable!(),
        }
        git(&run.repo.root, &["fsck", "--strict"]);
    }
    assert!(landed >= 20 && refused >= 2, "{landed} landed, {refused} refused");
}

fn simple() -> Repo {
    let repo = Repo::new();
    git(&repo.root, &["branch", "--quiet", "other"]);
    repo
}

/// Lets git fetch from a folder.
const FILE: [&str; 2] = ["-c", "protocol.file.allow=always"];

/// A repository with the submodule `lib`, and the repository that this comes from.
fn with_submodule() -> (Repo, PathBuf) {
    let repo = simple();
    let library = repo.place.path().join("library");
    git(repo.place.path(), &["init", "--quiet", "--initial-branch=main", "library"]);
    fs::write(library.join("lib.c"), "1\n").unwrap();
    git(&library, &["add", "--all"]);
    git(&library, &["commit", "--quiet", "--message", "one"]);
    let add = ["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"];
    git(&repo.root, &[&FILE[..], &add].concat());
    repo.commit();
    (repo, library)
}

#[test]
fn submodules_land_if_others_can_fetch_their_commit() {
    for is_published in [true, false] {
        let (repo, library) = with_submodule();
        let run = Run::start(repo, |work| {
            git(work, &[&FILE[..], &["submodule", "--quiet", "update", "--init"]].concat());
        });
        let inner = run.work().join("lib");
        if is_published {
            fs::write(library.join("lib.c"), "2\n").unwrap();
            git(&library, &["commit", "--quiet", "--all", "--message", "two"]);
            git(&inner, &[&FILE[..], &["fetch", "--quiet"]].concat());
            git(&inner, &["checkout", "--quiet", "origin/main"]);
        } else {
            fs::write(inner.join("lib.c"), "3\n").unwrap();
            git(&inner, &["commit", "--quiet", "--all", "--message", "mine"]);
        }
        let (committed, merged) = run.land();
        if is_published {
            assert_eq!(merged.unwrap().unwrap(), "merged into `main`");
            assert!(run.files_of("main")["lib"].starts_with("160000 "));
        } else {
            let why = committed.unwrap_err();
            assert!(why.contains("only in this worktree: `lib`"), "{why}");
        }
    }
}

/// A commit holds the name of a submodule's commit alone.
#[test]
fn files_changed_in_a_submodule_are_named() {
    for is_checked_out in [true, false] {
        let (repo, _) = with_submodule();
        let run = Run::start(repo, |work| {
            if is_checked_out {
                git(work, &[&FILE[..], &["submodule", "--quiet", "update", "--init"]].concat());
            }
        });
        fs::write(run.work().join("lib/lib.c"), "2\n").unwrap();
        let (committed, _) = run.land();
        let why = committed.unwrap_err();
        assert!(why.contains(if is_checked_out { "`lib/lib.c`" } else { "`lib`" }), "{why}");
        let hidden = run.trees.hidden_files(&run.start.tree, std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(hidden.iter().any(|name| name == "lib/lib.c"), is_checked_out, "{hidden:?}");
        if is_checked_out {
            // In a damaged one nobody can tell.
            fs::write(run.work().join("lib/.git"), "gitdir: /no/where\n").unwrap();
            let why = run.land().0.unwrap_err();
            assert!(why.contains("`lib"), "{why}");
        }
    }
}

#[test]
fn working_trees_of_subagents_are_no_part_of_the_work() {
    let run = Run::start(simple(), |_| {});
    git(run.work(), &["worktree", "add", "--quiet", ".claude/worktrees/agent-1"]);
    fs::write(run.work().join("a.txt"), "new\n").unwrap();
    let (committed, merged) = run.land();
    assert_eq!(committed.unwrap(), "committed on `cuegate/r1`");
    assert_eq!(merged.unwrap().unwrap(), "merged into `main`");
    assert!(run.files_of("main").keys().all(|path| !path.starts_with(".claude")));
    let warnings = run.trees.warnings();
    assert!(warnings.iter().any(|text| text.contains(".claude/worktrees/agent-1")), "{warnings:?}");
}

#[test]
fn an_unfinished_rebase_or_conflict_is_no_work() {
    let run = Run::start(simple(), |_| {});
    let work = run.work();
    for (branch, text) in [("theirs", "theirs\n"), ("cuegate/r1", "ours\n")] {
        if branch == "theirs" {
            git(work, &["switch", "--quiet", "--create", branch]);
        } else {
            git(work, &["switch", "--quiet", branch]);
        }
        fs::write(work.join("a.txt"), text).unwrap();
        git(work, &["commit", "--quiet", "--all", "--message", branch]);
    }
    let stop = |args: &[&str]| {
        std::process::Command::new("git").args(args).current_dir(work).output().unwrap();
    };
    stop(&["merge", "theirs"]);
    assert!(run.land().0.unwrap_err().contains("unfinished conflicts in the worktree: `a.txt`"));
    git(work, &["merge", "--abort"]);
    stop(&["rebase", "theirs"]);
    assert!(run.land().0.unwrap_err().contains("a rebase is unfinished"));
}

#[test]
fn a_merge_that_the_agent_resolved_keeps_both_parents() {
    let run = Run::start(simple(), |_| {});
    fs::write(run.repo.root.join("theirs.txt"), "theirs\n").unwrap();
    run.repo.commit();
    fs::write(run.work().join("mine.txt"), "mine\n").unwrap();
    git(run.work(), &["merge", "--quiet", "--no-commit", "--no-ff", "main"]);
    let (committed, merged) = run.land();
    assert!(committed.is_ok(), "{committed:?}");
    assert_eq!(merged.unwrap().unwrap(), "merged into `main`");
    assert_eq!(git(&run.repo.root, &["rev-list", "--parents", "-1", "main"]).trim().split(' ').count(), 3);
    assert!(run.files_of("main").contains_key("theirs.txt"));
}

#[test]
fn a_branch_in_a_rebase_and_untracked_files_in_the_way_are_left_alone() {
    // A rebase of `main` that stopped at a conflict.
    let run = Run::start(simple(), |_| {});
    let root = &run.repo.root;
    git(root, &["switch", "--quiet", "other"]);
    fs::write(root.join("a.txt"), "other\n").unwrap();
    git(root, &["commit", "--quiet", "--all", "--message", "other"]);
    git(root, &["switch", "--quiet", "main"]);
    fs::write(root.join("a.txt"), "mine\n").unwrap();
    git(root, &["commit", "--quiet", "--all", "--message", "mine"]);
    std::process::Command::new("git").args(["rebase", "other"]).current_dir(root).output().unwrap();
    let before = git(root, &["rev-parse", "main"]);
    fs::write(run.work().join("work.txt"), "work\n").unwrap();
    let said = run.land().1.unwrap().unwrap();
    assert!(
        said.starts_with("`main` is in the middle of a rebase and was not moved: `git merge --ff-only"),
        "{said}"
    );
    assert_eq!(git(root, &["rev-parse", "main"]), before);

    for is_ignored in [false, true] {
        let run = Run::start(simple(), |_| {});
        let root = &run.repo.root;
        if is_ignored {
            fs::write(root.join(".git/info/exclude"), "work.txt\n").unwrap();
        }
        fs::write(root.join("work.txt"), "the only copy\n").unwrap();
        fs::write(run.work().join("work.txt"), "work\n").unwrap();
        git(run.work(), &["add", "--force", "work.txt"]);
        git(run.work(), &["commit", "--quiet", "--message", "work"]);
        let said = run.land().1.unwrap().unwrap();
        assert!(
            said.contains("untracked files in the way (`work.txt`) and was not moved"),
            "{is_ignored}: {said}"
        );
        assert_eq!(fs::read_to_string(root.join("work.txt")).unwrap(), "the only copy\n");
    }
}
