//! Keys of pieces with external effects: files, processes, sessions, limits.

use serde_json::{Value, json};

use crate::support::{Project, visits};

/// A piece of these movements, with two personas.
fn project(head: &str, movements: &str) -> Project {
    let project = Project::empty();
    let piece = format!(
        "name: keyed\n{head}initial_movement: work\npersonas: {{ coder: You write all the code., looker: You look at it. }}\n\
         movements:\n{movements}"
    );
    project.write(".takt/pieces/keyed.yaml", &piece);
    project.write(".gitignore", "/script*\n/made.txt\n");
    project.init();
    project
}

/// Runs it; returns the exit code and the result.
fn run(project: &Project, answers: &Value) -> (i32, Value) {
    project.script("script.json", answers);
    let ran = project.run(&["run", "keyed", "Make it", "--script", "script.json", "--json"]);
    (ran.code, ran.json())
}

fn said(step: &str, outcome: &str) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": "so it is"}})
}

/// A movement that may edit, with these extra lines and the rules `Done` and `Again`.
fn work(more: &str) -> String {
    format!(
        "  - name: work\n    persona: coder\n    edit: true\n    instruction_template: Work.\n{more}    rules:\n      \
         - {{ condition: Done, next: COMPLETE }}\n      - {{ condition: Again, next: work }}\n"
    )
}

#[test]
fn max_iterations_ends_the_run() {
    let project = project("max_iterations: 3\n", &work(""));
    let again = said("work", "Again");
    let (code, status) = run(&project, &json!([again, again, again, again]));
    assert_eq!((code, &status["state"]), (5, &json!("exhausted")), "{status:#}");
    assert_eq!((visits(&status).len(), &status["asks"]["work"]), (3, &json!(3)));
}

#[test]
fn a_read_only_movement_that_edits_fails() {
    let writes = |key: &str| {
        let project = project("max_iterations: 3\n", &work("").replace("edit: true", key)).outside();
        let mut answer = said("work", "Done");
        answer["writes"] = json!([{"path": "new.txt", "content": "x"}]);
        let (code, status) = run(&project, &json!([answer]));
        (code, status["state"].clone(), status["steps"][0]["violations"].clone())
    };
    assert_eq!(writes("edit: true").0, 0);
    for key in ["edit: false", "permission_mode: readonly"] {
        assert_eq!(writes(key), (1, json!("failed"), json!(["new.txt"])), "{key}");
    }
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_fails_the_gate() {
    let gate = "    quality_gates:\n      - { command: \"sleep 600\", timeout_ms: 300 }\n";
    let project = project("max_iterations: 3\n", &work(gate));
    project.write("cuegate.toml", "[run]\nquality_gate_retries = 0\n");
    let (code, status) = run(&project, &json!([said("work", "Done")]));
    assert_eq!((code, &status["state"]), (1, &json!("failed")), "{status:#}");
    assert!(status["reason"].as_str().unwrap().contains("the quality gate `sleep 600`"), "{status:#}");
    project.all_gone();
}

#[test]
fn a_gate_is_retried_twice_and_then_fails_the_run() {
    let gate = "    quality_gates:\n      - { command: \"echo not yet; test -f made.txt\" }\n";
    let project = project("max_iterations: 3\n", &work(gate));
    let done = said("work", "Done");
    let (code, status) = run(&project, &json!([done, done, done, done]));
    assert_eq!((code, &status["state"]), (1, &json!("failed")), "{status:#}");
    assert_eq!((&status["asks"]["work"], &status["asks"]["remedy"]), (&json!(1), &json!(2)));
    assert!(project.prompts()[1].contains("not yet"), "{}", project.prompts()[1]);
}

#[test]
fn a_rule_without_quality_gates_leads_on_while_the_command_fails() {
    let gate = "    quality_gates:\n      - { command: \"echo not yet; test -f made.txt\" }\n";
    let movements = work(gate).replace("next: work }", "next: think, quality_gates: false }")
        + "  - name: think\n    persona: looker\n    edit: false\n    instruction_template: Think.\n    rules:\n      \
           - { condition: Go on, next: work }\n";
    let project = project("max_iterations: 9\n", &movements);
    let mut made = said("work", "Done");
    made["writes"] = json!([{"path": "made.txt", "content": "x"}]);
    let done = said("work", "Done");
    let mut answers = vec![done.clone(), said("work", "Again"), said("think", "Go on")];
    // The second visit has all of its retries again.
    answers.extend([done.clone(), done, made]);
    let (code, status) = run(&project, &json!(answers));
    assert_eq!((code, &status["state"]), (0, &json!("completed")), "{status:#}");
    assert_eq!(visits(&status).len(), 6, "{status:#}");
}

/// The gate command failed earlier, but the run ended elsewhere: a retry goes on there, and not behind the gate.
#[test]
fn a_retry_does_not_enter_gates_that_failed_before_the_run_went_elsewhere() {
    let gate = "    quality_gates:\n      - { command: \"test -f made.txt\" }\n";
    let movements = work(gate).replace("next: work }", "next: think, quality_gates: false }")
        + "  - name: think\n    persona: looker\n    edit: false\n    instruction_template: Think.\n    rules:\n      \
           - { condition: Go on, next: work }\n      - { condition: Give up, next: ABORT }\n";
    let project = project("max_iterations: 9\n", &movements);
    let (done, again) = (said("work", "Done"), said("work", "Again"));
    let answers = json!([done, again, said("think", "Give up"), said("think", "Give up")]);
    let (code, status) = run(&project, &answers);
    assert_eq!((code, &status["state"]), (1, &json!("aborted")), "{status:#}");
    // The gate would pass now, and lead to the end of the run.
    project.write("made.txt", "");
    let ran = project.run(&["retry", "--json"]);
    assert_eq!((ran.code, &ran.json()["state"]), (1, &json!("aborted")), "{}", ran.stderr);
    assert_eq!(ran.json()["final_step"], "think", "{}", ran.stderr);
}

/// A persona's session continues across movements of other personas, until it is refreshed.
#[test]
fn sessions_continue_per_persona_and_can_be_refreshed() {
    let movements = work("").replace("next: COMPLETE", "next: look")
        + "  - name: look\n    persona: looker\n    edit: false\n    instruction_template: Look.\n    rules:\n      \
           - { condition: Fine, next: anew }\n      - { condition: Bad, next: work }\n"
        + &work("    session: refresh\n")
            .replace("name: work", "name: anew")
            .replace("next: work", "next: anew");
    let project = project("max_iterations: 9\n", &movements);
    let answers = json!([
        said("work", "Done"),
        said("look", "Bad"),
        said("work", "Done"),
        said("look", "Fine"),
        said("anew", "Done"),
    ]);
    let (code, status) = run(&project, &answers);
    assert_eq!(code, 0, "{status:#}");
    let answered = project.events("answered");
    // Sessions are forked, so that an interrupted ask does not change them.
    let went_on: Vec<&Value> = answered.iter().map(|answer| &answer["put"]["session"]).collect();
    assert_eq!(went_on, ["new", "new", "forked", "forked", "new"], "`refresh` begins anew");
    let system = |nth: usize| answered[nth]["system_prompt"].as_str().unwrap().to_owned();
    assert!(system(0).contains("You write all the code.") && system(1).contains("You look at it."));
}

#[test]
fn an_older_workflow_is_printed_as_today() {
    let project = Project::empty();
    let older = "# Ours\nname: it\nmax_iterations: 3\nmovements:\n  - name: go\n    edit: true\n    model: opus\n    \
                 instruction_template: Do it.\n    rules: [{ condition: done, next: COMPLETE }]\n";
    project.write(".takt/pieces/it.yaml", older);
    let upgraded = project.run(&["check", "--upgrade", "it"]);
    assert_eq!(upgraded.code, 0, "{}", upgraded.stderr);
    assert_eq!(
        upgraded.stdout,
        older
            .replace("max_iterations", "max_steps")
            .replace("movements", "steps")
            .replace("instruction_template", "instruction")
    );
    let expected = ".takt/pieces/it.yaml: 3 places changed\n\
                    .takt/pieces/it.yaml, line 7: left as it is: TAKT refuses `model` in a workflow today: move it to `runtime.yaml`\n\
                    note: workflows are in `.takt/workflows` today, no longer in `.takt/pieces`\n";
    assert_eq!(upgraded.stderr, expected);
    project.write(".takt/pieces/it.yaml", "name: [\n");
    let broken = project.run(&["check", "--upgrade", "it"]);
    assert!(broken.code == 2 && broken.stderr.contains("error[invalid-yaml]"), "{}", broken.stderr);
    let none = project.run(&["check", "--upgrade", "."]);
    assert!(none.code == 2, "{}", none.stderr);
}

/// The changes of a task are counted from where its branch left the one that it is for.
#[test]
fn the_scope_of_a_review_begins_where_the_work_began() {
    let project = Project::empty();
    project.write(
        ".takt/workflows/it.yaml",
        "name: it\nmax_steps: 3\nsteps:\n  - name: go\n    edit: false\n    instruction: 'Review {review_scope}.'\n    rules: [{ condition: done, next: COMPLETE }]\n",
    );
    project.write(".gitignore", "/script*\n");
    project.init();
    project.script(
        "script.json",
        &json!([{"step": "go", "output": {"outcome": "done", "response": "Did it."}}]),
    );
    let scope = || {
        let ran = project.run(&["run", "it", "Do it", "--script", "script.json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let prompt = project.prompts()[0].clone();
        let named = prompt
            .split("git diff --name-only ")
            .nth(1)
            .map(|rest| rest.split('`').next().unwrap().to_owned());
        named.unwrap_or_else(|| panic!("{prompt}"))
    };
    let commit = |of: &str| project.git(&["rev-parse", of]).trim().to_owned();
    let main = commit("main");
    assert_eq!(scope(), main);
    project.git(&["checkout", "--quiet", "-b", "topic"]);
    for text in ["one", "two"] {
        project.write("a.txt", text);
        project.git(&["add", "--all"]);
        project.git(&["commit", "--quiet", "--message", text]);
    }
    assert_eq!(scope(), main);
    // The branch was made from another one, and TAKT noted which it is for.
    let two = commit("topic");
    project.git(&["checkout", "--quiet", "-b", "next"]);
    project.write("b.txt", "three");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "three"]);
    assert_eq!(scope(), two);
    project.git(&["update-ref", "refs/takt/base/next", "next"]);
    assert_eq!(scope(), commit("next"));
    let replayed = project.run(&["replay"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
}
