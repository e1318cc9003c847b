//! What is checked in prompts, validators and files.

use crate::support::{DIR, Project, broken, dump, edit, findings, load, sound};

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
