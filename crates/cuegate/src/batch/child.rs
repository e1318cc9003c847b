//! The processes of the runs of a batch.

use std::{ffi::OsString, path::Path, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader},
    process::Command,
    sync::mpsc,
};

/// What a process of a run tells.
pub(super) enum ChildMessage {
    /// It printed a line.
    Line {
        /// The name of its task.
        name: String,
        line: String,
    },
    /// It ended, and everything that it printed was told.
    Ended {
        /// The key of its task.
        key: String,
        /// Why it could not be started or watched.
        trouble: Option<String>,
        /// Its exit code.
        code: Option<i32>,
    },
}

/// A process of a run. It suspends its run when the process of the batch ends: `--batch-process` asks the system for a
/// signal then.
pub(super) struct Child {
    pid: Option<Pid>,
    is_interrupted: bool,
}

impl Child {
    /// Starts `program` with these arguments in a folder, with `input` on its standard input.
    pub(super) fn start(
        program: &Path,
        task: (&str, &str),
        args: Vec<OsString>,
        at: &Path,
        input: Option<String>,
        tell: mpsc::UnboundedSender<ChildMessage>,
    ) -> Child {
        let (key, name) = (task.0.to_owned(), task.1.to_owned());
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(program);
        command.args(args).current_dir(at).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let trouble = Some(format!("failed to start a process: {error}"));
                let _ = tell.send(ChildMessage::Ended { key, trouble, code: None });
                return Child { pid: None, is_interrupted: false };
            }
        };
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        tokio::spawn(async move {
            if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
                // A process that ends early does not read everything.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            tokio::join!(
                forward_output_lines(stdout, &name, &tell),
                forward_output_lines(stderr, &name, &tell)
            );
            let (trouble, code) = match child.wait().await {
                Ok(status) => (None, status.code()),
                Err(error) => (Some(format!("its process was lost: {error}")), None),
            };
            let _ = tell.send(ChildMessage::Ended { key, trouble, code });
        });
        Child { pid, is_interrupted: false }
    }

    /// Interrupts the run, which suspends it; once, because a second signal would end the process at once.
    pub(super) fn interrupt(&mut self) {
        if let Some(pid) = self.pid.filter(|_| !std::mem::replace(&mut self.is_interrupted, true)) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

async fn forward_output_lines(
    from: Option<impl AsyncRead + Unpin>,
    name: &str,
    tell: &mpsc::UnboundedSender<ChildMessage>,
) {
    let Some(from) = from else { return };
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    while let Ok(1..) = from.read_until(b'\n', &mut bytes).await {
        let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
        let _ = tell.send(ChildMessage::Line { name: name.to_owned(), line });
        bytes.clear();
    }
}
