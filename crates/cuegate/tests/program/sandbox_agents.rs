//! The real agents inside a sandbox, with stand-ins of their APIs.

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::{Value, json};

use crate::{
    agent::registry::small,
    agents::{ROWS, Set, fixer},
    sandbox::stands,
    support::{Project, Ran, rows},
};

/// The example's project, with a definition that requires a sandbox.
fn sandboxed(sandbox: &Value) -> Project {
    let project = Project::example();
    let mut agent: Value = serde_json::from_str(&project.read(".agent/fixer/agent.json")).unwrap();
    agent["runner"]["boundaries"]["sandbox"] = sandbox.clone();
    project.write(".agent/fixer/agent.json", &agent.to_string());
    project.git(&["commit", "--quiet", "--all", "--message", "sandboxed"]);
    project
}

fn in_a_sandbox(provider: &'static str) -> Set {
    let set = Set::of(provider, sandboxed(&json!({"network": {"mode": "none"}})), fixer());
    let ran = set.run(&["run", "fixer", "The test fails. Make it pass.", "--json", "--provider", provider]);
    let asked = set.standin.requests().len();
    assert_eq!(ran.code, 0, "{asked} requests, unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    let result = ran.json();
    assert_eq!(rows(&result), ROWS, "{}", ran.stderr);
    assert_eq!(set.standin.unmatched(), [""; 0]);
    let log = "Multiply by 9/5\nFix the conversion\nsandboxed\nbegin\n";
    assert_eq!(set.project.git(&["log", "--format=%s"]), log);
    assert!(ran.stderr.contains("reaches nothing"), "{}", ran.stderr);
    set.project.all_gone();
    set
}

#[test]
fn claude_works_in_a_sandbox() {
    if !stands() || !offline::inside() {
        return;
    }
    let set = in_a_sandbox("claude");
    let told: Vec<Value> =
        set.project.events("sandbox_denied").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(told, [""; 0], "it asks for nothing but its service");
}

#[test]
fn codex_works_in_a_sandbox() {
    if !stands() || !offline::inside() {
        return;
    }
    let set = in_a_sandbox("codex");
    let told: Vec<Value> =
        set.project.events("sandbox_denied").iter().map(|event| event["to"].clone()).collect();
    assert_eq!(told, [""; 0], "it asks for nothing but its service");
}

/// What an agent sees of the session that started the program, with a sandbox and without one.
fn no_variable_of_the_calling_session(provider: &'static str) {
    const CALLER: [&str; 6] = [
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
        "CODEX_THREAD_ID",
        "CODEX_SANDBOX",
    ];
    for sandbox in [&[][..], &["--no-sandbox"]] {
        let answer = |action: &str| json!({"next_action": {"action": action}});
        let scenario = Scenario::new()
            .usage(10, 0, 10)
            .reply(Reply::to("Do work").shell("env > seen.txt").json(answer("handoff")))
            .reply(Reply::to("Do close").json(answer("closing")).for_ever());
        let registry = small()
            .runner(json!({"boundaries": {"permissionMode": "acceptEdits", "allowedTools": ["Bash"]}}));
        let set = Set::of(provider, registry.project(json!([])), scenario);
        let args = [&["run", "agent", "--provider", provider], sandbox].concat();
        let mut command = set.command(&args);
        command.env("CLAUDECODE", "1").envs(CALLER.map(|name| (name, "of-the-caller")));
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let seen = set.project.read("seen.txt");
        assert!(seen.contains("PATH=") && !seen.contains("of-the-caller"), "{sandbox:?}: {seen}");
        set.project.all_gone();
    }
}

#[test]
fn claude_sees_nothing_of_the_calling_session() {
    if offline::inside() {
        no_variable_of_the_calling_session("claude");
    }
}

#[test]
fn codex_sees_nothing_of_the_calling_session() {
    if offline::inside() {
        no_variable_of_the_calling_session("codex");
    }
}

/// What agents do with git: they read the history, commit, amend, branch, rebase and merge, and hooks run.
const GIT_WORK: &str = "set -ex; exec > git.log 2>&1; git log --oneline main | grep -q begin; git blame -s a.txt | grep -q one; \
    git diff --quiet main; git status --short | grep -v git.log || true; \
    echo 1 >> a.txt; git commit -qam first; git commit -q --amend -m first-amended; \
    git switch -qc feature; echo f > f.txt; git add f.txt; git commit -qm feature; \
    git switch -q -; echo 2 >> a.txt; git commit -qam second; \
    git switch -q feature; git rebase -q -; git switch -q -; git merge -q --ff-only feature; \
    git tag local; git stash list; git config user.nickname x; touch git-done.txt";

/// The agent works with git in place and in a worktree; its commits land on the branch and nothing else does.
fn works_with_git(provider: &'static str) {
    for (place, husky) in [(&[][..], false), (&["--worktree", "--merge"], true)] {
        let answer = |action: &str| json!({"next_action": {"action": action}});
        let scenario = Scenario::new()
            .usage(10, 0, 10)
            .reply(Reply::to("Do work").shell(GIT_WORK).json(answer("handoff")))
            .reply(Reply::to("Do close").json(answer("closing")).for_ever());
        let registry = small()
            .runner(json!({"boundaries": {"permissionMode": "acceptEdits", "allowedTools": ["Bash"]}}));
        let project = registry.project(json!([]));
        project.write(".gitignore", "/.cuegate\n/git.log\n/git-done.txt\n/hook-ran.txt\n");
        project.write("a.txt", "one\n");
        let hook = if husky { ".husky/pre-commit" } else { ".git/hooks/pre-commit" };
        project.write(hook, "#!/bin/sh\necho hook >> hook-ran.txt\n");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(project.path().join(hook), executable).unwrap();
        project.git(&["add", "--all"]);
        project.git(&["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "base"]);
        if husky {
            project.git(&["config", "core.hooksPath", ".husky"]);
        }
        let settings = project.read(".git/config");
        let set = Set::of(provider, project, scenario);
        let args = [&["run", "agent", "--provider", provider], place].concat();
        let ran = Ran::of(set.command(&args).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let project = &set.project;
        let work = project.events("run_started")[0]["place"]["work"].as_str().unwrap().to_owned();
        let told = std::fs::read_to_string(format!("{work}/git.log")).unwrap();
        assert!(std::path::Path::new(&work).join("git-done.txt").exists(), "{told}");
        let hooks = std::fs::read_to_string(format!("{work}/hook-ran.txt")).unwrap();
        assert!(hooks.lines().count() >= 4, "{hooks}");
        let log = project.git(&["log", "--format=%s", "main"]);
        assert!(log.starts_with("feature\nsecond\nfirst-amended\nbase\n"), "{log}");
        assert_eq!(project.git(&["status", "--porcelain", "--untracked-files=no"]), "");
        let branches = project.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags"]);
        assert!(!branches.contains("feature") && !branches.contains("local"), "{branches}");
        assert_eq!(project.read(".git/config"), settings);
        let left = project.status()["left_in_git"].to_string();
        for what in ["the branch `feature`", "the tag `local`", "settings of git"] {
            assert!(left.contains(what), "{left}");
        }
        project.git(&["fsck", "--strict"]);
        project.all_gone();
    }
}

#[test]
fn claude_works_with_git() {
    if stands() && offline::inside() {
        works_with_git("claude");
    }
}

#[test]
fn codex_works_with_git() {
    if stands() && offline::inside() {
        works_with_git("codex");
    }
}
