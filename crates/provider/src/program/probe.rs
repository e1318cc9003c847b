//! Starts a program briefly to inspect it.

use std::{
    fmt,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::{FaultClass, Inspection, Problem};

/// The timeout. Programs print their version within two seconds on a busy machine; on two cores with three builds beside
/// them, agents that start Node.js took more than ten.
pub(crate) const LOOK_MAX: Duration = Duration::from_secs(20);
/// The interval of checks whether the program has exited.
const GLANCE: Duration = Duration::from_millis(10);
/// How long to read streams that stay open after the program has exited.
const LINGER: Duration = Duration::from_secs(1);
/// The maximum number of bytes read of a stream.
const BYTES_MAX: u64 = 64 << 10;
/// The maximum number of characters quoted from a failed program's output.
const CHARS_MAX: usize = 200;

/// Runs a program and returns its output, standard output first. After `patience` it is killed with all processes
/// that it started. It starts in `/`: a version manager must not let the working tree, where agents write, choose what runs.
///
/// # Errors
/// Returns one line if it cannot be started, does not exit in time, or fails.
pub fn capture_program_output(
    program: &Path,
    args: &[&str],
    env: &[(String, String)],
    patience: Duration,
) -> Result<String, String> {
    let program = super::locate::locate_or_missing(program);
    let mut command = Command::new(std::path::absolute(&program).unwrap_or(program));
    command
        .args(args)
        .current_dir("/")
        .env_remove("PWD")
        .env_remove("OLDPWD")
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A process group of its own: an agent is often started by a wrapper script, and its child is what hangs.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + patience;
    let streams = [child.stdout.take().map(read_in_thread), child.stderr.take().map(read_in_thread)];
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            Ok(None) => {
                kill_child_group(&mut child);
                return Err(format!("timed out after {} s", patience.as_secs()));
            }
            Err(error) => {
                kill_child_group(&mut child);
                return Err(error.to_string());
            }
        }
    };
    let said = streams.iter().flatten().map(collect_output).collect::<String>();
    if status.success() {
        return Ok(said);
    }
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output");
    Err(format!("{status}: {}", line.chars().take(CHARS_MAX).collect::<String>()))
}

/// Reads a stream in a thread.
fn read_in_thread(stream: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        let mut stream = stream.take(BYTES_MAX);
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            if sender.send(bytes[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The output, until none arrives for [`LINGER`]. Its end is not awaited: a process that inherited the stream may keep it
/// open.
fn collect_output(told: &mpsc::Receiver<Vec<u8>>) -> String {
    let mut all = Vec::new();
    while let Ok(bytes) = told.recv_timeout(LINGER) {
        all.extend(bytes);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Kills a program and all processes of its group.
fn kill_child_group(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // The child is not reaped yet, so its process id cannot have been reused.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    }
    child.kill().ok();
    child.wait().ok();
}

/// A version of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The first version in a text.
    pub(crate) fn find(text: &str) -> Option<Version> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
            let mut numbers = word.split('.').map(|number| number.parse().ok());
            let version = Version(numbers.next()??, numbers.next()??, numbers.next()??);
            Some(version)
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Finds a program and its version, and reports problems.
pub(crate) fn probe_program(
    program: &Path,
    env: &[(String, String)],
    oldest: Version,
    install: impl Fn() -> String,
) -> Inspection {
    let mut inspection = Inspection::default();
    let mut problem = |what: String, hint: String| {
        inspection.problems.push(Problem { what, hint, class: FaultClass::MissingProgram });
    };
    let Some(at) = super::locate::locate_program(program) else {
        match super::locate::inside_project(program) {
            Some(inside) => problem(
                format!("program `{}` is only in the project, where agents write", program.display()),
                format!(
                    "install it elsewhere, or name it in `cuegate.toml` if you trust it: `program = \"{}\"`",
                    inside.display()
                ),
            ),
            None => problem(format!("program `{}` not found", program.display()), install()),
        }
        return inspection;
    };
    let version = capture_program_output(&at, &["--version"], env, LOOK_MAX);
    match version.as_ref().map(|said| Version::find(said)) {
        Ok(Some(version)) if version < oldest => {
            problem(format!("`{}` is {version}; {oldest} or newer is needed", at.display()), install())
        }
        Ok(Some(_)) => {}
        Ok(None) => {
            problem(format!("`{} --version` names no version", at.display()), install());
        }
        Err(error) => problem(format!("`{} --version` failed: {error}", at.display()), install()),
    }
    inspection.version =
        version.ok().and_then(|said| Version::find(&said)).map(|version| version.to_string());
    inspection.at = Some(at.display().to_string());
    inspection
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(folder: &Path, name: &str, body: &str) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt as _;

        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn a_program_is_looked_at_outside_of_the_working_tree() {
        let folder = tempfile::tempdir().unwrap();
        let tells = script(folder.path(), "tells", "pwd; echo \"$OLDPWD\"");
        assert_eq!(capture_program_output(&tells, &[], &[], LOOK_MAX), Ok("/\n\n".to_owned()));
    }

    #[test]
    fn a_hanging_program_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let hangs = script(folder.path(), "hangs", &format!("sleep 600 & echo $! >{}; wait", pid.display()));
        let patience = Duration::from_secs(2);
        assert_eq!(capture_program_output(&hangs, &[], &[], patience), Err("timed out after 2 s".to_owned()));
        let pid: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        // Init must reap the process first.
        let alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        while alive() {
            assert!(Instant::now() < deadline, "{pid} is still there");
            thread::sleep(GLANCE);
        }
    }

    #[test]
    fn background_processes_do_not_delay_the_result() {
        let folder = tempfile::tempdir().unwrap();
        let leaves = script(folder.path(), "leaves", "sleep 60 & echo agent 1.2.3");
        let said = capture_program_output(&leaves, &[], &[], Duration::from_secs(50));
        assert_eq!(said, Ok("agent 1.2.3\n".to_owned()));
    }

    #[test]
    fn a_failure_is_one_short_line() {
        let folder = tempfile::tempdir().unwrap();
        let long = script(
            folder.path(),
            "long",
            "echo; yes no | tr -d '\\n' | head -c 9000; echo; echo more; exit 1",
        );
        let why = capture_program_output(&long, &[], &[], LOOK_MAX).unwrap_err();
        assert_eq!((why.lines().count(), why.len()), (1, "exit status: 1: ".len() + CHARS_MAX));
    }

    #[test]
    fn versions_are_found_and_compared_by_number() {
        assert_eq!(Version::find("2.1.330 (Claude Code)\n"), Some(Version(2, 1, 330)));
        assert_eq!(Version::find("codex-cli 0.169.0"), Some(Version(0, 169, 0)));
        assert_eq!(Version::find("codex-cli 0.170.0-alpha.2"), Some(Version(0, 170, 0)));
        assert_eq!(Version::find("no version 1.2"), None);
        assert!(Version(2, 1, 99) < Version(2, 1, 330));
    }

    #[test]
    fn problems_of_programs_are_reported() {
        let what = |path: &str, oldest| {
            let found = probe_program(Path::new(path), &[], oldest, || "install it".to_owned());
            (found.version, found.problems.into_iter().map(|problem| problem.what).collect::<Vec<_>>())
        };
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, body: &str| script(folder.path(), name, body).display().to_string();
        let good = script("good", "echo agent 1.2.3");
        assert_eq!(what(&good, Version(1, 2, 3)), (Some("1.2.3".to_owned()), vec![]));
        assert_eq!(
            what(&good, Version(1, 3, 0)),
            (Some("1.2.3".to_owned()), vec![format!("`{good}` is 1.2.3; 1.3.0 or newer is needed")])
        );
        let bad = script("bad", "echo broken >&2; exit 3");
        assert_eq!(
            what(&bad, Version(0, 0, 0)),
            (None, vec![format!("`{bad} --version` failed: exit status: 3: broken")])
        );
        let missing = folder.path().join("missing").display().to_string();
        assert_eq!(what(&missing, Version(0, 0, 0)), (None, vec![format!("program `{missing}` not found")]));
    }
}
