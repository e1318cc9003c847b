//! What is done with the work of a completed run in a worktree: commit, merge, push.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

/// A project whose agent changes a file, and commits another one by itself.
fn project() -> Project {
    let runs = "echo agent >> a.txt; echo own > own.txt; git add own.txt; git commit -qm own";
    let project = small()
        .project(json!([says_with("work", "handoff", json!({"runs": [runs]})), says("close", "closing")]));
    project.write("a.txt", "one\n");
    project.git(&["add", "a.txt"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message", "a"]);
    project
}

fn go(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&begin(&["--worktree"])[..], more].concat())
}

/// The subjects of the commits of a branch, newest first.
fn subjects(project: &Project, of: &str) -> Vec<String> {
    project.git(&["log", "--format=%s", of]).lines().map(str::to_owned).collect()
}

fn effects(project: &Project) -> Vec<String> {
    let status = project.status();
    let rows = status["effects"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["state"].as_str().unwrap())).collect()
}

/// A bare repository that is the remote `origin`.
fn remote(project: &Project) -> tempfile::TempDir {
    let bare = tempfile::tempdir().unwrap();
    let path = bare.path().to_str().unwrap();
    project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", path]);
    project.git(&["remote", "add", "origin", path]);
    project.git(&["push", "--quiet", "origin", "main"]);
    bare
}

#[test]
fn the_work_is_committed_and_merged() {
    let project = project();
    project.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    std::process::Command::new("chmod")
        .args(["+x", ".git/hooks/pre-commit"])
        .current_dir(project.path())
        .status()
        .unwrap();
    let ran = go(&project, &["--merge"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("\nmerge       merged into `main`\n"), "{}", ran.stderr);
    assert_eq!(project.read("a.txt"), "one\nagent\n");
    assert_eq!(
        subjects(&project, "main")[1..],
        ["a", "begin"],
        "the hook stopped only the agent's own commit"
    );
    assert_eq!(project.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    assert_eq!(effects(&project), ["git.commit done", "git.merge done"]);
    let cleaned = project.run(&["clean", "--merged"]);
    assert!(cleaned.stdout.contains("  removed"), "{}", cleaned.stdout);
    project.git(&["fsck", "--strict"]);
}

#[test]
fn a_base_that_went_on_is_merged_and_one_with_changes_is_not_moved() {
    let project = project().outside();
    let run = |more: &[&str]| go(&project, &[&["--merge"], more].concat());
    // While the run works, another commit and a local change appear.
    let at = project.path().display();
    let other = format!("cd {at} && echo x > other.txt && git add other.txt && git commit -qm other");
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"runs": ["echo agent >> a.txt", other]})),
            says("close", "closing")
        ]),
    );
    let ran = run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!((project.read("a.txt"), project.read("other.txt")), ("one\nagent\n".into(), "x\n".into()));
    assert_eq!(project.git(&["rev-list", "--merges", "--count", "main"]).trim(), "1");

    project.write("other.txt", "mine\n");
    let before = project.git(&["rev-parse", "main"]);
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"writes": [{"path": "b.txt", "content": "b\n"}]})),
            says("close", "closing")
        ]),
    );
    let ran = run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("uncommitted changes and was not moved"), "{}", ran.stderr);
    assert_eq!((project.git(&["rev-parse", "main"]), project.read("other.txt")), (before, "mine\n".into()));
    let hint = ran.stderr.split("not moved: `git ").nth(1).unwrap().split('`').next().unwrap();
    project.git(&hint.split(' ').collect::<Vec<_>>());
    assert_eq!((project.read("b.txt"), project.read("other.txt")), ("b\n".into(), "mine\n".into()));
}

#[test]
fn a_conflict_fails_the_run_and_a_retry_only_merges() {
    let project = project().outside();
    let theirs = format!("cd {} && echo theirs > a.txt && git commit -qam theirs", project.path().display());
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"runs": ["echo agent > a.txt", theirs]})),
            says("close", "closing")
        ]),
    );
    let ran = go(&project, &["--merge"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let why = "failed: the work is done, but the merge failed: conflict with `main` in a.txt";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!(
        (project.read("a.txt"), effects(&project)),
        ("theirs\n".into(), vec!["git.commit done".into(), "git.merge failed".to_owned()])
    );
    let asked = project.status()["asks"].clone();
    project.git(&["revert", "--no-edit", "HEAD"]);
    let ran = project.run(&["retry"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        (project.read("a.txt"), &project.status()["asks"]),
        ("agent\n".into(), &asked),
        "no agent was asked"
    );
    assert_eq!(project.status()["state"], "completed");
}

#[test]
fn the_result_is_pushed_and_other_commits_of_the_remote_are_kept() {
    let project = project();
    let bare = remote(&project);
    let at = bare.path().to_str().unwrap();
    let ran = go(&project, &["--merge", "--push"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("\npush        pushed `main` to `origin`\n"), "{}", ran.stderr);
    assert_eq!(project.git(&["-C", at, "rev-parse", "main"]), project.git(&["rev-parse", "main"]));

    // Somebody else pushes first.
    let other = tempfile::tempdir().unwrap();
    let clone = other.path().to_str().unwrap();
    project.git(&["clone", "--quiet", at, clone]);
    project.git(&[
        "-C",
        clone,
        "-c",
        "user.name=b",
        "-c",
        "user.email=b@c",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "first",
    ]);
    project.git(&["-C", clone, "push", "--quiet"]);
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"writes": [{"path": "b.txt", "content": "b\n"}]})),
            says("close", "closing")
        ]),
    );
    let ran = go(&project, &["--merge", "--push"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`origin` refused `main`") && ran.stderr.contains("git push origin main"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        subjects(&project, "main").len() - 1,
        project.git(&["-C", at, "rev-list", "--count", "main"]).trim().parse::<usize>().unwrap() - 1
    );
    project.git(&["pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main"]);
    let ran = project.run(&["retry"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.git(&["-C", at, "rev-parse", "main"]), project.git(&["rev-parse", "main"]));

    // Without a merge the branch of the run is pushed; a remote that is not there is named.
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"writes": [{"path": "c.txt", "content": "c\n"}]})),
            says("close", "closing")
        ]),
    );
    let ran = go(&project, &["--push=origin"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let branch = project.status()["place"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(project.git(&["-C", at, "rev-parse", &branch]), project.git(&["rev-parse", &branch]));
    let ran = go(&project, &["--push=nowhere"]);
    let refused = "there is no remote `nowhere` to push to\nhint: the remotes are origin\n";
    assert!(ran.code == 2 && ran.stderr.contains(refused), "{}", ran.stderr);
    let ran = project.run(&begin(&["--merge"]));
    assert!(ran.code == 2 && ran.stderr.contains("add `--worktree`"), "{}", ran.stderr);
}

#[test]
fn a_kill_during_the_push_neither_loses_nor_repeats_it() {
    let project = project();
    let bare = remote(&project);
    let hook = bare.path().join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho push >> pushes\ntest -e go || sleep 60\n").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
    let job = project.job(&[&begin(&["--worktree"])[..], &["--merge", "--push"]].concat());
    crate::support::until("the push", || bare.path().join("pushes").exists());
    job.signal(Signal::KILL);
    job.end();
    std::fs::write(bare.path().join("go"), "").unwrap();
    let ran = project.run(&["resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let at = bare.path().to_str().unwrap();
    assert_eq!(project.git(&["-C", at, "rev-parse", "main"]), project.git(&["rev-parse", "main"]));
    assert_eq!(project.read("a.txt"), "one\nagent\n");
    assert_eq!(effects(&project), ["git.commit done", "git.merge done", "git.push done"]);
    let log: Vec<Value> = project.events("effect_finished");
    assert_eq!(log.len(), 3);
}

#[test]
fn a_definition_merges_its_work() {
    let execution =
        |finalize: Value| json!({"execution": {"worktree": {"enabled": true}, "finalize": finalize}});
    let writes = json!([
        says_with("work", "handoff", json!({"writes": [{"path": "b.txt", "content": "b\n"}]})),
        says("close", "closing")
    ]);
    let project = small().runner(execution(json!({"autoMerge": true}))).project(writes.clone());
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.read("b.txt"), "b\n");
    let project = small().runner(execution(json!({"autoMerge": false}))).project(writes);
    assert_eq!(project.run(&begin(&[])).code, 0);
    assert!(!project.path().join("b.txt").exists());
}
