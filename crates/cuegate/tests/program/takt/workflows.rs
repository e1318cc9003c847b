//! Workflows of TAKT's current vocabulary, checked and run: those of a project that name texts of an installed TAKT, and
//! TAKT's own where they are at hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::{Value, json};

use crate::{
    agents::Set,
    support::{Project, visits},
};

const MAIN: &str = "name: main\nmax_steps: 9\nsteps:\n\
    \x20 - { name: build, kind: workflow_call, call: build, rules: [{ condition: COMPLETE, next: check }, { condition: stuck, next: ABORT }] }\n\
    \x20 - { name: check, persona: reviewer, edit: false, rules: [{ condition: good, next: COMPLETE }, { condition: bad, next: build }] }\n";
const BUILD: &str = "name: build\nsubworkflow: { callable: true, returns: [stuck] }\nsteps:\n\
    \x20 - name: work\n    uses: coder\n    rules: [{ condition: done, next: COMPLETE }, { condition: hopeless, return: stuck }]\n";
const CODER: &str =
    "persona: coder\nedit: true\noutput_contracts: { report: [{ name: work.md, format: Say it }] }\n";

/// A project with a workflow, and the package of a TAKT with what it names.
fn project() -> (Project, tempfile::TempDir) {
    let takt = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let at = takt.path().join("builtins/en").join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    };
    write("facets/personas/coder.md", "You code.");
    write("facets/personas/reviewer.md", "You review.");
    write("workflows/build.yaml", BUILD);
    write("steps/coder.yaml", CODER);
    let project = Project::empty();
    project.write(".takt/workflows/main.yaml", MAIN);
    project.write(".gitignore", "/script*\n");
    project.init();
    (project, takt)
}

fn says(step: &str, outcome: &str, reports: &Value) -> Value {
    let mut answer = json!({"step": step, "output": {"outcome": outcome, "response": "Said."}});
    if reports.as_object().is_some_and(|reports| !reports.is_empty()) {
        answer["output"]["reports"] = reports.clone();
    }
    answer
}

fn rows(status: &Value) -> Vec<String> {
    let row = |row: &Value| {
        format!("{} → {}", row["step"].as_str().unwrap(), row["target"].as_str().unwrap_or("-"))
    };
    visits(status).iter().map(row).collect()
}

#[test]
fn a_workflow_uses_what_an_installed_takt_brings() {
    let (project, takt) = project();
    let missing = project.run(&["check", "main"]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("calls the workflow `build`, which is not found"), "{}", missing.stderr);
    assert!(missing.stderr.contains("--builtins PATH"), "{}", missing.stderr);
    let package = takt.path().to_str().unwrap();
    for folder in [package.to_owned(), format!("{package}/builtins"), format!("{package}/builtins/en")] {
        let checked = project.run(&["check", "main", "--builtins", &folder]);
        assert_eq!(checked.code, 0, "{folder}: {}", checked.stderr);
    }
    project.write("cuegate.toml", &format!("[takt]\nbuiltins = {package:?}\n"));
    let listed = project.run(&["list"]);
    assert!(listed.stdout.contains("main") && !listed.stdout.contains("has errors"), "{}", listed.stdout);
    let report = json!({"build/work.md": "It is done."});
    project.script(
        "script.json",
        &json!([
            says("build/work", "done", &report),
            says("check", "bad", &json!({})),
            says("build/work", "done", &report)
        ]),
    );
    let ran = project.run(&["run", "main", "Make it", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    // The run keeps what it was loaded from, also what is no part of the project.
    fs::remove_dir_all(takt.path().join("builtins")).unwrap();
    project.write("cuegate.toml", "");
    project.script("again.json", &json!([says("check", "good", &json!({}))]));
    let ran = project.run(&["resume", "--script", "again.json", "--json"]);
    let status = project.status();
    assert_eq!(status["state"], "completed", "{} {status:#}", ran.stderr);
    assert_eq!(
        rows(&status),
        ["build/work → check", "check → build/work", "build/work → check", "check → @completed"]
    );
    assert_eq!(status["reports"][0]["name"], "build/work.md");
    let first = project.events("answered")[0]["system_prompt"].as_str().unwrap().to_owned();
    assert!(first.contains("You code."), "{first}");
    let wrong = project.run(&["check", "main", "--builtins", "nowhere"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("`--builtins nowhere` is not a folder"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn data_of_an_answer_decide_where_a_run_goes() {
    const MAIN: &str = "name: main\nmax_steps: 9\nschemas: { next: next }\nsteps:\n\
        \x20 - name: plan\n    edit: false\n    instruction: Plan it.\n    structured_output: { schema_ref: next }\n    rules:\n\
        \x20     - { condition: 'when(structured.plan.action == \"go\")', next: work }\n\
        \x20     - { condition: when(true), next: COMPLETE }\n\
        \x20 - name: work\n    edit: false\n    instruction: 'Do {structured:plan.note}'\n    rules: [{ condition: done, next: plan }]\n";
    for phases in ["fused", "separate"] {
        let project = Project::empty();
        project.write(".takt/workflows/main.yaml", MAIN);
        project.write(
            ".takt/schemas/next.json",
            r#"{"type": "object", "required": ["action", "note"], "additionalProperties": false,
                "properties": {"action": {"enum": ["go", "rest", "stop"]}, "note": {"type": "string"}}}"#,
        );
        let plan = |action: &str| {
            let data = json!({"action": action, "note": "as {task} says"});
            json!({"step": "plan", "output": {"response": "Planned.", "structured": data}})
        };
        let mut answers = vec![plan("fly"), plan("go")];
        match phases {
            "fused" => answers.push(says("work", "done", &json!({}))),
            _ => answers.extend([
                json!({"step": "work", "text": "It is done."}),
                json!({"step": "work@judge", "output": {"outcome": "done", "reason": "So it is."}}),
            ]),
        }
        answers.push(plan("stop"));
        project.script("script.json", &Value::Array(answers));
        let args = ["run", "main", "Make it", "--script", "script.json", "--phases", phases, "--json"];
        let ran = project.run(&args);
        assert_eq!(ran.code, 0, "{phases}: {}", ran.stderr);
        assert_eq!(rows(&project.status()), ["plan → work", "work → plan", "plan → @completed"]);
        let handed = project.prompts().iter().filter(|prompt| prompt.contains(">as {task} says<")).count();
        assert_eq!(handed, 1, "{phases}: {:#?}", project.prompts());
        let repair = &project.prompts()[1];
        assert!(repair.contains("is `fly`, allowed are `go`, `rest`, `stop`."), "{repair}");
    }
}

/// TAKT's definitions, if they are at hand.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn builtins() -> Option<PathBuf> {
    let root = std::env::var_os("CUEGATE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let found = root.join("corpora/takt-current/builtins");
    if !found.is_dir() {
        eprintln!("skipped: {} is not there (set CUEGATE_SHARED)", found.display());
        return None;
    }
    Some(found)
}

/// A project with a workflow of TAKT, and the flow that it becomes.
fn of_takt(name: &str, builtins: &Path) -> (Project, Vec<Value>) {
    let project = Project::empty();
    let workflow = format!("en/workflows/{name}.yaml");
    fs::create_dir_all(project.path().join(".takt/workflows")).unwrap();
    fs::copy(builtins.join(workflow), project.path().join(format!(".takt/workflows/{name}.yaml"))).unwrap();
    project.write(".gitignore", "/script*\n");
    project.init();
    let shown = project.run(&["show", name, "--json", "--builtins", builtins.to_str().unwrap()]);
    assert_eq!(shown.code, 0, "{name}: {}", shown.stderr);
    let steps = shown.json()["steps"].as_array().unwrap().clone();
    (project, steps)
}

/// The outcome that leads on along a shortest way to the end, for each step that has one. A judge decides for the step
/// that it belongs to.
fn outcomes(steps: &[Value]) -> Vec<(&Value, Option<String>)> {
    let near = nearest(steps);
    let named = |name: String| steps.iter().find(|step| step["name"] == name.as_str());
    let outcome = |step: &'_ Value| {
        let judged = step["name"].as_str().unwrap().strip_suffix("@judge");
        let judged =
            judged.and_then(|name| named(format!("{name}@closing")).or_else(|| named(name.to_owned())));
        good_outcome(judged.unwrap_or(step), &near)
    };
    steps.iter().map(|step| (step, outcome(step))).collect()
}

/// Runs a workflow of TAKT with the scripted agent.
fn runs_to_its_end(name: &str, builtins: &Path, phases: &str) {
    let (project, steps) = of_takt(name, builtins);
    let mut answers = Vec::new();
    for (step, outcome) in outcomes(&steps) {
        let own = step["name"].as_str().unwrap();
        if let Some(selected) = selection(step) {
            let says = |(output, times): (Value, u32)| json!({"step": own, "output": output, "times": times});
            answers.extend(selected.into_iter().map(says));
            continue;
        }
        if own.contains("@part:") {
            answers.push(json!({"step": own, "kind": "work", "text": "My part is done.", "times": 50}));
            continue;
        }
        let Some(outcome) = outcome else { continue };
        let readers = step["gate"]["readers"].as_array().cloned().unwrap_or_default();
        let tag = readers.iter().find(|reader| reader["tag"].is_string() && reader["base"] == 1);
        let outcomes = tag.and_then(|tag| tag["outcomes"].as_array()).cloned().unwrap_or_default();
        let number = outcomes.iter().position(|known| *known == outcome.as_str()).map_or(1, |at| at + 1);
        let answer = match (step["kind"].as_str(), tag) {
            (Some("judge"), _) => {
                json!({"step": own, "output": {"outcome": outcome, "reason": "So it is."}, "times": 50})
            }
            (_, Some(tag)) => {
                let text = format!("It is done.\n[{}:{number}]", tag["tag"].as_str().unwrap().to_uppercase());
                json!({"step": own, "kind": "work", "text": text, "times": 50})
            }
            _ => json!({"step": own, "kind": "work", "text": "It is done.", "times": 50}),
        };
        answers.push(answer);
        answers.push(json!({"step": own, "kind": "report", "text": "# Report", "times": 50}));
    }
    project.script("script.json", &Value::Array(answers));
    let at = builtins.to_str().unwrap();
    let args =
        ["run", name, "Make it", "--script", "script.json", "--phases", phases, "--builtins", at, "--json"];
    let ran = project.run(&args);
    assert_eq!(ran.code, 0, "{name} {phases}: {}", ran.stderr);
}

/// Runs a workflow of TAKT with Claude Code, whose model is a stand-in.
fn runs_with_claude(name: &str, builtins: &Path, phases: &str) {
    let (project, steps) = of_takt(name, builtins);
    let mut scenario = Scenario::new().usage(1_000, 500, 50);
    let fused = phases == "fused";
    for (step, outcome) in outcomes(&steps) {
        let own = step["name"].as_str().unwrap();
        let movement = own.strip_suffix("@closing").unwrap_or(own);
        if let Some(selected) = selection(step) {
            let (of, role) = own.split_once('@').unwrap();
            let told = match role {
                "select" => "You select for",
                "leader" => "You lead",
                // No way to the end leads through it.
                _ => continue,
            };
            for (output, times) in selected {
                let times = if times > 1 { 0 } else { times };
                scenario = scenario.reply(Reply::to(&format!("- {told}: {of}\n")).times(times).json(output));
            }
            continue;
        }
        if step["kind"] == "parallel" {
            continue;
        }
        let judged = own.strip_suffix("@judge");
        let Some(outcome) = outcome.or_else(|| own.contains("@part:").then(|| "done".to_owned())) else {
            continue;
        };
        if let Some(judged) = judged {
            let tag = format!("end with `[{}:N]`", judged.to_uppercase());
            let output = json!({"outcome": outcome, "reason": "So it is."});
            scenario = scenario.reply(Reply::to(&tag).for_ever().json(output));
            continue;
        }
        let reports: serde_json::Map<String, Value> = step["reports"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| (name.as_str().unwrap().to_owned(), json!("# Report")))
            .collect();
        let mut output = json!({"response": "It is done."});
        let readers = step["gate"]["readers"].as_array().map_or(0, Vec::len);
        if readers > 0 {
            output["outcome"] = json!(outcome);
        }
        if !reports.is_empty() {
            output["reports"] = reports.into();
        }
        // The name ends the line, or its position or description follows.
        for end in [" (", "\n", ": "] {
            let reply = Reply::to(&format!("- Step: {movement}{end}")).for_ever();
            scenario =
                scenario.reply(if fused { reply.json(output.clone()) } else { reply.text("It is done.") });
        }
    }
    scenario = scenario.reply(Reply::to("Write the report now").for_ever().text("# Report"));
    let set = Set::of("claude", project, scenario);
    let at = builtins.to_str().unwrap();
    let ran = set.run(&[
        "run",
        name,
        "Make it",
        "--provider",
        "claude",
        "--phases",
        phases,
        "--builtins",
        at,
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{name} {phases}: {:?}\n{}", set.standin.unmatched(), ran.stderr);
    assert_eq!(set.standin.unmatched(), [""; 0]);
    assert_eq!(ran.json()["state"], "completed");
}

/// The answers of a selector, which selects all candidates, or of a leader, who has two parts done; and how often each is
/// given.
fn selection(step: &Value) -> Option<Vec<(Value, u32)>> {
    let name = step["name"].as_str()?;
    let says = |output: Value, times: u32| (output, times);
    let handoff = step["handoff"].as_array()?;
    if name.ends_with("@select") {
        let ids: Vec<&str> = handoff.iter().filter_map(|handoff| handoff["contains"].as_str()).collect();
        return Some(vec![says(json!({"selected_ids": ids, "rationale": "All of them."}), 50)]);
    }
    if name.contains("@complete:") {
        return Some(vec![says(json!({"result": "complete", "missing": ""}), 50)]);
    }
    let parts = ["Do one half.", "Do the other half."];
    name.ends_with("@leader").then(|| {
        vec![
            says(json!({"decision": "work", "parts": parts}), 1),
            says(json!({"decision": "done", "parts": []}), 50),
        ]
    })
}

/// The ends and steps by their distance from the completed end.
fn nearest(steps: &[Value]) -> Vec<String> {
    let mut near: Vec<String> = vec!["@completed".to_owned()];
    let mut at = 0;
    while at < near.len() {
        let target = near[at].clone();
        for step in steps {
            let leads = step["edges"].as_array().into_iter().flatten().any(|edge| target_of(edge) == target);
            let name = step["name"].as_str().unwrap().to_owned();
            if leads && !near.contains(&name) {
                near.push(name);
            }
        }
        at += 1;
    }
    near
}

fn target_of(edge: &Value) -> String {
    let to = &edge["to"];
    to["step"].as_str().or(to["end"].as_str()).unwrap_or_default().to_owned()
}

/// The outcome of a step that leads along a shortest way to the completed end; of a member the first one.
fn good_outcome(step: &Value, near: &[String]) -> Option<String> {
    let rank = |edge: &&Value| near.iter().position(|name| *name == target_of(edge)).unwrap_or(usize::MAX);
    let best = step["edges"].as_array()?.iter().min_by_key(rank).map(|edge| edge["on"].clone());
    let readers = step["gate"]["readers"].as_array().cloned().unwrap_or_default();
    let first = || readers.iter().find_map(|reader| reader["outcomes"].as_array()?.first().cloned());
    best.or_else(first)?.as_str().map(str::to_owned)
}

/// The names of the workflows that can be started; one of them consists of steps that TAKT itself executes.
fn startable(builtins: &Path) -> Vec<String> {
    let folder = fs::read_dir(builtins.join("en/workflows")).unwrap();
    let paths = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let is_startable = |path: &PathBuf| !fs::read_to_string(path).unwrap().contains("callable: true");
    let mut names: Vec<String> = paths.filter(is_startable).map(name).collect();
    names.retain(|name| name != "auto-improvement-loop");
    names.sort();
    names
}

#[test]
fn takts_own_workflows_run() {
    let Some(builtins) = builtins() else { return };
    let names = startable(&builtins);
    assert!(names.len() >= 52, "{names:?}");
    for name in names {
        for phases in ["fused", "separate"] {
            runs_to_its_end(&name, &builtins, phases);
        }
    }
}

/// A plain one, one with a leader, and one of calls within calls with selectors.
#[test]
fn takts_own_workflows_run_with_claude() {
    let Some(builtins) = builtins() else { return };
    if !offline::inside() {
        return;
    }
    for name in ["magi", "audit-architecture", "default"] {
        for phases in ["fused", "separate"] {
            runs_with_claude(name, &builtins, phases);
        }
    }
}
