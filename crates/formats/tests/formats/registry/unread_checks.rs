//! What is declared for prompts and validators, and no prompt reads and nothing runs. The sound agent is the corrected
//! twin of each case; where a twin of its own shows more, it stands below the case and finds nothing.

use crate::support::{DIR, Project, edit, findings, sound, table};

#[test]
fn parameters_sections_and_bases() {
    insta::assert_snapshot!(table(&[
        ("read by nobody", &[(" against {uv-base-branch}", ""), ("\"uvVariables\": [\"issue\", \"baseBranch\"]", "\"uvVariables\": [\"issue\"]")]),
        ("read in a failure prompt only", &[(" against {uv-base-branch}", ""), ("\"uvVariables\": [\"issue\", \"baseBranch\"]", "\"uvVariables\": [\"issue\"]"),
            ("Commit for #{uv-issue}", "Commit for #{uv-issue} on {uv-base-branch}")]),
        ("read in the system prompt only", &[(" against {uv-base-branch}", ""), ("\"uvVariables\": [\"issue\", \"baseBranch\"]", "\"uvVariables\": [\"issue\"]"),
            ("of {unknown}", "of {uv-baseBranch}")]),
        ("meant, but mistyped", &[("{uv-base-branch}", "{uv-bas-branch}")]),
        ("section that nobody includes", &[("{section.context}", "")]),
        ("section of another name", &[("{section.context}", ""), ("\"section.context\": { \"stepId\": \"section.context\"", "\"context\": { \"stepId\": \"context\"")]),
        ("a base without prompts", &[("\"userPromptsBase\": \".agent/fixer/prompts\"", "\"userPromptsBase\": \".agent/fixer/prompt\"")]),
    ]), @"
    # read by nobody
    agent.json:8:5 warning[unused-variable]: no prompt reads the parameter `baseBranch`, so that giving it changes nothing
    # read in a failure prompt only
    nothing
    # read in the system prompt only
    nothing
    # meant, but mistyped
    f_default.md:7:43 error[unknown-variable]: undefined variable `bas-branch` in the prompt of `initial.fix`
    # section that nobody includes
    steps_registry.json:66:5 warning[unused-definition]: no prompt includes `section.context`
    # section of another name
    steps_registry.json:66:5 warning[unused-definition]: no prompt includes `context`
    # a base without prompts
    steps_registry.json:5:22 warning[unused-key]: no prompt was found below `.agent/fixer/prompt`
    ");
}

#[test]
fn validators() {
    let with = "\"git-clean\": {\n      \"type\"";
    let more = "\"spare\": { \"type\": \"command\", \"command\": \"true\", \"successWhen\": \"exitCode:0\", \"failurePattern\": \"git-dirty\" }, \"git-clean\": {\n      \"type\"";
    insta::assert_snapshot!(table(&[
        ("run by nothing", &[(with, more)]),
        ("run", &[(with, more), ("[{ \"validator\": \"git-clean\" }]", "[{ \"validator\": \"git-clean\" }, { \"validator\": \"spare\" }]"),
            ("\"failurePattern\": \"git-dirty\",\n", "\"failurePattern\": \"git-dirty\" ,\n"),
            ("\"command\": \"true\", \"successWhen\": \"exitCode:0\"", "\"command\": \"true\", \"successWhen\": \"exitCode:0\", \"extractParams\": { \"changedFiles\": \"parseChangedFiles\" }")]),
        ("pattern that nobody names", &[("\"failurePatterns\": {", "\"failurePatterns\": { \"spare\": { \"description\": \"x\", \"edition\": \"failed\" },")]),
        ("param that nobody reads", &[("\"params\": [\"changedFiles\"]", "\"params\": [\"changedFiles\", \"branch\"]"),
            ("\"changedFiles\": \"parseChangedFiles\"", "\"changedFiles\": \"parseChangedFiles\", \"branch\": \"parseBranchName\"")]),
        ("value that nobody reads", &[("\"changedFiles\": \"parseChangedFiles\"", "\"changedFiles\": \"parseChangedFiles\", \"branch\": \"parseBranchName\"")]),
        ("value that is read", &[("\"changedFiles\": \"parseChangedFiles\"", "\"changedFiles\": \"parseChangedFiles\", \"branch\": \"parseBranchName\""),
            ("Commit for #{uv-issue}", "Commit {{branch}} for #{uv-issue}")]),
        ("values without a failure prompt", &[("{ \"action\": \"retry\", \"maxAttempts\": 2 }", "{ \"action\": \"abort\" }")]),
        ("no attempt at all", &[("\"maxAttempts\": 2", "\"maxAttempts\": 0")]),
        ("no such exit code", &[("\"successWhen\": \"empty\"", "\"successWhen\": \"exitCode:256\"")]),
        ("no exit code below 0", &[("\"successWhen\": \"empty\"", "\"successWhen\": \"exitCode:-1\"")]),
        ("no number", &[("\"successWhen\": \"empty\"", "\"successWhen\": \"exitCode:zero\"")]),
        ("the greatest exit code", &[("\"successWhen\": \"empty\"", "\"successWhen\": \"exitCode:255\"")]),
        ("closing is not allowed", &[("\"allowedIntents\": [\"closing\", \"repeat\"]", "\"allowedIntents\": [\"repeat\"]"), ("[\"closing\", \"repeat\"] }", "[\"repeat\"] }"),
            ("\"closing\": { \"target\": null }, ", "")]),
    ]), @"
    # run by nothing
    steps_registry.json:15:5 warning[unused-definition]: no validation names the validator `spare`, so that nothing runs it
    # run
    nothing
    # pattern that nobody names
    steps_registry.json:8:24 warning[unused-definition]: no validator names the failure pattern `spare`
    # param that nobody reads
    steps_registry.json:11:34 warning[unused-variable]: the prompt of failure pattern `git-dirty` does not read `branch`
    # value that nobody reads
    steps_registry.json:18:63 warning[unused-variable]: no failure prompt of `git-clean` reads its `branch`
    # value that is read
    nothing
    # values without a failure prompt
    steps_registry.json:18:26 warning[unused-variable]: no failure prompt of `git-clean` reads its `changedFiles`
    # no attempt at all
    steps_registry.json:18:26 warning[unused-variable]: no failure prompt of `git-clean` reads its `changedFiles`
    # no such exit code
    steps_registry.json:16:78 error[invalid-value]: no command ends with the exit code 256, so that this validator never passes
    # no exit code below 0
    steps_registry.json:16:78 error[invalid-value]: no command ends with the exit code -1, so that this validator never passes
    # no number
    steps_registry.json:16:78 error[invalid-value]: `exitCode:zero` is no condition of success
    # the greatest exit code
    nothing
    # closing is not allowed
    steps_registry.json:22:5 error[unused-definition]: `closure.fix` does not allow `closing`, so that its validators never run
    ");
}

#[test]
fn prompts() {
    insta::assert_snapshot!(table(&[
        ("input that nobody reads", &[("{uv-approach} / {uv-initial_fix_approach}", ""), ("[\"approach\", \"previous_summary\"]", "[\"previous_summary\"]")]),
        ("input read by its long name", &[("{uv-approach} / ", ""), ("[\"approach\", \"previous_summary\"]", "[\"previous_summary\"]")]),
        ("input read in a failure prompt", &[("{uv-approach} / {uv-initial_fix_approach}", ""), ("[\"approach\", \"previous_summary\"]", "[\"previous_summary\"]"),
            ("Commit for #{uv-issue}", "Commit {uv-approach}")]),
        ("variable twice", &[("[\"approach\", \"previous_summary\"]", "[\"approach\", \"previous_summary\", \"approach\"]")]),
        ("task that nobody reads", &[(": {input_text}", "")]),
        ("task read as a variable", &[(": {input_text}", ": {uv-task}"), ("\"uvVariables\": [\"issue\", \"baseBranch\"]", "\"uvVariables\": [\"issue\", \"baseBranch\", \"task\"]")]),
        ("task that is not asked for", &[("\"usesStdin\": true", "\"usesStdin\": false")]),
        ("task, nothing said", &[(", \"usesStdin\": true", "")]),
        ("path without editions", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"pathTemplateNoAdaptation\": \"{c1}/{c2}/{c3}/f_default.md\""),
            ("\"c2\": \"section\", \"c3\": \"context\"", "\"c2\": \"section\", \"c3\": \"context\", \"edition\": \"own\"")]),
        ("path without the only edition", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"pathTemplateNoAdaptation\": \"{c1}/{c2}/{c3}/f_default.md\"")]),
        ("path without adaptations", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"pathTemplate\": \"{c1}/{c2}/{c3}/f_{edition}_git-dirty.md\"")]),
        ("plain path with an adaptation", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"pathTemplateNoAdaptation\": \"{c1}/{c2}/{c3}/f_{edition}{adaptation}.md\"")]),
        ("path that never ends", &[("\"c1\": \"steps\"", "\"c1\": \"steps\", \"pathTemplate\": \"{c1}/{c2}/{c3\"")]),
    ]), @"
    # input that nobody reads
    steps_registry.json:43:41 warning[unused-variable]: no prompt of `continuation.fix` reads its input `approach`
    # input read by its long name
    nothing
    # input read in a failure prompt
    nothing
    # variable twice
    steps_registry.json:44:55 warning[duplicate-item]: `approach` is listed twice in `uvVariables`
    # task that nobody reads
    steps_registry.json:31:60 warning[unused-variable]: `usesStdin` asks for the task, which the prompt of `initial.fix` does not read
    # task read as a variable
    nothing
    # task that is not asked for
    f_default.md:7:61 warning[undeclared-variable]: the prompt of `initial.fix` reads the task, but its `usesStdin` is false
    # task, nothing said
    nothing
    # path without editions
    steps_registry.json:4:46 warning[unused-key]: `pathTemplateNoAdaptation` has no `{edition}`, so that writing `default`, `own` has no effect
    # path without the only edition
    nothing
    # path without adaptations
    steps_registry.json:4:34 warning[unused-key]: `pathTemplate` has no `{adaptation}`, so that writing `git-dirty` has no effect
    # plain path with an adaptation
    steps_registry.json:4:46 warning[unused-key]: `{adaptation}` in `pathTemplateNoAdaptation` is always empty
    # path that never ends
    steps_registry.json:4:34 error[invalid-value]: a `{` in a path template is never closed
    ");
}

#[test]
fn an_adaptation_that_the_closure_action_replaces() {
    let github = r#""integrations": {"github": {"enabled": true, "defaultClosureAction": "label-only"}}, "verdict": {"#;
    let files = edit(&sound(), "\"verdict\": {", github);
    let files = edit(
        &files,
        "\"c2\": \"closure\", \"c3\": \"fix\"",
        "\"c2\": \"closure\", \"c3\": \"fix\", \"adaptation\": \"own\"",
    );
    let with = |adaptation: &str| {
        let mut files: Project = files.clone();
        let path = format!(".agent/fixer/prompts/steps/closure/fix/f_default_{adaptation}.md");
        files.insert(path, b"Close #{uv-issue}.".to_vec());
        findings(&files, DIR)
    };
    insta::assert_snapshot!(with("label-only"), @"steps_registry.json:55:116 warning[unused-key]: `own` has no effect: the closure action's prompt `label-only` is there");
    insta::assert_snapshot!(with("own"), @"");
}

#[test]
fn failure_prompts_that_lie_elsewhere() {
    let retry = ".agent/fixer/prompts/steps/retry/fix/f_failed_git-dirty.md";
    let mut files = sound();
    let prompt = files.remove(retry).unwrap();
    files.insert(retry.replace("retry", "closure"), prompt.clone());
    insta::assert_snapshot!(findings(&files, DIR), @"steps_registry.json:23:60 warning[unused-key]: `c2` and `c3` of the validation of `closure.fix` lead to no failure prompt, so that others are taken");
    files.insert(retry.to_owned(), prompt);
    assert_eq!(findings(&files, DIR), "");
    files.remove(retry);
    let files =
        edit(&files, "\"c2\": \"retry\", \"c3\": \"fix\"", "\"description\": \"at the closure step\"");
    assert_eq!(findings(&files, DIR), "");
}
