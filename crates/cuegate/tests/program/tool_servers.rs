//! Servers of the Model Context Protocol whose tools agents get.

use cuegate_testkit::{
    offline,
    standin::{Act, Reply, Scenario},
};
use serde_json::{Value, json};

use crate::{
    agents::Set,
    attacks::without_bwrap,
    support::{Project, Ran},
};

/// A server with one tool, which writes what it was given. Each line is a message.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case $line in
    *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"press","version":"1"}}' ;;
    *'"tools/list"'*) r='{"tools":[{"name":"stamp","description":"Stamps.","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"tools/call"'*)
      printf '%s %s %s' "$1" "$PLAIN" "$STAMP_KEY" | tr a-z A-Z > stamp.txt
      r='{"content":[{"type":"text","text":"it is stamped"}]}' ;;
    *) r='{}' ;;
  esac
  [ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

pub const WORKFLOW: &str = "\
name: it
max_steps: 4
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Stamp it.
    rules:
      - { condition: Done, next: COMPLETE }
";

pub const KEY: &str = "a-key-that-nobody-sees";

/// What the server wrote, if its tool was called with all that it was given.
pub const STAMPED: &str = "FIRST WORD A-KEY-THAT-NOBODY-SEES";

/// The model calls the tool and is done. Claude Code loads tools of servers only when the model asks for them.
pub fn stamps(find_tools: bool) -> Scenario {
    let call = |tool: &str, input: Value| Act::Call { tool: tool.to_owned(), input };
    let done = json!({ "outcome": "Done", "response": "It is stamped." });
    let mut scenario = Scenario::new();
    let mut reply = Reply::to("Stamp it.");
    if find_tools {
        let query = json!({ "query": "select:mcp__press__stamp", "max_results": 10 });
        scenario = scenario.reply(reply.act(call("ToolSearch", query)));
        reply = Reply::to("Tool loaded");
    }
    scenario.reply(reply.act(call("mcp__press__stamp", json!({}))).json(done))
}

/// Commits a workflow and the server.
pub fn put_workflow(project: &Project, workflow: &str) {
    project.write("press.sh", SERVER);
    project.write(".takt/workflows/it.yaml", workflow);
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "-m", "the press"]);
}

fn office(agent: &'static str, workflow: &str, settings: &str) -> Set {
    let project = Project::example();
    put_workflow(&project, workflow);
    let set = Set::of(agent, project, stamps(agent == "claude"));
    set.project.write("cuegate.toml", &format!("{}{settings}", set.project.read("cuegate.toml")));
    set
}

/// Settings with the server, for these roles.
pub fn settings(set_for: &str) -> String {
    format!(
        "[mcp.press]\ncommand = \"sh\"\nargs = [\"press.sh\", \"first\"]\n\
         env = {{ PLAIN = \"word\", STAMP_KEY = \"${{KEY_OF_PRESS}}\" }}\n{set_for}"
    )
}

fn run(set: &Set, agent: &str, path: Option<&std::path::Path>) -> Ran {
    let mut command = set.command(&["run", "it", "Do it", "--json", "--provider", agent]);
    command.env("KEY_OF_PRESS", KEY);
    if let Some(path) = path {
        let bin = offline::agents().bin;
        command.env("PATH", format!("{}:{}", bin.display(), path.display()));
    }
    Ran::of(command.output().unwrap())
}

fn assert_stamped(set: &Set, ran: &Ran) {
    assert_eq!(ran.code, 0, "{}\n{:#?}", ran.stderr, set.standin.unmatched());
    assert_eq!(set.project.read("stamp.txt"), STAMPED, "{}", ran.stderr);
    assert!(ran.stderr.contains("tools of the MCP server press: `work`"), "{}", ran.stderr);
    // The key is in no record and in no file of the run.
    let found = std::process::Command::new("grep")
        .args(["--recursive", "--files-with-matches", KEY, ".cuegate"])
        .current_dir(set.project.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    set.project.all_gone();
}

fn uses_the_tools(agent: &'static str) {
    if !offline::inside() {
        return;
    }
    let set = office(agent, WORKFLOW, &settings(""));
    assert_stamped(&set, &run(&set, agent, None));
    let partial = without_bwrap();
    let set = office(agent, WORKFLOW, &settings("for = [\"work\"]\n"));
    assert_stamped(&set, &run(&set, agent, Some(partial.path())));
}

#[test]
fn claude_uses_the_tools_of_a_server() {
    uses_the_tools("claude");
}

#[test]
fn codex_uses_the_tools_of_a_server() {
    uses_the_tools("codex");
}

/// An agent that logs the servers of each call.
const LOGGER: &str = r#"#!/bin/sh
read -r ask
printf '%s\n' "$ask" >> "$CALLS"
[ ! -f "$CALLS.out" ] || { echo '{"event":"error","class":"auth","message":"it is out"}'; exit 0; }
printf '{"event":"usage","input_tokens":1,"output_tokens":1}\n'
printf '{"event":"answer","output":{"outcome":"Done","response":"ok"}}\n'
"#;

const TWO_STEPS: &str = "\
name: it
max_steps: 4
initial_step: plan
steps:
  - name: plan
    tags: [think]
    edit: false
    instruction: Plan it.
    rules:
      - { condition: Done, next: work }
  - name: work
    edit: true
    instruction: Work.
    mcp_servers:
      own: { type: stdio, command: own-server, args: [\"${NAME_OF_IT}\"] }
    rules:
      - { condition: Done, next: COMPLETE }
";

/// A project whose agent logs, and the folder of that log.
struct Logged {
    project: Project,
    folder: tempfile::TempDir,
}

impl Logged {
    fn new(workflow: &str, settings: &str) -> Logged {
        let (project, folder) = (Project::empty(), tempfile::tempdir().unwrap());
        project.write(".takt/workflows/it.yaml", workflow);
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(folder.path().join("logger.sh"), LOGGER).unwrap();
        let toml = format!(
            "[run]\nbaseline = \"off\"\n[budget]\nunlimited = true\n[agents.log]\nexec = [\"sh\", {:?}]\n\
             schema = true\nedits = true\nstate = [{:?}]\nenv = {{ CALLS = {:?} }}\n{settings}",
            at("logger.sh"),
            folder.path().display().to_string(),
            at("calls")
        );
        project.write("cuegate.toml", &toml);
        project.init();
        Logged { project, folder }
    }

    fn run(&self) -> Ran {
        self.run_with("log")
    }

    fn run_with(&self, agent: &str) -> Ran {
        let mut command = self.project.command(&["run", "it", "Do it", "--json", "--provider", agent]);
        Ran::of(command.env("NAME_OF_IT", "paul").output().unwrap())
    }

    /// Each call: the step and its servers.
    fn servers(&self) -> Vec<(String, Value)> {
        let log = std::fs::read_to_string(self.folder.path().join("calls")).unwrap();
        let asks = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        asks.map(|ask| (ask["step"].as_str().unwrap().to_owned(), ask["mcp_servers"].clone())).collect()
    }
}

#[test]
fn a_step_has_its_own_servers_where_takt_allows_it() {
    let logged = Logged::new(TWO_STEPS, "");
    let ran = logged.run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let hint = "note: `work` gets no tools of `own`: allow it by `workflow_mcp_servers: { stdio: true }` in \
                `.takt/config.yaml`, or define it as `[mcp.own]` in cuegate.toml";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    assert_eq!(logged.servers(), [("plan".to_owned(), json!({})), ("work".to_owned(), json!({}))]);

    let logged = Logged::new(TWO_STEPS, "");
    logged.project.write(".takt/config.yaml", "workflow_mcp_servers: { stdio: true }\n");
    let ran = logged.run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let own = json!({ "own": { "type": "stdio", "command": "own-server", "args": ["paul"] } });
    assert_eq!(logged.servers(), [("plan".to_owned(), json!({})), ("work".to_owned(), own)]);
}

#[test]
fn the_servers_of_runtime_yaml_are_assigned_as_in_takt() {
    let workflow = TWO_STEPS.replace(
        "    mcp_servers:\n      own: { type: stdio, command: own-server, args: [\"${NAME_OF_IT}\"] }\n",
        "",
    );
    let logged = Logged::new(
        &workflow,
        "[mcp.all]\ncommand = \"all\"\n[mcp.thinker]\ncommand = \"t\"\nfor = [\"tag:think\"]\n",
    );
    let runtime = "
mcp:
  servers:
    common: { command: c }
    hub: { type: http, url: \"https://hub.example/mcp\", headers: { Authorization: \"Bearer ${NAME_OF_IT}\" } }
    unused: { type: sse, url: \"https://hub.example/sse\" }
  defaults: { servers: [common] }
  targets:
    tags: { think: { servers: [hub] } }
    steps: { it/work: { exclude: [common] } }
";
    logged.project.write(".takt/runtime.yaml", runtime);
    let ran = logged.run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let all = json!({ "type": "stdio", "command": "all" });
    let plan = json!({
        "all": all,
        "thinker": { "type": "stdio", "command": "t" },
        "common": { "type": "stdio", "command": "c" },
        "hub": { "type": "http", "url": "https://hub.example/mcp", "headers": { "Authorization": "Bearer paul" } },
    });
    assert_eq!(logged.servers(), [("plan".to_owned(), plan), ("work".to_owned(), json!({ "all": all }))]);
    assert!(ran.stderr.contains("tools of the MCP server all: `plan`, `work`"), "{}", ran.stderr);
}

#[test]
fn wrong_servers_are_errors_before_the_start() {
    let plain = TWO_STEPS.replace("${NAME_OF_IT}", "x");
    let runtime = "mcp: { servers: { a: { command: a } }, defaults: { servers: [b] } }\n";
    let known = runtime.replace("[b]", "[a]");
    for (settings, runtime, what) in [
        (
            "[mcp.a]\ncommand = \"a\"\nargs = [\"${NOT_SET_AT_ALL}\"]\n",
            "",
            "the variable `NOT_SET_AT_ALL`, which the MCP server `a` names, is not set",
        ),
        (
            "[mcp.a]\ncommand = \"a\"\nenv = { A_TOKEN = \"abc\" }\n",
            "",
            "has the value of `A_TOKEN` written out",
        ),
        (
            "[mcp.a]\nurl = \"https://a\"\nheaders = { Authorization = \"abc\" }\n",
            "",
            "has the value of `Authorization` written out",
        ),
        (
            "[mcp.a]\nurl = \"https://a\"\ncommand = \"b\"\n",
            "",
            "in `[mcp.a]`: a server of type `stdio` has `command`, `args` and `env`",
        ),
        ("[mcp.\"a b\"]\ncommand = \"a\"\n", "", "`a b` is no name of a server"),
        (
            "[mcp.a]\ncommand = \"a\"\nfor = [\"report\"]\n",
            "",
            "a report is written by the agent of its step",
        ),
        ("", runtime, "undefined MCP server `b` in `"),
        ("", known.as_str(), "`mcp_servers` of `work` and `mcp` in `"),
        ("", "mcp: { servers: { a: { cmd: a } } }\n", "unknown field `cmd`"),
        (
            "",
            "mcp: { servers: { a: { command: a } }, targets: { tags: { no: { exclude: [c] } } } }\n",
            "server `c` in `",
        ),
        ("[mcp.a]\nurl = \"h/mcp\"\n", "", "invalid MCP server `a`: its `url` is no address"),
    ] {
        let logged = Logged::new(&plain, settings);
        if !runtime.is_empty() {
            logged.project.write(".takt/runtime.yaml", runtime);
        }
        let ran = logged.run();
        assert!(ran.code != 0 && ran.stderr.contains(what), "{what}\n{}", ran.stderr);
        assert_eq!(logged.project.runs(), 0);
    }
}

#[test]
fn a_run_keeps_its_servers_and_the_effort_of_its_agent() {
    let logged = Logged::new(WORKFLOW, "[mcp.all]\ncommand = \"all\"\nargs = [\"${NAME_OF_IT}\"]\n");
    std::fs::write(logged.folder.path().join("calls.out"), "").unwrap();
    let ran = logged.run_with("log:m#high");
    assert!(ran.code == 4 && ran.stderr.contains("effort of log: high"), "{}", ran.stderr);
    std::fs::remove_file(logged.folder.path().join("calls.out")).unwrap();
    let toml = logged.project.read("cuegate.toml");
    logged.project.write("cuegate.toml", &toml[..toml.find("[mcp.all]").unwrap()]);
    let resumed = logged.project.run(&["resume"]);
    assert!(resumed.code != 0 && resumed.stderr.contains("the variable `NAME_OF_IT`"), "{}", resumed.stderr);
    let mut resumed = logged.project.command(&["resume"]);
    let resumed = Ran::of(resumed.env("NAME_OF_IT", "paul").output().unwrap());
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let log = std::fs::read_to_string(logged.folder.path().join("calls")).unwrap();
    let asks: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(asks.len(), 2);
    for ask in asks {
        assert_eq!((&ask["model"], &ask["effort"]), (&json!("m"), &json!("high")));
        assert_eq!(ask["mcp_servers"]["all"]["args"], json!(["paul"]));
    }
}

/// An agent that could name servers would get the variables of the user, and the network.
#[test]
fn settings_that_an_agent_creates_are_not_obeyed() {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write("cuegate.toml", "[budget]\nunlimited = true\n");
    project.init();
    let evil = "printf 'mcp: {}' > .takt/runtime.yaml; printf 'a: 1' > .takt/config.yaml";
    let answer = json!({ "runs": [evil], "output": { "outcome": "Done", "response": "ok" } });
    project.script("evil.json", &json!([answer]));
    let ran = project.run(&["run", "it", "Do it", "--json", "--script", "evil.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for name in ["runtime.yaml", "config.yaml"] {
        assert!(!project.path().join(".takt").join(name).exists());
        assert!(project.path().join(format!(".takt/{name}.by-agent")).exists(), "{}", ran.stderr);
    }
}

#[test]
fn a_link_of_an_agent_leads_nobody_out_of_the_tree() {
    let (project, outside) = (Project::empty(), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    project.write("wf/it.yaml", WORKFLOW);
    project.write("conf/cuegate.toml", "[budget]\nunlimited = true\n");
    std::os::unix::fs::symlink("conf/cuegate.toml", project.path().join("cuegate.toml")).unwrap();
    project.init();
    let theirs = outside.path().join("runtime.yaml");
    std::fs::write(&theirs, "of the user").unwrap();
    let evil =
        format!("ln -s '{}' .takt; rm cuegate.toml; echo '[mcp.z]' > cuegate.toml", outside.path().display());
    let answer = json!({ "runs": [evil], "output": { "outcome": "Done", "response": "ok" } });
    project.script("evil.json", &json!([answer]));
    let ran = project.run(&["run", "wf/it.yaml", "Do it", "--json", "--script", "evil.json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(theirs.exists(), "{}", ran.stderr);
    assert!(project.path().join(".takt.by-agent").is_symlink(), "{}", ran.stderr);
    assert_eq!(project.read("cuegate.toml.by-agent"), "[mcp.z]\n");
}
