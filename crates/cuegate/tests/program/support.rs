//! A test project with an agent definition, and the program under test.

use std::{
    cell::Cell,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

/// The program under test.
pub const CUEGATE: &str = env!("CARGO_BIN_EXE_cuegate");

/// A project in a temporary folder: the example's, in a git repository of its own.
pub struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
    outside: Cell<bool>,
}

/// The example's folder.
pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fix-failing-test")
}

impl Project {
    /// The example's project, committed.
    pub fn example() -> Project {
        let project = Project::empty();
        copy(&example().join("project"), &project.root);
        copy(&example().join("agent"), &project.root.join(".agent/fixer"));
        project.write("script.yaml", &fs::read_to_string(example().join("script.yaml")).unwrap());
        project.write(".gitignore", "/script*.yaml\n");
        project.init();
        project
    }

    /// An empty folder outside any repository.
    pub fn empty() -> Project {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        Project { _dir: dir, root, outside: Cell::new(false) }
    }

    /// Lets its runs work without a sandbox, for tests of what Cuegate notices when nothing prevents it.
    pub fn outside(self) -> Project {
        self.outside.set(true);
        self
    }

    /// Makes it a repository with everything committed.
    pub fn init(&self) {
        self.git(&["init", "--quiet", "--initial-branch", "main"]);
        self.git(&["config", "user.name", "Test"]);
        self.git(&["config", "user.email", "test@localhost"]);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "begin"]);
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// What git prints.
    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(&self.root)
            .env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The program, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(CUEGATE);
        command.args(args);
        if self.outside.get() && args.first() == Some(&"run") {
            command.arg("--no-sandbox");
        }
        command
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Nothing above the temporary folder matters.
            .env("GIT_CEILING_DIRECTORIES", self.root.parent().unwrap())
            .env("TZ", "UTC")
            // Nothing is written outside of the project, unless a test says so.
            .env("XDG_STATE_HOME", self.root.join(".cuegate/state"))
            // No test reaches GitHub: a stand-in is named in `cuegate.toml`.
            .env("GITHUB_TOKEN", "test-token")
            .env("GITHUB_API_URL", "http://127.0.0.1:1")
            .env_remove("GITHUB_REPOSITORY")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, as a shell gives a job.
            .process_group(0);
        // Where `/tmp` is another file system than the project, as many distributions have it.
        if let Some(folder) = std::env::var_os("CUEGATE_TEST_TMPDIR") {
            command.env("TMPDIR", folder);
        }
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Starts the program.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Runs the program to its end with something to read.
    pub fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        use std::io::Write as _;
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs the program to its end at a terminal of its own, where somebody types this; all that the terminal shows is
    /// its standard output. `None`, with a line that says so, where no `script` of util-linux is installed.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    pub fn at_terminal(&self, args: &[&str], typed: &str) -> Option<Ran> {
        use std::io::Write as _;
        let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
        let words: Vec<String> = std::iter::once(&CUEGATE).chain(args).map(quoted).collect();
        let command = format!("stty cols 200; {}", words.join(" "));
        let usual = self.command(&[]);
        let child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .current_dir(&self.root)
            .envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env_remove("RUST_BACKTRACE")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let Ok(mut child) = child else {
            eprintln!("skipped: no terminal, as there is no `script` (util-linux)");
            return None;
        };
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        Some(Ran::of(child.wait_with_output().unwrap()))
    }

    /// Starts the program as a job that can be listened to and signalled.
    pub fn job(&self, args: &[&str]) -> Job {
        Job::of(self.start(args))
    }

    /// The last run's result.
    pub fn status(&self) -> Value {
        let ran = self.run(&["status", "last", "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// What happened in the last run, an object each.
    pub fn log(&self) -> Vec<Value> {
        let ran = self.run(&["log", "last", "--json", "--full"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of a kind in the last run.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.log().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The prompts of all answers in the last run.
    pub fn prompts(&self) -> Vec<String> {
        self.events("answered").iter().map(|event| event["prompt"].as_str().unwrap().to_owned()).collect()
    }

    /// How many runs have begun.
    pub fn runs(&self) -> usize {
        self.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().len()
    }

    /// Writes a script of these answers.
    pub fn script(&self, name: &str, answers: &Value) {
        self.write(name, &json!({ "answers": answers }).to_string());
    }

    /// Kills whatever works in the folder.
    pub fn kill_all(&self) {
        for process in at_work_in(&self.root) {
            let _ = kill_process(Pid::from_raw(process.pid).unwrap(), Signal::KILL);
        }
    }

    /// Waits until nothing works in the folder any more.
    pub fn all_gone(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = at_work_in(&self.root);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still alive: {left:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a process whose command line begins like this works in the folder.
    pub fn at_work(&self, words: &str) -> Process {
        let mut found = None;
        until(words, || {
            found = at_work_in(&self.root).into_iter().find(|process| process.words.starts_with(words));
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        self.kill_all();
    }
}

/// The timeout of waits in tests. Only a failure takes as long: under load, an agent starts for half a minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until a condition holds; panics on timeout.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that runs in parallel with the test.
pub struct Job {
    child: Child,
    stdout: Ear,
    stderr: Ear,
}

/// Collects the output of a program.
struct Ear {
    heard: Arc<Mutex<Vec<u8>>>,
    listening: Option<JoinHandle<()>>,
}

impl Ear {
    fn to(mut from: impl std::io::Read + Send + 'static) -> Ear {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        let listening = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                into.lock().unwrap().extend_from_slice(&buffer[..n]);
            }
        });
        Ear { heard, listening: Some(listening) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }

    fn all(&mut self) -> String {
        self.listening.take().unwrap().join().unwrap();
        self.text()
    }
}

impl Job {
    /// Follows a program that was started.
    pub fn of(mut child: Child) -> Job {
        let stdout = Ear::to(child.stdout.take().unwrap());
        let stderr = Ear::to(child.stderr.take().unwrap());
        Job { child, stdout, stderr }
    }

    /// Waits until it has said this to standard error.
    pub fn says(&self, what: &str) {
        until(what, || self.stderr.text().contains(what));
    }

    /// Waits until a condition holds; panics on timeout, and when it ends before.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{what}: {ended:?}\n{}",
                self.stderr.text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it has printed so far.
    pub fn printed(&self) -> String {
        self.stdout.text()
    }

    /// What it has said to standard error so far.
    pub fn said(&self) -> String {
        self.stderr.text()
    }

    /// Sends a signal as a terminal does: to all of its process group.
    pub fn signal(&self, signal: Signal) {
        kill_process_group(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    /// The same, unless it has ended by now.
    pub fn signal_if_there(&self, signal: Signal) {
        // It is not reaped yet, so its id is not reused.
        let _ = kill_process_group(Pid::from_raw(self.child.id() as i32).unwrap(), signal);
    }

    /// Sends a signal to it alone, as a supervisor does.
    pub fn signal_alone(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its end.
    pub fn end(mut self) -> Ran {
        let mut status = None;
        let deadline = Instant::now() + PATIENCE;
        while status.is_none() {
            status = self.child.try_wait().unwrap();
            assert!(Instant::now() < deadline, "it does not end: {}", self.stderr.text());
            std::thread::sleep(Duration::from_millis(5));
        }
        let code = status.and_then(|status| status.code()).unwrap_or(-1);
        Ran { code, stdout: self.stdout.all(), stderr: self.stderr.all() }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Its children exit with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of a finished program.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Of a process's output.
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The visits of a run. Parallel members finish in random order, so they are sorted by name.
pub fn visits(status: &Value) -> Vec<Value> {
    let mut visits = status["steps"].as_array().unwrap().clone();
    let name = |visit: &Value| visit["step"].as_str().unwrap().to_owned();
    let together = |a: &Value, b: &Value| !a["parent"].is_null() && a["parent"] == b["parent"];
    visits.chunk_by_mut(together).for_each(|members| members.sort_by_key(name));
    visits
}

/// The visits of a run, a line each: what was done and where that led.
pub fn rows(result: &Value) -> String {
    let row = |row: &Value| {
        let remedy = if row["remedy"] == true { " (remedy)" } else { "" };
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        format!("{}{remedy}: {} → {}", text("step"), text("outcome"), text("target"))
    };
    result["steps"].as_array().unwrap().iter().map(row).collect::<Vec<_>>().join("\n")
}

/// A text with run ids, times, durations, paths and git object ids replaced.
pub fn tidy(project: &Project, text: &str) -> String {
    let text = text.replace(project.path().to_str().unwrap(), "PROJECT").replace("just now", "0 s ago");
    text.lines().map(tidy_line).collect::<Vec<_>>().join("\n")
}

fn tidy_line(line: &str) -> String {
    if line.starts_with("index ") {
        return "index HASH".to_owned();
    }
    // Spans of time are of different length, and columns as wide as the longest.
    let is_table = line.starts_with('|');
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ').filter(|word| !(is_table && word.is_empty())) {
        let (unit, after) = word.split_at(word.trim_end_matches([',', ')', ';']).len());
        let number = words.last().map_or("", |last| last.trim_start_matches('('));
        if matches!(unit, "ms" | "s" | "min" | "h") && is_number(number) {
            let opening = if words.pop().is_some_and(|last| last.starts_with('(')) { "(" } else { "" };
            // `1 min 3 s` is one.
            if words.last().is_some_and(|last| last == "SPAN") {
                words.pop();
            }
            words.push(format!("{opening}SPAN{after}"));
        } else if is_table && word.starts_with("|--") {
            words.push("|--|".to_owned());
        } else {
            words.push(tidy_word(word));
        }
    }
    words.join(" ").trim_end().to_owned()
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Replaces the parts of a word: runs of letters and digits, with the signs that times and dates hold.
fn tidy_word(word: &str) -> String {
    const RUN: &str = "bcdfghjkmnpqrstvwxz23456789y";
    let mut tidied = String::new();
    let mut part = String::new();
    for c in word.chars().chain(['\0']) {
        if c.is_ascii_alphanumeric() || (c == ':' || c == '-') && is_number(&part.replace([':', '-'], "")) {
            part.push(c);
            continue;
        }
        let shape: String = part.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        tidied.push_str(match &*shape {
            "00:00:00" => "TIME",
            "0000-00-00" => "DATE",
            _ if part.len() == 8 && part.chars().all(|c| RUN.contains(c)) => "RUN",
            _ if part.len() >= 7 && is_hash(&part) => "HASH",
            _ => &part,
        });
        part.clear();
        if c != '\0' {
            tidied.push(c);
        }
    }
    tidied
}

fn is_hash(part: &str) -> bool {
    let hex = part.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    hex && part.contains(|c: char| c.is_ascii_digit()) && part.contains(|c: char| c.is_ascii_lowercase())
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A process of this machine.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub words: String,
}

/// All processes of this machine, as `/proc` has them.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            (state != "Z").then_some(Process { pid, parent, words })
        })
        .collect()
}

/// Processes that work in a folder or below it.
pub fn at_work_in(folder: &Path) -> Vec<Process> {
    processes()
        .into_iter()
        .filter(|process| {
            fs::read_link(format!("/proc/{}/cwd", process.pid)).is_ok_and(|cwd| cwd.starts_with(folder))
        })
        .collect()
}

/// How many kills a test needs: `default`, or what `CUEGATE_KILLS` says.
pub fn kills(default: usize) -> usize {
    std::env::var("CUEGATE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(default)
}

/// Serves a bare repository as another machine does: what a push does there goes on, whatever is killed here. Returns the
/// address.
pub fn serve_git(repository: &Path) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let repository = repository.to_owned();
    let (base, name) = (repository.parent().unwrap().to_owned(), repository.file_name().unwrap().to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let stream = std::os::fd::OwnedFd::from(stream);
            let mut daemon = Command::new("git");
            daemon.args([
                "daemon",
                "--inetd",
                "--export-all",
                "--enable=receive-pack",
                "--log-destination=none",
            ]);
            daemon.arg(format!("--base-path={}", base.display())).current_dir("/").process_group(0);
            daemon
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .stderr(Stdio::null());
            let mut child = daemon.stdin(stream.try_clone().unwrap()).stdout(stream).spawn().unwrap();
            std::thread::spawn(move || child.wait());
        }
    });
    format!("git://127.0.0.1:{port}/{}", name.to_str().unwrap())
}
