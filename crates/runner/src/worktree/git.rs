//! Runs the git program so that only the arguments and the repository decide what it does.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::{WorktreeError, io_at};
use super::repository::Repository;

/// Settings that override the user's.
const SETTINGS: [&str; 13] = [
    // Do not run programs that the repository or the user configured.
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    // A bare repository that an agent made is none of ours.
    "safe.bareRepository=explicit",
    // No background work in the user's repository.
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    // A split index would create files next to the user's; an untracked cache relies on folder times, which agents can
    // set.
    "core.splitIndex=false",
    "core.untrackedCache=false",
    // Print file names unquoted, and accept any line ends.
    "core.quotePath=false",
    "core.safecrlf=false",
    "advice.addEmbeddedRepo=false",
    // A record that names a tree is written only when the tree is on disk. Git does not verify the checksum of an
    // index, so an index truncated by a power failure could yield a wrong tree.
    "core.fsync=objects,index",
    "core.fsyncMethod=fsync",
];

/// Git variables that locate the user's settings. All others are removed, because they could redirect git (`GIT_DIR`)
/// or change its output.
const KEPT_VARS: [&str; 6] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// The time limit of a git command. Git waits forever for a FIFO in place of one of its files.
pub(super) const TIMEOUT: Duration = Duration::from_secs(600);

/// Commands that use the network.
const NETWORK: [&str; 5] = ["clone", "fetch", "ls-remote", "pull", "push"];

/// How often git is run while another git is making a worktree, and the time between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The path of git by `PATH`, without folders inside of projects: no program of a working tree is run as git.
pub(super) fn locate_git() -> PathBuf {
    cuegate_provider::locate_or_missing("git")
}

/// Removes the variables that could redirect git. Git finds its own programs as we do.
pub(super) fn clear_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let git = name.as_encoded_bytes().starts_with(b"GIT_");
        if git && !KEPT_VARS.iter().any(|kept| name == *kept) {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    command.env("PATH", cuegate_provider::search_path());
}

/// Git in a folder.
#[derive(Debug, Clone)]
pub(super) struct Git {
    dir: PathBuf,
    /// The repository, if it does not depend on what is in the folder.
    repository: Option<Repository>,
    env: Vec<(&'static str, OsString)>,
    /// Settings besides [`SETTINGS`].
    settings: Vec<&'static str>,
    timeout: Duration,
    hooks: bool,
    /// The git folder that it works on instead, and the words of the command that confines it.
    confined: Option<(PathBuf, Vec<OsString>)>,
    /// The limit of the memory that it may allocate, in bytes.
    memory_max: Option<u64>,
}

impl Git {
    pub fn new(dir: &Path) -> Git {
        let (env, settings) = (Vec::new(), Vec::new());
        let (dir, confined, memory_max) = (dir.to_owned(), None, None);
        Git { dir, repository: None, env, settings, timeout: TIMEOUT, hooks: false, confined, memory_max }
    }

    /// Git in the working tree of a repository.
    pub fn in_repository(repository: Repository) -> Git {
        Git { repository: Some(repository.clone()), ..Git::new(&repository.top) }
    }

    /// Git in a git folder that agents write, which obeys what they left there. `words` is the command that confines it.
    pub fn confined_to(git_dir: &Path, words: Vec<OsString>) -> Git {
        Git { confined: Some((git_dir.to_owned(), words)), ..Git::new(Path::new("/")) }
    }

    /// Limits the memory that it may allocate, in bytes: what it reads may be made to take all.
    pub fn limited_to(self, memory_max: u64) -> Git {
        Git { memory_max: Some(memory_max), ..self }
    }

    /// Sets a variable.
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Git {
        self.env.push((name, value.into()));
        self
    }

    /// Adds a setting, as `name=value`.
    pub fn setting(mut self, setting: &'static str) -> Git {
        self.settings.push(setting);
        self
    }

    /// Lets the hooks of the repository run.
    pub fn with_hooks(self) -> Git {
        Git { hooks: true, ..self }
    }

    /// Sets the time limit.
    pub fn within(self, timeout: Duration) -> Git {
        Git { timeout, ..self }
    }

    /// Runs git and returns its output, whether it succeeds or fails. Git reads the files of all worktrees first; it is run
    /// again if it fails at one that another git is just making.
    pub fn output<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<Output, WorktreeError> {
        let mut tries = TRIES;
        loop {
            let output = self.output_once(args, Input::Bytes(stdin))?;
            tries -= 1;
            let half_made = || {
                let said = String::from_utf8_lossy(&output.stderr);
                said.contains("failed to read") && said.contains("/worktrees/")
            };
            if tries == 0 || output.status.success() || !half_made() {
                return Ok(output);
            }
            thread::sleep(PAUSE);
        }
    }

    fn output_once<S: AsRef<OsStr>>(&self, args: &[S], stdin: Input<'_>) -> Result<Output, WorktreeError> {
        // Otherwise a missing folder would look like a missing git.
        self.dir.read_dir().map_err(io_at("read", &self.dir))?;
        let mut command = self.command(args)?;
        let bytes = match stdin {
            Input::Bytes(bytes) => bytes,
            Input::File(file) => {
                command.stdin(file);
                b""
            }
        };
        let started = Instant::now();
        let mut child = command.spawn().map_err(WorktreeError::Start)?;
        let watchdog = Watchdog::start(&child, self.timeout);
        let pipe = child.stdin.take();
        let output = thread::scope(|scope| {
            // Git may print while it reads. Ignore a failed write: the exit status decides.
            scope.spawn(move || {
                let _ = pipe.map(|mut pipe| pipe.write_all(bytes));
            });
            child.wait_with_output().map_err(WorktreeError::Start)
        })?;
        let timed_out = watchdog.stop();
        tracing::debug!(
            command = %loggable_arguments(args),
            dir = %self.dir.display(),
            status = %output.status,
            ms = started.elapsed().as_millis(),
            "git"
        );
        // Ctrl-C at the terminal also kills git. A retry would delay the interruption.
        if let Some(signal) = output.status.signal() {
            let command = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
            if timed_out {
                return Err(WorktreeError::TimedOut { command, seconds: self.timeout.as_secs() });
            }
            return Err(WorktreeError::Killed { command, signal });
        }
        Ok(output)
    }

    /// Runs git and returns what it printed.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>, WorktreeError> {
        self.run_with(args, b"")
    }

    /// Starts git with pipes for its input and outputs, in a process group of its own.
    pub fn spawn<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Child, WorktreeError> {
        let mut command = self.command(args)?;
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        tracing::debug!(command = %loggable_arguments(args), dir = %self.dir.display(), "git");
        command.spawn().map_err(WorktreeError::Start)
    }

    /// As [`Git::run`], with a file as the input.
    pub fn run_file<S: AsRef<OsStr>>(&self, args: &[S], file: File) -> Result<Vec<u8>, WorktreeError> {
        let output = self.output_once(args, Input::File(file))?;
        if output.status.success() { Ok(output.stdout) } else { Err(build_git_error(args, &output)) }
    }

    /// As [`Git::run`], with input.
    pub fn run_with<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<Vec<u8>, WorktreeError> {
        let output = self.output(args, stdin)?;
        if output.status.success() { Ok(output.stdout) } else { Err(build_git_error(args, &output)) }
    }

    /// Runs git and returns its output without the last line feed: an object id, a name or a path, which may hold line
    /// feeds.
    pub fn line<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<OsString, WorktreeError> {
        let mut line = self.run(args)?;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        Ok(OsString::from_vec(line))
    }

    /// As [`Git::line`], for ASCII output.
    pub fn word<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, WorktreeError> {
        Ok(self.line(args)?.to_string_lossy().into_owned())
    }

    /// Whether git exits with code 0.
    pub fn succeeds<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<bool, WorktreeError> {
        Ok(self.output(args, b"")?.status.success())
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Command, WorktreeError> {
        let mut command = self.program();
        clear_variables(&mut command);
        let first = args.first().map_or(OsStr::new(""), |first| first.as_ref());
        let repository = match &self.repository {
            Some(known) => Some(known.clone()),
            None if self.confined.is_some() => None,
            None => Repository::find(&self.dir)?,
        };
        let uses_network = NETWORK.iter().any(|command| first == *command);
        let files = if uses_network { "file:" } else { "" };
        command.env("GIT_ALLOW_PROTOCOL", format!("{files}git:http:https:ssh"));
        let mut hooks = PathBuf::from("/dev/null");
        // `git worktree` writes the path of the shared folder into files, so it needs the real one. It only writes names and
        // links: `add` is used without a checkout.
        if let Some(repository) = repository.as_ref().filter(|_| first != "worktree") {
            command.envs(repository.variables()?);
            if self.hooks {
                hooks = repository.hooks();
            }
            // Only these need the user's logins and proxies. Otherwise the copied settings are enough. A missing object of a
            // partial clone is fetched too, but by no helper program, and from no folder that an agent may have named.
            if !uses_network {
                command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
            }
        }
        if let Some((git_dir, _)) = &self.confined {
            // The working tree is not there, and its path may be in the settings.
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", "/");
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
            command.args(["-c", "safe.directory=*"]);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.arg("--no-pager");
        for setting in SETTINGS.iter().chain(&self.settings) {
            command.args(["-c", setting]);
        }
        command.arg("-c").arg([OsStr::new("core.hooksPath="), hooks.as_os_str()].join(OsStr::new("")));
        command.args(args).current_dir(&self.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

impl Git {
    /// The program that is started, with the arguments before those of git.
    fn program(&self) -> Command {
        let words = self.confined.iter().flat_map(|(_, words)| words.iter().cloned());
        let mut words: Vec<OsString> = words.chain([locate_git().into_os_string()]).collect();
        if let Some(bytes) = self.memory_max {
            let kib = (bytes >> 10).to_string();
            let limited = ["/bin/sh", "-c", LIMITED, &kib].map(OsString::from);
            words.splice(0..0, limited);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Limits the memory of a shell in KiB and executes git in its place.
const LIMITED: &str = "ulimit -d \"$0\" && exec \"$@\"";

/// The standard input of git.
enum Input<'i> {
    Bytes(&'i [u8]),
    File(File),
}

/// Kills a git that runs for too long.
struct Watchdog {
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<bool>,
}

impl Watchdog {
    fn start(child: &Child, timeout: Duration) -> Watchdog {
        let (stop, stopped) = mpsc::channel();
        let pid = Pid::from_child(child);
        let thread = thread::spawn(move || {
            let late = stopped.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout);
            late && kill_process(pid, Signal::KILL).is_ok()
        });
        Watchdog { stop, thread }
    }

    /// Returns whether it has killed the git.
    fn stop(self) -> bool {
        let _ = self.stop.send(());
        self.thread.join().unwrap_or(false)
    }
}

/// The arguments without texts of users, such as commit messages, and without addresses, which may hold a token.
fn loggable_arguments<S: AsRef<OsStr>>(args: &[S]) -> String {
    let mut words: Vec<String> = Vec::new();
    for arg in args {
        let arg = arg.as_ref().to_string_lossy();
        let is_text = words.last().is_some_and(|before| before == "-m" || before == "--message");
        words.push(if is_text || arg.contains("://") || arg.contains('@') {
            "…".to_owned()
        } else {
            arg.into_owned()
        });
    }
    words.join(" ")
}

pub(super) fn build_git_error<S: AsRef<OsStr>>(args: &[S], output: &Output) -> WorktreeError {
    let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
    let mut stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if stderr.is_empty() {
        stderr = output.status.to_string();
    }
    WorktreeError::Git { command: words.join(" "), stderr }
}

/// Quotes a path for a `:`-separated list; git accepts entries in C quotes, see git(1).
pub(super) fn quote_list_path(path: OsString) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in path.into_vec() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(*b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}
