//! JSON Schemas of answers: compiled once, used many times.

mod draft;
mod kinds;
mod lookup;
mod plain;
mod within;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

pub(crate) use draft::SchemaDraft;
pub(crate) use kinds::Kinds;
pub use lookup::KeyLookup;
pub(crate) use lookup::items_of_keyword;
pub(crate) use within::{
    SegmentConstraints, constraints_of_segment, find_nested_value, in_any_case, in_any_case_of,
    list_enumerated_values,
};

use crate::model::FieldPath;

/// A JSON Schema that is known to compile.
///
/// Its references are already resolved, so validation never reads a file.
#[derive(Clone)]
pub struct Schema {
    value: Arc<Value>,
    /// The compiled schema, built when the first answer is validated or when compilability must be checked.
    validator: Arc<OnceLock<jsonschema::Validator>>,
    /// The possible values at paths, cached because computing them is slow.
    known: Arc<Mutex<HashMap<String, Option<Vec<Value>>>>>,
}

/// Why a schema does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    reason: String,
    pointer: String,
}

impl SchemaError {
    /// A JSON Pointer to the invalid part; empty for the whole schema.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for SchemaError {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.value).finish()
    }
}

/// Why a schema does not compile. The compiler also rejects regular expressions for their size.
fn explain_compile_error(error: &jsonschema::ValidationError<'_>) -> String {
    match error.kind() {
        jsonschema::error::ValidationErrorKind::Format { format } if format == "regex" => {
            format!("{} is not a regular expression, or is too large", error.instance())
        }
        _ => error.to_string(),
    }
}

/// The most reported problems per answer; more do not help an agent to repair it.
const PROBLEMS_MAX: usize = 8;

impl Schema {
    /// Creates a schema and checks it.
    ///
    /// # Errors
    /// Returns the compiler's reason when the value is not a valid JSON Schema.
    pub fn new(value: Value) -> Result<Schema, SchemaError> {
        let validator = OnceLock::new();
        if !plain::is_plain(&value) {
            let compiled = jsonschema::validator_for(&value).map_err(|error| {
                let pointer = error.instance_path().to_string();
                SchemaError { reason: explain_compile_error(&error), pointer }
            })?;
            _ = validator.set(compiled);
        }
        Ok(Schema { value: value.into(), validator: validator.into(), known: Arc::default() })
    }

    pub(crate) fn validator(&self) -> &jsonschema::Validator {
        let compile = || jsonschema::validator_for(&self.value).expect("a plain schema compiles");
        self.validator.get_or_init(compile)
    }

    /// The schema as sent to an agent.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The schema's value, to derive another schema from it.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }

    /// The problems of an answer, one line each, at most eight; empty when the answer is valid.
    pub fn problems(&self, answer: &Value) -> Vec<String> {
        self.validator()
            .iter_errors(answer)
            .take(PROBLEMS_MAX)
            .map(|error| {
                let at = error.instance_path().to_string();
                if at.is_empty() { error.to_string() } else { format!("{error} (at `{at}`)") }
            })
            .collect()
    }

    /// The possible values at a path, found once.
    pub(crate) fn keep_values_at(
        &self,
        path: &FieldPath,
        find: impl FnOnce() -> Option<Vec<Value>>,
    ) -> Option<Vec<Value>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(path.to_string()).or_insert_with(find).clone()
    }

    pub(crate) fn draft(&self) -> SchemaDraft {
        SchemaDraft::of(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use crate::model::FieldPath;
    use serde_json::{Value, json};

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).unwrap()
    }

    #[test]
    fn problems_name_the_path() {
        let schema = Schema::new(json!({
            "type": "object", "required": ["a"], "properties": {"a": {"type": "object",
            "properties": {"n": {"type": "integer"}}}}
        }))
        .unwrap();
        assert!(schema.problems(&json!({"a": {"n": 1}})).is_empty());
        let problems = schema.problems(&json!({"a": {"n": "x"}}));
        assert_eq!(problems, [r#""x" is not of type "integer" (at `/a/n`)"#]);
    }

    #[test]
    fn an_invalid_schema_reports_the_reason() {
        let error = Schema::new(json!({"type": 7})).unwrap_err();
        assert!(error.to_string().contains('7'), "{error}");
        let deeper = json!({"properties": {"a": {"type": "string", "pattern": "("}}});
        assert_eq!(Schema::new(deeper).unwrap_err().pointer(), "/properties/a/pattern");
    }

    #[test]
    fn can_produce_follows_the_schema() {
        let schema = Schema::new(json!({
            "type": "object", "additionalProperties": false,
            "properties": {"s": {"enum": ["a", "b"]}, "flag": {"type": "boolean"},
                "open": {"type": "object"}, "nothing": {"enum": [null]}, "list": {"type": "array", "items": {"const": 3}}}
        }))
        .unwrap();
        assert_eq!(schema.values_at(&path("s")), Some(vec![json!("a"), json!("b")]));
        assert_eq!(schema.values_at(&path("flag")), Some(vec![json!(true), json!(false)]));
        assert_eq!(schema.values_at(&path("list.0")), Some(vec![json!(3)]));
        assert_eq!(schema.values_at(&path("open.x")), None);
        assert!(schema.can_produce(&path("open.x")));
        assert!(!schema.can_produce(&path("missing")));
        assert!(!schema.can_produce(&path("s.deeper")));
        assert!(schema.only_null(&path("nothing")) && !schema.only_null(&path("s")));
        assert!(
            schema.can_be(&path("s"), &["string"]) && !schema.can_be(&path("open"), &["string", "number"])
        );
    }

    #[test]
    fn pattern_properties_are_possible() {
        let schema = Schema::new(json!({
            "type": "object", "additionalProperties": false, "patternProperties": {"^go": {"type": "string"}}
        }))
        .unwrap();
        assert!(schema.can_produce(&path("goal")));
    }

    const OLDER: &str = "http://json-schema.org/draft-07/schema#";
    const NEWER: &str = "https://json-schema.org/draft/2020-12/schema";

    /// A schema of `plan`, read by a draft.
    fn of_plan(draft: &str, plan: Value) -> Schema {
        Schema::new(
            json!({"$schema": draft, "type": "object", "required": ["plan"], "additionalProperties": false,
            "properties": {"plan": plan}}),
        )
        .unwrap()
    }

    #[test]
    fn lists_and_open_objects_follow_the_draft() {
        let text = json!({"type": "string"});
        for (draft, plan, at, is_certain) in [
            (OLDER, json!({"type": "array", "minItems": 1}), "plan.0", false),
            (NEWER, json!({"type": "array", "minItems": 1, "prefixItems": [text]}), "plan.0", true),
            (NEWER, json!({"type": "array", "minItems": 2, "prefixItems": [text]}), "plan.1", false),
            (
                NEWER,
                json!({"type": "array", "minItems": 2, "prefixItems": [{}], "items": text}),
                "plan.1",
                true,
            ),
            (OLDER, json!({"type": "array", "minItems": 1, "items": [text]}), "plan.0", true),
            (
                OLDER,
                json!({"type": "array", "minItems": 2, "items": [{}], "additionalItems": text}),
                "plan.1",
                true,
            ),
            (
                OLDER,
                json!({"type": "array", "minItems": 1, "items": {}, "prefixItems": [text]}),
                "plan.0",
                false,
            ),
            (
                OLDER,
                json!({"type": "array", "minItems": 1, "items": text, "additionalItems": {}}),
                "plan.0",
                true,
            ),
            (
                OLDER,
                json!({"type": "object", "required": ["x"], "additionalProperties": text}),
                "plan.x",
                true,
            ),
            (
                OLDER,
                json!({"type": "object", "required": ["x"], "additionalProperties": false,
                "patternProperties": {"^x$": text, "^y": {}}}),
                "plan.x",
                true,
            ),
            (OLDER, json!({"enum": [{"x": "a"}, {"x": "b"}]}), "plan.x", true),
            (OLDER, json!({"const": {"x": "a"}}), "plan.x", true),
            (OLDER, json!({"enum": [{"x": "a"}, {"x": null}]}), "plan.x", false),
        ] {
            let (schema, at) = (of_plan(draft, plan), path(at));
            assert!(schema.can_produce(&at) && schema.requires(&at), "{schema:?}");
            assert_eq!(schema.always_has(&at), is_certain, "{schema:?}");
        }
        for (plan, at) in [
            (json!({"enum": [{"x": "a"}, {"y": "b"}]}), "plan.z"),
            (json!({"type": "array", "maxItems": 1}), "plan.1"),
            (json!({"type": "array", "items": [{}], "additionalItems": false}), "plan.1"),
            (json!({"type": "array"}), "plan.x"),
            (json!({"additionalProperties": false, "patternProperties": {"^y": {}}}), "plan.x"),
        ] {
            let schema = of_plan(OLDER, plan);
            assert!(!schema.can_produce(&path(at)), "{schema:?}");
        }
    }

    #[test]
    fn values_belong_to_their_own_path() {
        let one = json!({"enum": ["a"]});
        for (draft, plan, at, values) in [
            (
                NEWER,
                json!({"prefixItems": [one], "items": {"enum": ["b"]}, "type": "array"}),
                "plan.0",
                json!(["a"]),
            ),
            (
                NEWER,
                json!({"prefixItems": [one], "items": {"enum": ["b"]}, "type": "array"}),
                "plan.1",
                json!(["b"]),
            ),
            (OLDER, json!({"items": [{"enum": ["a", "b"]}], "type": "array"}), "plan.0", json!(["a", "b"])),
            (OLDER, json!({"additionalProperties": one, "type": "object"}), "plan.x", json!(["a"])),
            (
                OLDER,
                json!({"patternProperties": {"x": one}, "properties": {"x": {"enum": ["a", "b"]}},
                "type": "object"}),
                "plan.x",
                json!(["a"]),
            ),
            (OLDER, json!({"enum": [{"x": "a"}, {"x": "b"}, {"y": "c"}]}), "plan.x", json!(["a", "b"])),
        ] {
            let schema = of_plan(draft, plan);
            assert_eq!(schema.values_at(&path(at)).map(Value::from), Some(values), "{schema:?}");
        }
        let either = of_plan(OLDER, json!({"items": one, "properties": {"0": {"enum": ["b"]}}}));
        assert_eq!(
            either.values_at(&path("plan.0")),
            Some(vec![json!("b"), json!("a")]),
            "an object or a list"
        );
        let nothing = json!({"type": ["array", "null"], "prefixItems": [{"enum": ["x", null]}, {}], "items": {"type": "null"}});
        let nothing = of_plan(NEWER, nothing);
        assert!(!nothing.only_null(&path("plan.0")) && nothing.only_null(&path("plan.2")));
    }
}
