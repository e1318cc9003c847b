//! The shim: a small process between the runner and one child. It uses threads and no async runtime, to stay below 1
//! MiB.
//!
//! Only the main thread starts the child: the kernel ties the child's death signal to the thread that forked it.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

use super::kill;
use super::kill::MARK;
use super::lock;
use super::output_spool::OutputSpool;
use super::shim_exec;
use super::supervise::{ChildWatch, Event, ReaderState, end_all, watch_end, watch_lifeline};
use super::wire::{EndRecord, ExitRecord, Group, ProcessIdentity, Spec, VERSION};
use super::{
    spool,
    spool::{Spool, read_json},
};

/// Stack size of the helper threads.
const STACK_BYTES: usize = 128 << 10;

/// The body of the hidden subcommand that makes our binary a shim. `args` follow the subcommand's name, as passed by
/// [`super::start_command`] and by the shim itself. Blocks until the child has ended. Call it on the main thread.
///
/// Prints its errors to stderr, which goes to `shim.log`.
pub fn shim_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    let result = match args.as_slice() {
        [flag, rest @ ..] if flag == shim_exec::FLAG => shim_exec::exec_program(rest),
        [dir, start] => run_shim(Path::new(dir), &start.to_string_lossy()),
        _ => Err("invalid shim arguments: only cuegate starts a shim".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                let _ = writeln!(io::stderr(), "{message}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run_shim(dir: &Path, start: &str) -> Result<(), String> {
    let spool = Spool { dir: dir.to_owned() };
    let lock = lock::open_lock_file(&spool).map_err(|error| format_error_chain(&error))?;
    if !lock::try_for_blocking(&lock, lock::SHIM_TIMEOUT).map_err(|error| format_error_chain(&error))? {
        return Err("another shim holds the lock".to_owned());
    }
    let spec: Spec = read_json(&spool.spec()).ok_or("failed to read `spec.json`")?;
    if spec.version != VERSION || spec.start != start {
        return Err("another start took this folder".to_owned());
    }
    become_subreaper()?;
    let create = |path: &Path| OutputSpool::create(path, spec.output_max, spec.keeps_end);
    let out = Arc::new(create(&spool.out()).map_err(|error| format_error_chain(&error))?);
    let err = Arc::new(create(&spool.err()).map_err(|error| format_error_chain(&error))?);
    let (sender, events) = channel();
    let to_main = sender.clone();
    spawn_thread("lifeline", move || watch_lifeline(&to_main))?;

    let mut ended = EndRecord {
        version: VERSION,
        start: spec.start.clone(),
        exit: ExitRecord::Code(0),
        timed_out: false,
        capped: false,
        cut: false,
        left: 0,
        elapsed_ms: 0,
        out_bytes: 0,
        err_bytes: 0,
    };
    let timeout = spec.timeout_ms.map(Duration::from_millis);
    let mut reader = ReaderState::Gone;
    match start_child(spec, &spool) {
        Err(refusal) => ended.exit = refusal,
        Ok(mut child) => {
            let pid = Pid::from_child(&child);
            let watch = ChildWatch::new(pid, &events, &mut ended);
            let watched = start_watch_threads(&mut child, pid, &spool, [&out, &err], &sender)
                .and_then(|()| watch.until_gone(timeout, &spool));
            reader = watched.inspect_err(|_| end_all(pid))?;
        }
    }
    ended.out_bytes = out.close().map_err(|error| format_error_chain(&error))?;
    ended.err_bytes = err.close().map_err(|error| format_error_chain(&error))?;
    spool::write_json_synced(&spool.exit(), &ended).map_err(|error| format_error_chain(&error))?;
    if reader == ReaderState::There {
        deliver_lines(&events);
    }
    Ok(())
}

/// Starts the threads that watch the child.
fn start_watch_threads(
    child: &mut std::process::Child,
    pid: Pid,
    spool: &Spool,
    [out, err]: [&Arc<OutputSpool>; 2],
    sender: &Sender<Event>,
) -> Result<(), String> {
    record_group(spool, pid)?;
    record_streams(child, [out, err], sender)?;
    let to_main = sender.clone();
    spawn_thread("end", move || watch_end(pid, &to_main))?;
    let (output, path, to_main) = (Arc::clone(out), spool.out(), sender.clone());
    spawn_thread("lines", move || {
        let _ = output.follow(&path, io::stdout().lock());
        let _ = to_main.send(Event::Followed);
    })
}

/// Waits until the runner has read the remaining lines or has ended. The spool is complete by now.
fn deliver_lines(events: &Receiver<Event>) {
    while let Ok(event) = events.recv() {
        if matches!(event, Event::Followed | Event::Cut | Event::Polite) {
            return;
        }
    }
}

fn start_child(spec: Spec, spool: &Spool) -> Result<std::process::Child, ExitRecord> {
    let cwd = PathBuf::from(OsString::from(spec.cwd));
    let refuse = |error: &io::Error, what: &str| ExitRecord::NotStarted(format!("{what}: {error}"));
    fs::read_dir(&cwd).map_err(|error| refuse(&error, &format!("folder `{}`", cwd.display())))?;
    let stdin = File::open(spool.stdin()).map_err(|error| refuse(&error, "its input"))?;
    let program = OsString::from(spec.program);
    let args = spec.args.into_iter().map(OsString::from).collect();
    Command::new(own_exe().map_err(|error| refuse(&error, "our own program"))?)
        .args(spec.shim_args.into_iter().map(OsString::from))
        .arg(shim_exec::FLAG)
        .args(shim_exec::build_second_stage_args(&spool.refused(), program, args))
        .current_dir(cwd)
        .env(MARK, spec.start)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| refuse(&error, "the second stage of the shim"))
}

/// The executable of this process, even if it was replaced since: an upgrade must not break a running shim.
fn own_exe() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() { Ok(running) } else { std::env::current_exe() }
}

fn record_group(spool: &Spool, leader: Pid) -> Result<(), String> {
    let process = |pid: i32| ProcessIdentity { pid, started: kill::start_time_of_process(pid) };
    let group = Group {
        version: VERSION,
        shim: process(std::process::id().cast_signed()),
        leader: process(leader.as_raw_nonzero().get()),
    };
    // Not synced: only needed while these processes live.
    let mut file = spool::create_private_file(&spool.group()).map_err(|error| format_error_chain(&error))?;
    file.write_all(&spool::to_json(&group)).map_err(|error| format!("failed to write `group.json`: {error}"))
}

fn record_streams(
    child: &mut std::process::Child,
    outputs: [&Arc<OutputSpool>; 2],
    sender: &Sender<Event>,
) -> Result<(), String> {
    let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    for (stream, output) in [stdout, stderr].into_iter().zip(outputs) {
        let stream = stream.expect("the child's streams were asked to be pipes");
        let (output, sender) = (Arc::clone(output), sender.clone());
        spawn_thread("stream", move || {
            let result = output.record(stream, || {
                let _ = sender.send(Event::Full);
            });
            let _ = sender.send(Event::Recorded(result));
        })?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn become_subreaper() -> Result<(), String> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))
        .map_err(|error| format!("failed to become a subreaper: {error}"))
}

/// Only Linux has subreapers; elsewhere a process that leaves the group escapes.
#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> Result<(), String> {
    Ok(())
}

fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    builder.spawn(body).map(drop).map_err(|error| format!("failed to start a thread: {error}"))
}

/// An error with its causes, on one line.
fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
