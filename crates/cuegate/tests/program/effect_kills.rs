//! `kill -9` of the whole process group at random moments of runs on an issue: labels, a comment, a commit, a push, a
//! pull request. Nothing is done twice, nothing is lost, and the user's checkout stays as it was.

use std::time::{Duration, Instant};

use cuegate_testkit::github::GithubStandin;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::{
    agent::registry::{Registry, begin, says, says_with, small},
    support::{Project, serve_git},
};

/// How many kills have to hit a run, if `CUEGATE_KILLS` does not say.
const KILLS: usize = 25;

fn registry() -> Registry {
    let issue = json!({"type": "number", "description": "Issue", "required": true, "cli": "--issue"});
    small().agent(json!({"parameters": {"issue": issue}})).prompt("work", "Work on {uv-issue}.\n").runner(
        json!({
            "integrations": {"github": {
                "enabled": true,
                "labels": {
                    "inProgress": "in-progress", "blocked": "blocked",
                    "completion": {"add": ["done"], "remove": ["in-progress"]}
                },
                "defaultClosureAction": "label-and-close"
            }},
            "actions": {"enabled": true, "handlers": {"note": "github:comment"}},
            "execution": {"worktree": {"enabled": true}, "finalize": {"createPr": true}}
        }),
    )
}

/// What of a checkout must not change: the commit, the files, the index and the stash.
fn checkout(project: &Project) -> (String, String, Vec<u8>, String) {
    (
        project.git(&["rev-parse", "HEAD"]),
        project.git(&["status", "--porcelain", "--untracked-files=no"]),
        std::fs::read(project.path().join(".git/index")).unwrap(),
        project.git(&["stash", "list"]),
    )
}

#[test]
fn nothing_on_github_is_done_twice_or_lost() {
    let wanted = crate::support::kills(KILLS);
    let (mut kills, mut unknown, mut run) = (0, 0, 0);
    while kills < wanted {
        run += 1;
        let (hit, doubtful) = one_run(run);
        kills += hit;
        unknown += usize::from(doubtful);
        assert!(run < 10 * wanted, "no kill hits a run");
    }
    // Only a kill between the note and the answer leaves doubt.
    assert!(unknown * 3 <= kills, "{unknown} of {kills} kills left doubt");
}

/// Kills one run now and then until it ends; how many kills hit it, and whether its comment is unknown.
fn one_run(seed: usize) -> (usize, bool) {
    let github = GithubStandin::start("owner/name");
    github.issue(7, "It is broken", "Mend it.", &["ready"]);
    let note = "```json\n{\"action\": \"note\", \"body\": \"halfway\"}\n```\n";
    let project = registry().project(json!([
        says_with("work", "handoff", json!({"text": note, "writes": [{"path": "b.txt", "content": "b\n"}]})),
        says("close", "closing")
    ]));
    project.write(
        "cuegate.toml",
        &format!("[github]\napi = \"{}\"\nrepository = \"owner/name\"\n", github.url()),
    );
    let bare = tempfile::tempdir().unwrap();
    let at = bare.path().to_str().unwrap();
    project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", at]);
    project.git(&["remote", "add", "origin", at]);
    project.git(&["push", "--quiet", "origin", "main"]);
    // A kill of the run does not reach the other end of a push, which is on another machine.
    project.git(&["remote", "set-url", "origin", &serve_git(bare.path())]);
    project.git(&["update-index", "--refresh"]);
    let before = checkout(&project);
    let mut kills = 0;
    let (mut pause, deadline) = (40 + (seed * 37 % 23) * 30, Instant::now() + Duration::from_secs(60));
    loop {
        let started = project.runs() > 0;
        let resume = ["resume"];
        let args = if started { resume.to_vec() } else { begin(&["--issue", "7"]) };
        let mut child = project.start(&args);
        let killed = Instant::now() + Duration::from_millis(pause as u64);
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() >= killed && kills < 4 {
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        match ended {
            Some(status) => {
                // Killed after its last record, it has ended and is not resumed.
                assert!(matches!(status.code(), Some(0 | 2)), "{:?}", project.run(&["log"]).stdout);
                break;
            }
            None => {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                child.wait().unwrap();
                kills += 1;
            }
        }
        pause = 30 + (pause * 7 + seed * 13) % 500;
        assert!(Instant::now() < deadline, "{}", project.run(&["log"]).stdout);
    }
    let status: Value = project.status();
    assert_eq!(status["state"], "completed", "{status:#}");
    let states: Vec<String> = status["effects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["state"].as_str().unwrap()))
        .collect();
    let doubtful = states.contains(&"github.comment unknown".to_owned());
    let comment = if doubtful { "github.comment unknown" } else { "github.comment done" };
    assert_eq!(
        states,
        [
            "github.label done",
            comment,
            "git.commit done",
            "git.push done",
            "github.pull_request done",
            "github.label done",
            "github.close done"
        ]
    );
    let comments = github.comments(7).len();
    assert!(comments == 1 || doubtful && comments == 0, "{comments} comments");
    assert_eq!(
        (github.labels(7), github.state_of(7).as_str()),
        (vec!["ready".to_owned(), "done".to_owned()], "closed")
    );
    assert_eq!(github.pulls().len(), 1);
    let created = |path: &str| {
        let of = |seen: &&cuegate_testkit::github::Seen| seen.method == "POST" && seen.path.ends_with(path);
        github.changes().iter().filter(of).count()
    };
    assert!(created("/comments") <= 1 && created("/pulls") == 1);
    let branch = status["place"]["branch"].as_str().unwrap();
    assert_eq!(project.git(&["-C", at, "rev-parse", branch]), project.git(&["rev-parse", branch]));
    assert_eq!(project.git(&["show", &format!("{branch}:b.txt")]), "b\n");
    assert_eq!(checkout(&project), before, "the user's checkout stays as it was");
    project.git(&["fsck", "--strict"]);
    (kills, doubtful)
}
