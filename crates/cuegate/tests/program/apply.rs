//! `apply`: the changes of a worktree run come into the working tree.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

/// A project with files, and a worktree run that changes some of them.
fn worked(commands: &[&str]) -> Project {
    let project = small().project(json!([
        says_with("work", "handoff", json!({ "runs": commands })),
        says("close", "closing")
    ]));
    project.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.write("b.txt", "b\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "files"]);
    let ran = project.run(&begin(&["--worktree"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ending = ran.stderr.split("done:").nth(1).unwrap();
    let (take, discard) = (ending.find("take  ").unwrap(), ending.find("discard  ").unwrap());
    assert!(take < discard, "how to take the work comes first: {ending}");
    project
}

fn apply(project: &Project, args: &[&str]) -> Ran {
    project.run(&[&["apply"], args].concat())
}

#[test]
fn changes_are_merged_with_those_of_the_working_tree() {
    let project = worked(&[
        "sed -i s/9/nine/ a.txt",
        "rm b.txt",
        "mkdir -p 'new dir' && printf 'a\\0b' > 'new dir/ü.bin'",
        "printf '#!/bin/sh\\n' > run.sh && chmod +x run.sh && ln -s a.txt link",
        "git add --all && git -c user.name=a -c user.email=a@b commit --quiet --message work",
    ]);
    // Own changes of the user: staged, unstaged and untracked ones.
    project.write("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.write("staged.txt", "staged\n");
    project.git(&["add", "staged.txt"]);
    project.write("mine.txt", "mine\n");
    let (head, index) = (project.git(&["rev-parse", "HEAD"]), project.git(&["ls-files", "--stage"]));
    let files = ["a.txt", "b.txt", "link", "new dir/ü.bin", "run.sh"];
    let dry = apply(&project, &["--dry-run", "--json"]);
    assert_eq!((dry.code, &dry.json()["files"]), (0, &json!(files)), "{}", dry.stderr);
    assert!(project.path().join("b.txt").exists(), "a dry run changes nothing");
    let ran = apply(&project, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, files.map(|file| format!("{file}\n")).concat());
    assert_eq!(project.read("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert!(!project.path().join("b.txt").exists());
    assert_eq!(std::fs::read(project.path().join("new dir/ü.bin")).unwrap(), b"a\0b");
    assert!(project.path().join("run.sh").metadata().unwrap().permissions().mode() & 0o111 != 0);
    assert!(project.path().join("link").is_symlink());
    assert_eq!((project.read("mine.txt"), project.read("staged.txt")), ("mine\n".into(), "staged\n".into()));
    assert_eq!((project.git(&["rev-parse", "HEAD"]), project.git(&["ls-files", "--stage"])), (head, index));
    let again = apply(&project, &["last"]);
    assert_eq!((again.code, &*again.stdout), (0, ""), "{}", again.stderr);
    assert!(again.stderr.contains("nothing to apply"), "{}", again.stderr);
}

#[test]
fn conflicts_are_named_and_change_nothing() {
    let project = worked(&["sed -i s/5/five/ a.txt", "rm b.txt", "echo new > c.txt"]);
    project.write("a.txt", "1\n2\n3\n4\nFIVE\n6\n7\n8\n9\n");
    project.write("b.txt", "changed\n");
    let ran = apply(&project, &["--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let result: Value = ran.json();
    assert_eq!((&result["applied"], &result["conflicts"]), (&json!(false), &json!(["a.txt", "b.txt"])));
    assert!(ran.stderr.contains("conflict with this working tree in `a.txt`, `b.txt`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("| git apply --3way` marks the conflicts"), "{}", ran.stderr);
    assert_eq!((project.read("b.txt").as_str(), project.path().join("c.txt").exists()), ("changed\n", false));
    project.git(&["checkout", "--quiet", "a.txt", "b.txt"]);
    assert_eq!(apply(&project, &[]).code, 0);
    assert_eq!(project.read("c.txt"), "new\n");
}

#[test]
fn a_run_that_worked_here_has_nothing_to_apply() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.run(&begin(&[])).code, 0);
    let ran = apply(&project, &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("its changes are already here"), "{}", ran.stderr);
}
