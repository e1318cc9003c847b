//! `replay`: recorded runs, decided again as they were and through edited workflows.

use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

const WORKFLOW: &str = "\
name: it
max_steps: 6
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
      - { condition: Enough, next: check }
      - { condition: Not enough, next: work }
  - name: check
    edit: false
    instruction: Check.
    rules:
      - { condition: Good, next: COMPLETE }
      - { condition: Bad, next: work }
";

/// A project with a run that visited `work`, `more` and `check`.
fn recorded() -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(".gitignore", "/script.json\n");
    project.init();
    project.write(
        "script.json",
        &json!({"answers": [
            {"step": "work", "output": {"outcome": "More to do", "response": "Half."}, "writes": [{"path": "half.txt", "content": "half\n"}]},
            {"step": "more", "output": {"outcome": "Enough", "response": "All."}, "writes": [{"path": "half.txt", "content": "all\n"}, {"path": "new.txt", "content": "1\n"}]},
            {"step": "check", "output": {"outcome": "Good", "response": "Good."}}
        ]})
        .to_string(),
    );
    let ran = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    project
}

/// The run as it would go in an edited workflow.
fn edited(project: &Project, from: &str, to: &str, more: &[&str]) -> Ran {
    assert!(WORKFLOW.contains(from), "{from}");
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace(from, to));
    let ran = project.run(&[&["replay", "--flow", "it"], more].concat());
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    ran
}

#[test]
fn a_run_decides_as_recorded() {
    let project = recorded();
    let run = project.status()["run"].as_str().unwrap().to_owned();
    let ran = project.run(&["replay"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let decisions = project.log().last().unwrap()["seq"].as_u64().unwrap() + 1;
    assert_eq!(ran.stdout, format!("run {run}: identical, {decisions} decisions\n"));
    let all = project.run(&["replay", "--all", "--since", "1h", "--json"]);
    let rows = all.json()["runs"].clone();
    assert_eq!((&rows[0]["run"], &rows[0]["same"]), (&json!(run), &json!(true)), "{rows}");
    assert_eq!(project.runs(), 1, "nothing was written");
    let none = project.run(&["replay", "--all", "--flow", "minimal"]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{}", none.stderr);
}

#[test]
fn an_edited_edge_leads_elsewhere() {
    let project = recorded();
    let same = project.run(&["replay", "--flow", "it"]);
    assert_eq!(same.code, 0, "{}", same.stdout);
    assert!(same.stdout.contains("the same path to its end, completed (3 of 3 recorded results used)"));
    let ran =
        edited(&project, "{ condition: Enough, next: check }", "{ condition: Enough, next: COMPLETE }", &[]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains(": takes another path (2 of 3 recorded results used)\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  recorded  more #1: Enough → check\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  now       more #1: Enough → done\n"), "{}", ran.stdout);
    // Another way needs a call that nobody made.
    let ran = edited(&project, "{ condition: Good, next: COMPLETE }", "{ condition: Good, next: work }", &[]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("  now       check #1: Good → work\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("  ends at   the call of visit 2 of `work`: the recording has no result of it\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("  to know   at most "), "{}", ran.stdout);
}

#[test]
fn an_edited_prompt_is_another_question() {
    let project = recorded();
    let ran = edited(&project, "instruction: More.", "instruction: More of it.", &["--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let row = ran.json()["runs"][0].clone();
    assert_eq!(
        (&row["needs"], &row["other"], &row["results_used"]),
        (
            &json!({"step": "more", "visit": 1, "call": true, "why": "its prompt differs"}),
            &json!(null),
            &json!(1)
        ),
        "{row}"
    );
    assert!(row["rest"]["calls_max"].as_u64() >= Some(5), "{row}");
    let ran = edited(&project, "instruction: More.", "instruction: More of it.", &["--same-answers"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("used      though the prompt of visit 1 of `more` differs"),
        "{}",
        ran.stdout
    );
    let wrong = edited(&project, "initial_step: work", "initial_step: wrok", &[]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("`it` has errors"), "{}", wrong.stderr);
}

#[test]
fn a_visit_can_be_seen_and_restored() {
    let project = recorded();
    let diff = |at: &str| project.run(&["diff", "last", "--at", at]);
    assert!(diff("work").stdout.contains("+half"), "{}", diff("work").stdout);
    assert!(
        diff("more#1").stdout.contains("-half\n+all"),
        "only what this visit changed: {}",
        diff("more#1").stdout
    );
    assert_eq!(diff("check").stderr, "visit 1 of `check` changed nothing\n");
    for (at, why) in [
        ("wrok", "did you mean `work`?"),
        ("work#2", "the last one is `work#1`"),
        ("work#x", "write STEP, STEP#VISIT or the number of a record"),
        ("999", "its records are 0 to"),
    ] {
        let ran = diff(at);
        assert_eq!(ran.code, 2, "{at}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{at}: {}", ran.stderr);
    }
    project.write("mine.txt", "mine\n");
    let listed = project.run(&["restore", "last", "--at", "work", "half.txt", "--dry-run"]);
    assert_eq!(listed.stdout, "half.txt\n", "{}", listed.stderr);
    assert_eq!(project.read("half.txt"), "all\n");
    let ran = project.run(&["restore", "last", "--at", "work", "half.txt"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!((project.read("half.txt"), project.read("new.txt")), ("half\n".into(), "1\n".into()));
    assert!(
        ran.stderr.contains("1 file as after visit 1 of `work`; nothing was committed"),
        "{}",
        ran.stderr
    );
    // Without paths, all files that the run changed later; the command that is printed brings them back.
    let ran = project.run(&["restore", "last", "--at", "work", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["files"], json!(["new.txt"]));
    assert!(!project.path().join("new.txt").exists());
    assert_eq!(project.read("mine.txt"), "mine\n", "the run never touched it");
    let before = ran.json()["before"].as_str().unwrap().to_owned();
    project.git(&["restore", "--source", &before, "--", "new.txt"]);
    assert_eq!(project.read("new.txt"), "1\n");
    // Forth and back.
    std::fs::remove_file(project.path().join("new.txt")).unwrap();
    let ran = project.run(&["restore", "last", "--at", "more"]);
    assert_eq!(ran.stdout, "half.txt\nnew.txt\n", "{}", ran.stderr);
    assert_eq!(project.read("half.txt"), "all\n");
    assert!(ran.stderr.contains("left    not known to be changed by the run, and other than then: mine.txt"));
    assert_eq!(project.run(&["restore", "last", "--at", "work"]).code, 0);
    assert_eq!(project.read("half.txt"), "half\n");
    let none = project.run(&["restore", "last", "--at", "work", "nosuch"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
    // A folder may hold what git ignores.
    std::fs::remove_file(project.path().join("half.txt")).unwrap();
    project.write("half.txt/script.json", "ignored");
    let folder = project.run(&["restore", "last", "--at", "more"]);
    assert_eq!(folder.code, 2, "{}", folder.stderr);
    assert!(folder.stderr.contains("`half.txt` was a file then, and is a folder now"), "{}", folder.stderr);
    assert!(project.path().join("half.txt/script.json").exists() && !project.path().join("new.txt").exists());
}

#[test]
fn what_a_person_changes_while_a_run_waits_is_none_of_its_visits() {
    let project = Project::empty();
    let asks = WORKFLOW.replace(
        "{ condition: Enough, next: check }",
        "{ condition: Enough, next: check, requires_user_input: true }",
    );
    project.write(".takt/workflows/it.yaml", &asks);
    project.write(".gitignore", "/script.json\n");
    project.write("theirs.txt", "before\n");
    project.init();
    let answer =
        |step: &str, outcome: &str| json!({"step": step, "output": {"outcome": outcome, "response": "x"}});
    let mut writes = answer("more", "Enough");
    writes["writes"] = json!([{"path": "own.txt", "content": "own\n"}]);
    let answers = json!({"answers": [answer("work", "More to do"), writes, answer("check", "Good")]});
    project.write("script.json", &answers.to_string());
    let ran = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    project.write("theirs.txt", "after\n");
    project.write("new.txt", "theirs\n");
    project.write(".takt/workflows/it.yaml", &asks.replace("Check.", "Check more."));
    let ran = project.run(&["answer", "last", "go on"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("changed since the run started: prompt of `check`"), "{}", ran.stderr);
    assert_eq!(project.run(&["diff", "last", "--at", "check", "--stat"]).stdout, "");
    let ran = project.run(&["restore", "last", "--at", "work"]);
    assert_eq!(ran.stdout, "own.txt\n", "{}", ran.stderr);
    assert_eq!((project.read("theirs.txt"), project.read("new.txt")), ("after\n".into(), "theirs\n".into()));
}

#[test]
fn a_run_says_why_it_is_where_it_is() {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(".gitignore", "/script.json\n");
    project.init();
    let again = json!({"step": "work", "output": {"outcome": "More to do", "response": "Half."}, "times": 0});
    let back = json!({"step": "more", "output": {"outcome": "Not enough", "response": "No."}, "times": 0});
    project.write("script.json", &json!({"answers": [again, back]}).to_string());
    let ran = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    assert_eq!(project.status()["repeats"], json!({"step": "more", "times": 3}));
    let why = project.run(&["why"]);
    assert_eq!(why.code, 0, "{}", why.stderr);
    for line in [
        "it  run ".to_owned() + &run,
        "led here    work #1: More to do → more".to_owned(),
        "            more #3: Not enough → stopped at a limit".to_owned(),
        "repeats     the last 3 visits of `more` gave the same answer, and none of them changed a file"
            .to_owned(),
        "limit       iteration 6 of at most 6".to_owned(),
        format!("look at     cuegate log {run}"),
        format!("continue    cuegate resume {run} --max-iterations 12"),
    ] {
        assert!(why.stdout.lines().any(|said| said == line), "{line}\n{}", why.stdout);
    }
    let json = project.run(&["why", "--json"]).json();
    assert_eq!(
        (&json["schema"], &json["limit"]),
        (&json!("cuegate/why/v1"), &json!(["iteration 6 of at most 6"]))
    );
    assert_eq!(project.run(&["replay"]).code, 0);
}

#[test]
fn a_resumed_run_says_what_was_edited_and_adopts_it_if_told() {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(".gitignore", "/script.json\n");
    project.init();
    let answer =
        |step: &str, outcome: &str| json!({"step": step, "output": {"outcome": outcome, "response": "x"}});
    project.write("script.json", &json!({"answers": [answer("work", "More to do")]}).to_string());
    let ran = project.run(&["run", "it", "Do it", "--script", "script.json"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let edit = |from: &str, to: &str| {
        assert!(WORKFLOW.contains(from), "{from}");
        project.write(".takt/workflows/it.yaml", &WORKFLOW.replace(from, to));
    };
    let resume = |more: &[&str]| project.run(&[&["resume", "last"], more].concat());
    edit("instruction: Check.", "instruction: Check all of it.");
    let told = resume(&[]);
    assert_eq!(told.code, 4, "{}", told.stderr);
    let note = "note: `.takt/workflows/it.yaml` changed since the run started: prompt of `check`. The run keeps the workflow \
                that it started with; `cuegate resume";
    assert!(told.stderr.contains(note), "{}", told.stderr);
    // The run is at `more`, which must be there.
    edit("name: more", "name: most");
    let gone = project.run(&["resume", "last", "--flow", "it"]);
    assert_eq!(gone.code, 2, "{}", gone.stderr);
    edit("next: more }", "next: most }");
    project.write(
        ".takt/workflows/it.yaml",
        &WORKFLOW.replace("name: more", "name: most").replace("next: more }", "next: most }"),
    );
    let gone = resume(&["--flow", "it"]);
    assert_eq!(gone.code, 2, "{}", gone.stderr);
    assert!(gone.stderr.contains("has no step `more`, at which the run is"), "{}", gone.stderr);
    // `check` has another prompt, and leads elsewhere.
    project.write(
        ".takt/workflows/it.yaml",
        &WORKFLOW.replace("Check.", "Check all of it.").replace("Good, next: COMPLETE", "Good, next: ABORT"),
    );
    project.write(
        "script.json",
        &json!({"answers": [answer("more", "Enough"), answer("check", "Good")]}).to_string(),
    );
    let adopted = resume(&["--flow", "it", "--script", "script.json"]);
    assert_eq!(adopted.code, 1, "{}", adopted.stderr);
    assert!(
        adopted.stderr.contains("resumed, with scripted, with the edited workflow `it`"),
        "{}",
        adopted.stderr
    );
    assert!(!adopted.stderr.contains("changed since"), "{}", adopted.stderr);
    assert_eq!(project.status()["state"], "aborted");
    assert!(project.prompts().iter().any(|prompt| prompt.contains("Check all of it.")));
    let replayed = project.run(&["replay"]);
    assert!(
        replayed.code == 0 && replayed.stdout.contains("identical"),
        "{}{}",
        replayed.stdout,
        replayed.stderr
    );
    let same = project.run(&["replay", "--flow", "it"]);
    assert!(same.stdout.contains("the same path to its end, aborted"), "{}", same.stdout);
}

#[test]
fn a_run_in_a_file_is_read_elsewhere() {
    let project = recorded();
    let file = project.path().join("run.jsonl");
    let export = |more: &[&str]| project.run(&[&["export", "last", "run.jsonl"], more].concat());
    let secret = "sk-abcdefghijklmnop";
    assert_eq!(export(&[]).code, 0);
    let again = export(&[]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("replace it with `--force`"), "{}", again.stderr);
    let ran = project
        .command(&["export", "last", "run.jsonl", "--force"])
        .env("MY_API_KEY", secret)
        .output()
        .unwrap();
    assert!(ran.status.success());
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("left out"));
    // Another project, without runs.
    let elsewhere = Project::empty();
    std::fs::copy(&file, elsewhere.path().join("run.jsonl")).unwrap();
    let replayed = elsewhere.run(&["replay", "run.jsonl"]);
    assert!(
        replayed.code == 0 && replayed.stdout.contains(": identical, "),
        "{}{}",
        replayed.stdout,
        replayed.stderr
    );
    assert_eq!(elsewhere.run(&["log", "run.jsonl", "--json"]).stdout, project.run(&["log", "--json"]).stdout);
    assert_eq!(elsewhere.run(&["why", "run.jsonl"]).code, 0);
    let status = elsewhere.run(&["status", "run.jsonl", "--json"]).json();
    assert_eq!((&status["state"], &status["steps"]), (&json!("completed"), &project.status()["steps"]));
    assert!(elsewhere.run(&["report", "run.jsonl"]).stdout.contains("## Visits"));
    assert_eq!(elsewhere.runs(), 0);
    assert!(!elsewhere.read("run.jsonl").contains("fence_key"), "it is a secret of the run");
    // Any file may have the name of a run.
    std::fs::write(project.path().join("last"), [0xff, 0, 0xfe]).unwrap();
    assert_eq!(project.run(&["status", "last"]).code, 0);
    // A text with a secret is left out, and what needs it says so.
    let ran = project
        .command(&["export", "last", "run.jsonl", "--force"])
        .env("MY_API_KEY", "instruction: More.")
        .output();
    assert!(
        String::from_utf8_lossy(&ran.unwrap().stderr).contains("note: 1 text with the value of a secret")
    );
    assert!(!project.read("run.jsonl").contains("instruction: More."));
    let replayed = project.run(&["replay", "run.jsonl"]);
    assert_eq!(replayed.code, 4, "{}", replayed.stderr);
    // What is no whole run is named with its line.
    let text = std::fs::read_to_string(elsewhere.path().join("run.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    elsewhere.write("cut.jsonl", &[lines[0], lines[lines.len() - 1]].join("\n"));
    let cut = elsewhere.run(&["replay", "cut.jsonl"]);
    assert_eq!(cut.code, 2, "{}", cut.stderr);
    assert!(cut.stderr.contains("cut.jsonl`, line 2: "), "{}", cut.stderr);
    elsewhere.write("bad.jsonl", &format!("{}\n{{\"seq\": 0", lines[0]));
    assert!(elsewhere.run(&["replay", "bad.jsonl"]).stderr.contains("line 2: it is no part of a run"));
}

/// Whatever a run did, its file says the same of it as its journal: an agent that fails, repeats itself, changes and deletes
/// files, validators that fail with an output, prompts with the words of agents.
#[test]
fn a_run_and_its_file_say_the_same() {
    let mut turn = 0;
    let mut roll = |most: u64| {
        turn += 1;
        cuegate_testkit::world::roll(turn, "export") % most
    };
    for case in 0..6 {
        let mut answers = Vec::new();
        for _ in 0..1 + roll(4) {
            let file = format!("f{}.txt", roll(3));
            let command = match roll(4) {
                0 => format!("rm -f {file}"),
                1 => "true".to_owned(),
                _ => format!("echo {} >> {file}", roll(1000)),
            };
            let action = if roll(3) == 0 { "handoff" } else { "repeat" };
            answers.push(says_with("work", action, json!({"runs": [command]})));
            answers.push(says("close", "closing"));
        }
        answers.push(says("work", "handoff"));
        let gate = format!("cat f{}.txt", roll(3));
        let project = small().validator(&gate, json!({"maxAttempts": 2})).project(json!(answers));
        let place: &[&str] = if roll(2) == 0 { &["--worktree"] } else { &[] };
        let ran = project.run(&begin(&[&["--max-iterations", "8", "--no-baseline"], place].concat()));
        assert!([0, 1, 4, 5].contains(&ran.code), "{}", ran.stderr);
        let exported = project.run(&["export", "last", "run.jsonl", "--snapshots"]);
        assert_eq!(exported.code, 0, "{case}: {}", exported.stderr);
        let elsewhere = Project::empty();
        std::fs::copy(project.path().join("run.jsonl"), elsewhere.path().join("run.jsonl")).unwrap();
        for command in [&["log", "--json"][..], &["diff"], &["report"], &["why"]] {
            let here = project.run(&[&[command[0], "last"], &command[1..]].concat());
            let there = elsewhere.run(&[&[command[0], "run.jsonl"], &command[1..]].concat());
            assert_eq!(there.stdout, here.stdout, "{case}: {command:?} {}", there.stderr);
        }
        for (name, at) in [(&project, "last"), (&elsewhere, "run.jsonl")] {
            let replayed = name.run(&["replay", at]);
            assert!(
                replayed.stdout.contains(": identical, "),
                "{case}: {}{}",
                replayed.stdout,
                replayed.stderr
            );
        }
    }
}

/// Journals of earlier programs, one file `CASE.RUN.log` each. They stay as they are; new ones are added when the format
/// or the decisions of a kind of step are new.
#[test]
fn journals_of_earlier_programs_are_replayed() {
    let project = Project::empty();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let run = name.split('.').nth(1).unwrap();
        let to = project.path().join(format!(".cuegate/runs/{run}"));
        std::fs::create_dir_all(&to).unwrap();
        std::fs::copy(&path, to.join("log")).unwrap();
        cases += 1;
    }
    let ran = project.run(&["replay", "--all", "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let rows = ran.json()["runs"].as_array().unwrap().clone();
    assert_eq!((rows.len(), cases), (cases, 6));
    assert!(rows.iter().all(|row| row["same"] == true), "{rows:#?}");
}
