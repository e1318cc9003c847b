//! The variants of a piece: interactive or headless, fused or separate phases.

use crate::support::Project;

/// Work with some interactive-only rules.
fn project(rules: &str) -> Project {
    let project = Project::empty();
    let piece = format!(
        "name: ways\nmax_iterations: 5\ninitial_movement: work\nmovements:\n  - name: work\n    edit: false\n    \
         instruction_template: Work.\n    output_contracts:\n      report:\n        - name: said.md\n    rules:\n{rules}"
    );
    project.write(".takt/pieces/ways.yaml", &piece);
    project.write(".gitignore", "/script*\n");
    project.init();
    project
}

const SOUND: &str =
    "      - { condition: Done, next: COMPLETE }\n      - { condition: Not done, next: ABORT }\n";

fn messages(project: &Project, args: &[&str]) -> Vec<String> {
    let ran = project.run(&[&["check", "ways", "--json"], args].concat());
    let found = ran.json();
    let findings = found["diagnostics"].as_array().unwrap();
    findings.iter().map(|finding| finding["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn check_covers_interactive_and_headless_variants() {
    // A finding of both variants is reported once.
    let project = project(&SOUND.replace("next: ABORT", "next: work"));
    assert_eq!(messages(&project, &[]), ["`Not done` of `work` leads to itself"]);
    // The headless variant has no rule left, which is an error.
    let only = "      - { condition: Done, next: COMPLETE, interactive_only: true }\n";
    let project = self::project(only);
    let ran = project.run(&["check", "ways"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let said = "so none applies in an unattended run (with nobody there)";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(!ran.stderr.contains("(when a person is there)"), "{}", ran.stderr);
    // In the interactive variant a rule leads to two movements without an exit.
    let round = |name: &str, next: &str| {
        format!(
            "  - name: {name}\n    edit: false\n    instruction_template: Talk.\n    rules:\n      - {{ condition: Said, \
             next: {next} }}\n"
        )
    };
    let away = "      - { condition: Not done, next: talk, interactive_only: true }\n";
    let done = "      - { condition: Done, next: COMPLETE }\n";
    let project = self::project(&[done, away, &round("talk", "listen"), &round("listen", "talk")].concat());
    let found = messages(&project, &[]);
    assert_eq!(found, ["from `talk`, `listen` no path leads to an end (when a person is there)"]);
}

#[test]
fn check_show_graph_and_price_respect_phases() {
    let project = project(SOUND);
    let price = |args: &[&str]| {
        let ran = project.run(&[&["price", "ways"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let both = |args: &[&str]| {
        let shown = project.run(&[&["show", "ways"], args].concat());
        let drawn = project.run(&[&["graph", "ways"], args].concat());
        assert_eq!((shown.code, drawn.code), (0, 0), "{}{}", shown.stderr, drawn.stderr);
        (shown.stdout, drawn.stdout)
    };
    let (fused, separate) = (["--phases", "fused"], ["--phases", "separate"]);
    // The bound assumes that a fused answer may be plain text; other answers are not.
    let assumed = "every answer is plain text";
    assert!(price(&fused).contains(assumed) && !price(&separate).contains(assumed));
    assert_eq!(price(&[]), price(&fused));
    let (one, apart) = (both(&[]), both(&separate));
    assert_eq!(one, both(&fused));
    assert_ne!(one.0, apart.0);
    // Without the flag the configuration applies.
    project.write("cuegate.toml", "[takt]\nphases = \"separate\"\n");
    assert_eq!((price(&[]), both(&[])), (price(&separate), apart));
    assert_eq!((both(&fused), project.run(&["check", "ways"]).code), (one, 0));
    assert_eq!(project.run(&["check", "ways", "--phases", "fused", "--strict"]).code, 0);
    for command in ["check", "show", "graph", "price"] {
        let ran = project.run(&[command, ".agent", "--phases", "fused"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
    }
    project.write(".agent/agent.json", "{}");
    for command in ["check", "show", "graph", "price"] {
        let ran = project.run(&[command, ".agent", "--phases", "fused"]);
        assert!(
            ran.stderr.contains("`--phases` is for TAKT workflows; `.agent` is not one"),
            "{}",
            ran.stderr
        );
    }
    let ran = project.run(&["check", ".agent", "ways", "--phases", "fused"]);
    assert!(!ran.stderr.contains("`--phases` is for TAKT workflows"), "{}", ran.stderr);
}

/// The interactive variant has more judged conditions; the bound covers both variants.
#[test]
fn the_price_covers_interactive_runs() {
    let rules = |more: &str| {
        format!(
            "      - {{ condition: ai(\"it is done\"), next: COMPLETE }}\n      - {{ condition: ai(\"it is not\"), next: ABORT }}\n{more}"
        )
    };
    let price = |more: &str| {
        let project = project(&rules(more));
        let ran = project.run(&["price", "ways"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let asks = ran.stdout.lines().find_map(|line| line.strip_prefix("calls "));
        asks.unwrap().trim().parse::<u32>().unwrap()
    };
    let talks = "      - { condition: Ask, next: work, requires_user_input: true, interactive_only: true }\n";
    assert_eq!((price(""), price(talks)), (6, 40));
}
