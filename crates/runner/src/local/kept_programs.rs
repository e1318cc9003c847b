//! Starting the programs that a definition brings along: as they were when the run began, whatever their files have
//! become since.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use cuegate_engine::CommandId;
use cuegate_flow::model::Program;
use tokio::sync::watch;

use super::{Local, blocking, former_start, is_cut};
use crate::{
    error,
    error::Error,
    process,
    process::{Finished, Launch},
    sandbox::Who,
};

/// The folder of the program's file, in the folder of its command.
const FOLDER: &str = "handler";
/// How many bytes such a program may print: all of it goes into the journal.
const OUTPUT_MAX: u64 = 1 << 20;

/// What a program is given.
pub(super) struct Given {
    /// On standard input.
    pub(super) stdin: String,
    /// Variables, besides those of this process.
    pub(super) env: Vec<(OsString, OsString)>,
    /// After how long it is killed.
    pub(super) timeout: Duration,
}

impl Local {
    /// Starts a program, or takes what a former start of the same command left complete. `None` when it was cut off.
    pub(super) async fn kept(
        &self,
        id: CommandId,
        program: &Program,
        given: Given,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<Finished>, Error> {
        let dir = self.setting.home.command(&self.setting.run, id);
        if let Some(finished) = process::adopt(&dir).await? {
            return Ok(Some(finished));
        }
        self.after_cut(former_start(&dir)).await?;
        let file = write(&dir, program).await?;
        let mut words = program.start.iter().map(|word| word.to_string().into());
        let first: OsString = words.next().unwrap_or_else(|| "sh".into());
        let launch = Launch {
            args: words.chain([file.into()]).collect(),
            env: given.env,
            stdin: given.stdin.into_bytes(),
            timeout: Some(given.timeout),
            output_max: OUTPUT_MAX,
            ..Launch::new(first, self.setting.work.clone())
        };
        let (launch, used) = self.sandboxed(id, &dir, FOLDER, launch, Who::Handler)?;
        let begun = SystemTime::now();
        let mut child = process::start(&self.setting.shim, &dir, &launch).await?;
        let finished = loop {
            tokio::select! {
                line = child.line() => if line.is_none() { break child.wait().await?; },
                () = is_cut(&mut cut) => break child.cancel().await?,
            }
        };
        drop(used);
        if finished.cut {
            return Ok(None);
        }
        if finished.timed_out || finished.capped {
            self.after_cut(Some(begun)).await?;
        }
        Ok(Some(finished))
    }
}

/// Writes the program where its command has its files.
async fn write(dir: &Path, program: &Program) -> Result<PathBuf, Error> {
    let folder = dir.join(FOLDER);
    let file = folder.join(&*program.name);
    let body = program.body.clone();
    blocking(move || {
        std::fs::create_dir_all(&folder).map_err(error::io("create", &folder))?;
        std::fs::write(&file, body.as_bytes()).map_err(error::io("write", &file))?;
        Ok(file)
    })
    .await
}
