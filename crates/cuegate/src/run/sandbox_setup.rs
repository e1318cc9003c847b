//! Sets up the sandbox of a run, before the first ask.

use std::{collections::BTreeSet, path::Path, sync::Arc, thread::JoinHandle};

use cuegate_flow::model::{Act, Flow, sandbox::SandboxRule};
use cuegate_runner::sandbox::{Sandbox, SandboxError, SandboxLevel};

use super::start_run::Program;
use crate::Failure;
use crate::config::Config;

/// Environment variables that set a network proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The sandbox of a run, or why it has none.
#[derive(Debug, Clone)]
pub enum RunSandbox {
    /// The run is in a sandbox.
    Inside(Box<Sandbox>),
    /// The user or the definition turned it off.
    Off,
    /// This machine cannot provide one, not even a partial one, and the definition does not require it.
    Unavailable(SandboxError),
}

impl RunSandbox {
    /// The sandbox.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        match self {
            RunSandbox::Inside(sandbox) => Some(sandbox),
            RunSandbox::Off | RunSandbox::Unavailable(_) => None,
        }
    }
}

/// The sandbox that a run was started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxAtStart {
    /// None, or the run starts now.
    None,
    /// The partial level.
    Partial,
    /// The full level.
    Full,
    /// Nobody knows: the run was not started on this machine in this folder.
    Unknown,
}

/// The sandbox of a run. `off`: the user turned it off. A resumed run never continues by itself in less than what it was
/// started in.
///
/// # Errors
/// When a sandbox is required and this machine cannot provide one.
pub fn create_run_sandbox(
    flow: &Flow,
    off: bool,
    before: SandboxAtStart,
    program: &Program,
    config: &Config,
) -> Result<RunSandbox, Failure> {
    let policy = if off { None } else { flow.conduct.sandbox.policy() };
    let Some(policy) = policy else { return Ok(RunSandbox::Off) };
    let is_unstated = flow.conduct.sandbox == SandboxRule::Unstated;
    let partial = is_unstated && before != SandboxAtStart::Full;
    let must = before != SandboxAtStart::None;
    match Sandbox::raise(policy, config.sandbox.options(), program.inside(), partial) {
        Ok(sandbox) => Ok(RunSandbox::Inside(Box::new(sandbox))),
        Err(no_sandbox) if is_unstated && !must => Ok(RunSandbox::Unavailable(no_sandbox)),
        Err(no_sandbox) => {
            let who = match before {
                SandboxAtStart::Unknown => "a run of another machine or folder goes on in",
                _ if must => "the run was started in",
                _ => "the definition requires",
            };
            Err(Failure {
                message: format!("{who} a sandbox, but {no_sandbox}"),
                hint: Some(format!(
                    "{}; `--no-sandbox` runs it without one, and its agents have full access to this machine",
                    no_sandbox.hint
                )),
                code: crate::exit::ENVIRONMENT,
            })
        }
    }
}

/// A sandbox that is being set up, while the working tree is looked at: both take about as long.
pub struct PendingSandbox(JoinHandle<Result<RunSandbox, Failure>>);

impl PendingSandbox {
    /// Begins to set up the sandbox of a run that starts now.
    pub fn begin(flow: &Arc<Flow>, off: bool, program: &Program, config: &Config) -> PendingSandbox {
        let (flow, program, config) = (flow.clone(), program.clone(), config.clone());
        let create = move || create_run_sandbox(&flow, off, SandboxAtStart::None, &program, &config);
        PendingSandbox(std::thread::spawn(create))
    }

    /// Waits for it.
    ///
    /// # Errors
    /// As [`create_run_sandbox`].
    pub fn finish(self) -> Result<RunSandbox, Failure> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What the agents of a run may do, in words: the permissions of its steps, and its sandbox.
pub fn describe_permission(flow: &Flow, run_sandbox: &RunSandbox, config: &Config) -> String {
    format!("{}; {}", list_permissions(flow), held_by(flow, run_sandbox, config))
}

/// The permissions of the steps that call agents.
pub fn list_permissions(flow: &Flow) -> String {
    let asks = flow.steps.iter().filter(|step| matches!(step.act, Act::Ask(_)));
    let permissions: BTreeSet<&str> = asks.map(|step| step.boundary.permission.as_str()).collect();
    permissions.into_iter().collect::<Vec<_>>().join(", ")
}

/// The sandbox of a run in words.
pub fn held_by(flow: &Flow, run_sandbox: &RunSandbox, config: &Config) -> String {
    const ACCESS: &str = "commands have full access to this machine";
    match (run_sandbox, &flow.conduct.sandbox) {
        (RunSandbox::Inside(sandbox), _) => sandbox.describe(writable_part(flow, config)),
        (RunSandbox::Unavailable(why), _) => format!("no sandbox, because {why}: {ACCESS}"),
        (RunSandbox::Off, SandboxRule::Required(_)) => {
            format!("no sandbox, though the definition requires one (`--no-sandbox`): {ACCESS}")
        }
        (RunSandbox::Off, SandboxRule::Off) => format!("no sandbox, as the definition says: {ACCESS}"),
        (RunSandbox::Off, SandboxRule::Unstated) => format!("no sandbox (`--no-sandbox`): {ACCESS}"),
    }
}

/// What agents of a flow may write of the working tree.
fn writable_part(flow: &Flow, config: &Config) -> &'static str {
    let mut asks = flow.steps.iter().filter(|step| matches!(step.act, Act::Ask(_)));
    let mut readers = asks.clone().filter(|step| !step.boundary.permission.may_write());
    let reads = readers.next().is_some();
    match asks.any(|step| step.boundary.permission.may_write()) {
        true if reads => "the working tree, and in read-only steps only what git ignores there",
        true => "the working tree",
        false if config.boundary.spares_new_files() => "new files of the working tree",
        false => "only files that git ignores, and folders that `.gitignore` names",
    }
}

/// The parts of the sandbox that are not available, in words.
pub fn describe_sandbox_gaps(run_sandbox: &RunSandbox, work: &Path, root: &Path) -> Vec<String> {
    let sandbox = match run_sandbox {
        RunSandbox::Inside(sandbox) => sandbox,
        RunSandbox::Unavailable(why) => return vec![format!("to run in a sandbox, {}", why.hint)],
        RunSandbox::Off => return Vec::new(),
    };
    let level = match sandbox.level() {
        SandboxLevel::Full(_) => Vec::new(),
        SandboxLevel::Partial(why) => vec![
            "with Landlock alone agents can change the definition, `cuegate.toml`, the settings of git and, without \
             `--worktree`, the run's own records: that protects against mistakes, not against a hostile agent"
                .to_owned(),
            format!("to run in a full sandbox, {}", why.hint),
        ],
    };
    let missing = sandbox.missing(work, root);
    let note = |(path, key): &(String, &str)| match *key {
        "allowedPaths" => format!("`{path}` in `allowedPaths` does not exist; agents cannot write there"),
        key => format!("`{path}` in `{key}` of `cuegate.toml` does not exist"),
    };
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let proxy = PROXIES.iter().find(is_set);
    let proxy = proxy.map(|name| format!("the proxy in {name} is not used inside the sandbox"));
    level.into_iter().chain(missing.iter().map(note)).chain(proxy).collect()
}
