//! Runs the validators of a definition once before the first ask. One that fails before any change may never pass, for
//! example because a program is missing, and then the run is paid for nothing.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cuegate_engine::Place;
use cuegate_flow::model::{Act, Flow, Success, Validator};
use cuegate_journal::RunId;
use cuegate_runner::{ExecutorMessage, StateDir, sandbox::Sandbox};

use tokio::sync::mpsc;

use super::diagnose::{FailureCause, cause_in_sandbox, find_missing, find_setup};
use crate::run::start_run::{Host, folder_of};
use crate::run::tried_command::{TriedCommand, build_runtime, launch_of_command, run_once, try_command};
use crate::{Failure, Program};

/// The time limit of one validator. Its own limit is often longer than a user waits for a run to start.
const ONE_MAX: Duration = Duration::from_secs(120);
/// The time limit of all validators.
const ALL_MAX: Duration = Duration::from_secs(300);

/// A validator that fails before any change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaselineFailure {
    /// Its name.
    pub(crate) validator: String,
    pub(crate) command: String,
    /// How it ended.
    pub(crate) ended: String,
    /// Whether its program is missing or not executable, by its exit code.
    pub(crate) cannot_run: bool,
    /// The lines that tell why.
    pub(crate) output: Vec<String>,
    /// The end of all that it printed.
    pub(crate) text: String,
    /// The hosts with their ports to which the sandbox refused a connection.
    pub(crate) refused: Vec<String>,
    /// Why it cannot pass, whatever an agent does.
    pub(crate) cause: Option<FailureCause>,
}

/// Runs each validator of a flow once in `work`, in the sandbox of the run. Returns those that failed.
///
/// # Errors
/// When a process cannot be started.
pub(crate) fn failing_validators(
    host: &Host,
    id: &RunId,
    flow: &Flow,
    (sandbox, sealed): (Option<&Sandbox>, &[PathBuf]),
    place: &Place,
) -> Result<Vec<BaselineFailure>, Failure> {
    let (tree, work) = (Path::new(&place.work), &folder_of(Path::new(&place.work), place));
    let mut known = BTreeSet::new();
    let mut failed = Vec::new();
    let runtime = build_runtime()?;
    let began = Instant::now();
    // What reads a value of the run cannot run before it.
    let own = validators_of_flow(flow).filter(|validator| validator.values.is_empty());
    for validator in own.filter(|validator| known.insert(validator.command.clone())) {
        let left = ALL_MAX.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        let dir = host.home.run(id).join("baseline");
        let limit = left.min(ONE_MAX);
        let run_in = |tree: &Path, work: &Path| {
            let held = (&host.program, &host.home, sandbox, sealed);
            let ran = runtime.block_on(run_validator(held, &dir, validator, (tree, work), limit, Some(id)));
            let _ = std::fs::remove_dir_all(&dir);
            ran
        };
        let Some(mut one) = run_in(tree, work)? else { continue };
        let held = sandbox.filter(|sandbox| sandbox.holds_validators());
        one.cause = held.and_then(|sandbox| cause_in_sandbox(&one, sandbox));
        if one.cause.is_none() && place.owned && place.follows.is_none() {
            let (root, main) = (host.home.root(), folder_of(host.home.root(), place));
            if run_in(root, &main)?.is_none() {
                let is_set_up = !host.config.worktree.setup.0.is_empty();
                let setup = if is_set_up { None } else { find_setup(root, &main) };
                one.cause = Some(match place.dirty {
                    // What an applied run changed is most often what is missing.
                    true if setup.is_none() => FailureCause::Uncommitted,
                    _ => FailureCause::Worktree { setup },
                });
            }
        }
        if one.cause.is_none() {
            one.cause = find_missing(&one);
        }
        failed.push(one);
    }
    Ok(failed)
}

/// The validators and gate commands of a flow.
fn validators_of_flow(flow: &Flow) -> impl Iterator<Item = &Validator> {
    flow.steps.iter().flat_map(|step| match &step.act {
        Act::Exec { commands } => commands.as_slice(),
        _ => &[],
    })
}

/// What a validator runs in.
type Held<'a> = (&'a Program, &'a StateDir, Option<&'a Sandbox>, &'a [PathBuf]);

async fn run_validator(
    (program, home, sandbox, sealed): Held<'_>,
    dir: &Path,
    validator: &Validator,
    (tree, work): (&Path, &Path),
    limit: Duration,
    run: Option<&RunId>,
) -> Result<Option<BaselineFailure>, Failure> {
    let limit = limit.min(Duration::from_millis(validator.timeout_ms));
    let launch = launch_of_command(&validator.command, work, limit, run);
    let inside = sandbox.filter(|sandbox| sandbox.holds_validators());
    let (tell, mut heard) = mpsc::channel(64);
    let enclosed = inside.map(|sandbox| sandbox.enclose_validator(launch.clone(), home, tree, sealed, tell));
    let (launch, guard) = match enclosed {
        Some(enclosed) => enclosed.map(|(launch, guard)| (launch, Some(guard)))?,
        None => (launch, None),
    };
    let tried = try_command(&program.shim(), dir, launch, &validator.success).await?;
    drop(guard);
    // A command that takes long is not judged: it may well pass.
    let failed = !tried.passed && !tried.timed_out;
    let refused = std::iter::from_fn(|| heard.try_recv().ok()).filter_map(|heard| match heard {
        ExecutorMessage::Refused { to, .. } => Some(to),
        _ => None,
    });
    Ok(failed.then(|| BaselineFailure {
        validator: validator.name.to_string(),
        command: validator.command.to_string(),
        ended: tried.ended,
        cannot_run: tried.cannot_run,
        output: tried.output,
        text: tried.text,
        refused: refused.collect(),
        cause: None,
    }))
}

/// Runs a test command once as a run does: in the sandbox, and in `work`, a part of the working tree `tree`, whose state
/// dir is `home`. `None` if it passes, or takes longer than two minutes.
///
/// # Errors
/// When a process cannot be started.
pub(crate) fn try_in_sandbox(
    (program, home): (&Program, &StateDir),
    sandbox: Option<&Sandbox>,
    command: &str,
    (tree, work): (&Path, &Path),
) -> Result<Option<BaselineFailure>, Failure> {
    let dir = tempfile::tempdir()
        .map_err(|error| Failure::environment(format!("failed to create a temporary folder: {error}")))?;
    let validator = Validator {
        name: "tests".into(),
        command: command.into(),
        success: Success::ExitCode(0),
        extract: Vec::new(),
        timeout_ms: ONE_MAX.as_millis() as u64,
        values: Vec::new(),
    };
    let held = (program, home, sandbox, &[][..]);
    let failed = build_runtime()?.block_on(run_validator(
        held,
        dir.path(),
        &validator,
        (tree, work),
        ONE_MAX,
        None,
    ))?;
    let inside = sandbox.filter(|sandbox| sandbox.holds_validators());
    Ok(failed.map(|mut failed| {
        failed.cause = inside.and_then(|sandbox| cause_in_sandbox(&failed, sandbox));
        failed
    }))
}

/// Runs a command of a definition that is being written once, in `work`, for at most two minutes.
///
/// # Errors
/// When the process cannot be started.
pub(crate) fn try_once(program: &Program, command: &str, work: &Path) -> Result<TriedCommand, Failure> {
    run_once(program, command, work, ONE_MAX, None)
}
