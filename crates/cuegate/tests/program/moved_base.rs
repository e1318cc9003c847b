//! The branch that a run's work is for goes on while the run works, or since the last fetch.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{Project, Ran};

const WORKFLOW: &str = "\
name: it
max_steps: 4
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    quality_gates:
      - { command: \"test -f work.txt && test ! -f broken.txt && cat *.txt > seen.log\" }
    rules:
      - { condition: Done, next: COMPLETE }
";

/// A project whose agent runs a command, with a bare remote `origin`, and a clone of a colleague.
struct Team {
    project: Project,
    place: tempfile::TempDir,
}

fn git(at: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=C", "-c", "user.email=c@localhost"])
        .args(args)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Team {
    fn new(settings: &str, does: &str) -> Team {
        let project = Project::empty();
        project.write(".takt/workflows/it.yaml", WORKFLOW);
        project.write(".gitignore", "/script.json\n/seen.log\n/.cuegate\n");
        project.write("base.txt", "base\n");
        project.write("cuegate.toml", settings);
        project.init();
        let place = tempfile::tempdir().unwrap();
        let team = Team { project, place };
        git(team.place.path(), &["init", "--quiet", "--bare", "--initial-branch", "main", "hub"]);
        team.project.git(&["remote", "add", "origin", &team.hub()]);
        team.project.git(&["push", "--quiet", "--set-upstream", "origin", "main"]);
        git(team.place.path(), &["clone", "--quiet", "hub", "colleague"]);
        team.script(does);
        team
    }

    fn script(&self, does: &str) {
        let answer = json!({"step": "work", "output": {"outcome": "Done", "response": "Did."}, "runs": [does], "times": 0});
        self.project.write("script.json", &json!({ "answers": [answer] }).to_string());
    }

    fn hub(&self) -> String {
        self.place.path().join("hub").display().to_string()
    }

    fn on_hub(&self, args: &[&str]) -> String {
        git(&self.place.path().join("hub"), args)
    }

    /// A colleague pushes a file to a branch.
    fn colleague_pushes(&self, branch: &str, file: &str, text: &str) {
        let at = self.place.path().join("colleague");
        git(&at, &["checkout", "--quiet", "-B", branch, "origin/main"]);
        fs::write(at.join(file), text).unwrap();
        git(&at, &["add", "--all"]);
        git(&at, &["commit", "--quiet", "--message", file]);
        git(&at, &["push", "--quiet", "origin", branch]);
        git(&at, &["fetch", "--quiet"]);
    }

    fn go(&self, more: &[&str]) -> Ran {
        self.project.run(&[&["run", "it", "Do it", "--script", "script.json", "--worktree"], more].concat())
    }

    fn place_of_run(&self) -> Value {
        self.project.status()["place"].clone()
    }

    fn branch(&self) -> String {
        self.place_of_run()["branch"].as_str().unwrap().to_owned()
    }

    fn files_on_hub(&self, branch: &str) -> Vec<String> {
        let listed = self.on_hub(&["ls-tree", "--name-only", branch]);
        listed.lines().filter(|name| name.ends_with(".txt")).map(str::to_owned).collect()
    }
}

#[test]
fn a_base_that_went_on_is_told_and_the_work_is_pushed_as_it_was_tested() {
    let team = Team::new("", "echo w > work.txt");
    team.colleague_pushes("other", "other.txt", "o\n");
    team.colleague_pushes("main", "theirs.txt", "t\n");
    let known = team.project.git(&["rev-parse", "origin/main"]);
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("`main` of `origin` has 1 commit that are not here"), "{}", ran.stderr);
    let branch = team.branch();
    assert!(
        ran.stderr.contains(&format!(
            "pushed `{branch}` to `origin`; `main` of `origin` went on by a commit meanwhile"
        )),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("lacks") && !ran.stderr.contains("does not have"), "{}", ran.stderr);
    assert_eq!(team.on_hub(&["rev-parse", &branch]), team.project.git(&["rev-parse", &branch]));
    assert_eq!(team.project.git(&["rev-parse", "origin/main"]), known, "no reference of the user moves");
    assert!(!team.project.path().join(".git/FETCH_HEAD").exists());
}

#[test]
fn a_base_that_went_on_is_merged_if_the_gates_pass_on_both() {
    let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt");
    team.colleague_pushes("main", "theirs.txt", "t\n");
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let branch = team.branch();
    assert!(
        ran.stderr.contains("with a commit of `main` of `origin` merged into it; its gates pass so: `"),
        "{}",
        ran.stderr
    );
    assert_eq!(team.files_on_hub(&branch), ["base.txt", "theirs.txt", "work.txt"]);
    // The worktree and its branch are the work alone.
    let work = team.place_of_run()["work"].as_str().unwrap().to_owned();
    assert!(!Path::new(&work).join("theirs.txt").exists());
    assert_eq!(fs::read_to_string(Path::new(&work).join("seen.log")).unwrap(), "base\nt\nw\n");
    assert_eq!(git(Path::new(&work), &["status", "--porcelain"]), "");
    let shown = team.project.run(&["diff", "--stat"]);
    assert!(shown.stdout.contains("work.txt") && !shown.stdout.contains("theirs.txt"), "{}", shown.stdout);
    // What comes later is added to it.
    let pushed = team.on_hub(&["rev-parse", &branch]);
    team.colleague_pushes("main", "more.txt", "m\n");
    team.script("echo w2 > work.txt");
    let ran = team.project.run(&["instruct", "last", "More", "--script", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.files_on_hub(&branch), ["base.txt", "more.txt", "theirs.txt", "work.txt"]);
    assert_eq!(team.on_hub(&["merge-base", pushed.trim(), &branch]), pushed);
}

#[test]
fn nothing_is_pushed_whose_gates_fail_with_the_new_base() {
    let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt");
    team.colleague_pushes("main", "broken.txt", "b\n");
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("fails on the work, with a commit of `main` of `origin` merged into it: exit 1; nothing was pushed"),
        "{}",
        ran.stderr
    );
    let branch = team.branch();
    assert_eq!(team.on_hub(&["branch", "--list", &branch]), "");
    let work = team.place_of_run()["work"].as_str().unwrap().to_owned();
    assert!(!Path::new(&work).join("broken.txt").exists());
    // The base is mended.
    let at = team.place.path().join("colleague");
    git(&at, &["rm", "--quiet", "broken.txt"]);
    git(&at, &["commit", "--quiet", "--message", "mend"]);
    git(&at, &["push", "--quiet", "origin", "main"]);
    assert_eq!(team.project.run(&["retry"]).code, 0);
    assert_eq!(team.files_on_hub(&branch), ["base.txt", "work.txt"]);
}

#[test]
fn a_conflict_with_the_new_base_is_named() {
    let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt");
    team.colleague_pushes("main", "work.txt", "theirs\n");
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("conflict with `main` of `origin` in work.txt"), "{}", ran.stderr);
    assert_eq!(team.on_hub(&["branch", "--list", "cuegate/*"]), "");
}

#[test]
fn a_merge_into_a_base_that_went_on_waits_for_the_gates() {
    for (file, code) in [("theirs.txt", 0), ("broken.txt", 1)] {
        let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt; sleep 3");
        let job =
            team.project.job(&["run", "it", "Do it", "--script", "script.json", "--worktree", "--merge"]);
        let _agent = team.project.at_work("sleep 3");
        team.project.write(file, "x\n");
        team.project.git(&["add", file]);
        team.project.git(&["commit", "--quiet", "--message", "meanwhile"]);
        let ran = job.end();
        assert_eq!(ran.code, code, "{file} {}", ran.stderr);
        assert_eq!(team.project.path().join("work.txt").exists(), code == 0);
        let said = match code {
            0 => "merged into `main`, which went on by a commit meanwhile; its gates pass so: `",
            _ => "fails on the work, with a commit of `main` merged into it: exit 1; `main` was not moved",
        };
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn work_without_commits_of_the_user_is_pushed_only_if_the_gates_pass_on_it() {
    // The gate needs a file that only the user has.
    let team = Team::new("", "echo w > other.txt");
    team.project.write("work.txt", "mine\n");
    team.project.git(&["add", "work.txt"]);
    team.project.git(&["commit", "--quiet", "--message", "mine"]);
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains(
            "fails on the work, without a commit of yours that `origin` does not have: exit 1; nothing was pushed"
        ),
        "{}",
        ran.stderr
    );
    // An older branch of the remote is no base.
    let team = Team::new("", "echo w > work.txt");
    team.project.git(&["branch", "aaa"]);
    team.project.git(&["push", "--quiet", "origin", "aaa"]);
    team.colleague_pushes("main", "theirs.txt", "t\n");
    team.project.git(&["pull", "--quiet", "--ff-only"]);
    team.project.write("mine.txt", "mine\n");
    team.project.git(&["add", "mine.txt"]);
    team.project.git(&["commit", "--quiet", "--message", "mine"]);
    team.colleague_pushes("main", "later.txt", "l\n");
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.files_on_hub(&team.branch()), ["base.txt", "theirs.txt", "work.txt"]);
}

#[test]
fn a_kill_while_the_gates_run_again_loses_nothing() {
    let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt");
    let slow = WORKFLOW.replace("cat *.txt", "if test -f theirs.txt; then sleep 4; fi; cat *.txt");
    team.project.write(".takt/workflows/it.yaml", &slow);
    team.project.git(&["commit", "--quiet", "--all", "--message", "slow"]);
    team.project.git(&["push", "--quiet", "origin", "main"]);
    git(&team.place.path().join("colleague"), &["fetch", "--quiet"]);
    team.colleague_pushes("main", "theirs.txt", "t\n");
    let job = team.project.job(&["run", "it", "Do it", "--script", "script.json", "--worktree", "--push"]);
    let _gate = team.project.at_work("sleep 4");
    job.signal(rustix::process::Signal::KILL);
    drop(job);
    team.project.kill_all();
    team.project.all_gone();
    let ran = team.project.run(&["resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(team.files_on_hub(&team.branch()), ["base.txt", "theirs.txt", "work.txt"]);
    let work = team.place_of_run()["work"].as_str().unwrap().to_owned();
    assert_eq!(git(Path::new(&work), &["status", "--porcelain"]), "");
    assert!(!Path::new(&work).join("theirs.txt").exists());
}

#[test]
fn what_somebody_commits_while_the_gates_run_again_stays() {
    let team = Team::new("", "echo w > work.txt; sleep 3");
    let slow = WORKFLOW.replace("cat *.txt", "if test -f theirs.txt; then sleep 5; fi; cat *.txt");
    team.project.write(".takt/workflows/it.yaml", &slow);
    team.project.git(&["commit", "--quiet", "--all", "--message", "slow"]);
    let job = team.project.job(&["run", "it", "Do it", "--script", "script.json", "--worktree", "--merge"]);
    let _agent = team.project.at_work("sleep 3");
    let commit = |file: &str| {
        team.project.write(file, "x\n");
        team.project.git(&["add", file]);
        team.project.git(&["commit", "--quiet", "--message", file]);
    };
    commit("theirs.txt");
    let _gate = team.project.at_work("sleep 5");
    commit("second.txt");
    let ran = job.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let files = team.project.git(&["ls-files"]);
    for file in ["theirs.txt", "second.txt", "work.txt"] {
        assert!(files.contains(file), "{files}\n{}", ran.stderr);
    }
}

#[test]
fn what_a_person_merged_by_hand_is_tested_before_it_is_pushed() {
    let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt");
    team.colleague_pushes("main", "work.txt", "theirs\n");
    assert_eq!(team.go(&["--push"]).code, 1);
    let work = team.place_of_run()["work"].as_str().unwrap().to_owned();
    let at = Path::new(&work);
    git(at, &["fetch", "--quiet", "origin"]);
    git(at, &["merge", "--quiet", "--strategy-option", "ours", "origin/main"]);
    fs::write(at.join("broken.txt"), "b\n").unwrap();
    let ran = team.project.run(&["retry"]);
    assert!(
        ran.code == 1 && ran.stderr.contains("fails on the work: exit 1; nothing was pushed"),
        "{}",
        ran.stderr
    );
    fs::remove_file(at.join("broken.txt")).unwrap();
    fs::write(at.join("more.txt"), "m\n").unwrap();
    let ran = team.project.run(&["retry"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("its gates pass so"), "{}", ran.stderr);
}

#[test]
fn files_that_git_ignores_outlive_the_gates_that_run_again() {
    let team = Team::new("", "echo w > work.txt; echo k > kept.env");
    team.project.write(".gitignore", "/script.json\n/seen.log\n/.cuegate\n*.env\n");
    team.project.git(&["commit", "--quiet", "--all", "--message", "ignore"]);
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("without a commit of yours"), "{}", ran.stderr);
    let work = team.place_of_run()["work"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(Path::new(&work).join("kept.env")).unwrap(), "k\n");
}

#[test]
fn a_cancelled_proof_leaves_no_files_of_others() {
    let team = Team::new("[finalize]\nbase_moved = \"update\"\n", "echo w > work.txt");
    let slow = WORKFLOW.replace("cat *.txt", "if test -f theirs.txt; then sleep 4; fi; cat *.txt");
    team.project.write(".takt/workflows/it.yaml", &slow);
    team.project.git(&["commit", "--quiet", "--all", "--message", "slow"]);
    team.project.git(&["push", "--quiet", "origin", "main"]);
    git(&team.place.path().join("colleague"), &["fetch", "--quiet"]);
    team.colleague_pushes("main", "theirs.txt", "t\n");
    let job = team.project.job(&["run", "it", "Do it", "--script", "script.json", "--worktree", "--push"]);
    let _gate = team.project.at_work("sleep 4");
    drop(job);
    team.project.kill_all();
    team.project.all_gone();
    assert_eq!(team.project.run(&["cancel", "last"]).code, 0);
    let work = team.place_of_run()["work"].as_str().unwrap().to_owned();
    assert!(!Path::new(&work).join("theirs.txt").exists());
    let shown = team.project.run(&["diff", "--stat"]);
    assert!(!shown.stdout.contains("theirs.txt"), "{}", shown.stdout);
}

#[test]
fn a_clone_without_branches_asks_the_remote_before_it_judges() {
    let team = Team::new("", "echo w > work.txt");
    let commit = team.project.git(&["rev-parse", "HEAD"]);
    team.project.git(&["remote", "remove", "origin"]);
    team.project.git(&["remote", "add", "origin", &team.hub()]);
    team.project.git(&["checkout", "--quiet", "--detach", commit.trim()]);
    team.project.git(&["branch", "--quiet", "-D", "main"]);
    team.colleague_pushes("main", "theirs.txt", "t\n");
    let ran = team.go(&["--push"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("does not have"), "{}", ran.stderr);
}

/// A step without a gate changes what the last gate has seen: the gate runs once more before anything is published, and a
/// run that publishes nothing says that it is not proved.
#[test]
fn what_changed_after_the_last_gate_is_tested_before_it_is_published() {
    let polishes = |does: &str| {
        let team = Team::new("", "touch work.txt");
        let polish = "    rules:\n      - { condition: Done, next: polish }\n  - name: polish\n    edit: true\n    \
                      instruction: Polish.\n    rules:\n      - { condition: Done, next: COMPLETE }\n";
        let (before, _) = WORKFLOW.split_once("    rules:").unwrap();
        team.project.write(".takt/workflows/it.yaml", &format!("{before}{polish}"));
        team.project.git(&["commit", "--quiet", "--all", "--message", "polish"]);
        let answer = |step: &str, does: &str| json!({"step": step, "output": {"outcome": "Done", "response": "Did."}, "runs": [does], "times": 0});
        let answers = [answer("work", "touch work.txt"), answer("polish", does)];
        team.project.write("script.json", &json!({ "answers": answers }).to_string());
        team
    };
    let start = ["run", "it", "t", "--script", "script.json", "--worktree"];
    let team = polishes("touch broken.txt");
    let ran = team.project.run(&start);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = team.project.status();
    let unproved = "files changed after the last command passed";
    assert_eq!((&status["proved"], &status["unproved"]), (&json!(false), &json!(unproved)), "{}", ran.stderr);
    assert!(ran.stderr.contains("passes, before the last changes"), "{}", ran.stderr);
    let ran = team.project.run(&[&start[..], &["--merge"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("`main` was not moved"), "{}", ran.stderr);
    assert!(!team.project.git(&["ls-tree", "--name-only", "main"]).contains("broken.txt"));

    // Two steps may have the same gate: it is one command, and decides as well.
    let team = polishes("touch broken.txt");
    let text = team.project.read(".takt/workflows/it.yaml");
    let (before, polish) = text.split_once("  - name: polish").unwrap();
    let (head, work) = before.split_once("  - name: work").unwrap();
    let again = work.replace("next: polish", "next: again");
    let third = format!("{head}  - name: work{again}  - name: again{work}  - name: polish{polish}");
    team.project.write(".takt/workflows/it.yaml", &third);
    team.project.git(&["commit", "--quiet", "--all", "--message", "again"]);
    let mut script: Value = serde_json::from_str(&team.project.read("script.json")).unwrap();
    let mut answer = script["answers"][0].clone();
    answer["step"] = json!("again");
    script["answers"].as_array_mut().unwrap().push(answer);
    team.project.write("script.json", &script.to_string());
    let ran = team.project.run(&[&start[..], &["--merge"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("`main` was not moved"), "{}", ran.stderr);

    let team = polishes("touch polished.txt");
    let ran = team.project.run(&[&start[..], &["--merge"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("its gates pass so"), "{}", ran.stderr);
    assert_eq!(team.project.status()["proved"], true);
}
