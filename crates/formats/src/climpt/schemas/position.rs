//! Where in its file a part of a resolved schema stands: behind the references that lead there.

use cuegate_flow::diagnostics::Span;

use crate::schemas::split;
use crate::source::files::join;
use crate::source::loader::Desk;
use crate::values::json::{Json, Kind};

/// How many parts of schemas are looked at for one place: references may lead round.
const PARTS_MAX: usize = 10_000;

/// A part of a schema as it is written.
pub(crate) struct Place {
    /// Its key.
    pub(crate) span: Span,
    /// The definition that it was found in, when a reference leads there: its name, and what of the way to the part lies
    /// behind it.
    pub(crate) definition: Option<(String, String)>,
}

/// What a walk has come to.
#[derive(Default)]
struct Found {
    /// How many names it has followed.
    depth: usize,
    span: Option<Span>,
    /// The last definition it has entered, and how many names it had followed then.
    definition: Option<(String, usize)>,
}

/// Looks for parts of schemas in files.
struct Walk<'w, 'f> {
    desk: &'w Desk<'f>,
    /// How many parts may be looked at yet.
    left: usize,
}

/// Where names lead from the top of a file: as deep as is written. `None` when not even the first is there.
pub(crate) fn place(desk: &Desk<'_>, file: &str, names: &[String]) -> Option<Place> {
    let json = desk.json(file).ok().flatten()?;
    let found = Walk { desk, left: PARTS_MAX }.follow(&json, file, names, 0);
    let rest = |from: usize| names[from..].iter().map(|name| format!("/{}", escaped(name))).collect();
    let definition = found.definition.map(|(name, from)| (name, rest(from)));
    found.span.map(|span| Place { span, definition })
}

/// The names of a JSON pointer.
pub(crate) fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl Walk<'_, '_> {
    /// Follows the names from the `depth`th on.
    fn follow(&mut self, at: &Json, file: &str, names: &[String], depth: usize) -> Found {
        let none = Found { depth, ..Found::default() };
        let Some(left) = self.left.checked_sub(1) else { return none };
        self.left = left;
        if let Some(reference) = at.get("$ref").and_then(Json::as_text) {
            return self.refer(reference, file, names, depth).unwrap_or(none);
        }
        let Some(name) = names.get(depth) else { return none };
        let mut best = match child(at, name) {
            Some((span, inner)) => {
                let found = self.follow(inner, file, names, depth + 1);
                Found { span: found.span.or(Some(span)), ..found }
            }
            None => none,
        };
        // The parts of an `allOf` are merged with what has it, the later before the earlier.
        if let Some(Kind::List(parts)) = at.get("allOf").map(|all_of| &all_of.kind) {
            for part in parts.iter().rev() {
                if best.depth == names.len() {
                    break;
                }
                let found = self.follow(part, file, names, depth);
                if found.depth > best.depth {
                    best = found;
                }
            }
        }
        best
    }

    /// Goes on where a reference leads.
    fn refer(&mut self, reference: &str, file: &str, names: &[String], depth: usize) -> Option<Found> {
        let own = self.desk.json(file).ok().flatten();
        let (other, pointer) = split(reference, own.as_deref());
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let file = if other.is_empty() { file.to_owned() } else { join(folder, other)? };
        let json = self.desk.json(&file).ok().flatten()?;
        let way = tokens(&pointer);
        let (mut at, mut span) = (&*json, json.span);
        for name in &way {
            (span, at) = child(at, name)?;
        }
        let found = self.follow(at, &file, names, depth);
        let name = way.last().cloned().unwrap_or(reference.to_owned());
        let definition = found.definition.or(Some((name, depth)));
        Some(Found { depth: found.depth, span: found.span.or(Some(span)), definition })
    }
}

/// What a name leads to, and where that is called so.
fn child<'j>(at: &'j Json, name: &str) -> Option<(Span, &'j Json)> {
    match &at.kind {
        Kind::List(items) => items.get(name.parse::<usize>().ok()?).map(|item| (item.span, item)),
        _ => at.entry(name).map(|entry| (entry.key_span, &entry.value)),
    }
}
