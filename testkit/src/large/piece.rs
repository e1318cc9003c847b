//! A large piece: movements with rules, reports and texts, parallel reviews with joins, loop monitors.

use std::fmt::Write;

use super::{Flaw, Large};

/// Movements of a stage, not counting the members of its parallel one.
const STAGE: usize = 6;

/// A piece with at least one stage of six movements. Its iteration limit lets a run pass all stages. A flaw is a rule
/// over members that never matches, because movements of a piece read no named values.
pub fn piece(movements: usize, flaw: Flaw) -> Large {
    let stages = (movements / STAGE).max(1);
    let mut large =
        Large { path: ".takt/pieces/large.yaml".to_owned(), steps: stages * STAGE, ..Large::default() };
    let mut text = format!(
        "name: large\ndescription: A piece of many stages\nmax_iterations: {}\n",
        (stages * STAGE).max(1)
    );
    for (map, folder, names) in [
        ("policies", "policies", &["coding", "review"][..]),
        ("knowledge", "knowledge", &["architecture"]),
        ("personas", "personas", &["planner", "coder", "reviewer", "supervisor"]),
        ("instructions", "instructions", &["plan", "implement", "review", "fix", "supervise"]),
        ("report_formats", "formats", &["plan", "review"]),
    ] {
        let _ = writeln!(text, "{map}:");
        for name in names {
            let _ = writeln!(text, "  {name}: ../{folder}/{name}.md");
            large.files.insert(format!(".takt/{folder}/{name}.md"), shared(folder, name));
        }
    }
    text.push_str("initial_movement: plan-0\nloop_monitors:\n");
    for stage in 0..stages {
        let _ = write!(
            text,
            "  - cycle:\n      - check-{stage}\n      - mend-{stage}\n    threshold: 3\n    judge:\n      persona: supervisor\n\
             \x20     instruction_template: |\n        The loop has gone round {{cycle_count}} times. Does it come to an end?\n\
             \x20     rules:\n        - condition: It makes progress\n          next: check-{stage}\n\
             \x20       - condition: It does not\n          next: review-{stage}\n"
        );
    }
    text.push_str("movements:\n");
    for stage in 0..stages {
        let flawed = match flaw {
            Flaw::None => false,
            Flaw::Far => stage + 1 == stages,
            Flaw::Everywhere => true,
        };
        movements_of(stage, stage + 1 == stages, flawed, &mut text);
    }
    large.files.insert(large.path.clone(), text);
    large
}

fn shared(folder: &str, name: &str) -> String {
    let sentence = "Look at what is there before you change it, and say what you leave open. ";
    format!("# {name}\n\nThis is one of the {folder}.\n\n{}\n", sentence.repeat(8))
}

/// The movements of a stage: a plan that continues or asks, work, a check in a loop with a fix, a parallel review by
/// three members, and a supervisor that continues, goes back or ends.
fn movements_of(stage: usize, last: bool, flawed: bool, text: &mut String) {
    let next = if last { "COMPLETE".to_owned() } else { format!("plan-{}", stage + 1) };
    let mut simple = |name: &str,
                      persona: &str,
                      instruction: &str,
                      edit: bool,
                      extra: &str,
                      rules: &[(&str, String)]| {
        let _ = write!(
            text,
            "  - name: {name}-{stage}\n    description: Stage {stage}, {name}\n    edit: {edit}\n    persona: {persona}\n"
        );
        text.push_str(extra);
        text.push_str("    allowed_tools:\n      - Read\n      - Glob\n      - Grep\n");
        if edit {
            text.push_str("      - Edit\n      - Bash\n    permission_mode: edit\n");
        }
        text.push_str("    rules:\n");
        for (condition, to) in rules {
            let _ = writeln!(text, "      - condition: {condition}\n        next: {to}");
            if *to == format!("{name}-{stage}") {
                text.push_str("        requires_user_input: true\n        interactive_only: true\n");
            }
        }
        let _ = writeln!(text, "    instruction: {instruction}");
    };
    let at = |name: &str| format!("{name}-{stage}");
    let report = |format: &str| {
        format!(
            "    output_contracts:\n      report:\n        - name: {stage}-{format}.md\n          format: {format}\n"
        )
    };
    simple(
        "plan",
        "planner",
        "plan",
        false,
        &report("plan"),
        &[
            ("It is clear what to do", at("work")),
            ("There is nothing to do here", at("review")),
            ("It cannot be done", "ABORT".to_owned()),
        ],
    );
    let facets = "    policy:\n      - coding\n    knowledge:\n      - architecture\n    session: refresh\n";
    simple(
        "work",
        "coder",
        "implement",
        true,
        facets,
        &[
            ("It is done", at("check")),
            ("A person has to say more", at("work")),
            ("The plan does not hold", at("plan")),
        ],
    );
    simple(
        "check",
        "reviewer",
        "review",
        false,
        &report("review"),
        &[("Nothing was found", at("review")), ("Something was found", at("mend"))],
    );
    simple(
        "mend",
        "coder",
        "fix",
        true,
        "    policy: coding\n    pass_previous_response: true\n",
        &[("It is mended", at("check")), ("It was no fault", at("review"))],
    );
    let rules = if flawed {
        // The first rule already covers the second.
        "      - condition: any(\"needs_fix\")\n        next: mend-S\n      - condition: all(\"needs_fix\")\n        next: plan-S\n\
         \x20     - condition: all(\"approved\")\n        next: lead-S\n"
    } else {
        "      - condition: all(\"approved\")\n        next: lead-S\n      - condition: any(\"needs_fix\")\n        next: mend-S\n"
    };
    let _ = write!(text, "  - name: review-{stage}\n    parallel:\n");
    for who in ["design", "security", "tests"] {
        let _ = write!(
            text,
            "      - name: {who}-{stage}\n        edit: false\n        persona: reviewer\n        policy: review\n\
             \x20       instruction_template: |\n          Look at stage {stage} for {who}.\n        rules:\n\
             \x20         - condition: approved\n          - condition: needs_fix\n"
        );
    }
    let _ = write!(text, "    rules:\n{}", rules.replace("-S", &format!("-{stage}")));
    let mut simple = |name: &str, rules: &[(&str, String)]| {
        let _ =
            write!(text, "  - name: {name}-{stage}\n    edit: false\n    persona: supervisor\n    rules:\n");
        for (condition, to) in rules {
            let _ = writeln!(text, "      - condition: {condition}\n        next: {to}");
        }
        text.push_str("    instruction: supervise\n");
    };
    simple(
        "lead",
        &[
            ("The stage is done", next),
            ("It has to be planned anew", at("plan")),
            ("All of it is done", "COMPLETE".to_owned()),
        ],
    );
}
