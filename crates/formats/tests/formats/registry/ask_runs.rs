//! Who is asked with what: models, permissions, tools, system prompts, and the values that prompts read.

use std::collections::BTreeSet;

use cuegate_engine::{Answer, EndState, Event};
use cuegate_flow::model::{Permission, Tools};
use cuegate_formats::Generation;
use serde_json::{Value, json};

use crate::registry::drive::{Small, small};

const BOTH: [Generation; 2] = [Generation::Closing, Generation::Complete];

#[test]
fn the_run_begins_where_its_verdict_says_else_where_the_registry_does() {
    let verdicts = [
        ("count:iteration", json!({"maxIterations": 3})),
        ("count:check", json!({"maxChecks": 3})),
        ("poll:state", json!({"resourceType": "api"})),
        ("detect:keyword", json!({"verdictKeyword": "DONE"})),
        ("detect:structured", json!({"signalType": "ready"})),
        ("detect:graph", json!({})),
        ("meta:composite", json!({"operator": "or", "conditions": [{"type": "detect:graph"}]})),
        ("meta:custom", json!({"handlerPath": "done.sh"})),
    ];
    for (kind, config) in &verdicts {
        let small = || {
            let all = small(Generation::Closing).verdict(kind, config.clone()).file("done.sh", "#!/bin/sh\n");
            if *kind == "poll:state" { all.given("url", "http://localhost/") } else { all }
        };
        let mapped = small().registry(json!({"entryStepMapping": { *kind: "continuation.fix" }}));
        assert_eq!(mapped.drive().step(), "continuation.fix", "{kind}");
        let other = if *kind == "detect:graph" { "count:check" } else { "detect:graph" };
        let elsewhere = small().registry(json!({"entryStepMapping": { other: "continuation.fix" }}));
        assert_eq!(elsewhere.drive().step(), "initial.fix", "{kind}");
        assert_eq!(small().drive().step(), "initial.fix", "{kind}");
    }
}

#[test]
fn an_older_registry_begins_by_its_completion_type() {
    for (older, newer, config) in [
        ("stepMachine", "detect:graph", json!({})),
        ("iterationBudget", "count:iteration", json!({"maxIterations": 3})),
        ("checkBudget", "count:check", json!({"maxChecks": 3})),
        ("keywordSignal", "detect:keyword", json!({"verdictKeyword": "DONE"})),
        ("structuredSignal", "detect:structured", json!({"signalType": "ready"})),
        ("composite", "meta:composite", json!({"operator": "or", "conditions": [{"type": "detect:graph"}]})),
    ] {
        for name in [older, newer] {
            let small = small(Generation::Complete)
                .verdict(newer, config.clone())
                .registry(json!({"entryStepMapping": { name: "continuation.fix" }}));
            assert_eq!(small.drive().step(), "continuation.fix", "{name}");
        }
    }
    let general = small(Generation::Complete).registry(json!({"entryStep": "continuation.fix"}));
    assert_eq!(general.drive().step(), "continuation.fix", "else by `entryStep`");
    // The registry itself may say the type, where the agent does not.
    let own = small(Generation::Complete).runner(json!({ "verdict": null })).registry(
        json!({"completionType": "stepMachine", "entryStepMapping": {"stepMachine": "continuation.fix"}}),
    );
    assert_eq!(own.drive().step(), "continuation.fix");
}

#[test]
fn the_model_of_a_step_comes_before_the_agents_before_opus() {
    for generation in BOTH {
        for (step, agent, expected) in [
            (Some("haiku"), Some("sonnet"), "haiku"),
            (Some("sonnet"), None, "sonnet"),
            (None, Some("sonnet"), "sonnet"),
            (None, Some("haiku"), "haiku"),
            (None, None, "opus"),
        ] {
            let mut drive = small(generation)
                .with("initial.fix", json!({ "model": step }))
                .runner(json!({"flow": {"defaultModel": agent}}))
                .drive();
            assert_eq!(drive.model().as_deref(), Some(expected));
            // Of this step alone.
            drive.say("next");
            assert_eq!(drive.model().as_deref(), agent.or(Some("opus")));
        }
    }
}

#[test]
fn a_step_may_do_no_more_than_its_agent() {
    use Permission::{AcceptEdits, BypassPermissions, Default, Plan};
    const WORDS: [(&str, Permission); 4] = [
        ("plan", Plan),
        ("default", Default),
        ("acceptEdits", AcceptEdits),
        ("bypassPermissions", BypassPermissions),
    ];
    for generation in BOTH {
        for (agent, at_most) in WORDS {
            let all = small(generation).runner(json!({"boundaries": {"permissionMode": agent}}));
            assert_eq!(all.drive().asked().ask.boundary.permission, at_most);
            for (step, own) in WORDS {
                let drive = all.clone().with("initial.fix", json!({ "permissionMode": step })).drive();
                assert_eq!(drive.asked().ask.boundary.permission, own.min(at_most), "{step} of {agent}");
            }
        }
        let unsaid = small(generation).runner(json!({ "boundaries": null }));
        assert_eq!(unsaid.drive().asked().ask.boundary.permission, Plan);
    }
    assert!(Plan < Default && Default < AcceptEdits && AcceptEdits < BypassPermissions);
}

#[test]
fn a_list_of_tools_is_what_every_ask_may_use() {
    for (listed, expected) in [
        (json!(["Read", "Bash"]), Tools::Only(vec!["Read".into(), "Bash".into()])),
        (json!(["*"]), Tools::All),
        (Value::Null, Tools::All),
    ] {
        let mut drive =
            small(Generation::Closing).runner(json!({"boundaries": {"allowedTools": listed}})).drive();
        assert_eq!(drive.asked().ask.boundary.tools, expected);
        assert_eq!(drive.say("next").asked().ask.boundary.tools, expected);
    }
}

#[test]
fn the_system_prompt_is_the_agents_file_in_every_ask() {
    for generation in BOTH {
        let all = small(generation)
            .given("issue", "7")
            .runner(json!({"flow": {"systemPromptPath": "texts/who.md"}}))
            .file("texts/who.md", "You mend issue {uv-issue}.");
        let (to_end, ending) = all.ending();
        let mut drive = all.drive();
        for intent in ["next", to_end, ending] {
            assert_eq!(drive.asked().system, "You mend issue 7.");
            drive.say(intent);
        }
        assert_eq!(drive.end().unwrap().0, EndState::Completed);
    }
}

/// The first step leaves two values; later steps read them by inputs, by the words of step and key, and not at all.
fn leaving(generation: Generation) -> Small {
    small(generation)
        .with("initial.fix", json!({"structuredGate": {"handoffFields": ["about.approach", "about.risk"]}}))
        .field(
            "initial.fix",
            json!({"about": {"type": "object", "properties": {"approach": {"type": "string"}, "risk": {"type": "string"},
                "secret": {"type": "string"}}}}),
        )
}

#[test]
fn what_a_step_hands_on_is_read_by_later_prompts() {
    for generation in BOTH {
        let all = leaving(generation).prompt("continuation.fix", "Go on: {uv-initial_fix_approach}.");
        let end = all.end();
        let all = all.prompt(end, "It was {uv-initial_fix_approach}, risk {uv-initial_fix_risk}.");
        let (to_end, _) = all.ending();
        let mut drive = all.drive();
        drive.say_with("repeat", json!({"about": {"approach": "by hand", "risk": "none"}}));
        // The newest visit wins, and what it leaves out stays as it was.
        drive.say_with("next", json!({"about": {"approach": "by tests", "secret": "x"}}));
        assert_eq!(drive.prompt(), "Go on: by tests.");
        assert_eq!(
            drive.say(to_end).prompt(),
            "It was by tests, risk none.",
            "whoever completes the run reads it too"
        );
    }
}

#[test]
fn an_input_reads_what_a_step_left_its_default_or_fails() {
    for generation in BOTH {
        let with = |input: Value| {
            leaving(generation)
                .with("continuation.fix", json!({"inputs": {"how": input}}))
                .prompt("continuation.fix", "Do it {uv-how}.")
        };
        let given = json!({"about": {"approach": "by tests"}});
        for from in ["initial.fix.approach", "initial.fix.about.approach"] {
            let mut drive = with(json!({ "from": from })).drive();
            assert_eq!(drive.say_with("next", given.clone()).prompt(), "Do it by tests.", "{from}");
        }
        let mut drive = with(json!({"from": "initial.fix.approach"})).drive();
        let (state, reason) = drive.say("next").end().unwrap();
        assert_eq!(state, EndState::Failed);
        assert!(reason.contains("missing required input `how` of `continuation.fix`"), "{reason}");
        let mut drive = with(json!({"from": "initial.fix.approach", "required": true})).drive();
        assert_eq!(drive.say("next").end().unwrap().0, EndState::Failed);
        let mut drive = with(json!({"from": "initial.fix.approach", "required": false})).drive();
        assert_eq!(drive.say("next").prompt(), "Do it .");
        let defaulted = with(json!({"from": "initial.fix.approach", "default": "somehow"}));
        assert_eq!(defaulted.drive().say("next").prompt(), "Do it somehow.");
        assert_eq!(defaulted.drive().say_with("next", given).prompt(), "Do it by tests.");
    }
}

#[test]
fn prompts_read_what_a_run_knows() {
    let told = "{uv-iteration} after {uv-completed_iterations} of {uv-max_iterations}, {uv-remaining} left";
    let all = small(Generation::Closing)
        .verdict("detect:keyword", json!({"verdictKeyword": "ALL DONE", "maxIterations": 7}))
        .given("issueNumber", "12")
        .task("mend the roof")
        .with("initial.fix", json!({"uvVariables": ["issueNumber", "task"]}))
        .prompt(
            "initial.fix",
            &format!("{told}. {{uv-issue-number}}/{{uv-issueNumber}}: {{uv-task}}, {{input_text}}."),
        )
        .prompt(
            "continuation.fix",
            &format!("{told}. {{uv-previous_summary}} Say {{uv-completion_keyword}}."),
        );
    assert!(!all.findings().contains("variable"), "{}", all.findings());
    let unlisted = all.clone().with("initial.fix", json!({"uvVariables": ["other"]})).findings();
    for part in ["undeclared-variable", "unused-variable"] {
        assert!(unlisted.contains(part), "what is listed is compared with what is read: {unlisted}");
    }
    let mut drive = all.drive();
    assert_eq!(drive.prompt(), "1 after 0 of 7, 7 left. 12/12: mend the roof, mend the roof.");
    drive.say("repeat");
    assert_eq!(drive.prompt(), "2 after 1 of 7, 6 left. 12/12: mend the roof, mend the roof.");
    let mut answer = Answer { text: "All is planned.".to_owned(), ..Answer::default() };
    answer.output = Some(json!({"next_action": {"action": "next"}}));
    assert_eq!(drive.answer(answer).prompt(), "3 after 2 of 7, 5 left. All is planned. Say ALL DONE.");
}

#[test]
fn prompts_read_the_commands_that_decide() {
    let all = small(Generation::Closing)
        .validator(json!({"command": "make ```x``` {uv-a}"}), "Mend it.")
        .prompt("initial.fix", "Run {uv-validators}.");
    assert!(!all.findings().contains("variable"), "{}", all.findings());
    assert_eq!(all.drive().prompt(), "Run ````sh\nmake ```x``` {uv-a}\n````.");
    let without = small(Generation::Closing).prompt("initial.fix", "Run {uv-validators}.");
    assert!(without.findings().contains("unknown-variable"), "{}", without.findings());
}

/// The table of variables that the runner reference gives to `poll:state`, and the two paths of prompts: a file is asked
/// where there is one, else the built-in prompt; in the first iteration and later ones.
#[test]
fn who_polls_is_told_issue_repository_iteration_and_what_was_before() {
    let polling = || {
        small(Generation::Closing)
            .verdict("poll:state", json!({"resourceType": "api", "maxIterations": 9}))
            .given("url", "http://localhost/")
            .given("issue", "12")
            .with("initial.fix", json!({"fallbackKey": "initial_issue"}))
            .with("continuation.fix", json!({"fallbackKey": "continuation_issue"}))
    };
    // Path A: the files.
    let files = polling().prompt("initial.fix", "#{uv-issue} of [{uv-repository}]").prompt(
        "continuation.fix",
        "#{uv-issue} of [{uv-repository}], {uv-iteration}: {uv-previous_summary}",
    );
    let mut drive = files.drive();
    assert_eq!(drive.prompt(), "#12 of []");
    assert_eq!(files.clone().given("repository", "a/b").drive().prompt(), "#12 of [a/b]");
    let before = json!({"summary": "half of it"});
    let mut drive2 = files.field("initial.fix", json!({"summary": {"type": "string"}})).drive();
    assert_eq!(drive2.say_with("next", before.clone()).look(false).prompt(), "#12 of [], 2: half of it");
    assert_eq!(drive.say("repeat").look(false).prompt(), "#12 of []");
    // Path B: what `fallbackKey` names.
    let built_in = polling()
        .without("prompts/steps/initial/fix/f_default.md")
        .without("prompts/steps/continuation/fix/f_default.md")
        .field("initial.fix", json!({"summary": {"type": "string"}}));
    let mut drive = built_in.drive();
    assert!(drive.prompt().starts_with("Work on issue #12."), "{}", drive.prompt());
    let later = drive.say_with("next", before).look(false).prompt();
    assert!(later.starts_with("Go on with issue #12. This is iteration 2 of at most 9."), "{later}");
    assert!(later.contains("half of it"), "{later}");
}

/// Every key of the tables of 14.4.1: a step without a file is asked with the built-in prompt of that name, and its lines
/// have the values of the run.
#[test]
fn every_fallback_key_is_a_prompt_that_is_asked() {
    let first = [
        ("initial_iterate", "at most 9 iterations. This is iteration 1"),
        ("initial_issue", "Work on issue #12."),
        ("issue_initial_default", "Work on issue #12."),
        ("initial_issue_label_only", "Work on issue #12. The issue stays open"),
        ("initial_project", "The project is Roof."),
        ("initial_keyword", "ALL DONE"),
        ("initial_manual", "ALL DONE"),
        ("initial_structured_signal", "\"action\": \"ready\""),
    ];
    let later = [
        ("continuation_iterate", "iteration 2 of at most 9; 8 are left"),
        ("continuation_issue", "Go on with issue #12. This is iteration 2 of at most 9."),
        ("continuation_issue_label_only", "only its labels will say so"),
        ("continuation_project", "You go on with a project. This is iteration 2"),
        ("continuation_keyword", "ALL DONE"),
        ("continuation_manual", "ALL DONE"),
        ("continuation_structured_signal", "\"action\": \"ready\""),
        ("continuation_project_preparation", "You prepare a project"),
        ("continuation_project_processing", "You work through a prepared project"),
        ("continuation_project_review", "You review a project"),
        ("statuscheck_continuation_default", "Checks that count so far: 0 of 3."),
        ("issue_closure_default", "It is issue #12."),
        ("project_closure_default", "The project is Roof."),
        ("polling_closure_default", "the state that is watched"),
        ("review_closure_default", "The review is said to be over."),
        ("iteration_closure_default", "this is iteration 2 of at most 9"),
        ("facilitation_closure_default", "The facilitation is said to be over."),
        ("project_continuation_closure_default", "One round of work on a project is done"),
        ("system", "one step of a larger flow"),
    ];
    assert_eq!(first.len() + later.len(), 27);
    let verdict = json!({"operator": "or", "conditions": [
        {"type": "detect:keyword", "config": {"verdictKeyword": "ALL DONE"}},
        {"type": "detect:structured", "config": {"signalType": "ready"}},
        {"type": "count:check", "config": {"maxChecks": 3}}], "maxIterations": 9});
    let all = || {
        small(Generation::Closing)
            .verdict("meta:composite", verdict.clone())
            .given("issue", "12")
            .given("project", "Roof")
            .field("initial.fix", json!({"summary": {"type": "string"}}))
    };
    let mut prompts = BTreeSet::new();
    for (key, part) in first {
        let small = all()
            .without("prompts/steps/initial/fix/f_default.md")
            .with("initial.fix", json!({ "fallbackKey": key }));
        let prompt = small.drive().prompt();
        assert!(prompt.contains(part) && prompt.contains("JSON object"), "{key}: {prompt}");
        prompts.insert(prompt);
    }
    for (key, part) in later {
        let small = all()
            .without("prompts/steps/continuation/fix/f_default.md")
            .with("continuation.fix", json!({ "fallbackKey": key }));
        let mut drive = small.drive();
        let prompt = drive.say_with("next", json!({"summary": "half of it"})).prompt();
        assert!(prompt.contains(part) && prompt.contains("JSON object"), "{key}: {prompt}");
        assert!(
            !prompt.contains("{uv-") && !prompt.lines().any(|line| line.starts_with('?')),
            "{key}: {prompt}"
        );
        prompts.insert(prompt);
    }
    assert_eq!(
        prompts.len(),
        24,
        "each is another one, but the manual mode is the keyword's, and one has two names"
    );
}

/// What is done with an issue chooses the closure prompt; `requirements` is a variable of it.
#[test]
fn the_closure_action_chooses_the_closure_prompt() {
    for (action, file) in [
        (Some("close"), "f_default_close.md"),
        (Some("label-only"), "f_default_label-only.md"),
        (Some("label-and-close"), "f_default_label-and-close.md"),
        (None, "f_default_close.md"),
    ] {
        let github = |enabled: bool| {
            json!({"integrations": {"github": {"enabled": enabled, "defaultClosureAction": action,
                "labels": {"requirements": "docs"}}}})
        };
        let all = |enabled: bool| {
            small(Generation::Closing).runner(github(enabled)).file(
                &format!("prompts/steps/closure/fix/{file}"),
                "By the action, see {uv-label_requirements}.",
            )
        };
        let prompt = |small: Small| {
            let mut drive = small.drive();
            drive.say("next").say("handoff").prompt()
        };
        assert_eq!(prompt(all(true)), "By the action, see docs.", "{action:?}");
        assert_eq!(prompt(all(false)), "Do closure.fix.", "nothing is done with an issue");
        let none = all(true).without(&format!("prompts/steps/closure/fix/{file}"));
        assert_eq!(prompt(none), "Do closure.fix.", "its own prompt where there is none for the action");
    }
}

#[test]
fn a_section_stands_in_the_prompts_that_include_it() {
    for generation in BOTH {
        let all = small(generation)
            .registry(json!({"steps": {"section.rules": {"stepId": "section.rules", "c2": "section", "c3": "rules"}}}))
            .file("prompts/steps/section/rules/f_default.md", "Be kind.")
            .prompt("initial.fix", "{section.rules} Plan.");
        let mut drive = all.drive();
        assert_eq!(drive.prompt(), "Be kind. Plan.");
        assert_eq!(drive.say("next").step(), "continuation.fix", "and no run enters it");
    }
}

/// Blocks of answers: whether they are looked for, how they are marked, which are allowed, and who acts on them.
#[test]
fn blocks_are_acted_on_when_and_as_actions_say() {
    let text = "```json\n{\"action\": \"post\"}\n```\n```json\n{\"action\": \"drop\"}\n```\n```yaml\n{\"action\": \"post\"}\n```";
    let found = |actions: Value| -> Vec<String> {
        let mut drive = small(Generation::Closing).runner(json!({ "actions": actions })).drive();
        let output = Some(json!({"next_action": {"action": "next"}}));
        drive.answer(Answer { text: text.to_owned(), output, ..Answer::default() });
        let told = |event: &Event| match event {
            Event::ActionFound { action, handler, allowed, .. } => {
                Some(format!("{action} {allowed} {}", handler.as_ref().map_or("none", |_| "handled")))
            }
            _ => None,
        };
        drive.events.iter().filter_map(told).collect()
    };
    let handlers = json!({"post": "log"});
    assert_eq!(found(json!({"enabled": false})), [""; 0]);
    let all = found(json!({"enabled": true, "handlers": handlers.clone()}));
    assert_eq!(all.len(), 2, "{all:?}");
    let some = found(json!({"enabled": true, "types": ["post"], "handlers": handlers.clone()}));
    assert_eq!(some, ["post true handled", "drop false none"]);
    let marked =
        found(json!({"enabled": true, "types": ["post"], "outputFormat": "yaml", "handlers": handlers}));
    assert_eq!(marked, ["post true handled"]);
}
