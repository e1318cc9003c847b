//! Values that fit a JSON Schema: what has to be there, as short as it may be.

use cuegate_flow::{FieldPath, Schema};
use serde_json::{Map, Value, json};

use super::pattern::text_for;

/// How deep a sample goes: a schema that contains itself has no end.
const DEPTH_MAX: usize = 12;

/// How many values are tried for one that is different from others.
const OTHERS_MAX: usize = 16;

/// Texts that are tried where a schema is particular about one.
const TEXTS: [&str; 16] = [
    "as simulated",
    "a",
    "1",
    "a-1",
    "A",
    "main",
    "simulated",
    "src/a.rs",
    "1.0.0",
    "#1",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "https://localhost/a",
    "a@localhost.example",
    "0123456789abcdef0123456789abcdef01234567",
    "00000000-0000-4000-8000-000000000000",
];

/// A value for a schema. `variant` chooses among what the schema leaves open: its alternatives and lists of values.
///
/// What is unusual need not fit: whoever uses it asks the schema.
pub(super) fn sample(schema: &Value, variant: usize) -> Value {
    at(schema, schema, variant, 0)
}

fn at(root: &Value, schema: &Value, variant: usize, depth: usize) -> Value {
    let Some(object) = schema.as_object().filter(|_| depth < DEPTH_MAX) else { return json!("as simulated") };
    let deeper = |schema: &Value| at(root, schema, variant, depth + 1);
    if let Some(target) = object.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(Value::Null, deeper);
    }
    if let Some(value) = object.get("const") {
        return value.clone();
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty()) {
        return values[variant % values.len()].clone();
    }
    let own = own(root, object, variant, depth);
    let mut parts: Vec<Value> = Vec::new();
    for key in ["anyOf", "oneOf"] {
        let among = object.get(key).and_then(Value::as_array).filter(|among| !among.is_empty());
        parts.extend(among.map(|among| deeper(&among[variant % among.len()])));
    }
    parts.extend(object.get("allOf").and_then(Value::as_array).into_iter().flatten().map(deeper));
    parts.extend(object.get("else").map(deeper).filter(Value::is_object));
    parts.into_iter().fold(own, merged)
}

/// Two samples of the same value: objects have the fields of both.
fn merged(own: Value, more: Value) -> Value {
    match (own, more) {
        (Value::Object(mut own), Value::Object(more)) => {
            for (key, value) in more {
                own.entry(key).or_insert(value);
            }
            Value::Object(own)
        }
        (Value::Null, more) => more,
        (own, _) => own,
    }
}

/// What a schema says by itself, without its alternatives; null where it says nothing.
fn own(root: &Value, schema: &Map<String, Value>, variant: usize, depth: usize) -> Value {
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.get(variant % kinds.len().max(1)).and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None if schema.contains_key("properties") || schema.contains_key("required") => Some("object"),
        None => None,
    };
    match kind {
        None if excludes_texts(schema) => json!(1),
        Some("object") => object(root, schema, variant, depth),
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(8);
            let items = schema.get("items").unwrap_or(&Value::Bool(true));
            array(root, schema, items, least as usize, variant, depth)
        }
        Some("boolean") => Value::Bool(variant % 2 == 1),
        Some("integer") => json!(number(schema).ceil() as i64),
        Some("number") => json!(number(schema)),
        Some("string") => Value::from(text(root, schema, variant)),
        _ => Value::Null,
    }
}

/// The items of a list: by their places where the schema has some for these, of different kinds where it wants that.
fn array(
    root: &Value,
    schema: &Map<String, Value>,
    items: &Value,
    least: usize,
    variant: usize,
    depth: usize,
) -> Value {
    let places = schema.get("prefixItems").or(schema.get("items")).and_then(Value::as_array);
    let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
    let contained = schema.get("contains").into_iter();
    let mut found: Vec<Value> = contained.map(|part| at(root, part, variant, depth + 1)).collect();
    if places.is_some() {
        found.clear();
    }
    while found.len() < least {
        let part = places.and_then(|places| places.get(found.len())).unwrap_or(items);
        let other = |more: usize| match at(root, part, variant + more, depth + 1) {
            // Nothing else tells texts apart that may be any.
            Value::String(text) if text == TEXTS[0] && more > 0 => Value::from(format!("{text} {more}")),
            Value::Null => Value::from(format!("{} {more}", TEXTS[0])),
            Value::Number(number) if more > 0 && part.get("enum").is_none() => {
                number.as_i64().map_or(Value::Number(number), |number| json!(number + more as i64))
            }
            value => value,
        };
        let fresh = (0..OTHERS_MAX).map(other).find(|value| !unique || !found.contains(value));
        let Some(value) = fresh else { break };
        found.push(value);
    }
    Value::Array(found)
}

fn object(root: &Value, schema: &Map<String, Value>, variant: usize, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let owed = schema.get("dependentRequired").and_then(Value::as_object);
    let mut names: Vec<&str> = required.filter_map(Value::as_str).collect();
    let mut at_name = 0;
    while let Some(name) = names.get(at_name) {
        let more = owed.and_then(|owed| owed.get(*name)).and_then(Value::as_array);
        let more: Vec<&str> = more.into_iter().flatten().filter_map(Value::as_str).collect();
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
    let made = names_for(rule.and_then(|rule| rule.get("pattern")).and_then(Value::as_str), least);
    for name in &made {
        if names.len() < least && !names.contains(&&**name) {
            names.push(name);
        }
    }
    let fields = names.into_iter().map(|name| {
        let field = schema.get("properties").and_then(|properties| properties.get(name));
        let value = field.map_or_else(|| json!("as simulated"), |field| at(root, field, variant, depth + 1));
        // An unsaid kind is one that takes anything.
        (name.to_owned(), if value.is_null() { json!("as simulated") } else { value })
    });
    Value::Object(fields.collect())
}

/// Names of properties, where a pattern says what they are like: so many that are different, if they are found.
fn names_for(pattern: Option<&str>, many: usize) -> Vec<String> {
    let Some(pattern) = pattern else { return (0..many * 2).map(|at| format!("simulated{at}")).collect() };
    let Ok(rule) = Schema::new(json!({"type": "string", "pattern": pattern})) else { return Vec::new() };
    let made = (0..many * 2).filter_map(|at| text_for(pattern, at));
    // What says only how a name begins allows anything after it.
    let longer = (0..many).filter_map(|at| Some(format!("{}{at}", text_for(pattern, 0)?)));
    let mut found: Vec<String> = Vec::new();
    for name in made.chain(longer) {
        if !found.contains(&name) && rule.problems(&Value::from(&*name)).is_empty() {
            found.push(name);
        }
    }
    found
}

/// Whether a value may be anything but a text.
fn excludes_texts(schema: &Map<String, Value>) -> bool {
    schema.get("not").and_then(|not| not.get("type")).and_then(Value::as_str) == Some("string")
}

fn number(schema: &Map<String, Value>) -> f64 {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    // Between two numbers that are no more than one apart lies their middle.
    if let (Some(least), Some(most)) =
        (limit("exclusiveMinimum"), limit("exclusiveMaximum").or(limit("maximum")))
        && most - least <= 1.0
        && !schema.contains_key("multipleOf")
    {
        return f64::midpoint(least, most);
    }
    let least = limit("minimum").or(limit("exclusiveMinimum").map(|least| least + 1.0));
    let most = limit("maximum").or(limit("exclusiveMaximum").map(|most| most - 1.0));
    let near = least.or(most.filter(|most| *most < 1.0)).unwrap_or(1.0);
    match limit("multipleOf").filter(|step| *step > 0.0) {
        Some(step) => (near / step).ceil() * step,
        None => near,
    }
}

fn text(root: &Value, schema: &Map<String, Value>, variant: usize) -> String {
    let particular = ["pattern", "format", "minLength", "maxLength"];
    if !particular.iter().any(|key| schema.contains_key(*key)) {
        return TEXTS[0].to_owned();
    }
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(10_000) as usize;
    let long = "as simulated, ".repeat(least / 14 + 1);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let made: Vec<String> = (0..OTHERS_MAX).filter_map(|more| text_for(pattern?, variant + more)).collect();
    let texts = TEXTS.iter().copied().chain([long.as_str()]).chain(made.iter().map(String::as_str));
    // Whether formats are more than notes, the draft says.
    let mut alone = schema.clone();
    alone.extend(root.get("$schema").map(|draft| ("$schema".to_owned(), draft.clone())));
    let Ok(rule) = Schema::new(Value::Object(alone)) else { return TEXTS[0].to_owned() };
    let fits = |text: &&str| rule.problems(&Value::from(*text)).is_empty();
    texts.into_iter().find(fits).unwrap_or(TEXTS[0]).to_owned()
}

/// Puts a value at a path, and whatever has to be around it.
pub(super) fn put(value: &mut Value, path: &FieldPath, new: Value) {
    let mut at = value;
    for segment in path.segments() {
        if let (Value::Array(items), Ok(index)) = (&mut *at, segment.parse::<usize>()) {
            // A place far beyond the end of a list is none that an answer has.
            if index > items.len() + 8 {
                return;
            }
            while items.len() <= index {
                items.push(Value::Null);
            }
            let Value::Array(items) = at else { return };
            at = &mut items[index];
            continue;
        }
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(segment.to_string()).or_insert(Value::Null);
    }
    *at = new;
}

/// Takes what stands at a path in objects out of them.
pub(super) fn take_away(value: &mut Value, path: &FieldPath) {
    let Some((last, before)) = path.segments().split_last() else { return };
    let mut at = value;
    for segment in before {
        match at.as_object_mut().and_then(|fields| fields.get_mut(&**segment)) {
            Some(inner) => at = inner,
            None => return,
        }
    }
    if let Value::Object(fields) = at {
        fields.remove(&**last);
    }
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
        ] {
            let found = sample(&schema, 0);
            let problems = Schema::new(schema.clone()).unwrap().problems(&found);
            assert!(problems.is_empty(), "{schema}: {found}: {problems:?}");
        }
        let values: Vec<Value> = (0..3).map(|variant| sample(&json!({"enum": [1, 2]}), variant)).collect();
        assert_eq!(values, [json!(1), json!(2), json!(1)]);
    }

    #[test]
    fn puts_a_value_where_a_path_leads() {
        let mut value = json!({"a": 1});
        for (path, new) in [("b.c", json!(2)), ("a.d", json!(3)), ("l", json!([0]))] {
            put(&mut value, &FieldPath::parse(path).unwrap(), new);
        }
        put(&mut value, &FieldPath::parse("l.1.x").unwrap(), json!(4));
        assert_eq!(value, json!({"a": {"d": 3}, "b": {"c": 2}, "l": [0, {"x": 4}]}));
    }
}
