//! Validators run once before the first ask.

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::json;

use crate::{agent::registry::small, agents::Set, support::Ran};

/// A run by Claude of an agent whose validator runs this command. The agent writes `fixed`.
fn run(command: &str, config: &str, more: &[&str]) -> (Set, Ran) {
    let registry = small()
        .runner(json!({"boundaries": {"permissionMode": "acceptEdits"}}))
        .validator(command, json!({"action": "retry", "maxAttempts": 1}));
    let answer = |action: &str| json!({"next_action": {"action": action}});
    let scenario = Scenario::new()
        .usage(10, 0, 10)
        .reply(Reply::to("Do work").write("fixed", "x").json(answer("handoff")))
        .reply(Reply::to("Do close").json(answer("closing")).for_ever());
    let set = Set::of("claude", registry.project(json!([])), scenario);
    let toml = set.project.read("cuegate.toml");
    set.project.write("cuegate.toml", &format!("{config}\n{toml}"));
    let ran = set.run(&[&["run", "agent", "--provider", "claude"], more].concat());
    set.project.all_gone();
    (set, ran)
}

#[test]
fn a_validator_that_fails_before_any_change_is_reported() {
    if !offline::inside() {
        return;
    }
    let command =
        "echo made by the validator > made.log; test -e fixed || { echo Error: not fixed >&2; exit 1; }";
    let said = "fails before any change: exit 1\n  | Error: not fixed\n";
    let (set, ran) = run(command, "", &[]);
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.stderr, set.standin.unmatched());
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    // What the validator wrote is not the agent's.
    assert_eq!(set.project.status()["steps"][0]["changed_files"], json!(["fixed"]));

    let (set, ran) = run(command, "[run]\nbaseline = \"refuse\"", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(said) && ran.stderr.contains("`--no-baseline`"), "{}", ran.stderr);
    assert_eq!((set.standin.requests().len(), set.project.runs()), (0, 0), "no agent was called");

    for (config, more) in [("[run]\nbaseline = \"off\"", &[][..]), ("", &["--no-baseline"])] {
        let (_, ran) = run(command, config, more);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!ran.stderr.contains("before any change"), "{}", ran.stderr);
    }
    let (_, ran) = run("true", "", &[]);
    assert!(ran.code == 0 && !ran.stderr.contains("before any change"), "{}", ran.stderr);
}

/// A run of `run` that has to be refused: no agent was called, and the message says this.
fn refused(command: &str, config: &str, says: &[&str]) {
    let (set, ran) = run(command, config, &[]);
    assert_eq!((ran.code, set.standin.requests().len()), (4, 0), "no agent was called: {}", ran.stderr);
    for said in says.iter().chain(&["`--no-baseline`"]) {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn a_run_whose_validator_lacks_something_here_is_not_started() {
    if !offline::inside() {
        return;
    }
    let failing = |said: &str| format!("test -e fixed || {{ echo \"{said}\" >&2; exit 1; }}");
    for config in ["", "[run]\nbaseline = \"refuse\""] {
        refused(
            &failing("ModuleNotFoundError: No module named 'pytest'"),
            config,
            &["the module `pytest` is not installed"],
        );
        refused("no-such-program --all", config, &["the command `no-such-program` is not installed"]);
    }
    let (_, ran) = run(&failing("No module named x"), "[run]\nbaseline = \"report\"", &[]);
    assert!(ran.code == 0 && ran.stderr.contains("note: "), "{}", ran.stderr);
    let (_, ran) = run(&failing("Error: Cannot find module './new'"), "", &[]);
    assert_eq!(ran.code, 0, "writing a file of the project may be the task: {}", ran.stderr);
}

#[test]
fn what_the_sandbox_keeps_from_a_validator_is_named_with_its_setting() {
    if !offline::inside() {
        return;
    }
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let connects = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' || {{ echo connect ECONNREFUSED 127.0.0.1:{port}; exit 1; }}"
    );
    let says = format!("hosts = [\"127.0.0.1:{port}\"]");
    refused(&connects, "", &["fails in the sandbox", &says, "[sandbox]"]);
    // A variable that is set here, as it is for every test.
    let reads = "test -n \"$CARGO_MANIFEST_DIR\" || { echo CARGO_MANIFEST_DIR is not set; exit 1; }";
    refused(reads, "", &["the variable `CARGO_MANIFEST_DIR`", "environment = [\"CARGO_MANIFEST_DIR\"]"]);
    let (_, ran) = run(reads, "[sandbox]\nenvironment = [\"CARGO_MANIFEST_DIR\"]\n", &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // A program in the home folder.
    let home = tempfile::TempDir::new_in(std::env::home_dir().unwrap()).unwrap();
    let tool = home.path().join("tool");
    std::fs::write(&tool, "#!/bin/sh\ntrue\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let says = format!("readable = [{:?}]", home.path());
    refused(tool.to_str().unwrap(), "", &["the sandbox hides `", &says, "[sandbox]"]);
    // A folder of a tool that is read-only inside, and a socket that is not there.
    let folder = home.path().file_name().unwrap().to_str().unwrap();
    if folder.starts_with('.') {
        let tells =
            format!("echo \"touch: cannot touch '$HOME/{folder}/lock': Read-only file system\"; exit 1");
        refused(&tells, "", &["read-only in the sandbox", &format!("caches = [\"~/{folder}\"]")]);
    }
    let socket = home.path().join("service.sock");
    let _service = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let tells =
        format!("echo Cannot connect to the daemon at unix://{}. Is it running?; exit 1", socket.display());
    refused(&tells, "", &["which the sandbox hides", "hosts = [", "validators = \"outside\""]);
    // A host that the output does not name explains nothing: the agent may repair what fails.
    let asks = "curl -s -m 3 http://telemetry.example.com > /dev/null 2>&1; test -e fixed";
    let (_, ran) = run(asks, "", &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn packages_that_a_worktree_lacks_are_named_with_the_setup_command() {
    if !offline::inside() {
        return;
    }
    let test =
        "test -e node_modules/leftpad || { echo \"Error: Cannot find module 'leftpad'\" >&2; exit 1; }";
    let registry = small().validator(test, json!({"action": "retry", "maxAttempts": 1}));
    let set = Set::of("claude", registry.project(json!([])), Scenario::new());
    set.project.write("package-lock.json", "{}");
    set.project.write(".gitignore", "node_modules/\n");
    set.project.git(&["add", "package-lock.json", ".gitignore"]);
    set.project.git(&["commit", "--quiet", "--message", "packages"]);
    set.project.write("node_modules/leftpad", "");
    let ran = set.run(&["run", "agent", "--provider", "claude", "--worktree"]);
    assert_eq!((ran.code, set.standin.requests().len()), (4, 0), "{}", ran.stderr);
    for said in ["passes in your own working tree", "`setup = \"npm ci\"` under `[worktree]`"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    // A queue stops before its second task.
    set.project.write("tasks.txt", "one\ntwo\nthree\nfour\n");
    let ran = set.run(&["work", "agent", "--from", "tasks.txt", "--provider", "claude"]);
    assert_eq!(set.standin.requests().len(), 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches(" starts: ").count(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("no further task is taken") || ran.stderr.contains("cannot start here"),
        "{}",
        ran.stderr
    );
}
