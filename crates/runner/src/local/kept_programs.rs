//! Runs the programs of a definition as they were when the run started, even if their files have changed since.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use cuegate_engine::CommandId;
use cuegate_flow::model::Program;
use tokio::sync::watch;

use super::{LocalExecutor, former_start, is_cut, run_blocking};
use crate::{
    error,
    error::Error,
    process,
    process::{FinishedCommand, Launch},
    sandbox::ProcessKind,
};

/// The folder of the program's file, in the folder of its command.
const FOLDER: &str = "handler";
/// The output limit of a program, in bytes. The whole output is journaled.
const OUTPUT_MAX: u64 = 1 << 20;

/// The input and the time limit of a program.
pub(super) struct ProgramInput {
    /// The standard input.
    pub(super) stdin: String,
    /// Environment variables, in addition to those of this process.
    pub(super) env: Vec<(OsString, OsString)>,
    /// The time limit.
    pub(super) timeout: Duration,
}

impl LocalExecutor {
    /// Runs a program, or adopts the complete result of a former start of the same command. `None` when it was cut off.
    pub(super) async fn run_program(
        &self,
        id: CommandId,
        program: &Program,
        input: ProgramInput,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<FinishedCommand>, Error> {
        let dir = self.setting.home.command(&self.setting.run, id);
        if let Some(finished) = process::adopt_finished_command(&dir).await? {
            return Ok(Some(finished));
        }
        self.clear_locks(former_start(&dir)).await?;
        let file = write_program_file(&dir, program).await?;
        let mut words = program.start.iter().map(|word| word.to_string().into());
        let first: OsString = words.next().unwrap_or_else(|| "sh".into());
        let first = if first == "sh" { cuegate_provider::locate_or_missing("sh").into() } else { first };
        let launch = Launch {
            args: words.chain([file.into()]).collect(),
            env: input.env,
            stdin: input.stdin.into_bytes(),
            timeout: Some(input.timeout),
            output_max: OUTPUT_MAX,
            keeps_end: true,
            ..Launch::new(first, self.setting.cwd.clone())
        };
        let (launch, guard) = self.sandboxed(id, &dir, Some(FOLDER), launch, ProcessKind::Program)?;
        let started = SystemTime::now();
        let mut child = process::start_command(&self.setting.shim, &dir, &launch).await?;
        let finished = loop {
            tokio::select! {
                line = child.line() => if line.is_none() { break child.wait().await?; },
                () = is_cut(&mut cut) => break child.cancel().await?,
            }
        };
        drop(guard);
        if finished.cut {
            return Ok(None);
        }
        self.clear_locks(Some(started)).await?;
        Ok(Some(finished))
    }
}

/// Writes the program into the folder of its command.
async fn write_program_file(dir: &Path, program: &Program) -> Result<PathBuf, Error> {
    let folder = dir.join(FOLDER);
    let file = folder.join(&*program.name);
    let body = program.body.clone();
    run_blocking(move || {
        std::fs::create_dir_all(&folder).map_err(error::io_error_at("create", &folder))?;
        std::fs::write(&file, body.as_bytes()).map_err(error::io_error_at("write", &file))?;
        Ok(file)
    })
    .await
}
