//! Runs that stop early and resume: interrupted, waiting, exhausted, cancelled.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Job, Project, Ran, at_work_in, rows},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A command that runs until the test releases it.
const LONG: &str = "test -e script-go || sleep 60";

/// An agent that is at work until the file `script-go` is there.
fn long() -> Project {
    small().project(json!([says_with("work", "handoff", json!({"runs": [LONG]})), says("close", "closing")]))
}

fn waiting(project: &Project) -> Value {
    let status = project.status();
    assert_eq!(status["state"], "suspended", "{status}");
    status["waiting"].clone()
}

fn completes(project: &Project, args: &[&str]) {
    let ran = project.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    assert_eq!(project.status()["state"], "completed");
}

#[test]
fn ctrl_c_suspends_the_run() {
    let project = long();
    let job = project.job(&begin(&["--json"]));
    project.at_work("sleep 60");
    assert_eq!(project.status()["state"], "running");
    job.signal(Signal::INT);
    let ran = job.end();
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("interrupting … (press Ctrl-C again to stop at once)\n"), "{}", ran.stderr);
    project.all_gone();
    let result = ran.json();
    assert_eq!(result["exit_code"], 130);
    assert_eq!(result["waiting"], json!({"kind": "interrupted", "detail": "interrupted", "until": null}));
    assert_eq!(project.status(), result);
    project.write("script-go", "");
    completes(&project, &["resume", "last"]);
    assert_eq!(rows(&project.status()), "work: handoff → close\nclose: closing → @completed");
    assert_eq!(project.status()["asks"]["work"], 2, "an ask that was cut off is no ask");
}

/// An agent that ignores SIGTERM is killed after a moment.
#[test]
fn a_second_ctrl_c_stops_at_once() {
    let stubborn = format!("trap '' TERM; {LONG}");
    let answers =
        json!([says_with("work", "handoff", json!({"runs": [stubborn]})), says("close", "closing")]);
    // On a machine that is busy enough the moment may be over before the second one comes.
    for _ in 0..10 {
        let project = small().project(answers.clone());
        let job = project.job(&begin(&[]));
        project.at_work("sleep 60");
        job.signal(Signal::INT);
        job.says("interrupting …");
        job.signal_if_there(Signal::INT);
        let ran = job.end();
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        project.all_gone();
        if ran.stderr.ends_with("stopped at once; `cuegate resume last` continues from the last record\n") {
            let status = project.status();
            assert_eq!((&status["state"], &status["live"]), (&json!("running"), &json!(false)));
            project.write("script-go", "");
            completes(&project, &["resume", "last"]);
            return;
        }
    }
    panic!("the second one never came in time");
}

#[test]
fn sigterm_to_all_cuegate_processes_suspends_the_run() {
    let project = long();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    // As `killall cuegate` does.
    for process in at_work_in(project.path()) {
        if process.words.starts_with(crate::support::CUEGATE) {
            let _ = kill_process(Pid::from_raw(process.pid).unwrap(), Signal::TERM);
        }
    }
    let ran = job.end();
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    project.all_gone();
    project.write("script-go", "");
    completes(&project, &["resume", "last"]);
}

#[test]
fn sigterm_or_sighup_suspends_the_run() {
    for signal in [Signal::TERM, Signal::HUP] {
        let project = long();
        let job = project.job(&begin(&[]));
        project.at_work("sleep 60");
        job.signal_alone(signal);
        let ran = job.end();
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        project.all_gone();
        assert_eq!(waiting(&project)["kind"], "interrupted");
    }
}

#[test]
fn a_drained_run_ends_its_call_and_begins_no_other() {
    let slow = json!({"runs": ["sleep 2; echo done > DONE.txt"]});
    let project = small().project(json!([says_with("work", "handoff", slow), says("close", "closing")]));
    let job = project.job(&begin(&["--json"]));
    project.at_work("sleep 2");
    job.signal_alone(Signal::USR1);
    let ended = job.end();
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert_eq!(project.read("DONE.txt"), "done\n");
    assert_eq!(project.events("answered").len(), 1, "{}", ended.stderr);
    assert_eq!(waiting(&project)["kind"], "interrupted");
    completes(&project, &["resume", "last"]);
    assert_eq!(project.events("ask_cut").len(), 0);
}

#[test]
fn ctrl_c_during_a_validator_suspends_the_run() {
    let project = small()
        .validator(LONG, json!({"action": "abort"}))
        .project(json!([says("work", "handoff"), says("close", "closing")]));
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::INT);
    let ran = job.end();
    assert_eq!(ran.code, 130, "a killed validator decides nothing: {}", ran.stderr);
    project.all_gone();
    project.write("script-go", "");
    completes(&project, &["resume", "last"]);
    assert_eq!(project.status()["validated"], true);
}

#[test]
fn an_exhausted_script_suspends_the_run() {
    let project = small().project(json!([says("work", "handoff")]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let wait = waiting(&project);
    assert_eq!(wait["kind"], "environment");
    let detail = wait["detail"].as_str().unwrap();
    assert!(detail.contains("no scripted answer left for step `close` (kind work)"), "{detail}");
    // Nothing changed since.
    assert_eq!(project.run(&["resume", "last"]).code, 4);
    let missing = project.run(&["resume", "last", "--script", "none.yaml"]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    project.write(
        "script-other.yaml",
        "answers:\n  - step: close\n    output: { next_action: { action: closing } }\n",
    );
    completes(&project, &["resume", "last", "--script", "script-other.yaml"]);
    assert_eq!(project.status()["asks"]["work"], 2);
}

#[test]
fn a_provider_limit_that_resets_soon_is_waited_for() {
    let project = small().project(json!([
        {"step": "work", "error": "rate_limited", "resets_in_ms": 200},
        says("work", "handoff"), says("close", "closing")
    ]));
    let ran = project.go(&["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(result["asks"]["work"], 2, "a faulty try is no ask");
    let faults = result["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 1);
    assert_eq!((&faults[0]["class"], &faults[0]["step"]), (&json!("rate_limited"), &json!("work")));
    assert_eq!(faults[0]["visit"], 1);
    assert!(ran.stderr.contains(" → retry in 0.2 s"), "{}", ran.stderr);
}

#[test]
fn a_provider_limit_that_resets_late_suspends_the_run() {
    let project = small().project(json!([
        {"step": "work", "error": "rate_limited", "resets_in_ms": 3_600_000},
        says("work", "handoff"), says("close", "closing")
    ]));
    let ran = project.go(&["--json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!((&result["state"], &result["waiting"]["kind"]), (&json!("suspended"), &json!("quota")));
    let until = result["waiting"]["until"].as_str().unwrap();
    let started = result["started_at"].as_str().unwrap();
    let hours = |time: &str| time.parse::<jiff::Timestamp>().unwrap();
    let away = hours(until).duration_since(hours(started)).as_secs();
    assert!((3_600..3_660).contains(&away), "{until} is {away} s after {started}");
    let status = project.run(&["status", "last"]).stdout;
    assert!(status.contains(" --wait  waits until "), "{status}");
    assert!(ran.stderr.contains("paused until ") && !ran.stderr.contains("waiting for"), "{}", ran.stderr);
    // It retries at once.
    completes(&project, &["resume", "last"]);
}

#[test]
fn a_run_that_waits_says_so_everywhere_and_a_resumed_one_tries_at_once() {
    let project = small().project(json!([
        {"step": "work", "error": "rate_limited", "resets_in_ms": 40_000},
        says("work", "handoff"), says("close", "closing")
    ]));
    project.write("cuegate.toml", "[run]\nwait_max = \"2m\"\n");
    let job = project.job(&begin(&[]));
    job.says("retry in");
    let list = project.run(&["runs"]).stdout;
    assert!(list.contains("rate limited"), "{list}");
    let status = project.run(&["status"]).stdout;
    assert!(status.contains("rate limited") && status.contains("is tried again "), "{status}");
    let why = project.run(&["why"]).stdout;
    assert!(why.contains("rate limited"), "{why}");
    drop(job);
    project.kill_all();
    project.all_gone();
    let began = std::time::Instant::now();
    completes(&project, &["resume", "last"]);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[test]
fn files_that_are_as_they_were_before_are_told() {
    let does = |intent: &str, text: &str| {
        says_with("work", intent, json!({"runs": [format!("echo {text} > a.txt")]}))
    };
    let project = small().project(json!([
        does("repeat", "red"), does("repeat", "blue"), does("repeat", "red"),
        {"step": "work", "error": "auth"}
    ]));
    project.go(&[]);
    for command in ["status", "why"] {
        let said = project.run(&[command]).stdout;
        assert!(said.contains("`work` #3 left the files as they were after `work` #1: a circle"), "{said}");
    }
}

#[test]
fn resume_waits_for_a_provider_limit_if_told_to() {
    let project = small().project(json!([
        {"step": "work", "error": "rate_limited", "resets_in_ms": 2_500},
        {"step": "work", "error": "rate_limited", "resets_in_ms": 1_500},
        says("work", "handoff"), says("close", "closing")
    ]));
    project.write("cuegate.toml", "[run]\nwait_max = \"1s\"\n");
    assert_eq!(project.go(&[]).code, 3);
    let until = waiting(&project)["until"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let ran = project.run(&["resume", "last", "--wait", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("which resets at "), "{}", ran.stderr);
    assert!(jiff::Timestamp::now() >= until);
    let asked = project.events("ask_requested");
    assert!(asked[2]["not_before"].is_string(), "the second limit is waited out in the run: {asked:#?}");
}

#[test]
fn an_unreachable_service_is_retried_and_then_suspends_the_run() {
    let project = small().project(json!([
        {"step": "work", "error": "network", "times": 2}, says("work", "handoff"), says("close", "closing")
    ]));
    project.write("cuegate.toml", "[run]\nwait_max = \"1s\"\n");
    let ran = project.go(&[]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("network error: the service cannot be reached"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("overloaded") && !ran.stderr.contains("paused until"));
    let wait = waiting(&project);
    assert_eq!(wait["kind"], "environment");
    assert!(wait["detail"].as_str().unwrap().starts_with("network error: "), "{wait}");
    assert_eq!(project.status()["faults"][0]["class"], "network");
    completes(&project, &["resume", "last"]);
}

#[test]
fn a_call_without_activity_is_reported_and_ends_at_its_timeout() {
    let project = small().project(json!([
        {"step": "work", "error": "hang"}, says("work", "handoff"), says("close", "closing")
    ]));
    project.write("cuegate.toml", "[run]\nidle_warning = \"1s\"\ncall_timeout = \"3s\"\n");
    let ran = project.go(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let note = "note: `work`: no activity of scripted for 1 s; the call is stopped after 3 s\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    assert_eq!(project.status()["faults"][0]["class"], "timeout");
}

#[test]
fn a_crashed_ask_is_retried() {
    let project = small().project(json!([
        {"step": "work", "error": "crashed"}, says("work", "handoff"), says("close", "closing")
    ]));
    let ran = project.go(&["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    let classes: Vec<&Value> =
        result["faults"].as_array().unwrap().iter().map(|fault| &fault["class"]).collect();
    assert_eq!(classes, ["crashed"]);
    assert_eq!(result["asks"]["work"], 2);
}

#[test]
fn permanent_errors_are_not_retried() {
    for (class, words) in [
        ("auth", "login rejected: "),
        ("refused", "request refused: "),
        ("context_overflow", "context window exceeded: "),
    ] {
        let project = small().project(json!([
            {"step": "work", "error": class}, says("work", "handoff"), says("close", "closing")
        ]));
        let ran = project.go(&[]);
        assert_eq!(ran.code, 4, "{class}: {}", ran.stderr);
        let wait = waiting(&project);
        assert_eq!(wait["kind"], "environment");
        assert!(wait["detail"].as_str().unwrap().starts_with(words), "{wait}");
        completes(&project, &["resume", "last"]);
    }
}

/// A piece of two movements of one persona, which is one conversation.
const ONE_CONVERSATION: &str = "\
name: w
max_iterations: 6
initial_movement: plan
personas: {coder: ./coder.md}
movements:
  - {name: plan, persona: coder, edit: false, instruction_template: Plan., rules: [{condition: ok, next: work}]}
  - {name: work, persona: coder, edit: true, instruction_template: Work., rules: [{condition: ok, next: COMPLETE}]}
";

/// Two reviewers, of which both have to approve.
const REVIEWERS: &str = "\
name: w
max_iterations: 5
initial_movement: reviewers
movements:
  - name: reviewers
    parallel:
      - {name: r1, edit: false, instruction_template: look, rules: [{condition: approved}, {condition: needs_fix}]}
      - {name: r2, edit: false, instruction_template: look, rules: [{condition: approved}, {condition: needs_fix}]}
    rules: [{condition: all(\"approved\"), next: COMPLETE}]
";

/// A project with a piece and a script.
fn piece(text: &str, answers: Value) -> Project {
    let project = Project::empty();
    project.write("w.yaml", text);
    project.write("coder.md", "You code.");
    project.script("script.json", &answers);
    project.init();
    project
}

fn run_piece(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "w.yaml", "Paint", "--script", "script.json"], more].concat())
}

/// A conversation that the agent no longer has, or that is full, is started anew once, with the whole prompt.
#[test]
fn a_lost_or_full_conversation_is_started_anew() {
    let ok = |step: &str| {
        let usage = json!({"cost_usd": 0.01});
        json!({"step": step, "output": {"outcome": "ok", "response": "done"}, "usage": usage})
    };
    for error in ["session_lost", "context_overflow"] {
        let project =
            piece(ONE_CONVERSATION, json!([ok("plan"), {"step": "work", "error": error}, ok("work")]));
        let ran = run_piece(&project, &["--budget-usd", "5"]);
        assert_eq!(ran.code, 0, "{error}: {}", ran.stderr);
        assert!(ran.stderr.contains("→ a new conversation"), "{error}: {}", ran.stderr);
        assert_eq!(project.events("faulted")[0]["class"], error);
        let put: Vec<Value> =
            project.events("answered").iter().map(|event| event["put"]["session"].clone()).collect();
        assert_eq!(put, ["new", "new"], "{error}");
        assert_eq!(project.status()["spent"]["usd"], 0.02, "{error}: the failed call cost nothing");
    }
    // Twice is no accident.
    let fails = json!({"step": "work", "error": "context_overflow", "times": 2});
    let project = piece(ONE_CONVERSATION, json!([ok("plan"), fails, ok("work")]));
    let ran = run_piece(&project, &[]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    completes(&project, &["resume", "last", "--new-session"]);
}

#[test]
fn a_conversation_is_started_anew_by_hand() {
    let ok = |step: &str| json!({"step": step, "output": {"outcome": "ok", "response": "done"}});
    let refused = json!({"step": "work", "error": "refused"});
    let project = piece(ONE_CONVERSATION, json!([ok("plan"), refused, ok("work")]));
    assert_eq!(run_piece(&project, &[]).code, 4);
    completes(&project, &["resume", "last", "--new-session"]);
    assert_eq!(project.events("answered")[1]["put"]["session"], "new");
    assert_eq!(project.events("resumed")[0]["new_sessions"], true);
}

#[test]
fn one_crashed_or_blocked_member_is_asked_alone() {
    let approves = |step: &str| json!({"step": step, "output": {"outcome": "approved", "response": "ok"}});
    for (trouble, code) in [
        (json!({"step": "r2", "error": "crashed", "times": 3}), 4),
        (json!({"step": "r2", "blocked": "Which branch?"}), 3),
    ] {
        let project = piece(REVIEWERS, json!([approves("r1"), trouble, approves("r2")]));
        let ran = run_piece(&project, &[]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        match code {
            3 => completes(&project, &["answer", "last", "main"]),
            _ => completes(&project, &["resume", "last"]),
        }
        let asked = project.events("ask_requested");
        let of_r1 = asked.iter().filter(|event| event["step"] == "r1").count();
        assert_eq!(of_r1, 1, "r1 keeps its answer: {asked:#?}");
    }
}

#[test]
fn an_ended_run_has_one_exit_code_for_resume() {
    let done = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(done.go(&[]).code, 0);
    let aborted = small().project(json!([says("work", "abort")]));
    assert_eq!(aborted.go(&[]).code, 1);
    for project in [&done, &aborted] {
        let ran = project.run(&["resume", "last"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot continue: it has ended"), "{}", ran.stderr);
    }
    assert_eq!(done.run(&["retry", "last"]).code, 2);
}

#[test]
fn a_single_short_word_is_an_answer() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "yes or no?"}, says("work", "handoff"), says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    let id = project.status()["run"].as_str().unwrap().to_owned();
    let recorded = project.run(&["answer", &id[..1], "--no-continue", "--json"]);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    assert_eq!(recorded.json()["run"], id);
    assert_eq!(recorded.json()["questions"][0]["answered"], true);
    completes(&project, &["resume", "last"]);
    assert!(project.prompts()[1].contains(&id[..1]), "{:?}", project.prompts());
}

#[test]
fn a_blocked_agent_suspends_the_run() {
    let project = small().project(json!([
        {"step": "work", "blocked": "the key is missing"}, says("work", "handoff"), says("close", "closing")
    ]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("cuegate answer "), "{}", ran.stderr);
    let wait = waiting(&project);
    assert_eq!(wait["kind"], "person");
    assert!(wait["detail"].as_str().unwrap().contains("the key is missing"), "{wait}");
    let early = project.run(&["resume", "last"]);
    assert_eq!(early.code, 3, "{}", early.stderr);
    assert!(early.stderr.contains("cannot continue: it waits for an answer"), "{}", early.stderr);
    let empty = project.run(&["answer", "last", " "]);
    assert_eq!((empty.code, empty.stderr.lines().next()), (2, Some("error: the answer is empty")));
    completes(&project, &["answer", "last", "it lies under the mat"]);
    let prompt = &project.prompts()[1];
    assert!(prompt.contains("it lies under the mat"), "{prompt}");
    let late = project.run(&["answer", "last", "and the door is blue"]);
    assert_eq!(late.code, 2, "{}", late.stderr);
    assert!(late.stderr.contains(" has ended: "), "{}", late.stderr);
}

#[test]
fn an_agent_question_suspends_the_run() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Which colour?\nRed or blue?"}, says("work", "handoff"),
        says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    assert_eq!(waiting(&project)["detail"], "Which colour?\nRed or blue?");
    let kept = project.run(&["answer", "last", "blue, like the door", "--no-continue"]);
    assert_eq!((kept.code, &*kept.stdout), (0, ""), "{}", kept.stderr);
    assert!(kept.stderr.contains("the answer is recorded; `cuegate resume "), "{}", kept.stderr);
    assert_eq!(waiting(&project)["kind"], "person");
    let status = project.run(&["status", "last"]).stdout;
    assert!(status.contains("answered, not resumed yet") && status.contains("cuegate resume"), "{status}");
    assert!(!status.contains("cuegate answer"), "{status}");
    assert_eq!(project.prompts().len(), 1, "nobody was asked meanwhile");
    completes(&project, &["resume", "last"]);
    let prompt = &project.prompts()[1];
    assert!(prompt.contains("blue, like the door"), "{prompt}");
    assert_eq!(project.status()["steps"].as_array().unwrap().len(), 2, "the visit went on");
}

#[test]
fn an_answer_comes_from_an_argument_a_file_or_standard_input() {
    let asks = |text: &str| json!({"step": "work", "asks_user": text});
    let project = small().project(json!([
        asks("One?"),
        asks("Two?"),
        asks("Three?"),
        says("work", "handoff"),
        says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    let run = project.status()["run"].as_str().unwrap().to_owned();
    for args in [&["answer"][..], &["answer", &run], &["answer", "last"]] {
        let ran = project.run(args);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("error: no answer was given"), "{}", ran.stderr);
    }
    assert_eq!(project.run(&["answer", "the first"]).code, 3);
    project.write("script-answer.txt", "the second\n");
    assert_eq!(project.run(&["answer", &run, "--input", "script-answer.txt"]).code, 3);
    assert_eq!(project.run_with_input(&["answer", "--input", "-"], "the third").code, 0);
    let prompts = project.prompts();
    for (prompt, answer) in prompts[1..].iter().zip(["the first", "the second", "the third"]) {
        assert!(prompt.contains(answer), "{prompt}");
    }
}

#[test]
fn an_answer_exits_as_the_run_does() {
    let project = small().project(json!([{"step": "work", "asks_user": "Why?"}, says("work", "abort")]));
    assert_eq!(project.go(&[]).code, 3);
    let ran = project.run(&["answer", "last", "because", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.json()["state"], "aborted");
}

#[test]
fn an_answer_to_a_run_that_is_not_waiting_is_rejected() {
    let project = small().project(json!([says("work", "handoff")]));
    assert_eq!(project.go(&[]).code, 4);
    let ran = project.run(&["answer", "last", "blue"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(" is not waiting for an answer\nhint: `cuegate status "), "{}", ran.stderr);
}

#[test]
fn an_iteration_limit_exhausts_the_run() {
    let project = small().project(json!([
        says_with("work", "repeat", json!({"times": 3})),
        says("work", "handoff"),
        says("close", "closing")
    ]));
    let ran = project.go(&["--max-iterations", "2", "--json"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!((&result["state"], &result["iterations"]), (&json!("exhausted"), &json!(2)));
    assert_eq!(rows(&result), "work: repeat → work\nwork: repeat → @exhausted");
    for args in [&["resume", "last"][..], &["resume", "last", "--max-iterations", "2"]] {
        let ran = project.run(args);
        assert_eq!(ran.code, 5, "{}", ran.stderr);
        assert!(ran.stderr.contains("the limit of 2 iterations is reached"), "{}", ran.stderr);
    }
    completes(&project, &["resume", "last", "--max-iterations", "10"]);
    let status = project.status();
    assert_eq!((&status["iterations"], &status["iterations_max"]), (&json!(5), &json!(10)));
}

#[test]
fn only_one_process_drives_a_run() {
    let project = long();
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::INT);
    assert_eq!(job.end().code, 130);
    let first = project.job(&["resume", "last"]);
    project.at_work("sleep 60");
    let second = project.run(&["resume", "last"]);
    assert_eq!(second.code, 4, "{}", second.stderr);
    assert!(second.stderr.contains(&format!("process {}", first.pid())), "{}", second.stderr);
    // A rejected process changes nothing.
    assert_eq!(project.status()["state"], "running");
    project.write("script-go", "");
    let sleep = project.at_work("sleep 60");
    kill_process(Pid::from_raw(sleep.pid).unwrap(), Signal::TERM).unwrap();
    let ran = first.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(rows(&project.status()), "work: handoff → close\nclose: closing → @completed");
}

#[test]
fn cancel_from_another_process() {
    let project = long();
    let job = project.job(&begin(&["--json"]));
    project.at_work("sleep 60");
    let cancelled = project.run(&["cancel", "last"]);
    assert_eq!((cancelled.code, &*cancelled.stdout), (0, ""), "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains(" is cancelled; `cuegate diff "), "{}", cancelled.stderr);
    let ran = job.end();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.json()["state"], "cancelled");
    project.all_gone();
}

#[test]
fn cancel_while_suspended() {
    let project = small().project(json!([{"step": "work", "asks_user": "Why?"}]));
    assert_eq!(project.go(&[]).code, 3);
    assert_eq!(project.run(&["cancel", "last"]).code, 0);
    let status = project.status();
    assert_eq!((&status["state"], &status["exit_code"]), (&json!("cancelled"), &json!(1)));
    let again = project.run(&["cancel", "last"]);
    assert_eq!(again.code, 0);
    assert!(again.stderr.contains(" has already ended"), "{}", again.stderr);
    assert_eq!(project.run(&["resume", "last"]).code, 2);
    assert_eq!(project.run(&["answer", "last", "because"]).code, 2);
}

#[test]
fn an_ended_run_cannot_be_resumed() {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    assert_eq!(project.go(&[]).code, 0);
    let before = project.log();
    let ran = project.run(&["resume", "last", "--json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(" cannot continue: it has ended: "), "{}", ran.stderr);
    assert_eq!(ran.json(), project.status());
    assert_eq!(project.log(), before);
    let cancelled = project.run(&["cancel", "last"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    assert_eq!(project.status()["state"], "completed");
}

#[test]
fn ctrl_c_during_a_worktree_scan_suspends_the_run() {
    let project = small().project(json!([
        says_with("work", "handoff", json!({"runs": ["echo x > b.slow"]})),
        says("close", "closing")
    ]));
    project.write(".gitattributes", "*.slow filter=lfs\n");
    // The only filter that runs: that of Git LFS, if the user has set it up.
    let user = tempfile::tempdir().unwrap();
    let (program, settings) = (user.path().join("git-lfs"), user.path().join("gitconfig"));
    fs::write(&program, "#!/bin/sh\ntest -e script-go || sleep 60\ncat\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&settings, "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n").unwrap();
    let path = format!("{}:{}", user.path().display(), std::env::var("PATH").unwrap());
    let with_lfs = |args: &[&str]| {
        let mut command = project.command(args);
        command.env("PATH", &path).env("GIT_CONFIG_GLOBAL", &settings);
        command
    };
    let job = Job::of(with_lfs(&begin(&[])).spawn().unwrap());
    project.at_work("sleep 60");
    job.signal(Signal::INT);
    let ran = job.end();
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert_eq!(waiting(&project)["kind"], "interrupted");
    project.all_gone();
    project.write("script-go", "");
    let ran = Ran::of(with_lfs(&["resume", "last"]).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = project.status();
    assert_eq!(status["asks"]["work"], 2, "what was answered is not asked again");
    assert_eq!(status["steps"][0]["changed_files"], json!(["b.slow"]));
}

/// Writes of an interrupted ask are reverted in the run's own worktree, and kept in a person's tree.
#[test]
fn writes_of_an_interrupted_ask_are_reverted_only_in_a_worktree() {
    let edit = ["echo x >> p.txt", LONG];
    let answers = json!([says_with("work", "handoff", json!({ "runs": edit })), says("close", "closing")]);
    for (more, expected) in [(&["--worktree"][..], "x\n"), (&[], "x\nx\n")] {
        let project = small().project(answers.clone());
        let job = project.job(&begin(more));
        project.at_work("sleep 60");
        job.signal(Signal::INT);
        assert_eq!(job.end().code, 130);
        let work = std::path::PathBuf::from(project.status()["place"]["work"].as_str().unwrap());
        assert_eq!(fs::read_to_string(work.join("p.txt")).unwrap(), "x\n");
        fs::write(work.join("script-go"), "").unwrap();
        completes(&project, &["resume", "last"]);
        assert_eq!(fs::read_to_string(work.join("p.txt")).unwrap(), expected, "{more:?}");
        assert_eq!(project.status()["steps"][0]["changed_files"], json!(["p.txt"]));
    }
}

#[test]
fn changes_while_suspended_are_not_attributed_to_a_step() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Is it there?"},
        says_with("work", "handoff", json!({"writes": [{"path": "b.txt", "content": "b\n"}]})),
        says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    project.write("a.txt", "mine\n");
    completes(&project, &["answer", "last", "now it is"]);
    assert_eq!(project.status()["steps"][0]["changed_files"], json!(["b.txt"]));
}

#[test]
fn a_question_instead_of_a_repair() {
    let project = small().project(json!([
        says("work", "fly"), {"step": "work", "kind": "repair", "asks_user": "What is a handoff?"},
        says_with("work", "handoff", json!({"kind": "repair"})), says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    completes(&project, &["answer", "last", "Passing it on."]);
    assert!(project.prompts()[2].starts_with("The answer to your question:\n"), "{:?}", project.prompts());
}

#[test]
fn changes_while_suspended_are_not_in_the_diff() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Is it there?"},
        says_with("work", "handoff", json!({"writes": [{"path": "b.txt", "content": "b\n"}]})),
        says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    project.write("a.txt", "mine\n");
    completes(&project, &["answer", "last", "now it is"]);
    let diff = project.run(&["diff", "last", "--json"]).json();
    let files: Vec<&str> =
        diff["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(files, ["b.txt"]);
}

#[test]
fn an_answer_applies_to_one_question() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Which colour?"}, {"step": "work", "asks_user": "Which size?"},
        says("work", "handoff"), says("close", "closing")
    ]));
    assert_eq!(project.go(&[]).code, 3);
    assert_eq!(project.run(&["answer", "last", "red", "--no-continue"]).code, 0);
    assert_eq!(project.run(&["answer", "last", "no, blue", "--no-continue"]).code, 2);
    let ran = project.run(&["resume", "last"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(waiting(&project)["detail"], "Which size?");
}

#[test]
fn changes_after_ctrl_c_are_not_attributed_to_a_step() {
    // The step may only read, and the ask that is cut off has written nothing.
    let project = small()
        .with("work", json!({"permissionMode": "plan"}))
        .project(json!([says_with("work", "handoff", json!({"runs": [LONG]})), says("close", "closing")]));
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::INT);
    assert_eq!(job.end().code, 130);
    project.write("user.txt", "mine\n");
    project.write(".gitignore", "/script*\n");
    project.write("script-go", "");
    completes(&project, &["resume", "last"]);
    assert_eq!(project.read("user.txt"), "mine\n");
    assert_eq!(project.run(&["diff", "last", "--json"]).json()["files"], json!([]));
}

#[test]
fn writes_of_an_interrupted_ask_are_reported_at_once() {
    let edit = ["echo x >> p.txt", LONG];
    let project = small()
        .project(json!([says_with("work", "handoff", json!({ "runs": edit })), says("close", "closing")]));
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(Signal::INT);
    let ran = job.end();
    assert!(ran.stderr.contains("\nchanged     1 file: p.txt +1\n"), "{}", ran.stderr);
    assert!(project.run(&["diff", "last"]).stdout.contains("+++ b/p.txt"));
}

#[test]
fn limits_given_on_resume_apply_to_a_waiting_answer() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Which?"}, says("work", "handoff"), says("close", "closing")
    ]));
    assert_eq!(project.go(&["--max-iterations", "1"]).code, 3);
    assert_eq!(project.run(&["answer", "last", "this", "--no-continue"]).code, 0);
    completes(&project, &["resume", "last", "--max-iterations", "5"]);
}
