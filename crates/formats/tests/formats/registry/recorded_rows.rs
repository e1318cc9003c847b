//! Rows of the documents whose effect is what is found.

use crate::older::check_flow;
use crate::older::complete::{self, COMPLETE};
use crate::support::{edit, findings, project, table};

#[test]
fn what_a_failure_pattern_needs() {
    insta::assert_snapshot!(table(&[
        ("description", &[("\"description\": \"uncommitted changes\", ", "")]),
        ("edition", &[("\"edition\": \"failed\", ", "")]),
    ]), @"
    # description
    steps_registry.json:9:18 error[missing-key]: `description` is missing in `failurePatterns.git-dirty`
    # edition
    steps_registry.json:9:18 error[missing-key]: `edition` is missing in `failurePatterns.git-dirty`
    ");
}

#[test]
fn a_schema_of_a_validation_has_no_effect() {
    insta::assert_snapshot!(table(&[
        ("schema", &[("\"name\": \"Clean tree\"", "\"name\": \"Clean tree\", \"outputSchemaRef\": {\"file\": \"fix.json\", \"schema\": \"x\"}")]),
        ("description", &[("\"name\": \"Clean tree\"", "\"name\": \"Clean tree\", \"description\": \"Is it clean?\"")]),
    ]), @"
    # schema
    steps_registry.json:23:54 warning[unused-key]: `outputSchemaRef` has no effect in `validationSteps.closure.fix`
    # description
    nothing
    ");
}

#[test]
fn keys_that_older_definitions_carry() {
    insta::assert_snapshot!(table(&[
        ("of a step", &[("\"name\": \"Plan\"", "\"name\": \"Plan\", \"type\": \"x\", \"condition\": \"y\", \"priority\": 1")]),
        ("of a verdict", &[("\"verdict\": { \"type\": \"detect:graph\" }",
            "\"verdict\": { \"type\": \"detect:graph\", \"config\": { \"type\": \"x\", \"issueParam\": \"issue\" } }")]),
    ]), @"
    # of a step
    steps_registry.json:30:48 warning[unused-key]: `type` has no effect in a step
    steps_registry.json:30:61 warning[unused-key]: `condition` has no effect in a step
    steps_registry.json:30:79 warning[unused-key]: `priority` has no effect in a step
    # of a verdict
    agent.json:16:54 warning[unused-key]: `type` has no effect in `runner.verdict.config`
    agent.json:16:67 warning[unused-key]: `issueParam` has no effect in `runner.verdict.config`
    ");
}

#[test]
fn descriptions_are_texts() {
    insta::assert_snapshot!(table(&[
        ("of a step", &[("\"name\": \"Plan\"", "\"name\": \"Plan\", \"description\": 7")]),
        ("a text", &[("\"name\": \"Plan\"", "\"name\": \"Plan\", \"description\": \"Plans\"")]),
    ]), @"
    # of a step
    steps_registry.json:30:63 error[wrong-type]: `description` must be text, not a number
    # a text
    nothing
    ");
    // In the other generations as well.
    let older = edit(&project(COMPLETE), "\"name\": \"Plan\"", "\"name\": \"Plan\", \"description\": 7");
    let checked =
        edit(&check_flow::sound(), "\"name\": \"Analyze\"", "\"name\": \"Analyze\", \"description\": 7");
    for found in [findings(&older, complete::DIR), findings(&checked, check_flow::DIR)] {
        assert!(found.contains("error[wrong-type]: `description` must be text, not a number"), "{found}");
    }
}

#[test]
fn params_of_a_failure_are_compared_with_its_prompt_and_its_validators() {
    insta::assert_snapshot!(table(&[
        ("read and given", &[]),
        ("not read", &[("\"params\": [\"changedFiles\"]", "\"params\": [\"changedFiles\", \"branch\"]")]),
        ("read, but not given", &[
            ("\"params\": [\"changedFiles\"]", "\"params\": [\"changedFiles\", \"branch\"]"),
            ("Commit for #{uv-issue}", "Commit {{branch}}")]),
    ]), @"
    # read and given
    nothing
    # not read
    steps_registry.json:11:34 warning[unused-variable]: the prompt of failure pattern `git-dirty` does not read `branch`
    # read, but not given
    steps_registry.json:11:34 warning[undeclared-variable]: validator `git-clean` yields no `branch`, so that it stays empty
    ");
}

#[test]
fn keys_that_say_nothing_in_a_condition() {
    let composite = |kind: &str, config: &str| {
        format!(
            "\"verdict\": {{ \"type\": \"meta:composite\", \"config\": {{ \"operator\": \"or\", \"conditions\": [{{ \"type\": \"{kind}\", \"config\": {config} }}] }} }}"
        )
    };
    let keyword = composite(
        "detect:keyword",
        r#"{ "verdictKeyword": "DONE", "maxIterations": 3, "type": "x", "issueParam": "y" }"#,
    );
    let graph = composite("detect:graph", r#"{ "registryPath": "a.json", "entryStep": "initial.fix" }"#);
    let verdict = "\"verdict\": { \"type\": \"detect:graph\" }";
    insta::assert_snapshot!(table(&[("of a keyword", &[(verdict, &keyword)]), ("of the flow", &[(verdict, &graph)])]), @"
    # of a keyword
    agent.json:16:155 warning[unused-key]: `maxIterations` has no effect in `config`
    agent.json:16:175 warning[unused-key]: `type` has no effect in `config`
    agent.json:16:188 warning[unused-key]: `issueParam` has no effect in `config`
    steps_registry.json:22:5 warning[closure-skipped]: `meta:composite` can complete the run before its validators have passed
    # of the flow
    agent.json:16:127 warning[unused-key]: `registryPath` has no effect in `config`
    agent.json:16:153 warning[unused-key]: `entryStep` has no effect in `config`
    ");
}
