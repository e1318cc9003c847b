//! What is declared for prompts and validators, and no prompt reads and nothing runs. The sound agent is the corrected
//! twin of each case; where a twin of its own shows more, it stands below the case and finds nothing.

use crate::support::{DIR, Project, edit, findings, sound};

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
    insta::assert_snapshot!(findings(&files, DIR), @"steps_registry.json:23:60 warning[unused-key]: `c2` and `c3` of the validation of `closure.fix` lead to no failure prompt, so others are taken");
    files.insert(retry.to_owned(), prompt);
    assert_eq!(findings(&files, DIR), "");
    files.remove(retry);
    let files =
        edit(&files, "\"c2\": \"retry\", \"c3\": \"fix\"", "\"description\": \"at the closure step\"");
    assert_eq!(findings(&files, DIR), "");
}
