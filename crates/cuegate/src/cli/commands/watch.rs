//! `check --watch`: checks again whenever something changes that a definition reads.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Place, check, check::Found};
use crate::{
    Failure,
    cli::{
        args::{Check, Format},
        print,
    },
    config,
    definition::{Location, Sight},
    exit,
};

/// How often is looked whether something changed. Looking, rather than being told by the system, sees files that are
/// not there yet, files that an editor puts in another's place, and those on a network alike.
const EVERY: Duration = Duration::from_millis(250);

type Sights = BTreeMap<PathBuf, Sight>;

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
    let mut places = located(place, args);
    let (mut found, mut sights) = look(place, args)?;
    check::report(&found, args);
    if text {
        print::line("watching; Ctrl-C ends it");
    }
    while print::is_read() {
        std::thread::sleep(EVERY);
        let again = sights.iter_mut().filter_map(|(path, sight)| sight.changed(path).then_some(path));
        let changed: Vec<PathBuf> = again.cloned().collect();
        // What was typed may lead elsewhere now: to a file that is there at last, or that comes before the one known.
        let places_now = located(place, args);
        let is_moved = places_now != places;
        // Why it could not be read may be gone without a file that was looked for having changed.
        if changed.is_empty() && !is_moved && found.iter().all(|found| found.failure.is_none()) {
            continue;
        }
        let before = failures(&found);
        (found, sights) = look(place, args)?;
        let after = failures(&found);
        let known = std::mem::replace(&mut places, places_now);
        if changed.is_empty() && !is_moved && after == before {
            continue;
        }
        if text {
            // What was not there had no name but the one that was given.
            let before = known.iter().zip(&before);
            let given = args.paths.iter().zip(before.zip(places.iter().zip(&after)));
            let came = given.filter(|(_, (before, after))| before != after).map(|(path, _)| path.into());
            let changed = if changed.is_empty() { came.collect() } else { changed };
            print::line(&told(&changed, place.home.root()));
        }
        check::report(&found, args);
    }
    Ok(exit::DONE)
}

/// Where what was typed leads; why nowhere, where it does not.
fn located(place: &Place, args: &Check) -> Vec<Result<Location, String>> {
    let at = |path: &String| place.locate(path).map_err(|failure| failure.message);
    args.paths.iter().map(at).collect()
}

/// Looks at all definitions, and remembers how everything was that was looked for.
fn look(place: &Place, args: &Check) -> Result<(Vec<Found>, Sights), Failure> {
    // Before it is read: what changes meanwhile changes once more afterwards.
    let configs = config::files(place.home.root()).into_iter().map(|path| {
        let sight = Sight::of(&path);
        (path, sight)
    });
    let mut sights: Sights = configs.collect();
    let found = check::look(place, args)?;
    sights.extend(found.iter().flat_map(|found| found.looked_for.clone()));
    Ok((found, sights))
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
