//! Verdicts: what each comes down to, and what is found in them.

use crate::support::{DIR, Project, edit, findings, load, sound};
use insta::assert_snapshot;

/// The sound agent with a verdict, parameters that name resources, a verification step's worth of handlers.
fn with(verdict: &str) -> Project {
    let files = edit(&sound(), "{ \"type\": \"detect:graph\" }", verdict);
    let to = "\"baseBranch\": {";
    let params = r#""file": { "type": "string", "description": "F", "required": true, "cli": "--file" },
    "url": { "type": "string", "description": "U", "default": "http://localhost/state", "cli": "--url" },
    "baseBranch": {"#;
    let mut files = edit(&files, to, params);
    let mut put = |path: &str, text: &str| files.insert(format!("{DIR}/{path}"), text.as_bytes().to_vec());
    put("verdict.sh", "echo");
    put("verdict.ts", "export default 1");
    put("run.ts", "#!/usr/bin/env -S deno run\nexport default 1");
    files
}

fn lowered(verdict: &str) -> String {
    let loaded = load(&with(verdict), DIR);
    let errors: Vec<&str> = loaded
        .diagnostics
        .iter()
        .filter(|finding| finding.severity == cuegate_flow::Severity::Error)
        .map(|finding| finding.message.as_str())
        .collect();
    assert!(errors.is_empty(), "{verdict}: {errors:?}");
    format!("{:?} {}", loaded.draft.verdict, loaded.draft.limits.iterations_max)
}

#[test]
fn what_each_comes_down_to() {
    let text: Vec<String> = [
        r#"{"type": "count:check", "config": {"maxChecks": 2, "maxIterations": 7}}"#,
        r#"{"type": "detect:keyword", "config": {"verdictKeyword": "DONE"}}"#,
        r#"{"type": "detect:structured", "config": {"signalType": "x", "requiredFields": ["a", "b"]}}"#,
        r#"{"type": "detect:structured", "config": {"signalType": "x", "requiredFields": {"a": 1}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file"}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": "absent"}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": {"contains": "ok"}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": {"equals": "ok\n"}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "api"}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "api", "targetState": "closed"}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "api", "targetState": {"n": 1, "s": "x"}}}"#,
        r#"{"type": "meta:custom", "config": {"handlerPath": "verdict.sh", "maxIterations": 5}}"#,
        r#"{"type": "meta:custom", "config": {"handlerPath": "./run.ts"}}"#,
        r#"{"type": "meta:composite", "config": {"operator": "and", "maxIterations": 9, "conditions": [
            {"type": "count:iteration", "config": {"maxIterations": 3}},
            {"type": "meta:composite", "config": {"operator": "or", "conditions": [
                {"type": "detect:graph"}, {"type": "detect:keyword", "config": {"verdictKeyword": "A"}}]}},
            {"type": "meta:composite", "config": {"operator": "first", "conditions": [
                {"type": "count:check", "config": {"maxChecks": 1}}]}}]}}"#,
    ]
    .into_iter()
    .map(lowered)
    .collect();
    assert_snapshot!(text.join("\n"), @"");
}

#[test]
fn the_format_of_actions_marks_signals() {
    let verdict = r#"{"type": "detect:structured", "config": {"signalType": "x"}},
    "actions": {"enabled": false, "outputFormat": "yaml"}"#;
    assert!(lowered(verdict).contains("marker: \"yaml\""));
}

#[test]
fn what_is_found() {
    let mut text = String::new();
    for verdict in [
        r#"{"type": "detect:keyword", "config": {"verdictKeyword": "  "}}"#,
        r#"{"type": "poll:state"}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "github-project", "targetState": 1}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": "done"}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": {"contains": ""}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": {"is": "a"}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": {"equals": 1}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "file", "targetState": true}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "api", "targetState": {}}}"#,
        r#"{"type": "poll:state", "config": {"resourceType": "api", "targetState": [1]}}"#,
        r#"{"type": "meta:custom", "config": {"handlerPath": "../verdict.sh"}}"#,
        r#"{"type": "meta:custom", "config": {"handlerPath": "other.sh"}}"#,
        r#"{"type": "meta:custom", "config": {"handlerPath": "verdict.ts"}}"#,
        r#"{"type": "meta:composite", "config": {"operator": "and", "conditions": []}}"#,
        r#"{"type": "meta:composite", "config": {"operator": "and", "conditions": [
            {"type": "detect:graph", "config": {"entryStep": "initial.fix"}},
            {"type": "count:iteration", "config": {"maxIterations": 30}},
            {"type": "detect:keyword", "config": {"verdictKeyword": "A", "maxIterations": 5}},
            {"type": "count:iteration"}, {"type": "poll:state", "config": {}}]}}"#,
    ] {
        text += &format!("# {verdict}\n{}", findings(&with(verdict), DIR));
    }
    assert_snapshot!(text, @"");
}

#[test]
fn a_poll_needs_something_to_look_at() {
    let verdict = r#"{"type": "poll:state", "config": {"resourceType": "file"}}"#;
    let bare = edit(&sound(), "{ \"type\": \"detect:graph\" }", verdict);
    let optional = edit(&with(verdict), "\"required\": true, \"cli\": \"--file\"", "\"cli\": \"--file\"");
    let text = format!("{}# optional\n{}", findings(&bare, DIR), findings(&optional, DIR));
    assert_snapshot!(text, @"");
}

/// Prompts read the facts of the verdict that has them.
#[test]
fn facts_of_verdicts_in_prompts() {
    let prompt = |verdict: &str| {
        let to = "Close #{uv-issue} {uv-completion_keyword} {uv-check_count} of {uv-max_checks}";
        findings(&edit(&with(verdict), "Close #{uv-issue}", to), DIR)
    };
    let both = prompt(
        r#"{"type": "meta:composite", "config": {"operator": "or", "conditions": [
            {"type": "detect:keyword", "config": {"verdictKeyword": "DONE"}},
            {"type": "count:check", "config": {"maxChecks": 2}}]}}"#,
    );
    assert!(!both.contains("error"), "{both}");
    let none = prompt(r#"{"type": "detect:graph"}"#);
    assert_eq!(none.matches("error[unknown-variable]").count(), 3, "{none}");
}
