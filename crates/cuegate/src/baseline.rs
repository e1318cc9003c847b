//! Runs the validators of a definition once before the first ask. One that fails before any change may never pass, for
//! example because a program is missing, and then the run is paid for nothing.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, Instant},
};

use cuegate_flow::model::{Act, Flow, Validator};
use cuegate_journal::RunId;
use cuegate_runner::process::{self, Exit, Launch};

use crate::{Failure, start_run::Host};

/// The time limit of one validator. Its own limit is often longer than a user waits for a run to start.
const ONE_MAX: Duration = Duration::from_secs(120);
/// The time limit of all validators.
const ALL_MAX: Duration = Duration::from_secs(300);
/// The output limit of a validator, in bytes.
const OUTPUT_MAX: u64 = 4 << 20;

/// A validator that fails before any change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedBefore {
    /// Its name.
    pub(crate) validator: String,
    /// How it ended.
    pub(crate) ended: String,
    /// The last lines that it printed.
    pub(crate) output: Vec<String>,
}

/// Runs each validator of a flow once in `work`. Returns those that failed.
///
/// # Errors
/// When a process cannot be started.
pub(crate) fn failing_validators(
    host: &Host,
    id: &RunId,
    flow: &Flow,
    work: &Path,
) -> Result<Vec<FailedBefore>, Failure> {
    let mut known = BTreeSet::new();
    let mut failed = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let began = Instant::now();
    for validator in commands(flow).filter(|validator| known.insert(validator.command.clone())) {
        let left = ALL_MAX.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        let dir = host.home.run(id).join("baseline");
        failed.extend(runtime.block_on(run(host, &dir, validator, work, left.min(ONE_MAX)))?);
        let _ = std::fs::remove_dir_all(&dir);
    }
    Ok(failed)
}

/// The validators and gate commands of a flow.
fn commands(flow: &Flow) -> impl Iterator<Item = &Validator> {
    flow.steps.iter().flat_map(|step| match &step.act {
        Act::Exec { commands } => commands.as_slice(),
        _ => &[],
    })
}

async fn run(
    host: &Host,
    dir: &Path,
    validator: &Validator,
    work: &Path,
    limit: Duration,
) -> Result<Option<FailedBefore>, Failure> {
    let limit = limit.min(Duration::from_millis(validator.timeout_ms));
    let launch = Launch {
        args: vec!["-c".into(), validator.command.to_string().into()],
        timeout: Some(limit),
        output_max: OUTPUT_MAX,
        ..Launch::new("sh", work.to_owned())
    };
    let mut child = process::start(&host.program.shim(), dir, &launch).await.map_err(failed_to_run)?;
    while child.line().await.is_some() {}
    let finished = child.wait().await.map_err(failed_to_run)?;
    // A command that takes long is not judged: it may well pass.
    if finished.timed_out {
        return Ok(None);
    }
    let (stdout, stderr) =
        (String::from_utf8_lossy(&finished.stdout), String::from_utf8_lossy(&finished.stderr));
    let (code, ended) = match &finished.exit {
        Exit::Code(code) => (Some(*code), format!("exit {code}")),
        Exit::Signal(signal) => (None, format!("killed by signal {signal}")),
        Exit::NotFound(why) | Exit::NotStarted(why) => (None, why.clone()),
    };
    if validator.success.holds(code, &stdout, &stderr) {
        return Ok(None);
    }
    let output = cuegate_view::last_lines(&format!("{stdout}\n{stderr}"), 3);
    Ok(Some(FailedBefore { validator: validator.name.to_string(), ended, output }))
}

fn failed_to_run(error: process::Error) -> Failure {
    Failure::from(cuegate_runner::Error::from(error))
}
