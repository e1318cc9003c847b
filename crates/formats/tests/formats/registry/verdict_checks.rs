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
    put("verdict.ts", "console.log(1)");
    put("run.ts", "#!/usr/bin/env -S deno run\nexport default 1");
    files
}

fn lowered(verdict: &str) -> String {
    let loaded = load(&with(verdict), DIR);
    let errors: Vec<&str> = loaded
        .diagnostics
        .iter()
        .filter(|finding| finding.severity == cuegate_flow::diagnostics::Severity::Error)
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
    assert_snapshot!(text.join("\n"), @r##"
    Checks { max: 2, of: ["closure.fix"] } 7
    Keyword("DONE") 20
    Signal(Signal { kind: "x", marker: "json", required: [Field { name: "a", value: None }, Field { name: "b", value: None }] }) 20
    Signal(Signal { kind: "x", marker: "json", required: [Field { name: "a", value: Some(Number(1)) }] }) 20
    Poll(Poll { resource: File, param: "file", state: Exists }) 20
    Poll(Poll { resource: File, param: "file", state: Absent }) 20
    Poll(Poll { resource: File, param: "file", state: Contains("ok") }) 20
    Poll(Poll { resource: File, param: "file", state: Equals("ok") }) 20
    Poll(Poll { resource: Api, param: "url", state: Exists }) 20
    Poll(Poll { resource: Api, param: "url", state: Equals("closed") }) 20
    Poll(Poll { resource: Api, param: "url", state: Fields([Field { name: "n", value: Some(Number(1)) }, Field { name: "s", value: Some(String("x")) }]) }) 20
    Handler(Handler { program: Program { path: "verdict.sh", name: "verdict.sh", start: ["sh"], body: "echo" }, config: Object {"handlerPath": String("verdict.sh"), "maxIterations": Number(5)} }) 5
    Handler(Handler { program: Program { path: "./run.ts", name: "run.ts", start: ["/usr/bin/env", "-S deno run"], body: "#!/usr/bin/env -S deno run\nexport default 1" }, config: Object {"handlerPath": String("./run.ts")} }) 20
    Every([Iterations(3), Any([Flow, Keyword("A")]), First([Checks { max: 1, of: ["closure.fix"] }])]) 9
    "##);
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
    assert_snapshot!(text, @r#"
    # {"type": "detect:keyword", "config": {"verdictKeyword": "  "}}
    agent.json:8:5 warning[unused-variable]: no prompt reads the parameter `file`, so giving it changes nothing
    agent.json:9:5 warning[unused-variable]: no prompt reads the parameter `url`, so giving it changes nothing
    agent.json:18:72 error[invalid-value]: `verdictKeyword` is empty
    # {"type": "poll:state"}
    steps_registry.json:22:5 warning[closure-skipped]: `poll:state` can complete the run before its validators have passed
    # {"type": "poll:state", "config": {"resourceType": "github-project", "targetState": 1}}
    agent.json:18:99 error[wrong-type]: `targetState` must be a text or an object, not a number
    # {"type": "poll:state", "config": {"resourceType": "file", "targetState": "done"}}
    agent.json:18:89 error[invalid-value]: unknown file state `done`
    # {"type": "poll:state", "config": {"resourceType": "file", "targetState": {"contains": ""}}}
    agent.json:18:102 error[invalid-value]: every file contains nothing
    # {"type": "poll:state", "config": {"resourceType": "file", "targetState": {"is": "a"}}}
    agent.json:18:89 error[invalid-value]: this is not the state of a file
    # {"type": "poll:state", "config": {"resourceType": "file", "targetState": {"equals": 1}}}
    agent.json:18:100 error[wrong-type]: `equals` must be a text, not a number
    # {"type": "poll:state", "config": {"resourceType": "file", "targetState": true}}
    agent.json:18:89 error[wrong-type]: `targetState` must be a text or an object, not `true` or `false`
    # {"type": "poll:state", "config": {"resourceType": "api", "targetState": {}}}
    agent.json:18:88 error[invalid-value]: `targetState` is empty
    # {"type": "poll:state", "config": {"resourceType": "api", "targetState": [1]}}
    agent.json:18:88 error[wrong-type]: `targetState` must be a text or an object, not a list
    # {"type": "meta:custom", "config": {"handlerPath": "../verdict.sh"}}
    agent.json:8:5 warning[unused-variable]: no prompt reads the parameter `file`, so giving it changes nothing
    agent.json:9:5 warning[unused-variable]: no prompt reads the parameter `url`, so giving it changes nothing
    agent.json:18:66 error[escapes-root]: `../verdict.sh` leads out of the agent's folder
    # {"type": "meta:custom", "config": {"handlerPath": "other.sh"}}
    agent.json:8:5 warning[unused-variable]: no prompt reads the parameter `file`, so giving it changes nothing
    agent.json:9:5 warning[unused-variable]: no prompt reads the parameter `url`, so giving it changes nothing
    agent.json:18:66 error[unreadable-file]: there is no handler `.agent/fixer/other.sh`
    # {"type": "meta:custom", "config": {"handlerPath": "verdict.ts"}}
    agent.json:8:5 warning[unused-variable]: no prompt reads the parameter `file`, so giving it changes nothing
    agent.json:9:5 warning[unused-variable]: no prompt reads the parameter `url`, so giving it changes nothing
    agent.json:18:66 error[handler-unstartable]: it is unknown how to start `verdict.ts`
    # {"type": "meta:composite", "config": {"operator": "and", "conditions": []}}
    agent.json:18:53 error[invalid-value]: `conditions` is empty
    # {"type": "meta:composite", "config": {"operator": "and", "conditions": [
                {"type": "detect:graph", "config": {"entryStep": "initial.fix"}},
                {"type": "count:iteration", "config": {"maxIterations": 30}},
                {"type": "detect:keyword", "config": {"verdictKeyword": "A", "maxIterations": 5}},
                {"type": "count:iteration"}, {"type": "poll:state", "config": {}}]}}
    agent.json:18:25 warning[verdict-never-holds]: `and` waits for `detect:graph`, and at an end of the flow the run is over anyway
    agent.json:19:49 warning[unused-key]: `entryStep` has no effect in `config`
    agent.json:20:69 warning[verdict-never-holds]: `count:iteration` holds after 30 iterations, and the limit of the run is 20
    agent.json:21:74 warning[unused-key]: `maxIterations` has no effect in `config`
    agent.json:22:13 error[missing-key]: `config` is missing in a condition
    "#);
}

#[test]
fn a_poll_needs_something_to_look_at() {
    let verdict = r#"{"type": "poll:state", "config": {"resourceType": "file"}}"#;
    let bare = edit(&sound(), "{ \"type\": \"detect:graph\" }", verdict);
    let optional = edit(&with(verdict), "\"required\": true, \"cli\": \"--file\"", "\"cli\": \"--file\"");
    let text = format!("{}# optional\n{}", findings(&bare, DIR), findings(&optional, DIR));
    assert_snapshot!(text, @"
    agent.json:16:25 error[missing-key]: the verdict looks at a file, and no parameter `file` says which
    # optional
    agent.json:8:5 error[missing-key]: the verdict looks at a file, and the parameter `file` can be left out
    steps_registry.json:22:5 warning[closure-skipped]: `poll:state` can complete the run before its validators have passed
    ");
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
