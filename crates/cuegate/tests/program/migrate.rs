//! Older agents, migrated by the program and run by it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Project, Ran};
use crate::{check_flow, complete};

/// What an ask of a migrated check flow was before: its step, and whether it checks.
fn asked_before(step: &str) -> String {
    let (stage, rest) = step.split_once('.').unwrap();
    let check = if matches!(stage, "verification" | "closure") { "?" } else { "" };
    format!("{}{check}", rest.split('.').next().unwrap())
}

/// Every ask of the last run, in order.
fn asked(project: &Project, called: impl Fn(&Value) -> String) -> Vec<String> {
    project.events("answered").iter().map(called).collect()
}

/// Runs the command that the migration printed, with values for what it leaves open.
fn as_printed(project: &Project, migrated: &Ran) -> Ran {
    let next = migrated.json()["next"][1].as_str().unwrap().replace("=VALUE", "=parsers");
    let words: Vec<&str> = next.split(' ').skip(1).chain(["--json"]).collect();
    project.run(&words)
}

#[test]
fn a_check_flow_runs_the_same_scripts() {
    let (ok, ng) = (check_flow::ok, check_flow::ng);
    let scripts: [&[Value]; 5] = [
        &[ng("a"), ok("b"), ng("c"), ok("d"), ng("e"), ok("f"), ok("g")],
        &[ng("a"), ng("b"), ng("c"), ok("never asked")],
        &[ok("a"), ng("1"), ng("2"), ng("3"), ng("4"), ng("5"), ok("b"), ok("c"), ok("d")],
        &[ok("a"), json!("I think result: pass"), json!("looks good"), ok("b"), ok("c")],
        &[ok("a"), ok("b")],
    ];
    for checks in scripts {
        let project = check_flow::project(&check_flow::agent(), &check_flow::registry());
        // One entry serves all work, and every other is for whatever is checked next.
        let mut answers = vec![json!({"kind": "work", "text": "done", "times": 0})];
        answers.extend(checks.iter().map(|check| match check {
            Value::String(text) => json!({"text": text}),
            output => json!({"output": output}),
        }));
        project.script("script.json", &json!(answers));
        let older = ["run", "code-improver", "--topic=parsers", "--script", "script.json", "--json"];
        let older = project.run(&older);
        let before = asked(&project, |event| {
            let checks = event["kind"] == "check";
            let step = event["step"].as_str().unwrap();
            format!("{}{}", step.trim_end_matches("/check"), if checks { "?" } else { "" })
        });
        let migrated = project.run(&["migrate", "code-improver", "--script", "script.json", "--json"]);
        assert_eq!(migrated.code, 0, "{}", migrated.stderr);
        let checked = project.run(&["check", "code-improver-closing"]);
        assert_eq!(checked.code, 0, "{}", checked.stderr);
        let newer = as_printed(&project, &migrated);
        let after = asked(&project, |event| asked_before(event["step"].as_str().unwrap()));
        assert_eq!(after, before);
        assert_eq!(
            (newer.code, &newer.json()["state"], &newer.json()["flow"]),
            (older.code, &older.json()["state"], &json!("code-improver-closing")),
            "{}",
            newer.stderr
        );
    }
}

#[test]
fn what_is_said_of_a_check_flow() {
    let project = check_flow::project(&check_flow::agent(), &check_flow::registry());
    let migrated = project.run(&["migrate", "code-improver"]);
    assert_eq!(migrated.code, 0, "{}", migrated.stderr);
    assert_snapshot!(migrated.stdout, @"
    .agent/code-improver-closing/agent.json
    .agent/code-improver-closing/system.md
    .agent/code-improver-closing/prompts/steps/work/s_a8f3/f_default.md
    .agent/code-improver-closing/prompts/steps/check/s_a8f3/f_default.md
    .agent/code-improver-closing/prompts/steps/work/s_b2c1/f_default.md
    .agent/code-improver-closing/prompts/steps/check/s_b2c1/f_default.md
    .agent/code-improver-closing/prompts/steps/work/s_c9d4/f_default.md
    .agent/code-improver-closing/prompts/steps/check/s_c9d4/f_default.md
    .agent/code-improver-closing/prompts/steps/failed/s_a8f3/f_default.md
    .agent/code-improver-closing/steps_registry.json
    .agent/code-improver-closing/schemas/steps.schema.json
    ");
    assert_snapshot!(migrated.stderr, @"
    wrote       .agent/code-improver-closing, 11 files
    look at     runner.verdict.config.maxIterations: a run whose 100th execution uses up the last retry ends as exhausted and not as failed
                answers: agents may give up with `abort` in every step, which a check flow does not know
    note        prompts/steps/work/s_a8f3/f_default.md: line 1 reads `iteration`, which counts checks as well now
                prompts/steps/check/s_a8f3/f_default.md: says at its end how to answer: take out what it says before of `ok` and `ng`
                prompts/steps/check/s_b2c1/f_default.md: says at its end how to answer: take out what it says before of `ok` and `ng`
                prompts/steps/check/s_c9d4/f_default.md: says at its end how to answer: take out what it says before of `ok` and `ng`
                steps.s_a8f3: 3 work steps and 3 checks stand for it, with the same prompts: the newer generation does not count executions and retries, so that each count has steps of its own
                steps.s_a8f3: a run fails in a step `failed.*` when no retries are left: the newer generation has no word for that, so that the step needs what no step leaves
                steps.s_b2c1: 5 work steps and 5 checks stand for it, with the same prompts: the newer generation does not count executions and retries, so that each count has steps of its own
                runner.verdict.config.maxIterations: checks are visits now: 200 visits stand for 100 executions, also for `--max-iterations`
                answers: work says `next_action` and a check one of its words; an answer that does not is asked for once more (`--repairs 0` for not), and then means what it meant: that the work was done, that the check did not pass
                results: rows have no `check` and no `transition`, and checks are rows of their own: outcomes say the same
    next        cuegate check code-improver-closing
                cuegate run code-improver-closing --topic=VALUE
    ");
    assert_snapshot!(project.read(".agent/code-improver-closing/prompts/steps/check/s_c9d4/f_default.md"), @r#"
    Is it good?

    Say what you found in these words: `"result": "closing"` when it passes, `"result": "repeat"` when not. They take the place of `ok` and `ng`, `pass` and `fail`, `true` and `false`.
    "#);
}

/// An agent of the "complete" generation whose verdict and whose blocks are programs'.
fn with_programs() -> Project {
    let project = complete::project(json!([
        complete::says(
            "initial.fix",
            "next",
            json!({"text": "```json\n{\"action\": \"note\", \"is\": \"here\"}\n```"})
        ),
        complete::says("continuation.fix", "next", json!({"times": 0})),
    ]));
    let path = ".agent/solver/agent.json";
    let mut agent: Value = serde_json::from_str(&project.read(path)).unwrap();
    agent["behavior"]["completionType"] = json!("custom");
    agent["behavior"]["completionConfig"] = json!({"handlerPath": "./bin/judge", "maxIterations": 5});
    agent["actions"] = json!({"enabled": true, "types": ["note"], "handlers": {"note": "exec:bin/note.sh"}});
    project.write(path, &agent.to_string());
    let path = ".agent/solver/steps_registry.json";
    let mut registry: Value = serde_json::from_str(&project.read(path)).unwrap();
    registry["entryStepMapping"] = json!({"custom": "initial.fix"});
    project.write(path, &registry.to_string());
    // It is over once the note is there.
    project.write(
        ".agent/solver/bin/judge",
        "#!/bin/sh\ncat > /dev/null\ntest -e noted && echo '{\"finished\": true, \"reason\": \"noted\"}' || echo '{\"finished\": false}'\n",
    );
    project.write(".agent/solver/bin/note.sh", "cat > noted\n");
    project.write(".agent/solver/bin/words.txt", "beside a program\n");
    project.write(".agent/solver/tools/helper", "#!/bin/sh\nexit 0\n");
    project.write(".agent/solver/notes.md", "of people\n");
    for program in ["bin/judge", "tools/helper"] {
        let path = project.path().join(".agent/solver").join(program);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("/bin/sh", project.path().join(".agent/solver/bin/sh")).unwrap();
    project
}

#[test]
fn programs_come_along_as_they_are() {
    let project = with_programs();
    let older = project.run(&["run", "solver", "--script", "script.json", "--json"]);
    assert_eq!(older.json()["state"], "completed", "{}", older.stderr);
    fs::remove_file(project.path().join("noted")).unwrap();
    let migrated = project.run(&["migrate", "solver", "--script", "script.json", "--json"]);
    assert_eq!(migrated.code, 0, "{}", migrated.stderr);
    let folder = project.path().join(".agent/solver-closing");
    let mode =
        |file: &str| fs::metadata(folder.join(file)).map(|about| about.permissions().mode() & 0o111).ok();
    assert_eq!(
        ["bin/judge", "tools/helper", "bin/note.sh", "bin/words.txt", "notes.md", "bin/sh"].map(mode),
        [Some(0o111), Some(0o111), Some(0), Some(0), None, None],
        "a link is not followed, and what is no program stays"
    );
    // Nothing of the older agent is needed.
    fs::rename(project.path().join(".agent/solver"), project.path().join(".agent/gone")).unwrap();
    let newer = as_printed(&project, &migrated);
    assert_eq!(
        (newer.code, complete::rows(&newer)),
        (older.code, complete::rows(&older)),
        "{}",
        newer.stderr
    );
    assert!(project.path().join("noted").exists());
}

/// One entry for whatever is asked says `handoff` where work is done and `closing` where the run is completed.
#[test]
fn entries_without_a_step_stay_one_entry() {
    let any = |word: &str, times: u32| json!({"times": times, "output": {"next_action": {"action": word}}});
    let answers = json!([any("continue", 1), {"text": "so: {\"next_action\": {\"action\": \"Complete\"}}", "times": 2}]);
    let project = complete::project(answers);
    // Without `stepId` in what has to be answered one answer is good for all.
    let path = ".agent/solver/schemas/fix.json";
    project.write(path, &project.read(path).replace("\"stepId\",\n", ""));
    project.write("done", "");
    let older = project.run(&["run", "solver", "--script", "script.json", "--json"]);
    assert_eq!(older.json()["state"], "completed", "{}", older.stderr);
    let migrated = project.run(&["migrate", "solver", "--script", "script.json", "--json"]);
    assert_eq!(migrated.code, 0, "{}", migrated.stderr);
    let newer = as_printed(&project, &migrated);
    assert_eq!((newer.code, complete::rows(&newer)), (0, complete::rows(&older)), "{}", newer.stderr);
    let script: Value =
        serde_json::from_str(&project.read(".agent/solver-closing/script.script.json")).unwrap();
    assert_eq!(script["answers"].as_array().unwrap().len(), 2);
    assert_eq!(script["answers"][1]["at"]["complete.fix"]["output"]["next_action"]["action"], "closing");
    assert_eq!(script["answers"][1]["output"]["next_action"]["action"], "handoff");
}

#[test]
fn what_is_there_is_replaced_only_when_told_and_only_agents_are() {
    let project = complete::project(json!([]));
    assert_eq!(project.run(&["migrate", "solver"]).code, 0);
    project.write(".agent/solver-closing/mine.md", "mine");
    let again = project.run(&["migrate", "solver"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    assert_eq!(project.read(".agent/solver-closing/mine.md"), "mine");
    let forced = project.run(&["migrate", "solver", "--force"]);
    assert_eq!(forced.code, 0, "{}", forced.stderr);
    assert!(!project.path().join(".agent/solver-closing/mine.md").exists());
    assert_eq!(fs::read_dir(project.path().join(".agent")).unwrap().count(), 2, "nothing is left over");
    for (folder, why) in [
        (".agent/solver", "the older definition lies in it"),
        (".agent", "the older definition lies in it"),
        (".git", "it holds no agent"),
        ("a.txt", "it is no folder"),
    ] {
        let refused = project.run(&["migrate", "solver", "--force", "--out", folder]);
        assert_eq!(refused.code, 2, "{folder}");
        assert!(refused.stderr.contains(why), "{folder}: {}", refused.stderr);
    }
    assert_eq!(project.read("a.txt"), "one\n");
}

#[test]
fn what_has_nothing_to_migrate_says_so() {
    let project = Project::example();
    let closing = project.run(&["migrate", "fixer"]);
    assert_eq!(closing.code, 2);
    assert!(closing.stderr.contains("nothing to migrate"), "{}", closing.stderr);
    project.write("review.yaml", "name: review\n");
    let piece = project.run(&["migrate", "review.yaml"]);
    assert_eq!(piece.code, 2);
    assert!(piece.stderr.contains("`review.yaml` is a piece"), "{}", piece.stderr);
    assert!(!project.path().join(".agent/fixer-closing").exists());
}
