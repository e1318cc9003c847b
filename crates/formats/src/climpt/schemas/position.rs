//! Where in its file a part of a resolved schema stands: behind the references that lead there.

use cuegate_flow::diagnostics::Span;

use crate::schemas::split_reference;
use crate::source::files::join_path;
use crate::source::loader::SourceLoader;
use crate::values::json::{Json, Kind};

/// How many parts of schemas are looked at for one place: references may lead round.
const PARTS_MAX: usize = 10_000;

/// A part of a schema as it is written.
pub(crate) struct SchemaPlace {
    /// Its key.
    pub(crate) span: Span,
    /// The definition that it was found in, when a reference leads there: its name, and what of the way to the part lies
    /// behind it.
    pub(crate) definition: Option<(String, String)>,
}

/// What a walk has come to.
#[derive(Default)]
struct WalkPosition {
    /// How many names it has followed.
    depth: usize,
    span: Option<Span>,
    /// The last definition it has entered, and how many names it had followed then.
    definition: Option<(String, usize)>,
}

/// Looks for parts of schemas in files.
struct SchemaWalk<'w, 'f> {
    loader: &'w SourceLoader<'f>,
    /// How many parts may be looked at yet.
    left: usize,
}

/// Where names lead from the top of a file: as deep as is written. `None` when not even the first is there.
pub(crate) fn locate_schema_part(
    loader: &SourceLoader<'_>,
    file: &str,
    names: &[String],
) -> Option<SchemaPlace> {
    let json = loader.json(file).ok().flatten()?;
    let found = SchemaWalk { loader, left: PARTS_MAX }.follow(&json, file, names, 0);
    let rest =
        |from: usize| names[from..].iter().map(|name| format!("/{}", escape_pointer_token(name))).collect();
    let definition = found.definition.map(|(name, from)| (name, rest(from)));
    found.span.map(|span| SchemaPlace { span, definition })
}

/// The names of a JSON pointer.
pub(crate) fn tokens_of_pointer(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

fn escape_pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl SchemaWalk<'_, '_> {
    /// Follows the names from the `depth`th on.
    fn follow(&mut self, at: &Json, file: &str, names: &[String], depth: usize) -> WalkPosition {
        let none = WalkPosition { depth, ..WalkPosition::default() };
        let Some(left) = self.left.checked_sub(1) else { return none };
        self.left = left;
        if let Some(reference) = at.get("$ref").and_then(Json::as_text) {
            return self.refer(reference, file, names, depth).unwrap_or(none);
        }
        let Some(name) = names.get(depth) else { return none };
        let mut best = match find_child(at, name) {
            Some((span, inner)) => {
                let found = self.follow(inner, file, names, depth + 1);
                WalkPosition { span: found.span.or(Some(span)), ..found }
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
    fn refer(&mut self, reference: &str, file: &str, names: &[String], depth: usize) -> Option<WalkPosition> {
        let own = self.loader.json(file).ok().flatten();
        let (other, pointer) = split_reference(reference, own.as_deref());
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let file = if other.is_empty() { file.to_owned() } else { join_path(folder, other)? };
        let json = self.loader.json(&file).ok().flatten()?;
        let way = tokens_of_pointer(&pointer);
        let (mut at, mut span) = (&*json, json.span);
        for name in &way {
            (span, at) = find_child(at, name)?;
        }
        let found = self.follow(at, &file, names, depth);
        let name = way.last().cloned().unwrap_or(reference.to_owned());
        let definition = found.definition.or(Some((name, depth)));
        Some(WalkPosition { depth: found.depth, span: found.span.or(Some(span)), definition })
    }
}

/// What a name leads to, and where that is called so.
fn find_child<'j>(at: &'j Json, name: &str) -> Option<(Span, &'j Json)> {
    match &at.kind {
        Kind::List(items) => items.get(name.parse::<usize>().ok()?).map(|item| (item.span, item)),
        _ => at.entry(name).map(|entry| (entry.key_span, &entry.value)),
    }
}
