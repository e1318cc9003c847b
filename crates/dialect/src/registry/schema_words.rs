//! Misspelt keywords of JSON Schema: a validator takes no notice of them, so that they constrain nothing.

use cuegate_flow::Diagnostic;

use crate::codes;
use crate::findings::Findings;
use crate::json::{Json, Kind};
use crate::nearest::nearest;

/// What a keyword has as its value.
#[derive(Clone, Copy)]
enum Shape {
    Number,
    Boolean,
    Text,
    /// A type, or several.
    Types,
    Texts,
    List,
    Schema,
    Schemas,
    /// Schemas by name.
    Named,
}

/// The keywords that constrain answers and are long enough to be told from each other when they are misspelt.
const KEYWORDS: [(&str, Shape); 26] = [
    ("type", Shape::Types),
    ("enum", Shape::List),
    ("required", Shape::Texts),
    ("properties", Shape::Named),
    ("patternProperties", Shape::Named),
    ("additionalProperties", Shape::Schema),
    ("propertyNames", Shape::Schema),
    ("minProperties", Shape::Number),
    ("maxProperties", Shape::Number),
    ("dependentSchemas", Shape::Named),
    ("items", Shape::Schema),
    ("contains", Shape::Schema),
    ("minItems", Shape::Number),
    ("maxItems", Shape::Number),
    ("uniqueItems", Shape::Boolean),
    ("minLength", Shape::Number),
    ("maxLength", Shape::Number),
    ("pattern", Shape::Text),
    ("minimum", Shape::Number),
    ("maximum", Shape::Number),
    ("exclusiveMinimum", Shape::Number),
    ("exclusiveMaximum", Shape::Number),
    ("multipleOf", Shape::Number),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("oneOf", Shape::Schemas),
];

/// Keywords that are like one of these and none of them: of drafts, and of what is made of JSON Schema elsewhere.
const OTHERS: [&str; 7] =
    ["additionalItems", "prefixItems", "unevaluatedItems", "maxContains", "minContains", "example", "typeof"];

/// Reports the misspelt keywords of a schema file. The file itself is a schema only where it says so: otherwise its keys
/// are names of schemas.
pub(super) fn check_words(file: &Json, found: &Findings) {
    let is_schema = ["type", "properties", "required"].iter().any(|key| file.get(key).is_some());
    walk(file, is_schema, found);
}

fn walk(schema: &Json, is_schema: bool, found: &Findings) {
    match &schema.kind {
        Kind::List(items) => items.iter().for_each(|item| walk(item, true, found)),
        Kind::Object(entries) => {
            for entry in entries {
                if is_schema && let Some(meant) = meant(schema, &entry.key, &entry.value) {
                    let message = format!(
                        "`{}` is no keyword of JSON Schema, so that it constrains nothing",
                        entry.key
                    );
                    found.push(Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message).meant(meant));
                }
                match (&*entry.key, &entry.value.kind) {
                    // Values of answers, not schemas.
                    ("enum" | "const" | "default" | "examples" | "required", _) => {}
                    (
                        "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas",
                        Kind::Object(named),
                    ) => named.iter().for_each(|entry| walk(&entry.value, true, found)),
                    // Further keys may hold anything.
                    (key, _)
                        if is_schema
                            && !KEYWORDS.iter().any(|(known, _)| *known == key)
                            && !HOLD.contains(&key) => {}
                    _ => walk(&entry.value, true, found),
                }
            }
        }
        _ => {}
    }
}

/// Other keywords that hold schemas.
const HOLD: [&str; 7] =
    ["not", "if", "then", "else", "prefixItems", "additionalItems", "unevaluatedProperties"];

/// The keyword that was probably meant by a key that is none.
fn meant(schema: &Json, key: &str, value: &Json) -> Option<&'static str> {
    if KEYWORDS.iter().any(|(known, _)| *known == key) || OTHERS.contains(&key) {
        return None;
    }
    let near = nearest(key, KEYWORDS.iter().map(|(known, _)| *known).chain(OTHERS))?;
    let (keyword, shape) = KEYWORDS.into_iter().find(|(known, _)| *known == near)?;
    (schema.get(keyword).is_none() && has_shape(value, shape)).then_some(keyword)
}

fn has_shape(value: &Json, shape: Shape) -> bool {
    let is_schema = |value: &Json| matches!(value.kind, Kind::Object(_) | Kind::Boolean(_));
    match (shape, &value.kind) {
        (Shape::Number, Kind::Number(_))
        | (Shape::Boolean, Kind::Boolean(_))
        | (Shape::Text, Kind::Text(_)) => true,
        (Shape::Types, Kind::Text(kind)) => TYPES.contains(&&**kind),
        (Shape::Types, Kind::List(kinds)) => {
            kinds.iter().all(|kind| kind.as_text().is_some_and(|kind| TYPES.contains(&kind)))
        }
        (Shape::List, Kind::List(_)) => true,
        (Shape::Texts, Kind::List(items)) => items.iter().all(|item| item.as_text().is_some()),
        (Shape::Schema, _) => is_schema(value),
        (Shape::Schemas, Kind::List(items)) => items.iter().all(is_schema),
        (Shape::Named, Kind::Object(named)) => named.iter().all(|entry| is_schema(&entry.value)),
        _ => false,
    }
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
