//! Where the files of an agent are looked for: what is asked tells which of them was read.

use cuegate_formats::{AgentOptions, Generation};
use serde_json::{Value, json};

use crate::registry::drive::{DIR, Drive, Small, small};

const BOTH: [Generation; 2] = [Generation::Closing, Generation::Complete];

/// What is asked first, when only this file has a prompt for the first step.
fn read_from(small: Small, path: &str) -> String {
    let small = small.without("prompts/steps/initial/fix/f_default.md").file(path, "Here I am.");
    small.drive().prompt()
}

#[test]
fn a_prompt_lies_where_the_registry_and_the_step_say() {
    let cases: [(Value, Value, Value, &str); 14] = [
        // What the registry, `runner.flow` and the step say, and where the prompt lies then.
        (json!({}), json!({}), json!({}), "prompts/steps/initial/fix/f_default.md"),
        (json!({"userPromptsBase": "texts"}), json!({}), json!({}), "texts/steps/initial/fix/f_default.md"),
        (
            json!({"userPromptsBase": ".agent/small/texts"}),
            json!({}),
            json!({}),
            "texts/steps/initial/fix/f_default.md",
        ),
        (
            json!({}),
            json!({"prompts": {"fallbackDir": "old/"}}),
            json!({}),
            "old/steps/initial/fix/f_default.md",
        ),
        (
            json!({"userPromptsBase": "texts"}),
            json!({"prompts": {"fallbackDir": "old/"}}),
            json!({}),
            "old/steps/initial/fix/f_default.md",
        ),
        (json!({"c1": "stages"}), json!({}), json!({}), "prompts/stages/initial/fix/f_default.md"),
        (json!({}), json!({}), json!({"c2": "continuation"}), "prompts/steps/continuation/fix/f_default.md"),
        (json!({}), json!({}), json!({"c3": "mend"}), "prompts/steps/initial/mend/f_default.md"),
        (json!({}), json!({}), json!({"edition": "short"}), "prompts/steps/initial/fix/f_short.md"),
        (json!({}), json!({}), json!({"adaptation": "red"}), "prompts/steps/initial/fix/f_default_red.md"),
        (
            json!({}),
            json!({}),
            json!({"edition": "short", "adaptation": "red"}),
            "prompts/steps/initial/fix/f_short_red.md",
        ),
        (
            json!({"pathTemplateNoAdaptation": "{c3}-{c2}.{edition}.{c1}.md"}),
            json!({}),
            json!({"c3": "mend"}),
            "prompts/mend-initial.default.steps.md",
        ),
        (
            json!({"pathTemplate": "{adaptation}/{c1}-{c2}-{c3}-{edition}.md"}),
            json!({}),
            json!({"adaptation": "red"}),
            "prompts/red/steps-initial-fix-default.md",
        ),
        (
            json!({"pathTemplate": "{adaptation}.md"}),
            json!({}),
            json!({}),
            "prompts/steps/initial/fix/f_default.md",
        ),
    ];
    for generation in BOTH {
        for (registry, flow, step, path) in &cases {
            let mut all = small(generation);
            // Every other step keeps its prompt, wherever the registry looks first.
            for (id, c2) in [
                ("continuation.fix", "continuation"),
                (all.end(), if generation == Generation::Complete { "complete" } else { "closure" }),
            ] {
                for base in ["texts", "old"] {
                    for c1 in ["steps", "stages"] {
                        all = all.file(&format!("{base}/{c1}/{c2}/fix/f_default.md"), "Other.");
                        all = all.file(&format!("prompts/{c1}/{c2}/fix/f_default.md"), "Other.");
                    }
                }
                all = all.file(&format!("prompts/fix-{c2}.default.steps.md"), &format!("Do {id}."));
            }
            let all = all
                .registry(registry.clone())
                .runner(json!({ "flow": flow }))
                .with(
                    "initial.fix",
                    json!({"stepKind": (generation == Generation::Closing).then_some("work")}),
                )
                .with("initial.fix", step.clone());
            assert_eq!(read_from(all, path), "Here I am.", "{generation:?}: {registry} {flow} {step}");
        }
    }
}

#[test]
fn prompts_are_looked_for_in_the_registrys_base_before_the_agents() {
    for generation in BOTH {
        let both = small(generation)
            .registry(json!({"userPromptsBase": "texts"}))
            .runner(json!({"flow": {"prompts": {"fallbackDir": "prompts"}}}))
            .file("texts/steps/initial/fix/f_default.md", "From the registry's base.");
        let mut drive = both.drive();
        assert_eq!(drive.prompt(), "From the registry's base.");
        // What is not there lies in the agent's.
        assert_eq!(drive.say("next").prompt(), "Do continuation.fix.");
    }
}

#[test]
fn the_registry_is_the_file_that_the_agent_names() {
    for generation in BOTH {
        let other = small(generation)
            .runner(json!({"flow": {"prompts": {"registry": "flows/other.json"}}}))
            .file("steps_registry.json", "not even JSON");
        let mut drive = other.drive();
        assert_eq!(
            (drive.step(), drive.say("next").step()),
            ("initial.fix".into(), "continuation.fix".into())
        );
    }
}

/// A schema whose answers have to come from a place.
fn schemas_of(place: &str) -> String {
    let from = json!({"type": "object", "required": ["from"], "properties": {
        "from": {"const": place},
        "next_action": {"type": "object", "properties": {"action": {"type": "string", "enum": ["next", "repeat"]}}}
    }});
    json!({"definitions": {"initial.fix": from}}).to_string()
}

#[test]
fn an_answer_has_to_fit_the_schema_of_the_first_base_that_is_named() {
    let cases = [
        (json!({"schemasBase": "a"}), json!({"schemas": {"base": "b"}}), "a"),
        (json!({"schemasBase": "a"}), json!({}), "a"),
        (json!({}), json!({"schemas": {"base": "b"}}), "b"),
        (json!({}), json!({}), "schemas"),
    ];
    for generation in BOTH {
        for (registry, flow, expected) in &cases {
            let mut all = small(generation).registry(registry.clone()).runner(json!({ "flow": flow }));
            let reference = json!({"outputSchemaRef": {"file": "first.json"}});
            all = all.with("initial.fix", reference);
            for place in ["a", "b", "schemas"] {
                let rest =
                    String::from_utf8(small(generation).files()[&format!("{DIR}/schemas/all.json")].clone());
                all = all.file(&format!("{place}/first.json"), &schemas_of(place));
                all = all.file(&format!("{place}/all.json"), &rest.unwrap());
            }
            for place in ["a", "b", "schemas"] {
                let mut drive = all.drive();
                drive.say_with("next", json!({ "from": place }));
                let fits = drive.step() == "continuation.fix";
                assert_eq!(
                    (fits, drive.rejected()),
                    (place == *expected, usize::from(place != *expected)),
                    "{place}"
                );
            }
        }
    }
}

/// `outputSchemaRef.schema` by its bare name, in `definitions`, in `$defs`, at the top, and as a pointer.
#[test]
fn the_schema_of_a_step_is_the_one_that_it_names() {
    let schema = |word: &str| {
        json!({"type": "object", "required": ["from"], "properties": {
            "from": {"const": word},
            "next_action": {"type": "object", "properties": {"action": {"type": "string", "enum": ["next", "repeat"]}}}
        }})
    };
    let file = json!({
        "definitions": {"one": schema("definitions"), "x.y": schema("dotted")},
        "$defs": {"two": schema("defs")}, "three": schema("top")
    });
    for (name, expected) in [
        ("one", "definitions"),
        ("two", "defs"),
        ("three", "top"),
        ("#/definitions/one", "definitions"),
        ("#/definitions/x.y", "dotted"),
        ("#/$defs/two", "defs"),
    ] {
        let small = small(Generation::Closing)
            .file("schemas/first.json", &file.to_string())
            .with("initial.fix", json!({"outputSchemaRef": {"file": "first.json", "schema": name}}));
        let mut drive = small.drive();
        drive.say_with("next", json!({"from": "elsewhere"}));
        assert_eq!((drive.step(), drive.rejected()), ("initial.fix".into(), 1), "{name}");
        drive.say_with("next", json!({ "from": expected }));
        assert_eq!(drive.step(), "continuation.fix", "{name}");
    }
}

/// `detect:graph` may name another registry than the agent, and another entry than the registry.
#[test]
fn the_verdict_may_name_another_registry_and_another_entry() {
    let base = small(Generation::Closing);
    let other = String::from_utf8(base.files()[&format!("{DIR}/steps_registry.json")].clone()).unwrap();
    let other = other.replace("\"entryStep\":\"initial.fix\"", "\"entryStep\":\"continuation.fix\"");
    let named = base
        .clone()
        .file("graphs/other.json", &other)
        .verdict("detect:graph", json!({"registryPath": "graphs/other.json"}));
    assert_eq!(named.drive().step(), "continuation.fix");
    let entered = base.verdict("detect:graph", json!({"entryStep": "continuation.fix"}));
    assert_eq!(entered.drive().step(), "continuation.fix");
}

/// A registry that has no `agent.json` beside it.
#[test]
fn a_registry_alone_has_the_defaults_of_the_runner_reference() {
    let small = small(Generation::Closing)
        .with("initial.fix", json!({"transitions": {"next": {"target": "initial.fix"}}}));
    let mut files = small.files();
    files.remove(&format!("{DIR}/agent.json"));
    let registry = format!("{DIR}/steps_registry.json");
    let options =
        AgentOptions { agent_dir: DIR.to_owned(), registry: Some(registry), ..AgentOptions::default() };
    let mut drive = Drive::start(&files, &options, &[], None);
    let asked = drive.asked();
    assert!(
        asked.system.contains("Answer with") || asked.system.contains("one step of a larger flow"),
        "{}",
        asked.system
    );
    assert_eq!(asked.ask.boundary.permission, cuegate_flow::model::Permission::Plan);
    assert_eq!(asked.ask.boundary.tools, cuegate_flow::model::Tools::All);
    assert_eq!(drive.model().as_deref(), Some("opus"));
    for _ in 0..9 {
        drive.say("next");
    }
    assert_eq!(drive.end(), None);
    drive.say("next");
    let (state, reason) = drive.end().unwrap();
    assert_eq!((state, &*reason), (cuegate_engine::EndState::Completed, "10 iterations done"));
}

/// What the reference's list of defaults says of what `runner` leaves out.
#[test]
fn groups_that_are_not_there_have_their_defaults() {
    let all = small(Generation::Closing).runner(json!({"verdict": null, "boundaries": null}));
    let mut drive = all.drive();
    let asked = drive.asked();
    assert_eq!(asked.prompt, "Do initial.fix.", "`steps_registry.json`, `prompts`");
    assert_eq!(
        (asked.ask.boundary.permission, asked.ask.boundary.tools),
        (cuegate_flow::model::Permission::Plan, cuegate_flow::model::Tools::All)
    );
    for _ in 0..10 {
        assert_eq!(drive.end(), None);
        drive.say("repeat");
    }
    let (state, reason) = drive.end().unwrap();
    assert_eq!((state, &*reason), (cuegate_engine::EndState::Completed, "10 iterations done"));
}

/// The document of the "complete" generation shows a registry of nothing but steps.
#[test]
fn a_registry_of_nothing_but_steps_runs() {
    let all = small(Generation::Complete).registry(json!({"agentId": null, "version": null, "c1": null}));
    let mut drive = all.drive();
    drive.say("next").say("complete").say("complete");
    assert_eq!(drive.end().unwrap().0, cuegate_engine::EndState::Completed);
}
