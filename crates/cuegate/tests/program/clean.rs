//! Worktrees of runs: where they are, how they are prepared, and how they are removed without losing anything.

use std::{fs, path::PathBuf};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran, until},
};

/// A project whose agent writes a file, and the folder of its worktrees outside of it.
struct Outside {
    project: Project,
    state: tempfile::TempDir,
}

impl Outside {
    fn new(does: &Value) -> Outside {
        let work = says_with("work", "handoff", does.clone());
        let project = small().project(json!([work, says("close", "closing")]));
        Outside { project, state: tempfile::tempdir().unwrap() }
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.project.command(args);
        Ran::of(command.env("XDG_STATE_HOME", self.state.path()).output().unwrap())
    }

    /// Runs the agent in a worktree; returns the run and its folder.
    fn go(&self) -> (String, PathBuf) {
        let ran = self.run(&begin(&["--worktree", "--json"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let json = ran.json();
        (json["run"].as_str().unwrap().to_owned(), json["place"]["work"].as_str().unwrap().into())
    }

    fn listed(&self) -> Value {
        self.run(&["clean", "--json"]).json()["worktrees"].clone()
    }
}

fn writes() -> Value {
    json!({"writes": [{"path": "made by äöü.txt", "content": "x\n"}]})
}

#[test]
fn a_damaged_run_does_not_stand_in_the_way_of_the_others() {
    let outside = Outside::new(&writes());
    let (damaged, its_own) = outside.go();
    let (run, work) = outside.go();
    let journal = outside.project.path().join(format!(".cuegate/runs/{damaged}/log"));
    let mut bytes = fs::read(&journal).unwrap();
    let branch = format!("cuegate/{damaged}").into_bytes();
    let places: Vec<usize> =
        bytes.windows(branch.len()).enumerate().filter(|(_, at)| *at == branch).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the first record names the branch");
    for at in places {
        bytes[at] = b'C';
    }
    fs::write(&journal, bytes).unwrap();
    let refused = outside.run(&["status", &damaged]);
    assert!(refused.stderr.contains("does not match its checksum"), "{}", refused.stderr);
    let doctor = outside.run(&["doctor"]);
    assert!(doctor.stdout.contains("damaged runs: 1 of 2: "), "{}", doctor.stdout);
    let cleaned = outside.run(&["clean", &run]);
    assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
    assert!(cleaned.stderr.contains(&format!("run {damaged} is damaged")), "{}", cleaned.stderr);
    assert!(!work.exists() && its_own.is_dir());
}

#[test]
fn worktrees_are_outside_of_the_project_and_removed_when_their_changes_are_here() {
    let outside = Outside::new(&writes());
    let (run, work) = outside.go();
    assert!(work.starts_with(outside.state.path().join("cuegate/worktrees")), "{work:?}");
    assert!(!outside.project.path().join(".cuegate/worktrees").exists());
    let listed = outside.listed();
    assert_eq!(
        (&listed[0]["run"], &listed[0]["merged"], &listed[0]["kept"]),
        (&json!(run), &json!(false), &Value::Null)
    );
    assert_eq!(outside.run(&["clean", "--merged"]).code, 0);
    assert!(work.is_dir(), "its changes are nowhere else yet");
    assert_eq!(outside.run(&["apply"]).code, 0);
    let dry = outside.run(&["clean", "--merged", "--dry-run"]);
    assert!(dry.stdout.contains("would be removed") && work.is_dir(), "{}", dry.stdout);
    let cleaned = outside.run(&["clean", "--merged"]);
    assert!(cleaned.stdout.ends_with("  removed\n"), "{}\n{}", cleaned.stdout, cleaned.stderr);
    assert!(!work.exists());
    assert_eq!(outside.project.git(&["branch", "--list", "cuegate/*"]), "");
    assert_eq!(outside.project.git(&["worktree", "list"]).lines().count(), 1);
    assert!(outside.run(&["diff"]).stdout.contains("+x"), "the changes are still recorded");
}

#[test]
fn a_removed_worktree_loses_neither_files_nor_commits() {
    let does = json!({"runs": ["echo one > one.txt; git add one.txt; git commit -qm one; echo two > two.txt; mkdir ignored node_modules; echo x > ignored/x; echo y > node_modules/y"]});
    let outside = Outside::new(&does);
    outside.project.write(".git/info/exclude", "ignored/\nnode_modules/\n");
    let (run, work) = outside.go();
    let early = outside.run(&["clean", "--older-than", "1d"]);
    assert!(early.code == 0 && work.is_dir(), "{}", early.stderr);
    let ran = outside.run(&["clean", &run]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("with what can be built again: node_modules/"), "{}", ran.stdout);
    assert!(!work.exists());
    let ignored = format!("refs/cuegate/{run}-ignored");
    assert!(
        ran.stderr.contains(&format!("1 file of run {run} that git ignores stay as `{ignored}`")),
        "{}",
        ran.stderr
    );
    assert_eq!(outside.project.git(&["show", &format!("{ignored}:ignored/x")]), "x\n");
    let keep = format!("refs/cuegate/{run}");
    assert!(ran.stderr.contains(&keep), "{}", ran.stderr);
    assert_eq!(outside.project.git(&["log", "-1", "--format=%s", &keep]), "one\n");
    let applied = outside.run(&["apply", &run]);
    assert_eq!((applied.code, &*applied.stdout), (0, "one.txt\ntwo.txt\n"), "{}", applied.stderr);
    assert_eq!(outside.project.read("two.txt"), "two\n");
    let again = outside.run(&["clean", &run]);
    assert!(again.code == 2 && again.stderr.contains("has no worktree of its own"), "{}", again.stderr);
}

#[test]
fn commits_at_no_branch_stay_too_and_submodules_keep_a_worktree() {
    let outside = Outside::new(&writes());
    let (run, work) = outside.go();
    let work = work.to_str().unwrap();
    outside.project.git(&["-C", work, "checkout", "--quiet", "--detach"]);
    outside.project.git(&["-C", work, "commit", "--quiet", "--allow-empty", "--message", "detached"]);
    let other = tempfile::tempdir().unwrap();
    let path = other.path().to_str().unwrap();
    outside.project.git(&["init", "--quiet", path]);
    outside.project.git(&[
        "-C",
        path,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    ]);
    let modules =
        outside.project.git(&["-C", work, "rev-parse", "--path-format=absolute", "--git-path", "modules"]);
    outside.project.git(&["clone", "--quiet", "--bare", path, &format!("{}/sub", modules.trim())]);
    let ran = outside.run(&["clean", &run]);
    assert!(ran.code == 2 && ran.stderr.contains("it has submodules"), "{}", ran.stderr);
    fs::remove_dir_all(modules.trim()).unwrap();
    let ran = outside.run(&["clean", &run]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let keep = format!("refs/cuegate/{run}-head");
    assert!(ran.stderr.contains(&keep), "{}", ran.stderr);
    assert_eq!(outside.project.git(&["log", "-1", "--format=%s", &keep]), "detached\n");
}

#[test]
fn a_worktree_that_holds_more_than_the_run_left_stays() {
    let outside = Outside::new(&writes());
    let printed = outside.run(&begin(&["--worktree"]));
    let hint = printed.stderr.lines().find_map(|line| line.strip_prefix("discard     ")).unwrap();
    assert!(hint.starts_with("cuegate clean "), "{hint}");
    let (run, work) = outside.go();
    fs::write(work.join("mine.txt"), "mine").unwrap();
    let ran = outside.run(&["clean", &run]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("changed after the run: mine.txt"), "{}", ran.stderr);
    let listed = outside.listed();
    let own = listed.as_array().unwrap().iter().find(|row| row["run"] == json!(run)).unwrap();
    assert!(own["kept"].as_str().unwrap().contains("mine.txt"));
    assert!(work.join("mine.txt").exists());
    for wrong in [&["clean", "--older-than", "soon"][..], &["clean", "x", "--merged"], &["clean", "nobody"]] {
        assert_eq!(outside.run(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_run_that_can_go_on_keeps_its_worktree() {
    let outside = Outside::new(&json!({"asks_user": "Which colour?"}));
    let ran = outside.run(&begin(&["--worktree"]));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let ran = outside.run(&["clean", "last"]);
    assert!(ran.code == 2 && ran.stderr.contains("asks you"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cuegate cancel "), "{}", ran.stderr);
}

#[test]
fn a_new_worktree_is_set_up_and_that_is_no_change_of_an_agent() {
    let outside = Outside::new(&writes());
    outside
        .project
        .write("cuegate.toml", "[worktree]\nsetup = [\"echo dependency > lib.txt\", \"test -e lib.txt\"]\n");
    let (_, work) = outside.go();
    assert!(work.join("lib.txt").exists());
    assert_eq!(outside.project.status()["changed_files"], json!(["made by äöü.txt"]));

    outside.project.write("cuegate.toml", "[worktree]\nsetup = \"echo no network >&2; exit 3\"\n");
    let ran = outside.run(&begin(&["--worktree"]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("  | no network\n") && ran.stderr.contains("failed: exit 3"),
        "{}",
        ran.stderr
    );
    assert_eq!(outside.project.git(&["worktree", "list"]).lines().count(), 2, "only that of the first run");

    outside.project.write("cuegate.toml", "[worktree]\nroot = \"../trees of mine\"\nsetup = []\n");
    let (_, work) = outside.go();
    assert!(work.parent().unwrap().ends_with("trees of mine"), "{work:?}");
    let _ = fs::remove_dir_all(work.parent().unwrap());
    outside.project.write("cuegate.toml", "[worktree]\nsetup = [\"\"]\n");
    let wrong = outside.run(&["runs"]);
    let wrong = if wrong.code == 2 { wrong } else { outside.run(&begin(&["--worktree"])) };
    assert!(wrong.stderr.contains("cuegate.toml:2:9: a setup command is empty"), "{}", wrong.stderr);
}

/// Only the setup was in it, whatever that has written.
#[test]
fn a_worktree_whose_setup_was_cut_off_is_removed() {
    let outside = Outside::new(&writes());
    outside.project.write(".git/info/exclude", "lib/\n");
    outside.project.write(
        "cuegate.toml",
        "[worktree]\nsetup = \"mkdir lib; echo x > lib/a; echo x > new.txt; echo x > .agent/agent/agent.json; sleep 60\"\n",
    );
    let mut command = outside.project.command(&begin(&["--worktree"]));
    let mut child = command.env("XDG_STATE_HOME", outside.state.path()).spawn().unwrap();
    let worktrees = || outside.project.git(&["worktree", "list"]).lines().count();
    let made = || {
        let projects =
            fs::read_dir(outside.state.path().join("cuegate/worktrees")).into_iter().flatten().flatten();
        let runs = projects.flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten());
        runs.into_iter().any(|run| run.path().join("new.txt").exists())
    };
    until("the setup works", made);
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    outside.project.all_gone();
    let doctor = outside.run(&["doctor"]);
    assert_eq!(worktrees(), 1, "{}", doctor.stdout);
    assert_eq!(outside.project.git(&["branch", "--list", "cuegate/*"]), "");
}

#[test]
fn a_worktree_with_a_repository_of_an_agent_stays() {
    for first in ["git commit -qm inner --allow-empty", "true"] {
        let make = format!(
            "git init -q sub; cd sub; git config user.name a; git config user.email a@b; {first}; echo x > inner.txt"
        );
        let outside = Outside::new(&json!({"runs": [make, "echo y > y.txt"]}));
        let (run, work) = outside.go();
        let ran = outside.run(&["clean", &run]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("a repository of its own in `sub`"), "{}", ran.stderr);
        assert!(work.join("sub/inner.txt").exists());
        fs::remove_dir_all(work.join("sub")).unwrap();
    }
}

#[test]
fn an_interrupted_removal_is_listed_and_finished_on_request() {
    let outside = Outside::new(&writes());
    let (run, work) = outside.go();
    let aside = work.with_file_name(format!(".removing-{run}"));
    fs::rename(&work, &aside).unwrap();
    for args in [&["clean"][..], &["clean", "--merged", "--dry-run"]] {
        let ran = outside.run(args);
        assert!(ran.code == 0 && ran.stdout.contains(&run), "{} {}", ran.stdout, ran.stderr);
        assert!(aside.exists(), "{args:?} removes nothing");
    }
    let ran = outside.run(&["clean", "--merged"]);
    assert!(ran.code == 0 && !aside.exists(), "{}", ran.stderr);
    assert_eq!(outside.project.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_worktree_with_too_much_that_git_ignores_stays() {
    let does = json!({"runs": ["mkdir data; truncate -s 65M data/big", "echo x > a.txt"]});
    let outside = Outside::new(&does);
    outside.project.write(".git/info/exclude", "data/\n");
    let (run, work) = outside.go();
    let ran = outside.run(&["clean", &run]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("git ignores 65 MiB in it, which is too much to be kept: data/big"),
        "{}",
        ran.stderr
    );
    fs::remove_file(work.join("data/big")).unwrap();
    assert_eq!(outside.run(&["clean", &run]).code, 0);
}

/// Worktree runs in repositories that are not plain: each begins, and its changes come home and are cleaned up.
mod unusual_repositories {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use serde_json::json;

    use super::Outside;
    use crate::{agent::registry::begin, support::Ran};

    /// What the agent does: a file with a mode, a link, a removal and a change.
    fn does() -> serde_json::Value {
        json!({"runs": ["mkdir -p 'new folder'; echo 'echo hi' > 'new folder/rün.sh'; chmod +x 'new folder/rün.sh'; ln -s rün.sh 'new folder/link'; rm -f old.txt; echo more >> kept.txt"]})
    }

    fn prepared() -> Outside {
        let outside = Outside::new(&does());
        outside.project.write("old.txt", "old\n");
        outside.project.write("kept.txt", "kept\n");
        outside.project.git(&["add", "--all"]);
        outside.project.git(&["commit", "--quiet", "--message", "files"]);
        outside
    }

    /// Runs from `here` in a worktree, applies there, and cleans.
    fn comes_home(outside: &Outside, here: &Path) {
        let at = |args: &[&str]| {
            let mut command = outside.project.command(args);
            Ran::of(command.current_dir(here).env("XDG_STATE_HOME", outside.state.path()).output().unwrap())
        };
        let top = outside.project.git(&["-C", here.to_str().unwrap(), "rev-parse", "--show-toplevel"]);
        let top = Path::new(top.trim());
        let ran = at(&begin(&["--worktree", "--json"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let work = ran.json()["place"]["work"].as_str().unwrap().to_owned();
        let changed = json!(["kept.txt", "new folder/link", "new folder/rün.sh", "old.txt"]);
        assert_eq!(ran.json()["changed_files"], changed, "{}", ran.stderr);
        let applied = at(&["apply"]);
        assert_eq!(applied.code, 0, "{}", applied.stderr);
        assert!(!top.join("old.txt").exists());
        assert_eq!(fs::read_to_string(top.join("kept.txt")).unwrap(), "kept\nmore\n");
        assert_eq!(fs::read_link(top.join("new folder/link")).unwrap(), Path::new("rün.sh"));
        let mode = fs::metadata(top.join("new folder/rün.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{mode:o}");
        let cleaned = at(&["clean", "--merged"]);
        assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
        assert!(!Path::new(&work).exists(), "{}", cleaned.stdout);
        outside.project.git(&["-C", top.to_str().unwrap(), "fsck", "--strict"]);
    }

    #[test]
    fn a_detached_head() {
        let outside = prepared();
        outside.project.git(&["checkout", "--quiet", "--detach"]);
        comes_home(&outside, outside.project.path());
    }

    #[test]
    fn a_folder_below_the_top() {
        let outside = prepared();
        outside.project.write("below/x y/script.json", &outside.project.read("script.json"));
        comes_home(&outside, &outside.project.path().join("below/x y"));
    }

    #[test]
    fn a_dirty_parent() {
        let outside = prepared();
        outside.project.write("mine.txt", "mine\n");
        comes_home(&outside, outside.project.path());
        assert_eq!(outside.project.read("mine.txt"), "mine\n");
    }

    #[test]
    fn a_linked_worktree() {
        let outside = prepared();
        let linked = tempfile::tempdir().unwrap();
        let at = linked.path().join("linked ü");
        outside.project.git(&["worktree", "add", "--quiet", "-b", "side", at.to_str().unwrap()]);
        fs::copy(outside.project.path().join("script.json"), at.join("script.json")).unwrap();
        comes_home(&outside, &at);
    }

    #[test]
    fn a_submodule_and_pointers_of_lfs() {
        let outside = prepared();
        let other = tempfile::tempdir().unwrap();
        let path = other.path().to_str().unwrap();
        let git = |args: &[&str]| outside.project.git(args);
        git(&["init", "--quiet", path]);
        git(&[
            "-C",
            path,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "x",
        ]);
        git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", path, "sub"]);
        outside.project.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        outside
            .project
            .write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "more"]);
        comes_home(&outside, outside.project.path());
        assert!(outside.project.read("big.bin").starts_with("version "), "pointers stay pointers");
        assert!(outside.project.path().join("sub/.git").exists());
    }
}
