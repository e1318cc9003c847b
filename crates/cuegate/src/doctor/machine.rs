//! Git, disk, and what can hold agents.

use std::{path::Path, time::Duration};

use cuegate_runner::sandbox::Bwrap;

use super::{Finding, Standing};

/// The oldest git that has all that runs use of it: `rev-parse --path-format` came with this one.
const GIT_MIN: (u32, u32) = (2, 31);
/// Below this a run may not be able to write its journal to the end.
const DISK_BAD: u64 = 64 << 20;
/// Below this large repositories may run out of it.
const DISK_LESS: u64 = 1 << 30;
/// No probe takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a program prints first when it is asked something cheap; why not, when it does not work.
fn ask(program: &str, args: &[&str]) -> Result<String, String> {
    let said = cuegate_provider::look(program.as_ref(), args, &[], PATIENCE);
    let first = |said: String| said.lines().next().unwrap_or_default().trim().to_owned();
    said.map(first).map_err(|why| format!("`{program}` does not work: {why}"))
}

/// Git, and whether the project is in a repository.
pub(super) fn git(root: &Path) -> Finding {
    let hint = "install git 2.31 or newer; without it nobody sees what agents change";
    match ask("git", &["--version"]) {
        Err(why) => Finding::of_machine("git", Standing::Bad, why, Some(hint)),
        Ok(said) if number(&said).is_none() => Finding::of_machine(
            "git",
            Standing::Bad,
            "`git --version` names no version".to_owned(),
            Some(hint),
        ),
        Ok(version) if number(&version).is_some_and(|found| found < GIT_MIN) => {
            Finding::of_machine("git", Standing::Bad, format!("{version} is too old"), Some(hint))
        }
        Ok(version) if root.join(".git").exists() => {
            Finding::of_machine("git", Standing::Good, format!("{version}, in a repository"), None)
        }
        Ok(version) => Finding::of_machine(
            "git",
            Standing::Less,
            format!("{version}, but this folder is in no repository"),
            Some("`git init` and a commit let runs see what changes, and whether it may"),
        ),
    }
}

/// `git version 2.39.5` as a pair.
fn number(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// SandboxSpec for the state of runs.
pub(super) fn disk(root: &Path) -> Finding {
    let hint = Some("make room: journals, snapshots and outputs of runs are kept in .cuegate");
    match rustix::fs::statvfs(root) {
        Err(error) => {
            Finding::of_machine("disk", Standing::Bad, format!("cannot be looked at: {error}"), hint)
        }
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let standing = match free {
                free if free < DISK_BAD => Standing::Bad,
                free if free < DISK_LESS => Standing::Less,
                _ => Standing::Good,
            };
            Finding::of_machine("disk", standing, format!("{} MiB free", free >> 20), hint)
        }
    }
}

/// Whether a program can be given a network of its own.
pub(super) fn namespaces() -> Finding {
    const NAME: &str = "namespaces";
    let hint = "allow unprivileged user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or on Ubuntu \
                `kernel.apparmor_restrict_unprivileged_userns=0`) and install util-linux";
    match ask("unshare", &["--user", "--map-root-user", "--net", "true"]) {
        Ok(_) => {
            Finding::of_machine(NAME, Standing::Good, "a network of its own can be made".to_owned(), None)
        }
        Err(why) => Finding::of_machine(NAME, Standing::Less, why, Some(hint)),
    }
}

/// Whether a sandbox can stand here.
pub(super) fn sandbox() -> Finding {
    const NAME: &str = "sandbox";
    match Bwrap::find() {
        Ok(bwrap) => {
            let found = format!("{}: definitions that demand a sandbox get one", bwrap.version);
            Finding::of_machine(NAME, Standing::Good, found, None)
        }
        Err(no_sandbox) => {
            let found = format!("{no_sandbox}: definitions that demand a sandbox do not run here");
            Finding::of_machine(NAME, Standing::Less, found, Some(no_sandbox.hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(number("git version 2.9.1"), Some((2, 9)));
        assert_eq!(number("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(number("git"), None);
        assert!((2, 9) < GIT_MIN);
    }

    #[test]
    fn a_program_that_is_not_there_says_so() {
        let why = ask("cuegate-has-no-such-program", &[]).unwrap_err();
        assert!(why.starts_with("`cuegate-has-no-such-program` does not work: No such file"), "{why}");
    }
}
