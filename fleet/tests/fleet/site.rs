//! A site: servers, workers as hosts of a network, a repository and an agent.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::postgres::PostgresServer;

/// Runs a command that must succeed.
pub(crate) fn run(program: &str, args: &[&str]) -> String {
    let ran = Command::new(program).args(args).output().unwrap();
    assert!(ran.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|ran| ran.status.success())
}

/// Waits for something, at most so many seconds.
pub(crate) fn until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
    let (begin, end) = (Instant::now(), Instant::now() + Duration::from_secs(seconds));
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(100));
    }
    println!("{what}: after {:.1} s", begin.elapsed().as_secs_f64());
}

/// An agent that logs the begin and the end of each call with one write, and works for as many milliseconds as a file says.
const AGENT: &str = r#"#!/usr/bin/env python3
import json, os, sys, time
request = json.load(sys.stdin)
def log(word):
    with open(os.environ["CALLS"], "ab", buffering=0) as file:
        file.write(f"{word} {os.path.basename(request['folder'])} {request['step']} {os.environ.get('WORKER', '-')} {time.time():.3f}\n".encode())
log("begin")
time.sleep(int(open(os.environ["CALLS"] + ".ms").read()) / 1000)
with open("WORK.txt", "a") as work:
    work.write(request["step"] + "\n")
print(json.dumps({"event": "usage", "input_tokens": 10, "output_tokens": 10, "cost_usd": 0.01}), flush=True)
output = {"outcome": "Done", "response": "SECRET-ANSWER"}
if os.path.exists(os.environ["CALLS"] + ".ask") and request["step"] == "s3" and "Blue" not in request["prompt"]:
    output["outcome"] = "Ask"
log("end")
print(json.dumps({"event": "answer", "text": "ok", "output": output}), flush=True)
"#;

/// The number of calls of a run.
pub(crate) const CALLS: usize = 10;

fn workflow() -> String {
    let mut text = "name: ten\nmax_steps: 40\ninitial_step: s1\nsteps:\n".to_owned();
    for number in 1..=CALLS {
        let next = if number == CALLS { "COMPLETE".to_owned() } else { format!("s{}", number + 1) };
        text.push_str(&format!(
            "  - name: s{number}\n    edit: true\n    instruction: SECRET-PROMPT {number}.\n    rules:\n      - {{ condition: Done, next: {next} }}\n"
        ));
        if number == 3 {
            text.push_str("      - { condition: Ask, next: s3, requires_user_input: true }\n");
        }
    }
    text
}

/// The servers and the workers of a test.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    number: u32,
    /// Whether workers are hosts of their own.
    pub(crate) has_hosts: bool,
    pub(crate) postgres: PostgresServer,
    temporal: Option<Child>,
    temporal_port: u16,
    pub(crate) workers: Vec<Host>,
    /// Variables of the workers.
    env: BTreeMap<String, String>,
}

/// A worker.
pub(crate) struct Host {
    name: String,
    namespace: Option<String>,
    process: Option<Child>,
    args: Vec<String>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Site {
    /// Starts the servers. Leases run out after `lease_s` seconds.
    pub(crate) fn start(lease_s: u32) -> Site {
        // Tests run at the same time, and so may other test runs on this machine.
        let number = (std::process::id() * 8 + NEXT.fetch_add(1, Ordering::Relaxed)) % 250;
        let folder = tempfile::tempdir().unwrap();
        let bridge = format!("cf{number}");
        let _ = Command::new("ip").args(["link", "del", &bridge]).output();
        let has_hosts = succeeds("ip", &["link", "add", &bridge, "type", "bridge"]);
        let address = match has_hosts {
            true => {
                run("ip", &["addr", "add", &format!("10.87.{number}.1/24"), "dev", &bridge]);
                run("ip", &["link", "set", &bridge, "up"]);
                format!("10.87.{number}.1")
            }
            false => {
                println!("note: workers share one network: hosts of their own need root and `ip`");
                "127.0.0.1".to_owned()
            }
        };
        let postgres = PostgresServer::start_at(&address).unwrap();
        let temporal_port = TcpListener::bind(("0.0.0.0", 0)).unwrap().local_addr().unwrap().port();
        let env = BTreeMap::from([
            ("TEMPORAL_ADDRESS".to_owned(), format!("{address}:{temporal_port}")),
            ("CALLS".to_owned(), folder.path().join("calls").display().to_string()),
        ]);
        let mut site = Site {
            folder,
            number,
            has_hosts,
            postgres,
            temporal: None,
            temporal_port,
            workers: Vec::new(),
            env,
        };
        site.set_call_ms(300);
        site.start_temporal();
        site.make_repository();
        let settings = format!(
            "journal = \"{}?sslmode=disable\"\ncuegate = \"{}\"\n[repositories.repo]\nurl = \"{}\"\n",
            site.postgres.url(),
            program("CUEGATE_TEST_PROGRAM").display(),
            site.folder.path().join("repo").display()
        );
        fs::write(site.folder.path().join("fleet.toml"), settings).unwrap();
        assert!(site.fleet(&["runs"]).status.success());
        site.sql(&format!("update cuegate.format set lease_s = {lease_s}"));
        site
    }

    fn address(&self) -> String {
        if self.has_hosts { format!("10.87.{}.1", self.number) } else { "127.0.0.1".to_owned() }
    }

    /// Starts Temporal, or starts it again with the same data.
    pub(crate) fn start_temporal(&mut self) {
        let log =
            fs::OpenOptions::new().append(true).create(true).open(self.folder.path().join("temporal.log"));
        let child = Command::new(program("CUEGATE_TEST_TEMPORAL"))
            // Its own parts find it by the address of this machine, the workers by that of the network.
            .args(["server", "start-dev", "--headless", "--ip", "0.0.0.0"])
            .args(["--port", &self.temporal_port.to_string(), "--log-level", "error"])
            .args(["--db-filename", &self.folder.path().join("temporal.db").display().to_string()])
            .args(["--dynamic-config-value", "matching.enableFairness=true"])
            .args(["--dynamic-config-value", "matching.numTaskqueueReadPartitions=1"])
            .args(["--dynamic-config-value", "matching.numTaskqueueWritePartitions=1"])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.unwrap())
            .spawn();
        self.temporal = Some(child.unwrap());
        let address = format!("{}:{}", self.address(), self.temporal_port);
        until("Temporal answers", 60, || {
            let words = ["operator", "namespace", "describe", "default", "--address", &address];
            Command::new(program("CUEGATE_TEST_TEMPORAL"))
                .args(words)
                .output()
                .is_ok_and(|ran| ran.status.success())
        });
    }

    /// Kills Temporal.
    pub(crate) fn kill_temporal(&mut self) {
        if let Some(mut child) = self.temporal.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn make_repository(&self) {
        let repo = self.folder.path().join("repo");
        fs::create_dir_all(repo.join(".takt/workflows")).unwrap();
        fs::write(repo.join(".takt/workflows/ten.yaml"), workflow()).unwrap();
        let agent = self.folder.path().join("agent.py");
        fs::write(&agent, AGENT).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            repo.join("cuegate.toml"),
            format!(
                "[agents.own]\nexec = [\"{}\"]\nedits = true\nschema = true\ncost = true\nvariables = [\"CALLS\", \
                 \"WORKER\"]\nstate = [\"{}\"]\n",
                agent.display(),
                self.folder.path().display()
            ),
        )
        .unwrap();
        fs::write(repo.join(".gitignore"), "/.cuegate\n").unwrap();
        let at = repo.display().to_string();
        run("git", &["-C", &at, "init", "--quiet", "--initial-branch=main"]);
        run("git", &["-C", &at, "add", "--all"]);
        run(
            "git",
            &["-C", &at, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "begin"],
        );
    }

    /// A statement of the database, by a command line.
    pub(crate) fn sql(&self, statement: &str) -> String {
        run("psql", &["-X", "-A", "-t", "-q", "-d", &self.postgres.url(), "-c", statement]).trim().to_owned()
    }

    /// Runs `cuegate-fleet`.
    pub(crate) fn fleet(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuegate-fleet"));
        command.args(args).current_dir(self.folder.path()).envs(&self.env).output().unwrap()
    }

    /// Submits a run of the ten calls.
    pub(crate) fn submit(&self, args: &[&str]) -> String {
        let mut words = vec!["submit", "ten", "SECRET-TASK"];
        words.extend(args);
        if !args.contains(&"--") {
            words.push("--");
        }
        words.extend(["--provider", "own"]);
        if !args.contains(&"--max-usd") {
            words.extend(["--budget-usd", "5"]);
        }
        let ran = self.fleet(&words);
        let said = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        said
    }

    /// The runs as `runs --json` prints them.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let ran = self.fleet(&["runs", "--json"]);
        let said: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        said["runs"].as_array().cloned().unwrap_or_default()
    }

    /// The state of a run.
    pub(crate) fn state(&self, run: &str) -> String {
        let runs = self.runs();
        let found = runs.iter().find(|entry| entry["run"] == run);
        found.and_then(|entry| entry["state"].as_str()).unwrap_or("–").to_owned()
    }

    /// Adds a worker and starts it.
    pub(crate) fn add_worker(&mut self, args: &[&str]) {
        let index = self.workers.len();
        let name = format!("w{index}");
        let home = self.folder.path().join(&name);
        fs::create_dir_all(&home).unwrap();
        let namespace = self.has_hosts.then(|| format!("cf{}-{index}", self.number));
        if let Some(namespace) = &namespace {
            let (near, far) = (format!("cf{}p{index}", self.number), format!("cf{}q{index}", self.number));
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
            run("ip", &["netns", "add", namespace]);
            run("ip", &["link", "add", &near, "type", "veth", "peer", "name", &far]);
            run("ip", &["link", "set", &far, "netns", namespace]);
            run("ip", &["link", "set", &near, "master", &format!("cf{}", self.number), "up"]);
            let address = format!("10.87.{}.{}/24", self.number, index + 10);
            run("ip", &["-n", namespace, "addr", "add", &address, "dev", &far]);
            run("ip", &["-n", namespace, "link", "set", &far, "up"]);
            run("ip", &["-n", namespace, "link", "set", "lo", "up"]);
        }
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.workers.push(Host { name, namespace, process: None, args });
        self.start_worker(index);
    }

    /// Starts a worker, or starts it again.
    pub(crate) fn start_worker(&mut self, index: usize) {
        let (folder, env) = (self.folder.path().to_owned(), self.env.clone());
        let worker = &mut self.workers[index];
        let home = folder.join(&worker.name);
        let mut command = match &worker.namespace {
            // Process ids of its own, so that nobody on another host can tell whether its processes live.
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args([
                    "netns",
                    "exec",
                    namespace,
                    "unshare",
                    "--pid",
                    "--fork",
                    "--mount-proc",
                    "--kill-child",
                ]);
                command.arg(env!("CARGO_BIN_EXE_cuegate-fleet"));
                command
            }
            None => Command::new(env!("CARGO_BIN_EXE_cuegate-fleet")),
        };
        let log = fs::OpenOptions::new().append(true).create(true).open(home.join("log")).unwrap();
        command
            .args(["worker", "--name", &worker.name, "--home", &home.join("fleet").display().to_string()])
            .args(&worker.args)
            .current_dir(&folder)
            .envs(env)
            .env("HOME", &home)
            .env("WORKER", &worker.name)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        worker.process = Some(command.spawn().unwrap());
    }

    /// Everything of a host, by process ids of this machine.
    pub(crate) fn processes_of(&self, index: usize) -> Vec<i32> {
        match &self.workers[index].namespace {
            Some(namespace) => {
                let listed = run("ip", &["netns", "pids", namespace]);
                listed.lines().filter_map(|line| line.trim().parse().ok()).collect()
            }
            None => descendants(self.workers[index].process.as_ref().map_or(0, |child| child.id() as i32)),
        }
    }

    /// The worker alone, without the runs that it started.
    pub(crate) fn worker_process(&self, index: usize) -> Option<i32> {
        let is_worker = |pid: &i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = words.split(|byte| *byte == 0);
            words.next().is_some_and(|first| first.ends_with(b"/cuegate-fleet"))
        };
        self.processes_of(index).into_iter().find(is_worker)
    }

    /// Sends a signal to processes.
    pub(crate) fn signal(&self, signal: &str, pids: &[i32]) {
        for pid in pids {
            let _ = Command::new("kill").args([signal, &pid.to_string()]).output();
        }
    }

    /// Ends a host at once.
    pub(crate) fn kill_host(&mut self, index: usize) {
        let pids = self.processes_of(index);
        self.signal("-KILL", &pids);
        if let Some(mut child) = self.workers[index].process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Whether the worker of a host has ended.
    pub(crate) fn has_ended(&mut self, index: usize) -> bool {
        let process = self.workers[index].process.as_mut();
        process.is_none_or(|child| child.try_wait().is_ok_and(|end| end.is_some()))
    }

    /// Asks a worker to end, and waits until it has.
    pub(crate) fn drain_worker(&mut self, index: usize) {
        if let Some(pid) = self.worker_process(index) {
            self.signal("-TERM", &[pid]);
        }
        if let Some(mut child) = self.workers[index].process.take() {
            let _ = child.wait();
        }
    }

    /// Cuts a host off from the network, or connects it again.
    pub(crate) fn set_link(&self, index: usize, is_up: bool) {
        let near = format!("cf{}p{index}", self.number);
        run("ip", &["link", "set", &near, if is_up { "up" } else { "down" }]);
    }

    /// Sets how long calls take that begin from now on, in milliseconds.
    pub(crate) fn set_call_ms(&self, ms: u64) {
        // Agents read it meanwhile.
        let partial = self.folder.path().join("calls.ms.partial");
        fs::write(&partial, ms.to_string()).unwrap();
        fs::rename(partial, self.folder.path().join("calls.ms")).unwrap();
    }

    /// The lines of the agents: `begin` or `end`, run, step, worker, time.
    pub(crate) fn calls(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    /// `cuegate` in a clone of a worker.
    pub(crate) fn cuegate(&self, index: usize, args: &[&str]) -> Output {
        let clone = self.folder.path().join(format!("w{index}/fleet/repositories/repo"));
        let journal = format!("--journal={}?sslmode=disable", self.postgres.url());
        Command::new(program("CUEGATE_TEST_PROGRAM"))
            .arg(journal)
            .args(args)
            .current_dir(clone)
            .output()
            .unwrap()
    }

    /// What the history of a run in Temporal holds, whole.
    pub(crate) fn history(&self, run: &str) -> String {
        let address = format!("{}:{}", self.address(), self.temporal_port);
        let name = format!("cuegate-run-{run}");
        let words = ["workflow", "show", "--address", &address, "--workflow-id", &name, "--output", "json"];
        let shown = Command::new(program("CUEGATE_TEST_TEMPORAL")).args(words).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for index in 0..self.workers.len() {
            if self.has_hosts {
                self.set_link(index, true);
            }
            self.kill_host(index);
            if let Some(namespace) = &self.workers[index].namespace {
                let _ = Command::new("ip").args(["netns", "del", namespace]).output();
            }
        }
        self.kill_temporal();
        if self.has_hosts {
            let _ = Command::new("ip").args(["link", "del", &format!("cf{}", self.number)]).output();
        }
        if thread::panicking() {
            for index in 0..self.workers.len() {
                let log =
                    fs::read_to_string(self.folder.path().join(format!("w{index}/log"))).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(15).collect();
                println!("w{index}: {}", lines.into_iter().rev().collect::<Vec<_>>().join("\n    "));
            }
        }
    }
}

/// A program that `cargo xtask test --fleet` builds or installs.
fn program(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable)
        .unwrap_or_else(|| panic!("`{variable}` is not set: run the tests by `cargo xtask test --fleet`"));
    Path::new(&path).to_owned()
}

fn descendants(of: i32) -> Vec<i32> {
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", found[at])).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        at += 1;
    }
    found.retain(|pid| *pid > 0);
    found
}
