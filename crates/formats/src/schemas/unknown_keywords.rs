//! Misspelt keywords of JSON Schema: a validator takes no notice of them, so that they constrain nothing.

use cuegate_flow::diagnostics::Diagnostic;

use crate::codes;
use crate::findings::Findings;
use crate::suggest::find_nearest_name;
use crate::values::json::{Json, Kind};

/// What a keyword has as its value.
#[derive(Clone, Copy)]
enum Shape {
    Number,
    Boolean,
    Text,
    /// A type, or several.
    Types,
    Texts,
    /// A value that is no list and no object.
    Value,
    List,
    Schema,
    Schemas,
    /// Schemas by name.
    Named,
}

/// The keywords that constrain answers and are long enough to be told from each other when they are misspelt.
const KEYWORDS: [(&str, Shape); 27] = [
    ("type", Shape::Types),
    ("const", Shape::Value),
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

/// Further keywords: of any draft, and of what is made of JSON Schema elsewhere. They are not misspelt ones of the others.
const OTHERS: &str = "\
    $schema $id id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary \
    $comment $defs definitions title description default examples deprecated readOnly writeOnly \
    maxContains minContains dependentRequired not if then else prefixItems unevaluatedItems \
    unevaluatedProperties additionalItems dependencies format contentEncoding contentMediaType \
    contentSchema extends disallow divisibleBy links media nullable discriminator xml externalDocs \
    example enumNames enumDescriptions markdownDescription errorMessage defaultSnippets doNotSuggest \
    tsType javaType propertyOrder options collectionFormat allowReserved formatMinimum formatMaximum \
    formatExclusiveMinimum formatExclusiveMaximum patternRequired instanceof typeof transform regexp \
    cost uniqueItemProperties allRequired anyRequired oneRequired prohibited select selectCases";

/// Reports the misspelt keywords of a schema file. The file itself is a schema only where it says so: otherwise its keys
/// are names of schemas.
pub(crate) fn check_words(file: &Json, found: &Findings) {
    check_nested_keywords(file, says_it_is_one(file), found);
}

/// Whether something is a schema by what it has: elsewhere than where a keyword has one it may be anything.
fn says_it_is_one(json: &Json) -> bool {
    ["type", "properties", "required", "enum", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|key| json.get(key).is_some())
}

fn check_nested_keywords(schema: &Json, is_schema: bool, found: &Findings) {
    match &schema.kind {
        Kind::List(items) => items.iter().for_each(|item| check_nested_keywords(item, is_schema, found)),
        Kind::Object(entries) => {
            for entry in entries {
                let is_known = is_keyword(&entry.key);
                if is_schema
                    && !is_known
                    && let Some(meant) = guess_keyword(schema, &entry.key, &entry.value)
                {
                    let message =
                        format!("unknown JSON Schema keyword `{}`: it constrains nothing", entry.key);
                    let finding = Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message);
                    found.push(match is_readable(schema, meant, &entry.value) {
                        true => finding.did_you_mean(meant),
                        false => finding.hint(format!(
                            "write `{meant}`, with values of the `type` beside it, or take it out"
                        )),
                    });
                }
                match (&*entry.key, &entry.value.kind) {
                    // Values of answers, not schemas.
                    ("enum" | "const" | "default" | "examples" | "required", _) => {}
                    (
                        "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas",
                        Kind::Object(named),
                    ) => named.iter().for_each(|entry| check_nested_keywords(&entry.value, true, found)),
                    // Further keys may hold anything.
                    (key, _) if is_schema && !is_known && !HOLD.contains(&key) => {}
                    (_, value) if !is_schema && !matches!(value, Kind::List(_)) => {
                        check_nested_keywords(&entry.value, says_it_is_one(&entry.value), found);
                    }
                    _ => check_nested_keywords(&entry.value, is_schema, found),
                }
            }
        }
        _ => {}
    }
}

/// Whether a key is one of the keywords. Most are one of a few.
fn is_keyword(key: &str) -> bool {
    matches!(key, "type" | "properties" | "required" | "enum" | "items")
        || KEYWORDS.iter().any(|(known, _)| *known == key)
}

fn list_other_keywords() -> impl Iterator<Item = &'static str> {
    OTHERS.split_whitespace()
}

/// Other keywords that hold schemas.
const HOLD: [&str; 7] =
    ["not", "if", "then", "else", "prefixItems", "additionalItems", "unevaluatedProperties"];

/// The keyword that was probably meant by a key that is none.
fn guess_keyword(schema: &Json, key: &str, value: &Json) -> Option<&'static str> {
    // What has a mark in it is somebody's own.
    let is_word = key != "description" && key.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_word || is_keyword(key) || list_other_keywords().any(|other| other == key) {
        return None;
    }
    let near = find_nearest_name(key, KEYWORDS.iter().map(|(known, _)| *known).chain(list_other_keywords()))?;
    let (keyword, shape) = KEYWORDS.into_iter().find(|(known, _)| *known == near)?;
    // A value that no answer could have is not what was meant to be the only one.
    let is_free = keyword != "const"
        || schema.get("type").and_then(Json::as_text).is_none_or(|kind| is_of_type(value, kind));
    let is_meant =
        schema.get(keyword).is_none() && has_shape(value, shape) && !says_more(key, keyword) && is_free;
    is_meant.then_some(keyword)
}

/// Whether a key has all words of a keyword in it and further ones, as `requiredIf` has: it is somebody's own.
fn says_more(key: &str, keyword: &str) -> bool {
    let (words, known) = (split_camel_case(key), split_camel_case(keyword));
    words.len() > known.len() && words.windows(known.len()).any(|part| part == known)
}

/// The words of a key: each but the first begins with a capital letter.
fn split_camel_case(key: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in key.chars() {
        match words.last_mut().filter(|_| !letter.is_ascii_uppercase()) {
            Some(word) => word.push(letter),
            None => words.push(letter.to_ascii_lowercase().to_string()),
        }
    }
    words
}

/// Whether something can be read as the keyword that was meant. Where none of the values that it lists is of the `type`
/// beside it, that would be a second mistake.
fn is_readable(schema: &Json, keyword: &str, value: &Json) -> bool {
    let (Some(kind), Kind::List(values)) = (schema.get("type"), &value.kind) else { return true };
    let kinds = match &kind.kind {
        Kind::List(kinds) => kinds.iter().filter_map(Json::as_text).collect(),
        _ => Vec::from_iter(kind.as_text()),
    };
    let is_of = |value: &Json| kinds.iter().any(|kind| is_of_type(value, kind));
    keyword != "enum" || values.iter().any(is_of)
}

fn is_of_type(value: &Json, kind: &str) -> bool {
    match &value.kind {
        Kind::Null => kind == "null",
        Kind::Boolean(_) => kind == "boolean",
        Kind::Number(_) => kind == "number" || kind == "integer",
        Kind::Text(_) => kind == "string",
        Kind::List(_) => kind == "array",
        Kind::Object(_) => kind == "object",
    }
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
        (Shape::Value, kind) => !matches!(kind, Kind::List(_) | Kind::Object(_)),
        (Shape::Texts, Kind::List(items)) => items.iter().all(|item| item.as_text().is_some()),
        (Shape::Schema, _) => is_schema(value),
        (Shape::Schemas, Kind::List(items)) => items.iter().all(is_schema),
        (Shape::Named, Kind::Object(named)) => named.iter().all(|entry| is_schema(&entry.value)),
        _ => false,
    }
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

#[cfg(test)]
mod tests {
    use super::{Json, KEYWORDS, guess_keyword, list_other_keywords};
    use crate::values::json::Kind;
    use cuegate_flow::diagnostics::Span;

    /// No keyword of any draft, and none that tools have besides, is taken for another one, whatever it has as its value.
    #[test]
    fn keywords_that_there_are() {
        let json = |kind: Kind| Json { kind, span: Span::default() };
        let schema = json(Kind::Object(Vec::new()));
        for kind in [
            Kind::Boolean(true),
            Kind::Text("string".into()),
            Kind::List(Vec::new()),
            Kind::Object(Vec::new()),
        ] {
            let value = json(kind);
            for word in list_other_keywords().chain(KEYWORDS.map(|(word, _)| word)) {
                assert_eq!(guess_keyword(&schema, word, &value), None, "{word}");
            }
        }
        let number = json(Kind::List(Vec::new()));
        assert_eq!(guess_keyword(&schema, "requred", &number), Some("required"));
        assert_eq!(
            guess_keyword(&schema, "x-type", &json(Kind::Text("string".into()))),
            None,
            "it is somebody's own"
        );
        let text = json(Kind::Text("a".into()));
        assert_eq!(guess_keyword(&schema, "cons", &text), Some("const"));
        let of_numbers = crate::values::json::parse(
            r#"{"type": "number"}"#,
            cuegate_flow::diagnostics::FileId(0),
            &Default::default(),
        );
        assert_eq!(guess_keyword(&of_numbers.unwrap(), "cons", &text), None, "no answer could have it");
        assert_eq!(guess_keyword(&schema, "exampel", &number), None, "it is like another keyword");
    }
}
