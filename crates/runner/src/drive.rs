//! The loop: what is pending is performed, what comes back is decided and journaled, until nothing is pending.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cuegate_engine::{CommandId, Completion, EndState, Event, State, WaitKind, pending};
use cuegate_journal::{Journal, Message, MessageId, RunId};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    error::Error,
    executor::{Executor, Performed},
    process::kill_descendants,
    run_writer::{Entry, RunWriter},
};

/// Something to show while a run goes on.
#[derive(Debug)]
pub enum Notice<'n> {
    /// A record was journaled.
    Record(&'n Entry),
    /// An agent did something. For eyes only.
    Activity(&'n Doing),
    /// Files for others to read could not be written; the journal has what belongs into them.
    Unkept(&'n Error),
    /// Time passed.
    Tick,
}

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq)]
pub struct Doing {
    /// In which ask.
    pub ask: CommandId,
    /// What.
    pub activity: cuegate_provider::Activity,
}

/// What is heard of those at work, while they are.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// What an agent does.
    Doing(Doing),
    /// The sandbox kept somebody behind it from reaching something.
    Refused {
        /// The command that is at work.
        by: CommandId,
        /// What: a host with its port.
        to: String,
        /// Why.
        why: String,
    },
}

/// What other processes may put into a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Letter {
    /// End the run.
    Cancel,
    /// A person's answer.
    Answer {
        /// What they say.
        text: String,
    },
}

/// Performances that have not come back.
type AtWork = JoinSet<(CommandId, Result<Option<Performed>, Error>)>;

/// How often the inbox is looked into and time is shown to pass.
const TICK: Duration = Duration::from_millis(250);

/// How long children get to end after a cut before the loop goes on without them.
const CUT_PATIENCE: Duration = Duration::from_secs(10);

/// How long the working tree is looked at after an interruption.
const LOOK_PATIENCE: Duration = Duration::from_secs(3);

/// Drives a run until it ends or waits. `stop` turning true interrupts it.
///
/// # Errors
/// When the journal or this machine fails. The run stands at its last record.
pub async fn drive<P: Executor + 'static>(
    book: &mut RunWriter,
    performer: &Arc<P>,
    mut heard: mpsc::Receiver<Heard>,
    mut stop: watch::Receiver<bool>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    let (cut, cut_seen) = watch::channel(false);
    let mut at_work: AtWork = JoinSet::new();
    // A record may have been written just before a former process could write its files.
    keep(book, &**performer, tell);
    let mut started: BTreeSet<CommandId> = BTreeSet::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let result = loop {
        match read_inbox(book, performer, tell).await {
            Err(error) => break Err(error),
            Ok(Inbox::Cancel(letter)) => {
                break cancel(book, letter, &cut, &mut at_work, performer, tell).await;
            }
            Ok(Inbox::Nothing) => {}
        }
        if book.time_left().is_some_and(|left| left.is_zero()) && !at_work.is_empty() {
            break out_of_time(book, &cut, &mut at_work, performer, tell).await;
        }
        let mut failed = None;
        loop {
            if *stop.borrow() || matches!(book.run().state, State::Ended { .. }) {
                break;
            }
            for command in pending(book.flow(), book.run()) {
                let id = command.id();
                if started.insert(id) {
                    let performance =
                        performer.clone().perform(book.flow().clone(), command, cut_seen.clone());
                    at_work.spawn(async move { (id, performance.await) });
                }
            }
            if at_work.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = is_true(&mut stop) => break,
                Some(done) = at_work.join_next() => {
                    // What was heard of it before it ended comes before its end.
                    let news = std::iter::from_fn(|| heard.try_recv().ok());
                    if let Err(error) = tell_heard(book, news, tell)
                        .and_then(|()| finish(book, &**performer, done, tell))
                    {
                        failed = Some(error);
                        break;
                    }
                }
                Some(news) = heard.recv() => {
                    if let Err(error) = tell_heard(book, [news], tell) {
                        failed = Some(error);
                        break;
                    }
                }
                _ = ticks.tick() => {
                    tell(Notice::Tick);
                    if book.time_to_tell()
                        && let Err(error) = book.commit(Completion::TimePassed, Vec::new(), &[])
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
        if *stop.borrow() {
            break interrupt(book, &cut, &mut at_work, performer, tell).await;
        }
        if matches!(book.run().state, State::Ended { .. }) {
            break Ok(());
        }
        // Nothing is at work and nothing wanted: the run waits, unless a letter lets it go on.
        if at_work.is_empty()
            && pending(book.flow(), book.run()).is_empty()
            && !matches!(has_answer(book), Ok(true))
        {
            break Ok(());
        }
    };
    // Whatever is still at work is no longer wanted: the run ended, or this machine failed.
    let _ = cut.send(true);
    drain(&mut at_work).await;
    result
}

/// Whether the fault that just came was one of being stopped: a terminal's Ctrl-C also goes to the gits that look at the
/// working tree, and whose end is noticed first is chance. What was performed stays pending and is adopted later.
async fn stopped_meanwhile(stop: &mut watch::Receiver<bool>) -> bool {
    const CHANCE: Duration = Duration::from_millis(200);
    tokio::time::timeout(CHANCE, is_true(stop)).await.is_ok()
}

async fn is_true(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone has nobody left to stop for.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Writes the files for others to read. The journal has all of it: what cannot be written is told, and the run goes on.
fn keep(book: &RunWriter, performer: &dyn Executor, tell: &mut (dyn FnMut(Notice<'_>) + Send)) {
    if let Err(error) = performer.keep(book.run()) {
        tell(Notice::Unkept(&error));
    }
}

/// Tells what is heard of those at work. What the sandbox does is journaled: a run that fails over it says so for ever.
fn tell_heard(
    book: &mut RunWriter,
    heard: impl IntoIterator<Item = Heard>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    for news in heard {
        match news {
            Heard::Doing(doing) => tell(Notice::Activity(&doing)),
            Heard::Refused { by, to, why } => {
                let completion = Completion::SandboxDenied { by, to, why };
                if let Some(entry) = book.commit(completion, Vec::new(), &[])? {
                    tell(Notice::Record(&entry));
                }
            }
        }
    }
    Ok(())
}

/// Journals what came back. A performance that was cut has nothing to tell.
fn finish(
    book: &mut RunWriter,
    performer: &dyn Executor,
    done: Result<(CommandId, Result<Option<Performed>, Error>), tokio::task::JoinError>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    let (id, result) = done.map_err(|error| Error::Task(error.to_string()))?;
    if let Some(Performed { completion, texts }) = result? {
        if let Some(entry) = book.commit(completion, texts, &[])? {
            if entry.events.iter().any(|event| matches!(event, Event::ReportWritten { .. })) {
                keep(book, performer, tell);
            }
            tell(Notice::Record(&entry));
        }
        performer.forget(id);
    }
    Ok(())
}

/// Ends what is at work, keeps what had finished all the same. Says whether nothing failed meanwhile.
async fn stop_all(
    book: &mut RunWriter,
    cut: &watch::Sender<bool>,
    at_work: &mut AtWork,
    performer: &dyn Executor,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<bool, Error> {
    let _ = cut.send(true);
    let mut well = true;
    let patience = tokio::time::sleep(CUT_PATIENCE);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            done = at_work.join_next() => match done {
                // What fails while it is being stopped stays pending.
                Some(Ok((_, Err(_))) | Err(_)) => well = false,
                Some(done) => finish(book, performer, done, tell)?,
                None => return Ok(well),
            },
            () = &mut patience => return Ok(false),
        }
    }
}

/// Suspends the run.
async fn interrupt<P: Executor + 'static>(
    book: &mut RunWriter,
    cut: &watch::Sender<bool>,
    at_work: &mut AtWork,
    performer: &Arc<P>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    let mut seen = None;
    // A person who wants out is not kept for a large tree, nor for a look that Ctrl-C has ended already.
    if stop_all(book, cut, at_work, &**performer, tell).await? {
        let look = performer.clone().look(book.run().tree.clone());
        let looked = tokio::time::timeout(LOOK_PATIENCE, look).await;
        if looked.is_err() {
            // A git that was started for it, and the filters that it runs, would go on without us.
            kill_descendants();
        }
        seen = looked.ok().and_then(Result::ok).flatten();
    }
    if let Some(entry) = book.commit(Completion::Interrupted { seen }, Vec::new(), &[])? {
        tell(Notice::Record(&entry));
    }
    Ok(())
}

/// Stops the run because its time is used up.
async fn out_of_time<P: Executor + 'static>(
    book: &mut RunWriter,
    cut: &watch::Sender<bool>,
    at_work: &mut AtWork,
    performer: &Arc<P>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    stop_all(book, cut, at_work, &**performer, tell).await?;
    let seen = performer.clone().look(book.run().tree.clone()).await?;
    if let Some(entry) = book.commit(Completion::OutOfTime { seen }, Vec::new(), &[])? {
        tell(Notice::Record(&entry));
    }
    Ok(())
}

/// Ends the run for good, with what a cut ask had done until then.
async fn cancel<P: Executor + 'static>(
    book: &mut RunWriter,
    letter: MessageId,
    cut: &watch::Sender<bool>,
    at_work: &mut AtWork,
    performer: &Arc<P>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), Error> {
    stop_all(book, cut, at_work, &**performer, tell).await?;
    let seen = performer.clone().look(book.run().tree.clone()).await?;
    if let Some(entry) = book.commit(Completion::Cancelled { seen }, Vec::new(), &[letter])? {
        tell(Notice::Record(&entry));
    }
    Ok(())
}

async fn drain(at_work: &mut AtWork) {
    let all = async { while at_work.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(CUT_PATIENCE, all).await;
    at_work.abort_all();
}

/// What other processes asked for that takes more than a record.
enum Inbox {
    Nothing,
    Cancel(MessageId),
}

/// Acts on what other processes asked for.
async fn read_inbox<P: Executor + 'static>(
    book: &mut RunWriter,
    performer: &Arc<P>,
    tell: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<Inbox, Error> {
    for Message { id, body, .. } in book.journal().inbox(book.id())? {
        match serde_json::from_slice(&body) {
            Ok(Letter::Cancel) => return Ok(Inbox::Cancel(id)),
            Ok(Letter::Answer { text }) if waits_for_person(&book.run().state) => {
                let found = performer.clone().look(None).await?.map(|seen| seen.tree);
                let completion = Completion::PersonAnswered { text, found };
                if let Some(entry) = book.commit(completion, Vec::new(), &[id])? {
                    tell(Notice::Record(&entry));
                }
            }
            // An answer that came before its question waits for it; what nobody can read stays where it is.
            Ok(Letter::Answer { .. }) | Err(_) => {}
        }
    }
    Ok(Inbox::Nothing)
}

/// Whether the run waits for a person whose answer is there.
fn has_answer(book: &RunWriter) -> Result<bool, Error> {
    Ok(waits_for_person(&book.run().state) && answered(&**book.journal(), book.id())?)
}

/// Whether an answer of a person lies in the inbox of a run.
///
/// # Errors
/// When the journal cannot be read.
pub fn answered(journal: &dyn Journal, run: &RunId) -> Result<bool, Error> {
    let letters = journal.inbox(run)?;
    Ok(letters.iter().any(|letter| matches!(serde_json::from_slice(&letter.body), Ok(Letter::Answer { .. }))))
}

/// Whether a run waits for a person.
pub fn waits_for_person(state: &State) -> bool {
    matches!(state, State::Suspended(waiting) if waiting.kind == WaitKind::Person)
}

/// Whether a run ended for good: nothing lets it go on.
pub fn is_over(state: &State) -> bool {
    matches!(state, State::Ended { state, .. } if *state != EndState::Exhausted)
}
