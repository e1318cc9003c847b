//! Questions of a run that somebody is there to answer: asked in place.

use std::io::BufRead as _;

use cuegate_engine::{Run, Work};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{Letter, lookup, now_ms, waits_for_person};

use crate::{
    Failure,
    cli::{print, stop},
    start_run,
    start_run::{Again, Host, Ready},
};

/// Drives a run until it ends or waits for something that nobody here can give. Where a person is at the terminal, what
/// it asks is asked there.
pub(super) fn drive(host: &Host, id: &RunId, ready: Ready) -> Result<(), Failure> {
    super::drive(ready)?;
    while asked(&*host.journal, id)? {
        super::drive(start_run::resume(host, id, &Again::default())?)?;
    }
    Ok(())
}

/// Asks at the terminal what a run waits to be told, and leaves the answer for it. Says whether there is one.
pub(super) fn asked(journal: &dyn Journal, id: &RunId) -> Result<bool, Failure> {
    if !print::is_interactive() {
        return Ok(false);
    }
    let Some(question) = question(journal, id)? else { return Ok(false) };
    let Some(answer) = ask(&question)? else { return Ok(false) };
    let letter = serde_json::to_vec(&Letter::Answer { text: answer }).unwrap_or_default();
    journal.post(id, now_ms(), &letter)?;
    Ok(true)
}

/// What the run waits to be told; `None` when it does not wait for a person.
fn question(journal: &dyn Journal, id: &RunId) -> Result<Option<String>, Failure> {
    let entries = cuegate_runner::records(journal, id)?;
    let run = Run::fold(entries.iter().map(|entry| entry.events.as_slice()));
    let Some(question) = run.question.as_ref().filter(|_| waits_for_person(&run.state)) else {
        return Ok(None);
    };
    Ok(Some(format!("{}{}", said(journal, &run)?, lookup(journal, question)?)))
}

/// What was said by whoever led to a question of the definition: that is what it is about. An agent's own question
/// speaks for itself.
fn said(journal: &dyn Journal, run: &Run) -> Result<String, Failure> {
    let mut text = String::new();
    if run.node.as_ref().is_some_and(|node| node.work == Work::Person) {
        for spoken in &run.previous {
            if let Some(said) = &spoken.text {
                let said = lookup(journal, said)?;
                text.push_str(&format!("{} said:\n{}\n\n", spoken.step, said.trim_end()));
            }
        }
    }
    Ok(text)
}

/// Asks at the terminal. An empty line, the end of the input and Ctrl-C leave the run waiting.
fn ask(question: &str) -> Result<Option<String>, Failure> {
    print::line("");
    for line in question.trim_end().lines() {
        print::line(&cuegate_view::clean(line));
    }
    let answer = line("answer (an empty line leaves the run waiting): ")?;
    print::line("");
    Ok(answer.filter(|answer| !answer.is_empty()))
}

/// Asks for a line at the terminal; `None` at the end of the input and for Ctrl-C.
pub(super) fn line(prompt: &str) -> Result<Option<String>, Failure> {
    print::prompt(prompt);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let answer = runtime.block_on(async {
        let mut stop = stop::on_signals();
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        tokio::select! {
            line = read => line.ok().and_then(Result::ok),
            _ = stop.wait_for(|stop| *stop) => None,
        }
    });
    // The thread that reads the terminal is not waited for.
    runtime.shutdown_background();
    Ok(answer.filter(|line| !line.is_empty()).map(|line| line.trim().to_owned()))
}
