//! System steps of TAKT, against a stand-in of GitHub and a remote: what they read decides, and what they do is done once.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use cuegate_testkit::github::GithubStandin;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    support::{Project, serve_git},
    takt::workflows::builtins,
};

/// How many kills hit runs, if `CUEGATE_KILLS` does not say.
const KILLS: usize = 20;

const WORKFLOW: &str = r#"name: keeper
max_steps: infinite
schemas: { verdict: verdict, next: next }
steps:
  - name: look
    mode: system
    system_inputs:
      - { type: task_context, source: current_task, as: task }
      - { type: pr_list, source: current_project, as: all, where: { head_branch: takt/*, draft: false } }
      - { type: pr_selection, source: current_project, as: pr, where: { head_branch: takt/*, managed_by_takt: true } }
      - { type: issue_selection, source: current_project, as: issue }
      - { type: issue_list, source: current_project, as: others, exclude_selected_from: issue }
      - { type: task_queue_context, source: current_project, as: queue, exclude_current_task: true }
    rules:
      - condition: when(context.look.queue.pending_count > 0)
        next: COMPLETE
      - condition: when(context.look.pr.exists && context.look.all.length >= 1)
        next: judge
      - condition: when(true)
        next: plan
  - name: judge
    edit: false
    delay_before_ms: 30
    instruction: |
      Judge #{context:look.pr.number} of {context:look.pr.author}, branch {context:look.pr.head_branch}, one of {context:look.all.length}.
    structured_output: { schema_ref: verdict }
    rules:
      - { condition: when(structured.judge.score >= 5 && structured.judge.risk != "high"), next: sync }
      - { condition: 'when(!(structured.judge.score > 4))', next: drop }
  - name: sync
    mode: system
    effects: [{ type: sync_with_root, pr: "{context:look.pr.number}" }]
    rules:
      - { condition: when(effect.sync.sync_with_root.success == true), next: merge }
      - { condition: when(effect.sync.sync_with_root.conflicted == true), next: settle }
      - { condition: when(effect.sync.sync_with_root.failed == true), next: ABORT }
  - name: settle
    kind: system
    effects: [{ type: resolve_conflicts_with_ai, pr: "{context:look.pr.number}" }]
    rules:
      - { condition: when(effect.settle.resolve_conflicts_with_ai.success), next: merge }
      - { condition: when(true), next: ABORT }
  - name: merge
    mode: system
    effects:
      - { type: comment_pr, pr: "{context:look.pr.number}", body: "Merged with {structured:judge.score} points." }
      - { type: merge_pr, pr: "{context:look.pr.number}" }
    rules:
      - { condition: when(effect.merge.merge_pr.success == true), next: look }
  - name: drop
    mode: system
    effects: [{ type: close_pr, pr: "{context:look.pr.number}" }]
    rules: [{ condition: when(effect.drop.close_pr.success == true), next: look }]
  - name: plan
    edit: false
    instruction: "Plan what comes after #{context:look.issue.number} {context:look.issue.title}."
    structured_output: { schema_ref: next }
    rules: [{ condition: when(true), next: enqueue }]
  - name: enqueue
    mode: system
    effects:
      - type: enqueue_task
        mode: new
        workflow: default
        base_branch: { name: improve, create_if_missing: { from: main, push: true } }
        task: "{structured:plan.task_markdown}"
        issue: "{structured:plan.issue}"
        worktree: { enabled: true, auto_pr: true, managed_pr: true }
    rules:
      - { condition: when(effect.enqueue.enqueue_task.success == true && effect.enqueue.enqueue_task.number > 40), next: wait }
  - name: wait
    mode: system
    delay_before_ms: 20
    rules: [{ condition: when(true), next: look }]
"#;

struct Scene {
    project: Project,
    github: GithubStandin,
    _remote: TempDir,
    remote: String,
}

impl Scene {
    /// The keeper, whose agent gives a pull request this score.
    fn new(score: u64) -> Scene {
        let scene = Scene::stage(|project| {
            project.write(".takt/workflows/keeper.yaml", WORKFLOW);
            let verdict = json!({"type": "object", "required": ["score", "risk"], "additionalProperties": false,
                "properties": {"score": {"type": "integer"}, "risk": {"type": "string"}}});
            let texts = json!({"type": "array", "items": {"type": "string"}});
            let next = json!({"type": "object", "required": ["summary", "goals", "acceptance_criteria", "issue"],
                "properties": {"title": {"type": "string"}, "summary": {"type": "string"}, "goals": texts,
                    "acceptance_criteria": texts, "issue": {"type": "object"}}});
            project.write(".takt/schemas/verdict.json", &verdict.to_string());
            project.write(".takt/schemas/next.json", &next.to_string());
        });
        let data = |data: Value| json!({"response": "Done.", "structured": data});
        let task = json!({"title": "Cache the index", "summary": "Cache it", "goals": ["Be quick", "Stay correct"],
            "acceptance_criteria": ["Starts in 1 s"], "issue": {"create": true, "labels": ["bug"]}});
        scene.project.script("script.json", &json!([
            {"step": "judge", "output": data(json!({"score": score, "risk": "low"}))},
            {"step": "settle@resolve", "output": {"files": [{"path": "start.txt", "content": "quick, then slower\n"}]}},
            {"step": "plan", "output": {"outcome": "done", "response": "Done.", "structured": task}},
        ]));
        scene
    }

    /// A project with a remote and GitHub, where a pull request of TAKT conflicts with the main branch, and an issue is
    /// open. `write` adds the definitions.
    fn stage(write: impl FnOnce(&Project)) -> Scene {
        let github = GithubStandin::start("owner/name");
        github.issue(7, "Slow start", "It takes long.", &["bug"]);
        github.open_pull(41, ("takt/quick", "main"), "Start quickly", "Text\n\n<!-- takt:managed -->");
        github.open_pull(42, ("other", "main"), "Of a person", "");
        let project = Project::empty();
        write(&project);
        project.write(
            "cuegate.toml",
            &format!(
                "[github]\napi = \"{}\"\nrepository = \"owner/name\"\n[run]\nmax_iterations = 30\n",
                github.url()
            ),
        );
        project.write(".gitignore", "/.cuegate\n/.takt/tasks*\nscript.json\n");
        project.write("start.txt", "slow\n");
        project.init();
        let bare = tempfile::tempdir().unwrap();
        let remote = bare.path().to_str().unwrap().to_owned();
        project.git(&["init", "--quiet", "--bare", "--initial-branch", "main", &remote]);
        project.git(&["remote", "add", "origin", &remote]);
        // Both branches change the same line.
        for (branch, text) in [("takt/quick", "quick\n"), ("main", "slower\n")] {
            project.git(&["checkout", "--quiet", "-B", branch, "main"]);
            project.write("start.txt", text);
            project.git(&["commit", "--quiet", "--all", "--message", branch]);
            project.git(&["push", "--quiet", "origin", branch]);
            if branch != "main" {
                project.git(&["checkout", "--quiet", "main"]);
            }
        }
        // A kill of the run does not reach the other end of a push, which is on another machine.
        project.git(&["remote", "set-url", "origin", &serve_git(bare.path())]);
        Scene { project, github, _remote: bare, remote }
    }

    /// How often a request that changes something was made.
    fn count(&self, method: &str, path: &str) -> usize {
        let is_it =
            |seen: &&cuegate_testkit::github::Seen| seen.method == method && seen.path.ends_with(path);
        self.github.changes().iter().filter(is_it).count()
    }

    /// The effects that the run shows.
    fn effects(&self) -> Vec<String> {
        let status = self.project.status();
        let rows = status["effects"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["state"].as_str().unwrap()))
            .collect()
    }

    /// Asserts that a run which merged did each effect once.
    fn check(&self) {
        self.check_merged(&self.effects());
    }

    /// The same after kills: nobody can know whether a request to GitHub arrived that a kill cut off before its answer. It is
    /// not sent again, and its effect says so.
    fn check_after_kills(&self) {
        let effects = self.effects();
        let (comments, issues) = (self.count("POST", "/issues/41/comments"), self.count("POST", "/issues"));
        assert!(comments <= 1 && issues <= 1, "{comments} comments, {issues} issues");
        if effects.iter().all(|effect| !effect.ends_with(" unknown")) {
            return self.check_merged(&effects);
        }
        let state = self.project.status()["state"].clone();
        let is_added = effects.iter().any(|effect| effect == "queue.add done");
        // The rule after adding a task wants its success.
        let (wanted, list) = if is_added { ("completed", 1) } else { ("failed", 0) };
        let log = self.project.run(&["log", "last"]).stdout;
        assert_eq!(state, wanted, "{log}");
        assert_eq!(self.count("PUT", "/pulls/41/merge"), 1, "{log}");
        let tasks = std::fs::read_to_string(self.project.path().join(".takt/tasks.yaml")).unwrap_or_default();
        assert_eq!(tasks.matches("status: \"pending\"").count(), list, "{tasks}{log}");
    }

    /// TAKT's loop, with pauses of 20 ms and a bound of 12 iterations: it merges the pull request, adds a task for the issue,
    /// and waits for that.
    fn of_takt(workflow: &str, builtins: &Path) -> Scene {
        let scene = Scene::stage(|project| {
            let quick = workflow.replace("delay_before_ms: 60000", "delay_before_ms: 20");
            project.write(".takt/workflows/auto-improvement-loop.yaml", &quick);
            let texts = json!({"type": "array", "items": {"type": "string"}});
            let schema = |more: Value| {
                let mut properties = json!({"action": {"type": "string"}});
                properties.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
                json!({"type": "object", "required": ["action"], "properties": properties}).to_string()
            };
            let task = json!({"title": {"type": "string"}, "type": {"type": "string"}, "scope": {"type": "string"},
                "summary": {"type": "string"}, "goals": texts, "acceptance_criteria": texts, "labels": texts,
                "issue": {"type": "object"}});
            project.write(".takt/schemas/followup-task.json", &schema(task));
            project.write(
                ".takt/schemas/pr-followup-task.json",
                &schema(json!({"task_markdown": {"type": "string"}})),
            );
        });
        let settings =
            scene.project.read("cuegate.toml").replace("max_iterations = 30", "max_iterations = 12");
        scene.project.write("cuegate.toml", &format!("{settings}[takt]\nbuiltins = {builtins:?}\n"));
        scene.project.git(&["commit", "--quiet", "--all", "--message", "settings"]);
        let data = |data: Value| json!({"response": "Done.", "structured": data});
        let task = json!({"action": "enqueue_new_task", "title": "Cache the index", "type": "feature", "scope": "index",
            "summary": "Cache it", "goals": ["Be quick"], "acceptance_criteria": ["Starts in 1 s", "Stays correct"],
            "labels": [], "issue": {"create": false}});
        scene.project.script("script.json", &json!([
            {"step": "plan_from_existing_pr", "output": data(json!({"action": "prepare_merge", "task_markdown": ""}))},
            {"step": "resolve_conflicts@resolve", "output": {"files": [{"path": "start.txt", "content": "quick, then slower\n"}]}},
            {"step": "plan_from_issue", "output": data(task)},
        ]));
        scene
    }

    fn check_loop(&self) {
        let status = self.project.status();
        let log = || self.project.run(&["log", "last"]).stdout;
        assert_eq!(status["state"], "exhausted", "{}", log());
        let effects = [
            "git.sync_pull_request done",
            "git.sync_pull_request done",
            "git.sync_pull_request done",
            "github.merge_pull_request done",
            "queue.add done",
        ];
        assert_eq!(self.effects(), effects, "{}", log());
        assert_eq!((self.count("PUT", "/pulls/41/merge"), self.count("POST", "/issues")), (1, 0));
        let of_remote = |args: &[&str]| self.project.git(&[&["-C", &self.remote], args].concat());
        assert_eq!(of_remote(&["show", "takt/quick:start.txt"]), "quick, then slower\n");
        let list = self.project.read(".takt/tasks.yaml");
        assert_eq!(
            (list.matches("status: \"pending\"").count(), list.matches("issue: 7").count()),
            (1, 1),
            "{list}"
        );
        let replayed = self.project.run(&["replay"]);
        assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    }

    fn check_merged(&self, effects: &[String]) {
        let status = self.project.status();
        let log = || self.project.run(&["log", "last"]).stdout;
        assert_eq!(status["state"], "completed", "{}", log());
        assert_eq!(
            effects,
            [
                "git.sync_pull_request done",
                "git.sync_pull_request done",
                "git.sync_pull_request done",
                "github.comment_pull_request done",
                "github.merge_pull_request done",
                "queue.add done"
            ],
            "{}",
            log()
        );
        assert_eq!(self.count("POST", "/issues/41/comments"), 1);
        let comment = self.github.comments(41).join("");
        assert!(
            comment.ends_with("Merged with 7 points.") && comment.starts_with("<!-- cuegate run "),
            "{comment}"
        );
        assert_eq!((self.count("PUT", "/pulls/41/merge"), self.count("POST", "/issues")), (1, 1));
        assert!(self.github.pulls().iter().any(|pull| pull["number"] == 42 && pull["state"] == "open"));
        let of_remote = |args: &[&str]| self.project.git(&[&["-C", &self.remote], args].concat());
        assert_eq!(of_remote(&["show", "takt/quick:start.txt"]), "quick, then slower\n");
        assert_eq!(of_remote(&["rev-list", "--count", "--merges", "takt/quick"]).trim(), "1");
        assert_eq!(of_remote(&["rev-parse", "improve"]), of_remote(&["rev-parse", "main"]));
        assert_eq!(self.project.git(&["status", "--porcelain"]), "");
        let list = self.project.read(".takt/tasks.yaml");
        assert_eq!(list.matches("status: \"pending\"").count(), 1, "{list}");
        for part in [
            "workflow: \"default\"",
            "base_branch: \"improve\"",
            "auto_pr: true",
            "issue: 43",
            "managed_pr: true",
        ] {
            assert!(list.contains(part), "{part}: {list}");
        }
        let created = self.github.changes().into_iter().find(|seen| seen.path.ends_with("/issues")).unwrap();
        assert_eq!(created.body["title"], "Cache the index");
        assert!(list.contains("name: \"cache-it-"), "{list}");
        let folder = list.lines().find_map(|line| line.trim().strip_prefix("task_dir: \"")).unwrap();
        let order = self.project.read(&format!("{}/order.md", folder.trim_end_matches('"')));
        assert_eq!(
            order,
            "## Summary\n\nCache it\n\n## Goals\n\n- Be quick\n- Stay correct\n\n## Acceptance Criteria\n\n- Starts in 1 s"
        );
        let replayed = self.project.run(&["replay"]);
        assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    }
}

const RUN: [&str; 5] = ["run", "keeper", "Keep it in order", "--script", "script.json"];

#[test]
fn what_was_read_decides_and_what_was_decided_is_done() {
    let scene = Scene::new(7);
    let ran = scene.project.run(&RUN);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    scene.check();
    let prompts = scene.project.prompts();
    assert!(prompts[0].contains("Judge #41 of"), "{}", prompts[0]);
    assert!(prompts[0].contains("one of 1."), "the other pull request is of a person: {}", prompts[0]);
    assert!(prompts[1].contains("<<<<<<<") && prompts[1].contains("start.txt"), "{}", prompts[1]);
    assert!(prompts[2].contains("Plan what comes after #7"), "{}", prompts[2]);
    // The task that it added is for another workflow, and left to whoever runs that.
    let work = ["work", "keeper", "--from", ".takt/tasks.yaml", "--dry-run", "--script", "script.json"];
    let shown = scene.project.run(&work);
    assert!(
        format!("{}{}", shown.stdout, shown.stderr).contains("it is for the workflow `default`"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
}

#[test]
fn tasks_of_the_list_are_worked_off_and_their_states_noted() {
    let project = Project::empty();
    project.write(
        ".takt/workflows/small.yaml",
        "name: small\nmax_steps: 3\nsteps:\n  - name: work\n    edit: true\n    instruction: Do it.\n    rules:\n      \
         - { condition: Done, next: COMPLETE }\n      - { condition: Not possible, next: ABORT }\n",
    );
    project.write(".gitignore", "/.cuegate\n/.takt/tasks*\nscript.json\n");
    project.init();
    project.write(
        ".takt/tasks.yaml",
        "tasks:\n  - name: one\n    status: pending\n    task_dir: .takt/tasks/one\n    workflow: small\n  - name: two\n    \
         status: pending\n    content: Second\n  - name: old\n    status: completed\n    content: Third\n  - name: gone\n    \
         status: pending\n    task_dir: .takt/tasks/gone\n  - { name: flow, status: pending, content: Fourth }\n  - name: odd\n    \
         status: pnding\n    content: Fifth\n  - name: based\n    status: pending\n    base_branch: improve\n    content: Sixth\n",
    );
    project.write(".takt/tasks/one/order.md", "# First\n");
    let ends = |outcome: &str| json!({"step": "work", "output": {"outcome": outcome, "response": "R"}});
    project.script("script.json", &json!([ends("Done"), ends("Not possible")]));
    let script = project.path().join("script.json");
    let work = ["work", "small", "--from", ".takt/tasks.yaml", "--script", script.to_str().unwrap()];
    let ran = project.run(&work);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for part in [
        "failed to read `.takt/tasks/gone/order.md`",
        "line 15: its status cannot be changed",
        "line 16: `pnding` is no status",
        "it starts from the branch `improve`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let list = project.read(".takt/tasks.yaml");
    let state = |name: &str| {
        let lines = list.lines().skip_while(|line| !line.contains(&format!("name: {name}")));
        lines.map(str::trim).find_map(|line| line.strip_prefix("status: ")).unwrap().to_owned()
    };
    assert_eq!(
        ["one", "two", "old", "gone"].map(state),
        ["completed", "completed", "completed", "pending"],
        "{list}"
    );
    assert_eq!(list.matches("run_slug: ").count(), 2, "{list}");
    // Nothing is left to do, whatever earlier batches did.
    let again = project.run(&work);
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    assert_eq!(project.read(".takt/tasks.yaml"), list);
    // What could not be noted then is noted when the batch goes on, but not over what a person wrote since.
    let unnoted = list.replacen("status: completed", "status: running", 1);
    let wanted = list.replacen("status: completed", "status: pending", 2).replacen(
        "status: pending",
        "status: completed",
        1,
    );
    project.write(".takt/tasks.yaml", &unnoted.replacen("status: completed", "status: pending", 1));
    let batch = said.split("batch ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let batch = batch.trim_end_matches([':', ',', ';']);
    let on = project.run(&["work", &format!("--resume={batch}")]);
    assert_eq!(on.code, 0, "{}{}", on.stdout, on.stderr);
    assert_eq!(project.read(".takt/tasks.yaml"), wanted);
}

#[test]
fn a_pull_request_is_closed_and_one_that_is_gone_is_a_result() {
    let scene = Scene::new(2);
    let ran = scene.project.run(&RUN);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(scene.effects(), ["github.close_pull_request done", "queue.add done"]);
    assert!(scene.github.pulls().iter().any(|pull| pull["number"] == 41 && pull["state"] == "closed"));
    // No rule is about a failure.
    let scene = Scene::new(2);
    scene.github.fault(cuegate_testkit::github::Fault::NoRight, "PATCH", "/pulls/41", 1);
    let ran = scene.project.run(&RUN);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("no rule of `drop` holds"), "{}", ran.stderr);
}

#[test]
fn without_a_bound_or_a_repository_nothing_starts() {
    let scene = Scene::new(7);
    let settings = scene.project.read("cuegate.toml");
    scene.project.write("cuegate.toml", &settings.replace("[run]\nmax_iterations = 30\n", ""));
    scene.project.git(&["commit", "--quiet", "--all", "--message", "no bound"]);
    let ran = scene.project.run(&RUN);
    assert!(
        ran.code == 2 && ran.stderr.contains("`max_steps: infinite` needs a bound"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    for command in [["price", "keeper"], ["simulate", "keeper"]] {
        let ran = scene.project.run(&[&command[..], &["--max-iterations", "30"]].concat());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    let ran = scene.project.run(&[&RUN[..], &["--max-iterations", "30"]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    scene.check();
    let scene = Scene::new(7);
    let ran = scene.project.run(&[&RUN[..], &["--no-github"]].concat());
    assert!(
        ran.code == 1 && ran.stderr.contains("the run has no repository on GitHub"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_service_that_is_away_is_asked_again() {
    let scene = Scene::new(2);
    scene.github.fault(cuegate_testkit::github::Fault::BeforeEffect, "GET", "/pulls", 1);
    let ran = scene.project.run(&RUN);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("could not read, and tries again"), "{}", ran.stderr);
}

#[test]
fn killed_anywhere_each_effect_is_done_once() {
    let wanted = crate::support::kills(KILLS);
    let (mut kills, mut run) = (0, 0);
    while kills < wanted {
        run += 1;
        assert!(run < 10 * wanted, "no kill hits a run");
        let scene = Scene::new(7);
        kills += kill_one_run(&scene, &RUN, run);
        scene.check_after_kills();
    }
    println!("{kills} kills in {run} runs");
}

/// The loop that TAKT brings, where its definitions are at hand. It has no end but the bound.
#[test]
fn the_loop_of_takt_itself_does_each_effect_once() {
    let Some(builtins) = builtins() else { return };
    let workflow = std::fs::read_to_string(builtins.join("en/workflows/auto-improvement-loop.yaml")).unwrap();
    let wanted = crate::support::kills(10);
    let (mut kills, mut run) = (0, 0);
    while kills < wanted {
        run += 1;
        assert!(run < 10 * wanted, "no kill hits a run");
        let scene = Scene::of_takt(&workflow, &builtins);
        kills += kill_one_run(
            &scene,
            &["run", "auto-improvement-loop", "Improve it", "--script", "script.json"],
            run,
        );
        scene.check_loop();
    }
    println!("{kills} kills in {run} runs");
}

/// Kills one run up to five times and resumes it until it ends. Returns the number of kills.
fn kill_one_run(scene: &Scene, begin: &[&str], seed: usize) -> usize {
    let project = &scene.project;
    let (mut kills, mut pause) = (0, 60 + (seed * 37 % 23) * 40);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let args = if project.runs() > 0 { vec!["resume"] } else { begin.to_vec() };
        let mut child = project.start(&args);
        let killed = Instant::now() + Duration::from_millis(pause as u64);
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() >= killed && kills < 5 {
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if let Some(status) = ended {
            // Killed after its last record, it has ended and is not resumed. An unknown effect can fail it.
            assert!(matches!(status.code(), Some(0..=2 | 5)), "{:?}", project.run(&["log"]).stdout);
            break;
        }
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
        kills += 1;
        pause = 40 + (pause * 7 + seed * 13) % 700;
        assert!(Instant::now() < deadline, "{}", project.run(&["log"]).stdout);
    }
    kills
}
