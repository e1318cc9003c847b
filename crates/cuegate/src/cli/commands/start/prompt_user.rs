//! Prompts the user at the terminal for the answers that a run waits for.

use std::io::BufRead as _;

use cuegate_engine::{Run, Work};
use cuegate_journal::{Journal, RunId};
use cuegate_runner::{InboxMessage, now_ms, read_stored_text, waits_for_person};

use crate::Failure;
use crate::cli::notify::send_notifications;
use crate::cli::{print, stop};
use crate::run::start_run;
use crate::run::start_run::{Host, PreparedRun, ResumeRequest};

/// Drives a run until it ends or suspends. At an interactive terminal, prompts for answers and continues with them.
pub(in crate::cli::commands) fn drive_with_prompts(
    host: &Host,
    id: &RunId,
    ready: PreparedRun,
) -> Result<(), Failure> {
    crate::cli::commands::drive_run(ready).map_err(|failure| match host.home.shared().is_some() || host.home.runs().exists() {
        true => failure,
        false => Failure {
            message: format!(
                "`{}`, which holds the records of all runs, was deleted while run {id} worked",
                host.home.dir().display()
            ),
            hint: Some(
                "what the run changed is where it worked; `git clean -x` deletes this folder: leave it out with \
                 `-e .cuegate`"
                    .to_owned(),
            ),
            ..failure
        },
    })?;
    while may_prompt_for_answer(&*host.journal, id)? {
        // The person may have gone away.
        let view = crate::project::view_of(&*host.journal, id)?;
        send_notifications(&host.config.notify, &view, None);
        if !prompt_and_post_answer(&*host.journal, id)? {
            break;
        }
        crate::cli::commands::drive_run(start_run::prepare_resumed_run(
            host,
            id,
            &ResumeRequest::default(),
        )?)?;
    }
    Ok(())
}

/// Whether the run waits for an answer, and a person can be prompted for it.
fn may_prompt_for_answer(journal: &dyn Journal, id: &RunId) -> Result<bool, Failure> {
    Ok(print::is_interactive() && question_of_run(journal, id)?.is_some())
}

/// Prompts for the answer that a run waits for and posts it to the run. Returns whether there was an answer.
pub(in crate::cli::commands) fn prompt_and_post_answer(
    journal: &dyn Journal,
    id: &RunId,
) -> Result<bool, Failure> {
    if !print::is_interactive() {
        return Ok(false);
    }
    let Some(question) = question_of_run(journal, id)? else { return Ok(false) };
    let Some(answer) = prompt_for_answer(&question)? else { return Ok(false) };
    let letter = serde_json::to_vec(&InboxMessage::Answer { text: answer }).unwrap_or_default();
    journal.post(id, now_ms(), &letter)?;
    Ok(true)
}

/// The question of the run, with its context; `None` when the run does not wait for a person.
pub(in crate::cli::commands) fn question_of_run(
    journal: &dyn Journal,
    id: &RunId,
) -> Result<Option<String>, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    let Some(question) = run.context.question.as_ref().filter(|_| waits_for_person(&run.state)) else {
        return Ok(None);
    };
    Ok(Some(format!("{}{}", previous_answers(journal, id, &run)?, read_stored_text(journal, id, question)?)))
}

/// The answers of the steps before a person step: its question is about them. Empty for an agent's own question, which
/// carries its context itself.
fn previous_answers(journal: &dyn Journal, id: &RunId, run: &Run) -> Result<String, Failure> {
    let mut text = String::new();
    if run.progress.node.as_ref().is_some_and(|node| node.work == Work::Person) {
        for previous in &run.context.previous {
            if let Some(blob) = &previous.text {
                let answer = read_stored_text(journal, id, blob)?;
                text.push_str(&format!("{} answered:\n{}\n\n", previous.step, answer.trim_end()));
            }
        }
    }
    Ok(text)
}

/// Prompts for an answer. An empty line, the end of the input or Ctrl-C leaves the run suspended.
pub(in crate::cli::commands) fn prompt_for_answer(question: &str) -> Result<Option<String>, Failure> {
    print::print_important("");
    for line in question.trim_end().lines() {
        print::print_important(&cuegate_view::clean_to_one_line(line));
    }
    let answer = read_terminal_line("answer (empty line: leave the run suspended): ")?;
    print::print_important("");
    Ok(answer.filter(|answer| !answer.is_empty()))
}

/// Reads a line from the terminal; `None` at the end of the input or on Ctrl-C.
pub(in crate::cli::commands) fn read_terminal_line(prompt: &str) -> Result<Option<String>, Failure> {
    print::print_prompt(prompt);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let answer = runtime.block_on(async {
        let mut stop = stop::on_signals("cuegate resume last");
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        tokio::select! {
            line = read => line.ok().and_then(Result::ok),
            _ = stop.wait_for(|stop| *stop) => None,
        }
    });
    // Do not wait for the thread that reads the terminal.
    runtime.shutdown_background();
    Ok(answer.filter(|line| !line.is_empty()).map(|line| line.trim().to_owned()))
}
