//! Runs other programs.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// The cargo binary that started this program.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Runs a program with inherited output.
pub(crate) fn run<S: AsRef<OsStr>>(
    dir: &Path,
    program: &str,
    args: &[S],
    env: &[(&str, &str)],
) -> Result<(), String> {
    let words: Vec<String> = args.iter().map(|word| word.as_ref().to_string_lossy().into_owned()).collect();
    eprintln!("$ {program} {}", words.join(" "));
    let status = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(dir)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("failed to start `{program}`: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{program} {}` ended with {status}", words.join(" ")))
    }
}

/// The program that mounts a temporary folder in memory, for the program after it alone.
const MOUNT: &str = "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$0\" \"$@\"";

/// As [`run`], with temporary files in memory where root may mount them so: tests make and delete a million files, which
/// takes a disk a third of their time.
pub(crate) fn run_in_memory<S: AsRef<OsStr>>(
    dir: &Path,
    program: &str,
    args: &[S],
    env: &[(&str, &str)],
) -> Result<(), String> {
    let is_kept =
        |variable: &str| std::env::var_os(variable).is_some_and(|path| Path::new(&path).starts_with("/tmp"));
    let needs_tmp = dir.starts_with("/tmp")
        || ["CARGO", "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME"].into_iter().any(is_kept);
    let uses_tmp = std::env::temp_dir() == Path::new("/tmp") && !needs_tmp;
    if !uses_tmp || !has("unshare", &["--mount", "sh", "-c", MOUNT, "true"]) {
        return run(dir, program, args, env);
    }
    let own = args.iter().map(AsRef::as_ref);
    let words = ["--mount", "sh", "-c", MOUNT, program].map(OsStr::new).into_iter().chain(own);
    run(dir, "unshare", &words.collect::<Vec<_>>(), env)
}

/// The standard output of a program; an error if it fails.
pub(crate) fn output(dir: &Path, program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("failed to start `{program}`: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "`{program} {}` failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program can be started.
pub(crate) fn has(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}
