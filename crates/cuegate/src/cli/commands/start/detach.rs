//! `run --detach` and `--watch`: start a run in a process of its own, which no terminal ends.

use std::{
    ffi::OsString,
    fs::File,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use cuegate_engine::Event;
use cuegate_journal::RunId;
use cuegate_runner::StateDir;
use serde_json::json;

use crate::cli::commands::ProjectPlace;
use crate::cli::commands::follow_up::watch;
use crate::cli::commands::start::run_args::RunArgs;
use crate::cli::print;
use crate::{Failure, exit, project};

/// How often the start of the run is looked for.
const EVERY: Duration = Duration::from_millis(100);

/// What became of a start in the background.
enum Started {
    /// A run that works, and the file with its output.
    New(RunId, PathBuf),
    /// The run that was started with the same key.
    Earlier(RunId),
    /// The exit code of one that was refused.
    Refused(u8),
}

pub(in crate::cli::commands) fn run_detached(place: &ProjectPlace, args: &RunArgs) -> Result<u8, Failure> {
    let (id, path) = match start_in_background(place, args, "--detach")? {
        Started::New(id, path) => (id, path),
        Started::Earlier(id) if args.json => {
            print::print_json(&json!({"schema": "cuegate/detached/v1", "run": id.as_str(), "earlier": true}));
            return Ok(exit::DONE);
        }
        Started::Earlier(id) => {
            print::print_data(id.as_str());
            print::print_line(&format!("run {id} was started with this key before; nothing was started"));
            return Ok(exit::DONE);
        }
        Started::Refused(code) => return Ok(code),
    };
    if args.json {
        let output = path.display().to_string();
        print::print_json(&json!({"schema": "cuegate/detached/v1", "run": id.as_str(), "output": output}));
    } else {
        print::print_data(id.as_str());
        print::print_line(&format!("output  {}", path.display()));
        print::print_line(&format!("follow  cuegate attach {id}"));
        print::print_line(&format!("watch   cuegate watch {id}"));
        print::print_line(&format!("end     cuegate cancel {id}"));
    }
    Ok(exit::DONE)
}

pub(in crate::cli::commands) fn run_and_watch(place: &ProjectPlace, args: &RunArgs) -> Result<u8, Failure> {
    watch::needs_terminal()?;
    match start_in_background(place, args, "--watch")? {
        Started::New(id, _) | Started::Earlier(id) => watch::show_screen(place, Some(&id)),
        Started::Refused(code) => Ok(code),
    }
}

/// Starts the same command without `flag` in the background and waits until its run has begun, or has been refused.
fn start_in_background(place: &ProjectPlace, args: &RunArgs, flag: &str) -> Result<Started, Failure> {
    let home = place.home.create_missing()?;
    // Held until the run has its first record, which has the key: of two starts at once the second finds it.
    let _guard = args.key.as_ref().map(|_| lock_keys(&home)).transpose()?;
    if let Some(key) = &args.key
        && let Some(id) = find_run_of_key(&home, key)?
    {
        return Ok(Started::Earlier(id));
    }
    let id = project::new_run_id();
    let folder = home.dir().join("output");
    let path = folder.join(format!("{id}.log"));
    let failed = |error| Failure::environment(format!("failed to start a process: {error}"));
    let unwritable = |error| Failure::environment(format!("failed to write `{}`: {error}", path.display()));
    std::fs::create_dir_all(&folder).map_err(unwritable)?;
    let output = File::create(&path).map_err(unwritable)?;
    // Validators and `--wait` may take their time.
    print::print_line(&format!("run {id} starts in the background"));
    // The background process reads standard input only for the task; it never asks a question.
    let stdin = if args.input.as_deref() == Some("-") { Stdio::inherit() } else { Stdio::null() };
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(background_args(std::env::args_os().skip(1).collect(), flag, &id))
        .stdin(stdin)
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output)
        .spawn()
        .map_err(failed)?;
    if let Some(status) = ended_before_start(&mut child, &home, &id).map_err(failed)? {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.lines().for_each(print::print_line);
        let _ = std::fs::remove_file(&path);
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(Started::Refused(code.unwrap_or(exit::ENVIRONMENT)));
    }
    Ok(Started::New(id, path))
}

fn lock_keys(home: &StateDir) -> Result<File, Failure> {
    let path = home.dir().join("keys.lock");
    let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| Failure::environment(format!("failed to lock `{}`: {error}", path.display())))
}

/// The run that was started with a key.
pub(in crate::cli::commands) fn find_run_of_key(
    home: &StateDir,
    key: &str,
) -> Result<Option<RunId>, Failure> {
    let Some(journal) = project::open_journal_read_only(home)? else { return Ok(None) };
    for known in journal.runs()? {
        // A run that cannot be read has started nothing that could be found again.
        let first = cuegate_runner::read_first_record(&*journal, &known.run).ok().flatten();
        let started = first.iter().flat_map(|record| &record.events).find_map(|event| match event {
            Event::RunStarted(started) => Some(started),
            _ => None,
        });
        if started.is_some_and(|started| started.key.as_deref() == Some(key)) {
            return Ok(Some(known.run));
        }
    }
    Ok(None)
}

/// Waits until the run has a record. Returns the status of the process if it ended without one.
fn ended_before_start(child: &mut Child, home: &StateDir, id: &RunId) -> std::io::Result<Option<ExitStatus>> {
    loop {
        let ended = child.try_wait()?;
        let journal = project::open_journal_read_only(home).ok().flatten();
        if journal.is_some_and(|journal| {
            cuegate_runner::read_first_record(&*journal, id).is_ok_and(|first| first.is_some())
        }) {
            return Ok(None);
        }
        if ended.is_some() {
            return Ok(ended);
        }
        std::thread::sleep(EVERY);
    }
}

/// The arguments of the background process: without the flag that starts it, and with the id of its run.
fn background_args(mut args: Vec<OsString>, flag: &str, id: &RunId) -> Vec<OsString> {
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    if let Some(at) = args[..end].iter().position(|arg| arg == flag) {
        args[at] = format!("--run-id={id}").into();
    }
    args
}

#[cfg(test)]
mod tests {
    use super::background_args;

    #[test]
    fn the_flag_is_replaced_and_a_task_is_not() {
        let id = "abcdefgh".parse().unwrap();
        let args = |words: &[&str]| {
            let words = words.iter().map(Into::into).collect();
            background_args(words, "--detach", &id).join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(args(&["run", "x", "--detach", "task"]), "run x --run-id=abcdefgh task");
        assert_eq!(args(&["run", "--detach", "x", "--", "--detach"]), "run --run-id=abcdefgh x -- --detach");
    }
}
