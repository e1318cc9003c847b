//! A third-party definition, the "iterator" agent: checked and shown unmodified, and run in a clone of this repository
//! with a failing validator and its remedy. Skipped if the definition is not available.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use cuegate_testkit::github::GithubStandin;

use crate::support::{Project, copy};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn corpus() -> Option<PathBuf> {
    let given = std::env::var_os("CUEGATE_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = given.unwrap_or(beside).join("corpora/climpt/closing/iterator");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no `{}`", folder.display());
    None
}

#[test]
fn check_and_show_accept_the_real_definition() {
    let Some(corpus) = corpus() else { return };
    let project = Project::empty();
    copy(&corpus, &project.path().join(".agent/iterator"));
    let checked = project.run(&["check", "iterator", "--json"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let found = checked.json();
    let unsupported: Vec<String> = found["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["code"] == "unsupported-yet")
        .flat_map(|finding| finding["places"].as_array().unwrap())
        .map(|place| format!("{}:{} {}", place["file"].as_str().unwrap(), place["line"], place["message"]))
        .collect();
    assert_eq!(unsupported, [""; 0]);
    assert_eq!(project.run(&["check", "iterator", "--strict"]).code, 2);
    let shown = project.run(&["show", "iterator"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("closure.polling@validators"), "{}", shown.stdout);
}

/// The agent with another verdict and entry, and a type check that exists here.
fn changed_copy(corpus: &Path, to: &Path) {
    let verdict = json!({"type": "count:iteration", "config": {"maxIterations": 20}});
    changed(corpus, to, &verdict, "initial.issue");
}

fn changed(corpus: &Path, to: &Path, verdict: &Value, entry: &str) {
    copy(corpus, to);
    let change = |file: &str, change: &dyn Fn(&mut Value)| {
        let path = to.join(file);
        let mut value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, value.to_string()).unwrap();
    };
    change("agent.json", &|agent| {
        agent["runner"]["verdict"] = verdict.clone();
    });
    change("steps_registry.json", &|registry| {
        registry["entryStepMapping"][verdict["type"].as_str().unwrap()] = json!(entry);
        registry["validators"]["type-check"]["command"] = json!("git rev-parse --verify HEAD");
    });
}

/// The agent forgets to commit, gets a remedy prompt and commits.
fn script() -> String {
    let answer = |step: &str, action: &str, more: Value| {
        let mut output = json!({"stepId": step, "status": "in_progress", "summary": format!("{step} done"),
            "issue": {"issue_number": 7}, "next_action": {"action": action, "reason": "as planned"}});
        for (key, value) in more.as_object().unwrap() {
            output[key] = value.clone();
        }
        output
    };
    let worked = json!({"iteration": {"current": 2, "work_done": "wrote it"}});
    json!({"answers": [
        {"step": "initial.issue", "output": answer("initial.issue", "next",
            json!({"analysis": {"understanding": "a note is missing", "approach": "write it"}}))},
        {"step": "continuation.issue", "kind": "work", "writes": [{"path": "NOTE.md", "content": "A note.\n"}],
            "output": answer("continuation.issue", "handoff", worked.clone())},
        {"step": "closure.issue", "times": 2, "output": answer("closure.issue", "closing", json!({
            "status": "completed", "action": "label-only", "issue": {"number": 7},
            "validation": {"git_clean": true, "type_check_passed": true}}))},
        {"step": "continuation.issue", "kind": "remedy",
            "runs": ["git add NOTE.md", "git -c user.name=A -c user.email=a@localhost commit --quiet -m 'Add a note'"],
            "output": answer("continuation.issue", "handoff", worked)}
    ]})
    .to_string()
}

#[test]
fn completes_in_a_clone_of_this_repository_after_a_remedy() {
    let Some(corpus) = corpus() else { return };
    let outer = Project::empty();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    outer.git(&["clone", "--quiet", "--no-hardlinks", here.to_str().unwrap(), "clone"]);
    changed_copy(&corpus, &outer.path().join("clone/.agent/iterator"));
    outer.write("clone/script.json", &script());
    let clone = outer.path().join("clone");
    let args = ["run", "iterator", "--issue", "7", "--no-github", "--script", "script.json", "--json"];
    let ran = crate::support::Ran::of(outer.command(&args).current_dir(&clone).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    let rows: Vec<String> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let remedy = if row["remedy"] == true { " (remedy)" } else { "" };
            format!(
                "{}{remedy}: {} → {} {}",
                row["step"], row["outcome"], row["target"], row["changed_files"]
            )
        })
        .collect();
    assert_snapshot!(rows.join("\n"), @r#"
    "initial.issue": "next" → "continuation.issue" []
    "continuation.issue": "handoff" → "closure.issue" ["NOTE.md"]
    "closure.issue": "closing" → "continuation.issue" []
    "continuation.issue" (remedy): "handoff" → "closure.issue" []
    "closure.issue": "closing" → "@completed" []
    "#);
    assert_eq!(result["validated"], true);
    // The definition wants a worktree, which is merged by default.
    assert_eq!(fs::read_to_string(clone.join("NOTE.md")).unwrap(), "A note.\n");
    let work = PathBuf::from(result["place"]["work"].as_str().unwrap());
    assert_eq!(fs::read_to_string(work.join("NOTE.md")).unwrap(), "A note.\n");
    assert!(work.starts_with(outer.path().join("worktree")), "{}", work.display());
    // The failure prompt names the file.
    let log = crate::support::Ran::of(
        outer.command(&["log", "last", "--json"]).current_dir(&clone).output().unwrap(),
    );
    let remedy = log
        .stdout
        .lines()
        .find(|line| line.contains(r#""event":"answered""#) && line.contains(r#""kind":"remedy""#));
    assert!(remedy.unwrap().contains("`NOTE.md`"), "{}", log.stdout);
}

/// Runs the agent in a clone of this repository, from an entry and with a verdict; its rows, and its result.
fn run_in_a_clone(verdict: &Value, entry: &str, answers: Value, more: &[&str]) -> Option<(String, Value)> {
    let corpus = corpus()?;
    let outer = Project::empty();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    outer.git(&["clone", "--quiet", "--no-hardlinks", here.to_str().unwrap(), "clone"]);
    let clone = outer.path().join("clone");
    changed(&corpus, &clone.join(".agent/iterator"), verdict, entry);
    outer.write("clone/script.json", &json!({ "answers": answers }).to_string());
    outer.write("clone/cuegate.toml", "[verdict]\npoll_interval = \"1ms\"\n");
    let base = ["run", "iterator", "--issue", "7", "--no-github", "--script", "script.json", "--json"];
    let args = [&base, more].concat();
    let ran = crate::support::Ran::of(outer.command(&args).current_dir(&clone).output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let result = ran.json();
    Some((crate::support::rows(&result), result))
}

/// An answer with what all steps of the agent have to say.
fn output(step: &str, action: &str, more: Value) -> Value {
    let mut output = json!({"stepId": step, "status": "in_progress", "summary": format!("{step} done"),
        "next_action": {"action": action, "reason": "as planned"}});
    for (key, value) in more.as_object().unwrap() {
        output[key] = value.clone();
    }
    output
}

#[test]
fn its_polling_flow_runs_until_a_file_exists() {
    let issue = json!({"issue_number": 7});
    let worked = json!({"issue": issue, "iteration": {"current": 2, "work_done": "wrote it"}});
    let commit = "git -c user.name=A -c user.email=a@localhost commit --quiet -m 'Add a note'";
    let answers = json!([
        {"step": "initial.polling", "output": output("initial.polling", "next",
            json!({"issue": issue, "analysis": {"understanding": "a note is missing", "approach": "write it"}}))},
        {"step": "continuation.polling", "kind": "work", "writes": [{"path": "NOTE.md", "content": "A note.\n"}],
            "output": output("continuation.polling", "handoff", worked.clone())},
        {"step": "closure.polling", "output": output("closure.polling", "closing", json!({"issue": issue}))},
        {"step": "continuation.polling", "kind": "remedy", "writes": [{"path": "STATE", "content": "closed\n"}],
            "runs": ["git add NOTE.md STATE", commit], "output": output("continuation.polling", "handoff", worked)},
        {"step": "closure.polling", "output": output("closure.polling", "closing", json!({"issue": issue}))}
    ]);
    let verdict = json!({"type": "poll:state", "config": {
        "resourceType": "file", "targetState": {"equals": "closed"}, "maxIterations": 50}});
    let more = ["--set", "file=STATE"];
    let Some((rows, result)) = run_in_a_clone(&verdict, "initial.polling", answers, &more) else { return };
    assert_snapshot!(rows, @r"
    initial.polling: next → continuation.polling
    continuation.polling: handoff → closure.polling
    closure.polling: closing → continuation.polling
    continuation.polling (remedy): handoff → closure.polling
    closure.polling: closing → @completed
    ");
    assert_eq!(result["reason"], "`closure.polling` completed the workflow");
    assert_eq!(result["validated"], true, "the failed validators ran again");
}

#[test]
fn its_iteration_flow_runs_the_given_number_of_iterations() {
    let did = json!({"iteration": {"target_iterations": 3}, "work": {"work_done": "a third of it"}});
    let answers = json!([
        {"step": "initial.iteration", "output": output("initial.iteration", "next", did.clone())},
        {"step": "continuation.iteration", "times": 2, "output": output("continuation.iteration", "next", did)}
    ]);
    let verdict = json!({"type": "count:iteration", "config": {"maxIterations": 3}});
    let more = ["--set", "iterations=3"];
    let Some((rows, result)) = run_in_a_clone(&verdict, "initial.iteration", answers, &more) else { return };
    assert_snapshot!(rows, @r"
    initial.iteration: next → continuation.iteration
    continuation.iteration: next → continuation.iteration
    continuation.iteration: next → @completed
    ");
    assert_eq!(result["reason"], "3 iterations done");
}

#[test]
fn its_project_flow_completes() {
    let says = |step: &str, action: &str| json!({"step": step, "output": output(step, action, json!({}))});
    let answers = json!([
        says("initial.project.preparation", "next"),
        says("continuation.project.preparation", "handoff"),
        says("initial.project.review", "repeat"),
        says("initial.project.again", "handoff"),
        says("initial.project.review", "handoff"),
        says("initial.project.closure", "closing")
    ]);
    let entry = "initial.project.preparation";
    let verdict = json!({"type": "detect:graph", "config": {"maxIterations": 20, "entryStep": entry}});
    let more = [
        "--set",
        "project_number=1",
        "--set",
        "project_title=P",
        "--set",
        "label_info=L",
        "--set",
        "total_issues=2",
        "--set",
        "issues_completed=2",
        "--set",
        "label_filter=F",
        "--set",
        "current_index=1",
    ];
    let Some((rows, result)) = run_in_a_clone(&verdict, "initial.issue", answers, &more) else { return };
    assert_snapshot!(rows, @r"
    initial.project.preparation: next → continuation.project.preparation
    continuation.project.preparation: handoff → initial.project.review
    initial.project.review: repeat → initial.project.again
    initial.project.again: handoff → initial.project.review
    initial.project.review: handoff → initial.project.closure
    initial.project.closure: closing → @completed
    ");
    assert_eq!(result["state"], "completed");
}

/// The agent as it is, on an issue of a stand-in for GitHub. It forgets to commit; the failing validator makes it.
#[test]
fn the_unchanged_definition_works_on_an_issue() {
    let Some(corpus) = corpus() else { return };
    let github = GithubStandin::start("owner/name");
    github.issue(7, "A note is missing", "Write it.", &["ready"]);
    let project = Project::empty().outside();
    copy(&corpus, &project.path().join(".agent/iterator"));
    project.write(".gitignore", "/script.json\n/cuegate.toml\n/bin\n/tmp\n");
    // The type check of the definition.
    project.write("bin/deno", "#!/bin/sh\necho \"$@\" >> \"$0.log\"\n");
    fs::set_permissions(project.path().join("bin/deno"), PermissionsExt::from_mode(0o755)).unwrap();
    project.init();
    let toml = format!("[github]\napi = \"{}\"\nrepository = \"owner/name\"\n", github.url());
    project.write("cuegate.toml", &format!("{toml}[verdict]\npoll_interval = \"1ms\"\n"));
    let issue = json!({"issue_number": 7});
    let worked = json!({"issue": issue, "iteration": {"current": 2, "work_done": "wrote it"}});
    let commit = "git -c user.name=A -c user.email=a@localhost commit --quiet -m 'Add a note'";
    let answers = json!([
        {"step": "initial.polling", "output": output("initial.polling", "next",
            json!({"issue": issue, "analysis": {"understanding": "a note is missing", "approach": "write it"}}))},
        {"step": "continuation.polling", "kind": "work", "writes": [{"path": "NOTE.md", "content": "A note.\n"}],
            "output": output("continuation.polling", "handoff", worked.clone())},
        {"step": "closure.polling", "times": 2, "output": output("closure.polling", "closing", json!({"issue": issue}))},
        {"step": "continuation.polling", "kind": "remedy", "runs": ["git add NOTE.md", commit],
            "output": output("continuation.polling", "handoff", worked)}
    ]);
    project.write("script.json", &json!({ "answers": answers }).to_string());
    let path = std::env::join_paths(
        [project.path().join("bin")]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut command =
        project.command(&["run", "iterator", "--issue", "7", "--script", "script.json", "--json"]);
    let ran = crate::support::Ran::of(command.env("PATH", path.unwrap()).output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let result = ran.json();
    assert_snapshot!(crate::support::rows(&result), @r"
    initial.polling: next → continuation.polling
    continuation.polling: handoff → closure.polling
    closure.polling: closing → continuation.polling
    continuation.polling (remedy): handoff → closure.polling
    closure.polling: closing → @completed
    ");
    // `label-only`: the issue stays open.
    assert_eq!(
        (github.labels(7), github.state_of(7).as_str()),
        (vec!["ready".to_owned(), "done".to_owned()], "open")
    );
    assert!(
        github.seen().iter().filter(|seen| seen.path == "/repos/owner/name/issues/7").count() > 2,
        "it is polled"
    );
    assert_eq!(project.read("NOTE.md"), "A note.\n", "the worktree is merged");
    let kinds: Vec<&str> =
        result["effects"].as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["github.label", "git.commit", "git.merge", "github.label"]);
    // Closed by somebody else, it is over after the first visit.
    github.set_state(7, "closed");
    let ran = project.run(&["run", "iterator", "--issue", "7", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["reason"], "issue #7 is `closed`");
}
