//! The shim's main loop: supervises the child and makes sure that no process is left.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, wait, waitid, waitpid};

use super::kill;
use super::spool::{Spool, as_ms, read_json};
use super::wire::{EndRecord, ExitRecord};

/// The byte that the runner writes to the lifeline to end the child with a grace period.
pub(super) const POLITE: u8 = b'p';

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
/// Time limit for processes to end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which ended orphans are reaped while the child runs.
const REAP_EVERY: Duration = Duration::from_secs(5);

/// Messages of the helper threads to the main thread.
pub(super) enum Event {
    /// The runner asked to end the child.
    Polite,
    /// The lifeline ended.
    Cut,
    /// The child ended. It is still a zombie.
    Ended,
    /// The output exceeds its limit.
    Full,
    /// A stream of the child was read to its end.
    Recorded(io::Result<()>),
    /// The runner has read all of stdout, or has stopped reading.
    Followed,
}

/// Whether the runner may still read lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderState {
    There,
    Gone,
}

/// The state of the main thread while the child runs.
pub(super) struct ChildWatch<'a> {
    pid: Pid,
    events: &'a Receiver<Event>,
    ended: &'a mut EndRecord,
    streams_open: u8,
    /// The end of the grace period after SIGTERM.
    grace_end: Option<Instant>,
    /// When SIGKILL was sent.
    killed_at: Option<Instant>,
    reader: ReaderState,
}

impl<'a> ChildWatch<'a> {
    pub fn new(pid: Pid, events: &'a Receiver<Event>, ended: &'a mut EndRecord) -> ChildWatch<'a> {
        ChildWatch {
            pid,
            events,
            ended,
            streams_open: 2,
            grace_end: None,
            killed_at: None,
            reader: ReaderState::There,
        }
    }

    pub fn until_gone(mut self, timeout: Option<Duration>, spool: &Spool) -> Result<ReaderState, String> {
        let started = Instant::now();
        self.until_ended(timeout.and_then(|timeout| started.checked_add(timeout)))?;
        self.ended.elapsed_ms = as_ms(started.elapsed());
        self.let_others_end();
        self.kill();
        let status = loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => break status,
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("failed to reap the child: {error}")),
            }
        };
        self.ended.exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitRecord::Code(code),
            (None, signal) => ExitRecord::Signal(signal.unwrap_or_default()),
        };
        self.ended.left = end_orphans();
        self.until_recorded()?;
        if let Some(refused) = read_json(&spool.refused()) {
            self.ended.exit = refused;
        }
        Ok(self.reader)
    }

    /// Returns when the child has ended. Kills it after `deadline`.
    fn until_ended(&mut self, mut deadline: Option<Instant>) -> Result<(), String> {
        loop {
            let now = Instant::now();
            let next = [deadline, self.grace_end].into_iter().flatten().min();
            let timeout = next.map_or(REAP_EVERY, |next| next.saturating_duration_since(now).min(REAP_EVERY));
            match self.next(timeout) {
                Ok(Event::Ended) => return Ok(()),
                Ok(Event::Polite) => {
                    self.ended.cut = true;
                    self.grace_end = self.grace_end.or_else(|| Some(self.terminate()));
                }
                // The runner closes the lifeline after `POLITE`; the grace period stays.
                Ok(Event::Cut) if self.ended.cut => {}
                // The runner died. The agent still gets the grace period: a git killed at once leaves a lock that
                // blocks every later commit.
                Ok(Event::Cut) => {
                    self.ended.cut = true;
                    self.grace_end = self.grace_end.or_else(|| Some(self.terminate()));
                }
                Ok(Event::Full) => {
                    self.ended.capped = true;
                    self.kill();
                }
                Ok(Event::Recorded(result)) => self.recorded(result)?,
                Ok(Event::Followed) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let now = Instant::now();
                    if deadline.is_some_and(|deadline| deadline <= now) {
                        deadline = None;
                        self.ended.timed_out = true;
                        self.grace_end = self.grace_end.or_else(|| Some(self.terminate()));
                    }
                    if self.grace_end.is_some_and(|end| end <= now) {
                        self.grace_end = None;
                        self.kill();
                    }
                    self.reap_orphans();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the watcher of the child's end reports before it ends")
                }
            }
            if self.killed_at.is_some_and(|at| at.elapsed() > KILL_TIMEOUT) {
                return Err("the child could not be killed".to_owned());
            }
        }
    }

    /// Returns when both streams have ended. A process that could not be killed may hold them open; gives up after 5 s.
    fn until_recorded(&mut self) -> Result<(), String> {
        let until = Instant::now() + KILL_TIMEOUT;
        while self.streams_open > 0 {
            match self.next(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Recorded(result)) => self.recorded(result)?,
                Ok(Event::Full) => self.ended.capped = true,
                Ok(_) => {}
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn next(&mut self, timeout: Duration) -> Result<Event, RecvTimeoutError> {
        let event = self.events.recv_timeout(timeout)?;
        if matches!(event, Event::Polite | Event::Cut | Event::Followed) {
            self.reader = ReaderState::Gone;
        }
        Ok(event)
    }

    /// Fails if the output could not be written (disk full), so that the spool is not taken for a complete one.
    fn recorded(&mut self, result: io::Result<()>) -> Result<(), String> {
        self.streams_open -= 1;
        result.map_err(|error| format!("failed to record the output: {error}"))
    }

    /// Sends SIGTERM to the group; returns the end of the grace period.
    fn terminate(&self) -> Instant {
        kill::signal_child_group(self.pid, Signal::TERM);
        Instant::now() + GRACE
    }

    /// Gives the remaining descendants the rest of the grace period. They count as ended when several checks in a row
    /// find none: one check may miss a process whose parent just died.
    fn let_others_end(&self) {
        const CHECKS: u32 = 4;
        let own = self.pid.as_raw_nonzero().get();
        let mut unseen = 0;
        while unseen < CHECKS && self.grace_end.is_some_and(|end| Instant::now() < end) {
            thread::sleep(Duration::from_millis(3));
            self.reap_orphans();
            unseen = if kill::list_children().iter().any(|&child| child != own) { 0 } else { unseen + 1 };
        }
    }

    fn kill(&mut self) {
        kill::signal_child_group(self.pid, Signal::KILL);
        self.killed_at.get_or_insert_with(Instant::now);
    }

    fn reap_orphans(&self) {
        for child in kill::list_children() {
            if let Some(child) = Pid::from_raw(child).filter(|&child| child != self.pid) {
                let _ = waitpid(Some(child), WaitOptions::NOHANG);
            }
        }
    }
}

/// Cleans up after a failure of the shim: kills all descendants and records nothing.
pub(super) fn end_all(child: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let not_reaped = waitid(WaitId::Pid(child), options).is_ok();
    if not_reaped {
        kill::signal_child_group(child, Signal::KILL);
    }
    end_orphans();
}

/// Kills all descendants of the child, also those that left its group. Orphans are our children; the others become so
/// when their parent is killed. Returns the number of processes that could not be killed.
fn end_orphans() -> u32 {
    let until = Instant::now() + KILL_TIMEOUT;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return 0,
            Ok(None) => {}
        }
        let children = kill::list_children();
        if Instant::now() >= until {
            return children.len().try_into().unwrap_or(u32::MAX);
        }
        children.into_iter().for_each(kill::kill_pid);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends lifeline events to the main thread.
pub(super) fn watch_lifeline(sender: &Sender<Event>) {
    let mut stdin = io::stdin().lock();
    let mut byte = [0];
    loop {
        let event = match stdin.read(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(1) if byte[0] == POLITE => Event::Polite,
            Ok(1) => continue,
            _ => Event::Cut,
        };
        let last = matches!(event, Event::Cut);
        if sender.send(event).is_err() || last {
            return;
        }
    }
}

/// Waits for the child without reaping it, so that its id stays reserved until its group is killed.
pub(super) fn watch_end(pid: Pid, sender: &Sender<Event>) {
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    let _ = sender.send(Event::Ended);
}
