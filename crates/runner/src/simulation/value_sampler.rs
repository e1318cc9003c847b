//! Generates small values that fit a JSON Schema.

use std::borrow::Cow;
use std::cell::Cell;

use cuegate_flow::model::{FieldPath, Schema};
use serde_json::{Map, Value, json};

use super::texts::{TEXTS, generate_texts, is_particular, names_for, names_like};
use super::unions::{expand_alternatives, has_combining_keyword};
use super::{numbers, numbers::generate_numbers};

/// The depth limit, because a recursive schema never ends.
const DEPTH_MAX: usize = 12;

/// How many values are tried to find a distinct one.
const OTHERS_MAX: usize = 16;

/// The item limit of a list.
const ITEMS_MAX: u64 = 1000;

/// The limit of values for one answer, including discarded ones: nested lists could exceed the memory.
const VALUES_MAX: usize = 10_000;

/// How many alternatives are tried for one answer, besides the first of each.
const TRIES_MAX: usize = 256;

/// Generates a value for a schema. `variant` selects alternatives and listed values.
///
/// The value may be invalid for unusual schemas: the caller validates it.
pub(super) fn sample_value(schema: &Value, variant: usize) -> Value {
    sample_with(schema, &[], variant)
}

/// As [`sample_value`], with values at some paths: a given value, or any valid one.
pub(super) fn sample_with(schema: &Value, pins: &[(FieldPath, Option<Value>)], variant: usize) -> Value {
    let left = Cell::new(VALUES_MAX);
    let making = ValueGenerator { root: schema, variant, tries: Cell::new(TRIES_MAX), left: &left };
    let pins: Vec<Value> =
        pins.iter().filter_map(|(path, value)| build_pinned_schema(path, value.as_ref())).collect();
    if pins.is_empty() {
        return making.at(schema, 0);
    }
    let own = schema
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !["$defs", "definitions"].contains(&&***key));
    let own = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut parts = vec![Value::Object(own)];
    parts.extend(pins);
    making.at(&json!({"allOf": parts}), 0)
}

/// The schema of an object with a value at a path; `None` if the path goes through a list.
fn build_pinned_schema(path: &FieldPath, value: Option<&Value>) -> Option<Value> {
    let mut schema = value.map_or_else(|| json!({}), |value| json!({"enum": [value]}));
    for segment in path.segments().iter().rev() {
        if segment.parse::<usize>().is_ok() {
            return None;
        }
        let name: &str = segment;
        schema = json!({"type": "object", "required": [name], "properties": {name: schema}});
    }
    Some(schema)
}

/// A part of a schema as a schema of its own, with the draft and the definitions of the root. The draft decides
/// whether formats are checked.
pub(super) fn extract_subschema(root: &Value, part: &Value) -> Option<Schema> {
    let mut alone = part.as_object()?.clone();
    for key in ["$schema", "$defs", "definitions"] {
        alone.extend(root.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    Schema::new(Value::Object(alone)).ok()
}

struct ValueGenerator<'m> {
    root: &'m Value,
    variant: usize,
    /// The number of alternatives left to try.
    tries: Cell<usize>,
    /// The number of values left to generate.
    left: &'m Cell<usize>,
}

impl ValueGenerator<'_> {
    fn at(&self, schema: &Value, depth: usize) -> Value {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        let Some(object) = schema.as_object().filter(|_| depth < DEPTH_MAX && left > 0) else {
            return json!("as simulated");
        };
        if !has_combining_keyword(object) {
            return self.plain(object, depth);
        }
        let mut ways = expand_alternatives(self.root, schema, self.variant).into_iter();
        let first = ways.next().map_or(Value::Null, |way| self.plain(&way, depth));
        if ways.len() == 0 {
            return first;
        }
        let Some(rule) = self.rule(schema) else { return first };
        if rule.problems(&first).is_empty() {
            return first;
        }
        for way in ways {
            if self.tries.get() == 0 {
                break;
            }
            self.tries.set(self.tries.get() - 1);
            let value = self.plain(&way, depth);
            if rule.problems(&value).is_empty() {
                return value;
            }
        }
        first
    }

    fn rule(&self, part: &Value) -> Option<Schema> {
        extract_subschema(self.root, part)
    }

    /// A value for a schema without alternatives.
    fn plain(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        match schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty()) {
            Some(values) => self.listed(schema, values),
            None if schema.contains_key("not") => self.excluded(schema, depth),
            None => self.own(schema, depth),
        }
    }

    /// A value that `not` does not exclude: of another variant or type.
    fn excluded(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let first = self.own(schema, depth);
        let Some(rule) = self.rule(&Value::Object(schema.clone())) else { return first };
        let fits = |value: &Value| rule.problems(value).is_empty();
        if fits(&first) {
            return first;
        }
        let others = (1..OTHERS_MAX).map(|more| self.other(&Value::Object(schema.clone()), more, depth));
        let kinds =
            [json!(1), json!(true), json!([]), json!({}), Value::Null, json!([1]), json!({"simulated": 1})];
        // The value may only lack optional properties: add all of them.
        let full = || {
            let named = schema.get("properties").and_then(Value::as_object)?;
            let mut full = first.as_object()?.clone();
            for (name, part) in named {
                full.entry(name.clone()).or_insert_with(|| self.something(part, depth));
            }
            Some(Value::Object(full))
        };
        let texts = generate_texts(schema, self.variant).map(|text| json!(text));
        let numbers = generate_numbers(schema, schema.get("type").is_some_and(|kind| kind == "integer"));
        texts.chain(numbers).chain(full()).chain(kinds).chain(others).find(fits).unwrap_or(first)
    }

    /// A listed value that fits the other keywords.
    fn listed(&self, schema: &Map<String, Value>, values: &[Value]) -> Value {
        let first = &values[self.variant % values.len()];
        let is_plain = schema.keys().all(|key| ["enum", "title", "description"].contains(&key.as_str()));
        if is_plain || values.len() == 1 {
            return first.clone();
        }
        let Some(rule) = self.rule(&Value::Object(schema.clone())) else { return first.clone() };
        let from = (0..values.len()).map(|more| &values[(self.variant + more) % values.len()]);
        from.clone().find(|value| rule.problems(value).is_empty()).unwrap_or(first).clone()
    }

    /// A value for the schema's own keywords; `null` if there are none.
    fn own(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.get(self.variant % kinds.len().max(1)).and_then(Value::as_str),
            Some(kind) => kind.as_str(),
            None => unsaid_kind(schema),
        };
        match kind {
            None if excludes_texts(schema) => json!(1),
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(ITEMS_MAX);
                self.array(schema, least as usize, depth)
            }
            Some("boolean") => Value::Bool(self.variant % 2 == 1),
            Some("integer") => self.number(schema, true),
            Some("number") => self.number(schema, false),
            Some("string") => Value::from(self.text(schema)),
            _ => Value::Null,
        }
    }

    /// The items of a list: by position if the schema says so, and distinct if it requires that.
    fn array(&self, schema: &Map<String, Value>, least: usize, depth: usize) -> Value {
        let places = schema.get("prefixItems").or(schema.get("items")).and_then(Value::as_array);
        let further = match schema.get("prefixItems") {
            None if places.is_some() => schema.get("additionalItems"),
            _ => schema.get("items"),
        };
        let items = further.unwrap_or(&Value::Bool(true));
        let is_unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut found: Vec<Value> = Vec::new();
        let mut add = |part: &Value| {
            // The next candidate usually differs from all items found so far.
            let (count, next) = (OTHERS_MAX.max(least + 1), if is_unique { found.len() } else { 0 });
            let mut others = (0..count).map(|more| self.other(part, (next + more) % count, depth));
            let fresh = others.find(|value| !is_unique || !found.contains(value));
            found.extend(fresh);
        };
        let contained = schema.get("contains").map_or(0, |_| {
            schema.get("minContains").and_then(Value::as_u64).unwrap_or(1).min(ITEMS_MAX) as usize
        });
        let at_places = places.map_or(0, Vec::len);
        let before = if contained > 0 { at_places } else { at_places.min(least) };
        places.into_iter().flatten().take(before).for_each(&mut add);
        // A contained value must be a valid item too.
        let both = json!({"allOf": [items, schema.get("contains").unwrap_or(&Value::Bool(true))]});
        (0..contained).for_each(|_| add(&both));
        (before + contained..least).for_each(|_| add(items));
        Value::Array(found)
    }

    /// A value for an item; a different one for each `more`, if that is cheap.
    fn other(&self, part: &Value, more: usize, depth: usize) -> Value {
        match self.with(more).at(part, depth + 1) {
            // Unrestricted texts are all the same, so add a number.
            Value::String(text) if text == TEXTS[0] && more > 0 => Value::from(format!("{text} {more}")),
            Value::Null => Value::from(format!("{} {more}", TEXTS[0])),
            Value::Number(number) if more > 0 && part.get("enum").is_none() => number
                .as_i64()
                .map_or(Value::Number(number), |number| json!(number.saturating_add(more as i64))),
            value => value,
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let owed =
            ["dependentRequired", "dependencies"].map(|key| schema.get(key).and_then(Value::as_object));
        let mut names: Vec<&str> = required.filter_map(Value::as_str).collect();
        let mut at_name = 0;
        while let Some(name) = names.get(at_name) {
            let more = owed.into_iter().flatten().filter_map(|owed| owed.get(*name)?.as_array());
            let more: Vec<&str> = more.flatten().filter_map(Value::as_str).collect();
            let more: Vec<&str> = more.into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(more);
            at_name += 1;
        }
        let own = schema.get("properties").and_then(Value::as_object);
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0).min(16) as usize;
        let optional = own.into_iter().flat_map(Map::keys).map(String::as_str);
        let optional: Vec<&str> = optional.filter(|name| !names.contains(name)).collect();
        names.extend(optional.into_iter().take(least.saturating_sub(names.len())));
        let rule = schema.get("propertyNames").and_then(Value::as_object);
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let patterns = schema.get("patternProperties").and_then(Value::as_object).filter(|_| is_closed);
        let made = match patterns {
            Some(patterns) => patterns.keys().flat_map(|pattern| names_like(pattern, least)).collect(),
            None => names_for(rule, least),
        };
        for name in &made {
            if names.len() < least && !names.contains(&&**name) {
                names.push(name);
            }
        }
        let fields = names.into_iter().map(|name| {
            (name.to_owned(), self.something(schema_of_property(schema, name).unwrap_or(&Value::Null), depth))
        });
        Value::Object(fields.collect())
    }

    /// A value for a property. `null` counts as absent, so it is used only if no text fits. A schema without a type
    /// accepts anything.
    fn something(&self, field: &Value, depth: usize) -> Value {
        match self.at(field, depth + 1) {
            Value::Null => {
                let text = json!(TEXTS[0]);
                let fits = |rule: Schema| rule.problems(&text).is_empty();
                if self.rule(field).is_none_or(fits) { text } else { Value::Null }
            }
            value => value,
        }
    }

    fn text(&self, schema: &Map<String, Value>) -> String {
        if !is_particular(schema) {
            return TEXTS[0].to_owned();
        }
        let Some(rule) = self.rule(&Value::Object(schema.clone())) else { return TEXTS[0].to_owned() };
        let fits = |text: &Cow<'static, str>| rule.problems(&Value::from(&**text)).is_empty();
        generate_texts(schema, self.variant).find(fits).unwrap_or(Cow::Borrowed(TEXTS[0])).into_owned()
    }

    /// A number that fits, else the most likely one.
    fn number(&self, schema: &Map<String, Value>, is_whole: bool) -> Value {
        let mut tried = generate_numbers(schema, is_whole).peekable();
        let first = tried.peek().cloned().unwrap_or(json!(1));
        if !numbers::is_particular(schema) {
            return first;
        }
        let Some(rule) = self.rule(&Value::Object(schema.clone())) else { return first };
        tried.find(|number| rule.problems(number).is_empty()).unwrap_or(first)
    }

    /// A copy that starts with other alternatives.
    fn with(&self, more: usize) -> ValueGenerator<'_> {
        ValueGenerator {
            root: self.root,
            variant: self.variant + more,
            tries: Cell::new(self.tries.get()),
            left: self.left,
        }
    }
}

/// The implied type of a schema without `type`.
fn unsaid_kind(schema: &Map<String, Value>) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| schema.contains_key(*key));
    if has(&["properties", "required", "minProperties", "patternProperties"]) {
        Some("object")
    } else if has(&["pattern", "format", "minLength", "maxLength"]) {
        Some("string")
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        Some("number")
    } else if has(&["minItems", "contains", "prefixItems"]) {
        Some("array")
    } else {
        None
    }
}

/// The schema of a property; `None` if it has none.
fn schema_of_property<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    if let Some(field) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some(field);
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let matches = |pattern: &str| {
        let rule = Schema::new(json!({"type": "string", "pattern": pattern}));
        rule.is_ok_and(|rule| rule.problems(&Value::from(name)).is_empty())
    };
    let matching = patterns.into_iter().flatten().find(|(pattern, _)| matches(pattern));
    matching.map(|(_, field)| field).or(schema.get("additionalProperties")).filter(|field| field.is_object())
}

/// Whether a value must not be a text.
fn excludes_texts(schema: &Map<String, Value>) -> bool {
    schema.get("not").and_then(|not| not.get("type")).and_then(Value::as_str) == Some("string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fit() {
        for schema in [
            json!({"type": "object", "required": ["a", "n"], "properties": {"a": {"type": "string"}, "n": {"type": "integer", "minimum": 3}}}),
            json!({"type": "object", "required": ["l"], "properties": {"l": {"type": "array", "minItems": 2, "items": {"enum": ["x", "y"]}}}}),
            json!({"type": "string", "minLength": 40}),
            json!({"type": "string", "pattern": "^[0-9a-f]{40}$"}),
            json!({"type": "string", "format": "date"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["a"], "properties": {"a": {"type": "string", "format": "uri"}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["a"], "properties": {"a": {"type": "string", "format": "email"}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["a"], "properties": {"a": {"type": "string", "format": "date-time"}}}),
            json!({"type": "string", "pattern": "^PROJ-[0-9]{3}$"}),
            json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 1}),
            json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "string"}}),
            json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"enum": ["x", "y", "z"]}}),
            json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "integer"}}),
            json!({"type": "array", "contains": {"const": 7}}),
            json!({"type": "array", "minItems": 2, "prefixItems": [{"type": "string"}, {"type": "integer"}]}),
            json!({"type": "object", "minProperties": 2}),
            json!({"type": "object", "minProperties": 2, "properties": {"a": {"type": "integer"}}}),
            json!({"type": "object", "minProperties": 3, "propertyNames": {"pattern": "^x"}}),
            json!({"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^x-[a-z]$"}}),
            json!({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"], "b": ["c"]}}),
            json!({"type": "object", "required": ["n"], "properties": {"n": {"not": {"type": "string"}}}}),
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1}),
            json!({"type": "number", "exclusiveMinimum": 2, "multipleOf": 5}),
            json!({"oneOf": [{"type": "object", "required": ["k"], "properties": {"k": {"const": 1}}}, {"type": "null"}]}),
            json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"const": true}}}, {"required": ["b"]}]}),
            json!({"$defs": {"w": {"type": "boolean"}}, "type": "object", "required": ["w"], "properties": {"w": {"$ref": "#/$defs/w"}}}),
            json!({"if": {"required": ["x"]}, "type": "object", "else": {"required": ["y"]}}),
            json!({"type": "object", "required": ["k"], "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "required": ["xk"], "patternProperties": {"^x": {"type": "boolean"}}}),
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "null"}}}),
            json!({"type": "string", "enum": ["a", "bb"], "minLength": 2}),
            json!({"type": "string", "not": {"enum": ["as simulated", "a"]}}),
            json!({"type": "string", "allOf": [{"pattern": "^v[0-9]+"}, {"pattern": "[0-9]$"}]}),
        ] {
            let found = sample_value(&schema, 0);
            let problems = Schema::new(schema.clone()).unwrap().problems(&found);
            assert!(problems.is_empty(), "{schema}: {found}: {problems:?}");
        }
        let values: Vec<Value> =
            (0..3).map(|variant| sample_value(&json!({"enum": [1, 2]}), variant)).collect();
        assert_eq!(values, [json!(1), json!(2), json!(1)]);
    }

    #[test]
    fn an_alternative_is_taken_together_with_what_stands_beside_it() {
        let union = json!([{"properties": {"k": {"const": "x"}}}, {"properties": {"k": {"const": "y"}}}]);
        let text = json!({"k": {"type": "string"}});
        let tagged = json!({"type": "object", "required": ["k"], "oneOf": [
            {"properties": {"k": {"const": "x"}, "v": {"type": "integer"}}, "required": ["v"]},
            {"properties": {"k": {"const": "y"}}},
        ], "properties": {"k": {"type": "string"}}});
        for schema in [
            json!({"type": "object", "required": ["k"], "properties": text, "anyOf": union}),
            json!({"type": "object", "required": ["k"], "properties": text, "oneOf": union}),
            json!({"type": "object", "required": ["k"], "oneOf": union}),
            json!({"type": "object", "required": ["k"], "properties": {"k": {"enum": ["y", "z"]}}, "oneOf": union}),
            json!({"type": "array", "minItems": 2, "items": tagged}),
            json!({"type": "object", "required": ["t"], "properties": {"t": tagged}}),
            json!({"$defs": {"t": tagged}, "type": "object", "required": ["t"], "properties": {"t": {"$ref": "#/$defs/t"}}}),
            json!({"type": ["string", "integer"], "anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 5}]}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {}}, "additionalProperties": false,
                "anyOf": [{"required": ["b"]}, {"required": ["a"], "properties": {"a": {"minLength": 20}}}]}),
            json!({"type": "object", "required": ["ok"], "properties": {"ok": {"const": false}},
                "if": {"properties": {"ok": {"const": false}}}, "then": {"required": ["why"]}}),
            json!({"type": "integer", "oneOf": [{"minimum": 0}, {"minimum": -5, "maximum": -1}], "anyOf": [{"maximum": -3}]}),
        ] {
            for variant in 0..3 {
                let found = sample_value(&schema, variant);
                let problems = Schema::new(schema.clone()).unwrap().problems(&found);
                assert!(problems.is_empty(), "{schema}: {found}: {problems:?}");
            }
        }
    }

    #[test]
    fn the_alternative_is_taken_that_goes_with_what_is_wanted() {
        let branch = |at: usize| json!({"properties": {"k": {"const": format!("k{at}")}}, "required": [format!("v{at}")]});
        let branches: Vec<Value> = (0..9).map(branch).collect();
        let schema = json!({"type": "object", "required": ["k"], "oneOf": branches});
        let path = FieldPath::parse("k").unwrap();
        let found = sample_with(&schema, &[(path, Some(json!("k7")))], 0);
        assert_eq!(found, json!({"k": "k7", "v7": "as simulated"}));
        let there = [(FieldPath::parse("more.n").unwrap(), None)];
        let schema =
            json!({"properties": {"more": {"properties": {"n": {"type": "integer", "minimum": 7}}}}});
        assert_eq!(sample_with(&schema, &there, 0), json!({"more": {"n": 7}}));
    }
}
