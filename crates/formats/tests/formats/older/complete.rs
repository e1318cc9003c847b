//! Registries of the "complete" generation: from definition text to the representation, and what is found in them.

use std::fmt::Write as _;

use cuegate_flow::model::{Fact, Gate, Limits, OutcomeReader, Piece, Source, Verdict};
use cuegate_formats::{AgentOptions, load_agent};
use cuegate_testkit::definitions;

use crate::support::{Case, Project, dump, edit, findings, findings_of, load, project};

/// A sound agent of this generation: its domain has three stages, `complete.fix` runs a validator first.
pub const COMPLETE: &str = definitions::COMPLETE;

/// Its folder.
pub const DIR: &str = ".agent/solver";

fn broken(edits: &[(&str, &str)]) -> String {
    let files = edits.iter().fold(project(COMPLETE), |files, (from, to)| edit(&files, from, to));
    findings(&files, DIR)
}

fn table(cases: &[Case<'_>]) -> String {
    let mut text = String::new();
    for (name, edits) in cases {
        let found = broken(edits);
        writeln!(text, "# {name}").unwrap();
        text.push_str(if found.is_empty() { "nothing\n" } else { &found });
    }
    text
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

#[test]
fn entries() {
    insta::assert_snapshot!(table(&[
        ("none", &[("  \"entryStep\": \"initial.fix\",\n", "")]),
        ("by completion type", &[("\"entryStep\": \"initial.fix\"", "\"entryStepMapping\": { \"stepMachine\": \"initial.fix\" }")]),
        ("by verdict type", &[("\"entryStep\": \"initial.fix\"", "\"entryStepMapping\": { \"detect:graph\": \"initial.fix\" }")]),
        ("twice", &[("\"entryStep\": \"initial.fix\"",
            "\"entryStepMapping\": { \"detect:graph\": \"initial.fix\", \"stepMachine\": \"continuation.fix\" }")]),
        ("no type", &[("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"initial.fix\", \"entryStepMapping\": { \"issue\": \"initial.fix\" }")]),
        ("no step", &[("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"initial.fx\"")]),
        ("for another completion type", &[("\"entryStep\": \"initial.fix\"", "\"entryStepMapping\": { \"externalState\": \"initial.fix\" }")]),
        ("other types in registry and agent", &[("\"entryStep\": \"initial.fix\"", "\"completionType\": \"custom\", \"entryStep\": \"initial.fix\"")]),
        ("no completion type", &[("\"entryStep\": \"initial.fix\"", "\"completionType\": \"issue\", \"entryStep\": \"initial.fix\"")]),
    ]), @r#"
    # none
    steps_registry.json:1:1 error[no-entry]: [StepFlow] No entry step configured for completionType "stepMachine".
    Define either "entryStepMapping.stepMachine" or "entryStep" in steps_registry.json.
    # by completion type
    nothing
    # by verdict type
    nothing
    # twice
    steps_registry.json:3:56 warning[unused-key]: `stepMachine` names a type that `entryStepMapping` has already
    # no type
    steps_registry.json:3:53 warning[unknown-name]: `issue` in `entryStepMapping` is no completion type, so that no run begins by it
    # no step
    steps_registry.json:3:16 error[unknown-target]: the entry leads to the undefined step `initial.fx`
    # for another completion type
    steps_registry.json:1:1 error[no-entry]: [StepFlow] No entry step configured for completionType "stepMachine".
    Define either "entryStepMapping.stepMachine" or "entryStep" in steps_registry.json.
    # other types in registry and agent
    steps_registry.json:3:21 warning[unused-key]: `completionType` has no effect: the agent says `detect:graph`
    # no completion type
    steps_registry.json:3:21 error[invalid-value]: `issue` is no `completionType`
    "#);
}

#[test]
fn steps_and_gates() {
    insta::assert_snapshot!(table(&[
        ("no gate, no transitions", &[
            ("\"structuredGate\": {\n        \"allowedIntents\": [\"next\", \"repeat\", \"complete\"], \"intentField\": \"next_action.action\"\n      },\n", ""),
            ("\"transitions\": {\n        \"next\": { \"target\": \"continuation.fix\" },\n        \"repeat\": { \"target\": \"continuation.fix\" },\n        \"complete\": { \"target\": \"complete.fix\" }\n      }", "\"description\": \"x\"")]),
        ("no schema", &[("\"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"#/definitions/initial.fix\" },\n", "")]),
        ("pointer that leads nowhere", &[("#/definitions/initial.fix", "#/definitions/initial.fx")]),
        ("no schema of a completion step", &[(",\n      \"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"complete.fix\" }", "")]),
        ("unknown intent", &[("\"fallbackIntent\": \"next\"", "\"fallbackIntent\": \"continue\"")]),
        ("intent of another generation", &[("\"fallbackIntent\": \"next\"", "\"fallbackIntent\": \"handoff\"")]),
        ("no intents", &[("\"allowedIntents\": [\"next\", \"repeat\", \"complete\"], \"intentField\"", "\"intentField\"")]),
        ("field that the schema has not", &[("\"intentField\": \"next_action.action\"", "\"intentField\": \"decision\"")]),
        ("word that decides nothing", &[("[\"next\", \"wait\", \"complete\"]", "[\"next\", \"wait\", \"complete\", \"done\"]")]),
        ("intent without a word", &[("[\"next\", \"wait\", \"complete\"]", "[\"next\", \"complete\"]")]),
        ("step id of another step", &[("\"stepId\": { \"const\": \"initial.fix\" }", "\"stepId\": { \"const\": \"initial.issue\" }")]),
        ("step id of any step", &[("\"stepId\": { \"const\": \"initial.fix\" }", "\"stepId\": { \"type\": \"string\" }")]),
        ("no step id", &[("\"stepId\": { \"const\": \"initial.fix\" }, ", ""), ("\"initial.fix\": { \"type\": \"object\", \"required\": [\"stepId\", ", "\"initial.fix\": { \"type\": \"object\", \"required\": [")]),
        ("section", &[("  \"steps\": {\n", "  \"steps\": {\n    \"section.extra\": { \"stepId\": \"section.extra\", \"c2\": \"section\", \"c3\": \"extra\" },\n")]),
    ]), @"
    # no gate, no transitions
    steps_registry.json:19:3 error[missing-key]: [StepFlow] Flow validation failed. All Flow steps must define structuredGate and transitions.
    Steps missing structuredGate: continuation.fix
    Steps missing transitions: continuation.fix
    # no schema
    steps_registry.json:20:5 error[missing-key]: `initial.fix` lacks `outputSchemaRef`
    # pointer that leads nowhere
    steps_registry.json:22:58 error[unresolved-schema]: FAILED_SCHEMA_RESOLUTION: no schema `#/definitions/initial.fx` in `fix.json`
    # no schema of a completion step
    steps_registry.json:12:5 error[missing-key]: `complete.fix` lacks `outputSchemaRef`
    # unknown intent
    steps_registry.json:25:27 error[invalid-value]: `continue` is no intent
    # intent of another generation
    steps_registry.json:25:27 error[mixed-generations]: this registry mixes generations: the “closing” generation has `handoff` of `initial.fix` (line 25); the “complete” generation has `completionPatterns` (line 4), `completionSteps` (line 11), `complete` of `initial.fix` (line 24), `complete` of `initial.fix` (line 31), 2 more
    # no intents
    steps_registry.json:37:25 error[missing-key]: `allowedIntents` is missing in `structuredGate`
    # field that the schema has not
    steps_registry.json:38:74 error[schema-gate-mismatch]: `intentField` of `continuation.fix` is `decision`, where the schema allows no value
    # word that decides nothing
    steps_registry.json:38:74 warning[schema-gate-mismatch]: the schema of `continuation.fix` lists `done` at `next_action.action`, which its gate does not allow
    # intent without a word
    steps_registry.json:38:74 warning[schema-gate-mismatch]: the schema of `continuation.fix` lists no word for `repeat` at `next_action.action`
    # step id of another step
    fix.json:4:7 error[schema-gate-mismatch]: the schema of `initial.fix` is one for `initial.issue`, by its `stepId`
    # step id of any step
    steps_registry.json:22:58 warning[schema-gate-mismatch]: the schema of `initial.fix` takes any text as `stepId`
    # no step id
    steps_registry.json:22:58 warning[schema-gate-mismatch]: the schema of `initial.fix` has no `stepId`
    # section
    steps_registry.json:20:5 error[missing-prompt]: `section.extra` has no prompt: no file `.agent/solver/prompts/steps/section/extra/f_default.md`
    ");
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
fn ways() {
    insta::assert_snapshot!(table(&[
        ("complete to itself", &[("\"repeat\": { \"target\": \"initial.fix\" },\n        \"complete\": { \"target\": \"complete.fix\" }",
            "\"repeat\": { \"target\": \"initial.fix\" },\n        \"complete\": { \"target\": \"initial.fix\" }")]),
        ("complete to nowhere", &[("\"repeat\": { \"target\": \"initial.fix\" },\n        \"complete\": { \"target\": \"complete.fix\" }",
            "\"repeat\": { \"target\": \"initial.fix\" },\n        \"complete\": { \"target\": null }")]),
        ("complete to no step", &[("\"repeat\": { \"target\": \"initial.fix\" },\n        \"complete\": { \"target\": \"complete.fix\" }",
            "\"repeat\": { \"target\": \"initial.fix\" },\n        \"complete\": { \"target\": \"complete.other\" }")]),
        ("next to the end", &[("\"next\": { \"target\": \"continuation.fix\" },\n        \"repeat\": { \"target\": \"initial.fix\" }",
            "\"next\": { \"target\": \"complete.fix\" },\n        \"repeat\": { \"target\": \"initial.fix\" }")]),
        ("abort with a target", &[("\"repeat\": { \"target\": \"initial.fix\" },", "\"repeat\": { \"target\": \"initial.fix\" }, \"abort\": { \"target\": \"initial.fix\" },")]),
        ("completion step of another name", &[("\"complete.fix\": {\n      \"stepId\": \"complete.fix\", \"name\"", "\"closure.fix\": {\n      \"stepId\": \"closure.fix\", \"name\"")]),
        ("completion step twice", &[("  \"steps\": {\n", "  \"steps\": {\n    \"complete.fix\": { \"stepId\": \"complete.fix\", \"c2\": \"complete\", \"c3\": \"fix\",\n      \
              \"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"complete.fix\" },\n      \
              \"structuredGate\": { \"allowedIntents\": [\"complete\"] }, \"transitions\": { \"complete\": { \"target\": \"complete.fix\" } } },\n")]),
        ("completion step that leads on", &[("  \"steps\": {\n", "  \"steps\": {\n    \"complete.fix\": { \"stepId\": \"complete.fix\", \"c2\": \"complete\", \"c3\": \"fix\",\n      \
              \"outputSchemaRef\": { \"file\": \"fix.json\", \"schema\": \"complete.fix\" },\n      \
              \"structuredGate\": { \"allowedIntents\": [\"complete\"] }, \"transitions\": { \"complete\": { \"target\": \"initial.fix\" } } },\n")]),
        ("no conditions", &[("\"completionConditions\": [{ \"validator\": \"clean\" }],\n      \"onFailure\": { \"action\": \"retry\", \"maxAttempts\": 2 },\n", "")]),
        ("stage missing", &[("\"continuation.fix\": {\n      \"stepId\": \"continuation.fix\"", "\"further.fix\": {\n      \"stepId\": \"further.fix\"")]),
    ]), @"
    # complete to itself
    steps_registry.json:31:33 error[wrong-direction]: `complete` of `initial.fix` leads to `initial.fix`, which is no `complete.*` step
    # complete to nowhere
    steps_registry.json:31:33 error[missing-transition]: `complete` of `initial.fix` leads nowhere
    # complete to no step
    steps_registry.json:31:33 error[unknown-target]: `initial.fix` on `complete` leads to the undefined step `complete.other`
    # next to the end
    steps_registry.json:29:29 error[wrong-direction]: `next` of `initial.fix` leads to `complete.fix`, a step that completes the run
    # abort with a target
    steps_registry.json:30:69 warning[unused-key]: `abort` ends the run, so that `initial.fix` is never reached
    # completion step of another name
    steps_registry.json:12:5 error[wrong-direction]: `completionSteps` name `closure.fix`, which is no `complete.*` step
    steps_registry.json:16:58 error[schema-gate-mismatch]: the schema of `closure.fix` is one for `complete.fix`, by its `stepId`
    steps_registry.json:31:33 error[unknown-target]: `initial.fix` on `complete` leads to the undefined step `complete.fix`; so does another place
    # completion step twice
    steps_registry.json:16:7 warning[unused-key]: `outputSchemaRef` has no effect in `completionSteps.complete.fix`
    # completion step that leads on
    steps_registry.json:16:7 warning[unused-key]: `outputSchemaRef` has no effect in `completionSteps.complete.fix`
    steps_registry.json:22:102 error[wrong-direction]: `complete` ends the run, so that it cannot lead to `initial.fix`
    # no conditions
    steps_registry.json:8:5 warning[unused-definition]: no validation names the validator `clean`, so that nothing runs it
    steps_registry.json:12:5 error[missing-prompt]: `complete.fix` has no prompt: no file `.agent/solver/prompts/steps/retry/fix/f_default.md`
    # stage missing
    steps_registry.json:29:29 error[unknown-target]: `initial.fix` on `next` leads to the undefined step `continuation.fix`; so do 2 more places
    steps_registry.json:36:58 error[schema-gate-mismatch]: the schema of `further.fix` is one for `initial.fix`, `continuation.fix`, by its `stepId`
    ");
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

/// What could not be read is there all the same: nothing is wrong because of it.
#[test]
fn one_slip_is_one_finding() {
    insta::assert_snapshot!(table(&[
        ("conditions that are none", &[("[{ \"validator\": \"clean\" }]", "\"clean\"")]),
        ("a condition without a validator", &[("[{ \"validator\": \"clean\" }]", "[{}]")]),
        ("a validator that is none", &[("\"clean\": { \"type\": \"command\", \"command\": \"git status --porcelain\", \"successWhen\": \"empty\",\n      \"failurePattern\": \"dirty\" }", "\"clean\": \"git status\"")]),
        ("a verdict that is none", &[("{ \"type\": \"detect:graph\" }", "7")]),
        ("a step under another key", &[("    \"initial.fix\": {\n      \"stepId\"", "    \"initial.fx\": {\n      \"stepId\"")]),
        ("handoffs that are none", &[("\"handoffFields\": [\"approach\"]", "\"handoffFields\": 7")]),
    ]), @"
    # conditions that are none
    steps_registry.json:14:31 error[wrong-type]: `completionConditions` must be a list, not a text
    # a condition without a validator
    steps_registry.json:14:32 error[missing-key]: `validator` is missing in a completion condition
    # a validator that is none
    steps_registry.json:8:14 error[wrong-type]: `validators.clean` must be an object, not a text
    # a verdict that is none
    agent.json:8:16 error[wrong-type]: `runner.verdict` must be an object, not a number
    # a step under another key
    f_default.md:1:8 warning[unknown-variable]: undefined variable `initial_fix_approach` in the prompt of `continuation.fix`; the prompt of `complete.fix` reads it as well
    steps_registry.json:3:16 error[unknown-target]: the entry leads to the undefined step `initial.fix`
    steps_registry.json:21:17 error[id-mismatch]: the step of key `initial.fx` calls itself `initial.fix`
    steps_registry.json:22:58 error[schema-gate-mismatch]: the schema of `initial.fx` is one for `initial.fix`, by its `stepId`
    steps_registry.json:30:31 error[unknown-target]: `initial.fx` on `repeat` leads to the undefined step `initial.fix`
    # handoffs that are none
    steps_registry.json:26:26 error[wrong-type]: `handoffFields` must be a list of texts, not a number
    ");
}
