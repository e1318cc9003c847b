//! What is checked in prompts, validators and files.

use crate::support::{DIR, Project, broken, dump, edit, findings, load, sound, table};

#[test]
fn prompt_files() {
    insta::assert_snapshot!(table(&[
        ("missing", &[("\"c2\": \"continuation\", \"c3\": \"fix\"", "\"c2\": \"continuation\", \"c3\": \"mend\"")]),
        ("missing, built-in named", &[("\"c2\": \"continuation\", \"c3\": \"fix\"",
            "\"c2\": \"continuation\", \"c3\": \"mend\", \"fallbackKey\": \"continuation_issue\"")]),
        ("missing, unknown built-in", &[("\"c2\": \"continuation\", \"c3\": \"fix\"",
            "\"c2\": \"continuation\", \"c3\": \"mend\", \"fallbackKey\": \"continuation.issue\"")]),
        ("there, unknown built-in", &[("\"c2\": \"continuation\", \"c3\": \"fix\"",
            "\"c2\": \"continuation\", \"c3\": \"fix\", \"fallbackKey\": \"fix_default\"")]),
        ("outside", &[("\"c2\": \"continuation\", \"c3\": \"fix\"", "\"c2\": \"continuation\", \"c3\": \"../../../../../../x\"")]),
        ("edition and adaptation", &[("\"c2\": \"continuation\", \"c3\": \"fix\"",
            "\"c2\": \"continuation\", \"c3\": \"fix\", \"edition\": \"e\", \"adaptation\": \"a\"")]),
        ("missing section", &[("\"c2\": \"section\", \"c3\": \"context\"", "\"c2\": \"section\", \"c3\": \"contxt\"")]),
    ]), @r#"
    # missing
    steps_registry.json:41:5 error[missing-prompt]: `continuation.fix` has no prompt: no file `.agent/fixer/prompts/steps/continuation/mend/f_default.md`
    # missing, built-in named
    steps_registry.json:43:41 warning[unused-variable]: no prompt of `continuation.fix` reads its input `approach`
    steps_registry.json:44:23 warning[unused-variable]: `uvVariables` list `approach`, which the prompt of `continuation.fix` does not read
    # missing, unknown built-in
    steps_registry.json:42:103 error[missing-prompt]: No fallback prompt found for key: "continuation.issue" (step: continuation.fix), and there is no file `.agent/fixer/prompts/steps/continuation/mend/f_default.md`
    # there, unknown built-in
    steps_registry.json:42:102 warning[missing-prompt]: there is no built-in prompt `fix_default` for `continuation.fix`
    # outside
    steps_registry.json:42:80 error[invalid-value]: `c3` is a part of the path of a prompt, and leads elsewhere
    # edition and adaptation
    steps_registry.json:41:5 error[missing-prompt]: `continuation.fix` has no prompt: no file `.agent/fixer/prompts/steps/continuation/fix/f_e_a.md`
    # missing section
    steps_registry.json:66:5 error[missing-prompt]: `section.context` has no prompt: no file `.agent/fixer/prompts/steps/section/contxt/f_default.md`
    "#);
}

#[test]
fn variables() {
    insta::assert_snapshot!(table(&[
        ("nobody gives it", &[("Plan #{uv-issue}", "Plan #{uv-isue} {uv-issue}")]),
        ("not listed", &[("Close #{uv-issue}", "Close #{uv-issue} {uv-baseBranch}")]),
        ("listed, not read", &[("Close #{uv-issue}", "Close")]),
        ("front matter lists more", &[("uvVariables:\n  - issue", "uvVariables:\n  - issue\n  - project")]),
        ("no list, no promise", &[("\"permissionMode\": \"plan\", \"uvVariables\": [\"issue\"],", "")]),
        ("facts of verdicts to come", &[("Close #{uv-issue}", "Close #{uv-issue} {uv-check_count}")]),
        ("previous summary at the entry", &[("Plan #{uv-issue}", "Plan #{uv-issue} {uv-previous_summary}")]),
        ("handed on, read directly", &[("Close #{uv-issue}", "Close #{uv-issue} {uv-continuation_fix_status}")]),
        ("handed on by nobody", &[("Close #{uv-issue}", "Close #{uv-issue} {uv-continuation_fix_state}")]),
        ("task", &[("Close #{uv-issue}", "Close #{uv-issue} {uv-task}"),
            ("\"uvVariables\": [\"issue\"]", "\"uvVariables\": [\"issue\", \"task\"]")]),
        ("no requirements label", &[("Close #{uv-issue}", "Close #{uv-issue} {uv-label_requirements}")]),
    ]), @"
    # nobody gives it
    f_default.md:7:24 error[unknown-variable]: undefined variable `isue` in the prompt of `initial.fix`
    # not listed
    f_default.md:1:19 warning[undeclared-variable]: the prompt of `closure.fix` reads `baseBranch`, which its `uvVariables` do not list
    # listed, not read
    steps_registry.json:56:49 warning[unused-variable]: `uvVariables` list `issue`, which the prompt of `closure.fix` does not read
    # front matter lists more
    f_default.md:1:1 warning[undeclared-variable]: the front matter lists `project`, which `uvVariables` of `initial.fix` do not
    # no list, no promise
    nothing
    # facts of verdicts to come
    f_default.md:1:19 error[unknown-variable]: undefined variable `check_count` in the prompt of `closure.fix`
    # previous summary at the entry
    f_default.md:7:35 error[unassigned-value]: `initial.fix` reads `previous_summary`, but at its first visit nothing has been answered
    # handed on, read directly
    f_default.md:1:19 warning[maybe-unassigned]: `closure.fix` reads `continuation.fix.status`, which answers of `continuation.fix` may leave out: its schema does not require it
    # handed on by nobody
    f_default.md:1:19 error[unknown-variable]: undefined variable `continuation_fix_state` in the prompt of `closure.fix`
    # task
    nothing
    # no requirements label
    f_default.md:1:19 error[unknown-variable]: undefined variable `label_requirements` in the prompt of `closure.fix`
    ");
}

#[test]
fn templates() {
    insta::assert_snapshot!(table(&[
        ("unknown section", &[("{section.context}", "{section.contxt}")]),
        ("section that includes itself", &[("Be kind. ", "Be kind. {section.context}")]),
        ("words are text", &[("Be kind. ", "Be {kind}. {\"json\": {}}")]),
        ("custom variables", &[("stepId: initial.fix\n", "customVariables: [a, b, c]\n"), ("{section.context}", "{section.context}{a}{b}{a}")]),
        ("notes in a front matter", &[("stepId: initial.fix\n", "author: me\n")]),
        ("bad front matter", &[("stepId: initial.fix\n", "stepId: [\n")]),
        ("front matter of another type", &[("uvVariables:\n  - issue", "uvVariables: issue")]),
        ("malformed blocks", &[("{{/each}}{{else}}", "{{else}}{{/if}}")]),
        ("unknown variable in a failure prompt", &[("Commit for #{uv-issue}", "Commit for #{uv-isue}")]),
    ]), @r#"
    # unknown section
    f_default.md:7:1 error[unknown-target]: there is no step `section.contxt`
    # section that includes itself
    f_default.md:1:10 error[endless-section]: `section.context` includes itself
    # words are text
    nothing
    # custom variables
    f_default.md:2:1 warning[unknown-variable]: `.agent/fixer/prompts/steps/initial/fix/f_default.md` does not use its custom variables `c`
    f_default.md:7:18 warning[unknown-variable]: `a`, `b` in `.agent/fixer/prompts/steps/initial/fix/f_default.md` have no value
    # notes in a front matter
    f_default.md:2:1 warning[unused-key]: `author` in the front matter of `.agent/fixer/prompts/steps/initial/fix/f_default.md` has no effect
    # bad front matter
    f_default.md:4:1 error[invalid-yaml]: the front matter of `.agent/fixer/prompts/steps/initial/fix/f_default.md` is no YAML: "-" is only valid inside a block
    # front matter of another type
    f_default.md:3:1 error[wrong-type]: `uvVariables` in the front matter of `.agent/fixer/prompts/steps/initial/fix/f_default.md` must be a list of texts
    # malformed blocks
    f_failed_git-dirty.md:1:59 error[malformed-template]: `{{else}}` belongs into an `{{#if}}`, once
    f_failed_git-dirty.md:1:67 error[malformed-template]: `{{/if}}` does not close `{{#each changedFiles}}`
    f_failed_git-dirty.md:1:97 error[malformed-template]: `{{/if}}` closes nothing
    # unknown variable in a failure prompt
    f_failed_git-dirty.md:1:88 error[unknown-variable]: undefined variable `isue` in the failure prompt
    "#);
}

#[test]
fn validators() {
    insta::assert_snapshot!(table(&[
        ("unknown type", &[("\"type\": \"command\"", "\"type\": \"file\"")]),
        ("no command", &[("\"command\": \"git status --porcelain\", ", "")]),
        ("condition of success", &[("\"successWhen\": \"empty\"", "\"successWhen\": \"contains:x\"")]),
        ("no pattern", &[("\"failurePattern\": \"git-dirty\",", "")]),
        ("unknown pattern", &[("\"failurePattern\": \"git-dirty\"", "\"failurePattern\": \"git-dirt\"")]),
        ("unknown extractor", &[("\"changedFiles\": \"parseChangedFiles\"", "\"changedFiles\": \"parseChanges\"")]),
        ("param that nothing yields", &[("\"params\": [\"changedFiles\"]", "\"params\": [\"changedFiles\", \"branch\"]")]),
        ("value that nothing yields", &[("Commit for #{uv-issue}", "Commit {{branch}} {{branch}}")]),
        ("pattern without description", &[("\"description\": \"uncommitted changes\", ", "")]),
        ("no failure prompt", &[("\"adaptation\": \"git-dirty\"", "\"adaptation\": \"git-dirt\"")]),
        ("c2 of the closure step", &[("\"c2\": \"retry\", \"c3\": \"fix\"", "\"c3\": \"fix\"")]),
        ("unknown validator", &[("\"validator\": \"git-clean\"", "\"validator\": \"git-cleen\"")]),
        ("unknown step", &[("\"closure.fix\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Clean tree\"",
            "\"closure.fx\": {\n      \"stepId\": \"closure.fx\", \"name\": \"Clean tree\"")]),
        ("no closure step", &[("\"closure.fix\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Clean tree\"",
            "\"initial.fix\": {\n      \"stepId\": \"initial.fix\", \"name\": \"Clean tree\"")]),
        ("other id", &[("\"stepId\": \"closure.fix\", \"name\": \"Clean tree\"", "\"stepId\": \"x\", \"name\": \"Clean tree\"")]),
        ("unknown action", &[("\"action\": \"retry\"", "\"action\": \"try\"")]),
        ("schema of its own", &[("\"name\": \"Clean tree\"", "\"outputSchemaRef\": {\"file\": \"fix.json\", \"schema\": \"x\"}")]),
    ]), @"
    # unknown type
    steps_registry.json:16:15 error[invalid-value]: `file` is no `type`
    # no command
    steps_registry.json:15:18 error[missing-key]: `command` is missing in `validators.git-clean`
    # condition of success
    steps_registry.json:16:78 error[invalid-value]: `contains:x` is no condition of success
    # no pattern
    steps_registry.json:15:5 error[missing-key]: validator `git-clean` names no `failurePattern`
    # unknown pattern
    steps_registry.json:17:25 error[unknown-name]: validator `git-clean` names the undefined failure pattern `git-dirt`
    # unknown extractor
    steps_registry.json:18:42 warning[unknown-name]: `parseChanges` is no extractor, so that `changedFiles` stays empty
    # param that nothing yields
    steps_registry.json:11:34 warning[unused-variable]: the prompt of failure pattern `git-dirty` does not read `branch`
    # value that nothing yields
    f_failed_git-dirty.md:1:83 warning[undeclared-variable]: validator `git-clean` yields no `branch`, so that it stays empty
    # pattern without description
    steps_registry.json:9:18 error[missing-key]: `description` is missing in `failurePatterns.git-dirty`
    # no failure prompt
    steps_registry.json:9:5 error[missing-prompt]: failure pattern `git-dirty` has no prompt: no file `.agent/fixer/prompts/steps/retry/fix/f_failed_git-dirt.md`, `.agent/fixer/prompts/steps/closure/fix/f_failed_git-dirt.md`, `.agent/fixer/prompts/steps/continuation/fix/f_failed_git-dirt.md`
    # c2 of the closure step
    steps_registry.json:9:5 error[missing-prompt]: failure pattern `git-dirty` has no prompt: no file `.agent/fixer/prompts/steps/closure/fix/f_failed_git-dirty.md`, `.agent/fixer/prompts/steps/continuation/fix/f_failed_git-dirty.md`
    # unknown validator
    steps_registry.json:24:47 error[unknown-name]: undefined validator `git-cleen`
    # unknown step
    steps_registry.json:22:5 error[unknown-target]: `validationSteps` names the undefined step `closure.fx`
    # no closure step
    steps_registry.json:22:5 error[unused-definition]: `initial.fix` is no closure step, so that its validators never run
    # other id
    steps_registry.json:23:17 error[id-mismatch]: the validation of key `closure.fix` calls itself `x`
    # unknown action
    steps_registry.json:25:32 error[invalid-value]: `try` is no `action`
    # schema of its own
    steps_registry.json:23:32 warning[unused-key]: `outputSchemaRef` has no effect in `validationSteps.closure.fix`
    ");
}

/// The edges behind the validators of the sound agent after a replacement.
fn validator_edges(from: &str, to: &str) -> String {
    let draft = load(&edit(&sound(), from, to), DIR).draft;
    let text = dump(&draft);
    let (_, edges) = text.split_once("gate Exit\n").unwrap();
    edges.to_owned()
}

#[test]
fn what_happens_when_a_validator_fails() {
    let on_failure = |to: &str| validator_edges("{ \"action\": \"retry\", \"maxAttempts\": 2 }", to);
    insta::assert_snapshot!(on_failure(r#"{ "action": "abort" }"#), @r#"
    pass → Completed
    fail(0) → Failed("validator `git-clean` failed, and `onFailure` says `abort`")
    "#);
    insta::assert_snapshot!(on_failure(r#"{ "action": "skip" }"#), @"
    pass → Completed
    fail(0) → Completed
    ");
    insta::assert_snapshot!(on_failure(r#"{ "action": "retry", "maxAttempts": 0 }"#), @r#"
    pass → Completed
    fail(0) → Failed("validator `git-clean` still fails after 0 retries")
    "#);
    insta::assert_snapshot!(on_failure("null"), @r#"
    pass → Completed
    fail(0) → origin among continuation.fix, at most 3 on counter 0, with “<if changedFiles>Commit:<each changedFiles> <this><end><else>Commit for #<param issue>.<end>⏎”
    fail(0) → Failed("validator `git-clean` still fails after 3 retries")
    "#);
    // Nobody hands off to it any more, so that it mends by itself.
    insta::assert_snapshot!(validator_edges("\"handoff\": { \"target\": \"closure.fix\" }", "\"handoff\": { \"target\": \"initial.fix\" }"), @r#"
    pass → Completed
    fail(0) → origin among closure.fix, at most 2 on counter 0, with “<if changedFiles>Commit:<each changedFiles> <this><end><else>Commit for #<param issue>.<end>⏎”
    fail(0) → Failed("validator `git-clean` still fails after 2 retries")
    "#);
}

#[test]
fn closure_prompts_by_closure_action() {
    let github = r#""integrations": {"github": {"enabled": true, "labels": {"requirements": "docs"}, "defaultClosureAction": "label-only"}}, "verdict": {"#;
    let mut files = edit(&sound(), "\"verdict\": {", github);
    let prompt = |files: &Project| {
        let text = dump(&load(files, DIR).draft);
        text.lines().filter(|line| line.contains("prompt")).nth(2).unwrap().to_owned()
    };
    insta::assert_snapshot!(prompt(&files), @"  prompt “Close #<param issue>, <Remaining> left.⏎”");
    let adapted = b"Label #{uv-issue} as {uv-label_requirements}.".to_vec();
    files.insert(".agent/fixer/prompts/steps/closure/fix/f_default_label-only.md".to_owned(), adapted);
    insta::assert_snapshot!(prompt(&files), @"  prompt “Label #<param issue> as docs.”");
}

#[test]
fn files_themselves() {
    let with = |path: &str, bytes: &[u8]| {
        let mut files = sound();
        files.insert(path.to_owned(), bytes.to_vec());
        findings(&files, DIR)
    };
    let text = [
        with(".agent/fixer/agent.json", b""),
        with(".agent/fixer/agent.json", b"[]"),
        with(".agent/fixer/agent.json", b"{\"name\": \"x\" // no\n,}"),
        with(".agent/fixer/steps_registry.json", &b"[".repeat(100)),
        with(".agent/fixer/schemas/fix.json", b"{"),
        with(".agent/fixer/prompts/system.md", b"a\nb\xff"),
        with(".agent/fixer/prompts/steps/closure/fix/f_default.md", &vec![b'x'; (16 << 20) + 1]),
    ]
    .join("--\n");
    insta::assert_snapshot!(text, @"
    agent.json:1:1 error[invalid-json]: the file is empty
    --
    agent.json:1:1 error[wrong-type]: the agent must be an object, not a list
    --
    agent.json:1:1 error[missing-key]: `displayName`, `runner` are missing in the agent
    agent.json:1:14 error[invalid-json]: JSON has no comments
    agent.json:2:1 error[invalid-json]: no comma may follow the last entry
    f_default.md:7:43 error[unknown-variable]: undefined variable `base-branch` in the prompt of `initial.fix`
    f_failed_git-dirty.md:1:88 error[unknown-variable]: undefined variable `issue` in the failure prompt; so do the prompts of `initial.fix`, `closure.fix`
    steps_registry.json:2:14 error[id-mismatch]: the registry belongs to `fixer`, the agent is called `x`
    --
    steps_registry.json:1:65 error[too-deep]: the nesting is deeper than 64 levels
    --
    fix.json:1:1 error[invalid-json]: unterminated object
    --
    system.md:2:2 error[unreadable-file]: `.agent/fixer/prompts/system.md` is not UTF-8 from here on
    --
    f_default.md:1:1 error[unreadable-file]: `.agent/fixer/prompts/steps/closure/fix/f_default.md` is larger than 16 MiB
    ");
}

#[test]
fn windows_line_ends_and_byte_order_marks_change_nothing() {
    let files: Project = sound()
        .into_iter()
        .map(|(path, bytes)| {
            let text = String::from_utf8(bytes).unwrap().replace('\n', "\r\n");
            (path, format!("\u{feff}{text}").into_bytes())
        })
        .collect();
    assert_eq!(findings(&files, DIR), "");
}

#[test]
fn a_path_out_of_the_project_is_never_read() {
    assert_eq!(
        broken(&[("\"fallbackDir\": \"prompts/\"", "\"fallbackDir\": \"../../..\"")]),
        "agent.json:13:70 error[escapes-root]: `../../..` leads out of the project\n"
    );
}

#[test]
fn blocks_of_failure_prompts_in_other_prompts() {
    insta::assert_snapshot!(table(&[
        ("a value", &[("Close #{uv-issue}", "Close #{uv-issue}: {{files}} and {{tests}}")]),
        ("a block", &[("Close #{uv-issue}", "Close #{uv-issue}{{#if files}} with files{{/if}}")]),
        ("in a section", &[("Be kind. \n", "Be kind to {{names}}.\n")]),
        ("other notations", &[("Close #{uv-issue}", "Close #{uv-issue} ${{ secrets.KEY }} ${{name}} {{ a + b }}")]),
        ("in a fence", &[("Close #{uv-issue}", "Close #{uv-issue}\n```\n{{name}}\n```\n")]),
    ]), @"
    # a value
    f_default.md:1:20 warning[unknown-placeholder]: `{{files}}` stays as it is: only failure prompts are filled so
    # a block
    f_default.md:1:18 warning[unknown-placeholder]: `{{#if files}}` stays as it is: only failure prompts are filled so
    # in a section
    f_default.md:1:12 warning[unknown-placeholder]: `{{names}}` stays as it is: only failure prompts are filled so
    # other notations
    nothing
    # in a fence
    nothing
    ");
}
