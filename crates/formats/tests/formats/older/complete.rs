//! Registries of the "complete" generation: from definition text to the representation, and what is found in them.

use cuegate_flow::model::{Fact, Gate, Limits, OutcomeReader, Piece, Source, Verdict};
use cuegate_formats::{AgentOptions, load_agent};
use cuegate_testkit::definitions;

use crate::support::{Project, dump, edit, findings, findings_of, load, project};

/// A sound agent of this generation: its domain has three stages, `complete.fix` runs a validator first.
pub const COMPLETE: &str = definitions::COMPLETE;

/// Its folder.
pub const DIR: &str = ".agent/solver";

fn broken(edits: &[(&str, &str)]) -> String {
    let files = edits.iter().fold(project(COMPLETE), |files, (from, to)| edit(&files, from, to));
    findings(&files, DIR)
}

#[test]
fn a_sound_agent_lowered() {
    assert_eq!(broken(&[]), "");
    let loaded = load(&project(COMPLETE), DIR);
    insta::assert_snapshot!(dump(&loaded.draft), @r#"
    solver (registry-complete) enters initial.fix []
    Flow, at most 20 iterations
    param issue --issue Number required
    counter 0: complete.fix attempts

    initial.fix “Plan”
      AcceptEdits All
      ask Work, continues run, model default, schema Some(SchemaId(0))
      system “Solve #<param issue>.⏎”
      prompt “Plan.⏎”
      reads next_action.action: next continue=next repeat retry=repeat wait=repeat complete abort escalate=abort
      else at first next
      leaves approach = approach
      next → continuation.fix
      repeat → initial.fix
      complete → complete.fix, hands off
      abort → Aborted, implied

    continuation.fix “Fix”
      AcceptEdits All
      ask Work, continues run, model default, schema Some(SchemaId(1))
      system “Solve #<param issue>.⏎”
      prompt “Go on: <left by initial.fix: approach>⏎”
      reads next_action.action: next continue=next repeat retry=repeat wait=repeat complete abort escalate=abort
      next → continuation.fix
      repeat → continuation.fix
      complete → complete.fix, hands off
      abort → Aborted, implied

    complete.fix “Clean tree”
      AcceptEdits All
      ask Work, continues run, model default, schema Some(SchemaId(2))
      system “Solve #<param issue>.⏎”
      prompt “Report <left by initial.fix: approach>.⏎”
      reads next_action.action: complete abort escalate=abort
      complete → complete.fix@validators
      abort → Aborted, implied

    complete.fix@validators “Clean tree” (not counted)
      AcceptEdits All
      exec clean `git status --porcelain` Empty []
      gate Exit
      pass → Completed
      fail(0) → origin among initial.fix | continuation.fix, at most 2 on counter 0, with “Commit first.⏎”
      fail(0) → Failed("validator `clean` still fails after 2 retries")
    "#);
}

#[test]
fn what_an_agent_is_sent() {
    let loaded = load(&project(COMPLETE), DIR);
    let sent: Vec<String> =
        loaded.draft.schemas.iter().map(|schema| schema.value()["properties"].to_string()).collect();
    insta::assert_snapshot!(sent.join("\n"), @r#"
    {"stepId":{"const":"initial.fix"},"approach":{"type":"string"},"next_action":{"type":"object","required":["action"],"properties":{"action":{"enum":["continue","retry","complete","escalate","next","repeat","abort"]}},"additionalProperties":false}}
    {"stepId":{"enum":["continuation.fix"]},"next_action":{"type":"object","required":["action"],"properties":{"action":{"enum":["next","wait","complete","repeat","abort"]}},"additionalProperties":false}}
    {"stepId":{"const":"complete.fix"},"next_action":{"type":"object","required":["action"],"properties":{"action":{"enum":["complete","abort"]}},"additionalProperties":false}}
    "#);
}

#[test]
fn silence_is_told_in_the_words_of_the_document() {
    let loaded = load(&project(COMPLETE), DIR);
    let step = loaded.draft.steps.iter().find(|step| &*step.name == "continuation.fix").unwrap();
    let Gate::Readers(readers) = &step.gate else { panic!("{:?}", step.gate) };
    let Some(OutcomeReader::Silence(text)) = readers.last() else { panic!("{readers:?}") };
    let text: String = text
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.to_string(),
            Piece::Value(Source::Fact(Fact::Iteration)) => "3".to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        text,
        "[StepFlow] No intent produced for iteration 3 on step \"continuation.fix\".\n\
         Flow steps must produce structured output with a valid intent.\n\
         Check that the step's schema includes next_action.action and the LLM returns valid JSON."
    );
}

/// A built-in prompt stands in, and that is said: in this generation it is for safety only.
#[test]
fn built_in_prompts_are_for_safety_only() {
    let without = |key: &str| {
        let step = "\"c2\": \"continuation\", \"c3\": \"fix\"";
        let named = format!("\"c2\": \"continuation\", \"c3\": \"mend\", \"fallbackKey\": \"{key}\"");
        broken(&[(step, &named)])
    };
    insta::assert_snapshot!(without("continuation_issue"), @"steps_registry.json:35:103 warning[missing-prompt]: `continuation.fix` has no prompt file, and the built-in `continuation_issue` is only for safety");
    assert!(without("continuation.issue").contains("error[missing-prompt]"));
}

#[test]
fn another_tools_configuration_that_lacks_a_step() {
    let with = |text: &str| {
        let mut files = project(COMPLETE);
        files.insert(".agent/climpt/config/solver-steps-user.yml".into(), text.as_bytes().to_vec());
        findings(&files, DIR)
    };
    let config = |c2: &str, c3: &str| {
        with(&format!(
            "params:\n  two:\n    directiveType:\n      pattern: \"^({c2})$\"\n    layerType:\n      pattern: \"^({c3})$\"\n"
        ))
    };
    assert_eq!(config("initial|continuation|complete", "fix|issue"), "");
    insta::assert_snapshot!(config("initial|retry", "issue"), @"");
    insta::assert_snapshot!(with("a: ["), @"");
}

/// A registry alone: the document's own example has nothing but steps.
#[test]
fn a_registry_without_an_agent() {
    let mut files: Project = project(COMPLETE);
    files.remove(".agent/solver/agent.json");
    let options = AgentOptions {
        agent_dir: DIR.to_owned(),
        registry: Some(format!("{DIR}/steps_registry.json")),
        set: Vec::new(),
    };
    let loaded = load_agent(&files, &options);
    assert_eq!(loaded.draft.dialect, "registry-complete");
    assert_eq!((&loaded.draft.verdict, loaded.draft.limits), (&Verdict::Flow, Limits::new(20)));
    assert_eq!(findings_of(loaded), "");
}

#[test]
fn limits_that_nobody_sets() {
    let limit = |from: &str, to: &str| {
        let loaded = load(&edit(&project(COMPLETE), from, to), DIR);
        (loaded.draft.verdict, loaded.draft.limits.iterations_max)
    };
    let verdict = "\"verdict\": { \"type\": \"detect:graph\" },";
    assert_eq!(limit(verdict, ""), (Verdict::Flow, 20));
    let set = "\"verdict\": { \"type\": \"detect:graph\", \"config\": { \"maxIterations\": 7 } },";
    assert_eq!(limit(verdict, set), (Verdict::Flow, 7));
    let counted = "\"verdict\": { \"type\": \"count:iteration\" },";
    assert_eq!(limit(verdict, counted), (Verdict::Iterations(20), 20));
}

/// The older shape of an agent says its completion type in `behavior`.
#[test]
fn an_agent_with_behavior() {
    let configured = |kind: &str, config: &str| {
        let files = edit(
            &edit(
                &project(COMPLETE),
                "  \"runner\": {\n    \"flow\": { \"systemPromptPath\": \"prompts/system.md\" },\n    \
                   \"verdict\": { \"type\": \"detect:graph\" },\n    \
                   \"boundaries\": { \"allowedTools\": [\"*\"], \"permissionMode\": \"acceptEdits\" }\n  }",
                &format!(
                    "  \"behavior\": {{ \"systemPromptPath\": \"prompts/system.md\", \"completionType\": \"{kind}\",{config}\n    \
                       \"allowedTools\": [\"*\"], \"permissionMode\": \"acceptEdits\" }}"
                ),
            ),
            "\"entryStep\": \"initial.fix\"",
            "\"entryStepMapping\": { \"stepMachine\": \"initial.fix\", \"iterationBudget\": \"continuation.fix\" }",
        );
        let loaded = load(&files, DIR);
        let entry = loaded.draft.entry.as_ref().map(|entry| entry.text.to_string());
        (entry, loaded.draft.verdict.clone(), loaded.draft.limits.iterations_max, findings_of(loaded))
    };
    let behavior = |kind: &str| configured(kind, "");
    let (entry, verdict, max, found) = behavior("stepMachine");
    assert_eq!((entry.as_deref(), verdict, max), (Some("initial.fix"), Verdict::Flow, 20));
    assert_eq!(found, "");
    let (entry, verdict, max, _) = behavior("iterationBudget");
    assert_eq!((entry.as_deref(), verdict, max), (Some("continuation.fix"), Verdict::Iterations(20), 20));
    // An empty configuration leaves the limit unset as well.
    let (_, verdict, max, found) = configured("iterationBudget", " \"completionConfig\": {},");
    assert_eq!((verdict, max), (Verdict::Iterations(20), 20));
    assert!(!found.contains("missing-key"), "{found}");
    let (_, _, _, found) = behavior("externalState");
    assert!(
        found.contains(
            "[StepFlow] No entry step configured for completionType \"externalState\".\nDefine either"
        ),
        "{found}"
    );
}
