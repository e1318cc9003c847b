//! Runs whose journal is a database that several projects and machines read.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use cuegate_testkit::postgres::PostgresServer;
use serde_json::{Value, json};

use crate::{
    page::client::Server,
    support::{Job, Project, until},
};

const WORKFLOW: &str = "name: it
max_steps: 8
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Do it.
    rules:
      - { condition: Done, next: look }
      - { condition: A decision is needed, next: work, requires_user_input: true }
  - name: look
    edit: false
    instruction: Look at it.
    rules:
      - { condition: Fine, next: COMPLETE }
";

/// The server of all tests, or one of this test, and a schema of its own.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
    /// Ends with the test.
    _own: Option<PostgresServer>,
}

impl Database {
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    pub(crate) fn find(schema: &str) -> Option<Database> {
        let schema = format!("p{}_{schema}", std::process::id());
        if let Ok(url) = std::env::var("CUEGATE_TEST_POSTGRES")
            && !url.is_empty()
        {
            return Some(Database { url, schema, _own: None });
        }
        match PostgresServer::start() {
            Ok(server) => Some(Database { url: server.url(), schema, _own: Some(server) }),
            Err(why) => {
                eprintln!("skipped: {why}");
                None
            }
        }
    }

    pub(crate) fn settings(&self) -> String {
        format!("[journal]\nurl = \"{}\"\nschema = \"{}\"\n", self.url, self.schema)
    }

    fn project(&self, answers: &Value) -> Project {
        let project = Project::empty();
        project.write(".takt/workflows/it.yaml", WORKFLOW);
        project.write("cuegate.toml", &self.settings());
        project.script("script.json", answers);
        project.write(".gitignore", "/.cuegate\n/script.json\n");
        project.init();
        project
    }
}

fn says(step: &str, outcome: &str) -> Value {
    json!({"step": step, "output": {"outcome": outcome, "response": "ok"}})
}

const BEGIN: [&str; 7] = ["run", "it", "Do it", "--script", "script.json", "--budget-calls", "9"];

#[test]
fn a_run_is_asked_answered_and_seen_from_another_project() {
    let Some(database) = Database::find("asked") else { return };
    let project = database.project(&json!([
        says("work", "A decision is needed"),
        {"step": "work", "output": {"outcome": "Done", "response": "ok"}, "runs": ["echo done > WORK.txt"]},
        says("look", "Fine"),
    ]));
    let run = project.run(&[&BEGIN[..], &["--worktree", "--detach", "--json"]].concat());
    let run = run.json()["run"].as_str().unwrap().to_owned();
    // Another folder with the same journal: it sees the run, and posts the answer.
    let other = Project::empty();
    other.write("cuegate.toml", &database.settings());
    let state = || other.run(&["status", &run, "--json"]).json()["state"].as_str().map(str::to_owned);
    until("it asks", || state().as_deref() == Some("suspended"));
    let answered = other.run(&["answer", &run, "Blue", "--no-continue"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    let resumed = project.run(&["resume", &run]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(state().as_deref(), Some("completed"));
    for words in [&["replay", &run][..], &["log", &run], &["report", &run], &["why", &run]] {
        let seen = other.run(words);
        assert_eq!(seen.code, 0, "{words:?}: {}", seen.stderr);
    }
    let listed = other.run(&["runs", "--json"]).json();
    assert_eq!(listed["runs"][0]["run"], run.as_str());
    assert_eq!(project.run(&["apply"]).code, 0);
    assert_eq!(project.read("WORK.txt"), "done\n");
    assert!(!project.path().join(".cuegate/runs").join(&run).join("log").exists(), "no record is here");
    assert_eq!(project.run(&["clean", &run]).code, 0);
    project.all_gone();
}

/// What changes the files of a run is refused elsewhere, but for `resume`.
#[test]
fn a_run_of_another_project_is_left_alone() {
    let Some(database) = Database::find("alone") else { return };
    let answers = json!([says("work", "Done")]);
    let (here, there) = (database.project(&answers), database.project(&answers));
    let suspended = |project: &Project, more: &[&str]| {
        let ran = project.run(&[&BEGIN[..], more].concat());
        assert!(ran.code > 0, "the script has no answer for `look`: {}", ran.stderr);
        project.status()["run"].as_str().unwrap().to_owned()
    };
    let older = suspended(&here, &[]);
    assert_eq!(here.run(&["cancel", &older]).code, 0);
    let own = suspended(&here, &[]);
    let other = suspended(&there, &["--worktree"]);
    assert_eq!(here.status()["run"], own.as_str(), "`last` is the last one of this project");
    for words in [&["undo"][..], &["restore", "--at", "1"], &["instruct"]] {
        let mut args = vec![words[0], &other];
        args.extend(&words[1..]);
        let more: &[&str] = if words[0] == "instruct" { &["more"] } else { &[] };
        let ran = here.run(&[&args[..], more].concat());
        assert!(
            ran.code == 2 && ran.stderr.contains("are not here: it worked in"),
            "{args:?}: {}",
            ran.stderr
        );
    }
    assert_eq!(here.run(&["clean"]).stdout.matches(&other).count(), 0);
    assert_eq!(here.run(&["cancel", &own]).code, 0);
    let removed = here.run(&["gc", "--keep", "1"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    let left = there.run(&["runs", "--json"]).json();
    let left: Vec<&str> =
        left["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(left, [&other, &own], "only runs of this project are removed");
    assert_eq!(there.run(&["cancel", &other]).code, 0);
}

#[test]
fn a_killed_run_goes_on_and_pays_nothing_twice() {
    let Some(database) = Database::find("killed") else { return };
    let slow = json!({"step": "look", "output": {"outcome": "Fine", "response": "ok"}, "runs": ["sleep 5"]});
    let project = database.project(&json!([says("work", "Done"), slow]));
    let mut job = project.start(&BEGIN);
    until("the first call is answered", || {
        project.run(&["log", "last", "--json"]).stdout.contains("\"answered\"")
    });
    job.kill().unwrap();
    job.wait().unwrap();
    project.script("script.json", &json!([says("look", "Fine")]));
    let resumed = project.run(&["resume", "--script", "script.json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(project.events("answered").len(), 2);
    project.all_gone();
}

#[test]
fn a_batch_and_its_runs_are_in_the_database() {
    let Some(database) = Database::find("batch") else { return };
    let project = database.project(&json!([says("work", "Done"), says("look", "Fine")]));
    project.write("tasks.txt", "Mend this\nMend that\n");
    let limits = ["--run-calls", "9", "--budget-calls", "40"];
    let work = ["work", "it", "--from", "tasks.txt", "--script", "script.json", "--parallel", "2"];
    let ran = project.run(&[&work[..], &limits].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let shown = project.run(&["work", "--show", "--json"]).json();
    assert_eq!(shown["tasks"].as_array().unwrap().len(), 2, "{shown}");
    assert_eq!(project.runs(), 2);
    assert!(
        fs::read_dir(project.path().join(".cuegate/batches"))
            .map_or(true, |entries| { entries.flatten().all(|entry| entry.path().is_file()) })
    );
    // Without the setting nothing of it is here.
    project.write("cuegate.toml", "");
    assert_eq!(project.run(&["runs", "--json"]).json()["runs"], json!([]));
    let flagged = project.run(&[
        "runs",
        "--json",
        "--journal",
        &format!("{}?options=-csearch_path%3D{}", database.url, database.schema),
    ]);
    assert_eq!(flagged.json()["runs"].as_array().unwrap().len(), 2, "{}", flagged.stderr);
}

/// With a server of its own, which it may kill.
#[test]
fn a_database_that_goes_away_for_a_moment_stops_nothing() {
    let mut server = match PostgresServer::start() {
        Ok(server) => server,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let database = Database { url: server.url(), schema: "away".to_owned(), _own: None };
    let slow = |step: &str, outcome: &str| json!({"step": step, "output": {"outcome": outcome, "response": "ok"}, "runs": ["sleep 1"]});
    let project = database.project(&json!([slow("work", "Done"), slow("look", "Fine")]));
    let mut job = project.start(&BEGIN);
    until("it works", || project.run(&["runs", "--json"]).stdout.contains("\"running\""));
    server.kill();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    server.restart().unwrap();
    assert!(job.wait().unwrap().success());
    assert_eq!(project.events("answered").len(), 2);
    assert_eq!(project.status()["state"], "completed");
}

#[test]
fn what_is_wrong_with_the_address_is_said_without_its_password() {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.script("script.json", &json!([]));
    project.init();
    for (url, code, why) in [
        (
            "postgres://me:s3cret@127.0.0.1:1/work",
            4,
            "the journal at 127.0.0.1:1/work, schema cuegate failed: ",
        ),
        ("postgres://127.0.0.1/work", 4, "it names no user"),
        ("$NOWHERE_SET", 4, "the variable `NOWHERE_SET` that it names is not set"),
    ] {
        let ran = project.run(&[&BEGIN[..], &["--journal", url]].concat());
        assert_eq!(ran.code, code, "{url}: {}", ran.stderr);
        assert!(ran.stderr.contains(why) && ran.stderr.contains("hint: "), "{}", ran.stderr);
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    }
    project.write("cuegate.toml", "[journal]\nurl = \"$X\"\n[budget]\nusd = \"much\"\n");
    let ran = project.run(&["runs"]);
    assert!(
        ran.code == 4 && ran.stderr.contains("cuegate.toml:4:"),
        "the files here are not the journal: {}",
        ran.stderr
    );
    project.write("cuegate.toml", "");
    assert_eq!(project.run(&["check", "it", "--journal", "postgres://me@127.0.0.1:1/work"]).code, 0);
}

#[test]
fn doctor_names_the_database() {
    let Some(database) = Database::find("doctor") else { return };
    let project = database.project(&json!([says("work", "Done"), says("look", "Fine")]));
    let line = |project: &Project| {
        let said = project.run(&["doctor"]).stdout;
        said.lines().find(|line| line.contains("journal")).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    assert!(line(&project).contains("no runs yet, in ") && line(&project).contains(&database.schema));
    assert_eq!(project.run(&BEGIN).code, 0);
    assert!(line(&project).contains("1 run in "));
    // A run keeps its settings, and not the password in them.
    project.write("cuegate.toml", &database.settings().replace("cuegate@", "cuegate:s3cret@"));
    let ran = project.run(&BEGIN);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.run(&["export", "last", "kept"]).code, 0);
    let kept = fs::read(project.path().join("kept")).unwrap();
    let text = String::from_utf8_lossy(&kept).into_owned() + &project.run(&["config", "show"]).stdout;
    assert!(!text.contains("s3cret") && text.contains("cuegate:***@"), "{}", ran.stderr);
    assert_eq!(project.run(&["doctor", "--records"]).code, 0);
    project.write("cuegate.toml", "[journal]\nurl = \"postgres://me@127.0.0.1:1/x\"\n");
    assert!(line(&project).starts_with("no ") && line(&project).contains("Connection refused"));
}

/// The files of a run, as git names them.
fn tree_of(work: &str) -> String {
    let git = |words: &[&str]| {
        let ran = std::process::Command::new("git").arg("-C").arg(work).args(words).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    git(&["add", "--all"]);
    git(&["write-tree"]) + &git(&["log", "--format=%H %s"])
}

/// A clone of a project with a home of its own: as far as anybody can tell another machine.
pub(crate) fn clone_of(project: &Project, settings: &str) -> Project {
    let clone = Project::empty();
    let from = project.path().display().to_string();
    let cloned =
        std::process::Command::new("git").args(["clone", "--quiet", &from]).arg(clone.path()).output();
    assert!(cloned.unwrap().status.success());
    clone.write("cuegate.toml", settings);
    clone
}

#[test]
fn a_run_moves_with_its_files() {
    let Some(database) = Database::find("moved") else { return };
    let here = database.project(&json!([
        {"step": "work", "output": {"outcome": "A decision is needed", "response": "ok"}, "runs": [
            "printf 'a\\0b' > data.bin; echo new > NEW.txt; ln -s NEW.txt link; echo x > run.sh; chmod +x run.sh",
            "mkdir -p deep/er; echo text > deep/er/file; git add NEW.txt; git commit -qm 'by the agent'; echo more >> NEW.txt",
        ]},
        {"step": "work", "output": {"outcome": "Done", "response": "ok"}, "runs": [
            "test \"$(cat NEW.txt)\" = \"$(printf 'new\\nmore')\" && test -x run.sh && test -L link && rm data.bin",
        ]},
        says("look", "Fine"),
    ]));
    let ran = here.run(&[&BEGIN[..], &["--worktree"]].concat());
    assert!(ran.stderr.contains("asks you"), "{}", ran.stderr);
    let run = here.status()["run"].as_str().unwrap().to_owned();
    let work = here.status()["place"]["work"].as_str().unwrap().to_owned();
    let there = clone_of(&here, &database.settings());
    let answered = there.run(&["answer", &run, "Blue", "--no-continue"]);
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    let diff = there.run(&["diff", &run]);
    assert!(diff.stdout.contains("deep/er/file"), "{}{}", diff.stdout, diff.stderr);
    let resumed = there.run(&["resume", &run]);
    assert_eq!(resumed.code, 0, "{}{}", resumed.stdout, resumed.stderr);
    let new_work =
        there.run(&["status", &run, "--json"]).json()["place"]["work"].as_str().unwrap().to_owned();
    assert_ne!(new_work, work);
    fs::remove_file(format!("{work}/data.bin")).unwrap();
    assert_eq!(tree_of(&new_work), tree_of(&work));
    assert_eq!(there.run(&["replay", &run]).code, 0);
    assert_eq!(here.run(&["apply", &run]).code, 0);
    assert_eq!(here.read("NEW.txt"), "new\nmore\n");
}

/// An agent that keeps each request, says a session, and works on step `two` while the file `SEEN.wait` is there.
const OWN_AGENT: &str = r#"#!/usr/bin/env python3
import json, os, sys, time
request = json.load(sys.stdin)
with open(os.environ["SEEN"], "a") as seen:
    seen.write(json.dumps(request) + "\n")
with open("count.txt", "a") as count:
    count.write(request["step"] + "\n")
while request["step"] == "two" and os.path.exists(os.environ["SEEN"] + ".wait"):
    time.sleep(0.05)
print(json.dumps({"event": "usage", "input_tokens": 5, "output_tokens": 5, "cost_usd": 0.01}), flush=True)
output = {"outcome": "Done", "response": "ok"}
print(json.dumps({"event": "answer", "text": "ok", "session": "s1", "output": output}), flush=True)
"#;

const LONG_WORKFLOW: &str = "name: long
personas: { coder: coder.md }
max_steps: 8
initial_step: one
steps:
  - name: one
    edit: true
    persona: coder
    instruction: First.
    rules: [{ condition: Done, next: two }]
  - name: two
    edit: true
    session: continue
    persona: coder
    instruction: Second.
    rules: [{ condition: Done, next: three }]
  - name: three
    edit: true
    session: continue
    persona: coder
    instruction: Third.
    rules: [{ condition: Done, next: COMPLETE }]
";

#[test]
fn a_killed_run_moves_there_and_back() {
    let Some(database) = Database::find("back") else { return };
    let here = database.project(&json!([]));
    let folder = tempfile::tempdir().unwrap();
    let (agent, seen) = (folder.path().join("agent.py"), folder.path().join("seen"));
    fs::write(&agent, OWN_AGENT).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = format!(
        "{}[agents.own]\nexec = [\"{}\"]\nedits = true\nschema = true\nsessions = true\ncost = true\n\
         variables = [\"SEEN\"]\nstate = [\"{}\"]\n[worktree]\nsetup = \"echo ready > ignored.txt\"\n",
        database.settings(),
        agent.display(),
        folder.path().display(),
    );
    here.write("cuegate.toml", &settings);
    here.write(".gitignore", "/.cuegate\n/script.json\n/ignored.txt\n");
    here.write(".takt/workflows/long.yaml", LONG_WORKFLOW);
    here.write(".takt/workflows/coder.md", "You write code.");
    here.git(&["add", "--all"]);
    here.git(&["commit", "-qm", "more"]);
    // What a run may do is what the project says there.
    let there = clone_of(&here, &settings);
    let wait = folder.path().join("seen.wait");
    fs::write(&wait, "").unwrap();
    let start = |project: &Project, words: &[&str]| {
        Job::of(
            project
                .command(words)
                .env("SEEN", &seen)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    };
    let asked = || -> Vec<Value> {
        let text = fs::read_to_string(&seen).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let job =
        start(&here, &["run", "long", "Count it", "--worktree", "--provider", "own", "--budget-usd", "10"]);
    until("the second call begins", || asked().len() == 2);
    here.kill_all();
    job.end();
    let run = here.status()["run"].as_str().unwrap().to_owned();
    let work = here.status()["place"]["work"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(format!("{work}/count.txt")).unwrap().lines().last(), Some("two"));
    // The second call is lost with its half work. It is made anew, with what was said before it, and is killed there, too.
    let job = start(&there, &["resume", &run]);
    until("the second call begins there", || asked().len() == 3);
    let status = there.run(&["status", &run, "--json"]).json();
    let new_work = status["place"]["work"].as_str().unwrap().to_owned();
    assert_ne!(new_work, work);
    assert_eq!(status["machine"]["root"], there.path().display().to_string());
    assert_eq!(
        fs::read_to_string(format!("{new_work}/ignored.txt")).unwrap(),
        "ready\n",
        "the setup ran again"
    );
    there.kill_all();
    job.end();
    fs::remove_file(&wait).unwrap();
    let job = start(&here, &["resume", &run]);
    let ended = job.end();
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let asked = asked();
    let about = |at: usize| (asked[at]["step"].clone(), asked[at]["session"]["id"].clone());
    assert_eq!(about(1), (json!("two"), json!("s1")));
    assert_eq!(about(2), (json!("two"), Value::Null), "the conversation is on the other machine");
    let told = asked[2]["prompt"].as_str().unwrap();
    assert!(told.contains("# Answer of the step before"), "{told}");
    assert!(told.contains(&there.path().display().to_string()), "the reports are elsewhere now: {told}");
    assert_eq!(about(3), (json!("two"), Value::Null));
    assert_eq!(about(4), (json!("three"), json!("s1")));
    assert_eq!(asked.len(), 5);
    // Each finished call is in the files once.
    assert_eq!(fs::read_to_string(format!("{work}/count.txt")).unwrap(), "one\ntwo\nthree\n");
    let status = here.run(&["status", &run, "--json"]).json();
    assert_eq!(status["machine"]["root"], here.path().display().to_string());
    let usage: Vec<Value> = here.log().into_iter().filter(|event| event["event"] == "ask_cut").collect();
    assert_eq!(usage.len(), 2, "both lost calls are charged");
    let moves = here.events("resumed");
    for (cut, resumed) in usage.iter().zip(&moves) {
        assert_eq!(
            cut["seq"], resumed["seq"],
            "no kill comes between a move and what it knows of lost calls"
        );
    }
    assert_eq!(here.run(&["replay", &run]).code, 0);
}

#[test]
fn what_is_missing_for_a_move_is_said() {
    let Some(database) = Database::find("missing") else { return };
    let here = database.project(&json!([says("work", "A decision is needed")]));
    let there = clone_of(&here, &database.settings());
    here.write("later.txt", "later");
    here.git(&["add", "--all"]);
    here.git(&["commit", "-qm", "later"]);
    let suspended = |words: &[&str]| {
        here.run(&[&BEGIN[..], words].concat());
        here.status()["run"].as_str().unwrap().to_owned()
    };
    let run = suspended(&["--worktree"]);
    let fails = |project: &Project, run: &str, what: &str| {
        project.run(&["answer", run, "Blue", "--no-continue"]);
        let ran = project.run(&["resume", run]);
        assert!(ran.code != 0 && ran.stderr.contains(what), "{}", ran.stderr);
    };
    fails(&there, &run, "that the run started from is not in this repository");
    let outside = Project::empty().outside();
    outside.write("cuegate.toml", &database.settings());
    fails(&outside, &run, "is not in a git repository");
    // In the checkout itself.
    let run = suspended(&[]);
    fails(&there, &run, "is not in this repository");
    there.git(&["pull", "-q"]);
    there.write("mine.txt", "mine");
    fails(&there, &run, "works in the checkout itself, and this one has changes");
    fs::remove_file(there.path().join("mine.txt")).unwrap();
    there.script("more.json", &json!([says("work", "Done"), says("look", "Fine")]));
    fs::rename(there.path().join("more.json"), there.path().join(".cuegate/more.json")).unwrap();
    let ran = there.run(&["resume", &run, "--script", ".cuegate/more.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn the_page_shows_the_fleet() {
    use cuegate_postgres::{
        Address,
        fleet::{FleetStore, FleetTask, FleetWorker, HoldRequest, HoldVerdict},
    };

    let Some(database) = Database::find("fleet") else { return };
    let project = database.project(&json!([says("work", "Done"), says("look", "Fine")]));
    assert_eq!(project.run(&BEGIN).code, 0);
    let server = Server::start(&project, &[]);
    assert_eq!(server.get("/fleet").status, 404, "nobody made a fleet");
    assert_eq!(server.json("/session")["fleet"], false);
    let address = Address::parse(&database.url, None).unwrap().with_schema(&database.schema);
    let store = FleetStore::open(address).unwrap();
    let worker = FleetWorker { name: "w1".into(), host: "tower".into(), slots: 2, ..FleetWorker::default() };
    store.beat(worker).unwrap();
    for (run, limit) in [("a", 3), ("b", 4)] {
        store
            .submit(FleetTask {
                run: run.into(),
                repository: "app".into(),
                workflow: "fix".into(),
                limit_micro: Some(limit * 1_000_000),
                ..FleetTask::default()
            })
            .unwrap();
    }
    store.set_limit("day", Some(5_000_000)).unwrap();
    let hold = |run: &str| {
        store.begin_hold(HoldRequest { run: run.into(), worker: "w1".into(), accounts: Vec::new() }).unwrap()
    };
    assert!(matches!(hold("a"), HoldVerdict::Go { .. }) && matches!(hold("b"), HoldVerdict::Wait { .. }));
    let shown = server.json("/fleet");
    assert_eq!(shown["schema"], "cuegate/fleet/v1");
    assert_eq!((&shown["workers"][0]["host"], &shown["workers"][0]["slots"]), (&json!("tower"), &json!(2)));
    assert_eq!((&shown["runs"][0]["state"], &shown["runs"][0]["worker"]), (&json!("running"), &json!("w1")));
    assert_eq!(
        (&shown["runs"][1]["state"], &shown["runs"][1]["why"]),
        (&json!("budget"), &json!("the limit of day is reached"))
    );
    assert_eq!(shown["limits"], json!([{"scope": "day", "usd": 5.0, "used_usd": 3.0}]));
    assert_eq!(server.json("/session")["fleet"], true);
    server.stop();
}
