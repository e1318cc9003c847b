//! What is checked in prompt files as such and in their front matters.

use crate::support::{DIR, Project, edit, findings, sound};

#[test]
fn front_matters_of_failure_and_system_prompts() {
    let failure = |matter: &str| {
        let from = "{{#if changedFiles}}Commit";
        edit(&sound(), from, &format!("---\n{matter}---\n{from}"))
    };
    let system = |matter: &str| edit(&sound(), "You fix", &format!("---\n{matter}---\nYou fix"));
    let cases: [(&str, Project); 12] = [
        ("params of the pattern", failure("params:\n  - changedFiles\n")),
        ("other params", failure("params:\n  - changedFiles\n  - branch\n")),
        (
            "params, the pattern has none",
            edit(&failure("params: [changedFiles]\n"), "\"params\": [\"changedFiles\"]", "\"params\": []"),
        ),
        (
            "params that are not read, the pattern has none",
            edit(&failure("params: [changedFiles, x]\n"), "\"params\": [\"changedFiles\"]", "\"params\": []"),
        ),
        (
            "place",
            failure(
                "c2: retry\nc3: fix\nedition: failed\nadaptation: git-dirty\nstepKind: work\nusesStdin: false\n",
            ),
        ),
        ("other place", failure("c2: closure\nadaptation: dirty\nstepKind: verification\nusesStdin: true\n")),
        ("names of its own", failure("stepId: retry.fix\n")),
        ("of a step it is for", failure("stepId: continuation.fix\n")),
        ("of another step", failure("stepId: initial.fix\n")),
        ("variables", failure("uvVariables: [issue, baseBranch]\n")),
        ("system", system("uvVariables: [issue]\nname: System\nstepId: system\n")),
        ("system, needless", system("uvVariables: [baseBranch]\nstepId: initial.fix\nusesStdin: true\n")),
    ];
    let mut text = String::new();
    for (name, files) in cases {
        let found = findings(&files, DIR);
        text += &format!("# {name}\n{}", if found.is_empty() { "nothing\n" } else { &found });
    }
    insta::assert_snapshot!(text, @"
    # params of the pattern
    nothing
    # other params
    f_failed_git-dirty.md:2:1 warning[front-matter-mismatch]: the front matter lists `branch`, which `params` of `git-dirty` do not
    # params, the pattern has none
    nothing
    # params that are not read, the pattern has none
    f_failed_git-dirty.md:2:1 warning[front-matter-mismatch]: the front matter lists `x`, which the prompt does not read
    # place
    nothing
    # other place
    f_failed_git-dirty.md:2:1 warning[front-matter-mismatch]: the front matter says `c2` `closure`, the registry `retry`
    f_failed_git-dirty.md:3:1 warning[front-matter-mismatch]: the front matter says `adaptation` `dirty`, the registry `git-dirty`
    f_failed_git-dirty.md:4:1 warning[front-matter-mismatch]: the front matter says `stepKind` `verification`, the registry `closure`, `work`
    f_failed_git-dirty.md:5:1 warning[front-matter-mismatch]: the front matter says `usesStdin` `true`, but the prompt does not read the task
    # names of its own
    nothing
    # of a step it is for
    nothing
    # of another step
    f_failed_git-dirty.md:2:1 warning[front-matter-mismatch]: the front matter belongs to `initial.fix`, but the prompt to `closure.fix`, `continuation.fix`
    # variables
    f_failed_git-dirty.md:2:1 warning[unused-variable]: the front matter lists `baseBranch`, which the prompt does not read
    # system
    nothing
    # system, needless
    system.md:2:1 warning[unused-variable]: the front matter lists `baseBranch`, which the prompt does not read
    system.md:3:1 warning[front-matter-mismatch]: the front matter belongs to `initial.fix`, but the file is the system prompt
    system.md:4:1 warning[front-matter-mismatch]: the front matter says `usesStdin` `true`, but the prompt does not read the task
    ");
}

/// A file that serves two steps can agree with one of them only.
#[test]
fn a_file_of_two_steps() {
    let shared = |step: &str| {
        let files = edit(
            &sound(),
            "\"c2\": \"continuation\", \"c3\": \"fix\"",
            "\"stepKind\": \"work\", \"c2\": \"closure\", \"c3\": \"fix\"",
        );
        let files = edit(
            &files,
            "\"uvVariables\": [\"approach\", \"previous_summary\"],",
            "\"uvVariables\": [\"issue\"],",
        );
        let files = edit(&files, "\"inputs\": { \"approach\": { \"from\": \"initial.fix.approach\" } },", "");
        let from = "Close #{uv-issue}";
        findings(&edit(&files, from, &format!("---\nstepId: {step}\nstepKind: closure\n---\n{from}")), DIR)
    };
    assert_eq!(shared("closure.fix"), "");
    assert_eq!(shared("continuation.fix"), "");
    insta::assert_snapshot!(shared("initial.fix"), @"f_default.md:2:1 warning[front-matter-mismatch]: the front matter belongs to `initial.fix`, but the prompt to `continuation.fix`");
}

#[test]
fn prompts_without_a_prompt() {
    let with = |name: &str, text: &str| {
        let mut files = sound();
        let path = format!(".agent/fixer/prompts/{name}");
        assert!(files.insert(path, text.as_bytes().to_vec()).is_some());
        findings(&files, DIR)
    };
    let text = [
        with("system.md", ""),
        with("steps/section/context/f_default.md", " \n\n"),
        with("steps/closure/fix/f_default.md", "---\nuvVariables: [issue]\n---\n"),
        with("steps/retry/fix/f_failed_git-dirty.md", "---\n---\n\n"),
    ]
    .join("--\n");
    insta::assert_snapshot!(text, @"
    system.md:1:1 warning[missing-prompt]: `.agent/fixer/prompts/system.md` is empty
    --
    f_default.md:1:1 warning[missing-prompt]: `.agent/fixer/prompts/steps/section/context/f_default.md` is empty
    --
    f_default.md:1:1 warning[missing-prompt]: `.agent/fixer/prompts/steps/closure/fix/f_default.md` has a front matter, but no prompt
    --
    f_failed_git-dirty.md:1:1 warning[missing-prompt]: `.agent/fixer/prompts/steps/retry/fix/f_failed_git-dirty.md` has a front matter, but no prompt
    ");
}
