//! Registries of the check flow: what they are lowered to, and what is found in them.

use std::fmt::Write as _;

use cuegate_testkit::definitions;

use crate::support::{Project, dump, edit, findings, load, project};

/// The folder of the agent.
pub const DIR: &str = ".agent/improver";

/// A check flow of two steps in which nothing is to be found.
pub const SOUND: &str = definitions::CHECK_FLOW;

/// The sound check flow's files.
pub fn sound() -> Project {
    project(SOUND)
}

fn broken(edits: &[(&str, &str)]) -> String {
    findings(&edits.iter().fold(sound(), |files, (from, to)| edit(&files, from, to)), DIR)
}

#[test]
fn a_sound_check_flow_lowered() {
    assert_eq!(findings(&sound(), DIR), "");
    let loaded = load(&sound(), DIR);
    insta::assert_snapshot!(dump(&loaded.draft), @r#"
    improver (registry-check) enters s_a8f3 []
    Flow, at most 100 iterations
    param topic --topic Text required
    counter 0: first executions of s_a8f3
    counter 1: further executions of s_a8f3
    counter 2: retries of s_a8f3
    counter 3: first executions of s_b2c1de
    counter 4: further executions of s_b2c1de
    counter 5: retries of s_b2c1de

    s_a8f3 “Analyze”
      AcceptEdits Only(["Read", "Edit"])
      ask Work, continues run, model default, schema None
      system “You improve <param topic>.⏎”
      prompt “Analyze <param topic>, execution <Iteration>.⏎”
      gate Always(Named("done"))
      done → s_a8f3/check

    s_a8f3/check “Analyze: check” (not counted)
      AcceptEdits Only(["Read", "Edit"])
      ask Check, continues run, model default, schema Some(SchemaId(0))
      system “You improve <param topic>.⏎”
      prompt “Is it analyzed? Answer {"result": "ok|ng"}.⏎”
      reads result: ok pass=ok true=ok ng fail=ng false=ng
      hears result: ok=ok pass=ok true=ok ng=ng fail=ng false=ng
      otherwise ng
      ok → s_b2c1de, resets [0, 1, 2], called next
      ng → s_a8f3, at most 2 on counter 2, resets [0, 1], called retry
      ng → Failed("the check of `s_a8f3` did not pass after 2 retries"), resets [0, 1, 2], called fail

    s_b2c1de “Implement”
      AcceptEdits Only(["Read", "Edit"])
      ask Work, continues run, model default, schema None
      system “You improve <param topic>.⏎”
      prompt “Implement.⏎”
      gate Always(Named("done"))
      done → s_b2c1de, at most 1 on counter 3, same visit
      done → s_b2c1de/check

    s_b2c1de/check “Implement: check” (not counted)
      AcceptEdits Only(["Read", "Edit"])
      ask Check, continues run, model default, schema Some(SchemaId(1))
      system “You improve <param topic>.⏎”
      prompt “Is it implemented?⏎”
      reads result: ok pass=ok true=ok ng fail=ng false=ng
      hears result: ok=ok pass=ok true=ok ng=ng fail=ng false=ng
      otherwise ng
      ok → Completed, resets [3, 4, 5], called complete
      ng → s_b2c1de, at most 3 on counter 4, same visit, called retry
      ng → s_a8f3, resets [3, 4, 5], called fallback
    "#);
    let schemas: Vec<String> = loaded.draft.schemas.iter().map(|schema| schema.value().to_string()).collect();
    insta::assert_snapshot!(schemas.join("\n"), @r#"
    {"type":"object","properties":{"result":{"type":"string","enum":["pass","fail","ok","ng"]},"message":{"type":"string"}},"required":["result"]}
    {"type":"object","properties":{"result":{"type":"string","enum":["ok","ng"]},"message":{"type":"string"}},"required":["result"]}
    "#);
}

#[test]
fn ways_of_a_result() {
    let fail = "\"onFail\": { \"retry\": true, \"maxRetries\": 2 }";
    let mut text = String::new();
    for way in [
        r#"{ "retry": true, "maxRetries": 1, "fallback": "s_b2c1de" }"#,
        r#"{ "retry": true }"#,
        r#"{ "retry": true, "maxRetries": 0 }"#,
        r#"{ "fallback": "s_b2c1de" }"#,
        r#"{ "next": "s_b2c1de" }"#,
        r#"{ "complete": true, "next": "s_b2c1de" }"#,
        r#"{ "retry": true, "fallback": "s_b2c1de" }"#,
        r#"{ "fallback": "s_b2c1de", "maxRetries": 3 }"#,
        r#"{ "retry": false, "complete": false, "next": "s_b2c1de" }"#,
        r#"{}"#,
        r#"{ "retry": false }"#,
        r#"{ "next": 7 }"#,
        r#"{ "next": "s_0000" }"#,
        r#"{ "goto": "s_b2c1de" }"#,
    ] {
        let files = edit(&sound(), fail, &format!("\"onFail\": {way}"));
        writeln!(text, "# {way}\n{}", findings(&files, DIR).trim_end()).unwrap();
        let draft = load(&files, DIR).draft;
        let check = draft.steps.iter().find(|step| &*step.name == "s_a8f3/check").unwrap();
        for edge in check.edges.iter().filter(|edge| edge.on.to_string() == "ng") {
            writeln!(text, "  {}", crate::support::edge(edge)).unwrap();
        }
    }
    insta::assert_snapshot!(text, @r#"
    # { "retry": true, "maxRetries": 1, "fallback": "s_b2c1de" }

      ng → s_a8f3, at most 1 on counter 2, resets [0, 1], called retry
      ng → s_b2c1de, resets [0, 1, 2], called fallback
    # { "retry": true }

      ng → s_a8f3, resets [0, 1], called retry
    # { "retry": true, "maxRetries": 0 }

      ng → s_a8f3, resets [0, 1], called retry
    # { "fallback": "s_b2c1de" }
    steps_registry.json:16:9 warning[check-decides-nothing]: whether the check of `s_a8f3` passes changes nothing: both ways are the same
      ng → s_b2c1de, resets [0, 1, 2], called fallback
    # { "next": "s_b2c1de" }
    steps_registry.json:16:9 warning[check-decides-nothing]: whether the check of `s_a8f3` passes changes nothing: both ways are the same
      ng → s_b2c1de, resets [0, 1, 2], called next
    # { "complete": true, "next": "s_b2c1de" }
    steps_registry.json:16:9 warning[failure-completes]: a check of `s_a8f3` that does not pass completes the run
    steps_registry.json:16:39 warning[unreachable-transition]: `next` of `onFail` never acts: `complete` comes first
      ng → Completed, resets [0, 1, 2], called complete
    # { "retry": true, "fallback": "s_b2c1de" }
    steps_registry.json:16:36 warning[unreachable-transition]: `fallback` of `onFail` never acts: `retry` has no limit, which `maxRetries` would set
      ng → s_a8f3, resets [0, 1], called retry
    # { "fallback": "s_b2c1de", "maxRetries": 3 }
    steps_registry.json:16:9 warning[check-decides-nothing]: whether the check of `s_a8f3` passes changes nothing: both ways are the same
    steps_registry.json:16:45 warning[unreachable-transition]: `maxRetries` of `onFail` never acts: it counts retries, and `retry` is not set
      ng → s_b2c1de, resets [0, 1, 2], called fallback
    # { "retry": false, "complete": false, "next": "s_b2c1de" }
    steps_registry.json:16:9 warning[check-decides-nothing]: whether the check of `s_a8f3` passes changes nothing: both ways are the same
      ng → s_b2c1de, resets [0, 1, 2], called next
    # {}
    steps_registry.json:16:19 error[missing-transition]: `onFail` leads nowhere
      ng → Aborted, resets [0, 1, 2], called fail
    # { "retry": false }
    steps_registry.json:16:19 error[missing-transition]: `onFail` leads nowhere
      ng → Aborted, resets [0, 1, 2], called fail
    # { "next": 7 }
    steps_registry.json:16:29 error[wrong-type]: `next` must be text, not a number
      ng → Aborted, resets [0, 1, 2], called fail
    # { "next": "s_0000" }
    steps_registry.json:16:29 error[unknown-target]: `s_a8f3` on `ng` leads to the undefined step `s_0000`
      ng → s_0000, resets [0, 1, 2], called next
    # { "goto": "s_b2c1de" }
    steps_registry.json:16:19 error[missing-transition]: `onFail` leads nowhere
    steps_registry.json:16:21 error[unknown-key]: unknown key `goto` in `check.onFail`
      ng → Aborted, resets [0, 1, 2], called fail
    "#);
}

#[test]
fn what_is_wrong_with_a_check_flow() {
    let cases: [(&str, &[(&str, &str)]); 21] = [
        (
            "id is no id",
            &[
                ("\"s_b2c1de\": {", "\"s_xyz\": {"),
                ("\"id\": \"s_b2c1de\"", "\"id\": \"s_xyz\""),
                ("\"next\": \"s_b2c1de\"", "\"next\": \"s_xyz\""),
            ],
        ),
        ("id is not the key", &[("\"id\": \"s_b2c1de\"", "\"id\": \"s_b2c1d0\"")]),
        ("no id", &[("      \"id\": \"s_b2c1de\",\n", "")]),
        ("min over max", &[("\"min\": 2", "\"min\": 6")]),
        ("min without max", &[("\"min\": 2, \"max\": 5", "\"min\": 2")]),
        ("none at all", &[("\"min\": 2", "\"min\": 0")]),
        ("no entry", &[("  \"entryStep\": \"s_a8f3\",\n", "")]),
        ("unknown entry", &[("\"entryStep\": \"s_a8f3\"", "\"entryStep\": \"s_a8f4\"")]),
        ("no base", &[("  \"basePath\": \"prompts\",\n", "")]),
        ("a base without prompts", &[("\"basePath\": \"prompts\"", "\"basePath\": \"prompt\"")]),
        (
            "unknown keys",
            &[
                ("\"entryStep\"", "\"entrySteps\""),
                ("\"iterations\"", "\"iteration\""),
                ("\"responseFormat\"", "\"responseFormats\""),
            ],
        ),
        ("path and parts", &[("\"path\": \"analyze.md\"", "\"path\": \"analyze.md\", \"c1\": \"steps\"")]),
        ("no part", &[("\"c1\": \"steps\", ", "")]),
        ("no file", &[("\"path\": \"analyze.md\"", "\"path\": \"analysis.md\"")]),
        (
            "another file instead",
            &[("\"path\": \"analyze.md\"", "\"path\": \"analysis.md\", \"fallback\": \"analyze.md\"")],
        ),
        ("out of the project", &[("\"path\": \"analyze.md\"", "\"path\": \"../../../../etc/passwd\"")]),
        ("result of no use", &[("pass|fail", "yes|no")]),
        ("kind of no use", &[("\"message\": \"string\"", "\"message\": \"text\"")]),
        (
            "another end of the run",
            &[
                ("stepFlow", "iterationBudget"),
                ("\"completionConfig\": {}", "\"completionConfig\": { \"maxIterations\": 3 }"),
            ],
        ),
        (
            "keys without effect",
            &[
                ("\"editions\"", "\"entryStepMapping\": { \"issue\": \"s_a8f3\" },\n  \"editions\""),
                ("\"variables\": [\"topic\"]", "\"variables\": [\"other\"], \"customVariables\": []"),
            ],
        ),
        ("a variable of nobody", &[("Analyze {uv-topic}", "Analyze {uv-topics}")]),
    ];
    let mut text = String::new();
    for (name, edits) in cases {
        writeln!(text, "# {name}\n{}", broken(edits).trim_end()).unwrap();
    }
    insta::assert_snapshot!(text, @"
    # id is no id
    steps_registry.json:19:5 error[step-name]: `s_xyz` is not the id of a step in a check flow
    # id is not the key
    steps_registry.json:20:13 error[id-mismatch]: the step of key `s_b2c1de` calls itself `s_b2c1d0`
    # no id
    steps_registry.json:19:17 error[missing-key]: `id` is missing in a step
    # min over max
    steps_registry.json:23:30 error[invalid-value]: `min` is 6, which is more than `max`, which is 5
    # min without max
    steps_registry.json:23:30 error[invalid-value]: `min` is 2, which is more than `max`, which is 1
    # none at all
    steps_registry.json:23:30 error[invalid-value]: `min` must be a whole number of at least 1, not 0
    # no entry
    steps_registry.json:1:1 error[missing-key]: `entryStep` is missing in the registry
    # unknown entry
    steps_registry.json:4:16 error[unknown-target]: the entry leads to the undefined step `s_a8f4`
    # no base
    steps_registry.json:1:1 error[missing-key]: `basePath` is missing in the registry
    # a base without prompts
    steps_registry.json:3:15 warning[unused-key]: no prompt was found below `prompt`
    # unknown keys
    steps_registry.json:1:1 error[missing-key]: `entryStep` is missing in the registry
    steps_registry.json:4:3 error[unknown-key]: unknown key `entrySteps` in the registry
    steps_registry.json:14:9 error[unknown-key]: unknown key `responseFormats` in `check`
    steps_registry.json:23:7 error[unknown-key]: unknown key `iteration` in a step
    # path and parts
    steps_registry.json:10:41 warning[unused-key]: `c1` has no effect in `prompt`
    # no part
    steps_registry.json:22:17 error[missing-key]: `c1` is missing in `prompt`
    # no file
    steps_registry.json:10:17 error[missing-prompt]: `s_a8f3` has no prompt for its `prompt`: no file `.agent/improver/prompts/analysis.md`
    # another file instead

    # out of the project
    steps_registry.json:10:17 error[escapes-root]: `../../../../etc/passwd` leads out of the project
    # result of no use
    steps_registry.json:14:39 error[invalid-value]: `yes|no` says neither what is well nor what is not
    # kind of no use
    steps_registry.json:14:63 error[invalid-value]: `text` in `message` is not a kind of value
    # another end of the run
    agent.json:8:23 error[mixed-generations]: a check flow ends where a check says `complete`, not by `count:iteration`
    # keys without effect
    steps_registry.json:5:3 warning[unused-key]: `entryStepMapping` has no effect in the registry
    steps_registry.json:12:21 warning[unused-variable]: `variables` list `other`, which no prompt of `s_a8f3` reads, and not its `topic`
    steps_registry.json:12:31 warning[unused-key]: `customVariables` has no effect in a step
    # a variable of nobody
    analyze.md:1:9 error[unknown-variable]: undefined variable `topics` in the prompt of `s_a8f3`
    ");
}

#[test]
fn a_step_without_a_check_is_an_error() {
    let files = sound();
    let registry = format!("{DIR}/steps_registry.json");
    let mut json: serde_json::Value = serde_json::from_slice(&files[&registry]).unwrap();
    json["steps"]["s_a8f3"].as_object_mut().unwrap().remove("check");
    let mut files = files;
    files.insert(registry, json.to_string().into_bytes());
    insta::assert_snapshot!(findings(&files, DIR), @"steps_registry.json:1:101 error[missing-key]: `s_a8f3` has no `check`, so nothing could lead on from it");
}

#[test]
fn the_limit_of_the_document_and_lower_ones() {
    let limit = |config: &str| {
        let files = edit(&sound(), "\"completionConfig\": {}", &format!("\"completionConfig\": {config}"));
        load(&files, DIR).draft.limits.iterations_max
    };
    assert_eq!(
        (limit("{}"), limit("{ \"maxIterations\": 7 }"), limit("{ \"maxIterations\": 700 }")),
        (100, 7, 100)
    );
    let found = |max: u64| {
        let config = format!("\"completionConfig\": {{ \"maxIterations\": {max} }}");
        findings(&edit(&sound(), "\"completionConfig\": {}", &config), DIR)
    };
    assert_eq!(found(100), "");
    let cut = "warning[unused-key]: a check flow ends after 100 executions, so 101 has no effect";
    assert!(found(101).contains(cut), "{}", found(101));
    assert!(found(5_000_000_000).contains("5000000000 has no effect"), "{}", found(5_000_000_000));
}

#[test]
fn step_flow_needs_a_check_flow() {
    let mut files = crate::support::sound();
    let agent = sound()[".agent/improver/agent.json"].clone();
    let agent = String::from_utf8(agent).unwrap().replace("improver", "fixer").replace("topic", "issue");
    files.insert(".agent/fixer/agent.json".to_owned(), agent.into_bytes());
    let found = findings(&files, ".agent/fixer");
    assert!(found.contains("error[mixed-generations]: `stepFlow` runs a check flow"), "{found}");
}

/// Whatever stands in the values of a check flow, loading and checking return.
#[test]
fn mutated_values() {
    const VALUES: [&str; 10] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "0",
        "true",
        "\"s_a8f3\"",
        "\"../../..\"",
        "[null, {}]",
        "{\"path\": 3}",
    ];
    let sound = sound();
    for path in sound.keys().filter(|path| path.ends_with(".json")) {
        let text = String::from_utf8(sound[path].clone()).unwrap();
        for (start, end) in crate::fuzz::serde_places(&text) {
            for value in VALUES {
                let mut files = sound.clone();
                files.insert(path.clone(), format!("{}{value}{}", &text[..start], &text[end..]).into_bytes());
                let loaded = load(&files, DIR);
                if !loaded.draft.steps.is_empty() {
                    let errors = loaded.has_errors();
                    let flow = cuegate_flow::checks::check_draft(loaded.draft).flow;
                    assert!(
                        errors
                            || flow.is_none()
                            || flow.is_some_and(|flow| flow.limits.iterations_max <= 100)
                    );
                }
            }
        }
    }
}
