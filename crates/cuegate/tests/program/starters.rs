//! The pieces that `init` writes: created and kept files, and a complete run of each.

use crate::support::{Project, Ran, rows, tidy};
use insta::assert_snapshot;
use serde_json::{Value, json};

const PIECES: [&str; 6] = ["minimal-takt", "develop", "plan", "test-first", "review-only", "research"];

/// A program with a passing test.
const GREETING: [(&str, &str); 4] = [
    (".gitignore", "/script.json\n"),
    ("Makefile", ".PHONY: test\ntest:\n\t@sh tests/run.sh\n"),
    ("greet.sh", "echo bye\n"),
    (
        "tests/run.sh",
        "for test in tests/test_*.sh; do\n  sh \"$test\" || { echo \"FAIL: $test\"; exit 1; }\ndone\n",
    ),
];
const TEST: (&str, &str) = ("tests/test_bye.sh", "sh greet.sh | grep -q bye\n");

/// A committed repository with a starter.
fn project(starter: &str, more: &[&str]) -> Project {
    let project = Project::empty();
    for (path, text) in GREETING.iter().chain([&TEST]) {
        project.write(path, text);
    }
    project.init();
    written(&project, &[&[starter], more].concat());
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "a piece"]);
    project
}

/// The output of `init … --json`.
fn written(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["init", "--json", "--no-try"], args].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
    ran.json()
}

fn sound(project: &Project, name: &str) {
    let ran = project.run(&["check", name, "--strict"]);
    let last = ran.stderr.lines().last();
    assert_eq!((ran.code, last), (0, Some("sound: 0 errors, 0 warnings")), "{name}: {}", ran.stderr);
}

/// Runs a piece with these answers.
fn run(project: &Project, name: &str, answers: &Value) -> Ran {
    project.script("script.json", answers);
    project.run(&["run", name, "Greet with hello.", "--script", "script.json", "--json"])
}

fn ended(project: &Project, name: &str, answers: &Value, code: i32) -> Value {
    let ran = run(project, name, answers);
    assert_eq!(ran.code, code, "{}", ran.stderr);
    ran.json()
}

/// An answer that leaves a report.
fn says(step: &str, outcome: &str, report: &str) -> Value {
    says_so(step, outcome, report, &format!("{step} says: {outcome}."))
}

fn says_so(step: &str, outcome: &str, report: &str, text: &str) -> Value {
    let mut reports = serde_json::Map::new();
    reports.insert(report.to_owned(), format!("# {report}\n\n{text}\n").into());
    json!({"step": step, "output": {"outcome": outcome, "response": text, "reports": reports}})
}

/// The same, and writes a file.
fn writes(mut answer: Value, kind: &str, path: &str, text: &str) -> Value {
    answer["kind"] = kind.into();
    answer["writes"] = json!([{"path": path, "content": text}]);
    answer
}

fn judged(step: &str, outcome: &str) -> Value {
    json!({"step": step, "kind": "judge", "output": {"outcome": outcome, "reason": "Looked."}})
}

/// A report of the last run.
fn report(project: &Project, name: &str) -> String {
    let run = project.status()["run"].as_str().unwrap().to_owned();
    project.read(&format!(".cuegate/runs/{run}/reports/{name}"))
}

/// The changes that git reports.
fn changed(project: &Project) -> String {
    project.git(&["status", "--porcelain", "--untracked-files=all", "--", ":!.cuegate"])
}

#[test]
fn lists_the_starters() {
    let project = Project::empty();
    assert_snapshot!(project.run(&["init", "--list"]).stdout.trim_end(), @"
    minimal       one task: understand it, do it, report; done only when the project's tests pass
    minimal-takt  one task, as a TAKT workflow: implement, review by another agent, fix
    develop       one task: plan, implement, parallel reviews, fix, supervise; loops are monitored
                  also called plan-implement-review-fix-supervise
    plan          a wish: questions to you make it a task with acceptance criteria, then as `develop`
    test-first    one task: failing tests, a review of them, then the code that makes them pass
    review-only   a change: correctness, tests and security reviewed in parallel; nothing is edited
    research      a question: split, researched, checked, answered with sources; nothing is edited
    ");
    let listed = project.run(&["init", "--list", "--json"]).json();
    assert_eq!(listed["starters"][2]["also"], "plan-implement-review-fix-supervise");
}

#[test]
fn prints_the_written_files_and_the_next_commands() {
    let project = Project::empty();
    for (path, text) in GREETING {
        project.write(path, text);
    }
    project.init();
    let ran = project.run(&["init", "plan-implement-review-fix-supervise"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    wrote       .takt/workflows/develop.yaml in PROJECT
                23 other files in .takt that it references
    tests       make test (target `test` of Makefile)
                each edit is done only when this passes, within 10 minutes
    trying      make test (at most 2 minutes; `--no-try` skips it)
                fails before any change: exit 2
                | FAIL: tests/test_*.sh
                | sh: 0: cannot open tests/test_*.sh: No such file
                | make: *** [Makefile:3: test] Error 1
                fix it first, unless that is the task of the first run
    next        cuegate check develop
                cuegate show develop
                cuegate run develop "a rehearsal" --script .takt/rehearsals/develop.yaml # no agent, no changes
                cuegate run develop "what to do" --provider claude
    "#);
    assert_snapshot!(ran.stdout.trim_end(), @"
    .takt/instructions/fix.md
    .takt/instructions/implement.md
    .takt/instructions/plan.md
    .takt/instructions/review-correctness.md
    .takt/instructions/review-tests.md
    .takt/instructions/supervise.md
    .takt/knowledge/project.md
    .takt/personas/coder.md
    .takt/personas/correctness-reviewer.md
    .takt/personas/planner.md
    .takt/personas/supervisor.md
    .takt/personas/test-reviewer.md
    .takt/policies/editing.md
    .takt/policies/evidence.md
    .takt/policies/read-only.md
    .takt/policies/reviewing.md
    .takt/policies/testing.md
    .takt/report-formats/changes.md
    .takt/report-formats/fixes.md
    .takt/report-formats/plan.md
    .takt/report-formats/review.md
    .takt/report-formats/supervision.md
    .takt/rehearsals/develop.yaml
    .takt/workflows/develop.yaml
    ");
    for path in ran.stdout.lines() {
        assert!(!project.read(path).is_empty(), "{path}");
    }
    assert!(!project.path().join(".cuegate").exists(), "no state is made");
    sound(&project, "develop");
}

#[test]
fn every_starter_passes_check_with_and_without_tests() {
    for name in PIECES {
        sound(&project(name, &[]), name);
        let bare = Project::empty();
        bare.write("README", "Nothing to run.\n");
        bare.init();
        let said = written(&bare, &[name, "--name", "mine"]);
        assert_eq!(said["definition"], ".takt/workflows/mine.yaml");
        assert_eq!(said["test"], Value::Null);
        assert!(!bare.read(".takt/workflows/mine.yaml").contains("command:"), "{name}");
        sound(&bare, "mine");
    }
}

#[test]
fn existing_shared_files_are_kept() {
    let project = project("develop", &[]);
    project.write(".takt/personas/supervisor.md", "# Supervisor\n\nOurs.\n");
    let ran = project.run(&["init", "test-first"]);
    assert_eq!(ran.code, 0);
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    wrote       .takt/workflows/test-first.yaml in PROJECT
                9 other files in .takt that it references
    shared      11 files already existed, unchanged
    kept        .takt/personas/supervisor.md: existed with other content and was not overwritten
    tests       make test (target `test` of Makefile)
                it must fail after the tests are written, and pass after the code is written
    trying      make test (at most 2 minutes; `--no-try` skips it)
                passes
    trying      the same where runs work: in a fresh worktree, in the sandbox
                passes
    next        cuegate check test-first
                cuegate show test-first
                cuegate run test-first "what to do" --provider claude
    "#);
    assert_eq!(project.read(".takt/personas/supervisor.md"), "# Supervisor\n\nOurs.\n");
    assert!(!ran.stdout.contains("personas/supervisor.md"), "{}", ran.stdout);
    sound(&project, "develop");
    sound(&project, "test-first");

    let said = written(&project, &["review-only"]);
    assert_eq!(said["kept"], json!([".takt/personas/supervisor.md"]));
    let before = changed(&project);
    let again = project.run(&["init", "review-only"]);
    assert_eq!((again.code, &*again.stdout), (2, ""));
    assert!(again.stderr.contains("/.takt/workflows/review-only.yaml` already exists"), "{}", again.stderr);
    assert_eq!(changed(&project), before);
}

#[test]
fn gates_contain_the_test_command_verbatim() {
    let command = "echo \"a: 'b'\" # {task} {uv-x} `y`\n\tmake test";
    let project = project("develop", &["--test", command]);
    sound(&project, "develop");
    let shown = project.run(&["show", "develop"]).stdout;
    assert!(shown.contains("make test"), "{shown}");
    let refused = project.run(&["init", "research", "--test", "make test"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("`research` does not run a test command"), "{}", refused.stderr);
}

#[test]
fn a_path_is_printed_if_an_agent_has_the_same_name() {
    let project = project("develop", &[]);
    written(&project, &["minimal", "--name", "fix"]);
    let ran = project.run(&["init", "review-only", "--name", "fix"]);
    assert!(ran.stderr.contains("cuegate check .takt/workflows/fix.yaml\n"), "{}", ran.stderr);
    sound(&project, ".takt/workflows/fix.yaml");
}

#[test]
fn rehearsals_complete_without_changes() {
    for name in ["minimal-takt", "develop", "plan", "review-only", "research"] {
        let project = project(name, &["--name", "mine"]);
        let script = ".takt/rehearsals/mine.yaml";
        let ran = project.run(&["run", "mine", "A rehearsal.", "--script", script, "--json"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(ran.json()["state"], "completed", "{name}");
        assert_eq!(changed(&project), "", "{name}");
    }
}

#[test]
fn a_wish_is_agreed_on_by_questions_and_then_developed() {
    let project = project("plan", &[]);
    let blocked = |why: &str| json!({"step": "agree", "output": {"blocked": why}});
    let agreed = "# Task\n\nThe greeting says hello.\n";
    let mut answers = vec![
        blocked("1) Who is greeted? (I would take everybody.)"),
        blocked("# Task\n\nThe greeting says hello.\n\nIs this right?"),
        json!({"step": "agree", "output": {"outcome": "The person has agreed to the task", "response": "Agreed.",
            "reports": {"task.md": agreed}}}),
    ];
    let outcome = |step: &str, outcome: &str, report: &str| says(step, outcome, report);
    answers.extend([outcome("develop/plan", "Nothing has to be changed", "develop/00-plan.md")]);
    project.script("script.json", &json!(answers));
    let ran = project.run(&["run", "plan", "Be nicer.", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("Who is greeted?"), "{}", ran.stderr);
    let ran = project.run(&["answer", "Everybody."]);
    assert!(ran.code == 3 && ran.stderr.contains("Is this right?"), "{}", ran.stderr);
    let ran = project.run(&["answer", "yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(report(&project, "task.md"), agreed);
    // A report of the called workflow is found by its own name.
    let printed = project.run(&["report", "last", "00-plan.md"]);
    assert!(printed.code == 0 && printed.stdout.starts_with("# develop/00-plan.md"), "{printed:?}");
    // What was agreed is in the prompts of what follows; the wish alone was in the first.
    let prompts = project.prompts();
    assert!(
        !prompts[0].contains("The greeting says hello.") && prompts[1].contains("Everybody."),
        "{prompts:#?}"
    );
    assert!(prompts[3].contains("What was agreed takes the place of the wish"), "{}", prompts[3]);
    assert!(prompts[3].contains("The greeting says hello."), "{}", prompts[3]);
}

#[test]
fn plan_runs_without_init() {
    let project = project("minimal-takt", &[]);
    let ran = project.run(&["check", "plan", "--strict"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = project.run(&["init", "plan", "--name", "develop"]);
    assert!(ran.code == 2 && ran.stderr.contains("calls `develop`"), "{}", ran.stderr);
}

#[test]
fn a_similar_starter_name_is_suggested() {
    let ran = Project::empty().run(&["init", "develp"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean `develop`?"), "{}", ran.stderr);
}

// minimal-takt

#[test]
fn the_minimal_piece_implements_reviews_and_fixes() {
    let project = project("minimal-takt", &[]);
    let made = |step: &str, outcome: &str, kind: &str, greeting: &str| {
        let answer = json!({"step": step, "output": {"outcome": outcome, "response": "Done."}});
        let mut answer = writes(answer, kind, "greet.sh", &format!("echo {greeting}\n"));
        let test = json!({"path": TEST.0, "content": "sh greet.sh | grep -q hello\n"});
        answer["writes"].as_array_mut().unwrap().push(test);
        answer
    };
    let answers = json!([
        made("implement", MADE, "work", "hi"),
        made("implement", MADE, "remedy", "hello"),
        says("review", "changes needed", "review.md"),
        made("fix", FIXED, "work", "hello there"),
        says("review", "approved", "review.md"),
    ]);
    let result = ended(&project, "minimal-takt", &answers, 0);
    assert_snapshot!(rows(&result), @"
    implement: The change is made and shown to work → implement
    implement (remedy): The change is made and shown to work → review
    review: changes needed → fix
    fix: Every open finding is fixed or answered → review
    review: approved → @completed
    ");
    assert!(report(&project, "review.md").contains("review says: approved."));
    assert!(project.prompts()[3].contains("review says: changes needed."), "{}", project.prompts()[3]);
}

// develop

const PLANNED: &str = "The task is clear and can be done here";
const MADE: &str = "The change is made and shown to work";
const FIXED: &str = "Every open finding is fixed or answered";
const DONE: &str = "Everything that was asked for is there and shown";

fn reviewed(correctness: &str, round: u32) -> Vec<Value> {
    vec![
        says_so(
            "correctness-review",
            correctness,
            "02-correctness-review.md",
            &format!("C1 in round {round}."),
        ),
        says("test-review", "approved", "02-test-review.md"),
    ]
}

/// Changes both at once: the old test requires the old greeting.
fn greets(kind: &str, step: &str, outcome: &str, report: &str, greeting: &str) -> Value {
    let mut answer = writes(says(step, outcome, report), kind, "greet.sh", &format!("echo {greeting}\n"));
    let test = json!({"path": TEST.0, "content": "sh greet.sh | grep -q hello\n"});
    answer["writes"].as_array_mut().unwrap().push(test);
    answer
}

#[test]
fn develop_goes_through_fixes_a_judge_and_a_supervisor() {
    let project = project("develop", &[]);
    let mut answers = vec![
        says("plan", PLANNED, "00-plan.md"),
        greets("work", "implement", MADE, "01-changes.md", "hi"),
        greets("remedy", "implement", MADE, "01-changes.md", "hello"),
    ];
    for round in 1..=3 {
        answers.extend(reviewed("changes needed", round));
        answers.push(greets("work", "fix", FIXED, "03-fixes.md", &format!("hello # {round}")));
    }
    answers.push(judged("monitor:reviewers+fix", "Findings are closed for good, and few come anew"));
    answers.extend(reviewed("approved", 4));
    answers.push(says(
        "supervise",
        "Something is missing or wrong, and the plan can stay",
        "04-supervision.md",
    ));
    answers.push(greets("work", "fix", FIXED, "03-fixes.md", "hello there"));
    answers.extend(reviewed("approved", 5));
    answers.push(says("supervise", DONE, "04-supervision.md"));
    let result = ended(&project, "develop", &json!(answers), 0);
    assert_snapshot!(rows(&result), @r#"
    plan: The task is clear and can be done here → implement
    implement: The change is made and shown to work → implement
    implement (remedy): The change is made and shown to work → reviewers
    correctness-review: changes needed → -
    test-review: approved → -
    reviewers: any("changes needed") → fix
    fix: Every open finding is fixed or answered → reviewers
    correctness-review: changes needed → -
    test-review: approved → -
    reviewers: any("changes needed") → fix
    fix: Every open finding is fixed or answered → reviewers
    correctness-review: changes needed → -
    test-review: approved → -
    reviewers: any("changes needed") → fix
    monitor:reviewers+fix: Findings are closed for good, and few come anew → reviewers
    fix: Every open finding is fixed or answered → reviewers
    correctness-review: approved → -
    test-review: approved → -
    reviewers: all("approved") → supervise
    supervise: Something is missing or wrong, and the plan can stay → fix
    fix: Every open finding is fixed or answered → reviewers
    correctness-review: approved → -
    test-review: approved → -
    reviewers: all("approved") → supervise
    supervise: Everything that was asked for is there and shown → @completed
    "#);
    assert_eq!(result["state"], "completed");
    assert_eq!(project.read("greet.sh"), "echo hello there\n");
    assert_eq!(changed(&project), " M greet.sh\n M tests/test_bye.sh\n");
    assert!(report(&project, "02-correctness-review.md").contains("C1 in round 5."));
    assert!(report(&project, "04-supervision.md").contains(DONE));

    let prompts = project.prompts();
    let of = |words: &str| {
        prompts.iter().find(|prompt| prompt.contains(words)).unwrap_or_else(|| panic!("{words}"))
    };
    assert!(of("# Carry out the plan").contains("plan says: "), "the plan stands in the prompt");
    assert!(of("FAIL: tests/test_bye.sh").contains("make test"), "a remedy is told what the tests said");
    let judge = of("have followed each other 3 times");
    assert!(judge.contains("C1 in round 3.") && !judge.contains("C1 in round 2."), "{judge}");
}

#[test]
fn a_judge_can_stop_a_loop() {
    let project = project("develop", &[]);
    let mut answers = vec![
        says("plan", PLANNED, "00-plan.md"),
        greets("work", "implement", MADE, "01-changes.md", "hello"),
    ];
    for round in 1..=3 {
        answers.extend(reviewed("changes needed", round));
        answers.push(says("fix", FIXED, "03-fixes.md"));
    }
    answers.push(judged("monitor:reviewers+fix", "It goes in circles, and a person has to look at it"));
    let result = ended(&project, "develop", &json!(answers), 1);
    assert_eq!(result["state"], "aborted");
}

#[test]
fn a_run_fails_if_its_tests_keep_failing() {
    let project = project("develop", &[]);
    let mut broken = writes(says("implement", MADE, "01-changes.md"), "work", "greet.sh", "exit 1\n");
    let first = broken.clone();
    broken["kind"] = "remedy".into();
    broken["times"] = 0.into();
    let result = ended(&project, "develop", &json!([says("plan", PLANNED, "00-plan.md"), first, broken]), 1);
    assert_eq!(result["state"], "failed", "{result}");
}

// test-first

#[test]
fn test_first_requires_a_failing_test_before_the_code() {
    let project = project("test-first", &[]);
    let red = |kind: &str, test: &str| {
        let answer =
            says("write-tests", "Each behaviour has a test that fails because it is missing", "01-tests.md");
        writes(answer, kind, "tests/test_hello.sh", test)
    };
    let green = |kind: &str, code: &str| {
        let answer =
            says("implement", "The tests pass, and the code does what the behaviours say", "03-changes.md");
        writes(answer, kind, "greet.sh", code)
    };
    let answers = json!([
        says("behaviour", "The behaviours are clear and can be tested here", "00-behaviour.md"),
        red("work", "true\n"),
        red("remedy", "sh greet.sh | grep -q hello\n"),
        says("review-tests", "The tests can stand", "02-test-review.md"),
        green("work", "echo bye hi\n"),
        green("remedy", "echo bye hello\n"),
        says("verify", DONE, "04-verification.md"),
    ]);
    let result = ended(&project, "test-first", &answers, 0);
    assert_snapshot!(rows(&result), @"
    behaviour: The behaviours are clear and can be tested here → write-tests
    write-tests: Each behaviour has a test that fails because it is missing → write-tests
    write-tests (remedy): Each behaviour has a test that fails because it is missing → review-tests
    review-tests: The tests can stand → implement
    implement: The tests pass, and the code does what the behaviours say → implement
    implement (remedy): The tests pass, and the code does what the behaviours say → verify
    verify: Everything that was asked for is there and shown → @completed
    ");
    assert_eq!(changed(&project), " M greet.sh\n?? tests/test_hello.sh\n");
    let prompts = project.prompts();
    assert!(prompts[2].contains("exit code 0: here the tests have to run, and to fail"), "{}", prompts[2]);
    assert!(prompts[5].contains("FAIL: tests/test_hello.sh"), "{}", prompts[5]);
}

#[test]
fn tests_that_cannot_be_run_do_not_count_as_failing() {
    let project = project("test-first", &["--test", "no-such-program # really"]);
    let mut answer =
        says("write-tests", "Each behaviour has a test that fails because it is missing", "01-tests.md");
    answer["times"] = 0.into();
    let answers = json!([
        says("behaviour", "The behaviours are clear and can be tested here", "00-behaviour.md"),
        answer
    ]);
    let result = ended(&project, "test-first", &answers, 1);
    assert_eq!(result["state"], "failed", "{result}");
    assert!(project.prompts()[2].contains("exit code 127: here the tests have to run, and to fail"));
}

// review-only

fn three_reviews(security: &str) -> Vec<Value> {
    vec![
        says("scope", "There is a change to review", "00-plan.md"),
        says("correctness-review", "approved", "02-correctness-review.md"),
        says("test-review", "approved", "02-test-review.md"),
        says("security-review", security, "02-security-review.md"),
    ]
}

#[test]
fn review_only_reports_and_edits_nothing() {
    let project = project("review-only", &[]);
    project.write("greet.sh", "echo hello\n");
    let before = changed(&project);
    let mut answers = three_reviews("changes needed");
    answers.push(says("conclude", "The change has to be changed first", "review.md"));
    let result = ended(&project, "review-only", &json!(answers), 0);
    assert_snapshot!(rows(&result), @r#"
    scope: There is a change to review → reviewers
    correctness-review: approved → -
    test-review: approved → -
    security-review: changes needed → -
    reviewers: any("changes needed") → conclude
    conclude: The change has to be changed first → @completed
    "#);
    assert_eq!(changed(&project), before);
    assert!(report(&project, "review.md").contains("The change has to be changed first."));
    let prompts = project.prompts();
    let conclude = prompts.iter().find(|prompt| prompt.contains("# Conclude the review")).unwrap();
    assert!(conclude.contains("security-review says: changes needed."), "{conclude}");
}

#[test]
fn a_reviewer_that_edits_ends_the_run() {
    let project = project("review-only", &[]).outside();
    let mut answers = three_reviews("approved");
    answers[0] = writes(answers[0].clone(), "work", "greet.sh", "echo fixed\n");
    let result = ended(&project, "review-only", &json!(answers), 1);
    assert_eq!(result["state"], "failed");
    assert!(result["reason"].as_str().unwrap().contains("greet.sh"), "{result}");
}

#[test]
fn nothing_to_review_aborts_the_run() {
    let project = project("review-only", &[]);
    let result = ended(
        &project,
        "review-only",
        &json!([says("scope", "There is nothing to review", "00-plan.md")]),
        1,
    );
    assert_eq!(result["state"], "aborted");
}

// research

#[test]
fn research_writes_its_report() {
    let project = project("research", &[]);
    let mut answers =
        vec![says("questions", "The question is clear enough to look for answers", "00-questions.md")];
    for _ in 0..3 {
        answers.push(says(
            "dig",
            "Every part is answered, or is a gap with what was tried",
            "01-findings.md",
        ));
        answers.push(says(
            "check",
            "Something is missing or wrong that could change the answer",
            "02-check.md",
        ));
    }
    answers.push(judged("monitor:dig+check", "What is missing will not be found this way"));
    answers.push(says_so(
        "write",
        "The report is written",
        "research.md",
        "It greets with bye [seen]: greet.sh:1.",
    ));
    let result = ended(&project, "research", &json!(answers), 0);
    assert_snapshot!(rows(&result), @"
    questions: The question is clear enough to look for answers → dig
    dig: Every part is answered, or is a gap with what was tried → check
    check: Something is missing or wrong that could change the answer → dig
    dig: Every part is answered, or is a gap with what was tried → check
    check: Something is missing or wrong that could change the answer → dig
    dig: Every part is answered, or is a gap with what was tried → check
    monitor:dig+check: What is missing will not be found this way → write
    check: Something is missing or wrong that could change the answer → write
    write: The report is written → @completed
    ");
    assert!(report(&project, "research.md").contains("It greets with bye [seen]: greet.sh:1."));
    assert_eq!(changed(&project), "");
}

#[test]
fn a_name_that_two_definitions_of_the_project_have_is_none_of_a_starter() {
    let project = Project::empty();
    for folder in [".takt/workflows", ".takt/pieces"] {
        project.write(
            &format!("{folder}/minimal.yaml"),
            "name: minimal\nmax_steps: 1\ninitial_step: a\nsteps:\n  - name: a\n    instruction: A.\n    rules:\n      - { condition: Done, next: COMPLETE }\n",
        );
    }
    project.init();
    for command in ["check", "show", "price", "run"] {
        let ran = project.run(&[command, "minimal"]);
        assert_eq!(ran.code, 2, "{command}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(".takt/workflows/minimal.yaml"), "{command}: {}", ran.stderr);
    }
}
