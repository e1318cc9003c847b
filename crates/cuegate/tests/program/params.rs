//! The inputs of a run: parameters, variables, the task, the provider and its script. Errors are reported before the
//! start.

use crate::{
    agent::registry::{Registry, begin, says, small},
    support::{Project, Ran},
};
use serde_json::{Value, json};

/// Reads all of its parameters into its first prompt.
fn parameters() -> Registry {
    let prompt = "tone={uv-tone}; deep={uv-deep-check}; n={uv-maxFiles}; who={uv-who}; tags={uv-tags}.\n";
    let parameter = |kind: &str, cli: &str, more: Value| {
        let mut parameter =
            json!({"type": kind, "description": format!("Of {cli}"), "required": false, "cli": cli});
        for (key, value) in more.as_object().unwrap() {
            parameter[key] = value.clone();
        }
        parameter
    };
    small()
        .prompt("work", prompt)
        .with("work", json!({"uvVariables": ["tone", "deep-check", "maxFiles", "who", "tags"]}))
        .agent(json!({"parameters": {
            "tone": parameter("string", "--tone", json!({"default": "calm"})),
            "deepCheck": parameter("boolean", "--deep-check", json!({"default": false})),
            "max-files": parameter("number", "--max-files", json!({"default": 3})),
            "tags": parameter("array", "--tags", json!({"default": ["a", "b"]})),
            "who": parameter("string", "--who", json!({"required": true})),
        }}))
}

fn project(registry: &Registry) -> Project {
    registry.project(json!([says("work", "handoff"), says("close", "closing")]))
}

/// What the first prompt was given.
fn told(project: &Project, args: &[&str]) -> String {
    let ran = project.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    project.prompts()[0].trim_end().to_owned()
}

/// Asserts a usage error and that no run started.
fn refused(project: &Project, args: &[&str], error: &str) -> Ran {
    let ran = project.run(args);
    assert_eq!((ran.code, &*ran.stdout), (2, ""), "{args:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(error), "{args:?}: {}", ran.stderr);
    assert_eq!(project.runs(), 0, "{args:?} began a run");
    assert!(!project.path().join(".cuegate").exists(), "{args:?} left something behind");
    ran
}

/// The errors of a definition are reported with any options, even unreadable ones.
#[test]
fn options_do_not_hide_the_errors_of_a_definition() {
    let unsound = project(&parameters().with("work", json!({"nmae": 1})));
    for args in [&begin(&["--who", "me", "--tone=loud"])[..], &["price", "agent", "--who", "me"]] {
        let ran = refused(&unsound, args, "unknown key `nmae` in a step");
        assert!(!ran.stderr.contains("unexpected argument"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`agent` has"), "{}", ran.stderr);
    }
    // No parameters can be read.
    unsound.write(".agent/agent/agent.json", "{ \"name\": ");
    for args in [&begin(&["--who", "me"])[..], &["price", "agent", "--who", "me"]] {
        let ran = refused(&unsound, args, "agent.json:1:");
        assert!(ran.stderr.contains("`agent` has"), "{}", ran.stderr);
    }
    // A mistake of the command line is one where the definition is sound.
    refused(&project(&parameters()), &begin(&["--who", "me", "--hwo", "me"]), "unexpected argument '--hwo'");
}

#[test]
fn flags_are_accepted_before_and_after_the_path() {
    let project = project(&parameters());
    let defaults = told(&project, &begin(&["--who", "me"]));
    assert_eq!(defaults, "tone=calm; deep=false; n=3; who=me; tags=a,b.");
    let after = begin(&["--who=me", "--tone=loud", "--max-files", "-2", "--deep-check", "--tags", "x"]);
    assert_eq!(told(&project, &after), "tone=loud; deep=true; n=-2; who=me; tags=x.");
    let before = [
        "run",
        "--tone",
        "sharp and clear",
        "--who",
        "me",
        "--deep-check=false",
        "--script",
        "script.json",
        "agent",
    ];
    assert_eq!(told(&project, &before), "tone=sharp and clear; deep=false; n=3; who=me; tags=a,b.");
    let often = begin(&["--who", "me", "--tags", "x,y", "--tags", "z"]);
    assert_eq!(told(&project, &often), "tone=calm; deep=false; n=3; who=me; tags=x,y,z.");
    // A boolean flag takes nothing from the words after it.
    let boolean = ["run", "--deep-check", "agent", "--who", "me", "--script", "script.json"];
    assert_eq!(told(&project, &boolean), "tone=calm; deep=true; n=3; who=me; tags=a,b.");
    // Except `true` and `false`.
    let apart = ["run", "--deep-check", "false", "agent", "--who", "me", "--script", "script.json"];
    assert_eq!(told(&project, &apart), "tone=calm; deep=false; n=3; who=me; tags=a,b.");
    let after = begin(&["--who", "me", "--deep-check", "true"]);
    assert_eq!(told(&project, &after), "tone=calm; deep=true; n=3; who=me; tags=a,b.");
    // The value of a flag may have the name of a definition too.
    let named = ["run", "--who", "agent", "agent", "--script", "script.json"];
    assert_eq!(told(&project, &named), "tone=calm; deep=false; n=3; who=agent; tags=a,b.");
    assert_eq!(told(&project, &begin(&["--who", ""])), "tone=calm; deep=false; n=3; who=; tags=a,b.");
}

#[test]
fn the_help_of_a_definition_lists_its_parameters() {
    let project = project(&parameters());
    let ran = project.run(&["run", "agent", "--help"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    for part in ["Parameters of the definition", "--tone <TEXT>", "Of --tone", "--max-files <NUMBER>"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn values_of_the_wrong_type_are_rejected() {
    let project = project(&parameters());
    for (args, error) in [
        (&["--who", "me", "--max-files", "many"][..], "error: `max-files` is a number, not `many`"),
        (&["--who", "me", "--max-files", "inf"], "error: `max-files` is a number, not `inf`"),
        (&["--who", "me", "--deep-check=yes"], "error: `deepCheck` is `true` or `false`, not `yes`"),
        (&["--who", "me", "--set", "max-files=x"], "error: `max-files` is a number, not `x`"),
        (&[], "error: parameter `who` is required: Of --who"),
        (&["--who"], "a value is required for '--who"),
        (&["--who", "me", "--tone", "a", "--tone", "b"], "'--tone"),
        (&["--whom", "me"], "--whom"),
    ] {
        refused(&project, &begin(args), error);
    }
}

#[test]
fn set_gives_parameter_values() {
    let project = project(&parameters());
    let set =
        begin(&["--set", "who=me=you", "--set=tone=", "--set", "max_files=7", "--set", "deep-check=true"]);
    assert_eq!(told(&project, &set), "tone=; deep=true; n=7; who=me=you; tags=a,b.");
    // The more particular wins: a flag of the definition itself.
    let both = begin(&["--set", "tone=quiet", "--tone", "loud", "--who", "me"]);
    assert_eq!(told(&project, &both), "tone=loud; deep=false; n=3; who=me; tags=a,b.");
}

#[test]
fn set_gives_undeclared_values() {
    let project = project(&small().prompt("work", "Mind {uv-tone}.\n"));
    refused(&project, &begin(&[]), "unknown-variable");
    refused(&project, &begin(&["--set", "tune=low"]), "unknown-variable");
    assert_eq!(told(&project, &begin(&["--set", "tone=low", "--set", "else=x"])), "Mind low.");
    let started = project.events("run_started");
    assert_eq!(started[0]["params"], json!({"else": "x", "tone": "low"}));
}

#[test]
fn set_values_survive_a_resume() {
    let registry = small().prompt("work", "Mind {uv-tone}.\n");
    let project = registry.project(json!([says("work", "repeat")]));
    assert_eq!(project.run(&begin(&["--set", "tone=low"])).code, 4);
    project.script("script-more.json", &json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.run(&["resume", "last", "--script", "script-more.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.prompts()[1].trim_end(), "Mind low.");
}

#[test]
fn set_without_a_value_is_rejected() {
    let project = project(&small());
    for pair in ["tone", "=x", ""] {
        let ran = refused(&project, &begin(&["--set", pair]), "is not `NAME=VALUE`");
        assert!(ran.stderr.contains("hint: write `--set NAME=VALUE`"), "{}", ran.stderr);
    }
}

#[test]
fn parameter_names_match_in_camel_and_kebab_case() {
    let registry = small().prompt("work", "{uv-iterateMax} {uv-iterate-max}\n").agent(json!({"parameters": {
        "iterateMax": {"type": "number", "description": "How often", "required": true, "cli": "--iterate-max"}
    }}));
    let project = project(&registry);
    assert_eq!(told(&project, &begin(&["--iterate-max", "5"])), "5 5");
    assert_eq!(told(&project, &begin(&["--set", "iterate-max=6"])), "6 6");
    assert_eq!(told(&project, &begin(&["--set", "iterateMax=7"])), "7 7");
}

/// Its first step needs a task.
fn tasked() -> Registry {
    small().with("work", json!({"usesStdin": true})).prompt("work", "Task: {input_text}|{uv-task}|\n")
}

#[test]
fn the_task_is_read_from_every_source() {
    let project = project(&tasked());
    project.write("script-task.txt", "from a file\n");
    assert_eq!(told(&project, &begin(&["do it"])), "Task: do it|do it|");
    let file = begin(&["--input", "script-task.txt"]);
    assert_eq!(told(&project, &file), "Task: from a file\n|from a file\n|");
    for args in [begin(&["--input", "-"]), begin(&[])] {
        let ran = project.run_with_input(&args, "from a pipe");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(project.prompts()[0].trim_end(), "Task: from a pipe|from a pipe|");
    }
    // What is inserted is text, never a template.
    assert_eq!(
        told(&project, &begin(&["{uv-task} {input_text}"])),
        "Task: {uv-task} {input_text}|{uv-task} {input_text}|"
    );
}

#[test]
fn a_missing_task_is_rejected() {
    let project = project(&tasked());
    refused(
        &project,
        &begin(&[]),
        "error: the definition needs a task\nhint: give it as text, `cuegate run agent ",
    );
    refused(&project, &begin(&["--input", "none.txt"]), "error: failed to read `none.txt`: ");
    refused(&project, &begin(&["do it", "--input", "x"]), "cannot be used with");
    refused(&project, &begin(&["do it", "and this"]), "unexpected argument");
}

#[test]
fn an_empty_task_is_refused_before_anything_starts() {
    let project = project(&tasked());
    project.write("blank.txt", " \n\t\n");
    refused(&project, &begin(&[""]), "error: the task is empty");
    refused(&project, &begin(&["  \n"]), "error: the task is empty");
    refused(&project, &begin(&["--input", "blank.txt"]), "error: the task is empty");
    for input in ["", " \n"] {
        let ran = project.run_with_input(&begin(&["--input", "-"]), input);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("error: the task is empty"), "{}", ran.stderr);
    }
    assert_eq!(project.runs(), 0);
}

#[test]
fn a_missing_provider_is_rejected() {
    let project = project(&small());
    refused(
        &project,
        &["run", "agent"],
        "error: no agent is set\nhint: set one with `--provider` (claude, codex, openai, opencode, copilot, gemini, qwen)",
    );
    refused(
        &project,
        &["run", "agent", "--provider", "scripted"],
        "error: the scripted agent has no script\nhint: ",
    );
    refused(&project, &["run", "agent", "--provider", "nobody"], "error: unknown agent `nobody`\nhint: ");
    refused(
        &project,
        &["run", "agent", "--provider", "claude", "--script", "script.json"],
        "error: `--script` requires `--provider scripted`, not `--provider claude`\nhint: ",
    );
}

#[test]
fn invalid_scripts_are_rejected() {
    let project = project(&small());
    project.write("script.yaml", "answers:\n  - step: work\n    outptu: {}\n");
    project.write("script-list.yaml", "answers: 3\n");
    project.write("script-tab.yaml", "answers:\n\t- step: work\n");
    let with = |file| ["run", "agent", "--script", file];
    refused(&project, &with("none.yaml"), "error: failed to read `none.yaml`: ");
    let ran = refused(&project, &with("script.yaml"), "script.yaml:3:");
    assert!(ran.stderr.contains("outptu"), "{}", ran.stderr);
    refused(&project, &with("script-list.yaml"), "script-list.yaml:1:");
    refused(&project, &with("script-tab.yaml"), "script-tab.yaml:2:");
}

#[test]
fn invalid_definitions_do_not_start() {
    let project = project(&small().with("work", json!({"transitions": {"handoff": {"target": "clse"}}})));
    let ran = refused(&project, &begin(&[]), "error: `agent` has ");
    assert!(ran.stderr.contains("unknown-target") && ran.stderr.contains("hint: the run was not started"));
    refused(&project, &["run", "nobody", "--script", "script.json"], "error: `nobody` is not a file");
    refused(&project, &["run"], "<PATH>");
    refused(&project, &begin(&["--max-iterations", "0"]), "--max-iterations");
    refused(&project, &begin(&["--repairs", "101"]), "--repairs");
}

#[test]
fn a_parameter_with_a_built_in_flag_is_given_with_set() {
    let registry = small().prompt("work", "{uv-model}\n").agent(json!({"parameters": {
        "model": {"type": "string", "description": "Which car", "required": true, "cli": "--model"}
    }}));
    let project = project(&registry);
    let checked = project.run(&["check", "agent"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(checked.stderr.contains("warning[reserved-flag]"), "{}", checked.stderr);
    refused(&project, &begin(&["--model", "beetle"]), "error: parameter `model` is required: Which car");
    assert_eq!(told(&project, &begin(&["--set", "model=beetle"])), "beetle");
    assert_eq!(project.status()["model"], "scripted");
}

#[test]
fn option_values_may_name_other_definitions() {
    let project = project(&parameters());
    crate::support::copy(&project.path().join(".agent/agent"), &project.path().join(".agent/other"));
    let without = json!({"name": "other", "displayName": "Other", "runner": {
        "flow": {"systemPromptPath": "prompts/system.md"},
        "verdict": {"type": "detect:graph", "config": {"maxIterations": 20}},
        "boundaries": {"permissionMode": "acceptEdits"}
    }});
    project.write(".agent/other/agent.json", &without.to_string());
    project.write(".agent/other/prompts/steps/work/work/f_default.md", "Do it.\n");
    let registry = project.read(".agent/other/steps_registry.json");
    let registry = registry.replace("\"agentId\": \"agent\"", "\"agentId\": \"other\"");
    project.write(".agent/other/steps_registry.json", &registry);
    assert_eq!(project.run(&["check", "other"]).code, 0);
    let args = ["run", "--who", "other", "agent", "--script", "script.json"];
    assert_eq!(told(&project, &args), "tone=calm; deep=false; n=3; who=other; tags=a,b.");
}
