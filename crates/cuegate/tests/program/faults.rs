//! Faults around a run: a copied or damaged repository, huge and odd files, a process that cannot be seen.

use std::{fs, path::Path, process::Command};

use cuegate_journal::{Journal, Owner, log::LogJournal};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

/// An agent that is at work until the file `script-go` is there.
fn long() -> Project {
    small().project(json!([
        says_with("work", "handoff", json!({"runs": ["test -e script-go || sleep 60"]})),
        says("close", "closing")
    ]))
}

/// An agent that runs these commands and is done.
fn does(commands: &[&str]) -> Project {
    small()
        .project(json!([says_with("work", "handoff", json!({ "runs": commands })), says("close", "closing")]))
}

/// A project whose run was interrupted in its first ask.
fn interrupted(more: &[&str]) -> Project {
    let project = long();
    let job = project.job(&begin(more));
    project.at_work("sleep 60");
    job.signal(Signal::INT);
    assert_eq!(job.end().code, 130);
    project.all_gone();
    project
}

fn copied(project: &Project) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let status =
        Command::new("cp").arg("-a").arg(project.path().join(".")).arg(copy.path()).status().unwrap();
    assert!(status.success());
    copy
}

fn run_in(project: &Project, folder: &Path, args: &[&str]) -> Ran {
    Ran::of(project.command(args).current_dir(folder).output().unwrap())
}

#[test]
fn a_copied_project_works_on_the_copy() {
    let project = interrupted(&[]);
    let copy = copied(&project);
    fs::write(copy.path().join("script-go"), "").unwrap();
    let script =
        project.read("script.json").replace("test -e script-go", "test -e script-go && echo copy > made.txt");
    fs::write(copy.path().join("other.json"), script).unwrap();
    let ran = run_in(&project, copy.path(), &["resume", "last", "--script", "other.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(copy.path().join("made.txt").exists() && !project.path().join("made.txt").exists());
    assert_eq!(project.status()["state"], "suspended", "the original goes on waiting");
}

#[test]
fn a_run_that_was_made_elsewhere_has_no_rights_by_its_record() {
    let project = interrupted(&["--no-sandbox"]);
    project.write("script-go", "");
    let at_home = |words: &[&str]| project.run(&[&["resume", "last"], words].concat());
    // A copy in another folder, as a clone or a shared journal has it.
    let copy = copied(&project);
    let script = project.read("script.json");
    let shows_key =
        script.replace("test -e script-go", "test -e script-go && test -e /home && ls -a ~ > seen.txt; true");
    fs::write(copy.path().join("other.json"), shows_key).unwrap();
    let canary =
        tempfile::Builder::new().prefix("canary-").tempdir_in(std::env::home_dir().unwrap()).unwrap();
    let canary = canary.path().file_name().unwrap().to_string_lossy().into_owned();
    let ran = run_in(&project, copy.path(), &["resume", "last", "--script", "other.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing shows that run"), "{}", ran.stderr);
    let permission = ran.stderr.lines().find(|line| line.starts_with("permission")).unwrap();
    assert!(permission.contains("sandbox (") && !permission.contains("no sandbox"), "{permission}");
    let seen = fs::read_to_string(copy.path().join("seen.txt")).unwrap();
    assert!(!seen.contains(&canary), "{seen}");
    // Where it was made it goes on as it was started, and says so.
    let ran = at_home(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let permission = ran.stderr.lines().find(|line| line.starts_with("permission")).unwrap();
    assert!(permission.contains("no sandbox"), "{permission}");
}

#[test]
fn a_run_that_came_with_the_repository_does_not_go_on() {
    let project = interrupted(&["--no-sandbox"]);
    fs::remove_file(project.path().join(".cuegate/.gitignore")).unwrap();
    project.write(".git/info/exclude", "");
    project.git(&["add", "--force", ".cuegate/runs"]);
    project.git(&["commit", "--quiet", "--message", "a gift"]);
    for words in [&["resume", "last"][..], &["retry", "last"], &["resume", "last", "--no-sandbox"]] {
        let ran = project.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("came with the repository"), "{words:?}: {}", ran.stderr);
    }
    assert_eq!(project.run(&["log", "last"]).code, 0, "what it did is shown");
}

#[test]
fn a_folder_of_runs_that_a_repository_brings_changes_no_file() {
    let project = interrupted(&[]);
    let id = project.status()["run"].as_str().unwrap().to_owned();
    // What a killed call leaves for a worktree, as somebody made it up.
    let run = project.path().join(".cuegate/runs").join(&id);
    let _ = fs::remove_dir_all(run.join("git"));
    std::os::unix::fs::symlink("/usr", run.join("git")).unwrap();
    for folder in ["evil/objects", "evil/refs"] {
        fs::create_dir_all(project.path().join(folder)).unwrap();
    }
    project.write("evil/HEAD", "ref: refs/heads/main\n");
    for top in [".", project.path().to_str().unwrap()] {
        fs::write(run.join("git.replaced"), format!("/usr\n{top}\ngitdir: evil\n")).unwrap();
        project.run(&["doctor"]);
        project.run(&["gc"]);
        assert!(project.path().join(".git").is_dir(), "{top}");
    }
    fs::remove_file(run.join("git")).unwrap();
    // A file of ours that is a link would be written through.
    let victim = project.path().join("victim");
    fs::write(&victim, "mine\n").unwrap();
    for name in ["tree.lock", "runs/.changes", "trees"] {
        let entry = project.path().join(".cuegate").join(name);
        let aside = entry.with_file_name("aside");
        let was_there = fs::rename(&entry, &aside).is_ok();
        std::os::unix::fs::symlink(&victim, &entry).unwrap();
        let ran = project.run(&begin(&[]));
        assert_ne!(ran.code, 0, "{name}");
        assert!(ran.stderr.contains("it is a link"), "{name}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine\n", "{name}");
        fs::remove_file(&entry).unwrap();
        if was_there {
            fs::rename(&aside, &entry).unwrap();
        }
    }
    // The folder of runs behind a link.
    fs::rename(project.path().join(".cuegate/runs"), project.path().join("data")).unwrap();
    std::os::unix::fs::symlink("../data", project.path().join(".cuegate/runs")).unwrap();
    let ran = project.run(&["resume", "last"]);
    assert_ne!(ran.code, 0);
}

#[test]
fn a_copied_worktree_of_another_repository_is_refused() {
    let project = interrupted(&["--worktree"]);
    let copy = copied(&project);
    let ran = run_in(&project, copy.path(), &["resume", "last"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("belongs to another repository"), "{}", ran.stderr);
    assert!(ran.stderr.contains("git worktree repair"), "{}", ran.stderr);
}

#[test]
fn without_its_repository_a_run_is_not_resumed() {
    let project = interrupted(&[]);
    fs::rename(project.path().join(".git"), project.path().join("git-away")).unwrap();
    let ran = project.run(&["resume", "last"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("is no longer in a git repository"), "{}", ran.stderr);
    assert_eq!(project.run(&["cancel", "last"]).code, 0);
}

#[test]
fn what_git_needs_cannot_be_removed_by_a_step() {
    for (command, lost) in
        [("find .git/objects -type f | xargs rm -f", "`objects of the commit"), ("rm -rf .git", "`.git`")]
    {
        let project = does(&["echo made > made.txt", command]).outside();
        // With an index newer than the files, git does not read them again.
        let refresh = "find . -name .git -prune -o -type f -exec touch -d '1 minute ago' {} +; \
                       git update-index --refresh";
        let refreshed =
            Command::new("sh").args(["-c", refresh]).current_dir(project.path()).status().unwrap();
        assert!(refreshed.success());
        let ran = project.run(&begin(&[]));
        assert_eq!(ran.code, 1, "{command}: {}", ran.stderr);
        let status = project.status();
        let reason = status["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("`work` removed from the repository what git needs: "),
            "{command}: {reason}"
        );
        assert!(reason.contains(lost), "{command}: {reason}");
    }
    // Where it can be put back, it is.
    let project = does(&["rm -rf .git/refs/heads/main .git/packed-refs"]).outside();
    let head = project.git(&["rev-parse", "HEAD"]);
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("it was put back as far as git can: the branch `main`"), "{}", ran.stderr);
    assert_eq!(project.git(&["rev-parse", "HEAD"]), head);
}

/// In a sandbox agents have no git folder but their own.
#[test]
fn the_repository_of_the_user_stays_whole_whatever_an_agent_removes() {
    if !crate::sandbox::stands() {
        return;
    }
    for command in [
        "rm -rf .git/refs/heads/main .git/packed-refs",
        "find .git/objects -type f | xargs rm -f",
        "rm -rf .git",
    ] {
        let project = does(&["echo made > made.txt", command]);
        let head = project.git(&["rev-parse", "HEAD"]);
        let ran = project.run(&begin(&[]));
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
        assert_eq!(project.git(&["rev-parse", "HEAD"]), head);
        assert_eq!(project.git(&["status", "--porcelain", "--", "made.txt"]), "?? made.txt\n");
        project.git(&["fsck", "--strict"]);
    }
}

#[test]
fn odd_names_and_attributes_are_reported_and_do_not_stop_a_run() {
    let project = does(&[
        "mkdir 'git~1' && echo x > 'git~1/x'",
        "echo made > made.txt",
        "printf 'made.txt working-tree-encoding=UTF-16\\n' > .gitattributes",
    ]);
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note: git refuses the name `git~1/x`; snapshots leave the file out\n"),
        "{}",
        ran.stderr
    );
    let gaps = project.status()["snapshot_gaps"].to_string();
    assert!(gaps.contains("git refuses the name `git~1/x`"), "what was not recorded is recorded: {gaps}");
    assert!(project.run(&["report"]).stdout.contains("## Not in the snapshots"));
    assert!(ran.stderr.contains("a filter of `.gitattributes` fails"), "{}", ran.stderr);
    let changed = project.run(&["diff", "last", "--json"]).json()["files"].to_string();
    assert!(changed.contains("made.txt") && !changed.contains("git~1"), "{changed}");
}

#[test]
fn a_fifo_in_place_of_the_index_stops_no_command() {
    let project = interrupted(&[]);
    let index = project.path().join(".git/index");
    fs::remove_file(&index).unwrap();
    assert!(Command::new("mkfifo").arg(&index).status().unwrap().success());
    let commands: [&[&str]; 2] = [&["resume", "last"], &begin(&[])];
    for command in commands {
        let ran = project.run(command);
        assert_eq!(ran.code, 4, "{command:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("failed to read `.git/index`: it is not a regular file"),
            "{}",
            ran.stderr
        );
    }
    let ran = project.run(&["cancel", "last"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_huge_file_is_named() {
    let project = does(&["truncate -s 4T huge.img"]).outside();
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("`huge.img` has 4096 GiB"), "{}", ran.stderr);
    assert!(ran.stderr.contains("add it to `.gitignore`"), "{}", ran.stderr);
    fs::remove_file(project.path().join("huge.img")).unwrap();
    assert_eq!(project.run(&["resume", "last"]).code, 0, "the finished ask is adopted");
}

#[test]
fn a_run_of_a_vanished_container_is_taken_over() {
    let project = interrupted(&[]);
    project.write("script-go", "");
    let id = project.status()["run"].as_str().unwrap().to_owned();
    {
        let journal = LogJournal::open(project.path().join(".cuegate/runs"), Default::default()).unwrap();
        let gone = Owner { boot: "other".into(), host: "gone".into(), ..Owner::current() };
        journal.acquire(&id.parse().unwrap(), &gone).unwrap();
    }
    let refused = project.run(&["resume", "last"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let hint = format!(
        "hint: if its container or machine is gone, `cuegate resume {id} --take-over` continues the run"
    );
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    let ran = project.run(&["resume", "last", "--take-over"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("on `gone`, which cannot be seen from here"), "{}", ran.stderr);
}

#[test]
fn a_living_process_keeps_its_run() {
    let project = long();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    let refused = project.run(&["resume", "last", "--take-over"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("which lives"), "{}", refused.stderr);
    job.signal(Signal::INT);
    assert_eq!(job.end().code, 130);
}

#[test]
fn a_repeated_answer_says_that_it_is_recorded() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Which one?", "runs": ["true"]},
        says_with("work", "handoff", json!({"runs": ["test -e script-go || sleep 60"]})),
        says("close", "closing")
    ]));
    assert_eq!(project.run(&begin(&[])).code, 3);
    assert_eq!(project.run(&["answer", "last", "the first", "--no-continue"]).code, 0);
    let again = project.run(&["answer", "last", "the first"]);
    assert!(again.stderr.contains("already has an answer"), "{}", again.stderr);
    let job = project.job(&["resume", "last"]);
    project.at_work("sleep 60");
    job.signal(Signal::KILL);
    job.end();
    let again = project.run(&["answer", "last", "the first"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already has this answer"), "{}", again.stderr);
    project.write("script-go", "");
    assert_eq!(project.run(&["resume", "last"]).code, 0);
}

#[test]
fn edits_of_others_during_a_read_only_step_are_theirs() {
    if !crate::sandbox::stands() {
        return;
    }
    let registry = small().runner(json!({"boundaries": {"sandbox": {}, "permissionMode": "plan"}}));
    let project = registry.project(json!([
        says_with(
            "work",
            "handoff",
            json!({"runs": ["for i in $(seq 300); do test -e notes.txt && break; sleep 0.1; done"]})
        ),
        says("close", "closing")
    ]));
    let job = project.job(&begin(&[]));
    project.at_work("sleep 0.1");
    project.write("notes.txt", "by a person\n");
    let ran = job.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = project.run(&["log", "last"]).stdout;
    assert!(log.contains("files changed by someone else meanwhile: notes.txt"), "{log}");
    assert!(!ran.stderr.contains("undo"), "{}", ran.stderr);
    assert_eq!(project.run(&["diff", "last", "--json"]).json()["files"], json!([]));
}
