//! What is checked in `agent.json`.

use crate::support::{DIR, Project, broken, edit, findings, load, sound};

#[test]
fn a_reserved_flag_leaves_the_parameter_to_set() {
    let files = edit(&sound(), "\"cli\": \"--base-branch\"", "\"cli\": \"--model\"");
    assert_eq!(&*load(&files, DIR).draft.params[1].flag, "");
}

#[test]
fn verdicts() {
    let verdict =
        |to: &'static str| -> Project { edit(&sound(), "\"verdict\": { \"type\": \"detect:graph\" },", to) };
    let cases = [
        ("absent", ""),
        ("unknown", r#""verdict": {"type": "detect:grap"},"#),
        ("count", r#""verdict": {"type": "count:iteration", "config": {"maxIterations": 3}},"#),
        ("count without config", r#""verdict": {"type": "count:iteration"},"#),
        ("count without max", r#""verdict": {"type": "count:iteration", "config": {}},"#),
        ("count of 0", r#""verdict": {"type": "count:iteration", "config": {"maxIterations": 0}},"#),
        ("count of 2.5", r#""verdict": {"type": "count:iteration", "config": {"maxIterations": 2.5}},"#),
        ("check", r#""verdict": {"type": "count:check", "config": {"maxChecks": 2}},"#),
        ("check without max", r#""verdict": {"type": "count:check"},"#),
        (
            "poll",
            r#""verdict": {"type": "poll:state", "config": {"resourceType": "files", "targetState": 3}},"#,
        ),
        ("keyword", r#""verdict": {"type": "detect:keyword", "config": {"maxIterations": 5}},"#),
        (
            "structured",
            r#""verdict": {"type": "detect:structured", "config": {"signalType": "x", "requiredFields": 1}},"#,
        ),
        ("graph", r#""verdict": {"type": "detect:graph", "config": {"registryPath": "../x.json"}},"#),
        ("graph entry", r#""verdict": {"type": "detect:graph", "config": {"entryStep": "closure.fix"}},"#),
        (
            "composite",
            r#""verdict": {"type": "meta:composite", "config": {"operator": "xor", "conditions": [{"type": "count:check", "config": {}}, {"type": "x"}]}},"#,
        ),
        ("custom", r#""verdict": {"type": "meta:custom", "config": {"handlerPath": "../../h.ts"}},"#),
        (
            "key of another type",
            r#""verdict": {"type": "detect:graph", "config": {"maxChecks": 2, "issueParam": "x"}},"#,
        ),
    ];
    let mut text = String::new();
    for (name, to) in cases {
        text += &format!("# {name}\n{}", findings(&verdict(to), DIR));
    }
    insta::assert_snapshot!(text, @"
    # absent
    steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 10 iterations before its validators run
    # unknown
    agent.json:16:25 error[invalid-value]: `detect:grap` is no `type`
    # count
    steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 3 iterations before its validators run
    # count without config
    steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 10 iterations before its validators run
    # count without max
    agent.json:16:54 error[missing-key]: `maxIterations` is missing in `runner.verdict.config`
    steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 10 iterations before its validators run
    # count of 0
    agent.json:16:72 error[invalid-value]: `maxIterations` must be a whole number of at least 1, not 0
    steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 10 iterations before its validators run
    # count of 2.5
    agent.json:16:72 error[invalid-value]: `maxIterations` must be a whole number of at least 1, not 2.5
    steps_registry.json:22:5 warning[closure-skipped]: `count:iteration` can complete the run after 10 iterations before its validators run
    # check
    steps_registry.json:22:5 warning[closure-skipped]: `count:check` can complete the run before its validators have passed
    # check without max
    agent.json:16:25 error[missing-key]: the verdict `count:check` needs `config.maxChecks`
    # poll
    agent.json:16:66 error[invalid-value]: `files` is no `resourceType`
    # keyword
    agent.json:16:53 error[missing-key]: `verdictKeyword` is missing in `runner.verdict.config`
    # structured
    agent.json:16:94 error[wrong-type]: `requiredFields` must be an object or a list, not a number
    steps_registry.json:22:5 warning[closure-skipped]: `detect:structured` can complete the run before its validators have passed
    # graph
    agent.json:16:68 error[escapes-root]: `../x.json` leads out of the agent's folder
    # graph entry
    steps_registry.json:22:5 warning[weak-permission]: `closure.fix` must fix what the validators of `closure.fix` find, but may not change files
    # composite
    agent.json:16:66 error[invalid-value]: `xor` is no `operator`
    agent.json:16:122 error[missing-key]: `maxChecks` is missing in `config`
    agent.json:16:127 error[missing-key]: `config` is missing in a condition
    agent.json:16:136 error[invalid-value]: `x` is no `type`
    # custom
    agent.json:16:66 error[escapes-root]: `../../h.ts` leads out of the agent's folder
    # key of another type
    agent.json:16:52 warning[unused-key]: `maxChecks` has no effect in `runner.verdict.config`
    agent.json:16:68 warning[unused-key]: `issueParam` has no effect in `runner.verdict.config`
    ");
}

#[test]
fn limits_by_verdict() {
    let limit = |to: &str| {
        let draft = load(&edit(&sound(), "{ \"type\": \"detect:graph\" }", to), DIR).draft;
        format!("{:?} {}", draft.verdict, draft.limits.iterations_max)
    };
    let poll = "Poll(Poll { resource: Issue, param: \"issue\", state: Equals(\"closed\") }) 500";
    assert_eq!(limit(r#"{ "type": "detect:graph" }"#), "Flow 20");
    assert_eq!(limit(r#"{ "type": "count:iteration" }"#), "Iterations(10) 10");
    assert_eq!(limit("null"), "Flow 20", "of what cannot be read nothing follows");
    assert_eq!(limit(r#"{ "type": "count:iteration", "config": {"maxIterations": 4} }"#), "Iterations(4) 4");
    assert_eq!(limit(r#"{ "type": "poll:state", "config": {"maxIterations": 500} }"#), poll);
}

#[test]
fn integrations_actions_execution_logging() {
    let with = |to: &str| broken(&[("\"verdict\": {", &format!("{to}, \"verdict\": {{"))]);
    let cases = [
        r#""integrations": {"github": {"enabled": true, "defaultClosureAction": "label"}}"#,
        r#""integrations": {"github": {"labels": {"completion": {"add": [1]}}}}"#,
        r#""integrations": {"github": {"enabled": false}}"#,
        r#""actions": {"enabled": true, "handlers": {"a": "log", "b": "mail", "c": "exec:x.sh"}}"#,
        r#""actions": {"enabled": false}"#,
        r#""execution": {"worktree": {"enabled": true, "root": "../w"}}"#,
        r#""execution": {"worktree": {"enabled": true}, "finalize": {"autoMerge": false}}"#,
        r#""execution": {"finalize": {"createPr": true, "remot": "x"}}"#,
        r#""logging": {"directory": "logs", "format": "xml", "maxFiles": 0}"#,
    ];
    let mut text = String::new();
    for case in cases {
        text += &format!("# {case}\n{}", with(case));
    }
    insta::assert_snapshot!(text, @r#"
    # "integrations": {"github": {"enabled": true, "defaultClosureAction": "label"}}
    agent.json:16:74 error[invalid-value]: `label` is no `defaultClosureAction`
    # "integrations": {"github": {"labels": {"completion": {"add": [1]}}}}
    agent.json:16:32 error[missing-key]: `enabled` is missing in `runner.integrations.github`
    agent.json:16:67 error[wrong-type]: `add` must hold texts only, not a number
    # "integrations": {"github": {"enabled": false}}
    # "actions": {"enabled": true, "handlers": {"a": "log", "b": "mail", "c": "exec:x.sh"}}
    agent.json:16:64 error[invalid-value]: unknown handler `mail`
    agent.json:16:77 error[unreadable-file]: there is no handler `.agent/fixer/x.sh`
    # "actions": {"enabled": false}
    # "execution": {"worktree": {"enabled": true, "root": "../w"}}
    # "execution": {"worktree": {"enabled": true}, "finalize": {"autoMerge": false}}
    # "execution": {"finalize": {"createPr": true, "remot": "x"}}
    agent.json:16:50 error[unknown-key]: unknown key `remot` in `runner.execution.finalize`
    # "logging": {"directory": "logs", "format": "xml", "maxFiles": 0}
    agent.json:16:48 error[invalid-value]: `xml` is no `format`
    agent.json:16:67 error[invalid-value]: `maxFiles` must be a whole number of at least 1, not 0
    "#);
}

#[test]
fn what_the_runner_needs() {
    let to = r#""execution": {"worktree": {"enabled": true, "root": "../w"}}, "verdict": {"#;
    let run = load(&edit(&sound(), "\"verdict\": {", to), DIR).run;
    assert_eq!(
        (run.agent.as_str(), run.title.as_str(), run.description.as_str()),
        ("fixer", "Fixer", "Fixes an issue")
    );
    assert!(run.worktree.enabled && run.needs_task);
    assert_eq!(run.worktree.root.as_deref(), Some("../w"));
    assert_eq!(run.unsupported, [""; 0]);
    assert!(run.worktree.finalize.merge, "a worktree is merged by default");
    let files = edit(&edit(&sound(), ", \"usesStdin\": true", ""), ": {input_text}", "");
    assert!(!load(&files, DIR).run.needs_task);
}
