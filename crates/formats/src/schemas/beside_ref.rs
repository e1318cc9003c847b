//! What stands beside a `$ref`. Before draft 2019-09 it is dropped when a schema is resolved, so that it is reported; since
//! then both hold.

use cuegate_flow::diagnostics::Diagnostic;

use crate::codes;
use crate::findings::Findings;
use crate::suggest::quote_names;
use crate::values::json::{Entry, Json, Kind};

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

/// Whether what stands beside a `$ref` counts in a schema file: where it names a draft in which it does.
pub(crate) fn counts_beside_ref(file: &Json) -> bool {
    let draft = file.get("$schema").and_then(Json::as_text).unwrap_or_default();
    draft.contains("://json-schema.org/draft/20")
}

/// Whether an entry beside a `$ref` says something of what the schema is about. What references lead to does not.
pub(crate) fn is_beside_ref(entry: &Entry) -> bool {
    !matches!(&*entry.key, "$ref" | "$defs" | "definitions" | "$id" | "$schema")
}

/// Reports each `$ref` of a schema file that has constraints beside it and drops them. Said once a place, however often the
/// file is read: findings that repeat each other exactly are dropped.
pub(crate) fn check_refs(file: &Json, found: &Findings) {
    if !counts_beside_ref(file) {
        check_nested_refs(file, found);
    }
}

fn check_nested_refs(schema: &Json, found: &Findings) {
    match &schema.kind {
        Kind::List(items) => items.iter().for_each(|item| check_nested_refs(item, found)),
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
                    ) => named.iter().for_each(|entry| check_nested_refs(&entry.value, found)),
                    _ => check_nested_refs(&entry.value, found),
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
    let message = format!("{} beside `$ref` to `{reference}` has no force", quote_names(&keys));
    found.push(
        Diagnostic::warning(codes::UNUSED_KEY, first.key_span, message)
            .hint("put the `$ref` into an `allOf`, and this beside that"),
    );
}
