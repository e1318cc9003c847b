//! Checks of git, disk space, namespaces and the sandbox.

use std::{path::Path, time::Duration};

use cuegate_journal::log::Durability;
use cuegate_runner::{StateDir, sandbox::Bwrap};

use super::{CheckStatus, DoctorFinding};
use crate::config::Config;
use crate::run::leftovers;
use crate::{Failure, project};

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
pub(super) fn check_git(root: &Path) -> DoctorFinding {
    let hint = "install git 2.31 or newer; without it cuegate cannot see what agents change";
    match first_line("git", &["--version"]) {
        Err(why) => DoctorFinding::of_machine("git", CheckStatus::Bad, why, Some(hint)),
        Ok(version) if parse_git_version(&version).is_none() => DoctorFinding::of_machine(
            "git",
            CheckStatus::Bad,
            "`git --version` prints no version".to_owned(),
            Some(hint),
        ),
        Ok(version) if parse_git_version(&version).is_some_and(|found| found < GIT_MIN) => {
            DoctorFinding::of_machine("git", CheckStatus::Bad, format!("{version} is too old"), Some(hint))
        }
        Ok(version) if cuegate_runner::worktree::is_working_tree(root) => {
            DoctorFinding::of_machine("git", CheckStatus::Good, format!("{version}, in a repository"), None)
        }
        Ok(version) => DoctorFinding::of_machine(
            "git",
            CheckStatus::Less,
            format!("{version}, but this folder is not in a repository"),
            Some("run `git init` and commit, so runs can list changes and reject forbidden ones"),
        ),
    }
}

/// The major and minor version in `git version 2.39.5`.
fn parse_git_version(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Checks the disk space for journals, snapshots and outputs.
pub(super) fn check_disk_space(root: &Path) -> DoctorFinding {
    let hint = Some("free disk space: runs keep journals, snapshots and outputs in .cuegate");
    match rustix::fs::statvfs(root) {
        Err(error) => DoctorFinding::of_machine(
            "disk",
            CheckStatus::Bad,
            format!("failed to read the free space: {error}"),
            hint,
        ),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let standing = match free {
                free if free < DISK_BAD => CheckStatus::Bad,
                free if free < DISK_LESS => CheckStatus::Less,
                _ => CheckStatus::Good,
            };
            DoctorFinding::of_machine("disk", standing, format!("{} MiB free", free >> 20), hint)
        }
    }
}

/// Checks the journal, and removes what killed processes left behind. `None` in a project without runs.
pub(super) fn check_journal(home: &StateDir) -> Option<DoctorFinding> {
    const NAME: &str = "journal";
    let bad = |failure: Failure| DoctorFinding {
        hint: failure.hint,
        ..DoctorFinding::of_machine(NAME, CheckStatus::Bad, failure.message, None)
    };
    let journal = match project::open_journal_read_only(home).map(|journal| journal.is_some()) {
        Ok(true) => project::open_project_journal(home, Durability::Synced),
        Ok(false) => {
            let shared = home.shared()?;
            return Some(DoctorFinding::of_machine(
                NAME,
                CheckStatus::Good,
                format!("no runs yet, in {shared}"),
                None,
            ));
        }
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
        return Some(DoctorFinding::of_machine(NAME, CheckStatus::Less, damage, hint));
    }
    let count = runs.iter().filter(|run| run.has_records).count();
    let mut damaged = runs.iter().filter_map(|run| cuegate_runner::read_records(&*journal, &run.run).err());
    if let Some(first) = damaged.next() {
        let found = format!("damaged runs: {} of {count}: {first}", damaged.count() + 1);
        let hint = Some("`cuegate runs` lists the damaged runs and says how to go on");
        return Some(DoctorFinding::of_machine(NAME, CheckStatus::Less, found, hint));
    }
    let mut found = format!("{count} {}", if count == 1 { "run" } else { "runs" });
    if let Some(shared) = home.shared() {
        found.push_str(&format!(" in {shared}"));
    }
    for note in cuegate_runner::sandbox::put_aside_kept_out(home.dir()) {
        found.push_str(&format!("; {note}"));
    }
    for removed in leftovers::remove_leftovers(home, &*journal) {
        found.push_str(&format!("; removed {removed}"));
    }
    Some(DoctorFinding::of_machine(NAME, CheckStatus::Good, found, None))
}

/// Checks whether user and network namespaces can be created.
pub(super) fn check_namespaces() -> DoctorFinding {
    const NAME: &str = "namespaces";
    let hint = "allow unprivileged user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or on Ubuntu \
                `kernel.apparmor_restrict_unprivileged_userns=0`) and install util-linux";
    match first_line("unshare", &["--user", "--map-root-user", "--net", "true"]) {
        Ok(_) => DoctorFinding::of_machine(
            NAME,
            CheckStatus::Good,
            "network namespaces can be created".to_owned(),
            None,
        ),
        Err(why) => DoctorFinding::of_machine(NAME, CheckStatus::Less, why, Some(hint)),
    }
}

/// Checks whether bubblewrap works here.
pub(super) fn check_sandbox() -> DoctorFinding {
    const NAME: &str = "sandbox";
    match Bwrap::find() {
        Ok(bwrap) => {
            let found = format!("{}: agents and validators run in a sandbox", bwrap.version);
            DoctorFinding::of_machine(NAME, CheckStatus::Good, found, None)
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
            DoctorFinding::of_machine(NAME, CheckStatus::Less, found, Some(no_sandbox.hint))
        }
    }
}

/// Proposes caches of package managers that builds in the sandbox could write to. `None` if there are none, or the settings
/// name some.
pub(super) fn propose_caches(config: &Config) -> Option<DoctorFinding> {
    let found = cuegate_runner::sandbox::list_caches();
    if found.is_empty() || !config.sandbox.caches.is_empty() {
        return None;
    }
    let mut tools: Vec<&str> = found.iter().map(|(_, tool)| *tool).collect();
    tools.dedup();
    let paths: Vec<String> = found.iter().map(|(path, _)| format!("\"{path}\"")).collect();
    Some(DoctorFinding {
        name: "caches".to_owned(),
        standing: CheckStatus::Good,
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
        assert_eq!(parse_git_version("git version 2.9.1"), Some((2, 9)));
        assert_eq!(parse_git_version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(parse_git_version("git"), None);
        assert!((2, 9) < GIT_MIN);
    }

    #[test]
    fn a_missing_program_is_reported() {
        let why = first_line("cuegate-has-no-such-program", &[]).unwrap_err();
        assert!(why.starts_with("`cuegate-has-no-such-program` does not work: No such file"), "{why}");
    }
}
