//! `check --watch`: checks again whenever a file changes that a definition reads.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use super::check;
use super::check::DefinitionCheck;
use crate::cli::commands::ProjectPlace;
use crate::cli::commands::write::check::{CheckArgs, CheckFormat};
use crate::cli::print;
use crate::definition::{FileState, Location};
use crate::{Failure, config, exit};

/// The polling interval. Polling, unlike file system events, also sees missing files, files that an editor replaces and
/// files on network drives.
const EVERY: Duration = Duration::from_millis(250);

/// How long a change is given to be complete.
const SETTLE: Duration = Duration::from_millis(50);

type Sights = BTreeMap<PathBuf, FileState>;

/// Checks once, then after each change, until the program is interrupted.
pub(in crate::cli::commands) fn watch_definitions(
    place: &ProjectPlace,
    args: &CheckArgs,
) -> Result<u8, Failure> {
    let text = match args.format() {
        CheckFormat::Text => true,
        CheckFormat::Json => false,
        CheckFormat::Github | CheckFormat::Gitlab | CheckFormat::Sarif => {
            return Err(Failure::usage(
                "`--watch` prints only text or JSON, not `--format github`, `gitlab` or `sarif`",
                "omit `--format`, or use `--json`",
            ));
        }
    };
    let mut places = locate_paths(place, args);
    let (mut found, mut sights) = check_and_record_files(place, args)?;
    check::report_findings(&found, args);
    if text {
        print::print_line("watching; press Ctrl-C to stop");
    }
    while print::is_read() {
        std::thread::sleep(EVERY);
        let mut seen = sights.clone();
        let mut changed = changed_of(&mut seen);
        if !changed.is_empty() {
            // Programs that write a file empty it first.
            std::thread::sleep(SETTLE);
            seen.clone_from(&sights);
            changed = changed_of(&mut seen);
        }
        sights = seen;
        // A typed name may now resolve to another file: a new one, or one that takes precedence.
        let places_now = locate_paths(place, args);
        let is_moved = places_now != places;
        // A read failure can disappear without a change of any watched file.
        if changed.is_empty() && !is_moved && found.iter().all(|found| found.failure.is_none()) {
            continue;
        }
        let before = failures_of_definitions(&found);
        match check_and_record_files(place, args) {
            Ok(looked) => (found, sights) = looked,
            // Watching goes on: an editor that replaces a file may leave a folder there for a moment.
            Err(failure) => {
                if !changed.is_empty() || is_moved {
                    print::print_failure(&failure);
                }
                places = places_now;
                continue;
            }
        }
        let after = failures_of_definitions(&found);
        let known = std::mem::replace(&mut places, places_now);
        if changed.is_empty() && !is_moved && after == before {
            continue;
        }
        if text {
            // A definition that did not exist is named as it was typed.
            let before = known.iter().zip(&before);
            let given = args.paths.iter().zip(before.zip(places.iter().zip(&after)));
            let came = given.filter(|(_, (before, after))| before != after).map(|(path, _)| path.into());
            let changed = if changed.is_empty() { came.collect() } else { changed };
            print::print_line(&change_summary(&changed, place.home.root()));
        }
        check::report_findings(&found, args);
    }
    Ok(exit::DONE)
}

/// The files that are not as they were seen.
fn changed_of(sights: &mut Sights) -> Vec<PathBuf> {
    let changed = sights.iter_mut().filter_map(|(path, sight)| sight.changed(path).then_some(path));
    changed.cloned().collect()
}

/// The locations of the typed paths, or why a path has none.
fn locate_paths(place: &ProjectPlace, args: &CheckArgs) -> Vec<Result<Location, String>> {
    let at = |path: &String| place.locate(path).map_err(|failure| failure.message);
    args.paths.iter().map(at).collect()
}

/// Checks all definitions, and records the state of every file that they read or looked for.
fn check_and_record_files(
    place: &ProjectPlace,
    args: &CheckArgs,
) -> Result<(Vec<DefinitionCheck>, Sights), Failure> {
    // Record the state before reading: a file that changes meanwhile is then seen as changed.
    let configs = config::list_config_paths(place.home.root()).into_iter().map(|path| {
        let sight = FileState::of_path(&path);
        (path, sight)
    });
    let mut sights: Sights = configs.collect();
    let found = check::check_definitions(place, args)?;
    sights.extend(found.iter().flat_map(|found| found.looked_for.clone()));
    Ok((found, sights))
}

/// Why definitions could not be checked.
fn failures_of_definitions(found: &[DefinitionCheck]) -> Vec<Option<String>> {
    found.iter().map(|found| found.failure.as_ref().map(|failure| failure.message.clone())).collect()
}

/// One line that names the changed files.
fn change_summary(changed: &[PathBuf], root: &Path) -> String {
    let Some(first) = changed.first() else { return "\nchanged".to_owned() };
    let shown = first.strip_prefix(root).unwrap_or(first).display();
    match changed.len() {
        1 => format!("\nchanged: {shown}"),
        count => format!("\nchanged: {shown} and {} more", count - 1),
    }
}
