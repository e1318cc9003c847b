//! Starts a program for a short look at it.

use std::{
    fmt,
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{FaultClass, Inspection, Problem};

/// How long a look may take. A version is printed within a second even on a busy machine.
const LOOK_MAX: Duration = Duration::from_secs(20);
/// How often it is looked whether the program has ended.
const GLANCE: Duration = Duration::from_millis(10);

/// What a program printed to both of its streams.
///
/// # Errors
/// When it cannot be started, does not end in time, or exits with anything but 0.
pub(crate) fn look(program: &Path, args: &[&str], env: &[(String, String)]) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(args)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What is more than this is no version.
            stream.map(|stream| stream.take(64 << 10).read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = read(out.map(|stream| Box::new(stream) as _));
    let err = read(err.map(|stream| Box::new(stream) as _));
    let deadline = Instant::now() + LOOK_MAX;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            Ok(None) => {
                child.kill().ok();
                child.wait().ok();
                return Err(format!("no answer within {} s", LOOK_MAX.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    let said = [out, err].map(|reader| reader.join().unwrap_or_default()).concat();
    if status.success() { Ok(said) } else { Err(format!("{status}: {}", said.trim())) }
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

/// Finds a program and its version, and says what is wrong with them.
pub(crate) fn program(
    program: &Path,
    env: &[(String, String)],
    oldest: Version,
    install: &str,
) -> Inspection {
    let mut inspection = Inspection::default();
    let mut problem = |what: String, hint: String| {
        inspection.problems.push(Problem { what, hint, class: FaultClass::MissingProgram });
    };
    let Some(at) = super::find::find(program) else {
        problem(format!("there is no program `{}`", program.display()), install.to_owned());
        return inspection;
    };
    let version = look(&at, &["--version"], env);
    match version.as_ref().map(|said| Version::find(said)) {
        Ok(Some(version)) if version < oldest => problem(
            format!("`{}` is {version}; {oldest} or newer is needed", at.display()),
            install.to_owned(),
        ),
        Ok(Some(_)) => {}
        Ok(None) => {
            problem(format!("`{} --version` names no version", at.display()), install.to_owned());
        }
        Err(error) => problem(format!("`{} --version` failed: {error}", at.display()), install.to_owned()),
    }
    inspection.version =
        version.ok().and_then(|said| Version::find(&said)).map(|version| version.to_string());
    inspection.at = Some(at.display().to_string());
    inspection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_and_compared_by_number() {
        assert_eq!(Version::find("2.1.330 (Claude Code)\n"), Some(Version(2, 1, 330)));
        assert_eq!(Version::find("codex-cli 0.169.0"), Some(Version(0, 169, 0)));
        assert_eq!(Version::find("codex-cli 0.170.0-alpha.2"), Some(Version(0, 170, 0)));
        assert_eq!(Version::find("no version 1.2"), None);
        assert!(Version(2, 1, 99) < Version(2, 1, 330));
    }

    #[test]
    fn what_is_said_about_programs() {
        let what = |path: &str, oldest| {
            let found = program(Path::new(path), &[], oldest, "install it");
            (found.version, found.problems.into_iter().map(|problem| problem.what).collect::<Vec<_>>())
        };
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, body: &str| {
            use std::os::unix::fs::PermissionsExt as _;

            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file.display().to_string()
        };
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
        assert_eq!(
            what(&missing, Version(0, 0, 0)),
            (None, vec![format!("there is no program `{missing}`")])
        );
    }
}
