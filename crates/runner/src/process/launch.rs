#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::child::Child;
use super::error::{ProcessError, io_at};
use super::lock;
use super::wire::{Spec, VERSION, Word};
use super::{
    spool,
    spool::{Spool, as_ms},
};

/// How to start our own binary as a shim: the program and the arguments that select [`super::shim_main`].
#[derive(Debug, Clone)]
pub struct Shim {
    /// Absolute path of our own binary.
    pub exe: PathBuf,
    /// For example `__shim`.
    pub args: Vec<OsString>,
}

/// A command to start. Its environment is the runner's, without `env_remove`, plus `env`.
#[derive(Clone)]
pub struct Launch {
    /// A path, or a name to look up in the child's `PATH`. A relative path is resolved against `cwd`.
    pub program: OsString,
    /// Its arguments. They are visible in `spec.json` and in the process list, so they must not hold secrets.
    pub args: Vec<OsString>,
    /// The working folder. If it is missing, the command ends as [`super::Exit::NotStarted`].
    pub cwd: PathBuf,
    /// Variables to set for the child. Never written to disk.
    pub env: Vec<(OsString, OsString)>,
    /// Variables to remove for the child.
    pub env_remove: Vec<OsString>,
    /// The child's stdin, followed by end of file. Stored on disk next to its output.
    pub stdin: Vec<u8>,
    /// The time limit, excluding time that the machine sleeps. `None`: no limit.
    pub timeout: Option<Duration>,
    /// The limit of stdout and, separately, of stderr, in bytes. The child is killed when it exceeds the limit, unless
    /// `keeps_end` is set.
    pub output_max: u64,
    /// Whether the middle of a longer output is left out. The child is read to its end then.
    pub keeps_end: bool,
}

impl Launch {
    /// A launch without arguments, input or time limit, and with an output limit of 64 MiB.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Launch {
        Launch {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Vec::new(),
            env_remove: Vec::new(),
            stdin: Vec::new(),
            timeout: None,
            output_max: 64 << 20,
            keeps_end: false,
        }
    }
}

/// Shows only the names of variables and the length of the input: the values may be secret.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("env_remove", &self.env_remove)
            .field("stdin", &format_args!("{} bytes", self.stdin.len()))
            .field("timeout", &self.timeout)
            .field("output_max", &self.output_max)
            .field("keeps_end", &self.keeps_end)
            .finish()
    }
}

/// Starts a command in its folder `dir`, which is created if missing. Removes a former spool there: [`super::adopt_finished_command`] it
/// first.
///
/// Waits up to 10 s for a former shim of the same folder to end, then kills it and its process group. On Linux, also
/// kills the remaining processes of a killed shim. Needs a tokio runtime with time and IO enabled.
///
/// A program that cannot be started is not an error here: [`Child::wait`] reports it.
///
/// # Errors
/// [`ProcessError::Busy`] when a former shim could not be ended, [`ProcessError::Io`] and [`ProcessError::Shim`] when the new shim could not
/// start.
pub async fn start_command(shim: &Shim, dir: &Path, launch: &Launch) -> Result<Child, ProcessError> {
    let spool = Spool::open(dir)?;
    fs::create_dir_all(&spool.dir).map_err(io_at("create", &spool.dir))?;
    let held = lock::acquire_folder_lock(&spool, lock::SHIM_TIMEOUT).await?;
    let start = new_start();
    let spec = build_spec(shim, launch, &start)?;
    spool.clear()?;
    spool::create_private_file(&spool.stdin())?
        .write_all(&launch.stdin)
        .map_err(io_at("write", &spool.stdin()))?;
    spool::write_json_synced(&spool.spec(), &spec)?;
    let log = spool::create_private_file(&spool.log())?;
    // Another start may take the lock before our shim does. Then the spec is no longer ours, and the shim, which
    // compares `start`, ends at once.
    drop(held);

    let mut command = tokio::process::Command::new(&shim.exe);
    command.args(&shim.args).arg(&spool.dir).arg(&start);
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    for name in &launch.env_remove {
        command.env_remove(name);
    }
    // A process group of its own: Ctrl-C at the terminal only reaches the runner, which then ends its children in
    // order.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    let process = command.spawn().map_err(|source| ProcessError::Shim { exe: shim.exe.clone(), source })?;
    // Arguments and variables may be secret.
    tracing::debug!(program = ?launch.program, cwd = %launch.cwd.display(), spool = %dir.display(), "start");
    Ok(Child::new(spool, start, process))
}

fn build_spec(shim: &Shim, launch: &Launch, start: &str) -> Result<Spec, ProcessError> {
    let cwd = std::path::absolute(&launch.cwd).map_err(io_at("find", &launch.cwd))?;
    Ok(Spec {
        version: VERSION,
        start: start.to_owned(),
        shim_args: shim.args.iter().map(|word| Word::from(word.as_os_str())).collect(),
        program: Word::from(launch.program.as_os_str()),
        args: launch.args.iter().map(|word| Word::from(word.as_os_str())).collect(),
        cwd: Word::from(cwd.as_os_str()),
        timeout_ms: launch.timeout.map(as_ms),
        output_max: launch.output_max,
        keeps_end: launch.keeps_end,
    })
}

/// An identifier of this start, unique on this machine: time, process id and a counter. It is not secret.
fn new_start() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{nanos:x}-{:x}-{:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value_of_the_environment() {
        let mut launch = Launch::new("agent", "/");
        launch.env.push(("API_KEY".into(), "sk-hush".into()));
        launch.stdin = b"the plan".to_vec();
        let shown = format!("{launch:?}");
        assert!(shown.contains("API_KEY") && !shown.contains("hush") && !shown.contains("plan"), "{shown}");
    }
}
