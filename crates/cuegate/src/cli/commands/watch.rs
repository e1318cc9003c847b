//! `check --watch`: checks again whenever something changes that a definition reads.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Place,
    check::{self, Found},
};
use crate::{
    Failure,
    cli::{
        args::{Check, Format},
        print,
    },
    config,
    definition::{Stamp, stamp},
    exit,
};

/// How often is looked whether something changed. Looking, rather than being told by the system, sees files that are
/// not there yet, files that an editor puts in another's place, and those on a network alike.
const EVERY: Duration = Duration::from_millis(250);

type Stamps = BTreeMap<PathBuf, Stamp>;

/// Checks, and again after each change, until the program is interrupted.
pub(super) fn watch(place: &Place, args: &Check) -> Result<u8, Failure> {
    let text = match args.format() {
        Format::Text => true,
        Format::Json => false,
        Format::Github | Format::Sarif => {
            return Err(Failure::usage(
                "`--watch` prints text or JSON, one object for each time",
                "leave `--format` out",
            ));
        }
    };
    let (mut found, mut stamps) = look(place, args)?;
    check::report(&found, args);
    if text {
        print::line("watching; Ctrl-C ends it");
    }
    while print::is_read() {
        std::thread::sleep(EVERY);
        let changed: Vec<PathBuf> = stamps
            .iter()
            .filter(|(path, known)| stamp(path) != **known)
            .map(|(path, _)| path.clone())
            .collect();
        // Where there is no definition, nothing says which file it will be.
        if changed.is_empty() && found.iter().all(|found| found.failure.is_none()) {
            continue;
        }
        let before = failures(&found);
        (found, stamps) = look(place, args)?;
        if changed.is_empty() && failures(&found) == before {
            continue;
        }
        if text {
            print::line(&told(&changed, place.home.root()));
        }
        check::report(&found, args);
    }
    Ok(exit::DONE)
}

/// Looks at all definitions, and remembers how everything was that was looked for.
fn look(place: &Place, args: &Check) -> Result<(Vec<Found>, Stamps), Failure> {
    // Before it is read: what changes meanwhile changes once more afterwards.
    let configs: Stamps = config::files(place.home.root())
        .into_iter()
        .map(|path| {
            let stamp = stamp(&path);
            (path, stamp)
        })
        .collect();
    let found = check::look(place, args)?;
    let mut stamps = configs;
    stamps.extend(found.iter().flat_map(|found| found.looked_for.clone()));
    Ok((found, stamps))
}

/// Why definitions could not be looked at.
fn failures(found: &[Found]) -> Vec<Option<String>> {
    found.iter().map(|found| found.failure.as_ref().map(|failure| failure.message.clone())).collect()
}

/// What changed, in a line.
fn told(changed: &[PathBuf], root: &Path) -> String {
    let Some(first) = changed.first() else { return "\nchanged".to_owned() };
    let shown = first.strip_prefix(root).unwrap_or(first).display();
    match changed.len() {
        1 => format!("\nchanged: {shown}"),
        count => format!("\nchanged: {shown} and {} more", count - 1),
    }
}
