//! `answer`: the answer of a person to a run that waits for one.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use cuegate_engine::{EndState, Run, State, WaitKind};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, RunId, log::Durability};
use cuegate_runner::{InboxMessage, now_ms};

use super::resume;
use super::resume::go_on;
use crate::cli::commands::local_project::LocalProject;
use crate::cli::commands::start::prompt_user;
use crate::cli::commands::{ProjectPlace, texts_of_run, view_of};
use crate::cli::print;
use crate::run::moved_run;
use crate::run::start_run;
use crate::run::start_run::{Host, Program, ResumeRequest};
use crate::text_file::{hint_for_unread, read_text, read_text_from};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The run: its id, a unique prefix of it, or `last`; `last` if only the answer is given
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// The answer
    #[arg(conflicts_with = "input")]
    pub(crate) text: Option<String>,
    /// Read the answer from a file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<String>,
    /// Record the answer without resuming the run
    #[arg(long)]
    pub(crate) no_continue: bool,
    /// Resume the run in the background; `cuegate attach` follows it
    #[arg(long, conflicts_with = "no_continue")]
    pub(crate) detach: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long `cancel` waits for the owner of a run to react.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

fn no_answer() -> Failure {
    Failure::usage(
        "no answer was given",
        "give it as text, `cuegate answer RUN \"…\"`, or as a file, `--input FILE`",
    )
}

/// The run of an answer, and its text unless a person still has to write it.
fn run_and_text(place: &ProjectPlace, args: &AnswerArgs) -> Result<(String, Option<String>), Failure> {
    let last = || "last".to_owned();
    if let Some(path) = &args.input {
        let read = match path.as_str() {
            "-" => read_text_from(std::io::stdin()),
            path => read_text(Path::new(path)),
        };
        let text = read.map_err(|error| {
            let hint = hint_for_unread(&error, "check the path given with `--input`");
            Failure::usage(format!("failed to read `{path}`: {error}"), hint)
        })?;
        return Ok((args.run.clone().unwrap_or_else(last), Some(text)));
    }
    match (&args.run, &args.text) {
        (Some(run), Some(text)) => Ok((run.clone(), Some(text.clone()))),
        // A single text is the answer, unless it is the whole id of a run.
        (Some(text), None) => {
            let journal = project::open_existing(&place.home, Durability::Synced)?;
            match project::find_run_id(&place.home, &*journal, text) {
                // Many short answers are the beginning of an id.
                Ok(id) if text == "last" || id.as_str() == text => Ok((text.clone(), None)),
                _ => Ok((last(), Some(text.clone()))),
            }
        }
        (None, _) => Ok((last(), None)),
    }
}

/// Lets a person write the answer: in `$VISUAL` or `$EDITOR`, else at a prompt.
///
/// # Errors
/// Without a terminal, and when the editor fails.
fn written_answer(journal: &dyn Journal, id: &RunId) -> Result<String, Failure> {
    if !print::is_interactive() {
        return Err(no_answer());
    }
    let question = prompt_user::question_of_run(journal, id)?.unwrap_or_default();
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok());
    match editor.filter(|editor| !editor.trim().is_empty()) {
        Some(editor) => edit_answer(&editor, id, &question),
        None => prompt_user::prompt_for_answer(&question)?.ok_or_else(no_answer),
    }
}

/// What is below this line in the editor is not part of the answer.
const CUT: &str = "# ------------------------ >8 ------------------------";

fn edit_answer(editor: &str, id: &RunId, question: &str) -> Result<String, Failure> {
    let made = tempfile::Builder::new().prefix("cuegate-answer-").suffix(".md").tempfile();
    let file =
        made.map_err(|error| Failure::environment(format!("failed to create a temporary file: {error}")))?;
    let path = file.path();
    let failed = |error| Failure::environment(format!("failed to edit `{}`: {error}", path.display()));
    let question: String =
        question.lines().map(|line| format!("# {}\n", cuegate_view::clean_to_one_line(line))).collect();
    let text = format!("\n{CUT}\n# Write the answer above this line. Run {id} asks:\n#\n{question}");
    std::fs::write(path, text).map_err(failed)?;
    let status = Command::new(cuegate_provider::locate_or_missing("sh"))
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(path)
        .env("PATH", cuegate_provider::search_path())
        .status();
    let text = read_text(path);
    let status = status.map_err(failed)?;
    if !status.success() {
        return Err(Failure::usage(format!("the editor `{editor}` failed: {status}"), "no answer was given"));
    }
    let text = text.map_err(failed)?;
    Ok(text.split(CUT).next().unwrap_or_default().trim().to_owned())
}

pub(in crate::cli::commands) fn answer_run(place: &ProjectPlace, args: AnswerArgs) -> Result<u8, Failure> {
    let (run, text) = run_and_text(place, &args)?;
    let (journal, id) = open_run(place, &run)?;
    let is_open = matches!(&read_run(&*journal, &id)?.state,
        State::Suspended(waiting) if waiting.kind == WaitKind::Person);
    let text = match text {
        Some(text) => text,
        None if is_open => written_answer(&*journal, &id)?,
        None => String::new(),
    };
    if is_open && text.trim().is_empty() {
        return Err(Failure::usage("the answer is empty", "give the text that the run continues with"));
    }
    match &read_run(&*journal, &id)?.state {
        State::Suspended(waiting) if waiting.kind == WaitKind::Person => {}
        State::Ended { state, reason, .. } => {
            let hint = match state {
                EndState::Failed | EndState::Aborted => {
                    format!("`cuegate retry {id} --say \"…\"` continues it with a text for the agent")
                }
                _ => "an ended run takes no answer".to_owned(),
            };
            return Err(Failure::usage(format!("run {id} has ended: {reason}"), hint));
        }
        _ if already_answered(&*journal, &id, &text)? => {
            return Err(Failure::usage(
                format!("run {id} already has this answer"),
                format!("`cuegate resume {id}` continues with it, unless another process does"),
            ));
        }
        _ => {
            return Err(Failure::usage(
                format!("run {id} is not waiting for an answer"),
                format!("`cuegate status {id}` prints its state"),
            ));
        }
    }
    if cuegate_runner::has_inbox_answer(&*journal, &id)? {
        return Err(Failure::usage(
            format!("run {id} already has an answer"),
            format!("`cuegate resume {id}` continues with it"),
        ));
    }
    // The next process that drives the run reads its letters first.
    let letter = InboxMessage::Answer { text };
    journal.post(&id, now_ms(), &serde_json::to_vec(&letter).unwrap_or_default())?;
    // Whoever answers wants no move: its machine goes on, or a fleet.
    let started = cuegate_runner::read_run(&*journal, &id)?.started().clone();
    let is_elsewhere = moved_run::is_elsewhere(&place.home, &id, &started)?;
    if args.no_continue || is_elsewhere {
        match (args.json, started.machine.filter(|_| is_elsewhere)) {
            (true, _) => print::print_json(&view_of(&*journal, &id)?.to_json(&texts_of_run(&*journal, &id))),
            (false, Some(machine)) => print::print_line(&format!(
                "run {id}: the answer is recorded; the run is on `{}`, and `cuegate resume {id}` there continues it, or \
                 here, where it moves to then",
                machine.host
            )),
            (false, None) => print::print_line(&format!(
                "run {id}: the answer is recorded; `cuegate resume {id}` continues the run"
            )),
        }
        return Ok(exit::DONE);
    }
    if args.detach {
        LocalProject::new(place)?.go_on_with(&id, &["resume", id.as_str(), "--background"])?;
        resume::tell_background(&id, args.json);
        return Ok(exit::DONE);
    }
    let config = resume::settings_of_run(place, &*journal, &id, false)?.config;
    let host =
        Host { home: place.home.clone(), journal: journal.clone(), program: Program::current()?, config };
    let ready = start_run::prepare_resumed_run(&host, &id, &ResumeRequest::default()).inspect_err(|_| {
        print::print_line(&format!(
            "run {id}: the answer is recorded; `cuegate resume {id}` continues the run"
        ));
    })?;
    if let Some(note) = resume::describe_edits(place, &*journal, &id, ready.run()) {
        print::print_line(&note);
    }
    resume::tell_permission(&ready);
    go_on(place, &host, &id, ready, args.json)
}

/// Whether this text is the newest answer that the run has taken.
fn already_answered(journal: &dyn Journal, id: &RunId, text: &str) -> Result<bool, Failure> {
    let run = cuegate_runner::read_run(journal, id)?;
    Ok(run.context.user_inputs.last() == Some(&BlobRef::for_bytes(text.as_bytes())))
}

pub(super) fn open_run(place: &ProjectPlace, typed: &str) -> Result<(Arc<dyn Journal>, RunId), Failure> {
    let journal = project::open_existing(&place.home, Durability::Synced)?;
    let id = project::find_run_id(&place.home, &*journal, typed)?;
    Ok((journal, id))
}

pub(super) fn read_run(journal: &dyn Journal, id: &RunId) -> Result<Run, Failure> {
    Ok(cuegate_runner::read_run(journal, id)?)
}

#[cfg(test)]
mod tests {
    use super::edit_answer;

    #[test]
    fn an_editor_gets_the_question_and_its_text_is_the_answer() {
        let id = "abcdefgh".parse().unwrap();
        let typed =
            r##"sh -c 'grep -q "# Which colour?" "$1" && sed -i "1s/.*/# Blue\n\nas the door/" "$1"' x"##;
        assert_eq!(edit_answer(typed, &id, "Which colour?\nOf the door.").unwrap(), "# Blue\n\nas the door");
        assert_eq!(edit_answer("true", &id, "Which?").unwrap(), "", "nothing was written");
        let failed = edit_answer("false", &id, "Which?").unwrap_err();
        assert!(failed.message.contains("the editor `false` failed"), "{}", failed.message);
    }
}
