//! The steps of the actions of GitHub and of the jobs for GitLab, run by a shell as their runners do.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use cuegate_testkit::github::{Fault, GithubStandin};
use serde_json::{Value, json};

use crate::support::{Project, Ran};

const WORKFLOW: &str = "name: it
max_steps: 8
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Do it.
    rules:
      - { condition: Done, next: COMPLETE }
      - { condition: Again, next: work }
";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read_yaml(path: &str) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(repository().join(path)).unwrap()).unwrap()
}

/// What a runner gives to the steps of an action, and what they wrote.
struct Runner {
    temp: tempfile::TempDir,
    work: PathBuf,
    /// The values of expressions.
    values: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Step {
    name: String,
    /// `None` if it was left out.
    code: Option<i32>,
    said: String,
}

impl Runner {
    /// A machine with the release that the actions install, and the standard variables.
    fn new(work: &Path, standin: &GithubStandin) -> Runner {
        let temp = tempfile::tempdir().unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let name = format!("cuegate-{version}-{}-unknown-linux-gnu", std::env::consts::ARCH);
        let folder = temp.path().join(format!("releases/v{version}"));
        fs::create_dir_all(folder.join(&name)).unwrap();
        // The program itself is hundreds of megabytes in a build for tests.
        let program = folder.join(&name).join("cuegate");
        fs::write(&program, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_cuegate"))).unwrap();
        let packed = Command::new("sh")
            .args([
                "-ec",
                "chmod +x $1/cuegate; tar -czf $1.tar.gz $1; sha256sum $1.tar.gz > SHA256SUMS",
                "sh",
                &name,
            ])
            .current_dir(&folder)
            .status()
            .unwrap();
        assert!(packed.success());
        let home = temp.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let text = |path: &Path| path.display().to_string();
        let env = BTreeMap::from(
            [
                ("HOME", text(&home)),
                ("PATH", std::env::var("PATH").unwrap()),
                ("RUNNER_TEMP", text(temp.path())),
                ("GITHUB_OUTPUT", text(&temp.path().join("output"))),
                ("GITHUB_STEP_SUMMARY", text(&temp.path().join("summary.md"))),
                ("GITHUB_API_URL", standin.url()),
                ("GITHUB_SERVER_URL", "https://github.com".to_owned()),
                ("GITHUB_REPOSITORY", "owner/name".to_owned()),
                ("GITHUB_ACTIONS", "true".to_owned()),
                ("CI", "true".to_owned()),
                ("XDG_STATE_HOME", text(&temp.path().join("state"))),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let values = BTreeMap::from(
            [
                ("inputs.releases", format!("file://{}/releases", temp.path().display())),
                ("inputs.token", "test-token".to_owned()),
                ("github.event_name", "push".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        Runner { work: work.to_owned(), temp, values, env }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    fn summary(&self) -> String {
        fs::read_to_string(self.temp.path().join("summary.md")).unwrap_or_default()
    }

    /// The value of `${{ a || b }}` in a text.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${{") {
            let (expression, after) = behind.split_once("}}").unwrap();
            let value = |name: &str| self.values.get(name.trim()).filter(|value| !value.is_empty());
            filled.push_str(before);
            filled.push_str(expression.split("||").find_map(value).map_or("", String::as_str));
            rest = after;
        }
        filled + rest
    }

    /// Runs the steps of an action. What a step wrote to `GITHUB_OUTPUT` can be read by the later ones.
    fn run(&mut self, action: &str) -> Vec<Step> {
        let definition = read_yaml(&format!(".github/actions/{action}/action.yml"));
        for (name, input) in definition["inputs"].as_object().unwrap() {
            let default = self.fill(input["default"].as_str().unwrap_or_default());
            self.values.entry(format!("inputs.{name}")).or_insert(default);
        }
        self.set(
            "github.action_path",
            &repository().join(".github/actions").join(action).display().to_string(),
        );
        let mut has_failed = false;
        let mut done = Vec::new();
        for step in definition["runs"]["steps"].as_array().unwrap() {
            let name = step["name"].as_str().unwrap().to_owned();
            if has_failed
                && !step["if"]
                    .as_str()
                    .is_some_and(|when| when.contains("cancelled()") || when.contains("always()"))
            {
                done.push(Step { name, code: None, said: String::new() });
                continue;
            }
            let folder = self.fill(step["working-directory"].as_str().unwrap_or("."));
            fs::write(self.temp.path().join("output"), "").unwrap();
            let mut command = Command::new("bash");
            command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"].as_str().unwrap()]);
            command.current_dir(self.work.join(folder)).env_clear().envs(&self.env);
            for (name, value) in step["env"].as_object().unwrap() {
                command.env(name, self.fill(value.as_str().unwrap()));
            }
            let ran = Ran::of(command.output().unwrap());
            has_failed |= ran.code != 0;
            let id = step["id"].as_str().unwrap_or("none");
            for line in fs::read_to_string(self.temp.path().join("output")).unwrap().lines() {
                let (key, value) = line.split_once('=').unwrap();
                self.values.insert(format!("steps.{id}.outputs.{key}"), value.to_owned());
            }
            done.push(Step { name, code: Some(ran.code), said: ran.stdout + &ran.stderr });
        }
        for output in definition["outputs"].as_object().unwrap().values() {
            let value = output["value"].as_str().unwrap();
            assert!(value.starts_with("${{ steps.") && value.ends_with(" }}"), "{value}");
        }
        done
    }

    fn codes(&mut self, action: &str) -> (Vec<Option<i32>>, String) {
        let steps = self.run(action);
        let said: Vec<String> = steps.iter().map(|step| format!("{}: {}", step.name, step.said)).collect();
        (steps.iter().map(|step| step.code).collect(), said.join("\n"))
    }
}

/// A repository with a change as GitHub would merge it, its remote, and a shallow clone of the merge.
struct PullRequest {
    project: Project,
    bare: tempfile::TempDir,
    clone: tempfile::TempDir,
    merge: String,
}

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl PullRequest {
    fn new(change: impl Fn(&Project)) -> PullRequest {
        let project = Project::empty();
        project.write(".takt/workflows/it.yaml", WORKFLOW);
        project.write("cuegate.toml", "[run]\nprovider = \"claude\"\n[budget]\ncall_usd = 0.5\n");
        project.init();
        project.git(&["checkout", "--quiet", "-b", "change"]);
        change(&project);
        project.git(&["add", "--all"]);
        project.git(&["commit", "--quiet", "--message", "change"]);
        // The branch into which it goes has moved on: that is no part of the change.
        project.git(&["checkout", "--quiet", "main"]);
        project.write(".takt/workflows/other.yaml", &WORKFLOW.replace("name: it", "name: other"));
        project.git(&["add", "--all"]);
        project.git(&["commit", "--quiet", "--message", "other"]);
        project.git(&["checkout", "--quiet", "--detach"]);
        project.git(&["merge", "--quiet", "--no-ff", "--message", "merge", "change"]);
        let merge = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
        let (bare, clone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = bare.path().to_str().unwrap();
        project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", path]);
        git(bare.path(), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        project.git(&["remote", "add", "origin", path]);
        project.git(&["push", "--quiet", "origin", "main", "change", "HEAD:refs/pull/5/merge"]);
        git(clone.path(), &["init", "--quiet", "--initial-branch", "main"]);
        git(clone.path(), &["remote", "add", "origin", &format!("file://{path}")]);
        git(clone.path(), &["fetch", "--quiet", "--depth", "1", "origin", &merge]);
        git(clone.path(), &["checkout", "--quiet", "FETCH_HEAD"]);
        PullRequest { project, bare, clone, merge }
    }

    /// Checks out `main` in the clone, as for an event of an issue.
    fn check_out_main(&self) {
        let main = "+refs/heads/main:refs/remotes/origin/main";
        git(self.clone.path(), &["fetch", "--quiet", "--depth", "1", "origin", main]);
        git(self.clone.path(), &["checkout", "--quiet", "-B", "main", "refs/remotes/origin/main"]);
    }

    fn runner(&self, standin: &GithubStandin) -> Runner {
        let mut runner = Runner::new(self.clone.path(), standin);
        runner.set("github.event_name", "pull_request");
        runner.set("github.event.pull_request.number", "5");
        runner.set("github.sha", &self.merge);
        runner
    }
}

fn standin() -> GithubStandin {
    let standin = GithubStandin::start("owner/name");
    standin.pull(5, "More", "Fine", ("a", 1, "b"));
    standin.issue(7, "It is broken", "Mend it.", &["agent"]);
    standin
}

#[test]
fn a_pull_request_is_checked_compared_and_commented() {
    let standin = standin();
    let change = |project: &Project| {
        project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 20"));
    };
    let request = PullRequest::new(change);
    let mut runner = request.runner(&standin);
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    let sarif: Value =
        serde_json::from_str(&fs::read_to_string(&runner.values["steps.check.outputs.sarif"]).unwrap())
            .unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let comments = standin.comments(5);
    assert_eq!(comments.len(), 1);
    for text in [runner.summary(), comments[0].clone()] {
        assert!(text.contains("**`it` raises the worst case from $48.00 to $120.00.**"), "{text}");
        assert!(!text.contains("other"), "what the other branch did is no part of it: {text}");
    }
    // Once more, with a policy; its comment is edited.
    runner.set("inputs.max-usd", "100");
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(1)], "{said}");
    let comments = standin.comments(5);
    assert!(comments.len() == 1 && comments[0].contains("❌ a run of `it` can cost $120.00"), "{comments:?}");
    // The token of a fork may only read.
    runner.set("inputs.max-usd", "");
    standin.fault(Fault::NoRight, "PATCH", "/comments", 9);
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    assert!(
        said.contains("::notice title=cuegate::no comment was written: error: cannot comment on #5"),
        "{said}"
    );
    // An event that has the token of the repository does not have the change.
    runner.set("github.event_name", "pull_request_target");
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(2)], "{said}");
}

#[test]
fn what_is_broken_is_annotated_and_compared_all_the_same() {
    let standin = standin();
    let request = PullRequest::new(|project| {
        project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("next: work", "next: gone"));
    });
    let mut runner = request.runner(&standin);
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(2), Some(1)], "{said}");
    assert!(said.contains("::error file=.takt/workflows/it.yaml,line=10,"), "{said}");
    let summary = runner.summary();
    assert!(summary.contains("\n    ") && summary.contains("`gone`"), "{summary}");
    assert!(summary.contains("### Workflows") && summary.contains("| errors |"), "{summary}");
    assert!(standin.comments(5)[0].contains("**`it` has 1 error, so it does not run.**"));
    // A folder without workflows is an error, and no empty report is offered.
    runner.set("inputs.strict", "True");
    assert_eq!(runner.codes("check").0[1], Some(2), "no flag is off because nobody knows its value");
    let empty = Project::empty();
    empty.write("a.txt", "a\n");
    empty.init();
    let mut runner = Runner::new(empty.path(), &standin);
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(2)], "{said}");
    assert!(said.contains("no workflows in this folder"), "{said}");
    assert!(!runner.values.contains_key("steps.check.outputs.sarif"));
}

#[test]
fn pushes_and_named_revisions_are_compared() {
    let standin = standin();
    let request = PullRequest::new(|project| {
        project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 4"));
    });
    let before = request.project.git(&["rev-parse", "main"]);
    let mut runner = request.runner(&standin);
    runner.set("github.event_name", "push");
    runner.set("github.event.pull_request.number", "");
    runner.set("github.event.before", before.trim());
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    assert!(runner.summary().contains("lowers the worst case from $48.00 to $24.00"), "{}", runner.summary());
    // The first push of a branch.
    runner.set("github.event.before", &"0".repeat(40));
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    assert!(said.contains("::notice title=cuegate::nothing to compare with"), "{said}");
    runner.set("inputs.max-usd", "1");
    assert_eq!(runner.codes("check").0[2], Some(1), "a limit needs no commit before it");
    runner.set("inputs.max-usd", "");
    // After a forced push.
    runner.set("github.event.before", &"e".repeat(40));
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    // A branch that the shallow clone does not have, and which must not pass for another one.
    runner.set("inputs.base", "main");
    let shadow = request.clone.path().join("FETCH_HEAD");
    fs::create_dir_all(&shadow).unwrap();
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    assert!(runner.summary().matches("lowers the worst case").count() == 2, "{}", runner.summary());
    for base in ["main~7", "--upload-pack=touch${IFS}pwned;false"] {
        runner.set("inputs.base", base);
        let (codes, said) = runner.codes("check");
        assert_eq!(codes, [Some(0), Some(0), Some(2)], "{said}");
        assert!(said.contains("::error title=cuegate::cannot fetch the base"), "{said}");
    }
    assert!(!request.clone.path().join("pwned").exists());
    assert!(standin.comments(5).is_empty());
}

#[test]
fn the_last_workflow_may_be_deleted() {
    let standin = standin();
    let request = PullRequest::new(|project| fs::remove_dir_all(project.path().join(".takt")).unwrap());
    // `main` has another one since.
    request.project.git(&["rm", "-rq", ".takt"]);
    request.project.git(&["commit", "-qm", "none"]);
    let mut runner = Runner::new(request.project.path(), &standin);
    runner.set("github.sha", request.project.git(&["rev-parse", "HEAD"]).trim());
    runner.set("inputs.base", "HEAD~1");
    let (codes, said) = runner.codes("check");
    assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
    assert!(runner.summary().contains("**`other` is gone.**"), "{}", runner.summary());
}

#[test]
fn an_archive_that_was_changed_is_not_started() {
    let standin = standin();
    let request = PullRequest::new(|project| project.write("a.txt", "a\n"));
    let mut runner = request.runner(&standin);
    for (input, value, why) in [
        ("inputs.sha256", "0".repeat(64), "does not have the checksum 000"),
        ("inputs.version", "v9.9.9".to_owned(), "failed to download SHA256SUMS of cuegate 9.9.9"),
    ] {
        runner.set(input, &value);
        let (codes, said) = runner.codes("check");
        assert_eq!(codes[0], Some(1), "{said}");
        assert!(said.contains(why), "{said}");
        runner.values.remove(input);
    }
    let archive = fs::read_dir(runner.temp.path().join(format!("releases/v{}", env!("CARGO_PKG_VERSION"))))
        .unwrap()
        .find_map(|entry| {
            Some(entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "gz"))
        })
        .unwrap();
    fs::OpenOptions::new().append(true).open(archive).unwrap().write_all(b"x").unwrap();
    let (codes, said) = runner.codes("check");
    assert_eq!(codes[0], Some(1), "{said}");
    assert!(said.contains("was changed on the way"), "{said}");
}

/// Edits a file, and says which secrets it sees.
const SCRIPT: &str = r#"{"answers": [
    {"step": "work", "output": {"outcome": "Done", "response": "::error::injected\\n##[error]x"}, "runs": ["echo \"token: $GITHUB_TOKEN\" > WORK.txt"]}
]}"#;

#[test]
fn an_issue_becomes_a_pull_request() {
    let standin = standin();
    let request = PullRequest::new(|project| project.write("a.txt", "a\n"));
    request.check_out_main();
    for (input, value, more, branch) in
        [("issue", "7", "", "cuegate/"), ("label", "agent", "--run-calls\n9\n", "cuegate/issue-7")]
    {
        let mut runner = Runner::new(request.clone.path(), &standin);
        let script = runner.temp.path().join("script.json");
        fs::write(&script, SCRIPT).unwrap();
        runner.set("inputs.workflow", "it");
        let (codes, said) = runner.codes("work");
        assert_eq!(codes[1], Some(2), "{said}");
        assert!(said.contains("::error title=cuegate::set `budget-usd` or `budget-calls`"), "{said}");
        runner.set("inputs.budget-calls", "9");
        let (codes, said) = runner.codes("work");
        assert_eq!((codes[1], said.contains("set `issue` or `label`")), (Some(2), true), "{said}");
        runner.set(&format!("inputs.{input}"), value);
        runner.set("inputs.arguments", &format!("  --script={}\r\n\n{more}", script.display()));
        let (codes, said) = runner.codes("work");
        assert_eq!(codes, [Some(0), Some(0), Some(0)], "{said}");
        let pulls = standin.pulls();
        let pull = pulls.last().unwrap();
        let head = pull["head"]["ref"].as_str().unwrap();
        assert!(head.starts_with(branch) && pull["base"]["ref"] == "main", "{pull}");
        assert_eq!(
            git(request.bare.path(), &["show", &format!("{head}:WORK.txt")]),
            "token:",
            "no agent has it"
        );
        assert!(
            !said.contains("##[") && said.lines().all(|line| !line.trim_start().starts_with("::")),
            "{said}"
        );
        assert!(runner.summary().contains("completed"), "{}", runner.summary());
        let runs = PathBuf::from(&runner.values["steps.tell.outputs.runs"]);
        let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
        let replayed = request.project.run(&["replay", run.to_str().unwrap()]);
        assert_eq!(replayed.code, 0, "{}", replayed.stderr);
        // Git asks for the token, and it is in no file.
        let settings = runner.temp.path().join("cuegate.gitconfig");
        assert!(!fs::read_to_string(&settings).unwrap().contains("test-token"));
        let mut ask = Command::new("sh");
        ask.args(["-c", "printf 'protocol=https\\nhost=github.com\\n\\n' | git credential fill"]);
        ask.env("GIT_CONFIG_GLOBAL", &settings).env("GITHUB_TOKEN", "t").env("GIT_TERMINAL_PROMPT", "0");
        let told = Ran::of(ask.output().unwrap()).stdout;
        assert!(told.contains("username=x-access-token\npassword=t\n"), "{told}");
        standin.forget_pulls();
        fs::remove_dir_all(request.clone.path().join(".cuegate")).unwrap();
    }
}

/// The notes of a merge request, as GitLab keeps them.
fn serve_notes() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let notes = Arc::new(Mutex::new(vec![
        json!({"id": 1, "author": {"id": 9}, "body": "<!-- cuegate compare -->\nall is well"}),
    ]));
    let kept = Arc::clone(&notes);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            let mut line = String::from("x");
            while !line.trim().is_empty() {
                line.clear();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let text =
                serde_json::from_slice::<Value>(&body).map_or(Value::Null, |body| body["body"].clone());
            let mut notes = kept.lock().unwrap();
            let words: Vec<&str> = first.split_whitespace().collect();
            let reply = match (words[0], words[1]) {
                ("GET", "/user") => json!({"id": 3}),
                ("GET", _) => json!(*notes),
                ("POST", _) => {
                    let note = json!({"id": notes.len() + 1, "author": {"id": 3}, "body": text});
                    notes.push(note.clone());
                    note
                }
                (_, path) => {
                    let id: usize = path.rsplit('/').next().unwrap().parse().unwrap();
                    notes[id - 1]["body"] = text;
                    notes[id - 1].clone()
                }
            }
            .to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", reply.len());
            (&stream).write_all((head + &reply).as_bytes()).unwrap();
        }
    });
    (address, notes)
}

/// Runs the script of a job, line by line in one shell, as GitLab does.
fn run_job(name: &str, folder: &Path, env: &BTreeMap<&str, String>) -> Ran {
    let jobs = read_yaml("examples/ci/gitlab-ci.yml");
    let lines: Vec<&str> =
        jobs[name]["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cuegate"), bin.path().join("cuegate")).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -eo pipefail\n{}", lines.join("\n"))]).current_dir(folder).env_clear();
    for (name, value) in jobs["variables"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    command.env("PATH", format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap())).envs(env);
    Ran::of(command.output().unwrap())
}

#[test]
fn a_merge_request_of_gitlab_has_one_note() {
    let request = PullRequest::new(|project| {
        project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 20"));
    });
    let (address, notes) = serve_notes();
    let home = tempfile::tempdir().unwrap();
    let mut env = BTreeMap::from([
        ("HOME", home.path().display().to_string()),
        ("CI_API_V4_URL", address),
        ("CI_PROJECT_ID", "1".to_owned()),
        ("CI_MERGE_REQUEST_IID", "5".to_owned()),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", request.project.git(&["rev-parse", "main~1"]).trim().to_owned()),
        ("GITLAB_TOKEN", "t".to_owned()),
    ]);
    for round in 0..2 {
        let ran = run_job("cuegate-check", request.clone.path(), &env);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let notes = notes.lock().unwrap();
        assert_eq!(notes.len(), 2, "round {round}: {notes:?}");
        let own = notes[1]["body"].as_str().unwrap();
        assert!(own.starts_with("<!-- cuegate compare -->\n### ") && own.contains("to $120.00"), "{own}");
    }
    let report = fs::read_to_string(request.clone.path().join("gl-code-quality-report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report[0]["location"]["path"], ".takt/workflows/it.yaml", "{report:#}");
    env.insert("CUEGATE_COMPARE", "--max-usd 100".to_owned());
    env.insert("CI_API_V4_URL", "http://127.0.0.1:1".to_owned());
    let ran = run_job("cuegate-check", request.clone.path(), &env);
    assert!(
        ran.code == 1 && ran.stdout.contains("note: no comment was written"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    git(request.clone.path(), &["checkout", "--quiet", "--force", "FETCH_HEAD"]);
    fs::write(request.clone.path().join(".takt/workflows/it.yaml"), "name: it\n").unwrap();
    assert_eq!(run_job("cuegate-check", request.clone.path(), &env).code, 2, "a workflow with errors");
}

#[test]
fn a_task_becomes_a_merge_request_of_gitlab() {
    let request = PullRequest::new(|project| {
        project.write("cuegate.toml", "[run]\nprovider = \"mine\"\n[agents.mine]\nexec = [\"sh\", \"agent.sh\"]\nedits = true\nschema = true\ncost = true\n");
        project.write(
            "agent.sh",
            "read -r ask\necho \"token: $GITLAB_TOKEN\" > WORK.txt\nprintf '{\"event\":\"usage\",\"input_tokens\":1,\"output_tokens\":1,\"cost_usd\":0.01}\\n'\nprintf '{\"event\":\"answer\",\"output\":{\"outcome\":\"Done\",\"response\":\"ok\"}}\\n'\n",
        );
    });
    request.project.git(&["push", "--quiet", "origin", "HEAD:main"]);
    request.check_out_main();
    let hooks = request.bare.path().join("hooks/pre-receive");
    fs::create_dir_all(hooks.parent().unwrap()).unwrap();
    fs::write(&hooks, "#!/bin/sh\necho \"$GIT_PUSH_OPTION_0 $GIT_PUSH_OPTION_1\" > options\n").unwrap();
    fs::set_permissions(&hooks, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    git(request.bare.path(), &["config", "receive.advertisePushOptions", "true"]);
    let home = tempfile::tempdir().unwrap();
    // The address of the project leads to a repository of this machine.
    fs::write(
        home.path().join(".gitconfig"),
        format!(
            "[url \"file://{}\"]\n\tinsteadOf = https://gitlab.example/group/name.git\n",
            request.bare.path().display()
        ),
    )
    .unwrap();
    let env = BTreeMap::from([
        ("HOME", home.path().display().to_string()),
        ("CI_SERVER_URL", "https://gitlab.example".to_owned()),
        ("CI_PROJECT_PATH", "group/name".to_owned()),
        ("CI_DEFAULT_BRANCH", "main".to_owned()),
        ("GITLAB_TOKEN", "secret".to_owned()),
        ("CUEGATE_WORKFLOW", "it".to_owned()),
        ("CUEGATE_TASK", "--help".to_owned()),
    ]);
    let ran = run_job("cuegate-run", request.clone.path(), &env);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let options = fs::read_to_string(request.bare.path().join("options")).unwrap();
    assert_eq!(options, "merge_request.create merge_request.target=main\n");
    let branch = git(request.bare.path(), &["for-each-ref", "--format=%(refname)", "refs/heads/cuegate/"]);
    assert!(
        git(request.bare.path(), &["show", &format!("{branch}:WORK.txt")]).ends_with("token:"),
        "{branch}"
    );
    assert!(request.clone.path().join("cuegate-run.cuegate").is_file());
}
