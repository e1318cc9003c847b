//! The agent's program as a process: its lines, and its end.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use cuegate_ask::FaultClass;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{events::Trouble, job::DriverJob};

/// The longest line of an agent, in bytes. A message may have a whole file in it.
const LINE_MAX: u64 = 64 << 20;
/// The most that an agent may print, in bytes.
const OUTPUT_MAX: usize = 512 << 20;
/// How much of standard error is kept: its end.
const STDERR_MAX: usize = 8 << 10;
/// How long a program may take to end by itself, and then after `SIGTERM`.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// A line of the program, or the end of its output.
#[derive(Debug)]
pub(super) enum ProgramLine {
    Line(Vec<u8>),
    End,
    /// It printed more than anybody would read.
    TooMuch,
}

/// A running program in a process group of its own. Dropping it ends the group.
pub(super) struct ProgramProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<ProgramLine>,
    stderr: Option<thread::JoinHandle<Vec<u8>>>,
    name: String,
}

impl ProgramProcess {
    pub(super) fn start(job: &DriverJob, args: &[String]) -> Result<ProgramProcess, Trouble> {
        let (program, own) = job.command.split_first().ok_or_else(|| {
            Trouble::new(FaultClass::MissingProgram, format!("the agent `{}` has no program", job.name))
        })?;
        let mut child = Command::new(program)
            .args(own)
            .args(args)
            .envs(&job.env)
            .current_dir(&job.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let why = format!("failed to start `{program}`: {error}");
                Trouble::new(FaultClass::MissingProgram, why)
            })?;
        let (tell, lines) = mpsc::channel();
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let Some(stdout) = stdout {
            thread::spawn(move || {
                let end =
                    forward_lines(BufReader::new(stdout), |line| tell.send(ProgramLine::Line(line)).is_ok());
                tell.send(end).ok();
            });
        }
        let stderr = stderr.map(|stderr| thread::spawn(move || read_end(stderr)));
        Ok(ProgramProcess { child, stdin, lines, stderr, name: job.name.clone() })
    }

    /// Sends it a line and what ends it.
    pub(super) fn write_line(&mut self, line: &[u8]) -> std::io::Result<()> {
        let Some(stdin) = &mut self.stdin else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
        stdin.write_all(line)?;
        stdin.write_all(b"\n")?;
        stdin.flush()
    }

    /// Closes its standard input.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next line, if one comes in this time.
    pub(super) fn next_line(&self, patience: Duration) -> Option<ProgramLine> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(ProgramLine::End),
        }
    }

    /// Waits for its end after the end of its output, and returns how it ended and the end of its standard error.
    pub(super) fn wait(&mut self) -> (Option<ExitStatus>, String) {
        let status = self.stop();
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        (status, String::from_utf8_lossy(&stderr).trim().to_owned())
    }

    /// Ends the program: first it may end by itself, then it is told to, then it is killed with its group.
    fn stop(&mut self) -> Option<ExitStatus> {
        self.stdin = None;
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(0));
        for (index, patience) in PATIENCE.into_iter().enumerate() {
            let until = Instant::now() + patience;
            while Instant::now() < until {
                if let Ok(Some(status)) = self.child.try_wait() {
                    // What it left behind in its group has lost its owner.
                    group.map(|group| kill_process_group(group, Signal::KILL));
                    return Some(status);
                }
                thread::sleep(Duration::from_millis(10));
            }
            let signal = if index == 0 { Signal::TERM } else { Signal::KILL };
            group.map(|group| kill_process_group(group, signal));
        }
        self.child.wait().ok()
    }

    /// The trouble of a program that ended without what it was asked for.
    pub(super) fn trouble_of_end(&mut self, what: &str) -> Trouble {
        let name = self.name.clone();
        let (status, stderr) = self.wait();
        let ended = status.map_or_else(|| "ended".to_owned(), |status| status.to_string());
        let said = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
        let text = format!("{name} {what} ({ended}){said}");
        super::classify::classify_failure(None, &text, FaultClass::Crashed)
    }
}

impl Drop for ProgramProcess {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.stop();
        }
    }
}

/// Hands on each line until the end, or until `take` returns false.
fn forward_lines(mut reader: impl BufRead, mut take: impl FnMut(Vec<u8>) -> bool) -> ProgramLine {
    let mut whole = 0;
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return ProgramLine::End,
            Ok(read) => whole += read,
        }
        let is_whole = line.last() == Some(&b'\n');
        if whole > OUTPUT_MAX || (!is_whole && line.len() as u64 == LINE_MAX) {
            return ProgramLine::TooMuch;
        }
        if is_whole {
            line.pop();
        }
        if !line.trim_ascii().is_empty() && !take(line) {
            return ProgramLine::End;
        }
    }
}

/// The end of what is read.
fn read_end(mut reader: impl Read) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(STDERR_MAX);
        kept.drain(..surplus);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_handed_on_whole() {
        let mut lines = Vec::new();
        let end = forward_lines(&b"one\n\n \ntwo\nrest"[..], |line| {
            lines.push(line);
            true
        });
        assert!(matches!(end, ProgramLine::End));
        assert_eq!(lines, [&b"one"[..], b"two", b"rest"]);
    }

    /// A line again and again.
    struct Lines<'l> {
        line: &'l [u8],
        at: usize,
    }

    impl Read for Lines<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.line[self.at..];
            let read = rest.len().min(to.len());
            to[..read].copy_from_slice(&rest[..read]);
            self.at = (self.at + read) % self.line.len();
            Ok(read)
        }
    }

    #[test]
    fn an_endless_line_is_too_much() {
        let endless = std::io::repeat(b'x');
        assert!(matches!(forward_lines(BufReader::new(endless), |_| true), ProgramLine::TooMuch));
        // Long lines: the bytes count, and each line takes its time.
        let line = [&[b'x'; 1 << 20][..], b"\n"].concat();
        let many = Lines { line: &line, at: 0 };
        assert!(matches!(forward_lines(BufReader::new(many), |_| true), ProgramLine::TooMuch));
    }
}
