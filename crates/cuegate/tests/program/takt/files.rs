//! Report files of pieces: unwritable reports are reported and stay in the journal.

use serde_json::json;

use crate::support::Project;

/// The folder of reports is replaced by a link that leads out, as an agent could do: nothing is written through it, the
/// run goes on and says so, and its journal has the report.
#[test]
fn an_unwritable_report_is_reported_and_kept_in_the_journal() {
    let project = Project::empty().outside();
    let outside = tempfile::tempdir().unwrap();
    let away = outside.path().display();
    let piece = format!(
        "name: kept\nmax_iterations: 5\ninitial_movement: plan\nmovements:\n  - name: plan\n    edit: true\n    \
         instruction_template: Plan.\n    quality_gates:\n      - command: \"cd .cuegate/runs/*/ && rm -rf reports && \
         ln -s '{away}' reports\"\n    output_contracts:\n      report:\n        - name: plan.md\n    rules:\n      \
         - {{ condition: Planned, next: say }}\n  - name: say\n    edit: false\n    instruction_template: \"Say \
         {{report:plan.md}}.\"\n    output_contracts:\n      report:\n        - name: said.md\n    rules:\n      - \
         {{ condition: Said, next: COMPLETE }}\n"
    );
    project.write(".takt/pieces/kept.yaml", &piece);
    project.write(".gitignore", "/script*\n");
    project.init();
    let said = |step: &str, outcome: &str, report: &str| json!({"step": step, "output": {"outcome": outcome, "response": "so it is", "reports": {report: format!("# {outcome}")}}});
    project
        .script("script.json", &json!([said("plan", "Planned", "plan.md"), said("say", "Said", "said.md")]));
    let ran = project.run(&["run", "kept", "Make it", "--script", "script.json", "--json"]);
    assert_eq!((ran.code, ran.json()["state"].as_str()), (0, Some("completed")), "{}", ran.stderr);
    let warned = "a link leads out of the folder of the run; the run continues, and `cuegate report` prints every report from the journal";
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(warned), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "nothing was written through the link");
    assert_eq!(project.run(&["report", "last", "said.md"]).stdout, "# Said\n");
    assert_eq!(project.run(&["report", "last", "plan.md"]).stdout, "# Planned\n");
    assert!(project.prompts()[1].contains("# Planned"), "{}", project.prompts()[1]);
}

/// A facet path that is a folder or a link out of the project is reported where it is referenced.
#[test]
fn a_facet_outside_the_project_is_reported_where_it_is_referenced() {
    let project = Project::empty();
    let piece = "name: odd\nmax_iterations: 5\ninitial_movement: plan\npersonas:\n  planner: personas/out.md\n  \
                 writer: personas\nmovements:\n  - name: plan\n    edit: true\n    persona: planner\n    \
                 instruction_template: Plan.\n    rules:\n      - { condition: Planned, next: write }\n  - name: write\n    \
                 edit: true\n    persona: writer\n    instruction_template: Write.\n    rules:\n      \
                 - { condition: Written, next: COMPLETE }\n";
    project.write("odd.yaml", piece);
    project.write("personas/in.md", "You are in.\n");
    std::os::unix::fs::symlink("/etc/hostname", project.path().join("personas/out.md")).unwrap();
    project.init();
    let checked = project.run(&["check", "odd.yaml", "--json"]);
    let found: Vec<_> = checked.json()["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            let text = |key: &str| found[key].as_str().unwrap().to_owned();
            (text("code"), text("file"), found["line"].as_u64().unwrap(), text("message"))
        })
        .collect();
    let at =
        |code: &str, line, message: &str| (code.to_owned(), "odd.yaml".to_owned(), line, message.to_owned());
    assert_eq!(
        found,
        [
            at("escapes-root", 5, "`personas/out.md` lies outside the project"),
            at("unreadable-file", 6, "`personas` is a folder"),
        ]
    );
}
