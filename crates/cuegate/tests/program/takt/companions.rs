//! Reviewers of the work of a step, of whose findings its agent is told before the run goes on.

use serde_json::{Value, json};

use crate::support::{Project, visits};

const WORKFLOW: &str = "name: it\nmax_steps: 6\nsteps:\n  - name: work\n    edit: true\n    instruction: Build it.\n    companion: COMPANION\n    \
                        rules: [{ condition: done, next: tell }, { condition: stuck, next: ABORT }]\n  - name: tell\n    edit: false\n    \
                        instruction: 'Tell of {previous_response}'\n    rules: [{ condition: told, next: COMPLETE }]\n";

fn project(companion: &str, policy: &str) -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("COMPANION", companion));
    project.write(
        ".takt/companions/tests.yaml",
        "name: tests\ndescription: Looks at tests\npersona: 'You test.'\ninstruction: Look for tests.\ninterval_ms: 5\n",
    );
    project.write(".takt/companions/style.yaml", "name: style\npolicy: 'Short names.'\n");
    project.write(".takt/companions/judge.yaml", "name: judge\ninstruction: Weigh them.\n");
    project.write(".takt/runtime.yaml", &format!("version: 1\ncompanion: {policy}\n"));
    project.write(".gitignore", "/script*\n");
    project.init();
    project
}

fn says(step: &str, output: Value) -> Value {
    json!({"step": step, "output": output})
}

fn works(response: &str) -> Value {
    says("work", json!({"outcome": "done", "response": response}))
}

fn review(step: &str, findings: &str) -> Value {
    let verdict = if findings.is_empty() { "clear" } else { "findings" };
    says(step, json!({"verdict": verdict, "findings": findings}))
}

fn tells() -> Value {
    says("tell", json!({"outcome": "told", "response": "Told."}))
}

/// The prompts of a run, each once.
fn prompts(project: &Project) -> Vec<String> {
    let mut prompts = project.prompts();
    prompts.sort_unstable();
    prompts.dedup();
    prompts
}

fn run(project: &Project, script: &[Value]) -> (i32, String) {
    project.script("script.json", &json!(script));
    let ran = project.run(&["run", "it", "Do it", "--script", "script.json", "--json"]);
    (ran.code, ran.stderr)
}

#[test]
fn an_agent_gets_the_findings_of_its_companions_before_the_run_goes_on() {
    let project = project("[tests, style]", "{ enabled: true }");
    let (code, said) = run(
        &project,
        &[
            works("First."),
            review("work@companion:tests:1", "a.rs:1 has no test."),
            review("work@companion:style:1", ""),
            works("Second."),
            review("work@companion:tests:1", ""),
            review("work@companion:style:1", ""),
            tells(),
        ],
    );
    assert_eq!(code, 0, "{said}");
    let prompts = prompts(&project);
    let of =
        |needle: &str| prompts.iter().filter(|prompt| prompt.contains(needle)).cloned().collect::<Vec<_>>();
    let follow_ups = of("Reviewers found something in your work");
    assert!(follow_ups.len() == 1 && follow_ups[0].contains("a.rs:1 has no test."), "{follow_ups:?}");
    assert!(follow_ups[0].contains("Build it."), "{follow_ups:?}");
    let reviews = of("You review the work of another agent");
    assert_eq!(reviews.len(), 4, "{prompts:#?}");
    assert!(reviews.iter().any(|prompt| prompt.contains("Look for tests.") && prompt.contains("First.")));
    assert!(reviews.iter().any(|prompt| prompt.contains("Short names.")));
    // The reviews are no step of the workflow: what comes next reads the answer of the work.
    assert!(of("Tell of").iter().any(|prompt| prompt.contains("Second.")), "{prompts:#?}");
    let steps: Vec<String> =
        visits(&project.status()).iter().map(|row| row["step"].as_str().unwrap().to_owned()).collect();
    let reviewers = ["work@companion:style:1", "work@companion:tests:1"];
    assert_eq!(steps, [&reviewers[..], &["work"], &reviewers, &["work", "tell"]].concat());
}

#[test]
fn findings_come_back_a_bounded_number_of_times() {
    let project = project("{ fixed: [tests], moderator: judge }", "{ enabled: true, review_mode: live }");
    let checked = project.run(&["check", "it"]);
    assert!(checked.stderr.contains("companions review an answer when it is given"), "{}", checked.stderr);
    let round = |kept: &str| {
        [works("Again."), review("work@companion:tests:1", "Many things."), review("work@moderator:1", kept)]
    };
    let mut script: Vec<Value> = (0..4).flat_map(|_| round("One thing holds.")).collect();
    script.push(tells());
    let (code, said) = run(&project, &script);
    assert_eq!(code, 0, "{said}");
    let prompts = prompts(&project);
    let follow_ups: Vec<&String> =
        prompts.iter().filter(|prompt| prompt.contains("Reviewers found something")).collect();
    assert_eq!(follow_ups.len(), 3, "{prompts:#?}");
    assert!(
        follow_ups
            .iter()
            .all(|prompt| prompt.contains("One thing holds.") && !prompt.contains("Many things."))
    );
    let priced = project.run(&["price", "it", "--json"]).json();
    assert!(priced["max"]["asks"].as_u64().unwrap() >= 13, "{priced:#}");
}

#[test]
fn companions_are_off_unless_everybody_wants_them() {
    for policy in ["{ enabled: false }", "{ review_mode: live }"] {
        let project = project("[tests]", policy);
        let (code, said) = run(&project, &[works("First."), tells()]);
        assert_eq!((code, said.contains("companion")), (0, false), "{said}");
    }
    let unknown = project("[nobody]", "{ enabled: true }");
    let checked = unknown.run(&["check", "it"]);
    assert!(checked.stderr.contains("the companion `nobody` is not found"), "{}", checked.stderr);
    let twice = project("[tests, tests]", "{ enabled: true }");
    let checked = twice.run(&["check", "it"]);
    assert!(checked.stderr.contains("duplicate companion `tests`"), "{}", checked.stderr);
    let many = project("[tests, style, judge, tests]", "{ enabled: true }");
    let checked = many.run(&["check", "it"]);
    assert!(checked.stderr.contains("a step has at most 3 companions"), "{}", checked.stderr);
}
