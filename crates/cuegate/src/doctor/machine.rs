//! Checks of git, disk space, namespaces and the sandbox.

use std::{path::Path, time::Duration};

use cuegate_journal::sqlite::Durability;
use cuegate_runner::{StateDir, sandbox::Bwrap};

use super::{Finding, Standing};
use crate::{Failure, config::Config, leftovers, project};

/// The oldest supported git: `rev-parse --path-format` was added in this version.
const GIT_MIN: (u32, u32) = (2, 31);
/// Below this free space in bytes a run may fail to write its journal.
const DISK_BAD: u64 = 64 << 20;
/// Below this free space in bytes runs in large repositories may fail.
const DISK_LESS: u64 = 1 << 30;
/// The timeout of a probe.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first line that a program prints, or why it does not work.
fn first_line(program: &str, args: &[&str]) -> Result<String, String> {
    let output = cuegate_provider::capture_program_output(program.as_ref(), args, &[], PATIENCE);
    let first = |output: String| output.lines().next().unwrap_or_default().trim().to_owned();
    output.map(first).map_err(|why| format!("`{program}` does not work: {why}"))
}

/// Checks git, and whether the project is in a repository.
pub(super) fn git(root: &Path) -> Finding {
    let hint = "install git 2.31 or newer; without it cuegate cannot see what agents change";
    match first_line("git", &["--version"]) {
        Err(why) => Finding::of_machine("git", Standing::Bad, why, Some(hint)),
        Ok(version) if number(&version).is_none() => Finding::of_machine(
            "git",
            Standing::Bad,
            "`git --version` prints no version".to_owned(),
            Some(hint),
        ),
        Ok(version) if number(&version).is_some_and(|found| found < GIT_MIN) => {
            Finding::of_machine("git", Standing::Bad, format!("{version} is too old"), Some(hint))
        }
        Ok(version) if cuegate_runner::worktree::is_working_tree(root) => {
            Finding::of_machine("git", Standing::Good, format!("{version}, in a repository"), None)
        }
        Ok(version) => Finding::of_machine(
            "git",
            Standing::Less,
            format!("{version}, but this folder is not in a repository"),
            Some("run `git init` and commit, so that runs can list changes and reject forbidden ones"),
        ),
    }
}

/// The major and minor version in `git version 2.39.5`.
fn number(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Checks the disk space for journals, snapshots and outputs.
pub(super) fn disk(root: &Path) -> Finding {
    let hint = Some("free disk space: runs keep journals, snapshots and outputs in .cuegate");
    match rustix::fs::statvfs(root) {
        Err(error) => Finding::of_machine(
            "disk",
            Standing::Bad,
            format!("failed to read the free space: {error}"),
            hint,
        ),
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

/// Checks the journal, and removes what killed processes left behind. `None` in a project without runs.
pub(super) fn journal(root: &Path) -> Option<Finding> {
    const NAME: &str = "journal";
    let home = StateDir::new(root);
    let bad = |failure: Failure| Finding {
        hint: failure.hint,
        ..Finding::of_machine(NAME, Standing::Bad, failure.message, None)
    };
    let journal = match project::view(&home).map(|journal| journal.is_some()) {
        Ok(true) => project::open(&home, Durability::Synced),
        Ok(false) => return None,
        Err(failure) => Err(failure),
    };
    let journal = match journal {
        Ok(journal) => journal,
        Err(failure) => return Some(bad(failure)),
    };
    let runs = match journal.runs() {
        Ok(runs) => runs,
        Err(error) => return Some(bad(error.into())),
    };
    if let Some(damage) = runs.iter().find_map(|run| run.damage.clone()) {
        let hint = Some("`cuegate runs` lists the damaged runs and says how to go on");
        return Some(Finding::of_machine(NAME, Standing::Less, damage, hint));
    }
    let count = runs.iter().filter(|run| run.records > 0).count();
    let mut found = format!("{count} {}", if count == 1 { "run" } else { "runs" });
    for note in cuegate_runner::sandbox::put_aside_kept_out(home.dir()) {
        found.push_str(&format!("; {note}"));
    }
    for removed in leftovers::remove(&home, &*journal) {
        found.push_str(&format!("; removed {removed}"));
    }
    Some(Finding::of_machine(NAME, Standing::Good, found, None))
}

/// Checks whether user and network namespaces can be created.
pub(super) fn namespaces() -> Finding {
    const NAME: &str = "namespaces";
    let hint = "allow unprivileged user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or on Ubuntu \
                `kernel.apparmor_restrict_unprivileged_userns=0`) and install util-linux";
    match first_line("unshare", &["--user", "--map-root-user", "--net", "true"]) {
        Ok(_) => {
            Finding::of_machine(NAME, Standing::Good, "network namespaces can be created".to_owned(), None)
        }
        Err(why) => Finding::of_machine(NAME, Standing::Less, why, Some(hint)),
    }
}

/// Checks whether bubblewrap works here.
pub(super) fn sandbox() -> Finding {
    const NAME: &str = "sandbox";
    match Bwrap::find() {
        Ok(bwrap) => {
            let found = format!("{}: agents and validators run in a sandbox", bwrap.version);
            Finding::of_machine(NAME, Standing::Good, found, None)
        }
        Err(no_sandbox) => {
            let found = match cuegate_runner::sandbox::has_landlock() {
                true => format!(
                    "{no_sandbox}: runs have a partial sandbox by Landlock, and definitions that require one do not run"
                ),
                false => {
                    format!("{no_sandbox}: runs have no sandbox, and definitions that require one do not run")
                }
            };
            Finding::of_machine(NAME, Standing::Less, found, Some(no_sandbox.hint))
        }
    }
}

/// Proposes caches of package managers that builds in the sandbox could write to. `None` if there are none, or the settings
/// name some.
pub(super) fn caches(config: &Config) -> Option<Finding> {
    let found = cuegate_runner::sandbox::list_caches();
    if found.is_empty() || !config.sandbox.caches.is_empty() {
        return None;
    }
    let mut tools: Vec<&str> = found.iter().map(|(_, tool)| *tool).collect();
    tools.dedup();
    let paths: Vec<String> = found.iter().map(|(path, _)| format!("\"{path}\"")).collect();
    Some(Finding {
        name: "caches".to_owned(),
        standing: Standing::Good,
        found: format!("the caches of {} are read-only in the sandbox", tools.join(", ")),
        hint: Some(format!(
            "if builds there have to download, add to `[sandbox]` of cuegate.toml: `caches = [{}]`",
            paths.join(", ")
        )),
        provider: false,
    })
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
    fn a_missing_program_is_reported() {
        let why = first_line("cuegate-has-no-such-program", &[]).unwrap_err();
        assert!(why.starts_with("`cuegate-has-no-such-program` does not work: No such file"), "{why}");
    }
}
