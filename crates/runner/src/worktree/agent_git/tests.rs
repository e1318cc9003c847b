use std::{fs, path::Path, process::Command};

use super::*;

/// A repository of a user with one commit, and the git folder of its agents.
pub(super) struct Scene {
    pub(super) dir: tempfile::TempDir,
}

impl Scene {
    pub(super) fn new() -> Scene {
        let scene = Scene { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(scene.top()).unwrap();
        scene.user(&["init", "--quiet", "--initial-branch", "main"]);
        scene.write("a.txt", "one\n");
        scene.user(&["add", "--all"]);
        scene.user(&["commit", "--quiet", "--message", "base"]);
        scene
    }

    pub(super) fn top(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join("tree")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.top().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn git(&self) -> AgentGit {
        let trees = Trees::open(&self.top(), &self.dir.path().join("state")).unwrap().unwrap();
        AgentGit::new(&trees, &self.dir.path().join("run/git"), GitFolderReach::Mounted)
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"]).args(args);
        git.current_dir(self.top()).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        git
    }

    /// The git of the user.
    pub(super) fn user(&self, args: &[&str]) -> String {
        run_command(self.command(args))
    }

    /// The git of an agent, which sees the objects of the user by a mount.
    pub(super) fn agent(&self, args: &[&str]) -> String {
        let mut git = self.command(args);
        git.env("GIT_DIR", self.dir.path().join("run/git")).env("GIT_WORK_TREE", self.top());
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.top().join(".git/objects"));
        run_command(git)
    }
}

pub(super) fn run_command(mut git: Command) -> String {
    let output = git.output().unwrap();
    assert!(output.status.success(), "{git:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs one command of an agent between the begin and the end of a call.
pub(super) fn run_call(git: &mut AgentGit, work: impl FnOnce()) -> TakeOverReport {
    fs::create_dir_all(git.folder.parent().unwrap()).unwrap();
    git.begin().unwrap();
    work();
    git.end().unwrap();
    git.take_over(&StopFlag::default()).unwrap()
}

#[test]
fn commits_land_with_the_index_and_nothing_else_does() {
    let scene = Scene::new();
    let mut git = scene.git();
    let taken = run_call(&mut git, || {
        scene.write("b.txt", "two\n");
        scene.write("staged.txt", "x\n");
        scene.agent(&["add", "b.txt"]);
        scene.agent(&["commit", "--quiet", "--message", "own"]);
        scene.agent(&["add", "staged.txt"]);
        scene.agent(&["branch", "feature"]);
        scene.agent(&["config", "core.fsmonitor", "evil"]);
    });
    assert_eq!(taken.left, ["settings of git", "the branch `feature`"]);
    assert_eq!(scene.user(&["log", "--format=%s"]), "own\nbase\n");
    assert_eq!(scene.user(&["status", "--porcelain"]), "?? staged.txt\n");
    assert!(!scene.user(&["config", "--list", "--local"]).contains("evil"));
    scene.user(&["fsck", "--strict"]);
    // The user can have the other branch.
    let folder = scene.dir.path().join("run/git");
    scene.user(&["fetch", "--quiet", folder.to_str().unwrap(), "feature:theirs"]);
    assert_eq!(scene.user(&["log", "-1", "--format=%s", "theirs"]), "own\n");
    scene.user(&["branch", "--quiet", "-D", "theirs"]);
    // In the next call the agent finds what it left, and nothing is named again.
    let taken = run_call(&mut git, || {
        assert_eq!(scene.agent(&["diff", "--cached", "--name-only"]), "staged.txt\n");
        assert_eq!(scene.agent(&["branch", "--list", "feature"]).trim(), "feature");
    });
    assert_eq!(taken, TakeOverReport::default());
}

#[test]
fn agents_rewrite_their_own_commits_and_not_those_of_the_user() {
    let scene = Scene::new();
    let mut git = scene.git();
    let commit = |message: &str| {
        scene.agent(&["commit", "--quiet", "--allow-empty", "--message", message]);
    };
    run_call(&mut git, || commit("one"));
    let taken = run_call(&mut git, || {
        scene.agent(&["commit", "--quiet", "--amend", "--allow-empty", "--message", "amended"]);
        commit("two");
    });
    assert_eq!((taken.left.len(), taken.aside.len()), (0, 1), "{taken:?}");
    assert_eq!(scene.user(&["log", "--format=%s"]), "two\namended\nbase\n");
    // The user goes on, and the agent takes their commit away.
    scene.user(&["commit", "--quiet", "--allow-empty", "--message", "of the user"]);
    let taken = run_call(&mut git, || {
        assert_eq!(scene.agent(&["log", "-1", "--format=%s"]), "of the user\n");
        scene.agent(&["reset", "--quiet", "--hard", "HEAD~2"]);
        commit("three");
    });
    assert_eq!(taken.left, ["another commit of the branch `main`"]);
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "of the user\n");
    // After a reset the agent starts from the state of the user again.
    git.reset().unwrap();
    let taken = run_call(&mut git, || commit("four"));
    assert_eq!(taken.left, [""; 0]);
    assert_eq!(scene.user(&["log", "--format=%s", "-2"]), "four\nof the user\n");
}

#[test]
fn a_detached_head_and_the_first_commit_land_too() {
    let scene = Scene::new();
    scene.user(&["checkout", "--quiet", "--detach"]);
    let mut git = scene.git();
    run_call(&mut git, || {
        scene.agent(&["commit", "--quiet", "--allow-empty", "--message", "detached"]);
    });
    assert_eq!(scene.user(&["log", "--format=%s"]), "detached\nbase\n");
    assert_eq!(scene.user(&["log", "--format=%s", "main"]), "base\n");

    scene.user(&["checkout", "--quiet", "--orphan", "new"]);
    run_call(&mut git, || {
        scene.agent(&["commit", "--quiet", "--all", "--message", "first"]);
    });
    assert_eq!(scene.user(&["log", "--format=%s", "new"]), "first\n");
    assert_eq!(scene.user(&["status", "--porcelain"]), "");
}

#[test]
fn a_merge_of_the_user_that_an_agent_concludes_is_over() {
    let scene = Scene::new();
    scene.user(&["checkout", "--quiet", "-b", "other"]);
    scene.write("a.txt", "other\n");
    scene.user(&["commit", "--quiet", "--all", "--message", "other"]);
    scene.user(&["checkout", "--quiet", "main"]);
    scene.write("a.txt", "main\n");
    scene.user(&["commit", "--quiet", "--all", "--message", "main"]);
    assert!(!scene.command(&["merge", "other"]).output().unwrap().status.success());
    let mut git = scene.git();
    run_call(&mut git, || {
        scene.write("a.txt", "both\n");
        scene.agent(&["commit", "--quiet", "--all", "--message", "merged"]);
    });
    assert_eq!(scene.user(&["log", "-1", "--format=%s %p"]).split(' ').count(), 3);
    assert!(!scene.top().join(".git/MERGE_HEAD").exists());
    assert_eq!(scene.user(&["status", "--porcelain"]), "");
}

#[test]
fn what_the_user_staged_stays_staged() {
    let scene = Scene::new();
    scene.write("mine.txt", "mine\n");
    scene.user(&["add", "mine.txt"]);
    let mut git = scene.git();
    run_call(&mut git, || {
        scene.write("a.txt", "agent\n");
        scene.agent(&["commit", "--quiet", "--message", "agent", "a.txt"]);
        scene.agent(&["update-index", "--assume-unchanged", "a.txt"]);
    });
    assert_eq!(scene.user(&["status", "--porcelain"]), "A  mine.txt\n");
    assert!(scene.user(&["ls-files", "-v"]).contains("H a.txt"));
}

#[test]
fn secrets_in_settings_are_not_copied() {
    let scene = Scene::new();
    for (name, value) in [
        ("remote.origin.url", "https://user:s3cret@example.com/x.git"),
        ("remote.ssh.url", "ssh://git:s3cret@example.com/x.git"),
        ("url.https://s3cret@example.com/.insteadOf", "https://example.com/"),
        ("http.https://example.com/.extraheader", "AUTHORIZATION: basic s3cret"),
        ("http.proxy", "http://me:s3cret@proxy:3128"),
        ("credential.helper", "store --file s3cret"),
        ("some.apiToken", "s3cret"),
        ("remote.key.url", "https://example.com/x.git?key=s3cret"),
        ("sendemail.smtpPass", "s3cret"),
        ("alias.up", "!curl -H 'Authorization: s3cret' https://example.com"),
        ("core.hooksPath", ".husky"),
        ("alias.st", "status"),
    ] {
        scene.user(&["config", name, value]);
    }
    scene.write(".git/FETCH_HEAD", "0 branch 'main' of https://example.com/x?key=s3cret\n");
    let mut git = scene.git();
    run_call(&mut git, || {
        assert!(!scene.dir.path().join("run/git/FETCH_HEAD").exists());
        let settings = scene.agent(&["config", "--list", "--local"]);
        assert!(!settings.contains("s3cret"), "{settings}");
        for kept in
            ["remote.origin.url=https://example.com/x.git", "core.hookspath=.husky", "alias.st=status"]
        {
            assert!(settings.contains(kept), "{settings}");
        }
        assert!(settings.contains("ssh://git@example.com/x.git"), "{settings}");
    });
}

#[test]
fn a_damaged_folder_is_replaced_and_nothing_of_the_user_is() {
    let scene = Scene::new();
    let mut git = scene.git();
    let taken = run_call(&mut git, || {
        let folder = scene.dir.path().join("run/git");
        fs::remove_dir_all(folder.join("objects")).unwrap();
        std::os::unix::fs::symlink(scene.top().join(".git/refs"), folder.join("objects")).unwrap();
        fs::write(folder.join("refs/heads/main"), "no commit\n").unwrap();
    });
    assert_eq!(taken.left.len(), 1, "{taken:?}");
    assert!(taken.left[0].starts_with("all of it, because git cannot read it"), "{taken:?}");
    run_call(&mut git, || {
        scene.agent(&["commit", "--quiet", "--allow-empty", "--message", "whole again"]);
    });
    assert_eq!(scene.user(&["log", "--format=%s", "--all"]), "whole again\nbase\n");
}

#[test]
fn links_of_agents_lead_no_write_of_ours_elsewhere() {
    let scene = Scene::new();
    scene.write(".git/hooks/pre-commit", "#!/bin/sh\n");
    let mut git = scene.git();
    let aim = scene.dir.path().join("aim");
    fs::create_dir(&aim).unwrap();
    run_call(&mut git, || {
        let folder = scene.dir.path().join("run/git");
        for name in ["hooks", "info", "logs", "alt"] {
            fs::remove_dir_all(folder.join(name)).unwrap();
            std::os::unix::fs::symlink(&aim, folder.join(name)).unwrap();
        }
        fs::write(aim.join("index.lock"), "").unwrap();
    });
    git.reset().unwrap();
    run_call(&mut git, || ());
    assert_eq!(fs::read_dir(&aim).unwrap().count(), 1, "only what was there");
}

#[test]
fn submodules_have_a_folder_of_their_own() {
    let scene = Scene::new();
    let lib = scene.dir.path().join("lib");
    fs::create_dir(&lib).unwrap();
    for args in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["commit", "--quiet", "--allow-empty", "--message", "lib"],
    ] {
        run_command({
            let mut git = scene.command(args);
            git.current_dir(&lib);
            git
        });
    }
    let at = lib.to_str().unwrap();
    scene.user(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at, "lib"]);
    scene.user(&["commit", "--quiet", "--message", "lib"]);
    let mut git = scene.git();
    // In a sandbox it is mounted over the folder of the submodule.
    let folder = git.module_folder(&scene.top().join(".git/modules/lib"));
    let in_lib = |args: &[&str]| {
        let mut git = scene.command(args);
        git.current_dir(scene.top().join("lib"));
        git.env("GIT_DIR", &folder);
        git.env("GIT_WORK_TREE", scene.top().join("lib"));
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", scene.top().join(".git/modules/lib/objects"));
        run_command(git)
    };
    let taken = run_call(&mut git, || {
        fs::write(scene.top().join("lib/new.txt"), "x\n").unwrap();
        in_lib(&["add", "new.txt"]);
        in_lib(&["commit", "--quiet", "--message", "in lib"]);
        in_lib(&["tag", "evil"]);
    });
    assert_eq!(taken.left, ["the tag `evil` of the submodule `lib`"]);
    assert_eq!(scene.user(&["-C", "lib", "log", "-1", "--format=%s"]), "in lib\n");
    assert_eq!(scene.user(&["-C", "lib", "status", "--porcelain"]), "");
    assert_eq!(scene.user(&["-C", "lib", "tag"]), "");
}

#[test]
fn objects_of_git_lfs_land_if_they_are_what_they_are_called() {
    let scene = Scene::new();
    let mut git = scene.git();
    let digest = "a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447";
    let object = Path::new("lfs/objects/a9/48").join(digest);
    let forged = Path::new("lfs/objects/bb/bb").join("b".repeat(64));
    run_call(&mut git, || {
        for name in [&object, &forged] {
            let file = scene.dir.path().join("run/git").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "hello world\n").unwrap();
        }
    });
    assert!(scene.top().join(".git").join(&object).is_file());
    assert!(!scene.top().join(".git").join(&forged).exists());
}

#[test]
fn a_cut_off_take_over_is_finished() {
    let scene = Scene::new();
    let mut git = scene.git();
    fs::create_dir_all(git.folder.parent().unwrap()).unwrap();
    git.begin().unwrap();
    scene.write("b.txt", "two\n");
    scene.agent(&["add", "b.txt"]);
    scene.agent(&["commit", "--quiet", "--message", "own"]);
    git.end().unwrap();
    // The branch was moved, then came the kill.
    let record = fs::read(&git.record).unwrap();
    let index = fs::read(scene.top().join(".git/index")).unwrap();
    git.take_over(&StopFlag::default()).unwrap();
    fs::write(&git.record, record).unwrap();
    fs::write(scene.top().join(".git/index"), index).unwrap();
    assert_eq!(scene.user(&["status", "--porcelain"]), "D  b.txt\n?? b.txt\n");
    git.take_over(&StopFlag::default()).unwrap();
    assert_eq!(scene.user(&["status", "--porcelain"]), "");
}

#[test]
fn a_commit_that_was_killed_before_its_last_step_is_ended() {
    let scene = Scene::new();
    let mut git = scene.git();
    run_call(&mut git, || {
        let index = scene.dir.path().join("run/git/index");
        let before = fs::read(&index).unwrap();
        scene.write("a.txt", "two\n");
        scene.agent(&["commit", "--quiet", "--all", "--message", "own"]);
        // Git moves the branch first and the index last.
        fs::rename(&index, index.with_extension("lock")).unwrap();
        fs::write(&index, before).unwrap();
        assert_eq!(scene.agent(&["status", "--porcelain"]), "MM a.txt\n");
        fs::rename(index.with_extension("lock"), index.with_file_name("index.lock")).unwrap();
    });
    run_call(&mut git, || assert_eq!(scene.agent(&["status", "--porcelain"]), ""));
    assert_eq!(scene.user(&["status", "--porcelain"]), "");
}

#[test]
fn an_ignored_file_that_an_agent_added_is_work() {
    let scene = Scene::new();
    scene.write(".gitignore", "*.log\n");
    let mut git = scene.git();
    run_call(&mut git, || {
        scene.write("kept.log", "x\n");
        scene.write("other.log", "x\n");
        scene.agent(&["add", "--force", "kept.log"]);
    });
    let trees = Trees::open(&scene.top(), &scene.dir.path().join("state")).unwrap().unwrap();
    let trees = trees.with_agent_index(git.index());
    let tree = trees.snapshot().unwrap().tree;
    let is_there = |name: &str| trees.file_of(&tree, name).unwrap().is_some();
    assert!(is_there("kept.log") && !is_there("other.log"));
    assert_eq!(scene.user(&["status", "--porcelain"]), "?? .gitignore\n");
}

#[test]
fn references_in_tables_are_read_and_moved() {
    let scene = Scene { dir: tempfile::tempdir().unwrap() };
    fs::create_dir(scene.top()).unwrap();
    let made =
        scene.command(&["init", "--quiet", "--initial-branch", "main", "--ref-format=reftable"]).output();
    if !made.unwrap().status.success() {
        eprintln!("skipped: this git has no reftable format (2.45)");
        return;
    }
    scene.user(&["commit", "--quiet", "--allow-empty", "--message", "base"]);
    let mut git = scene.git();
    let commit = |message: &str| {
        scene.agent(&["commit", "--quiet", "--allow-empty", "--message", message]);
    };
    assert_eq!(run_call(&mut git, || commit("one")).left, [""; 0]);
    scene.user(&["checkout", "--quiet", "-b", "other"]);
    assert_eq!(run_call(&mut git, || commit("two")).left, [""; 0]);
    assert_eq!(scene.user(&["log", "--format=%s", "other"]), "two\none\nbase\n");
    assert_eq!(scene.user(&["log", "--format=%s", "main"]), "one\nbase\n");
}

#[test]
fn the_first_commit_and_a_detached_one_are_the_agents_to_amend() {
    let scene = Scene { dir: tempfile::tempdir().unwrap() };
    fs::create_dir(scene.top()).unwrap();
    scene.user(&["init", "--quiet", "--initial-branch", "main"]);
    let mut git = scene.git();
    let commit = |message: &str, more: &[&str]| {
        scene.agent(&[&["commit", "--quiet", "--allow-empty", "--message", message], more].concat());
    };
    assert_eq!(run_call(&mut git, || commit("first", &[])).left, [""; 0]);
    assert_eq!(run_call(&mut git, || commit("amended", &["--amend"])).left, [""; 0]);
    assert_eq!(scene.user(&["log", "--format=%s"]), "amended\n");
    scene.user(&["checkout", "--quiet", "--detach"]);
    assert_eq!(run_call(&mut git, || commit("second", &[])).left, [""; 0]);
    assert_eq!(run_call(&mut git, || commit("second amended", &["--amend"])).left, [""; 0]);
    assert_eq!(scene.user(&["log", "--format=%s"]), "second amended\namended\n");
}

#[test]
fn a_repository_that_becomes_a_submodule_is_moved_out_of_the_way_of_git() {
    let scene = Scene::new();
    let mut git = scene.git();
    let inner = scene.top().join("emb");
    let taken = run_call(&mut git, || {
        fs::create_dir(&inner).unwrap();
        for args in [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "--message", "inner"]]
        {
            let mut git = scene.command(args);
            git.current_dir(&inner);
            run_command(git);
        }
        scene.agent(&["-c", "advice.addEmbeddedRepo=false", "add", "emb"]);
        scene.agent(&["commit", "--quiet", "--message", "with emb"]);
    });
    assert_eq!(taken.left, ["the repository in `emb`, whose `.git` is now `.git.by-agent-1`"]);
    assert!(!inner.join(".git").exists() && inner.join(".git.by-agent-1/HEAD").exists());
    assert_eq!(scene.user(&["log", "-1", "--format=%s"]), "with emb\n");
    scene.user(&["status"]);
    // A file that names a repository which only agents have would stop git of the user.
    let taken =
        run_call(&mut git, || fs::write(inner.join(".git"), "gitdir: ../.git/modules/emb\n").unwrap());
    assert_eq!(taken.left, ["the repository in `emb`, whose `.git` is now `.git.by-agent-2`"]);
    scene.user(&["status"]);
}
