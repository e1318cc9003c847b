//! `schema`.

use crate::support::{Project, tidy};
use cuegate_flow::model::Schema;
use insta::assert_snapshot;

#[test]
fn lists_the_schemas() {
    let ran = Project::empty().run(&["schema"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert_snapshot!(ran.stdout, @"
    registry-closing   steps_registry.json of the “closing” generation
    registry-complete  steps_registry.json of the “complete” generation
    registry-check     steps_registry.json of the check flow
    agent              agent.json, with `runner` or in the older shape with `behavior`
    takt               TAKT workflows, in YAML
    ");
}

#[test]
fn every_schema_is_valid_json_schema() {
    let project = Project::empty();
    let list = project.run(&["schema"]).stdout;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.len(), 5, "{list}");
    for name in names {
        let ran = project.run(&["schema", name]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{name}");
        assert!(Schema::new(ran.json()).is_ok(), "{name}");
    }
    assert!(!project.path().join(".cuegate").exists(), "nothing is written");
}

#[test]
fn an_unknown_format_is_a_usage_error() {
    let project = Project::empty();
    for name in ["agnet", "toml"] {
        let ran = project.run(&["schema", name]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""));
        let said = tidy(&project, &ran.stderr);
        match name {
            "agnet" => assert_snapshot!(said, @"
            error: there is no schema `agnet`
            hint: did you mean `agent`?
            "),
            _ => assert_snapshot!(said, @"
            error: there is no schema `toml`
            hint: use one of registry-closing, registry-complete, registry-check, agent, takt
            "),
        }
    }
}

/// The files that `init` writes validate against the schemas that `cuegate schema` prints.
#[test]
fn starters_match_the_printed_schemas() {
    let project = Project::empty();
    let ran = project.run(&["init", "minimal", "--test", "make test"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for (name, path) in
        [("agent", ".agent/minimal/agent.json"), ("registry-closing", ".agent/minimal/steps_registry.json")]
    {
        let schema = Schema::new(project.run(&["schema", name]).json()).unwrap();
        let written = serde_json::from_str(&project.read(path)).unwrap();
        assert_eq!(schema.problems(&written), Vec::<String>::new(), "{path}");
    }
}

/// A full disk must not pass for a whole schema; a reader that has seen enough is no failure.
#[test]
fn a_write_error_on_standard_output_is_a_failure() {
    let project = Project::empty();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = project.command(&["schema", "takt"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.starts_with("error: failed to write to standard output: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
