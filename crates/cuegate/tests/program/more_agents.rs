//! The program with OpenCode, Copilot, Gemini and Qwen as they are installed by `cargo xtask test --agents`, which runs
//! these tests. They talk to a stand-in of their services where there is no network.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use cuegate_testkit::{
    offline,
    standin::{Act, Reply, Scenario, Standin},
};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    agents::{ROWS, fixer},
    attacks::without_bwrap,
    support::{Job, Project, Ran, at_work_in, rows},
    tool_servers,
};

/// The folder with the programs, `<target>/more-agents`; the tests are in `<target>/<profile>/deps`, or deeper.
fn find_modules() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let folder = exe.ancestors().map(|above| above.join("more-agents")).find(|dir| dir.is_dir());
    folder
        .expect("run `cargo xtask test --agents`, which installs the agents of this test")
        .join("node_modules")
}

/// The settings with which an agent asks the stand-in.
fn write_settings(agent: &str, standin: &Standin) -> String {
    let modules = find_modules();
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let at = |path: &str| modules.join(path).display().to_string();
    let node = at(&format!("node-linux-{arch}/bin"));
    let openai = standin.openai_base();
    let host = openai.split('/').nth(2).unwrap();
    let path = format!("PATH = \"{node}:/usr/local/bin:/usr/bin:/bin\"\n");
    let (program, model, more) = match agent {
        "opencode" => {
            let models = json!({"m1": {
                "name": "M1", "tool_call": true, "limit": {"context": 32_000, "output": 4_096},
                "cost": {"input": 1, "output": 2},
            }});
            let options = json!({"baseURL": openai, "apiKey": "test"});
            let service = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": models});
            let settings = json!({"provider": {"fake": service}, "small_model": "fake/m1"});
            let env = format!("OPENCODE_CONFIG_CONTENT = '{settings}'\n");
            (at(&format!("opencode-linux-{arch}/bin/opencode")), "fake/m1", env)
        }
        "copilot" => {
            let env = format!(
                "COPILOT_PROVIDER_BASE_URL = \"{openai}\"\nCOPILOT_PROVIDER_API_KEY = \"test\"\nCOPILOT_MODEL = \"m1\"\n"
            );
            (at(&format!("@github/copilot-linux-{arch}/copilot")), "m1", env)
        }
        "gemini" => {
            let env = format!(
                "{path}GEMINI_API_KEY = \"test\"\nGOOGLE_GEMINI_BASE_URL = \"http://{host}\"\n\
                 GEMINI_DEFAULT_AUTH_TYPE = \"gemini-api-key\"\n"
            );
            (at(".bin/gemini"), "gemini-2.5-flash", env)
        }
        _ => {
            let env = format!("{path}OPENAI_API_KEY = \"test\"\nOPENAI_BASE_URL = \"{openai}\"\n");
            (at(".bin/qwen"), "m1", env)
        }
    };
    let args = if agent == "qwen" { "args = [\"--auth-type\", \"openai\"]\n" } else { "" };
    format!(
        "[run]\nbaseline = \"off\"\nwait_max = \"1s\"\n[budget]\nunlimited = true\n[providers.{agent}]\nprogram = \"{program}\"\n\
         model = \"{model}\"\nhosts = [\"{host}\"]\n{args}[providers.{agent}.env]\n{more}"
    )
}

/// The example's project with an agent that asks a stand-in of its service.
struct Driven {
    agent: &'static str,
    project: Project,
    standin: Standin,
}

impl Driven {
    fn new(agent: &'static str, scenario: Scenario) -> Driven {
        let (project, standin) = (Project::example(), Standin::start(scenario));
        project.write("cuegate.toml", &write_settings(agent, &standin));
        project.write(".git/info/exclude", "/cuegate.toml\n");
        Driven { agent, project, standin }
    }

    fn start(&self) -> [&'static str; 6] {
        ["run", "fixer", "The test fails. Make it pass.", "--json", "--provider", self.agent]
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.project.command(args);
        // It says where OpenCode keeps its state, which has to be outside of the project.
        command.env_remove("XDG_STATE_HOME");
        command
    }

    fn run(&self, path: Option<&Path>) -> Ran {
        let mut command = self.command(&self.start());
        command.envs(path.map(|path| ("PATH", path)));
        Ran::of(command.output().unwrap())
    }
}

/// Reads, writes and commits with the agent's own tools, over five calls and one targeted retry, in the full sandbox and
/// with Landlock alone. A login that the service refuses ends the run at once and says so.
fn does_the_main_job(agent: &'static str) {
    if !offline::inside() {
        return;
    }
    completes_the_example(agent, None);
    let partial = without_bwrap();
    if agent == "opencode" {
        // It has to open a port.
        let ran = Driven::new(agent, Scenario::new()).run(Some(partial.path()));
        assert!(ran.code != 0 && ran.stderr.contains("install bubblewrap"), "{}", ran.stderr);
    } else {
        completes_the_example(agent, Some(partial.path()));
    }
    let refused = Driven::new(agent, Scenario::new().reply(Reply::any().status(401).for_ever()));
    let ran = refused.run(None);
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("login rejected"), "{agent}: {}", ran.stderr);
    refused.project.all_gone();
    goes_on_after_a_kill(agent);
    uses_the_tools_of_a_server(agent);
    // The others retry by themselves for minutes first.
    if agent == "gemini" || std::env::var_os("CUEGATE_TEST_SLOW").is_some_and(|slow| !slow.is_empty()) {
        tells_faults_of_its_service(agent);
    }
}

/// A service that refuses because of a limit, and one that fails.
fn tells_faults_of_its_service(agent: &'static str) {
    for (status, words) in [(429, "paused until"), (500, "server error")] {
        let failing = Driven::new(agent, Scenario::new().reply(Reply::any().status(status).for_ever()));
        let ran = failing.run(None);
        assert!(ran.code == 3 && ran.stderr.contains(words), "{status}: {}", ran.stderr);
        let class = if status == 429 { "rate_limited" } else { "overloaded" };
        assert_eq!(ran.json()["faults"][0]["class"], class);
        failing.project.all_gone();
    }
}

/// A command that takes its time; agents refuse to sleep.
const NAP: &str = "timeout 4.25 tail -f convert.sh";

/// Killed in the middle of a command of the agent, with nothing left behind; then it does the rest.
fn goes_on_after_a_kill(agent: &'static str) {
    let mut scenario = shell_writes(fixer());
    scenario.replies[0].times = 0;
    scenario.replies[1].times = 0;
    scenario.replies[1].acts.insert(0, Act::Shell(NAP.to_owned()));
    let driven = Driven::new(agent, scenario);
    let naps = || at_work_in(driven.project.path()).iter().any(|process| process.words.starts_with(NAP));
    let mut begin = driven.command(&driven.start());
    let mut job =
        Job::of(begin.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    job.until("the agent runs the command", naps);
    job.signal(Signal::KILL);
    job.end();
    driven.project.all_gone();
    assert!(!naps());
    let ran = Ran::of(driven.command(&["resume", "last", "--json"]).output().unwrap());
    assert_eq!(ran.code, 0, "{agent}: {}", ran.stderr);
    assert_eq!(rows(&ran.json()), ROWS);
    let log = driven.project.git(&["log", "--format=%s"]);
    assert_eq!(log, "Multiply by 9/5\nFix the conversion\nbegin\n");
    driven.project.all_gone();
}

fn uses_the_tools_of_a_server(agent: &'static str) {
    let mut scenario = tool_servers::stamps(false);
    scenario.replies[0].times = 0;
    let driven = Driven::new(agent, scenario);
    let toml = format!("{}{}", driven.project.read("cuegate.toml"), tool_servers::settings(""));
    driven.project.write("cuegate.toml", &toml);
    tool_servers::put_workflow(&driven.project, tool_servers::WORKFLOW);
    let mut command = driven.command(&["run", "it", "Do it", "--json", "--provider", agent]);
    let ran = Ran::of(command.env("KEY_OF_PRESS", tool_servers::KEY).output().unwrap());
    assert_eq!(ran.code, 0, "{agent}: {}\n{:?}", ran.stderr, driven.standin.unmatched());
    assert_eq!(driven.project.read("stamp.txt"), tool_servers::STAMPED, "{agent}: {}", ran.stderr);
    driven.project.all_gone();
}

/// Writes by commands: each agent has other rules for its tool that writes, a file to be read before, or that must not be
/// there.
fn shell_writes(mut scenario: Scenario) -> Scenario {
    for act in scenario.replies.iter_mut().flat_map(|reply| &mut reply.acts) {
        if let Act::Write { path, content } = act {
            *act = Act::Shell(format!("printf %s '{content}' > {path}"));
        }
    }
    scenario
}

fn completes_the_example(agent: &'static str, path: Option<&Path>) {
    let mut scenario = shell_writes(fixer());
    // OpenCode asks for a title of the conversation as well, with the same prompt.
    scenario.replies[0].times = 0;
    let driven = Driven::new(agent, scenario);
    let ran = driven.run(path);
    let asked = driven.standin.requests().len();
    assert_eq!(ran.code, 0, "{asked} requests, unmatched {:?}\n{}", driven.standin.unmatched(), ran.stderr);
    let result = ran.json();
    assert_eq!(rows(&result), ROWS, "{}", ran.stderr);
    assert_eq!((&result["asks"]["work"], &result["asks"]["remedy"]), (&json!(4), &json!(1)));
    assert_eq!(driven.standin.unmatched(), [""; 0]);
    // OpenCode does not count the requests for titles.
    if agent != "opencode" {
        let requests = driven.standin.answered().len() as u64;
        assert_eq!(result["tokens"]["input"], json!(requests * 1_500), "{agent} continues its conversations");
    }
    let log = driven.project.git(&["log", "--format=%s"]);
    assert_eq!(log, "Multiply by 9/5\nFix the conversion\nbegin\n");
    driven.project.all_gone();
}

#[test]
#[ignore = "`cargo xtask test --agents` runs it"]
fn opencode_does_the_main_job() {
    does_the_main_job("opencode");
}

#[test]
#[ignore = "`cargo xtask test --agents` runs it"]
fn copilot_does_the_main_job() {
    does_the_main_job("copilot");
}

#[test]
#[ignore = "`cargo xtask test --agents` runs it"]
fn gemini_does_the_main_job() {
    does_the_main_job("gemini");
}

#[test]
#[ignore = "`cargo xtask test --agents` runs it"]
fn qwen_does_the_main_job() {
    does_the_main_job("qwen");
}
