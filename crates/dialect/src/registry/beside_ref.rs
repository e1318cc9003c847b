//! What stands beside a `$ref`: it is dropped when a schema is resolved, so that it is reported.

use cuegate_flow::Diagnostic;

use crate::codes;
use crate::findings::Findings;
use crate::json::{Json, Kind};
use crate::nearest::list;

/// Keys that constrain no answer: notes, and definitions that references lead to.
const NOTES: [&str; 13] = [
    "$ref",
    "$comment",
    "$id",
    "$schema",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "definitions",
    "$defs",
];

/// Reports each `$ref` of a schema file that has constraints beside it. Said once a place, however often the file is
/// read: findings that repeat each other exactly are dropped.
pub(super) fn check_refs(schema: &Json, found: &Findings) {
    match &schema.kind {
        Kind::List(items) => items.iter().for_each(|item| check_refs(item, found)),
        Kind::Object(entries) => {
            check_one(schema, found);
            for entry in entries {
                match (&*entry.key, &entry.value.kind) {
                    // Values of answers, not schemas: what looks like a reference in them is none.
                    ("enum" | "const" | "default" | "examples" | "required", _) => {}
                    // Here keys are names, and may be called like anything.
                    (
                        "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas"
                        | "dependencies",
                        Kind::Object(named),
                    ) => named.iter().for_each(|entry| check_refs(&entry.value, found)),
                    _ => check_refs(&entry.value, found),
                }
            }
        }
        _ => {}
    }
}

fn check_one(schema: &Json, found: &Findings) {
    let Some(reference) = schema.get("$ref").and_then(Json::as_text) else { return };
    let beside: Vec<_> = schema.pairs().iter().filter(|entry| !NOTES.contains(&&*entry.key)).collect();
    let Some(first) = beside.first() else { return };
    let keys: Vec<&str> = beside.iter().map(|entry| &*entry.key).collect();
    let message = format!("{} beside `$ref` to `{reference}` has no force", list(&keys));
    found.push(
        Diagnostic::warning(codes::BESIDE_REF, first.key_span, message)
            .hint("put the `$ref` into an `allOf`, and this beside that"),
    );
}
