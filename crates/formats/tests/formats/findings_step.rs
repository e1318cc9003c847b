//! A finding about a step names it, in the author's words, and what leads nowhere is kept as it is written.

use cuegate_flow::{
    checks::check_draft,
    diagnostics::Severity,
    model::{DanglingTarget, Draft, Flow},
};

use crate::support::{self, Project, edit, project};
use crate::takt::takt_support;

const PIECE: &str = "\
//- .takt/pieces/sound.yaml
name: p
max_iterations: 5
initial_movement: a
movements:
  - name: a
    instruction: do it
    rules:
      - {condition: x, next: b}
      - {condition: y, next: nowhere}
      - {condition: z}
  - name: b
    instruction: do it
    rules: [{condition: ok, next: COMPLETE}]
loop_monitors:
  - cycle: [a, b]
    threshold: 2
    judge: {rules: [{condition: ok, next: gone}]}
";

fn unsound(draft: Draft) -> Flow {
    let checked = check_draft(draft);
    checked.flow.or(checked.unsound).expect("it can be looked at")
}

/// What the edges of a step are written to lead to where no step is.
fn dangling(flow: &Flow, step: &str) -> Vec<String> {
    let step = flow.step(flow.find(step).unwrap());
    let all = step.edges.iter().flat_map(|edge| {
        edge.dangling.iter().map(move |dangling| {
            let case = dangling.case.as_deref().map(|case| format!(" {case}")).unwrap_or_default();
            format!("{}{case} → {}", edge.on, dangling.name.as_deref().unwrap_or("?"))
        })
    });
    all.collect()
}

#[test]
fn a_finding_in_a_movement_is_about_it() {
    let loaded = takt_support::load(&project(PIECE), |_| {});
    let errors = loaded.diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
    let about: Vec<(&str, Option<&str>)> =
        errors.map(|finding| (finding.code, finding.step.as_deref())).collect();
    assert_eq!(
        about,
        [("unknown-target", Some("a")), ("missing-key", Some("a")), ("unknown-target", Some("monitor:a+b")),]
    );
}

#[test]
fn what_leads_nowhere_keeps_its_name() {
    let flow = unsound(takt_support::load(&project(PIECE), |_| {}).draft);
    assert_eq!(dangling(&flow, "a"), ["y → nowhere", "z → ?"]);
    assert_eq!(dangling(&flow, "monitor:a+b"), ["ok → gone"]);
    assert!(dangling(&flow, "b").is_empty());
}

#[test]
fn an_entry_that_leads_nowhere_keeps_its_name() {
    let name =
        |flow: &Flow| flow.lost_entry.as_ref().and_then(|lost| lost.name.as_deref().map(str::to_owned));
    for (written, lost) in [("gone", Some("gone")), ("COMPLETE", Some("COMPLETE")), ("b", None)] {
        let piece = edit(&project(PIECE), "initial_movement: a", &format!("initial_movement: {written}"));
        let flow = unsound(takt_support::load(&piece, |_| {}).draft);
        assert_eq!(name(&flow).as_deref(), lost);
    }
}

#[test]
fn so_does_it_in_a_registry() {
    let sound = r#""next": { "target": "continuation.fix" }, "repeat": { "target": "initial.fix" }"#;
    let gone = r#""next": { "target": "gone" }, "repeat": { "target": "initial.fix" }"#;
    let broken = edit(&support::sound(), sound, gone);
    let flow = unsound(support::load(&broken, support::DIR).draft);
    assert_eq!(dangling(&flow, "initial.fix"), ["next → gone"]);
    assert!(dangling(&flow, "continuation.fix").is_empty());
    assert_eq!(flow.lost_entry, None);
    let begins = edit(&support::sound(), "\"entryStep\": \"initial.fix\"", "\"entryStep\": \"gone\"");
    let flow = unsound(support::load(&begins, support::DIR).draft);
    assert_eq!(flow.lost_entry, Some(DanglingTarget::to("gone")), "and the first step stands in for it");
    assert_eq!(&*flow.step(flow.entry).name, "initial.fix");
}

#[test]
fn what_guards_a_step_of_nearly_that_name() {
    let complete = project(cuegate_testkit::definitions::COMPLETE);
    let files = edit(
        &complete,
        "\"steps\": {",
        "\"steps\": { \"complete.fix\": { \"stepId\": \"complete.fix\", \"name\": \"End\", \"c2\": \"complete\", \
         \"c3\": \"fix\", \"edition\": \"default\", \"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \
         \"complete.fix\" }, \"structuredGate\": { \"allowedIntents\": [\"complete\"] }, \"transitions\": { \
         \"complete\": { \"target\": null } } },",
    );
    let files = edit(
        &files,
        "\"maxAttempts\": 2 },\n      \"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"complete.fix\" }",
        "\"maxAttempts\": 2 }",
    );
    let found = |files: &Project| support::findings(files, ".agent/solver");
    assert_eq!(found(&files), "");
    let key = "\"complete.fix\": {\n      \"stepId\": \"complete.fix\"";
    let misspelt = edit(&files, key, "\"complete.fxi\": {\n      \"stepId\": \"complete.fxi\"");
    let told = "error[unknown-target]: `completionSteps` names the undefined step `complete.fxi`, to which nothing leads";
    assert!(found(&misspelt).lines().count() <= 2 && found(&misspelt).contains(told), "{}", found(&misspelt));
}
