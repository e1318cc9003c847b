//! `fork`: a run that goes on from a moment of another one, with its files.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use cuegate_testkit::github::GithubStandin;
use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, at_work_in, kills, until},
};

const WORKFLOW: &str = "\
name: it
max_steps: 8
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: COMPLETE }
      - { condition: More to do, next: more }
  - name: more
    edit: true
    instruction: More.
    rules:
      - { condition: Enough, next: COMPLETE }
      - { condition: Not enough, next: work }
";

fn answer(step: &str, outcome: &str, runs: &[&str]) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": outcome}, "runs": runs,
        "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5}})
}

/// A project whose scripted agent gives these answers.
fn project(answers: &[Value]) -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(".gitignore", "/script*.json\n/.copies\n/ignored\n");
    project.write("kept.txt", "kept\n");
    project.init();
    project.write("script.json", &json!({ "answers": answers }).to_string());
    project
}

fn recorded(answers: &[Value], more: &[&str]) -> (Project, String) {
    let project = project(answers);
    let ran = project.run(&[&["run", "it", "Do it", "--script", "script.json"], more].concat());
    assert!([0, 5].contains(&ran.code), "{}", ran.stderr);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    (project, run)
}

/// The worktree of the last run.
fn worktree(project: &Project) -> PathBuf {
    PathBuf::from(project.status()["place"]["work"].as_str().unwrap())
}

fn forked(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["fork"], args, &["--json"]].concat());
    assert!([0, 3, 5].contains(&ran.code), "{args:?} {}", ran.stderr);
    ran.json()
}

fn replays(project: &Project) {
    let all = project.run(&["replay", "--all"]);
    assert_eq!(all.code, 0, "{}", all.stdout);
}

#[test]
fn a_fork_at_every_record_comes_to_an_end() {
    let project = Project::example();
    let ran = project.run(&["run", "fixer", "Make it pass.", "--script", "script.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let origin = project.status();
    let run = origin["run"].as_str().unwrap();
    let records = project.log().last().unwrap()["seq"].as_u64().unwrap();
    let (head, log) = (project.git(&["rev-parse", "HEAD"]), project.run(&["log", run, "--json"]).stdout);
    for seq in 0..records {
        let fork = forked(&project, &[run, "--at", &seq.to_string()]);
        assert_eq!((&fork["state"], &fork["iterations"]), (&origin["state"], &origin["iterations"]));
        assert_eq!(fork["fork"]["run"], run);
        assert_eq!(fork["fork"]["records"], seq + 1);
        let spent = fork["cost_usd"].as_f64().unwrap_or_default()
            + fork["fork"]["cost_usd"].as_f64().unwrap_or_default();
        assert!((spent - origin["cost_usd"].as_f64().unwrap()).abs() < 1e-6, "{seq}: {spent}");
        let made = worktree(&project);
        assert_eq!(fs::read_to_string(made.join("convert.sh")).unwrap(), project.read("convert.sh"));
    }
    let over = project.run(&["fork", run, "--at", &records.to_string()]);
    assert_eq!(over.code, 2, "{}", over.stdout);
    assert!(over.stderr.contains(&format!("`cuegate fork {run} --before closure.fix#2`")), "{}", over.stderr);
    assert_eq!(project.git(&["rev-parse", "HEAD"]), head, "nothing happened to the origin");
    assert_eq!(project.run(&["log", run, "--json"]).stdout, log);
    assert_eq!(project.runs() as u64, records + 1);
    replays(&project);
}

/// What a folder holds, except for what git ignores: kind, execute bit, and content or target.
fn manifest(folder: &Path) -> BTreeMap<String, (char, bool, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if [".git", ".cuegate", ".copies", "ignored", "script.json"].contains(&name.as_str()) {
                continue;
            }
            if kind.is_symlink() {
                let to = fs::read_link(&path).unwrap();
                found.insert(name, ('l', false, to.display().to_string().into_bytes()));
            } else if kind.is_dir() {
                folders.push(path);
            } else {
                let is_program = fs::metadata(&path).unwrap().permissions().mode() & 0o100 != 0;
                found.insert(name, ('f', is_program, fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// Shell commands that change a tree at random, and keep a copy of it.
fn random_edits(seed: u64, visit: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut lines = Vec::new();
    for _ in 0..12 {
        let (a, b) = (next(9), next(9));
        lines.push(match next(9) {
            0 | 1 => format!("mkdir -p d{a}; printf '%s' 'text {b}' > d{a}/f{b}.txt"),
            2 => format!("rm -rf d{a}"),
            3 => format!("[ -e d{a} ] && [ ! -e m{b} ] && mv d{a} m{b}"),
            4 => format!("printf '\\000\\377%s' '{a}' > 'bin {b}'; chmod +x 'bin {b}'"),
            5 => format!("rm -rf l{a}; ln -s 'no where/{b}' l{a}"),
            6 => "rm -f kept.txt".to_owned(),
            7 => format!("mkdir -p ignored; echo {a} > ignored/{b}"),
            _ => format!("[ -f 'bin {a}' ] && chmod -x 'bin {a}'"),
        });
    }
    lines.push(format!("mkdir -p .copies; tar cf .copies/{visit}.tar --exclude=.git --exclude=.copies ."));
    lines.push("true".to_owned());
    lines.join("\n")
}

#[test]
fn a_fork_has_the_files_of_its_moment() {
    for seed in 1..=4 {
        let edits: Vec<String> =
            (0..4).map(|visit| random_edits(seed * 10 + visit, visit as usize)).collect();
        let (project, run) = recorded(
            &[
                answer("work", "More to do", &[&edits[0]]),
                answer("more", "Not enough", &[&edits[1]]),
                answer("work", "More to do", &[&edits[2]]),
                answer("more", "Enough", &[&edits[3]]),
            ],
            &[],
        );
        // What a person does now changes nothing of what was.
        project.write("kept.txt", "mine\n");
        for (visit, at) in ["work#1", "more#1", "work#2"].into_iter().enumerate() {
            let fork = forked(&project, &[&run, "--at", at, "--no-continue"]);
            let copy = tempfile::tempdir().unwrap();
            let tar = project.path().join(format!(".copies/{visit}.tar"));
            let untar = Command::new("tar").arg("xf").arg(&tar).current_dir(copy.path()).status().unwrap();
            assert!(untar.success());
            let work = PathBuf::from(fork["place"]["work"].as_str().unwrap());
            assert_eq!(manifest(&work), manifest(copy.path()), "seed {seed}, {at}");
            assert!(!work.join("ignored").exists(), "what git ignores is in no snapshot");
        }
        assert_eq!(project.read("kept.txt"), "mine\n");
        replays(&project);
    }
}

#[test]
fn a_fork_of_a_fork_has_its_own_branch_and_work() {
    let (project, run) = recorded(
        &[
            answer("work", "More to do", &["echo 1 > a; git add a; git commit -qm one; echo 2 > b"]),
            answer("more", "Enough", &["echo 3 > c"]),
        ],
        &["--worktree"],
    );
    let base = project.git(&["rev-parse", "HEAD"]);
    project.write(
        "script2.json",
        &json!({"answers": [answer("more", "Not enough", &["echo 4 > c"]), answer("work", "Done", &["echo 5 > d"])]})
            .to_string(),
    );
    let first = forked(&project, &[&run, "--before", "more", "--script", "script2.json"]);
    let work = worktree(&project);
    let read = |name: &str| fs::read_to_string(work.join(name)).unwrap();
    assert_eq!(
        (read("a"), read("b"), read("c"), read("d")),
        ("1\n".into(), "2\n".into(), "4\n".into(), "5\n".into())
    );
    let id = first["run"].as_str().unwrap().to_owned();
    let log = |branch: &str| project.git(&["log", "--format=%s", &format!("cuegate/{branch}")]);
    assert!(log(&id).ends_with("one\nbegin\n"), "{}", log(&id));
    let second = forked(&project, &[&id, "--at", "more#1", "--no-continue"]);
    assert_eq!(second["fork"]["run"], id.as_str());
    assert_eq!(second["changed_files"].as_array().unwrap().len(), 3, "{}", second["changed_files"]);
    let runs = project.run(&["runs"]).stdout;
    assert!(runs.contains(&format!("fork of {id}: Do it")), "{runs}");
    assert!(runs.contains(&format!("fork of {run}: Do it")), "{runs}");
    let status = project.run(&["status", &id]).stdout;
    assert!(
        status.contains(&format!("fork of     run {run}, before visit 1 of `more` (1 visit, $0.50 there)")),
        "{status}"
    );
    // All of the work can be taken, that of the origin until then as well.
    let applied = project.run(&["apply", &id]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(
        project.read("a") + &project.read("b") + &project.read("c") + &project.read("d"),
        "1\n2\n4\n5\n"
    );
    assert_eq!(project.git(&["rev-parse", "HEAD"]), base, "a fork moves no branch of the user");
    let edited = WORKFLOW.replace("Not enough, next: work", "Not enough, next: COMPLETE");
    project.write(".takt/workflows/it.yaml", &edited);
    let replayed = project.run(&["replay", &id, "--flow", "it"]);
    assert!(replayed.stdout.contains("now       more #1: Not enough → done"), "{}", replayed.stdout);
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    let same = project.run(&["replay", &id, "--flow", "it"]);
    assert!(same.stdout.contains("the same path to its end"), "{}", same.stdout);
    replays(&project);
}

#[test]
fn a_fork_has_its_own_budget() {
    let answers = [
        answer("work", "More to do", &[]),
        answer("more", "Not enough", &[]),
        answer("work", "More to do", &[]),
        answer("more", "Enough", &[]),
    ];
    let (project, run) = recorded(&answers, &["--budget-calls", "3"]);
    assert_eq!(project.status()["exit_code"], 5);
    let fork = forked(&project, &[&run, "--at", "more#1"]);
    assert_eq!((&fork["exit_code"], &fork["spent"]["asks"]), (&json!(0), &json!(2)), "{fork}");
    assert_eq!(fork["budget"]["asks"], 3);
    // Where the origin had no budget left, its fork has.
    let fork = forked(&project, &[&run, "--at", "work#2"]);
    assert_eq!((&fork["exit_code"], &fork["spent"]["asks"]), (&json!(0), &json!(1)), "{fork}");
    let fork = forked(&project, &[&run, "--at", "work#1", "--budget-calls", "1"]);
    assert_eq!((&fork["exit_code"], &fork["spent"]["asks"]), (&json!(5), &json!(1)), "{fork}");
    replays(&project);
}

#[test]
fn a_fork_goes_on_with_an_edited_workflow_or_another_answer() {
    let (project, run) = recorded(&[answer("work", "More to do", &[]), answer("more", "Enough", &[])], &[]);
    let edited = WORKFLOW.replace("Enough, next: COMPLETE", "Enough, next: last")
        + "  - name: last\n    edit: false\n    instruction: Look.\n    rules:\n      - { condition: Good, next: COMPLETE }\n";
    project.write(".takt/workflows/it.yaml", &edited);
    project.write(
        "script2.json",
        &json!({"answers": [answer("more", "Enough", &[]), answer("last", "Good", &[])]}).to_string(),
    );
    let fork = forked(&project, &[&run, "--before", "more#1", "--flow", "it", "--script", "script2.json"]);
    assert_eq!((&fork["state"], &fork["final_step"]), (&json!("completed"), &json!("last")), "{fork}");
    let none = project.run(&["fork", &run, "--at", "more", "--answer", "Yes"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("asked nothing in visit 1 of `more`"), "{}", none.stderr);
    replays(&project);

    let asking =
        small().project(json!([{"step": "work", "asks_user": "Which one?"}, says("work", "handoff"), says("close", "closing")]));
    let ran = asking.run(&begin(&[]));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let run = asking.status()["run"].as_str().unwrap().to_owned();
    assert_eq!(asking.run(&["answer", &run, "The red one."]).code, 0);
    let fork = forked(&asking, &[&run, "--at", "work#1", "--answer", "The blue one."]);
    assert_eq!(fork["state"], "completed", "{fork}");
    assert!(asking.prompts().iter().any(|prompt| prompt.contains("The blue one.")), "{:?}", asking.prompts());
    assert!(!asking.prompts().iter().any(|prompt| prompt.contains("The red one.")));
    let waits = forked(&asking, &[&run, "--at", "1"]);
    assert_eq!(waits["state"], "suspended", "{waits}");
    replays(&asking);
}

#[test]
fn a_fork_repeats_no_effect() {
    let actions = json!({"actions": {
        "enabled": true, "types": ["issue-action"], "handlers": {"issue-action": "github:comment"}
    }});
    let block = |text: &str| json!({"text": format!("```json\n{{\"action\": \"issue-action\", \"issue\": 7, \"body\": \"{text}\"}}\n```\n")});
    let standin = GithubStandin::start("owner/name");
    standin.issue(7, "It is broken", "Mend it.", &[]);
    let issue = json!({"type": "number", "description": "Issue", "required": true, "cli": "--issue"});
    let registry = small().runner(actions).agent(json!({"parameters": {"issue": issue}}));
    let registry = registry.prompt("work", "Work on {uv-issue}: {uv-issue_content}\n");
    let project = registry.project(json!([
        says_with("work", "repeat", block("first")),
        says_with("work", "handoff", block("second")),
        says("close", "closing")
    ]));
    project.write(
        "cuegate.toml",
        &format!("[github]\napi = \"{}\"\nrepository = \"owner/name\"\n", standin.url()),
    );
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    assert_eq!(standin.comments(7).len(), 1);
    let ran = project.run(&["fork", &run, "--at", "work#1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("not repeated: issue-action ("), "{}", ran.stderr);
    let comments = standin.comments(7);
    assert_eq!(comments.len(), 2, "it has a comment of its own: {comments:?}");
    assert!(comments[1].ends_with("second") && !comments[1].contains("first"), "{comments:?}");
    let ran = project.run(&["fork", &run, "--at", "work#1", "--no-github"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(standin.comments(7), comments);
    replays(&project);
}

#[test]
fn a_fork_that_is_killed_is_whole_or_none() {
    let (project, run) = recorded(
        &[
            answer("work", "More to do", &["for i in 1 2 3 4 5 6 7 8 9; do echo $i > f$i; done"]),
            answer("more", "Enough", &[]),
        ],
        &[],
    );
    let mut made = 0;
    for kill in 0..kills(12) as u64 {
        let child = project.start(&["fork", &run, "--at", "work", "--no-continue"]);
        std::thread::sleep(std::time::Duration::from_millis(kill * 97 % 160));
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::KILL,
        );
        child.wait_with_output().unwrap();
    }
    until("no process is left", || at_work_in(project.path()).is_empty());
    let runs = project.run(&["runs", "--json"]).json();
    for row in runs["runs"].as_array().unwrap() {
        let id = row["run"].as_str().unwrap();
        if id == run {
            continue;
        }
        made += 1;
        assert_eq!(row["fork_of"], run.as_str());
        let ran = project.run(&["resume", id]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let work =
            PathBuf::from(project.run(&["status", id, "--json"]).json()["place"]["work"].as_str().unwrap());
        assert_eq!(fs::read_to_string(work.join("f9")).unwrap(), "9\n");
    }
    // The next run removes what the others left.
    let last = forked(&project, &[&run, "--at", "work"]);
    assert_eq!(last["state"], "completed");
    let worktrees = project.git(&["worktree", "list"]).lines().count();
    assert_eq!(worktrees, made + 2, "one for each fork that is recorded, and the project itself");
    replays(&project);
}

/// A fork of a run that follows another one in its worktree follows nobody.
#[test]
fn a_fork_of_a_follow_up_leaves_its_worktree_alone() {
    let (project, first) = recorded(&[answer("work", "Done", &["echo 1 > a"])], &["--worktree"]);
    let script =
        |answers: &[Value]| project.write("script2.json", &json!({ "answers": answers }).to_string());
    script(&[answer("work", "More to do", &["echo 2 > b"]), answer("more", "Enough", &["echo 3 > c"])]);
    assert_eq!(project.run(&["instruct", &first, "Go on", "--script", "script2.json"]).code, 0);
    let second = project.status()["run"].as_str().unwrap().to_owned();
    let fork = forked(&project, &[&second, "--before", "more"]);
    let fork = fork["run"].as_str().unwrap();
    let listed = project.run(&["clean"]).stdout;
    assert!(listed.contains(&second) && listed.contains(fork), "{listed}");
    let kept = project.run(&["gc", "--keep", "1", "--json"]).json();
    assert_eq!(kept["removed"], json!([]), "{kept}");
    script(&[answer("work", "Done", &["echo 4 > d"])]);
    for (after, files) in [(second.as_str(), ["a", "b", "c"]), (fork, ["a", "b", "c"])] {
        let ran = project.run(&["instruct", after, "More", "--script", "script2.json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let whole = project.run(&["diff", "last", "--whole", "--stat"]).stdout;
        for file in files.into_iter().chain(["d"]) {
            assert!(whole.lines().any(|line| line.ends_with(&format!(" {file}"))), "{after} {file}: {whole}");
        }
    }
    replays(&project);
}

#[test]
fn a_fork_merges_only_if_told() {
    let answers = [answer("work", "More to do", &["echo 1 > a"]), answer("more", "Enough", &["echo 2 > b"])];
    let (project, run) = recorded(&answers, &["--worktree", "--merge"]);
    let head = || project.git(&["rev-parse", "main"]);
    let merged = head();
    let ran = project.run(&["fork", &run, "--before", "more"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let note = format!("note: its work is not merged, as that of run {run} is; `--finalize` does that");
    assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    assert_eq!(head(), merged);
    let other = json!({"answers": [answer("more", "Enough", &["echo 3 > other"])]}).to_string();
    project.write("script2.json", &other);
    let ran = project.run(&["fork", &run, "--before", "more", "--script", "script2.json", "--finalize"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_ne!(head(), merged);
    assert_eq!(project.read("other"), "3\n");
}

#[test]
fn a_fork_that_cannot_begin_leaves_nothing() {
    let (project, run) = recorded(&[answer("work", "Done", &[])], &[]);
    for wrong in [
        &["--flow", "nosuch"][..],
        &["--provider", "nosuch"],
        &["--script", "nosuch.json"],
        &["--at", "nosuch"],
        &["--before", "work#7"],
    ] {
        let moment: &[&str] =
            if wrong[0].starts_with("--at") || wrong[0] == "--before" { &[] } else { &["--before", "work"] };
        let ran = project.run(&[&["fork", &run], moment, wrong].concat());
        assert_ne!(ran.code, 0, "{wrong:?}");
        assert!(ran.stderr.contains("error: "), "{wrong:?} {}", ran.stderr);
    }
    assert_eq!(project.runs(), 1);
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(project.git(&["branch"]).trim(), "* main");
}
