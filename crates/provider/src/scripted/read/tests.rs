use super::{Script, compute_edit_distance};
use crate::AskKind;
use crate::scripted::script::OnExhausted;

/// The result of a text on one line.
fn read(text: &str) -> String {
    match Script::parse(text, "s.yaml") {
        Ok(script) => format!("{} entries", script.len()),
        Err(error) => {
            format!("{error}{}", error.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default())
        }
    }
}

fn table(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}\n--> {}\n", read(text))).collect()
}

#[test]
fn the_documented_example_is_parsed() {
    let script = Script::parse(
        r#"
answers:                      # for each ask: the first unused entry whose conditions all match
  - step: initial.issue
    persona: coder
    kind: work
    output: { next_action: { action: next } }
    text: "plain text answer"
    writes: [{ path: src/a.txt, content: "…" }]
    runs: ["git commit -am wip"]
    usage: { input_tokens: 1200, output_tokens: 300, cost_usd: 0.012 }
    delay_ms: 50
    error: rate_limited
    resets_in_ms: 200
    times: 2
    blocked: "why"
    asks_user: "question"
    session: id
on_exhausted: repeat_last
"#,
        "s.yaml",
    )
    .unwrap();
    assert_eq!(script.on_exhausted, OnExhausted::RepeatLast);
    insta::assert_snapshot!(format!("{:#?}", script.entries[0]), @r#"
    Entry {
        step: Some(
            Steps(
                [
                    "initial.issue",
                ],
            ),
        ),
        persona: Some(
            "coder",
        ),
        kind: Some(
            Work,
        ),
        output: Some(
            Object {
                "next_action": Object {
                    "action": String("next"),
                },
            },
        ),
        text: Some(
            "plain text answer",
        ),
        at: {},
        writes: [
            FileWrite {
                path: "src/a.txt",
                content: "…",
            },
        ],
        runs: [
            "git commit -am wip",
        ],
        usage: ScriptedUsage {
            input_tokens: 1200,
            output_tokens: 300,
            cost_usd: Some(
                0.012,
            ),
        },
        delay_ms: 50,
        error: Some(
            RateLimited,
        ),
        resets_in_ms: Some(
            200,
        ),
        times: 2,
        blocked: Some(
            "why",
        ),
        asks_user: Some(
            "question",
        ),
        session: Some(
            "id",
        ),
    }
    "#);
}

#[test]
fn json_is_parsed() {
    let text = "\u{feff}{\r\n\t\"answers\": [\r\n\t\t{\"text\": \"\\ud83d\\ude00 \\/ \\t\\u00e9\", \"output\":{\"a\":[1,-2.5e-3,true,null,\"no\"]},\"kind\":\"judge\"}\r\n\t],\"on_exhausted\":\"fail\"\r\n}\r\n";
    let script = Script::parse(text, "s.json").unwrap();
    let entry = &script.entries[0];
    assert_eq!(entry.text.as_deref(), Some("😀 / \té"));
    assert_eq!(entry.output, Some(serde_json::json!({"a": [1, -2.5e-3, true, null, "no"]})));
    assert_eq!((entry.kind, entry.times), (Some(AskKind::Judge), 1));
}

#[test]
fn yaml_scalars_follow_yaml_1_2() {
    let text = "answers:\n  - output: {a: yes, b: true, c: 007, d: 1_0, e: 2026-01-01, f: ~}\n    text: no\n";
    let script = Script::parse(text, "s.yaml").unwrap();
    let expected =
        serde_json::json!({"a": "yes", "b": true, "c": "007", "d": "1_0", "e": "2026-01-01", "f": null});
    assert_eq!(script.entries[0].output, Some(expected));
    assert_eq!(script.entries[0].text.as_deref(), Some("no"));
}

#[test]
fn anchors_are_parsed_and_limited() {
    let script =
        Script::parse("answers:\n  - &a {text: x, times: 2}\n  - *a\n  - {<<: *a, step: z}\n", "s").unwrap();
    assert_eq!(script.entries.iter().map(|entry| entry.times).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(script.entries[2].step.as_ref().unwrap().0, ["z"]);

    let mut bomb = "answers:\n  - output:\n      a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("      a{level}: &a{level} [{aliases}]\n");
    }
    let error = Script::parse(&bomb, "bomb.yaml").unwrap_err();
    assert!(error.message.contains("budget") || error.message.contains("limit"), "{error}");
    let deep = format!("answers: [{{output: {}}}]", "[".repeat(100_000));
    assert!(Script::parse(&deep, "deep.json").is_err());
    assert!(Script::parse(&" ".repeat(super::BYTES_MAX + 1), "long.yaml").is_err());
}

#[test]
fn errors_have_a_location() {
    insta::assert_snapshot!(table(&[
        "answers:\n  - stp: x",
        "answers:\n  - step: x\n    write: []",
        "answers:\n  - text: x\n    temperature: 1",
        "answer: []",
        "on_exhausted: fail",
        "answers: []\non_exhausted: repeat",
        "answers:\n  - kind: worker",
        "answers:\n  - error: ratelimited",
        "answers:\n  - error: explodes",
        "answers:\n  - times: two",
        "answers:\n  - times: -1",
        "answers:\n  - text: 5",
        "answers:\n  - text: [a]",
        "answers:\n  - text: true",
        "answers:\n  - usage: {cost_usd: much}",
        "answers:\n  - runs: ls",
        "answers:\n  - runs: [[ls]]",
        "answers:\n  - writes: [{path: a}]",
        "answers:\n  - writes: [{path: a, content: b, mode: 7}]",
        "answers:\n  - usage: {tokens: 5}",
        "answers:\n  - usage: {input_tokens: 1.5}",
        "answers:\n  - step: a\n  - usage: {cost_usd: -1}",
        "answers:\n  - usage: {cost_usd: .nan}",
        "answers:\n  - output: .inf",
        "answers:\n  - resets_in_ms: 5",
        "answers:\n  - text: a\n    text: b",
        "answers: 5",
        "answers:\n  - 5",
        "answers:\n\t- text: x",
        "answers: []\n---\nanswers: []",
        "",
        "# nothing",
        "hello",
        "answers: [",
        "answers:\n  - *x",
    ]), @r#"
    answers:
      - stp: x
    --> s.yaml:2:5: unknown field `stp` | did you mean `step`?
    answers:
      - step: x
        write: []
    --> s.yaml:3:5: unknown field `write` | did you mean `writes`?
    answers:
      - text: x
        temperature: 1
    --> s.yaml:3:5: unknown field `temperature` | the fields are `step`, `persona`, `kind`, `output`, `text`, `at`, `writes`, `runs`, `usage`, `delay_ms`, `error`, `resets_in_ms`, `times`, `blocked`, `asks_user`, `session`
    answer: []
    --> s.yaml:1:1: unknown field `answer` | did you mean `answers`?
    on_exhausted: fail
    --> s.yaml:1:1: the field `answers` is missing
    answers: []
    on_exhausted: repeat
    --> s.yaml:2:15: unknown value `repeat` | did you mean `repeat_last`?
    answers:
      - kind: worker
    --> s.yaml:2:11: unknown value `worker` | did you mean `work`?
    answers:
      - error: ratelimited
    --> s.yaml:2:12: unknown value `ratelimited` | did you mean `rate_limited`?
    answers:
      - error: explodes
    --> s.yaml:2:12: unknown value `explodes` | the values are `rate_limited`, `overloaded`, `network`, `auth`, `refused`, `context_overflow`, `session_lost`, `crashed`, `timeout`, `malformed`, `hang`
    answers:
      - times: two
    --> s.yaml:2:12: expected a whole number, 0 or more
    answers:
      - times: -1
    --> s.yaml:2:12: expected a whole number, 0 or more
    answers:
      - text: 5
    --> s.yaml:2:11: expected a string, not `5` | quote it if it is a string
    answers:
      - text: [a]
    --> s.yaml:2:11: expected a string
    answers:
      - text: true
    --> s.yaml:2:11: expected a string, not `true` | quote it if it is a string
    answers:
      - usage: {cost_usd: much}
    --> s.yaml:2:23: expected a number
    answers:
      - runs: ls
    --> s.yaml:2:11: expected a list
    answers:
      - runs: [[ls]]
    --> s.yaml:2:12: expected a string
    answers:
      - writes: [{path: a}]
    --> s.yaml:2:15: the field `content` is missing
    answers:
      - writes: [{path: a, content: b, mode: 7}]
    --> s.yaml:2:36: unknown field `mode` | the fields are `path`, `content`
    answers:
      - usage: {tokens: 5}
    --> s.yaml:2:13: unknown field `tokens` | the fields are `input_tokens`, `output_tokens`, `cost_usd`
    answers:
      - usage: {input_tokens: 1.5}
    --> s.yaml:2:27: expected a whole number, 0 or more
    answers:
      - step: a
      - usage: {cost_usd: -1}
    --> s.yaml:3:5: `cost_usd` is not an amount of money | give a number of US dollars, 0 or more
    answers:
      - usage: {cost_usd: .nan}
    --> s.yaml:2:23: `.nan` is not a JSON number
    answers:
      - output: .inf
    --> s.yaml:2:13: `.inf` is not a JSON number
    answers:
      - resets_in_ms: 5
    --> s.yaml:2:5: `resets_in_ms` has no effect without `error` | add `error: rate_limited`
    answers:
      - text: a
        text: b
    --> s.yaml:3:5: duplicate key `text`
    answers: 5
    --> s.yaml:1:10: expected a list
    answers:
      - 5
    --> s.yaml:2:5: expected a mapping
    answers:
    	- text: x
    --> s.yaml:2:2: tabs disallowed within this context (block indentation)
    answers: []
    ---
    answers: []
    --> s.yaml:3:1: more than one document

    --> s.yaml:1:1: the document is empty
    # nothing
    --> s.yaml:1:10: the document is empty
    hello
    --> s.yaml: expected a mapping with `answers`, or an array of scenario entries, not string "hello"
    answers: [
    --> s.yaml:1:10: unclosed bracket '['
    answers:
      - *x
    --> s.yaml:2:5: alias references unknown anchor
    "#);
}

#[test]
fn scenarios_are_parsed() {
    let script = Script::parse(
        r#"[
  { "persona": "coder", "status": "done", "content": "[CODER:1]" },
  { "persona": "conductor", "content": "[CODER:2]", "structured_output": { "step": 2 } },
  { "status": "blocked", "content": "no network" }
]"#,
        "scenario.json",
    )
    .unwrap();
    let [coder, conductor, blocked] = &script.entries[..] else { panic!("three entries") };
    assert_eq!((coder.persona.as_deref(), coder.kind), (Some("coder"), None));
    assert_eq!((coder.text.as_deref(), &coder.blocked, coder.times), (Some("[CODER:1]"), &None, 1));
    assert_eq!((&conductor.persona, conductor.kind), (&None, Some(AskKind::Judge)));
    assert_eq!(conductor.output, Some(serde_json::json!({"step": 2})));
    assert_eq!(
        (blocked.blocked.as_deref(), blocked.text.as_deref()),
        (Some("no network"), Some("no network"))
    );
    assert_eq!((script.scenario, script.on_exhausted), (true, OnExhausted::Fail));
    assert_eq!(read("[]"), "0 entries");
}

#[test]
fn errors_in_a_scenario_have_a_location() {
    insta::assert_snapshot!(table(&[
        r#"[{"content": "x", "personas": "y"}]"#,
        r#"[{"content": "x", "agent": "y"}]"#,
        r#"[{"persona": "x"}]"#,
        r#"[{"content": "x", "status": "block"}]"#,
        r#"[{"content": 5}]"#,
        r#"["x"]"#,
        r#"[{"step": "work", "text": "y"}]"#,
    ]), @r#"
    [{"content": "x", "personas": "y"}]
    --> s.yaml:1:19: unknown field `personas` | did you mean `persona`?
    [{"content": "x", "agent": "y"}]
    --> s.yaml:1:19: unknown field `agent` | the fields are `persona`, `status`, `content`, `structured_output`
    [{"persona": "x"}]
    --> s.yaml:1:3: the field `content` is missing | a bare list holds scenario entries; put this one under the key `answers`
    [{"content": "x", "status": "block"}]
    --> s.yaml:1:29: unknown value `block` | did you mean `blocked`?
    [{"content": 5}]
    --> s.yaml:1:14: expected a string, not `5` | quote it if it is a string
    ["x"]
    --> s.yaml:1:2: expected a mapping
    [{"step": "work", "text": "y"}]
    --> s.yaml:1:3: unknown field `step` | a bare list holds scenario entries; put this one under the key `answers`
    "#);
}

#[test]
fn garbage_never_panics() {
    let seeds = [
        "answers:\n  - step: a\n    output: {x: [1, 2]}\n    writes: [{path: a, content: |\n      b\n      }]\n",
        "{\"answers\": [{\"text\": \"\\u00e9\", \"usage\": {\"cost_usd\": 0.5}}], \"on_exhausted\": \"fail\"}",
        "[{\"persona\": \"a\", \"content\": \"b\"}]",
        "answers:\n  - &a {text: x}\n  - *a\n  - {<<: *a}\n",
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    let (mut read, mut refused) = (0, 0);
    for round in 0..20_000 {
        let mut bytes = seeds[round % seeds.len()].as_bytes().to_vec();
        for _ in 0..next() % 6 {
            let at = next() % bytes.len();
            match next() % 4 {
                0 => bytes[at] = next() as u8,
                1 => bytes.truncate(at + 1),
                2 => bytes.insert(at, b"\n\t -:{}[]&*!|>'\"%@`#,?\0\xff"[next() % 24]),
                _ => bytes.extend_from_within(..at),
            }
        }
        match Script::parse(&String::from_utf8_lossy(&bytes), "garbage") {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

#[test]
fn distances() {
    for (left, right, expected) in [("", "", 0), ("stp", "step", 1), ("kitten", "sitting", 3), ("abc", "", 3)]
    {
        assert_eq!(compute_edit_distance(left, right), expected, "{left} {right}");
    }
}
