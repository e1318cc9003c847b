//! One typo in a sound definition: an error, and few findings that follow from it.

use std::collections::BTreeSet;

use crate::{
    older::check_flow,
    support::{self, Project, findings_of},
    takt::takt_support,
};

/// Replaces the first place in the first file that has it.
pub fn first(mut files: Project, from: &str, to: &str) -> Project {
    let fits = |(_, bytes): &(&String, &mut Vec<u8>)| String::from_utf8_lossy(bytes).contains(from);
    let (_, bytes) = files.iter_mut().find(fits).unwrap_or_else(|| panic!("nothing has {from}"));
    *bytes = String::from_utf8(bytes.clone()).unwrap().replacen(from, to, 1).into_bytes();
    files
}

/// Line and column of a finding.
pub fn place(line: &str) -> &str {
    let at = line.split(' ').next().unwrap_or_default();
    at.split_once(':').map_or(at, |(_, at)| at)
}

/// How many codes one typo may cause: findings of one code in one file are shown as one.
const CODES_MAX: usize = 4;

/// The changes after which a definition has no error, or more findings than allowed.
fn wrong(cases: &[(&str, &str, &str)], files: &Project, found: impl Fn(&Project) -> String) -> String {
    let check = |(from, to, _): &(&str, &str, &str)| {
        let found = found(&first(files.clone(), from, to));
        let has_error = found.lines().any(|line| line.contains(" error["));
        let codes: BTreeSet<&str> = found.lines().filter_map(|line| line.split(['[', ']']).nth(1)).collect();
        (!has_error || codes.len() > CODES_MAX).then(|| format!("{from} → {to}:\n{found}\n"))
    };
    cases.iter().filter_map(check).collect()
}

/// What is changed in a registry, into what, and the code of what is found.
const IN_A_REGISTRY: &[(&str, &str, &str)] = &[
    ("\"next\": { \"target\"", "\"next\": { \"targt\"", "unknown-key"),
    ("\"transitions\"", "\"transition\"", "unknown-key"),
    ("\"structuredGate\"", "\"structureGate\"", "unknown-key"),
    ("\"steps\": {", "\"stpes\": {", "unknown-key"),
    ("[\"next\", \"repeat\"],", "[\"nxt\", \"repeat\"],", "invalid-value"),
    ("[\"next\", \"repeat\"],", "[\"zork\", \"repeat\"],", "invalid-value"),
    ("[\"next\", \"repeat\"],", "7,", "wrong-type"),
    ("\"next\": { \"target\"", "\"nxt\": { \"target\"", "invalid-value"),
    ("\"next\": { \"target\"", "\"zork\": { \"target\"", "invalid-value"),
    (WHOLE, "{ \"condition\": \"approach\", \"targets\": {} }", "invalid-value"),
    (WHOLE, "{ \"target\": \"closure.fix\" }", "wrong-direction"),
    ("\"stepKind\": \"work\"", "\"stepKind\": \"wrok\"", "invalid-value"),
    ("\"entryStep\": \"initial.fix\"", "\"entryStep\": 5", "wrong-type"),
    ("\"c1\": \"steps\"", "\"c1\": \"stesp\"", "missing-prompt"),
    ("{ \"approach\": { \"from\": \"initial.fix.approach\" } }", "[\"approach\"]", "wrong-type"),
    (
        "{ \"next\": { \"target\": \"continuation.fix\" }, \"repeat\": { \"target\": \"initial.fix\" } }",
        "{}",
        "missing-transition",
    ),
    ("\"handoffFields\": [\"plan.approach\"]", "\"handoffFields\": \"plan.approach\"", "wrong-type"),
    ("\"default\": \"main\"", "\"default\": 5, \"validation\": { \"enum\": [\"main\"] }", "wrong-type"),
    ("\"schemasBase\": \".agent/fixer/schemas\"", "\"schemasBase\": \"schema\"", "unresolved-schema"),
    ("#/$defs/closure.fix", "#/$defs/closure.fx", "unresolved-schema"),
    ("\"userPromptsBase\": \"", "\"userPromptsBase\": \"../../../../", "escapes-root"),
    (REMEDY, "Commit {uv-changedFiles} for #{uv-issue}.", "unknown-variable"),
    ("\"maxAttempts\": 2", "\"maxAttempts\": 1e400", "invalid-json"),
    ("{uv-approach}", "{uv-aproach}", "unknown-variable"),
    ("\"reason\": { \"type\": \"string\" }", "\"reason\": { \"$ref\": \"#/$defs/x\" }", "unresolved-schema"),
    (C1, "\"c1\": \"steps\", \"pathTemplateNoAdaptation\": \"{c1}/{c2}/f_{edition}.md\",", "missing-prompt"),
    (C1, "\"c1\": \"steps\", \"pathTemplate\": \"{c1}/{c2}/{c3}/{edition}.md\",", "missing-prompt"),
    (ISSUE, "", "unknown-variable"),
    ("\"issue\": {", "\"isue\": {", "unknown-variable"),
    ("\"required\": true, \"cli\"", "\"required\": 7, \"cli\"", "wrong-type"),
    ("\"default\": \"main\"", "\"default\": null", "wrong-type"),
    ("\"c2\": \"continuation\"", "\"c2\": null", "wrong-type"),
    ("\"c2\": \"continuation\"", "\"c2\": \"contination\"", "missing-prompt"),
    (
        "\"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"initial.fix\" }",
        "\"outputSchemaRef\": null",
        "wrong-type",
    ),
    ("\"onFailure\": { \"action\": \"retry\"", "\"onFailure\": { \"action\": null", "wrong-type"),
    ("\"stepKind\": \"closure\"", "\"stepKind\": \"work\"", "intent-not-of-kind"),
    ("[\"closing\", \"repeat\"],", "[\"repeat\"],", "unreachable-transition"),
    ("{ \"validator\": \"git-clean\" }", "{}", "missing-key"),
    ("\"verdict\": { \"type\": \"detect:graph\" }", "\"verdict\": 7", "wrong-type"),
    ("\"failurePattern\": \"git-dirty\",", "\"failurePattern\": null,", "wrong-type"),
    ("\"failFast\": false", "\"failFast\": []", "wrong-type"),
    ("#/properties/next_action/properties/action", "#/properties/next_action", "schema-gate-mismatch"),
];

/// A failure prompt.
const REMEDY: &str = "{{#if changedFiles}}Commit:{{#each changedFiles}} {{this}}{{/each}}{{else}}Commit for #{uv-issue}.{{/if}}";

const C1: &str = "\"c1\": \"steps\",";

/// A parameter that most prompts read.
const ISSUE: &str = "    \"issue\": { \"type\": \"number\", \"description\": \"The issue\", \"required\": true, \"cli\": \"--issue\" },\n";

/// A transition.
const WHOLE: &str = "{ \"target\": \"continuation.fix\" }";

/// The same of a registry with completions.
const IN_A_REGISTRY_THAT_COMPLETES: &[(&str, &str, &str)] = &[
    ("\"next\": { \"target\"", "\"next\": { \"targt\"", "unknown-key"),
    ("\"transitions\"", "\"transition\"", "unknown-key"),
    ("\"structuredGate\"", "\"structureGate\"", "unknown-key"),
    ("\"steps\": {", "\"stpes\": {", "unknown-key"),
    ("\"completionSteps\"", "\"completonSteps\"", "unknown-key"),
    ("\"completionPatterns\"", "\"completionPattern\"", "unknown-key"),
    ("\"validators\": {", "\"validatrs\": {", "unknown-key"),
    ("\"validator\": \"clean\"", "\"validator\": \"claen\"", "unknown-name"),
    ("\"clean\": {", "\"claen\": {", "unknown-name"),
    ("\"dirty\": {", "\"drity\": {", "unknown-name"),
    ("\"failurePattern\": \"dirty\"", "\"failurePattern\": \"dity\"", "unknown-name"),
    ("\"adaptation\": \"dirty\"", "\"adaptation\": \"ditry\"", "missing-prompt"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"nxt\", \"repeat\", \"complete\"]", "invalid-value"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"next\", \"repeat\"]", "unreachable-transition"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"repeat\", \"complete\"]", "unreachable-transition"),
    ("[\"next\", \"repeat\", \"complete\"]", "[\"next\", \"complete\"]", "unreachable-transition"),
    ("\"repeat\": { \"target\": \"initial.fix\" },", "", "missing-transition"),
    (
        "\"complete\": { \"target\": \"complete.fix\" }",
        "\"complete\": { \"target\": \"complet.fix\" }",
        "unknown-target",
    ),
    ("\"complete.fix\": {\n      \"stepId\"", "\"complete.fx\": {\n      \"stepId\"", "id-mismatch"),
    ("\"initial.fix\": {\n      \"stepId\"", "\"initial.fx\": {\n      \"stepId\"", "id-mismatch"),
    ("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"intial.fix\"", "unknown-target"),
    ("\"fallbackIntent\": \"next\"", "\"fallbackIntent\": \"nxt\"", "invalid-value"),
    ("\"handoffFields\": [\"approach\"]", "\"handoffFields\": [\"aproach\"]", "schema-gate-mismatch"),
    ("{uv-initial_fix_approach}", "{uv-initial_fix_aproach}", "unknown-variable"),
    ("{uv-issue}", "{uv-isue}", "unknown-variable"),
    ("\"const\": \"complete\"", "\"const\": \"next\"", "schema-gate-mismatch"),
    (
        "\"intentField\": \"next_action.action\"",
        "\"intentField\": \"next_action.acton\"",
        "schema-gate-mismatch",
    ),
    ("\"c2\": \"continuation\"", "\"c2\": \"continuaton\"", "missing-prompt"),
    ("\"c3\": \"fix\"", "\"c3\": \"fx\"", "missing-prompt"),
    ("\"edition\": \"default\"", "\"edition\": \"defalt\"", "missing-prompt"),
    ("\"maxAttempts\": 2", "\"maxAttempts\": \"two\"", "wrong-type"),
    ("\"action\": \"retry\"", "\"action\": \"rety\"", "invalid-value"),
    ("\"successWhen\": \"empty\"", "\"successWhen\": \"emty\"", "invalid-value"),
    ("\"detect:graph\"", "\"detect:grph\"", "invalid-value"),
    ("\"permissionMode\": \"acceptEdits\"", "\"permissionMode\": \"acceptEdit\"", "invalid-value"),
    ("prompts/system.md\"", "prompts/systm.md\"", "missing-prompt"),
    ("\"file\": \"fix.json\"", "\"file\": \"fx.json\"", "unresolved-schema"),
    ("#/definitions/initial.fix", "#/definitions/initial.fx", "unresolved-schema"),
    ("\"initial.fix\": { \"type\"", "\"initial.fx\": { \"type\"", "unresolved-schema"),
    (
        "\"required\": [\"stepId\", \"next_action\", \"approach\"]",
        "\"required\": [\"stepId\", \"next_action\", \"aproach\"]",
        "impossible-schema",
    ),
    ("\"approach\": { \"type\": \"string\" }", "\"aproach\": { \"type\": \"string\" }", "impossible-schema"),
];

/// What is changed in a piece, into what, and the code of what is found.
const IN_A_PIECE: &[(&str, &str, &str)] = &[
    ("        next: implement\n", "        nxt: implement\n", "unknown-key"),
    ("  - name: implement\n", "  - name: COMPLETE\n", "step-name"),
    ("  - name: implement\n", "  - description: x\n", "missing-key"),
    ("    edit: true\n", "    <<: { edit: true }\n", "invalid-yaml"),
    ("initial_movement", "initial_movment", "unknown-key"),
    ("      - condition: The plan stands\n", "      - condition:\n", "wrong-type"),
    ("        next: implement\n", "        next:\n", "wrong-type"),
    ("  - name: implement\n", "  - name:\n", "wrong-type"),
    ("max_iterations: 12", "max_iterations:", "wrong-type"),
    (
        "policies:\n  coding: ../policies/coding.md\n  careful: Change one thing at a time.\n",
        "",
        "unknown-name",
    ),
    (
        "policies:\n  coding: ../policies/coding.md\n  careful: Change one thing at a time.\n",
        "policies: 7\n",
        "wrong-type",
    ),
    ("    persona: coder\n", "    persona:\n", "wrong-type"),
    ("    persona: coder\n", "    zork: coder\n", "unknown-key"),
    ("    output_contracts:\n", "    zork:\n", "unknown-key"),
    ("        - name: 00-plan.md\n", "        - name: 7\n", "wrong-type"),
    ("        - Scope: 01-scope.md\n", "        - Scope:\n", "wrong-type"),
    ("rules:", "ruls:", "unknown-key"),
    ("loop_monitors:\n", "", "invalid-value"),
    ("max_iterations: 12", "max_rounds: 12", "unknown-key"),
];

#[test]
fn in_a_registry() {
    let wrong = wrong(IN_A_REGISTRY, &support::sound(), |files| support::findings(files, support::DIR));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn in_a_registry_that_completes() {
    let files = support::project(cuegate_testkit::definitions::COMPLETE);
    let wrong =
        wrong(IN_A_REGISTRY_THAT_COMPLETES, &files, |files| support::findings(files, ".agent/solver"));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn in_a_check_flow() {
    let next = "{ \"next\": \"s_b2c1de\" }";
    let cases = [
        ("\"onPass\"", "\"onPas\"", "unknown-key"),
        (next, "{ \"complete\": false }", "missing-transition"),
        (next, "{ \"nxt\": \"s_b2c1de\" }", "unknown-key"),
        (next, "{ \"next\": \"s_b2c1ed\" }", "unknown-target"),
        ("\"entryStep\"", "\"entrStep\"", "unknown-key"),
        ("\"check\": {", "\"chek\": {", "unknown-key"),
    ];
    let wrong = wrong(&cases, &check_flow::sound(), |files| support::findings(files, check_flow::DIR));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn in_a_piece() {
    let found = |files: &Project| findings_of(takt_support::load(files, |_| {}));
    let wrong = wrong(IN_A_PIECE, &takt_support::sound(), found);
    assert!(wrong.is_empty(), "{wrong}");
}
