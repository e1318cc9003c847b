//! JSON Schemas of answers: compiled once, asked many times.

mod draft;
mod kinds;
mod lookup;
mod plain;
mod within;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

pub(crate) use draft::Draft;
pub(crate) use kinds::Kinds;
pub use lookup::Look;
pub(crate) use within::{Place, found, in_any_case, in_any_case_of, within, written};

use crate::analysis::schema::{allowed, allowed::Impossible};
use crate::{
    Str,
    analysis::schema::{always_present, fit, given_outcome, listed_values},
    model::FieldPath,
};

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

/// Why a schema is none. What is no regular expression to the compiler may be one that it refuses for its size.
fn reason(error: &jsonschema::ValidationError<'_>) -> String {
    match error.kind() {
        jsonschema::error::ValidationErrorKind::Format { format } if format == "regex" => {
            format!("{} is no regular expression, or one that is too large", error.instance())
        }
        _ => error.to_string(),
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
                SchemaError { reason: reason(&error), pointer }
            })?;
            _ = validator.set(compiled);
        }
        Ok(Schema { value: value.into(), validator: validator.into(), known: Arc::default() })
    }

    pub(crate) fn validator(&self) -> &jsonschema::Validator {
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

    /// The sub-schema that describes the value at a path, when the schema says anything about it; the first where several
    /// do.
    pub fn at(&self, path: &FieldPath) -> Option<&Value> {
        let (mut at, mut kinds) = (&*self.value, Kinds::OBJECTS);
        for segment in path.segments() {
            let places = within(at.as_object()?, segment, kinds.and(Kinds::of(at)), self.draft());
            at = places.into_iter().find_map(|place| place.schemas.first().copied())?;
            kinds = Kinds::ALL;
        }
        Some(at)
    }

    /// Whether an answer that fits can have a value at this path. Open objects and lists can hold anything.
    pub fn can_produce(&self, path: &FieldPath) -> bool {
        can_have(&self.value, path.segments(), Kinds::OBJECTS, self.draft())
    }

    /// Whether nothing but `null` fits at this path, which counts as nothing.
    pub fn only_null(&self, path: &FieldPath) -> bool {
        let nothing =
            |values: Vec<Value>| !values.is_empty() && values.iter().all(|value| *value == Value::Null);
        self.values_at(path).is_some_and(nothing)
    }

    /// Whether every answer that fits has a value at this path, `null` included.
    pub fn requires(&self, path: &FieldPath) -> bool {
        always_present::requires(&self.value, path.segments())
    }

    /// The same without `null`, which counts as nothing wherever a value is read.
    pub fn always_has(&self, path: &FieldPath) -> bool {
        self.requires(path) && always_present::refuses_null(&self.value, path.segments())
    }

    /// Whether every answer that fits and has a value at another path has one at this path, `null` not counted.
    pub(crate) fn always_has_given(&self, path: &FieldPath, at: &FieldPath, value: &Value) -> bool {
        let schema = given_outcome::given(&self.value, at.segments(), value, self.draft());
        always_present::requires(&schema, path.segments())
            && always_present::refuses_null(&schema, path.segments())
    }

    /// Whether of the value at this path nothing is said but at the path itself.
    pub fn says_only_at(&self, path: &FieldPath) -> bool {
        fit::is_plain(&self.value, path.segments(), self.draft())
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
        let mut fits = fit::of_values(&self.value, path, &values, self.draft()).into_iter();
        values.retain(|_| fits.next() != Some(fit::Fit::Never));
        Some(values)
    }

    fn draft(&self) -> Draft {
        Draft::of(&self.value)
    }

    /// Whether a value that reads like this text can stand at a path. A path of which nothing is said takes any.
    pub fn can_read(&self, path: &FieldPath, text: &str) -> bool {
        let draft = self.draft();
        may(&self.value, path.segments(), Kinds::OBJECTS, draft, &|part| {
            listed_values::can_read(part, text, draft)
        })
    }

    /// Whether a value of one of these types (words of `type`, `number` for integers too) can stand at this path.
    pub fn can_be(&self, path: &FieldPath, kinds: &[&str]) -> bool {
        may(&self.value, path.segments(), Kinds::OBJECTS, self.draft(), &|part| allowed::can_be(part, kinds))
    }

    /// Why no answer that fits has a value at a path, where that is certain: one that has to has none to fit.
    pub fn bars(&self, path: &FieldPath) -> Option<Impossible> {
        let mut whole = Value::clone(&self.value);
        let mut at = &mut whole;
        for segment in path.segments() {
            let Value::Object(map) = at else { return None };
            let Value::Array(names) = map.entry("required").or_insert_with(|| Value::Array(Vec::new()))
            else {
                return None;
            };
            if !names.iter().any(|name| name.as_str() == Some(segment)) {
                names.push(Value::from(&**segment));
            }
            let Some(next) = map.get_mut("properties").and_then(|named| named.get_mut(&**segment)) else {
                break;
            };
            at = next;
        }
        allowed::impossible(&whole)
    }

    /// Why no answer fits, where that is certain. An answer is an object.
    pub fn impossible(&self) -> Option<Impossible> {
        allowed::impossible(&self.value)
    }

    /// Every value that fits a part of a whole schema, where they can be listed as for [`Schema::values_at`].
    pub fn values_of(whole: &Value, part: &Value) -> Option<Vec<Value>> {
        listed_values::listed(part, Draft::of(whole))
    }
}

/// Whether what fits a schema can have a value at a path, as far as the schema itself says: combined schemas are not
/// followed, and what they allow is unknown, so it is allowed.
fn can_have(schema: &Value, path: &[Str], kinds: Kinds, draft: Draft) -> bool {
    let Some((first, rest)) = path.split_first() else { return *schema != Value::Bool(false) };
    let Value::Object(map) = schema else { return *schema != Value::Bool(false) };
    let kinds = kinds.and(Kinds::of(schema));
    if written(map, kinds, draft).is_some_and(|all| all.iter().all(|value| found(value, path).is_none())) {
        return false;
    }
    let places = within(map, first, kinds, draft);
    let holds = |inner: &&Value| can_have(inner, rest, Kinds::ALL, draft);
    places.iter().any(|place| place.schemas.iter().all(holds))
}

/// Whether something may hold of the schemas of a path, as it does of all that nothing is said of.
fn may(schema: &Value, path: &[Str], kinds: Kinds, draft: Draft, holds: &impl Fn(&Value) -> bool) -> bool {
    let Some((first, rest)) = path.split_first() else { return holds(schema) };
    let Value::Object(map) = schema else { return true };
    let places = within(map, first, kinds.and(Kinds::of(schema)), draft);
    let inner = |inner: &&Value| may(inner, rest, Kinds::ALL, draft, holds);
    places.is_empty() || places.iter().any(|place| place.schemas.iter().all(inner))
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
    fn lists_and_open_maps_have_what_the_draft_says() {
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
    fn values_are_those_of_their_own_place() {
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
