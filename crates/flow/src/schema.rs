//! JSON Schemas of answers: compiled once, asked many times.

mod draft;
mod look;
mod plain;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

pub(crate) use draft::Draft;
pub use look::Look;

use crate::allowed::{self, Impossible};
use crate::{FieldPath, Str, always, fit, values};

/// A JSON Schema that is known to compile.
///
/// Its references are resolved before it gets here, so that validating never reads a file.
#[derive(Clone)]
pub struct Schema {
    value: Arc<Value>,
    /// The compiled schema, when an answer was held against it or it had to be found out whether it compiles.
    validator: Arc<OnceLock<jsonschema::Validator>>,
    /// The values that can stand at paths of which something is said elsewhere: finding them takes long.
    known: Arc<Mutex<HashMap<String, Option<Vec<Value>>>>>,
}

/// Why a schema does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    reason: String,
    pointer: String,
}

impl SchemaError {
    /// The part of the schema that is wrong, as a pointer into it; empty for all of it.
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

/// How many problems of one answer are reported; more do not help an agent to mend it.
const PROBLEMS_MAX: usize = 8;

impl Schema {
    /// Makes a schema of a value that is one, which is found out here.
    ///
    /// # Errors
    /// When it is no valid JSON Schema, with the compiler's reason.
    pub fn new(value: Value) -> Result<Schema, SchemaError> {
        let validator = OnceLock::new();
        if !plain::is_plain(&value) {
            let compiled = jsonschema::validator_for(&value).map_err(|error| {
                let pointer = error.instance_path().to_string();
                SchemaError { reason: error.to_string(), pointer }
            })?;
            _ = validator.set(compiled);
        }
        Ok(Schema { value: value.into(), validator: validator.into(), known: Arc::default() })
    }

    fn validator(&self) -> &jsonschema::Validator {
        let compile = || jsonschema::validator_for(&self.value).expect("a plain schema compiles");
        self.validator.get_or_init(compile)
    }

    /// The schema itself, as it is sent to an agent.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The schema itself, to make another one of.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.value)
    }

    /// What is wrong with an answer, one line a problem, at most eight; empty when it fits.
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

    /// The sub-schema that describes the value at a path, when the schema says anything about it.
    pub fn at(&self, path: &FieldPath) -> Option<&Value> {
        let mut at = &*self.value;
        for segment in path.segments() {
            at = match segment.parse::<usize>() {
                Ok(_) if at.look("items").is_some() => at.look("items")?,
                _ => at.look("properties")?.look(segment)?,
            };
        }
        Some(at)
    }

    /// Whether an answer that fits can have a value at this path. Open objects can hold anything.
    pub fn can_produce(&self, path: &FieldPath) -> bool {
        let mut at = &*self.value;
        for segment in path.segments() {
            if let Some(next) = at.look("properties").and_then(|properties| properties.look(segment)) {
                at = next;
            } else if at
                .look("patternProperties")
                .and_then(Value::as_object)
                .is_some_and(|map| !map.is_empty())
            {
                // Patterns are not followed: what they allow is unknown, so it is allowed.
                return true;
            } else if let (Ok(_), Some(items)) = (segment.parse::<usize>(), at.look("items")) {
                at = items;
            } else {
                return leaves_open(at);
            }
        }
        *at != Value::Bool(false)
    }

    /// Whether nothing but `null` fits at this path, which counts as nothing.
    pub fn only_null(&self, path: &FieldPath) -> bool {
        let nothing =
            |values: Vec<Value>| !values.is_empty() && values.iter().all(|value| *value == Value::Null);
        self.values_at(path).is_some_and(nothing)
    }

    /// Whether every answer that fits has a value at this path, `null` included.
    pub fn requires(&self, path: &FieldPath) -> bool {
        always::requires(&self.value, path.segments())
    }

    /// The same without `null`, which counts as nothing wherever a value is read.
    pub fn always_has(&self, path: &FieldPath) -> bool {
        self.requires(path) && always::refuses_null(&self.value, path.segments())
    }

    /// Whether of the value at this path nothing is said but at the path itself.
    pub fn says_only_at(&self, path: &FieldPath) -> bool {
        fit::is_plain(&self.value, path.segments())
    }

    /// Every value that can stand at this path, when the schema lists them: by `enum`, `const`, as a truth value, as a
    /// short range of whole numbers, or by combining such schemas.
    /// Those that no answer has because of what is said around them are left out, as far as that is certain.
    pub fn values_at(&self, path: &FieldPath) -> Option<Vec<Value>> {
        if self.says_only_at(path) {
            return fit::candidates(&self.value, path.segments(), self.draft());
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let find = || self.possible_at(path.segments());
        known.entry(path.to_string()).or_insert_with(find).clone()
    }

    /// The same, found out by all that is said around the path.
    fn possible_at(&self, path: &[Str]) -> Option<Vec<Value>> {
        let mut values = fit::candidates(&self.value, path, self.draft())?;
        let question = fit::Question { path, values: &values, draft: self.draft() };
        let mut fits = question.of(&self.value).into_iter();
        values.retain(|_| fits.next() != Some(fit::Fit::Never));
        Some(values)
    }

    fn draft(&self) -> Draft {
        Draft::of(&self.value)
    }

    /// Whether a value that reads like this text can stand at a path. A path of which nothing is said takes any.
    pub fn can_read(&self, path: &FieldPath, text: &str) -> bool {
        self.at(path).is_none_or(|at| values::can_read(at, text, self.draft()))
    }

    /// Whether a value of one of these types (words of `type`, `number` for integers too) can stand at this path.
    pub fn can_be(&self, path: &FieldPath, kinds: &[&str]) -> bool {
        self.at(path).is_none_or(|schema| allowed::can_be(schema, kinds))
    }

    /// Why no answer fits, where that is certain. An answer is an object.
    pub fn impossible(&self) -> Option<Impossible> {
        allowed::impossible(&self.value)
    }

    /// Every value that fits a part of a whole schema, where they can be listed as for [`Schema::values_at`].
    pub fn values_of(whole: &Value, part: &Value) -> Option<Vec<Value>> {
        values::listed(part, Draft::of(whole))
    }
}

/// Whether a schema allows properties that it does not name.
fn leaves_open(schema: &Value) -> bool {
    if schema.look("enum").is_some() || schema.look("const").is_some() {
        return false;
    }
    match schema.look("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        Some(_) => true,
        // Combined schemas are not followed: what they allow is unknown, so it is allowed.
        None => {
            let combined = ["allOf", "anyOf", "oneOf", "if"].iter().any(|key| schema.look(key).is_some());
            let object = schema.look("type").and_then(Value::as_str).is_none_or(|kind| kind == "object");
            combined || object
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use crate::FieldPath;
    use serde_json::json;

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).unwrap()
    }

    #[test]
    fn problems_name_the_place() {
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
    fn a_schema_that_does_not_compile_says_why() {
        let error = Schema::new(json!({"type": 7})).unwrap_err();
        assert!(error.to_string().contains('7'), "{error}");
        let deeper = json!({"properties": {"a": {"type": "string", "pattern": "("}}});
        assert_eq!(Schema::new(deeper).unwrap_err().pointer(), "/properties/a/pattern");
    }

    #[test]
    fn says_what_it_can_produce() {
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
    fn what_a_pattern_may_give_can_be_there() {
        let schema = Schema::new(json!({
            "type": "object", "additionalProperties": false, "patternProperties": {"^go": {"type": "string"}}
        }))
        .unwrap();
        assert!(schema.can_produce(&path("goal")));
    }
}
