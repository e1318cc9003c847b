//! Effects on GitHub, against a stand-in: labels, comments, closing, pull requests, polls, and what goes wrong.

use std::{process::Command, time::Duration};

use cuegate_testkit::github::{Fault, GithubStandin, Seen};
use serde_json::{Value, json};

use crate::{
    agent::registry::{Registry, begin, says, says_with, small},
    on_postgres::{Database, clone_of},
    support::{Project, until},
};

/// `integrations.github` with all labels and this closure action.
fn github(closure: &str) -> Value {
    json!({"integrations": {"github": {
        "enabled": true,
        "labels": {
            "requirements": "docs", "inProgress": "in-progress", "blocked": "need clearance",
            "completion": {"add": ["done"], "remove": ["in-progress"]}
        },
        "defaultClosureAction": closure
    }}})
}

fn with_issue(registry: Registry) -> Registry {
    let issue = json!({"type": "number", "description": "Issue", "required": true, "cli": "--issue"});
    registry
        .agent(json!({"parameters": {"issue": issue}}))
        .prompt("work", "Work on {uv-issue}: {uv-issue_content}\n")
}

/// A project whose agent works on issue 7 of the stand-in.
fn project(registry: Registry, script: Value) -> (Project, GithubStandin) {
    let standin = GithubStandin::start("owner/name");
    standin.issue(7, "It is broken", "Mend it.", &["ready"]);
    let project = registry.project(script);
    project.write("cuegate.toml", &toml(&standin));
    (project, standin)
}

fn toml(standin: &GithubStandin) -> String {
    format!("[github]\napi = \"{}\"\nrepository = \"owner/name\"\n", standin.url())
}

fn done() -> Value {
    json!([says("work", "handoff"), says("close", "closing")])
}

fn effects(project: &Project) -> Vec<String> {
    let status = project.status();
    let rows = status["effects"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["state"].as_str().unwrap())).collect()
}

#[test]
fn labels_and_the_issue_follow_the_run() {
    for (closure, labels, state) in [
        ("label-only", vec!["ready", "done"], "open"),
        ("label-and-close", vec!["ready", "done"], "closed"),
        ("close", vec!["ready", "in-progress"], "closed"),
    ] {
        let (project, standin) = project(with_issue(small()).runner(github(closure)), done());
        let ran = project.run(&begin(&["--issue", "7"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(
            (standin.labels(7), standin.state_of(7).as_str()),
            (labels.iter().map(ToString::to_string).collect(), state)
        );
        let changes: Vec<String> =
            standin.changes().iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect();
        assert_eq!(changes[0], "POST /repos/owner/name/issues/7/labels");
        assert_eq!(standin.changes()[0].token, "test-token");
        assert!(ran.stderr.contains("on issue #7 of owner/name"), "{}", ran.stderr);
        let asked = project.events("ask_requested");
        assert_eq!(asked.len(), 2);
    }
}

#[test]
fn a_failed_run_is_blocked_and_a_retry_takes_that_back() {
    let registry =
        with_issue(small()).runner(github("label-only")).validator("test -e ok", json!({"maxAttempts": 0}));
    let script = json!([says("work", "handoff"), says("close", "closing")]);
    let (project, standin) = project(registry, script);
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready", "in-progress", "need clearance"]);
    project.write("ok", "");
    let ran = project.run(&["retry"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready", "done"]);
    assert_eq!(
        effects(&project),
        ["github.label done", "github.label done", "github.label done", "github.label done"]
    );
}

#[test]
fn an_answer_may_weaken_the_closure_action() {
    let closure = |configured: &str, wanted: &str| {
        let registry = with_issue(small())
            .runner(github(configured))
            .field("close", json!({"closure_action": {"type": "string"}}));
        let script = json!([
            says("work", "handoff"),
            says_with("close", "closing", json!({"output": {"closure_action": wanted}}))
        ]);
        let (project, standin) = project(registry, script);
        let ran = project.run(&begin(&["--issue", "7"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (standin.labels(7).contains(&"done".to_owned()), standin.state_of(7) == "closed")
    };
    assert_eq!(closure("label-and-close", "label-only"), (true, false));
    assert_eq!(closure("label-and-close", "close"), (false, true));
    assert_eq!(closure("label-only", "close"), (false, false));
    assert_eq!(closure("label-only", "label-and-close"), (true, false), "it does not strengthen");
    assert_eq!(closure("close", "anything"), (false, true));
}

fn commenting() -> (Registry, Value) {
    let actions = json!({"actions": {
        "enabled": true, "types": ["issue-action", "tag"],
        "handlers": {"issue-action": "github:comment", "tag": "github:label"}
    }});
    let block = |text: &str| {
        format!("```json\n{{\"action\": \"issue-action\", \"issue\": 7, \"body\": \"{text}\"}}\n```\n")
    };
    let tag = "```json\n{\"action\": \"tag\", \"add\": [\"seen\"], \"remove\": [\"ready\"]}\n```\n";
    let script = json!([
        says_with("work", "repeat", json!({"text": block("first")})),
        says_with("work", "handoff", json!({"text": format!("{}{tag}", block("second"))})),
        says("close", "closing")
    ]);
    (with_issue(small()).runner(actions), script)
}

#[test]
fn a_run_has_one_comment_and_edits_it() {
    let (registry, script) = commenting();
    let (project, standin) = project(registry, script);
    standin.comment(7, "someone", "Please.");
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let comments = standin.comments(7);
    assert_eq!(comments.len(), 2, "{comments:?}");
    assert!(comments[1].ends_with("first\n\n---\n\nsecond"), "{comments:?}");
    assert_eq!(standin.labels(7), ["seen"]);
    assert_eq!(effects(&project), ["github.comment done", "github.comment done", "github.label done"]);
    let url = project.status()["effects"][0]["url"].as_str().unwrap().to_owned();
    assert!(url.contains("/issues/7#issuecomment-"), "{url}");
}

#[test]
fn a_comment_is_created_once_whatever_goes_wrong() {
    for fault in [Fault::BeforeEffect, Fault::AfterEffect, Fault::Torn, Fault::Silent, Fault::Slow(1500)] {
        let (registry, script) = commenting();
        let (project, standin) = project(registry, script);
        standin.fault(fault, "POST", "/comments", 1);
        standin.lag(Duration::from_millis(500));
        let ran = project.run(&begin(&["--issue", "7"]));
        assert_eq!(ran.code, 0, "{fault:?} {}", ran.stderr);
        let created = standin
            .changes()
            .iter()
            .filter(|seen| seen.method == "POST" && seen.path.ends_with("/comments"))
            .count();
        match fault {
            // Nobody can know that it was not created.
            Fault::BeforeEffect => {
                assert_eq!((created, standin.comments(7).len()), (0, 0));
                assert!(effects(&project)[0].ends_with("unknown"), "{:?}", effects(&project));
            }
            _ => assert_eq!((created, standin.comments(7).len()), (1, 1), "{fault:?}"),
        }
    }
}

#[test]
fn limits_are_waited_for_and_refusals_are_reported() {
    let (registry, script) = commenting();
    let (project, standin) = project(registry, script);
    standin.fault(Fault::BeforeEffect, "POST", "/labels", 1);
    standin.fault(Fault::NoRight, "POST", "/comments", 1);
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("the token lacks a right"), "{}", ran.stderr);
    assert_eq!(effects(&project), ["github.comment failed", "github.comment done", "github.label done"]);
    assert_eq!(standin.comments(7).len(), 1);
}

#[test]
fn nothing_is_asked_when_the_issue_cannot_be_read() {
    let (registry, script) = commenting();
    let (project, standin) = project(registry, script);
    let fails = |args: &[&str], env: &[(&str, &str)], why: &str| {
        let mut command = project.command(&begin(args));
        for (name, value) in env {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            };
        }
        let ran = crate::support::Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    };
    fails(&["--issue", "8"], &[], "issue #8 of owner/name cannot be read: GitHub answered 404");
    fails(&["--issue", "x"], &[], "`issue` is a number, not `x`");
    fails(&["--pr", "7"], &[], "#7 of owner/name is an issue, not a pull request");
    let no_gh = [("GITHUB_TOKEN", ""), ("PATH", "/usr/bin:/bin")];
    fails(&["--issue", "7"], &no_gh, "`GITHUB_TOKEN` and `GH_TOKEN` are not set, and `gh` is not");
    standin.fault(Fault::BadToken, "GET", "/issues/7", 1);
    fails(&["--issue", "7"], &[], "the token is wrong or has expired");
    project.write("cuegate.toml", &format!("[github]\napi = \"{}\"\n", standin.url()));
    fails(&["--issue", "7"], &[], "there is no remote `origin` that names the repository");
    assert_eq!(project.runs(), 0, "nothing was started");
    assert_eq!(standin.changes(), []);
    // Without GitHub the definition can be tried.
    let ran = project.run(&begin(&["--no-github", "--issue", "7", "--set", "issue_content=x"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(effects(&project), ["github.comment failed", "github.comment failed", "github.label failed"]);
}

#[test]
fn a_verdict_polls_an_issue_and_a_project() {
    let polls = |config: Value| {
        let verdict = json!({"verdict": {"type": "poll:state", "config": config}});
        let script = json!([
            says("work", "repeat"),
            says("work", "repeat"),
            says("work", "handoff"),
            says("close", "closing")
        ]);
        let registry = with_issue(small()).runner(verdict);
        let (project, standin) = project(registry, script);
        project.write("cuegate.toml", &format!("{}\n[verdict]\npoll_interval = \"1s\"\n", toml(&standin)));
        standin.project(3, "Plan", false, &[(7, "Done")]);
        let ran = project.run(&begin(&["--issue", "7", "--set", "project=3"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        project.status()["completion_reason"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(polls(json!({"targetState": "open"})), "issue #7 is `open`");
    assert_eq!(polls(json!({"targetState": {"labels": ["ready"]}})), "issue #7 has `labels` = [\"ready\"]");
    assert_eq!(polls(json!({"targetState": "closed"})), "`close` completed the workflow");
    assert_eq!(
        polls(json!({"resourceType": "github-project", "targetState": "Done"})),
        "project #3 is `Done`"
    );
    assert_eq!(
        polls(json!({"resourceType": "github-project", "targetState": {"state": "open", "title": "Plan"}})),
        "project #3 has `state` = \"open\", `title` = \"Plan\""
    );
}

#[test]
fn a_pull_request_is_opened_once_and_carries_the_report() {
    let (project, standin) = project(with_issue(small()).runner(github("label-only")), Value::Null);
    let bare = tempfile::tempdir().unwrap();
    let at = bare.path().to_str().unwrap();
    project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", at]);
    project.git(&["remote", "add", "origin", at]);
    project.git(&["push", "--quiet", "origin", "main"]);
    project.script(
        "script.json",
        &json!([
            says_with("work", "handoff", json!({"writes": [{"path": "b.txt", "content": "b\n"}]})),
            says("close", "closing")
        ]),
    );
    standin.fault(Fault::AfterEffect, "POST", "/pulls", 1);
    let ran = project.run(&begin(&["--issue", "7", "--worktree", "--pull-request"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let pulls = standin.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    let branch = project.status()["place"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(
        (pulls[0]["head"]["ref"].as_str(), pulls[0]["base"]["ref"].as_str()),
        (Some(branch.as_str()), Some("main"))
    );
    assert_eq!(pulls[0]["title"], "It is broken (#7)");
    let body = pulls[0]["body"].as_str().unwrap();
    assert!(body.starts_with("For #7.\n") && !body.contains("running") && body.contains("b.txt"), "{body}");
    assert_eq!(project.git(&["-C", at, "rev-parse", &branch]), project.git(&["rev-parse", &branch]));
    assert_eq!(
        effects(&project),
        [
            "github.label done",
            "git.commit done",
            "git.push done",
            "github.pull_request done",
            "github.label done"
        ]
    );
    assert!(ran.stderr.contains("/owner/name/pull/8"), "{}", ran.stderr);
}

#[test]
fn a_review_is_a_task() {
    let (project, standin) = project(small().runner(github("label-and-close")), done());
    standin.pull(9, "Add it", "Please change.", ("src/a.rs", 3, "Not here."));
    let ran = project.run(&begin(&["--pr", "9"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let task = project.status()["task"].as_str().unwrap_or_default().to_owned();
    assert!(task.contains("Address the review of pull request #9"), "{task}");
    assert_eq!((standin.labels(9), standin.state_of(9).as_str()), (vec!["done".to_owned()], "open"));
    assert!(task.contains("comment by reviewer on src/a.rs:3") && task.contains("Please change."), "{task}");
}

#[test]
fn the_token_is_not_in_the_environment_of_agents() {
    let (project, _standin) = project(
        with_issue(small()).runner(github("label-only")),
        json!([says_with("work", "handoff", json!({"runs": ["env > env.txt"]})), says("close", "closing")]),
    );
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!project.read("env.txt").contains("test-token"));
    let toml = project.read("cuegate.toml");
    project.write("cuegate.toml", &format!("{toml}token_for_agents = true\n"));
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(project.read("env.txt").contains("test-token"));
}

#[test]
fn a_person_settles_what_is_unknown() {
    let unknown = || {
        let (registry, script) = commenting();
        let (project, standin) = project(registry, script);
        standin.fault(Fault::BeforeEffect, "POST", "/comments", 1);
        assert_eq!(project.run(&begin(&["--issue", "7"])).code, 0);
        (project, standin)
    };
    let (project, standin) = unknown();
    let listed = project.run(&["effect"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.starts_with(" 1  creatable  unknown  comment of work: "), "{}", listed.stdout);
    assert!(
        listed.stdout.contains(" 2  creatable  failed   comment of work: whether an earlier"),
        "{}",
        listed.stdout
    );
    assert!(
        listed.stdout.contains(" 3  settable   done     labels of work: added `seen`"),
        "{}",
        listed.stdout
    );
    let row = project.run(&["effect", "last", "1", "--json"]).json();
    assert_eq!(
        (&row["effects"][0]["state"], &row["effects"][0]["class"]),
        (&json!("unknown"), &json!("creatable"))
    );
    let ran = project.run(&["effect", "last", "3", "--send-again"]);
    assert!(ran.code == 2 && ran.stderr.contains("effect 3 is done"), "{}", ran.stderr);
    let ran = project.run(&["effect", "last", "9", "--send-again"]);
    assert!(ran.code == 2 && ran.stderr.contains("has no effect `9`"), "{}", ran.stderr);
    // Sent again, it is there; the second one is then an edit.
    for (effect, text) in [("1", "first"), ("2", "first\n\n---\n\nsecond")] {
        let ran = project.run(&["effect", "last", effect, "--send-again"]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let comments = standin.comments(7);
        assert!(comments.len() == 1 && comments[0].ends_with(text), "{comments:?}");
    }
    assert_eq!(effects(&project), ["github.comment done", "github.comment done", "github.label done"]);

    // It was there after all, written by the same user.
    let (project, standin) = unknown();
    let run = project.status()["run"].as_str().unwrap().to_owned();
    standin.comment(7, "cuegate-bot", &format!("<!-- cuegate run {run} -->\nfirst"));
    let url = format!("{}/owner/name/issues/7#issuecomment-1001", standin.url());
    let ran = project.run(&["effect", "last", "1", "--adopt", &url]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.run(&["effect", "last", "2", "--send-again"]).code, 0);
    let comments = standin.comments(7);
    assert!(comments.len() == 1 && comments[0].ends_with("second"), "{comments:?}");
}

#[test]
fn a_verdict_that_polls_needs_a_number() {
    let registry = small().runner(json!({"verdict": {"type": "poll:state"}}));
    let (project, _standin) = project(registry, done());
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("the verdict polls an issue, and no number is given"), "{}", ran.stderr);
    assert_eq!(project.run(&begin(&["--issue", "7"])).code, 0);
}

#[test]
fn an_issue_flag_of_a_definition_need_not_be_about_github() {
    let issue = json!({"type": "string", "description": "Ticket", "required": true, "cli": "--issue"});
    let registry =
        small().agent(json!({"parameters": {"issue": issue}})).prompt("work", "Work on {uv-issue}.\n");
    let project = registry.project(done());
    let ran = project.run(&begin(&["--issue", "ABC-12"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A look that fails must not make the run forget that the comment may have been sent.
#[test]
fn a_failed_look_leaves_the_doubt() {
    let (registry, script) = commenting();
    let (project, standin) = project(registry, script);
    standin.lag(Duration::from_secs(3));
    let job = {
        standin.fault(Fault::Slow(60_000), "POST", "/comments", 1);
        project.job(&begin(&["--issue", "7"]))
    };
    until("the comment", || standin.comments(7).len() == 1);
    job.signal(rustix::process::Signal::KILL);
    job.end();
    standin.fault(Fault::BeforeEffect, "GET", "/comments", 1);
    let ran = project.run(&["resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(standin.comments(7).len(), 1, "{:?}", standin.comments(7));
}

#[test]
fn labels_are_taken_back_when_a_run_is_cancelled_and_when_its_end_is_retried() {
    // Cancelled while it waits, and while it works.
    let waits = json!([says_with("work", "handoff", json!({"asks_user": "Which?"}))]);
    let (project, standin) = project(with_issue(small()).runner(github("label-only")), waits);
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready", "in-progress", "need clearance"]);
    let ran = project.run(&["cancel"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready"]);
    project.script("script.json", &json!([says_with("work", "handoff", json!({"runs": ["sleep 60"]}))]));
    let job = project.job(&begin(&["--issue", "7"]));
    project.at_work("sleep 60");
    assert_eq!(standin.labels(7), ["ready", "in-progress"]);
    let ran = project.run(&["cancel"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    job.end();
    assert_eq!(standin.labels(7), ["ready"]);

    // The end fails, and is tried again.
    let bare = tempfile::tempdir().unwrap();
    let at = bare.path().to_str().unwrap();
    project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", at]);
    project.git(&["remote", "add", "origin", at]);
    project.git(&["push", "--quiet", "origin", "main"]);
    let writes = json!({"writes": [{"path": "b.txt", "content": "b\n"}]});
    project.script("script.json", &json!([says_with("work", "handoff", writes), says("close", "closing")]));
    standin.fault(Fault::NoRight, "POST", "/pulls", 1);
    let ran = project.run(&begin(&["--issue", "7", "--worktree", "--pull-request"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready", "in-progress", "need clearance"]);
    let ran = project.run(&["retry"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready", "done"]);
}

#[test]
fn a_renamed_repository_is_followed() {
    let (project, standin) = project(with_issue(small()).runner(github("label-only")), done());
    standin.fault(Fault::Moved, "GET", "/issues/7", 1);
    standin.fault(Fault::Moved, "POST", "/issues/7/labels", 1);
    let ran = project.run(&begin(&["--issue", "7"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(standin.labels(7), ["ready", "done"]);
}

#[test]
fn a_handler_that_was_cut_off_is_unknown_and_not_started_again() {
    let actions =
        json!({"actions": {"enabled": true, "types": ["post"], "handlers": {"post": "exec:act.sh"}}});
    let block = "```json\n{\"action\": \"post\", \"x\": 1}\n```\n";
    let script = json!([says_with("work", "handoff", json!({"text": block})), says("close", "closing")]);
    let project = small().runner(actions).project(script);
    project.write(".agent/agent/act.sh", "echo began >> began.txt; echo half of it; sleep 60\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "act"]);
    let job = project.job(&begin(&[]));
    project.at_work("sleep 60");
    job.signal(rustix::process::Signal::KILL);
    job.end();
    project.all_gone();
    let ran = project.run(&["resume"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.read("began.txt"), "began\n");
    let effect = &project.status()["effects"][0];
    assert_eq!((&effect["state"], &effect["kind"]), (&json!("unknown"), &json!("exec")), "{effect}");
    assert!(ran.stderr.contains("it was cut off, and was not started again"), "{}", ran.stderr);
    let finished = &project.events("effect_finished")[0];
    assert!(finished.to_string().contains("half of it"), "{finished}");
}

/// A process that was stopped between its look and its request wakes up when another machine has gone on with its run.
#[test]
fn a_machine_that_was_away_posts_nothing_twice() {
    let Some(database) = Database::find("away") else { return };
    let (registry, script) = commenting();
    let (here, standin) = project(registry, script);
    let settings = format!("{}{}", toml(&standin), database.settings());
    here.write("cuegate.toml", &settings);
    here.init();
    let there = clone_of(&here, &settings);
    // Its look at the comments takes so long that it seems dead; the first one is for the prompt.
    standin.fault(Fault::Slow(1), "GET", "/comments", 1);
    standin.fault(Fault::Slow(6_000), "GET", "/comments", 1);
    let job = here.job(&begin(&["--issue", "7", "--worktree"]));
    let looked = |seen: &&Seen| seen.method == "GET" && seen.path.ends_with("/comments");
    until("it looks at the comments", || standin.seen().iter().filter(looked).count() == 2);
    let run = here.status()["run"].as_str().unwrap().to_owned();
    let forget = format!(
        "update {}.runs set owner = replace(replace(owner, '\"boot\":\"', '\"boot\":\"another-'), '\"host\":\"', \
         '\"host\":\"far-'), renewed_at = now() - interval '1 hour'",
        database.schema
    );
    until("the other machine has it", || {
        let forgot = Command::new("psql").args(["-q", "-d", &database.url, "-c", &forget]).status();
        assert!(forgot.unwrap().success());
        there.run(&["resume", &run]).code == 0
    });
    let ended = job.end();
    assert_ne!(ended.code, 0, "it was taken over: {}", ended.stderr);
    let posted = |seen: &&Seen| seen.method == "POST" && seen.path.ends_with("/comments");
    assert_eq!(standin.seen().iter().filter(posted).count(), 1, "{}", ended.stderr);
    assert_eq!(standin.comments(7).len(), 1);
    assert_eq!(there.run(&["status", &run, "--json"]).json()["state"], "completed");
}
