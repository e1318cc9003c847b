//! `run`, and the commands that show its result.

use std::process::{Command, Stdio};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{CUEGATE, Project, Ran, rows, tidy},
};
use insta::assert_snapshot;
use serde_json::{Value, json};

const RUN: [&str; 5] = ["run", "fixer", "The test fails. Make it pass.", "--script", "script.yaml"];

#[test]
fn the_example_as_text() {
    let project = Project::example();
    let ran = project.run(&RUN);
    assert_eq!((ran.code, &*ran.stdout), (0, ""), "{}", ran.stderr);
    assert_snapshot!(tidy(&project, &ran.stderr), @"
    run RUN: fixer
    folder      PROJECT, in place, no uncommitted changes
    agent       scripted (script.yaml), model none, login: none needed
    permission  acceptEdits; a sandbox (bubblewrap 0.8.0): writes the working tree; reaches package registries
    at most     10 iterations, 20 calls, usually 3–5
    settings    not read by the scripted agent
    verified by sh test.sh; git status --porcelain

    TIME  run                    started fixer with scripted on DATE → initial.fix
    TIME  initial.fix #1         answered in SPAN, 2,280 tokens, $0.0090 → next → continuation.fix
    TIME  continuation.fix #1    answered in SPAN, 3,440 tokens, $0.01 → handoff → closure.fix
    TIME  closure.fix #1         answered in SPAN, 960 tokens, $0.0036 → closing
    TIME  closure.fix #1         `sh test.sh`: failed, exit 1 (SPAN) → retry: continuation.fix
              | FAIL: 100 C: expected 212, got 87
              | FAIL: -40 C: expected -40, got 10
    TIME  continuation.fix #2    retry in SPAN, 4,360 tokens, $0.02 → handoff → closure.fix
    TIME  closure.fix #2         answered in SPAN, 960 tokens, $0.0036 → closing
    TIME  closure.fix #2         `sh test.sh`: passed (SPAN)
    TIME  closure.fix #2         `git status --porcelain`: passed (SPAN)
    TIME  run                    completed: `closure.fix` completed the workflow
    done: `sh test.sh` passes (2nd try), `git status --porcelain` passes
    task        The test fails. Make it pass.
    summary     Everything is done.
    changed     1 file: convert.sh +1 −1
    used        5 calls, 12,000 tokens, $0.05 in SPAN
    see         cuegate diff RUN    what changed
                cuegate log RUN     what happened
                cuegate report RUN  full report
    undo        cuegate undo RUN
    ");
    let status = project.run(&["status", "last"]);
    assert_eq!((status.code, &*status.stderr), (0, ""));
    assert_snapshot!(tidy(&project, &status.stdout), @"
    fixer  run RUN
    task        The test fails. Make it pass.
    state       completed
    reason      `closure.fix` completed the workflow
    proof       `sh test.sh` passes (2nd try), `git status --porcelain` passes
    summary     Everything is done.
    changed     1 file: convert.sh +1 −1
    iterations  5 of at most 10
    calls       5: 4 work, 1 retry
    tokens      11,200 in, 800 out
    cost        $0.05
    time        SPAN, started DATE TIME (SPAN ago)
    folder      PROJECT, in place
    agent       scripted, model scripted
    method      5 answers used the agent's JSON Schema mode; 1 new session, 4 forked
    last        TIME  initial.fix #1                next → continuation.fix
                TIME  continuation.fix #1           handoff → closure.fix
                TIME  closure.fix #1                closing → continuation.fix
                TIME  continuation.fix #2           handoff → closure.fix
                TIME  closure.fix #2                closing → done
    ");
    let log = project.run(&["log", "last"]);
    assert_eq!((log.code, &*log.stderr), (0, ""));
    assert_snapshot!(tidy(&project, &log.stdout), @"
    TIME  run                    started fixer with scripted on DATE → initial.fix
    TIME  initial.fix #1         answered in SPAN, 2,280 tokens, $0.0090 → next → continuation.fix
    TIME  continuation.fix #1    answered in SPAN, 3,440 tokens, $0.01 → handoff → closure.fix
    TIME  closure.fix #1         answered in SPAN, 960 tokens, $0.0036 → closing
    TIME  closure.fix #1         `sh test.sh`: failed, exit 1 (SPAN) → retry: continuation.fix
    TIME  continuation.fix #2    retry in SPAN, 4,360 tokens, $0.02 → handoff → closure.fix
    TIME  closure.fix #2         answered in SPAN, 960 tokens, $0.0036 → closing
    TIME  closure.fix #2         `sh test.sh`: passed (SPAN)
    TIME  closure.fix #2         `git status --porcelain`: passed (SPAN)
    TIME  run                    completed: `closure.fix` completed the workflow
    ");
    let report = project.run(&["report", "last"]);
    assert_eq!((report.code, &*report.stderr), (0, ""));
    assert_snapshot!(tidy(&project, &report.stdout), @"
    # fixer: completed

    - Run: `RUN` of `fixer`
    - State: completed
    - Proof: `sh test.sh` passes (2nd try), `git status --porcelain` passes
    - Reason: `closure.fix` completed the workflow
    - Started: DATE TIME, took SPAN
    - Folder: PROJECT, in place
    - Agent: scripted, model scripted

    ## Task

    > The test fails. Make it pass.

    ## Summary

    ```text
    Everything is done.
    ```

    ## Changed files

    - convert.sh +1 −1

    ## Visits

    | Step | Visit | Outcome | Calls | Tokens | Cost | Time | Files |
    |--|
    | initial.fix | 1 | next → continuation.fix | 1 | 2,280 | $0.0090 | SPAN | 0 |
    | continuation.fix | 1 | handoff → closure.fix | 1 | 3,440 | $0.01 | SPAN | 1 |
    | closure.fix | 1 | closing → continuation.fix | 1 | 960 | $0.0036 | SPAN | 0 |
    | continuation.fix (retry after tests-pass) | 2 | handoff → closure.fix | 1 | 4,360 | $0.02 | SPAN | 1 |
    | closure.fix | 2 | closing → done | 1 | 960 | $0.0036 | SPAN | 0 |

    ## Validators

    | Command | Step | Result | Time |
    |--|
    | sh test.sh | closure.fix #1 | failed: exit 1 | SPAN |
    | sh test.sh | closure.fix #2 | passed | SPAN |
    | git status --porcelain | closure.fix #2 | passed | SPAN |

    ### `sh test.sh` failed after closure.fix #1: exit 1

    standard output:

    ```text
    ok: 0 C is 32 F
    ```

    standard error:

    ```text
    FAIL: 100 C: expected 212, got 87
    FAIL: -40 C: expected -40, got 10
    ```

    ## Tool calls

    | Step | Tool | Target | Result | Time |
    |--|
    | continuation.fix #1 | write | convert.sh | ok | SPAN |
    | continuation.fix #1 | run | git commit -qam 'Fix the conversion' | ok | SPAN |
    | continuation.fix #2 | write | convert.sh | ok | SPAN |
    | continuation.fix #2 | run | sh test.sh | ok | SPAN |
    | continuation.fix #2 | run | git commit -qam 'Multiply by 9/5, not by 5/9' | ok | SPAN |

    ## Handoff values

    - initial.fix.cause: convert.sh subtracts 32 where it has to add it.
    - initial.fix.plan: Turn the minus into a plus in convert.sh.
    - continuation.fix.change: Multiplies by 9/5 and adds 32.

    ## Totals

    - Calls: 5: 4 work, 1 retry
    - Tokens: 11,200 in, 800 out
    - Cost: $0.05
    - Iterations: 5 of at most 10

    ## More

    - `cuegate diff RUN`: what changed
    - `cuegate log RUN`: what happened, step by step
    ");
    let runs = project.run(&["runs"]);
    assert_eq!((runs.code, &*runs.stderr), (0, ""));
    assert_snapshot!(tidy(&project, &runs.stdout), @"
    RUN       WORKFLOW  STATE      STEPS   COST  STARTED  TASK
    RUN  fixer     completed      5  $0.05  SPAN ago  The test fails. Make it pass.
    ");
}

#[test]
fn the_example_as_json() {
    let project = Project::example();
    let ran = project.run(&[&RUN[..], &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    assert_snapshot!(rows(&result), @"
    initial.fix: next → continuation.fix
    continuation.fix: handoff → closure.fix
    closure.fix: closing → continuation.fix
    continuation.fix (remedy): handoff → closure.fix
    closure.fix: closing → @completed
    ");
    assert_eq!(result["schema"], "cuegate/run/v1");
    assert_eq!(result["flow"], "fixer");
    assert_eq!(result["dialect"], "registry-closing");
    assert_eq!(result["state"], "completed");
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["validated"], true);
    assert_eq!(result["waiting"], Value::Null);
    assert_eq!(result["faults"], json!([]));
    assert_eq!(result["final_step"], "closure.fix");
    assert_eq!(
        result["asks"],
        json!({"work": 4, "report": 0, "judge": 0, "check": 0, "repair": 0, "remedy": 1})
    );
    assert_eq!(result["tokens"], json!({"input": 11_200, "output": 800}));
    assert_eq!(result["cost_usd"], 0.0456);
    assert_eq!(result["steps"][1]["changed_files"], json!(["convert.sh"]));
    assert_eq!(result["steps"][3]["remedy"], true);
    for key in ["reports", "budget", "effects", "started_at", "ended_at", "completion_reason"] {
        assert!(result.get(key).is_some(), "{key} is missing");
    }
    // The same, whoever asks for it later.
    assert_eq!(project.status(), result);
    assert_eq!(project.run(&["report", "last", "--json"]).json(), result);
    let runs = project.run(&["runs", "--json"]).json();
    assert_eq!(runs["schema"], "cuegate/runs/v1");
    assert_eq!(
        runs["runs"],
        json!([{"run": result["run"], "flow": "fixer", "task": "The test fails. Make it pass.",
            "state": "completed", "standing": "completed", "branch": null, "started_at": result["started_at"],
            "ended_at": result["ended_at"], "steps": 5, "calls": 5, "cost_usd": 0.0456}])
    );
}

#[test]
fn every_line_of_the_json_log_is_an_object() {
    let project = Project::example();
    assert_eq!(project.run(&RUN).code, 0);
    let log = project.log();
    let mut last = 0;
    for event in &log {
        assert_eq!(event["schema"], "cuegate/event/v1");
        assert!(event["run"].is_string() && event["at"].is_string() && event["event"].is_string(), "{event}");
        let seq = event["seq"].as_u64().unwrap();
        assert!(seq == last || seq == last + 1, "records stand in their order: {event}");
        last = seq;
    }
    let answers: Vec<&Value> = log.iter().filter(|event| event["event"] == "answered").collect();
    assert_eq!(answers.len(), 5);
    let first = answers[0];
    assert_eq!((&first["kind"], &first["step"]), (&json!("work"), &json!("initial.fix")));
    let prompt = first["prompt"].as_str().unwrap();
    assert!(prompt.contains("The test fails. Make it pass."), "{prompt}");
    assert!(prompt.contains("Keep in mind: the smallest change that is right."), "{prompt}");
    assert!(!prompt.contains("stepId: initial.fix\n"), "front matter is no part of it: {prompt}");
    assert!(first["system_prompt"].as_str().unwrap().starts_with("You repair failing tests."));
    assert_eq!(first["output"]["next_action"]["action"], "next");
    assert_eq!(first["usage"], json!({"input_tokens": 2100, "output_tokens": 180, "cost_usd": 0.009}));
    for key in ["text", "model", "provider", "session"] {
        assert!(first.get(key).is_some(), "{key} is missing");
    }
    // What a later step needs of an earlier answer is in its prompt.
    assert!(answers[1]["prompt"].as_str().unwrap().contains("Turn the minus into a plus in convert.sh."));
    let remedy = answers[3]["prompt"].as_str().unwrap();
    assert!(remedy.contains("FAIL: 100 C: expected 212, got 87"), "{remedy}");
}

/// Runs the undo command in the last line of a run's output.
fn undo(project: &Project, ran: &Ran) {
    let undo = ran.stderr.lines().find_map(|line| line.strip_prefix("undo")).unwrap().trim();
    assert!(undo.starts_with("cuegate undo "), "{undo}");
    let undo = undo.replacen("cuegate", CUEGATE, 1);
    let undone =
        Ran::of(Command::new("sh").args(["-c", &undo]).current_dir(project.path()).output().unwrap());
    assert_eq!(undone.code, 0, "{}", undone.stderr);
}

#[test]
fn undo_also_reverts_commits() {
    let project = Project::example();
    let before = project.read("convert.sh");
    let ran = project.run(&RUN);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_ne!(project.read("convert.sh"), before);
    undo(&project, &ran);
    assert_eq!(project.read("convert.sh"), before);
}

#[test]
fn diff_and_the_undo_command_match_the_changes() {
    // The agent writes without committing; a person's own edit is there before it begins.
    let project = small().project(json!([
        {"step": "work", "writes": [{"path": "a.txt", "content": "two\n"}, {"path": "new/b.txt", "content": "b\n"}],
            "output": {"next_action": {"action": "handoff"}}},
        says("close", "closing")
    ]));
    project.write("a.txt", "mine\n");
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let diff = project.run(&["diff", "last"]);
    assert_eq!((diff.code, &*diff.stderr), (0, ""));
    assert_snapshot!(tidy(&project, &diff.stdout), @"
    diff --git a/a.txt b/a.txt
    index HASH
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -mine
    +two
    diff --git a/new/b.txt b/new/b.txt
    new file mode 100644
    index HASH
    --- /dev/null
    +++ b/new/b.txt
    @@ -0,0 +1 @@
    +b
    ");
    let stat = project.run(&["diff", "last", "--stat"]);
    assert_snapshot!(stat.stdout, @"
    +1      -1      a.txt
    +1      -0      new/b.txt
    ");
    let json = project.run(&["diff", "last", "--json"]).json();
    assert_eq!(json["schema"], "cuegate/diff/v1");
    assert_eq!(
        json["files"],
        json!([{"path": "a.txt", "added": 1, "removed": 1}, {"path": "new/b.txt", "added": 1, "removed": 0}])
    );
    assert_eq!(json["patch"], diff.stdout);
    undo(&project, &ran);
    assert_eq!(project.read("a.txt"), "mine\n");
    assert!(!project.path().join("new").exists());
}

#[test]
fn a_run_that_changed_nothing_has_nothing_to_undo() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("\nundo"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nchanged     nothing\n"), "{}", ran.stderr);
    let diff = project.run(&["diff", "last"]);
    assert_eq!((diff.code, &*diff.stdout), (0, ""));
    assert!(diff.stderr.ends_with(" changed nothing\n"), "{}", diff.stderr);
    assert_eq!(project.git(&["status", "--porcelain"]), "", "state keeps itself out of version control");
}

/// `changed`, `diff` and `undo` speak of the same files: what an agent removed again is in none of them, and what a
/// validator wrote is told apart.
#[test]
fn changed_files_are_those_of_the_difference() {
    let project = small()
        .validator("echo log >> made.log; test -e fixed", json!({"action": "retry"}))
        .project(json!([
            says_with("work", "handoff", json!({"writes": [{"path": "gone.txt", "content": "x"}]})),
            says_with("work", "handoff", json!({"runs": ["rm gone.txt", "touch fixed"]})),
            says("close", "closing"),
            says("close", "closing")
        ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("\nchanged     1 file: fixed; by commands: 1 file: made.log +2\n"),
        "{}",
        ran.stderr
    );
    let stat = project.run(&["diff", "--stat"]).stdout;
    assert_eq!(
        stat.lines().map(|line| line.rsplit(' ').next().unwrap()).collect::<Vec<_>>(),
        ["fixed", "made.log"]
    );
    let json = project.status();
    assert_eq!(
        (&json["changed_files"], &json["changed_by_commands"]),
        (&json!(["fixed"]), &json!(["made.log"]))
    );
    let report = project.run(&["report"]).stdout;
    assert!(report.contains("- fixed\n- made.log +2 (by a command)"), "{report}");
}

#[test]
fn work_that_no_command_verified_is_marked() {
    let write = json!({"writes": [{"path": "a.txt", "content": "x"}]});
    let project = small().project(json!([says_with("work", "handoff", write), says("close", "closing")]));
    let ran = project.go(&[]);
    assert!(ran.stderr.contains("note        no command verifies the work"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nnote        no command verified these changes\n"), "{}", ran.stderr);
}

#[test]
fn runs_are_found_by_id_prefix_and_last() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    for command in [&["status", "last"][..], &["log", "x"], &["resume", "last"], &["cancel", "last"]] {
        let ran = project.run(command);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{command:?}");
        assert_eq!(ran.stderr, "error: this project has no runs\nhint: `cuegate run PATH` starts one\n");
    }
    assert_eq!(project.run(&["runs"]).stderr, "this project has no runs; `cuegate run PATH` starts one\n");
    assert_eq!(project.runs(), 0);
    assert!(!project.path().join(".cuegate").exists(), "looking leaves nothing behind");
    // More runs than there are letters that a name begins with: two of them begin alike.
    let mut names: Vec<String> = Vec::new();
    let alike = loop {
        let ran = project.go(&["--json", "--durability", "relaxed"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let name = ran.json()["run"].as_str().unwrap().to_owned();
        let alike = names.iter().find(|known| known[..1] == name[..1]).map(|known| known[..1].to_owned());
        names.push(name);
        if let Some(alike) = alike {
            break alike;
        }
        assert!(names.len() <= 28);
    };
    let newest = names.last().unwrap();
    let of = |typed: &str| project.run(&["status", typed, "--json"]).json()["run"].clone();
    assert_eq!(of("last"), **newest);
    assert_eq!(of(newest), **newest);
    assert_eq!(of(&names[0]), *names[0]);
    let shortest = (1..=8)
        .map(|length| &newest[..length])
        .find(|beginning| names.iter().filter(|name| name.starts_with(beginning)).count() == 1);
    assert_eq!(of(shortest.unwrap()), **newest);
    let ambiguous = project.run(&["status", &alike]);
    assert_eq!((ambiguous.code, &*ambiguous.stdout), (2, ""));
    assert!(
        ambiguous.stderr.starts_with(&format!("error: `{alike}` matches several runs: ")),
        "{}",
        ambiguous.stderr
    );
    assert!(ambiguous.stderr.contains(&**newest), "{}", ambiguous.stderr);
    let unknown = project.run(&["status", "aeiou"]);
    assert_eq!(unknown.code, 2);
    assert_eq!(unknown.stderr, "error: there is no run `aeiou`\nhint: `cuegate runs` lists them\n");
    let listed = project.run(&["runs", "--json"]).json();
    let listed: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    names.reverse();
    assert_eq!(listed, names, "the newest comes first");
}

#[test]
fn log_follow_ends_with_the_run() {
    let project = small().project(json!([
        {"step": "work", "delay_ms": 700, "output": {"next_action": {"action": "handoff"}}},
        says("close", "closing")
    ]));
    let running = project.job(&begin(&[]));
    running.says("started agent");
    let followed = project.run(&["log", "last", "--follow", "--json"]);
    assert_eq!(followed.code, 0, "{}", followed.stderr);
    assert_eq!(running.end().code, 0);
    let whole = project.run(&["log", "last", "--json"]);
    assert_eq!(followed.stdout, whole.stdout, "the same lines, live or later");
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.go(&[]).code, 0);
    let mut child = project.command(&["log", "last", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
}

#[test]
fn relaxed_durability_runs_the_same() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.go(&["--durability", "relaxed"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.status()["state"], "completed");
    let wrong = project.go(&["--durability", "never"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("synced, relaxed"), "{}", wrong.stderr);
}

#[test]
fn a_run_without_records_is_not_listed() {
    use cuegate_journal::{Journal, log::LogJournal};
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    let answered = project.go(&["--json"]).json();
    {
        let journal = LogJournal::open(project.path().join(".cuegate/runs"), Default::default());
        journal.unwrap().create(&"aeiouaei".parse().unwrap(), i64::MAX / 2).unwrap();
    }
    assert_eq!(project.runs(), 1);
    assert_eq!(project.status()["run"], answered["run"]);
    let named = project.run(&["status", "aeiouaei"]);
    assert_eq!(named.code, 2, "{}", named.stdout);
    assert!(!project.run(&["runs"]).stdout.contains("aeiou"));
}
