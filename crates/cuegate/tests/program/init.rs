//! `init`: the written files, the detection of the test command, and runs of the written definition.

use crate::support::{Project, rows, tidy};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A repository with these files, committed.
fn repository(files: &[(&str, &str)]) -> Project {
    let project = Project::empty();
    for (path, text) in files {
        project.write(path, text);
    }
    project.init();
    project
}

/// A program with a failing test.
const GREETING: [(&str, &str); 3] = [
    ("Makefile", ".PHONY: test\ntest:\n\t@sh greet_test.sh\n"),
    ("greet.sh", "echo bye\n"),
    (
        "greet_test.sh",
        "got=$(sh greet.sh)\ntest \"$got\" = hello && exit 0\necho \"FAIL: greets\"\necho \"said $got,\nnot hello\" >&2\nexit 1\n",
    ),
];

/// The output of `init minimal --json`, without trying the commands.
fn written(project: &Project, more: &[&str]) -> Value {
    let ran = project.run(&[&["init", "minimal", "--json", "--no-try"], more].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
    ran.json()
}

/// Asserts that the definition has no findings.
fn sound(project: &Project, name: &str) {
    let ran = project.run(&["check", name, "--strict"]);
    assert_eq!((ran.code, ran.stderr.lines().last()), (0, Some("sound: 0 errors, 0 warnings")));
}

/// The test command of a definition.
fn validator(project: &Project, name: &str) -> Value {
    let registry = project.read(&format!(".agent/{name}/steps_registry.json"));
    let registry: Value = serde_json::from_str(&registry).unwrap();
    registry["validators"]["tests"]["command"].clone()
}

fn refused(project: &Project, args: &[&str], error: &str) {
    let ran = project.run(args);
    assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(error), "{args:?}: {}", ran.stderr);
}

#[test]
fn prints_the_written_files_and_the_next_commands() {
    let project = repository(&GREETING);
    project.write("package.json", r#"{"scripts": {"test": "x"}}"#);
    let ran = project.run(&["init", "minimal"]);
    assert_eq!(ran.code, 0);
    assert_snapshot!(ran.stdout.trim_end(), @r"
    .agent/minimal/agent.json
    .agent/minimal/steps_registry.json
    .agent/minimal/schemas/steps.schema.json
    .agent/minimal/prompts/system.md
    .agent/minimal/prompts/steps/initial/task/f_default.md
    .agent/minimal/prompts/steps/continuation/task/f_default.md
    .agent/minimal/prompts/steps/closure/task/f_default.md
    .agent/minimal/prompts/steps/retry/task/f_failed_command-failed.md
    ");
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    wrote       .agent/minimal in PROJECT, 8 files
    tests       make test (target `test` of Makefile)
                a run is done only when this passes, within 10 minutes
    also seen   npm test (script `test` of package.json)
    trying      make test (at most 2 minutes; `--no-try` skips it)
                fails before any change: exit 2
                | FAIL: greets
                | said bye,
                | not hello
                fix it first, unless that is the task of the first run
    next        cuegate check minimal
                cuegate show minimal
                cuegate run minimal "what to do" --provider claude
    "#);
    for path in ran.stdout.lines() {
        assert!(!project.read(path).is_empty(), "{path}");
    }
    assert!(!project.path().join(".cuegate").exists(), "no state is made");
    sound(&project, "minimal");
    let shown = project.run(&["show", "minimal"]);
    assert!(shown.stdout.contains("tests  make test  passes: exit 0"), "{}", shown.stdout);
}

#[test]
fn the_test_command_is_detected_per_project_type() {
    let script = r#"{"scripts": {"test": "x"}}"#;
    let cases: [(&[(&str, &str)], &str); 24] = [
        (&[("Makefile", "test:\n\tx\n")], "make test"),
        (&[("justfile", "test:\n    x\n")], "just test"),
        (&[("package.json", script)], "npm test"),
        (&[("package.json", script), ("pnpm-lock.yaml", "")], "pnpm test"),
        (&[("deno.json", r#"{"tasks": {"test": "x"}}"#)], "deno task test"),
        (&[("composer.json", script)], "composer test"),
        (&[("Cargo.toml", "[package]\n")], "cargo test"),
        (&[("Cargo.toml", "[workspace]\n"), (".config/nextest.toml", "")], "cargo nextest run --workspace"),
        (&[("go.mod", "")], "go test ./..."),
        (&[("pyproject.toml", "[tool.pytest.ini_options]\n"), ("uv.lock", "")], "uv run pytest"),
        (&[("pom.xml", ""), ("mvnw", "")], "sh mvnw -B test"),
        (&[("build.gradle", "")], "gradle test"),
        (&[("Gemfile", ""), ("spec/a.rb", "")], "bundle exec rspec"),
        (&[("mix.exs", "")], "mix test"),
        (&[("rebar.config", "")], "rebar3 eunit"),
        (&[("phpunit.xml", "")], "vendor/bin/phpunit"),
        (&[("My 'App.sln", ""), ("a.csproj", "")], r"dotnet test './My '\''App.sln'"),
        (&[("Package.swift", "")], "swift test"),
        (&[("deno.json", "{}")], "deno test"),
        (&[("stack.yaml", "")], "stack test"),
        (&[("build.sbt", "")], "sbt test"),
        (&[("dune-project", "")], "dune test"),
        (&[("gleam.toml", "")], "gleam test"),
        (&[("Makefile", "check:\n\tx\n")], "make check"),
    ];
    for (files, command) in cases {
        let project = Project::empty();
        for (path, text) in files {
            project.write(path, text);
        }
        let said = written(&project, &[]);
        assert_eq!(said["test"]["command"], command, "{files:?}");
        assert_eq!(said["others"], json!([]), "{files:?}");
        assert_eq!(validator(&project, "minimal"), command);
        sound(&project, "minimal");
    }
}

#[test]
fn the_best_test_command_is_used_and_the_others_are_listed() {
    let project = repository(&[("Cargo.toml", "[package]\n"), ("Makefile", "test:\n\tx\n"), ("go.mod", "")]);
    let said = written(&project, &[]);
    assert_eq!(said["schema"], "cuegate/init/v1");
    assert_eq!(said["test"], json!({"command": "make test", "source": "target `test` of Makefile"}));
    assert_eq!(
        said["others"],
        json!([
            {"command": "cargo test", "source": "Cargo.toml"},
            {"command": "go test ./...", "source": "go.mod"}
        ])
    );
}

#[test]
fn a_given_test_command_is_used_verbatim() {
    let project = repository(&GREETING);
    for (name, command) in [
        ("quotes", r#"sh -c "test \"$(echo 'a  b')\" = 'a  b'" # `x` \ {x} {{x}}"#),
        ("lines", "set -e\necho one\n\techo ```two```"),
        ("marks", "echo @NAME@ @TESTS@ {uv-x} {input_text}"),
    ] {
        let said = written(&project, &["--name", name, "--test", command]);
        assert_eq!(said["test"], json!({"command": command, "source": "--test"}));
        assert_eq!(said["others"][0]["command"], "make test", "what was seen is told all the same");
        assert_eq!(validator(&project, name), command);
        assert!(
            !project.read(&format!(".agent/{name}/prompts/system.md")).contains(command),
            "it is written once"
        );
        sound(&project, name);
    }
    refused(&project, &["init", "minimal", "--test", " "], "the test command is empty");
    refused(&project, &["init", "minimal", "--check", " "], "a check is empty");
    refused(&project, &["init", "research", "--check", "x"], "`research` does not run checks");
    assert!(!project.path().join(".agent/minimal").exists());
}

#[test]
fn without_a_test_command_a_hint_is_printed() {
    let project = repository(&[("README", "Nothing to run.\n")]);
    let ran = project.run(&["init", "minimal", "--name", "plain"]);
    assert_eq!(ran.code, 0);
    assert!(!ran.stdout.contains("retry"), "{}", ran.stdout);
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    wrote       .agent/plain in PROJECT, 7 files
    tests       none found: a run is done when the agent reports it; no test command verifies it
                to set a command, remove that folder and run cuegate init minimal --name plain --test "COMMAND"
    next        cuegate check plain
                cuegate show plain
                cuegate run plain "what to do" --provider claude
    "#);
    sound(&project, "plain");
    assert_eq!(validator(&project, "plain"), Value::Null);
}

#[test]
fn nothing_is_overwritten() {
    let project = repository(&GREETING);
    written(&project, &[]);
    project.write(".agent/minimal/agent.json", "mine");
    let before = project.git(&["status", "--porcelain", "--untracked-files=all"]);
    refused(&project, &["init", "minimal"], "/.agent/minimal` already exists; nothing was overwritten");
    assert_eq!(project.read(".agent/minimal/agent.json"), "mine");
    assert_eq!(
        project.git(&["status", "--porcelain", "--untracked-files=all"]),
        before,
        "nothing is left behind"
    );
    let said = written(&project, &["--name", "other"]);
    assert_eq!((&said["name"], &said["folder"]), (&json!("other"), &json!(".agent/other")));
    sound(&project, "other");
}

#[test]
fn names_cannot_leave_their_folder() {
    let project = repository(&GREETING);
    for name in ["../out", "a/b", "/tmp/x", "..", ".", "", "A", "a b"] {
        refused(&project, &["init", "minimal", "--name", name], "is not a valid agent name");
    }
    assert!(!project.path().join(".agent").exists());
    refused(&project, &["init", "maximal"], "there is no starter `maximal`");
    assert_eq!(project.run(&["init"]).stdout, project.run(&["init", "--list"]).stdout);
}

#[test]
fn lists_the_starters() {
    let project = Project::empty();
    let ran = project.run(&["init", "--list"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert!(
        ran.stdout.starts_with("minimal       one task: understand it, do it, report; "),
        "{}",
        ran.stdout
    );
    let listed = project.run(&["init", "--list", "--json"]).json();
    assert_eq!(
        (&listed["schema"], &listed["starters"][0]["name"]),
        (&json!("cuegate/starters/v1"), &json!("minimal"))
    );
}

#[test]
fn from_a_folder_below_the_top() {
    let project = repository(&GREETING);
    project.write("sub/Cargo.toml", "[package]\n");
    let below =
        |args: &[&str]| project.command(args).current_dir(project.path().join("sub")).output().unwrap();
    let output = below(&["init", "minimal"]);
    assert!(output.status.success());
    assert_eq!(validator(&project, "minimal"), "cd sub && cargo test", "the nearest folder decides");
    let output = below(&["init", "minimal", "--name", "given", "--test", "x y", "--no-try"]);
    assert!(output.status.success());
    assert_eq!(validator(&project, "given"), "cd sub && x y", "it runs where it was typed");
    assert!(!project.path().join("sub/.agent").exists());
    assert!(below(&["check", "minimal"]).status.success());
}

#[test]
fn the_only_package_decides_and_several_are_listed() {
    let project = repository(&[
        ("web/package.json", r#"{"scripts": {"test": "x", "lint": "x", "format:check": "x --write"}}"#),
        ("pnpm-lock.yaml", ""),
        ("node_modules/x/package.json", r#"{"scripts": {"test": "x"}}"#),
    ]);
    let said = written(&project, &[]);
    assert_eq!(said["test"]["command"], "cd web && pnpm test");
    assert_eq!(said["proposed"][0]["command"], "cd web && pnpm run lint");
    assert_eq!((said["proposed"].as_array().unwrap().len(), &said["tried"]), (1, &json!([])));
    project.write("services/my api/go.mod", "");
    let said = written(&project, &["--name", "other"]);
    assert_eq!(said["test"], Value::Null);
    let packages: Vec<&str> =
        said["packages"].as_array().unwrap().iter().filter_map(|found| found["command"].as_str()).collect();
    assert_eq!(packages, ["cd './services/my api' && go test ./...", "cd web && pnpm test"]);
}

#[test]
fn commands_are_tried_once() {
    let project = repository(&GREETING);
    let ran = project.run(&["init", "minimal", "--check", "echo fine", "--check", "echo no; exit 3"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    wrote       .agent/minimal in PROJECT, 8 files
    tests       make test (target `test` of Makefile)
                a run is done only when this passes, within 10 minutes
    checks      echo fine (--check)
                echo no; exit 3 (--check)
    trying      make test (at most 2 minutes; `--no-try` skips it)
                fails before any change: exit 2
                | FAIL: greets
                | said bye,
                | not hello
                fix it first, unless that is the task of the first run
    trying      echo fine (at most 2 minutes; `--no-try` skips it)
                passes
    trying      echo no; exit 3 (at most 2 minutes; `--no-try` skips it)
                fails before any change: exit 3
                | no
                fix it first, unless that is the task of the first run
    next        cuegate check minimal
                cuegate show minimal
                cuegate run minimal "what to do" --provider claude
    "#);
    sound(&project, "minimal");
    let said = project.run(&["init", "minimal", "--json", "--name", "other", "--check", "echo fine"]).json();
    assert_eq!(
        said["tried"][1],
        json!({
            "command": "echo fine", "passed": true, "timed_out": false, "ended": "exit 0", "output": ["fine"]
        })
    );
    assert!(!project.path().join(".cuegate").exists(), "no state is made");
}

#[test]
fn passing_tests_are_tried_where_runs_work() {
    let project = repository(&[
        (".gitignore", "node_modules/\n"),
        ("package-lock.json", "{}\n"),
        ("test.sh", "test -d node_modules || { echo 'no packages'; exit 1; }\n"),
        (
            "sandboxed.sh",
            "test -z \"$OF_A_TEST_URL\" && { echo 'OF_A_TEST_URL is not set'; exit 1; } || true\n",
        ),
    ]);
    project.write("node_modules/x/index.js", "");
    let init = |command: &str, name: &str| {
        let args = ["init", "minimal", "--test", command, "--name", name];
        let ran = crate::support::Ran::of(project.command(&args).env("OF_A_TEST_URL", "x").output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        tidy(&project, &ran.stderr)
    };
    assert_snapshot!(init("sh test.sh", "a"), @r#"
    wrote       .agent/a in PROJECT, 8 files
    tests       sh test.sh (--test)
                a run is done only when this passes, within 10 minutes
    trying      sh test.sh (at most 2 minutes; `--no-try` skips it)
                passes
    setup       write `setup = "npm ci"` under `[worktree]` in cuegate.toml: a new worktree has no installed packages
    trying      the same where runs work: in a fresh worktree, in the sandbox
                fails in a fresh worktree: exit 1
                | no packages
                `sh test.sh` fails in the worktree and passes in your own working tree: a worktree has only what is committed, no installed packages
                write `setup = "npm ci"` under `[worktree]` in cuegate.toml
    next        cuegate check a
                cuegate show a
                cuegate run a "what to do" --provider claude
    "#);
    assert_snapshot!(init("sh sandboxed.sh", "b"), @r#"
    wrote       .agent/b in PROJECT, 8 files
    tests       sh sandboxed.sh (--test)
                a run is done only when this passes, within 10 minutes
    trying      sh sandboxed.sh (at most 2 minutes; `--no-try` skips it)
                passes
    setup       write `setup = "npm ci"` under `[worktree]` in cuegate.toml: a new worktree has no installed packages
    trying      the same where runs work: in a fresh worktree, in the sandbox
                fails in the sandbox: exit 1
                | OF_A_TEST_URL is not set
                `sh sandboxed.sh` fails in the sandbox, which hides the variable `OF_A_TEST_URL` that is set outside
                write `environment = ["OF_A_TEST_URL"]` under `[sandbox]` in cuegate.toml
    next        cuegate check b
                cuegate show b
                cuegate run b "what to do" --provider claude
    "#);
    assert!(!project.path().join(".cuegate").exists(), "no state is made");
    project.write("cuegate.toml", "[worktree]\nsetup = \"mkdir node_modules\"\n");
    assert_snapshot!(init("sh test.sh", "c"), @r#"
    wrote       .agent/c in PROJECT, 8 files
    tests       sh test.sh (--test)
                a run is done only when this passes, within 10 minutes
    trying      sh test.sh (at most 2 minutes; `--no-try` skips it)
                passes
    trying      the same where runs work: in a fresh worktree, in the sandbox
                passes
    next        cuegate check c
                cuegate show c
                cuegate run c "what to do" --provider claude
    "#);
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_check_decides_like_the_tests() {
    let project = repository(&GREETING);
    project.write("lint.sh", "grep -q hello greet.sh || { echo 'LINT: greet.sh'; exit 1; }\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "lint"]);
    written(&project, &["--test", "true", "--check", "sh lint.sh"]);
    let answers = json!([
        understood(),
        did("work", "hi"),
        closes("closing"),
        did("remedy", "hello"),
        closes("closing")
    ]);
    let result = run(&project, answers, 0);
    assert_eq!((&result["state"], &result["validated"]), (&json!("completed"), &json!(true)));
    assert!(project.prompts()[3].contains("LINT: greet.sh"), "{}", project.prompts()[3]);
}

#[test]
fn a_path_is_printed_if_the_name_is_ambiguous() {
    let project = repository(&GREETING);
    project.write("minimal/x", "");
    let ran = project.run(&["init", "minimal"]);
    assert!(ran.stderr.contains("cuegate check .agent/minimal\n"), "{}", ran.stderr);
    sound(&project, ".agent/minimal");
}

#[test]
fn outside_of_a_repository() {
    let project = Project::empty();
    project.write("Makefile", GREETING[0].1);
    let ran = project.run(&["init", "minimal"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("note        no git repository"), "{}", ran.stderr);
    sound(&project, "minimal");
}

// Runs of the written definition.

fn understood() -> Value {
    json!({"step": "initial.task", "output": {
        "summary": "It says bye.", "goal": "greet.sh says hello.", "plan": "Change the word in greet.sh.",
        "before": "greets failed.", "next_action": {"action": "next", "reason": "The cause is clear."}
    }})
}

fn did(kind: &str, says: &str) -> Value {
    json!({"step": "continuation.task", "kind": kind,
    "writes": [{"path": "greet.sh", "content": format!("echo {says}\n")}],
    "output": {
        "summary": format!("It says {says}."), "changed": format!("greet.sh: says {says}."),
        "tested": "make test passes.", "next_action": {"action": "handoff", "reason": "Done."}
    }})
}

fn closes(action: &str) -> Value {
    json!({"step": "closure.task", "output": {
        "summary": format!("The review says {action}."), "files": [{"path": "greet.sh", "why": "The greeting."}],
        "open": "nothing", "next_action": {"action": action, "reason": "Looked."}
    }})
}

fn run(project: &Project, answers: Value, code: i32) -> Value {
    project.write(".git/info/exclude", "script.json\n");
    project.script("script.json", &answers);
    let ran = project.run(&["run", "minimal", "Say hello.", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, code, "{}", ran.stderr);
    ran.json()
}

#[test]
fn a_failing_test_sends_the_work_back_and_a_passing_one_ends_it() {
    let project = repository(&GREETING);
    written(&project, &["--test", "sh greet_test.sh"]);
    let answers = json!([
        understood(),
        did("work", "hi"),
        closes("closing"),
        did("remedy", "hello"),
        closes("closing")
    ]);
    let result = run(&project, answers, 0);
    assert_snapshot!(rows(&result), @"
    initial.task: next → continuation.task
    continuation.task: handoff → closure.task
    closure.task: closing → continuation.task
    continuation.task (remedy): handoff → closure.task
    closure.task: closing → @completed
    ");
    assert_eq!((&result["state"], &result["validated"]), (&json!("completed"), &json!(true)));
    assert!(project.run(&["diff", "last"]).stdout.contains("-echo bye\n+echo hello\n"));
    assert_eq!(project.read("greet.sh"), "echo hello\n");
    assert_eq!(project.git(&["rev-list", "--count", "HEAD"]).trim(), "1", "the work is left for review");
    assert_eq!(project.git(&["status", "--porcelain", "greet.sh"]), " M greet.sh\n");
    let prompts = project.prompts();
    assert!(prompts[0].contains("The task:\n\nSay hello.\n"), "{}", prompts[0]);
    for told in ["Say hello.", "greet.sh says hello.", "Change the word", "greets failed.", "It says bye."] {
        assert!(prompts[1].contains(told), "{told}: {}", prompts[1]);
    }
    assert!(prompts[2].contains("greet.sh: says hi."), "{}", prompts[2]);
    // The id of the fence is secret, and different in each run.
    let id = prompts[3].split("id=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(id.len(), 32);
    assert_snapshot!(prompts[3].replace(id, "ID"), @r#"
    # A command does not pass

    You said that the work was done. A command that decides was run on it, and it ended with exit code 1.

    Failed:

    - greets

    The end of its standard output:

    FAIL: greets

    The end of its standard error:

    <data from="errors of a command" id="ID">
    said hi,
    not hello
    </data id="ID">

    Find the cause before you change anything. Then mend what is wrong, with the smallest change that is right. A test
    is changed only where the task changes what is true, and `changed` then says so. Run the commands that decide
    yourself, all of them.

    Answer with `changed` (all that this run has changed so far), `tested` and `summary` as before, and in `next_action`,
    with your reason:

    - `handoff` when they pass,
    - `repeat` when there is more to do,
    - `abort` when one cannot pass for a reason that has nothing to do with the task, such as a program that is not there
      (exit code 127); `summary` then says what a person has to do first.
    "#);
}

#[test]
fn a_review_can_send_the_work_back() {
    let project = repository(&GREETING);
    written(&project, &["--test", "sh greet_test.sh"]);
    let answers =
        json!([understood(), did("work", "hi"), closes("repeat"), did("work", "hello"), closes("closing")]);
    let result = run(&project, answers, 0);
    assert_snapshot!(rows(&result), @"
    initial.task: next → continuation.task
    continuation.task: handoff → closure.task
    closure.task: repeat → continuation.task
    continuation.task: handoff → closure.task
    closure.task: closing → @completed
    ");
    assert!(project.prompts()[3].contains("The review says repeat."), "{}", project.prompts()[3]);
}

#[test]
fn remedies_are_counted() {
    let project = repository(&GREETING);
    written(&project, &["--test", "sh greet_test.sh"]);
    let mut answers = vec![understood(), did("work", "hi")];
    answers.extend((0..3).flat_map(|_| [closes("closing"), did("remedy", "bye")]));
    answers.push(closes("closing"));
    let result = run(&project, json!(answers), 1);
    assert_eq!(result["state"], "failed");
    assert_eq!(result["reason"], "validator `tests` still fails after 3 retries");
}

#[test]
fn giving_up_says_why() {
    let project = repository(&GREETING);
    written(&project, &["--test", "sh greet_test.sh"]);
    let mut gives_up = understood();
    gives_up["output"]["summary"] = json!("Install make first.");
    gives_up["output"]["next_action"] = json!({"action": "abort", "reason": "make is not there."});
    let result = run(&project, json!([gives_up]), 1);
    assert_eq!(result["state"], "aborted");
    let report = project.run(&["report", "last"]).stdout;
    assert!(report.contains("Install make first."), "{report}");
}

#[test]
fn without_tests_the_flow_ends_too() {
    let project = repository(&GREETING[1..]);
    written(&project, &[]);
    let result = run(&project, json!([understood(), did("work", "hello"), closes("closing")]), 0);
    assert_eq!(result["state"], "completed");
}
