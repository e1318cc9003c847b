//! The main loop of a run: performs pending commands and commits their completions until no command is pending.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cuegate_engine::{
    Command, CommandId, Completion, EndState, Event, Run, State, WaitKind, list_pending_commands,
};
use cuegate_journal::{Journal, Message, MessageId, RunId};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    error::Error,
    executor::{CommandResult, Executor},
    process::kill_descendants,
    run_writer::{Entry, RunWriter},
};

/// Progress of a run, for display.
#[derive(Debug)]
pub enum Notice<'n> {
    /// A record was journaled.
    Record(&'n Entry),
    /// An agent did something. Not journaled.
    Activity(&'n AgentActivity),
    /// A report file could not be written. Its content is in the journal.
    Unkept(&'n Error),
    /// Something that the user should know. Not journaled.
    Warning(&'n str),
    /// Time passed.
    Tick,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AgentActivity {
    pub ask: CommandId,
    pub activity: cuegate_provider::Activity,
}

/// Messages from commands in progress.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorMessage {
    /// An agent did something.
    Doing(AgentActivity),
    /// Something that the user should know: a file that snapshots leave out, or where a commit is kept.
    Warning(String),
    /// The sandbox refused a connection.
    Refused {
        /// The command whose process tried to connect.
        by: CommandId,
        /// The host with its port.
        to: String,
        why: String,
    },
}

/// A message that another process may post to a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum InboxMessage {
    /// End the run.
    Cancel,
    /// A person's answer to the question of a suspended run.
    Answer {
        /// The text of the answer.
        text: String,
    },
}

/// Commands in progress.
type Running = JoinSet<(CommandId, Result<Option<CommandResult>, Error>)>;

/// Interval at which the loop reads the inbox and sends [`Notice::Tick`].
const TICK: Duration = Duration::from_millis(250);

/// Time limit for children to end after a cut. The loop continues without those that remain.
const CUT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for inspecting the working tree after an interruption.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);

/// The requests to interrupt a run. They turn true and stay so.
#[derive(Debug, Clone)]
pub struct StopRequests {
    /// Cuts the commands in progress.
    pub now: watch::Receiver<bool>,
    /// Begins no further command, and interrupts the run when those in progress have ended; `None`: never requested.
    pub drain: Option<watch::Receiver<bool>>,
}

impl From<watch::Receiver<bool>> for StopRequests {
    fn from(now: watch::Receiver<bool>) -> StopRequests {
        StopRequests { now, drain: None }
    }
}

impl StopRequests {
    fn drains(&self) -> bool {
        self.drain.as_ref().is_some_and(|drain| *drain.borrow())
    }
}

/// Drives a run until it ends or suspends, or is interrupted.
///
/// # Errors
/// When the journal or this machine fails. The run stays at its last record.
pub async fn drive_run<P: Executor + 'static>(
    writer: &mut RunWriter,
    executor: &Arc<P>,
    mut heard: mpsc::Receiver<ExecutorMessage>,
    stops: StopRequests,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    let (mut stop, mut drain) = (stops.now.clone(), stops.drain.clone());
    let (mut cut, mut cut_seen) = watch::channel(false);
    let mut running: Running = JoinSet::new();
    // A former process may have died after writing a record and before writing its report files.
    write_reports(writer, &**executor, notify);
    let mut started: BTreeSet<CommandId> = BTreeSet::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let result = loop {
        match read_inbox(writer, executor, notify).await {
            Err(error) => break Err(error),
            Ok(InboxRequest::Cancel(letter)) => {
                if let Err(error) = cancel_run(writer, letter, &cut, &mut running, executor, notify).await {
                    break Err(error);
                }
                // What was cut stays cut. The effects of the end are done.
                (cut, cut_seen) = watch::channel(false);
            }
            Ok(InboxRequest::Nothing) => {}
        }
        if writer.time_left().is_some_and(|left| left.is_zero()) && !running.is_empty() {
            break out_of_time(writer, &cut, &mut running, executor, notify).await;
        }
        let mut failed = None;
        loop {
            if *stop.borrow() || has_ended(writer.run()) {
                break;
            }
            let pending = list_pending_commands(writer.flow(), writer.run());
            // What is no longer pending never is again.
            started.retain(|id| pending.iter().any(|command| command.id() == *id));
            let drains = stops.drains();
            if drains
                && pending
                    .iter()
                    .all(|command| !started.contains(&command.id()) || is_asleep(writer, command))
            {
                break;
            }
            for command in pending {
                let id = command.id();
                if !drains && started.insert(id) {
                    let execution =
                        executor.clone().perform(writer.flow().clone(), command, cut_seen.clone());
                    running.spawn(async move { (id, execution.await) });
                }
            }
            if running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = wait_until_true(&mut stop) => break,
                () = wait_for_drain(&mut drain), if !drains => {}
                Some(done) = running.join_next() => {
                    // Messages that the command sent before it ended precede its completion.
                    let messages = std::iter::from_fn(|| heard.try_recv().ok());
                    let finished = report_heard(writer, messages, notify)
                        .and_then(|()| journal_completion(writer, &**executor, done, notify));
                    match finished {
                        Ok(Some(again)) => {
                            started.remove(&again);
                        }
                        Ok(None) => {}
                        Err(error) => {
                            failed = Some(error);
                            break;
                        }
                    }
                }
                Some(message) = heard.recv() => {
                    if let Err(error) = report_heard(writer, [message], notify) {
                        failed = Some(error);
                        break;
                    }
                }
                _ = ticks.tick() => {
                    notify(Notice::Tick);
                    if writer.must_journal_time()
                        && let Err(error) = writer.commit(Completion::TimePassed, Vec::new(), &[])
                    {
                        failed = Some(error);
                    }
                    break;
                }
            }
        }
        if let Some(error) = failed
            && !stopped_meanwhile(&mut stop).await
        {
            break Err(error);
        }
        let is_drained = stops.drains() && {
            let pending = list_pending_commands(writer.flow(), writer.run());
            pending.iter().all(|command| !started.contains(&command.id()) || is_asleep(writer, command))
        };
        if *stop.borrow() || is_drained && !has_ended(writer.run()) {
            break interrupt_run(writer, &cut, &mut running, executor, notify).await;
        }
        if has_ended(writer.run()) {
            break Ok(());
        }
        // No command runs and none is pending: the run waits, unless the inbox holds an answer.
        if running.is_empty() {
            let pending = list_pending_commands(writer.flow(), writer.run());
            if pending.is_empty() && !matches!(has_answer(writer), Ok(true)) {
                break Ok(());
            }
            // A command that ended without a completion would be waited for without end.
            if let Some(command) = pending.first().filter(|command| started.contains(&command.id())) {
                break Err(Error::Task(format!("command {} ended without a result", command.id())));
            }
        }
    };
    // The run ended or this machine failed: stop the remaining commands.
    let _ = cut.send(true);
    drain_commands(&mut running).await;
    result
}

/// Whether a run has ended and nothing of it is tried again.
fn has_ended(run: &Run) -> bool {
    matches!(run.state, State::Ended { .. }) && run.effects.pending.is_empty()
}

/// Whether `stop` turns true right after an error. A terminal's Ctrl-C also reaches the git processes that inspect the
/// working tree, and their failure may be noticed first. Finished commands stay pending and are adopted on resume.
async fn stopped_meanwhile(stop: &mut watch::Receiver<bool>) -> bool {
    const CHANCE: Duration = Duration::from_millis(200);
    tokio::time::timeout(CHANCE, wait_until_true(stop)).await.is_ok()
}

async fn wait_until_true(stop: &mut watch::Receiver<bool>) {
    // Without a sender the value never changes again.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn wait_for_drain(drain: &mut Option<watch::Receiver<bool>>) {
    match drain {
        Some(drain) => wait_until_true(drain).await,
        None => std::future::pending().await,
    }
}

/// Whether a command waits for its time, and can be cut without loss.
fn is_asleep(writer: &RunWriter, command: &Command) -> bool {
    let not_before_ms = match command {
        Command::Ask(ask) => ask.not_before_ms,
        Command::Effect(effect) => effect.effect.not_before_ms,
        Command::Read(read) => read.not_before_ms,
        Command::Exec(_) | Command::Probe(_) => None,
    };
    not_before_ms.is_some_and(|at| at > writer.clock().now_ms())
}

/// Writes the report files. A failure is only reported: the journal has the content, so the run continues.
fn write_reports(writer: &RunWriter, executor: &dyn Executor, notify: &mut (dyn FnMut(Notice<'_>) + Send)) {
    if let Err(error) = executor.keep(writer.run()) {
        notify(Notice::Unkept(&error));
    }
}

/// Reports messages of commands in progress. Refusals by the sandbox are journaled, because they can explain a failed
/// run.
fn report_heard(
    writer: &mut RunWriter,
    heard: impl IntoIterator<Item = ExecutorMessage>,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    for message in heard {
        match message {
            ExecutorMessage::Doing(doing) => notify(Notice::Activity(&doing)),
            ExecutorMessage::Warning(text) => notify(Notice::Warning(&text)),
            ExecutorMessage::Refused { by, to, why } => {
                let completion = Completion::SandboxDenied { by, to, why };
                if let Some(entry) = writer.commit(completion, Vec::new(), &[])? {
                    notify(Notice::Record(&entry));
                }
            }
        }
    }
    Ok(())
}

/// Journals the completion of a command. A command that was cut off has none. Returns the id of an effect that is to be
/// tried again.
fn journal_completion(
    writer: &mut RunWriter,
    executor: &dyn Executor,
    done: Result<(CommandId, Result<Option<CommandResult>, Error>), tokio::task::JoinError>,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<Option<CommandId>, Error> {
    let (id, result) = done.map_err(|error| Error::Task(error.to_string()))?;
    let mut again = None;
    if let Some(CommandResult { completion, texts }) = result? {
        if let Some(entry) = writer.commit(completion, texts, &[])? {
            if entry.events.iter().any(|event| matches!(event, Event::ReportWritten { .. })) {
                write_reports(writer, executor, notify);
            }
            again = entry.events.iter().any(|event| matches!(event, Event::EffectDelayed(_))).then_some(id);
            notify(Notice::Record(&entry));
        }
        // What an effect noted of its request is needed when it is tried again.
        if again.is_none() {
            executor.forget(id);
        }
    }
    Ok(again)
}

/// Stops all commands and journals those that finished anyway. Returns whether none of them failed.
async fn stop_all(
    writer: &mut RunWriter,
    cut: &watch::Sender<bool>,
    running: &mut Running,
    executor: &dyn Executor,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<bool, Error> {
    let _ = cut.send(true);
    let mut clean = true;
    let patience = tokio::time::sleep(CUT_TIMEOUT);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            done = running.join_next() => match done {
                // A command that fails while it is being stopped stays pending.
                Some(Ok((_, Err(_))) | Err(_)) => clean = false,
                Some(done) => {
                    journal_completion(writer, executor, done, notify)?;
                }
                None => return Ok(clean),
            },
            () = &mut patience => {
                // A git or one of its filters may hang.
                kill_descendants();
                return Ok(false);
            }
        }
    }
}

/// Suspends the run.
async fn interrupt_run<P: Executor + 'static>(
    writer: &mut RunWriter,
    cut: &watch::Sender<bool>,
    running: &mut Running,
    executor: &Arc<P>,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    let mut seen = None;
    // An interruption must be quick: skip the inspection after a failure, and limit its time.
    if stop_all(writer, cut, running, &**executor, notify).await? {
        let look = executor.clone().look(writer.run().tree.clone());
        let looked = tokio::time::timeout(LOOK_TIMEOUT, look).await;
        if looked.is_err() {
            // Otherwise git and its filters would keep running.
            kill_descendants();
        }
        seen = looked.ok().and_then(Result::ok).flatten();
    }
    if let Some(entry) = writer.commit(Completion::Interrupted { seen }, Vec::new(), &[])? {
        notify(Notice::Record(&entry));
    }
    Ok(())
}

/// Ends the run because its time limit is reached.
async fn out_of_time<P: Executor + 'static>(
    writer: &mut RunWriter,
    cut: &watch::Sender<bool>,
    running: &mut Running,
    executor: &Arc<P>,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    stop_all(writer, cut, running, &**executor, notify).await?;
    // The run ends whether its tree can be inspected or not.
    let seen = executor.clone().look(writer.run().tree.clone()).await.ok().flatten();
    if let Some(entry) = writer.commit(Completion::OutOfTime { seen }, Vec::new(), &[])? {
        notify(Notice::Record(&entry));
    }
    Ok(())
}

/// Cancels the run and records the changes that interrupted asks made.
async fn cancel_run<P: Executor + 'static>(
    writer: &mut RunWriter,
    letter: MessageId,
    cut: &watch::Sender<bool>,
    running: &mut Running,
    executor: &Arc<P>,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    stop_all(writer, cut, running, &**executor, notify).await?;
    // The run ends whether its tree can be inspected or not.
    let seen = executor.clone().look(writer.run().tree.clone()).await.ok().flatten();
    if let Some(entry) = writer.commit(Completion::Cancelled { seen }, Vec::new(), &[letter])? {
        notify(Notice::Record(&entry));
    }
    Ok(())
}

async fn drain_commands(running: &mut Running) {
    let all = async { while running.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(CUT_TIMEOUT, all).await;
    running.abort_all();
}

/// Requests in the inbox that `read_inbox` leaves to its caller.
enum InboxRequest {
    Nothing,
    Cancel(MessageId),
}

/// Handles the messages in the inbox.
async fn read_inbox<P: Executor + 'static>(
    writer: &mut RunWriter,
    executor: &Arc<P>,
    notify: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<InboxRequest, Error> {
    for Message { id, body, .. } in writer.journal().inbox(writer.id())? {
        match serde_json::from_slice(&body) {
            Ok(InboxMessage::Cancel) => return Ok(InboxRequest::Cancel(id)),
            Ok(InboxMessage::Answer { text }) if waits_for_person(&writer.run().state) => {
                let found = executor.clone().look(None).await?.map(|seen| seen.tree);
                let completion = Completion::PersonAnswered { text, found };
                if let Some(entry) = writer.commit(completion, Vec::new(), &[id])? {
                    notify(Notice::Record(&entry));
                }
            }
            // An answer that precedes its question stays in the inbox, and so does an unreadable message.
            Ok(InboxMessage::Answer { .. }) | Err(_) => {}
        }
    }
    Ok(InboxRequest::Nothing)
}

/// Whether the run waits for a person and the answer is in the inbox.
fn has_answer(writer: &RunWriter) -> Result<bool, Error> {
    Ok(waits_for_person(&writer.run().state) && has_inbox_answer(&**writer.journal(), writer.id())?)
}

/// Whether the inbox of a run holds a person's answer.
///
/// # Errors
/// When the journal cannot be read.
pub fn has_inbox_answer(journal: &dyn Journal, run: &RunId) -> Result<bool, Error> {
    let letters = journal.inbox(run)?;
    Ok(letters
        .iter()
        .any(|letter| matches!(serde_json::from_slice(&letter.body), Ok(InboxMessage::Answer { .. }))))
}

/// Whether a run waits for a person.
pub fn waits_for_person(state: &State) -> bool {
    matches!(state, State::Suspended(waiting) if waiting.kind == WaitKind::Person)
}

/// Whether a run has ended and cannot be resumed.
pub fn is_over(state: &State) -> bool {
    matches!(state, State::Ended { state, .. } if *state != EndState::Exhausted)
}
