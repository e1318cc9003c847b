//! What prompts read and nobody gives is shown where they read it; names and files that stand in another one's place.

use cuegate_flow::{checks::check_draft, diagnostics::sort_diagnostics};

use crate::support::{self, broken, edit, load};
use crate::typos::{first, place};

#[test]
fn variables_are_shown_where_prompts_read_them() {
    let mut files = support::sound();
    let path = files.keys().find(|path| path.contains("continuation/fix/f_default.md")).unwrap().clone();
    let prompt = b"First line.\n\nMind {uv-zork} and {uv-closure_fix_zork}.\n".to_vec();
    files.insert(path, prompt);
    let loaded = load(&files, support::DIR);
    let mut all = loaded.diagnostics;
    all.extend(check_draft(loaded.draft).diagnostics);
    sort_diagnostics(&mut all, &loaded.sources);
    let found: Vec<String> = all
        .iter()
        .filter(|found| found.code == "unknown-variable")
        .map(|found| {
            let at = loaded.sources.locate(found.span);
            let text = &loaded.sources.get(found.span.file).unwrap().text;
            format!("{}:{} {}", at.line, at.column, &text[found.span.start as usize..found.span.end as usize])
        })
        .collect();
    assert_eq!(found, ["3:6 {uv-zork}", "3:20 {uv-closure_fix_zork}"]);
}

#[test]
fn what_a_failure_prompt_reads_is_shown_there() {
    let files = first(
        support::sound(),
        "Commit for #{uv-issue}.{{/if}}",
        "Commit.{{/if}}\n{uv-issue}: {uv-continuation_fix_status}",
    );
    let found = support::findings(&files, support::DIR);
    assert!(
        found.starts_with("f_failed_git-dirty.md:2:13 warning[maybe-unassigned]: the failure prompt of"),
        "{found}"
    );
    assert_eq!(found.lines().count(), 1, "{found}");
}

#[test]
fn what_a_step_leaves_may_be_meant() {
    let files = first(support::sound(), "{uv-initial_fix_approach}", "{uv-initial_fix_aproach}");
    let loaded = load(&files, support::DIR);
    let found = check_draft(loaded.draft).diagnostics;
    let hints: Vec<_> = found.iter().filter_map(|found| found.hint.as_deref()).collect();
    assert_eq!(hints, ["did you mean `initial_fix_approach`?"]);
}

#[test]
fn what_looks_like_a_variable_and_is_none() {
    let mut files = support::sound();
    let path = files.keys().find(|path| path.contains("continuation/fix/f_default.md")).unwrap().clone();
    let prompt = "{uv_zork} {UV-zork} {uv-} {uv-a b} {uv-open\n`${uv-x y}`\n```\n{uv-}\n```\n";
    files.insert(path, prompt.as_bytes().to_vec());
    let found = support::findings(&files, support::DIR);
    let places: Vec<&str> =
        found.lines().filter(|line| line.contains("unknown-placeholder")).map(place).collect();
    assert_eq!(places, ["1:1", "1:11", "1:21", "1:27", "1:36"], "{found}");
}

#[test]
fn a_file_in_the_place_of_a_folder() {
    let with = |settings: &str| {
        let mut files = edit(&support::sound(), "\"verdict\": {", &format!("{settings}, \"verdict\": {{"));
        files.insert("notes".to_owned(), b"text".to_vec());
        support::findings(&files, support::DIR)
    };
    let logs = |directory: &str| with(&format!(r#""logging": {{ "directory": "{directory}" }}"#));
    let trees = |enabled: bool, root: &str| {
        let worktree = format!(r#""worktree": {{ "enabled": {enabled}, "root": "{root}" }}"#);
        with(&format!(r#""execution": {{ {worktree}, "finalize": {{ "autoMerge": false }} }}"#))
    };
    for folder in ["notes", "notes/logs"] {
        let (logs, trees) = (logs(folder), trees(true, folder));
        assert!(logs.contains("error[invalid-value]: log files cannot be kept in"), "{logs}");
        assert!(trees.contains("error[invalid-value]: worktrees cannot be made in"), "{trees}");
        assert_eq!(place(&trees), "16:59", "at the folder: {trees}");
    }
    for found in [logs("logs"), trees(true, "trees"), trees(true, "../notes"), trees(false, "notes")] {
        assert!(!found.contains("is a file"), "{found}");
    }
}

#[test]
fn an_input_of_a_name_that_every_run_has() {
    let found =
        broken(&[("\"inputs\": {", "\"inputs\": { \"iteration\": { \"from\": \"initial.fix.approach\" },")]);
    assert!(found.contains("hides what every run calls so"), "{found}");
}
