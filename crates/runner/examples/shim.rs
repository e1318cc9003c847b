//! The shim and the runner that the tests in `tests/process.rs` start and kill. An example, so that releases do not
//! contain it.
//!
//! `shim __shim …` is the shim. `shim run DIR PROGRAM ARGS…` starts a command in `DIR` as a runner does, prints
//! `started` and waits for the command.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test helper")]

use std::path::Path;
use std::process::ExitCode;

use cuegate_runner::process::{self, Launch, Shim};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(|arg| arg.to_str()) {
        Some("__shim") => process::shim_main(args),
        Some("run") => run_under_shim(args),
        other => panic!("`{other:?}` is neither `__shim` nor `run`"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run_under_shim(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let dir = args.next().unwrap();
    let mut launch = Launch::new(args.next().unwrap(), "/");
    launch.args = args.collect();
    let shim = Shim { exe: std::env::current_exe().unwrap(), args: vec!["__shim".into()] };
    let child = process::start_command(&shim, Path::new(&dir), &launch).await.unwrap();
    println!("started");
    child.wait().await.unwrap();
    ExitCode::SUCCESS
}
