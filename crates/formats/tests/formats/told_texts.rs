//! Texts that agents are told and that say something else than their author meant.

use crate::support::{self, Project, broken, findings_of, says};
use crate::takt::takt_support;

/// The failure prompt of the sound agent, as it begins.
const PROMPT: &str = "Commit for #{uv-issue}.";

/// What is found in it with something added.
fn failure(added: &str) -> String {
    broken(&[(PROMPT, &format!("{PROMPT}\n{added}\n"))])
}

#[test]
fn values_of_validators_in_the_wrong_braces() {
    for (added, written) in [
        ("See {changedFiles}.", "`{changedFiles}` is not replaced"),
        ("See {{changedFiles}.", "`{{changedFiles}` is not replaced"),
        ("See {changedFiles}}.", "`{changedFiles}}` is not replaced"),
        ("See \"{changedFiles}\".", "`{changedFiles}` is not replaced"),
        ("use ```x``` and\n{changedFiles}", "`{changedFiles}` is not replaced"),
        ("```x``` is code\n{changedFiles}", "`{changedFiles}` is not replaced"),
        ("    Indented like the line above {changedFiles}", "`{changedFiles}` is not replaced"),
        ("{{#each changedFiles}}{{@index}} {{this}}{{/each}}", "`{{@index}}` is not replaced"),
        ("{{^changedFiles}}", "`{{^changedFiles}}` is not replaced"),
    ] {
        says(&failure(added), &["f_failed_git-dirty.md:", "warning[unknown-placeholder]", written]);
    }
    for added in [
        "```\n{changedFiles} {{@index}}\n```",
        "${changedFiles}",
        "~~~\n{changedFiles}\n~~~",
        "Write `{changedFiles}` as it is.",
        "So:\n\n    {changedFiles}",
        "Call format!(\"{changedFiles}\") there.",
        "{other} {{ a b }} {\"changedFiles\": 1}",
        "{{changedFiles}}",
    ] {
        assert_eq!(failure(added), "", "{added}");
    }
}

#[test]
fn a_misspelt_value_of_a_validator() {
    let found = broken(&[(
        "{{#if changedFiles}}Commit:{{#each changedFiles}} {{this}}{{/each}}{{else}}",
        "{{#if changedFile}}",
    )]);
    says(&found, &["f_failed_git-dirty.md:1:1 warning[undeclared-variable]", "yields no `changedFile`"]);
}

#[test]
fn items_of_what_has_none() {
    let with = |extractor: &str, added: &str| {
        broken(&[
            ("\"parseChangedFiles\" }", &format!("\"parseChangedFiles\", \"found\": \"{extractor}\" }}")),
            (PROMPT, &format!("{PROMPT}\n{added}")),
        ])
    };
    let place = "f_failed_git-dirty.md:2:";
    says(
        &with("stdout", "{{#each found}}{{this}}{{/each}}"),
        &[place, "`found` of validator `git-clean` is text, and has no items: nothing is shown"],
    );
    let text = with("parseChangedFiles", "{{#each found}}{{this.file}}{{/each}}");
    says(&text, &["f_failed_git-dirty.md:2:16", "are texts, and have no `file`"]);
    says(
        &with("parseTypeErrors", "{{#each found}}{{this.rule}}{{/each}}"),
        &[place, "have no `rule`; they have"],
    );
    assert_eq!(with("parseLintErrors", "{{#each found}}{{this.rule}}{{/each}}"), "");
    assert_eq!(with("parseChangedFiles", "{{#each found}}{{this}}{{/each}}"), "");
}

/// The prompt of a step reads quotations as failure prompts do.
#[test]
fn placeholders_in_quotations() {
    let with = |to: &str| broken(&[("{input_text}", &format!("{{input_text}}\n{to}"))]);
    for sound in [
        "Write `{task}` or `{{issue}}`.",
        "~~~\n{task} {input_text } {{issue}}\n~~~",
        "So:\n\n    {task} {{issue}}",
        "print(f\"{task}\")",
    ] {
        assert_eq!(with(sound), "", "{sound}");
    }
    for (meant, code) in [
        ("use ```x``` and\n{task}", "unknown-placeholder"),
        ("```\nx\n```\n{task}", "unknown-placeholder"),
        ("```x``` is code\n{{issue}}", "unknown-placeholder"),
    ] {
        says(&with(meant), &[code]);
    }
}

/// A placeholder in another case, with blanks or another sign is one finding, however often it stands there: what it
/// was meant to be is not unused as well.
#[test]
fn placeholders_written_otherwise() {
    let variable = |written: &str| broken(&[("#{uv-issue} against", &format!("#{written} against"))]);
    for written in ["{ uv-issue }", "{uv-issue }", "{UV-issue}", "{ Uv_issue}", "{uv: issue}"] {
        says(&variable(written), &[&format!("`{written}` is not replaced\n")]);
    }
    let section = |written: &str| broken(&[("{section.context}Plan", &format!("{written} Plan"))]);
    for written in ["{ section.context }", "{Section.context}", "{section:context}", "{section.contxt }"] {
        says(&section(written), &[&format!("`{written}` is not replaced\n")]);
    }
    let text = "{input_text} { input_text }, { input_text } and { input_text }";
    let often = broken(&[("{input_text}", text)]);
    says(&often, &["`{ input_text }` is not replaced, here and at 2 more places"]);
    for text in [
        "{section_title}",
        "{uv:1}",
        "{output_text}",
        "{ section of text }",
        "{ uv index }",
        "{ issue }",
        "{section.}",
        "{ uv-a b }",
    ] {
        assert!(!section(&format!("{{section.context}} {text}")).contains(text), "{text}");
    }
}

#[test]
fn placeholders_that_nothing_closes() {
    let found = broken(&[("{input_text}", "{input_text now")]);
    assert!(found.contains("`{input_text` is not replaced: its `}` is missing"), "{found}");
    let found = broken(&[("#{uv-issue} against", "#{uv-issue against")]);
    says(&found, &["`{uv-issue` is not replaced: its `}` is missing"]);
    let piece = |to: &str| -> String {
        let mut files: Project = takt_support::sound();
        for bytes in files.values_mut() {
            *bytes = String::from_utf8(bytes.clone()).unwrap().replacen("Plan {task}.", to, 1).into_bytes();
        }
        findings_of(takt_support::load(&files, |_| {}))
    };
    for (to, written) in [
        ("Plan {task}. See {report:plan.md", "`{report:plan.md` is not replaced: no brace closes it"),
        ("Plan {task}, {task.", "`{task` is not replaced: no brace closes it"),
    ] {
        says(&piece(to), &["warning[unknown-placeholder]", written]);
    }
    assert_eq!(piece("Plan {task}. {tasks are {things"), "");
    for quoted in
        ["Write `{task` so.", "\n\n      ```\n      {task and\n      ```", "\n\n          {task and"]
    {
        assert_eq!(piece(&format!("Plan {{task}}. {quoted}")), "", "{quoted}");
    }
    assert_eq!(support::findings(&support::sound(), support::DIR), "");
}

/// Each of them is said, and where it stands: not where the same is written soundly.
#[test]
fn a_placeholder_that_nothing_closes_is_shown_where_it_stands() {
    let place = |found: &str| found.split(' ').next().map(str::to_owned).unwrap_or_default();
    let at = |to: &str| place(&takt_support::broken(&[("Plan {task}.", to)]));
    let line = |at: &str, by: usize| {
        let parts: Vec<&str> = at.rsplitn(3, ':').collect();
        format!("{}:{}", parts[2], parts[1].parse::<usize>().unwrap() + by)
    };
    let first = at("Plan {task now.");
    assert!(first.ends_with(":12"), "{first}");
    assert_eq!(at("Plan {task} now.\n      Then say {task and stop."), format!("{}:16", line(&first, 1)));
    let many = format!("Plan {{task}} now.{}", "\n      Then say {task and stop.".repeat(5_000));
    let found = takt_support::broken(&[("Plan {task}.", &many)]);
    assert_eq!(found.lines().count(), 5_000);
    let last = found.lines().last().map(place);
    assert_eq!(last, Some(format!("{}:16", line(&first, 5_000))));
}
