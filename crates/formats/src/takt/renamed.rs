//! Names that were changed where they are given, while everything that goes by them goes on saying the old ones.
//!
//! Each of the places that say the old name would be wrong, and the one that was changed would not. So a name that several
//! places say and nobody has, beside one that somebody has and no place says, is the mistake of who has it.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::sections::{Section, is_path};
use crate::lints;
use crate::source::findings::Findings;
use crate::source::suggest::nearest;
use crate::values::json::{Json, Kind};

/// The ends, which are no movements.
const ENDS: [&str; 2] = ["COMPLETE", "ABORT"];

/// Names of one kind.
#[derive(Default)]
struct Names<'j> {
    /// Those that there are, and where they are given.
    given: Vec<(&'j str, Span)>,
    /// Those of them that need not be said.
    aside: BTreeSet<&'j str>,
    /// Those that are said, and where.
    said: BTreeMap<&'j str, Vec<Span>>,
}

/// Reports the names of a piece that were changed in one place only, in the place of what was found where the old ones are
/// said; they are read as the old ones.
pub(super) fn check_names(piece: &Json, found: &Findings) {
    // What is said and nobody has was found there: in most pieces there is nothing of the kind.
    if found.has(|known| known.code == lints::UNKNOWN_FACET) {
        check_facets(piece, found);
    }
    if found.has(|known| known.code == lints::UNKNOWN_TARGET) {
        check_movements(piece, found);
    }
}

fn check_facets(piece: &Json, found: &Findings) {
    for section in Section::ALL {
        let mut names = Names::default();
        let given = piece.get(section.key()).map(Json::pairs).unwrap_or_default();
        names.given.extend(given.iter().map(|entry| (&*entry.key, entry.key_span)));
        sayings(piece, &[section.user()], &mut |text, span| {
            if is_path(text) && !text.contains(['/', ' ']) && !text.ends_with(".md") {
                names.said.entry(text).or_default().push(span);
            }
        });
        names.report(found, |given, said, span| {
            let (key, user) = (section.key(), section.user());
            let message = format!(
                "`{given}` of `{key}` is named nowhere, and `{said}`, which `{user}` names, is not there"
            );
            Diagnostic::error(lints::UNKNOWN_FACET, span, message)
        });
    }
}

fn check_movements(piece: &Json, found: &Findings) {
    let mut names = Names::default();
    for movement in ["movements", "steps"].iter().flat_map(|key| items(piece, key)) {
        let members = items(movement, "parallel").iter();
        names.aside.extend(members.clone().filter_map(name_of).map(|(name, _)| name));
        names.given.extend(std::iter::once(movement).chain(members).filter_map(name_of));
    }
    sayings(piece, &["next", "initial_movement", "initial_step", "cycle"], &mut |text, span| {
        if !ENDS.contains(&text) {
            names.said.entry(text).or_default().push(span);
        }
    });
    names.report(found, |given, said, span| {
        let message =
            format!("nothing leads to the movement `{given}`, and what leads to `{said}` leads nowhere");
        Diagnostic::error(lints::UNKNOWN_TARGET, span, message)
    });
}

impl Names<'_> {
    fn report(&self, found: &Findings, say: impl Fn(&str, &str, Span) -> Diagnostic) {
        let given: BTreeSet<&str> = self.given.iter().map(|(given, _)| *given).collect();
        let lost: Vec<(&&str, &Vec<Span>)> =
            self.said.iter().filter(|(name, _)| !given.contains(*name)).collect();
        let is_idle =
            |name: &str| !self.said.contains_key(name) && !self.aside.contains(name) && !ENDS.contains(&name);
        let idle: Vec<(&str, Span)> = self.given.iter().copied().filter(|(name, _)| is_idle(name)).collect();
        for (said, places) in &lost {
            let near = nearest(said, idle.iter().map(|(name, _)| *name));
            // What an alias repeats is said in one place. One may as well be the one that is wrong.
            let places: BTreeSet<Span> = places.iter().copied().collect();
            let meant = match (near, &idle[..], lost.len(), places.len()) {
                (_, _, _, 0 | 1) => None,
                (Some(near), _, _, _) => idle.iter().find(|(name, _)| *name == near),
                (None, [only], 1, _) => Some(only),
                _ => None,
            };
            if let Some((given, span)) = meant {
                let finding = say(given, said, *span);
                found.take(|known| known.code == finding.code && places.contains(&known.span));
                found.push(finding.meant(said));
            }
        }
    }
}

fn items<'j>(of: &'j Json, key: &str) -> &'j [Json] {
    match of.get(key).map(|list| &list.kind) {
        Some(Kind::List(items)) => items,
        _ => &[],
    }
}

fn name_of(movement: &Json) -> Option<(&str, Span)> {
    let name = movement.get("name")?;
    Some((name.as_text()?, name.span))
}

/// The texts of some keys, wherever they stand: alone or in lists.
fn sayings<'j>(json: &'j Json, keys: &[&str], say: &mut impl FnMut(&'j str, Span)) {
    match &json.kind {
        Kind::List(items) => items.iter().for_each(|item| sayings(item, keys, say)),
        Kind::Object(entries) => {
            for entry in entries {
                match &entry.value.kind {
                    Kind::Text(text) if keys.contains(&&*entry.key) => say(text.trim(), entry.value.span),
                    Kind::List(items) if keys.contains(&&*entry.key) => {
                        for item in items {
                            match item.as_text() {
                                Some(text) => say(text.trim(), item.span),
                                None => sayings(item, keys, say),
                            }
                        }
                    }
                    _ => sayings(&entry.value, keys, say),
                }
            }
        }
        _ => {}
    }
}
