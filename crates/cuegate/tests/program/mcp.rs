//! The tools of `cuegate mcp`, as a client on standard input and output calls them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use cuegate_testkit::{
    offline,
    standin::{Act, Reply, Scenario, Standin},
};
use serde_json::{Value, json};

use crate::support::{Project, until};

const WORKFLOW: &str = r#"name: it
max_steps: 8
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Do it.
    rules:
      - { condition: Done, next: COMPLETE }
      - { condition: A decision is needed, next: work, requires_user_input: true }
"#;

/// An agent that asks a question first if there is a file `question`, and takes its time if there is a file `slow`.
const AGENT: &str = r#"#!/bin/sh
read -r ask
printf '{"event":"usage","input_tokens":100,"output_tokens":10,"cost_usd":0.01}\n'
while [ -f "$OUTSIDE/slow" ]; do sleep 0.05; done
if [ -f "$OUTSIDE/nested" ]; then
  (cd "$PROJECT" && "$CUEGATE" run it again --budget-calls 3) > "$OUTSIDE/nested.out" 2>&1
  echo "exit $?" >> "$OUTSIDE/nested.out"
fi
if [ -f "$OUTSIDE/question" ]; then
  rm "$OUTSIDE/question"
  printf '{"event":"answer","output":{"outcome":"A decision is needed","response":"%sBlue or green?"}}\n' "$(head -c 6000 /dev/zero | tr '\0' x | sed 's/x/日本/g')"
  exit 0
fi
echo done > WORK.txt
printf '{"event":"answer","output":{"outcome":"Done","response":"ok"}}\n'
"#;

struct Office {
    project: Project,
}

impl Office {
    fn new(settings: &str) -> Office {
        let project = Project::empty();
        project.write(".takt/workflows/it.yaml", WORKFLOW);
        let outside = project.path().with_extension("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("agent.sh"), AGENT).unwrap();
        let outside = outside.display();
        project.write(
            "cuegate.toml",
            &format!(
                "{settings}\n[run]\nprovider = \"mine\"\nbaseline = \"off\"\n[agents.mine]\nexec = [\"sh\", \
                 \"{outside}/agent.sh\"]\nedits = true\nschema = true\nstate = [\"{outside}\"]\n\
                 [agents.mine.env]\nOUTSIDE = \"{outside}\"\nCUEGATE = \"{}\"\nPROJECT = \"{}\"\n",
                env!("CARGO_BIN_EXE_cuegate"),
                project.path().display(),
            ),
        );
        project.init();
        Office { project }
    }

    fn put(&self, name: &str) {
        fs::write(self.project.path().with_extension("outside").join(name), "").unwrap();
    }

    fn take(&self, name: &str) {
        fs::remove_file(self.project.path().with_extension("outside").join(name)).unwrap();
    }

    fn client(&self) -> Client {
        Client::of(self.project.command(&["mcp"]))
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        fs::remove_dir_all(self.project.path().with_extension("outside")).ok();
    }
}

struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    fn of(mut command: Command) -> Client {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Client { child, input, output, asked: 0 }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        writeln!(self.input, "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
        assert_eq!(reply["id"], self.asked, "{reply}");
        reply
    }

    /// The text of a tool, and whether it failed.
    fn text(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let reply = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &reply["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
        assert!(text.len() <= 2_048, "{} bytes: {text}", text.len());
        (text, result["isError"] == true)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let (text, failed) = self.text(tool, arguments);
        assert!(!failed, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let (text, failed) = self.text(tool, arguments);
        assert!(failed, "{text}");
        text
    }

    fn start(&mut self, key: &str) -> Value {
        self.call(
            "start",
            json!({ "workflow": "it", "task": "Do it", "limits": { "calls": 12 }, "key": key }),
        )
    }

    /// Waits until the run has ended or asks something.
    fn wait(&mut self, run: &str) -> Value {
        let (mut after, mut news) = (Value::Null, Vec::new());
        loop {
            let mut arguments = json!({ "run": run });
            if !after.is_null() {
                arguments["after"] = after;
            }
            let mut reply = self.call("wait", arguments);
            news.extend(reply["news"].as_array().unwrap().clone());
            if (reply["ended"] == true || reply["state"] != "running") && reply["more"].is_null() {
                reply["news"] = news.into();
                return reply;
            }
            after = reply["cursor"].clone();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn it_speaks_the_versions_of_clients() {
    let office = Office::new("");
    let mut client = office.client();
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let reply = client.ask("initialize", json!({ "protocolVersion": version }));
        assert_eq!(reply["result"]["protocolVersion"], version);
    }
    assert_eq!(client.ask("server/discover", json!({}))["result"]["supportedVersions"][0], "2026-07-28");
    let reply = client.ask("tools/list", json!({}));
    let tools: Vec<(&str, bool)> = reply["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["annotations"]["readOnlyHint"] == true))
        .collect();
    assert_eq!(tools, [("check", true), ("price", true), ("start", false), ("wait", true), ("act", false)]);
    assert_eq!(client.ask("tools/call", json!({ "name": "nothing" }))["error"]["code"], -32602);
    assert_eq!(client.call("check", json!({}))["ok"], true);
    assert!(client.text("price", json!({ "path": "it" })).0.contains("calls"));
    assert!(
        client.refusal("price", json!({ "path": "it", "limits": { "dollars": 1 } })).contains("`dollars`")
    );
    assert!(client.refusal("wait", json!({ "run": "last" })).contains("no runs"));
}

#[test]
fn findings_are_told_in_pages() {
    let office = Office::new("");
    for number in 0..40 {
        let broken =
            WORKFLOW.replace("name: it", &format!("name: broken{number}")).replace("COMPLETE", "gone");
        office.project.write(&format!(".takt/workflows/broken{number}.yaml"), &broken);
    }
    let mut client = office.client();
    let (mut from, mut seen) = (0, 0);
    loop {
        let reply = client.call("check", json!({ "from": from }));
        let found = reply["findings"].as_array().unwrap().len();
        assert!(found > 0 && reply["ok"] == false, "{reply}");
        seen += found;
        if reply["more"].is_null() {
            break;
        }
        from += found;
    }
    assert!(seen >= 40, "{seen}");
}

#[test]
fn a_run_is_started_followed_and_applied() {
    let office = Office::new("");
    let mut client = office.client();
    let without = client.refusal("start", json!({ "workflow": "it", "task": "Do it", "key": "a" }));
    assert!(without.contains("ask the user for a limit"), "{without}");
    assert_eq!(office.project.runs(), 0);
    let started = client.start("a");
    let run = started["run"].as_str().unwrap();
    assert!(started["earlier"] == false && started["at_most"]["calls"].as_u64().unwrap() <= 12, "{started}");
    let end = client.wait(run);
    assert_eq!((&end["state"], &end["changed_files"]), (&json!("completed"), &json!(["WORK.txt"])), "{end}");
    assert_eq!(end["cost_usd"], 0.01);
    assert!(
        end["news"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("answered")),
        "{end}"
    );
    assert!(!office.project.path().join("WORK.txt").exists(), "it worked in a worktree");
    client.call("act", json!({ "run": run, "action": "apply" }));
    assert!(office.project.path().join("WORK.txt").exists());

    assert_eq!(end["verified"], false, "no command proved it: {end}");
    let applied = client.call("act", json!({ "run": run, "action": "apply" }))["applied"].to_string();
    assert!(applied.contains("nothing to apply"), "{applied}");

    // A second start with the key starts nothing, also from a server that was started since, and from two at once.
    assert_eq!(client.start("a")["run"], run);
    let mut restarted = office.client();
    let again = restarted.start("a");
    assert!(again["run"] == run && again["earlier"] == true, "{again}");
    // Whatever has changed meanwhile, and whatever else is asked for.
    let flow = ".takt/workflows/it.yaml";
    office.project.write(flow, &WORKFLOW.replace("COMPLETE", "gone"));
    let other = json!({ "workflow": "it", "task": "Other", "agent": "nobody", "key": "a" });
    let known = client.call("start", other);
    assert!(known["run"] == run && known["earlier"] == true && known["task"] == "Do it", "{known}");
    assert!(known["at_most"].is_null());
    office.project.write(flow, WORKFLOW);
    for key in [json!({}), json!({ "key": " " })] {
        let mut start = json!({ "workflow": "it", "task": "Do it", "limits": { "calls": 12 } });
        start.as_object_mut().unwrap().extend(key.as_object().unwrap().clone());
        assert!(client.refusal("start", start).contains("`key`"));
    }
    assert_eq!(office.project.runs(), 1);
    office.put("slow");
    let starts: Vec<_> = (0..3)
        .map(|_| {
            let mut client = office.client();
            std::thread::spawn(move || client.start("b")["run"].as_str().unwrap().to_owned())
        })
        .collect();
    let runs: Vec<String> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    assert!(runs.iter().all(|other| *other == runs[0] && other != run), "{runs:?}");
    assert_eq!(office.project.runs(), 2);

    // A server whose input ends does not wait for what it would have told.
    let mut waiting = office.client();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wait", "arguments": {
        "run": runs[0] } } });
    writeln!(waiting.input, "{message}").unwrap();
    let begun = std::time::Instant::now();
    waiting.input = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap().stdin.take().unwrap();
    waiting.child.wait().unwrap();
    assert!(begun.elapsed().as_secs() < 30, "it waited");

    // The server is killed while it waits; the run goes on.
    let mut waiting = office.client();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wait", "arguments": {
        "run": runs[0] } } });
    writeln!(waiting.input, "{message}").unwrap();
    drop(waiting);
    office.take("slow");
    assert_eq!(client.wait(&runs[0])["state"], "completed");
    drop((client, restarted));
    office.project.all_gone();
}

#[test]
fn the_settings_are_the_ceiling() {
    let office = Office::new("[budget]\ncalls = 10\n");
    let mut client = office.client();
    let start = |limits: Value| json!({ "workflow": "it", "task": "Do it", "key": "a", "limits": limits });
    let refused = client.refusal("start", start(json!({ "calls": 11 })));
    assert!(refused.contains("allows 10"), "{refused}");
    let started = client.call("start", start(json!({})));
    assert_eq!(client.wait(started["run"].as_str().unwrap())["state"], "completed");
}

#[test]
fn a_question_is_asked_and_answered() {
    let office = Office::new("");
    office.put("question");
    let mut client = office.client();
    let started = client.start("a");
    let run = started["run"].as_str().unwrap().to_owned();
    let asked = client.wait(&run);
    assert!(asked["question"].as_str().unwrap().contains("Blue or green?"), "{asked}");
    assert!(client.refusal("act", json!({ "run": run, "action": "answer" })).contains("`text`"));
    client.call("act", json!({ "run": run, "action": "answer", "text": "Blue" }));
    assert_eq!(client.wait(&run)["state"], "completed");
    let late = client.refusal("act", json!({ "run": run, "action": "answer", "text": "Green" }));
    assert!(late.contains("has ended"), "{late}");
}

#[test]
fn a_run_is_cancelled_and_a_stopped_one_resumed() {
    let office = Office::new("");
    office.put("slow");
    let mut client = office.client();
    let run = client.start("a")["run"].as_str().unwrap().to_owned();
    let end = client.call("act", json!({ "run": run, "action": "cancel" }));
    assert_eq!((&end["state"], &end["ended"]), (&json!("cancelled"), &json!(true)));
    let run = client.start("b")["run"].as_str().unwrap().to_owned();
    let driver = || {
        let pids =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        pids.filter_map(|pid| pid.parse::<i32>().ok()).find(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|words| String::from_utf8_lossy(&words).contains(&format!("--run-id={run}")))
        })
    };
    until("the run is driven", || driver().is_some());
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(driver().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let stopped = client.wait(&run);
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    office.take("slow");
    client.call("act", json!({ "run": run, "action": "resume" }));
    assert_eq!(client.wait(&run)["state"], "completed");
    drop(client);
    office.project.all_gone();
}

/// A process holds its run for a while after it wrote that the run waits or ended: here until the collector took the
/// telemetry.
#[test]
fn who_reads_of_a_wait_or_an_end_may_act_at_once() {
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = collector.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in collector.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(2_000));
                drop(stream);
            });
        }
    });
    let office = Office::new(&format!("[otel]\nendpoint = \"http://{address}\"\n"));
    office.put("question");
    let mut client = office.client();
    let run = client.start("a")["run"].as_str().unwrap().to_owned();
    client.wait(&run);
    client.call("act", json!({ "run": run, "action": "answer", "text": "Blue" }));
    assert_eq!(client.wait(&run)["state"], "completed");
    let begin = ["run", "it", "Do it", "--budget-calls", "9", "--detach", "--json"];
    let here = office.project.run(&begin).json()["run"].as_str().unwrap().to_owned();
    until("it ended", || office.project.run(&["status", &here, "--json"]).json()["state"] == "completed");
    let next = office.project.run(&["run", "it", "Do it", "--budget-calls", "9"]);
    assert_eq!(next.code, 0, "{}", next.stderr);
    let undone = office.project.run(&["undo", "last"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    drop(client);
    office.project.all_gone();
}

/// What the tools do, the commands do too.
#[test]
fn commands_go_on_in_the_background() {
    let office = Office::new("");
    office.put("question");
    let begin = ["run", "it", "Do it", "--budget-calls", "9", "--detach", "--once", "a", "--json"];
    let run = office.project.run(&begin).json()["run"].as_str().unwrap().to_owned();
    let again = office.project.run(&begin).json();
    assert_eq!((&again["run"], &again["earlier"]), (&json!(run), &json!(true)));
    let state = |wanted: &str| {
        until(wanted, || office.project.status()["state"] == wanted);
    };
    state("suspended");
    let answered = office.project.run(&["answer", &run, "Blue", "--detach", "--json"]);
    assert_eq!((answered.code, &answered.json()["run"]), (0, &json!(run)), "{}", answered.stderr);
    state("completed");
    let after = office.project.run(&["log", &run, "--json", "--after", "2"]).stdout;
    let first: Value = serde_json::from_str(after.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], 3);
    office.put("slow");
    let second =
        office.project.run(&["run", "it", "Do it", "--budget-calls", "9", "--detach", "--json"]).json();
    let second = second["run"].as_str().unwrap();
    let cancelled = office.project.run(&["cancel", second, "--json"]).json();
    assert_eq!((&cancelled["run"], &cancelled["state"]), (&json!(second), &json!("cancelled")));
    assert_eq!(office.project.run(&["run", "it", "Do it", "--once", "b", "--budget-calls", "9"]).code, 2);
    office.project.all_gone();
}

/// An agent of a run cannot start another: not by a tool of its own, and not by the command.
#[test]
fn a_run_starts_no_run() {
    let office = Office::new("");
    let mut nested = office.project.command(&["mcp"]);
    nested.env("CUEGATE_WITHIN", format!("abcdefgh:{}", office.project.path().display()));
    let start = json!({ "workflow": "it", "task": "Do it", "limits": { "calls": 12 }, "key": "a" });
    let mut client = Client::of(nested);
    assert!(client.refusal("start", start.clone()).contains("run abcdefgh"));
    assert_eq!(client.call("check", json!({}))["ok"], true, "reading is no harm");

    // An emptied variable opens nothing, and Codex hands its servers a few variables only.
    let usual = office.project.command(&["mcp"]);
    let mut stripped = Command::new("sh");
    let program = usual.get_program().to_string_lossy().into_owned();
    stripped
        .args(["-c", &format!("env -i CUEGATE_WITHIN= PATH=\"$PATH\" HOME=\"$HOME\" {program} mcp; :")])
        .current_dir(office.project.path())
        .env("CUEGATE_WITHIN", "abcdefgh");
    assert!(Client::of(stripped).refusal("start", start).contains("run abcdefgh"));
    assert_eq!(office.project.runs(), 0);

    office.put("nested");
    let ran = office.project.run(&["run", "it", "Do it", "--no-sandbox", "--budget-calls", "5"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outside = office.project.path().with_extension("outside");
    let said = fs::read_to_string(outside.join("nested.out")).unwrap();
    assert!(said.contains("may not start or continue a run") && said.ends_with("exit 2\n"), "{said}");
    assert_eq!(office.project.runs(), 1);
}

/// What the model of a real agent calls, one after the other: from the check to the applied work.
fn whole_way(find_tools: bool) -> Scenario {
    let call = |tool: &str, input: Value| Act::Call { tool: format!("mcp__cuegate__{tool}"), input };
    let limits = json!({ "calls": 12 });
    let mut scenario = Scenario::new();
    let mut reply = Reply::to("Let Cuegate do it");
    if find_tools {
        let names = ["check", "price", "start", "wait", "act"].map(|name| format!("mcp__cuegate__{name}"));
        let query = json!({ "query": format!("select:{}", names.join(",")), "max_results": 10 });
        scenario = scenario.reply(reply.act(Act::Call { tool: "ToolSearch".to_owned(), input: query }));
        // What Claude Code says then.
        reply = Reply::to("Tool loaded");
    }
    reply = reply
        .act(call("check", json!({ "path": "it" })))
        .act(call("price", json!({ "path": "it", "limits": limits })))
        .act(call("start", json!({ "workflow": "it", "task": "Do it", "key": "a" })))
        .act(call("start", json!({ "workflow": "it", "task": "Do it", "key": "a", "limits": limits })))
        .act(call("wait", json!({ "run": "last" })))
        .act(call("act", json!({ "run": "last", "action": "answer", "text": "Blue" })))
        .act(call("wait", json!({ "run": "last" })))
        .act(call("act", json!({ "run": "last", "action": "apply" })))
        .text("It is done.");
    scenario.reply(reply)
}

/// The results of the tools that the model got, in order: what is in the last request.
fn results(standin: &Standin) -> String {
    standin.requests().last().map(|request| format!("{request:?}")).unwrap_or_default().replace("\\", "")
}

fn assert_done(office: &Office, standin: &Standin, said: &str) {
    let results = results(standin);
    for part in [
        "ask the user for a limit",
        "Blue or green?",
        "\"state\":\"completed\"",
        "\"changed_files\":[\"WORK.txt\"]",
    ] {
        assert!(results.contains(part), "{part}\n{said}\n{results}");
    }
    assert!(office.project.path().join("WORK.txt").exists(), "{said}");
    assert_eq!(office.project.runs(), 1);
}

#[test]
fn claude_does_a_whole_run_by_the_tools() {
    if !offline::inside() {
        return;
    }
    let office = Office::new("");
    office.put("question");
    let standin = Standin::start(whole_way(true));
    let servers = json!({ "mcpServers": { "cuegate": {
        "command": env!("CARGO_BIN_EXE_cuegate"), "args": ["mcp"],
    } } });
    let mut claude = Command::new(offline::agents().claude);
    claude
        .args(["-p", "Let Cuegate do it", "--mcp-config", &servers.to_string(), "--strict-mcp-config"])
        .args(["--allowedTools", "mcp__cuegate", "--output-format", "json"])
        .current_dir(office.project.path())
        .envs(standin.claude_env());
    let ran = claude.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert_done(&office, &standin, &said);
    office.project.all_gone();
}

#[test]
fn codex_does_a_whole_run_by_the_tools() {
    if !offline::inside() {
        return;
    }
    let office = Office::new("");
    office.put("question");
    let standin = Standin::start(whole_way(false));
    let server = format!("mcp_servers.cuegate.command={:?}", env!("CARGO_BIN_EXE_cuegate"));
    let mut codex = Command::new(offline::agents().codex);
    codex.arg("exec").args(standin.codex_args());
    for setting in [
        server.as_str(),
        "mcp_servers.cuegate.args=[\"mcp\"]",
        // What changes something needs an approval, which nobody gives in `exec`.
        "mcp_servers.cuegate.tools.start.approval_mode=\"approve\"",
        "mcp_servers.cuegate.tools.act.approval_mode=\"approve\"",
    ] {
        codex.args(["-c", setting]);
    }
    codex.args(["--json", "Let Cuegate do it"]).current_dir(office.project.path()).envs(standin.codex_env());
    let ran = codex.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert_done(&office, &standin, &said);
    office.project.all_gone();
}
