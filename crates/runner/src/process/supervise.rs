//! What the shim's main thread does while the child runs, and how it makes sure that nothing is left.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, wait, waitid, waitpid,
};

use super::processes;
use super::spool::{Spool, as_ms, read_json};
use super::wire::{Ended, ExitRecord};

/// What the runner writes to the lifeline to have the child ended with a grace period.
pub(super) const POLITE: u8 = b'p';

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
/// How long after SIGKILL we believe that a process may still go.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// How often orphans that ended by themselves are reaped while the child runs.
const REAP_EVERY: Duration = Duration::from_secs(5);

/// What the threads tell the main thread.
pub(super) enum Event {
    /// The runner asks for an end with grace.
    Polite,
    /// The lifeline ended.
    Cut,
    /// The child ended. It is still a zombie.
    Ended,
    /// There was more output than may be.
    Full,
    /// A stream of the child was read to its end.
    Recorded(io::Result<()>),
    /// All of stdout went to the runner, or the runner does not read any more.
    Followed,
}

/// Whether the runner may still read lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    There,
    Gone,
}

/// The main thread's view while the child runs.
pub(super) struct Watch<'a> {
    pid: Pid,
    events: &'a Receiver<Event>,
    ended: &'a mut Ended,
    streams_open: u8,
    /// When the time that SIGTERM leaves is over.
    grace_end: Option<Instant>,
    /// When SIGKILL was sent.
    killed_at: Option<Instant>,
    reader: Reader,
}

impl<'a> Watch<'a> {
    pub fn new(pid: Pid, events: &'a Receiver<Event>, ended: &'a mut Ended) -> Watch<'a> {
        Watch { pid, events, ended, streams_open: 2, grace_end: None, killed_at: None, reader: Reader::There }
    }

    pub fn until_gone(mut self, timeout: Option<Duration>, spool: &Spool) -> Result<Reader, String> {
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

    /// Returns when the child has ended, which it does at `deadline` at the latest.
    fn until_ended(&mut self, mut deadline: Option<Instant>) -> Result<(), String> {
        loop {
            let now = Instant::now();
            let next = [deadline, self.grace_end].into_iter().flatten().min();
            let patience =
                next.map_or(REAP_EVERY, |next| next.saturating_duration_since(now).min(REAP_EVERY));
            match self.next(patience) {
                Ok(Event::Ended) => return Ok(()),
                Ok(Event::Polite) => {
                    self.ended.cut = true;
                    self.grace_end = self.grace_end.or_else(|| Some(self.terminate()));
                }
                // After a polite word the runner lets go of the lifeline; the grace period stays.
                Ok(Event::Cut) if self.ended.cut => {}
                // The runner died. Its agent still gets the grace period: a git that is killed outright leaves a lock
                // behind that stops every later commit.
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
            if self.killed_at.is_some_and(|at| at.elapsed() > KILLED_WITHIN) {
                return Err("the child could not be killed".to_owned());
            }
        }
    }

    /// Returns when both streams are at their end. A process that we could not kill may hold them open; then what there
    /// is has to do.
    fn until_recorded(&mut self) -> Result<(), String> {
        let until = Instant::now() + KILLED_WITHIN;
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

    fn next(&mut self, patience: Duration) -> Result<Event, RecvTimeoutError> {
        let event = self.events.recv_timeout(patience)?;
        if matches!(event, Event::Polite | Event::Cut | Event::Followed) {
            self.reader = Reader::Gone;
        }
        Ok(event)
    }

    /// A spool that could not be written (disk full) must not be taken for a whole one.
    fn recorded(&mut self, result: io::Result<()>) -> Result<(), String> {
        self.streams_open -= 1;
        result.map_err(|error| format!("failed to record the output: {error}"))
    }

    /// Asks the group to end; returns when it has had its time.
    fn terminate(&self) -> Instant {
        send(self.pid, Signal::TERM);
        Instant::now() + GRACE
    }

    /// What the child had started gets the rest of the grace period as well. It counts as gone when it was not seen
    /// several times in a row: a process whose parent just died may be missed by one look.
    fn let_others_end(&self) {
        const LOOKS: u32 = 4;
        let own = self.pid.as_raw_nonzero().get();
        let mut unseen = 0;
        while unseen < LOOKS && self.grace_end.is_some_and(|end| Instant::now() < end) {
            thread::sleep(Duration::from_millis(3));
            self.reap_orphans();
            unseen = if processes::children().iter().any(|&child| child != own) { 0 } else { unseen + 1 };
        }
    }

    fn kill(&mut self) {
        send(self.pid, Signal::KILL);
        self.killed_at.get_or_insert_with(Instant::now);
    }

    fn reap_orphans(&self) {
        for child in processes::children() {
            if let Some(child) = Pid::from_raw(child).filter(|&child| child != self.pid) {
                let _ = waitpid(Some(child), WaitOptions::NOHANG);
            }
        }
    }
}

/// Signals the child and its group. The child must not be reaped yet, so that neither its id nor its group's can mean
/// anybody else. Right after the start it may not lead a group yet.
fn send(child: Pid, signal: Signal) {
    let _ = kill_process_group(child, signal);
    let _ = kill_process(child, signal);
}

/// For a shim that has failed: nothing stays behind, and nothing is recorded.
pub(super) fn end_all(child: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let not_reaped = waitid(WaitId::Pid(child), options).is_ok();
    if not_reaped {
        send(child, Signal::KILL);
    }
    end_orphans();
}

/// Kills whatever descends from the child, also what left its group: those who lost their parent are our children now,
/// and those who have one become so when it is killed. Returns how many could not be ended.
fn end_orphans() -> u32 {
    let until = Instant::now() + KILLED_WITHIN;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return 0,
            Ok(None) => {}
        }
        let children = processes::children();
        if Instant::now() >= until {
            return children.len().try_into().unwrap_or(u32::MAX);
        }
        children.into_iter().for_each(processes::kill);
        thread::sleep(Duration::from_millis(1));
    }
}

/// The main thread ends only with the process, so nobody misses what can't be sent.
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

/// Waits for the child without reaping it: its id stays taken until its group is killed.
pub(super) fn watch_end(pid: Pid, sender: &Sender<Event>) {
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    let _ = sender.send(Event::Ended);
}
