#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::process::ExitStatus;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use super::error::{ProcessError, io_at};
use super::lock;
use super::spool::{FinishedCommand, Spool};
use super::supervise::POLITE;

/// Longest line that [`Child::line`] returns: 32 MiB. Longer lines are truncated; the spool has them whole.
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// A running command. Dropping it kills the command and its descendants without waiting for them.
#[derive(Debug)]
pub struct Child {
    spool: Spool,
    start: String,
    process: tokio::process::Child,
    lifeline: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
    /// The incomplete line. Kept here, so that a `line` future may be dropped at any time.
    partial: Vec<u8>,
}

impl Child {
    pub(super) fn new(spool: Spool, start: String, mut process: tokio::process::Child) -> Child {
        let lifeline = process.stdin.take();
        let stdout = process.stdout.take().expect("the shim's stdout was asked to be a pipe");
        Child { spool, start, process, lifeline, lines: BufReader::new(stdout), partial: Vec::new() }
    }

    /// Waits for the next line of stdout and returns it without its line feed, at most [`LINE_BYTES_MAX`] long; `None`
    /// when the command has ended. A last line without line feed is returned too. Cancel-safe. A slow reader delays
    /// neither the command nor its end.
    pub async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            // The shim's stdout only fails together with the shim; `wait` reports that.
            let chunk = self.lines.fill_buf().await.unwrap_or_default();
            if chunk.is_empty() {
                return (!self.partial.is_empty()).then(|| std::mem::take(&mut self.partial));
            }
            let (line, used, ended) = match chunk.iter().position(|&byte| byte == b'\n') {
                Some(at) => (&chunk[..at], at + 1, true),
                None => (chunk, chunk.len(), false),
            };
            let room = LINE_BYTES_MAX - self.partial.len();
            self.partial.extend_from_slice(&line[..line.len().min(room)]);
            self.lines.consume(used);
            if ended {
                return Some(std::mem::take(&mut self.partial));
            }
        }
    }

    /// Waits until the command and all its descendants have ended, and returns the content of the spool. Skips unread
    /// lines.
    ///
    /// # Errors
    /// [`ProcessError::Lost`] when the shim was killed or failed, so that the end of the command is unknown; [`ProcessError::Io`]
    /// when the shim could not be waited for.
    pub async fn wait(mut self) -> Result<FinishedCommand, ProcessError> {
        self.drain().await;
        // tokio's `wait` closes a stdin that it still has; ours was taken out and stays open until here.
        let status = self.process.wait().await.map_err(io_at("wait for the shim in", &self.spool.dir))?;
        drop(self.lifeline);
        if let Some(finished) = self.spool.finished(Some(&self.start)) {
            tracing::debug!(spool = %self.spool.dir.display(), "end");
            return Ok(finished);
        }
        lock::kill_remaining_processes(&self.spool).await;
        Err(ProcessError::Lost {
            log: log_tail(&self.spool),
            status: describe_exit_status(status),
            dir: self.spool.dir,
        })
    }

    /// Ends the command: SIGTERM to its process group, SIGKILL to all remaining processes 300 ms later. Returns when no
    /// process is left, with the output so far; [`FinishedCommand::cut`] is false if the command had ended by itself before.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub async fn cancel(mut self) -> Result<FinishedCommand, ProcessError> {
        if let Some(mut lifeline) = self.lifeline.take() {
            // If the shim has ended, `wait` reports it.
            let _ = lifeline.write_all(&[POLITE]).await;
        }
        self.wait().await
    }

    async fn drain(&mut self) {
        loop {
            let read = self.lines.fill_buf().await.unwrap_or_default().len();
            if read == 0 {
                return;
            }
            self.lines.consume(read);
        }
    }
}

fn describe_exit_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("ended with code {}", status.code().unwrap_or(-1)),
    }
}

fn log_tail(spool: &Spool) -> String {
    const BYTES_MAX: usize = 2048;
    let log = std::fs::read(spool.log()).unwrap_or_default();
    String::from_utf8_lossy(&log[log.len().saturating_sub(BYTES_MAX)..]).trim().to_owned()
}
