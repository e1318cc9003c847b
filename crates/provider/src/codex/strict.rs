//! Converts JSON Schemas to OpenAI's strict mode, and answers back.
//!
//! Strict mode supports a subset of JSON Schema: an object lists all its properties, requires each of them and allows
//! no others. Keywords outside of the subset are either dropped, because the caller validates every answer (lengths,
//! conditions), or make the schema unsupported (maps, tuples, unconstrained values); the prompt then has the schema.
//!
//! An optional property becomes a nullable one. [`prune_absent_nulls`] removes those nulls from the answer.

use serde_json::{Map, Value, json};

/// The service's limits of nesting and of the number of properties.
const DEPTH_MAX: usize = 10;
const PROPERTIES_MAX: usize = 5_000;
/// The string formats that the service supports.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Keywords that are copied unchanged.
const KEPT: [&str; 9] = [
    "description",
    "type",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

/// The schema in strict mode; `None` if strict mode cannot express it.
pub(super) fn convert_to_strict(schema: &Value) -> Option<Value> {
    let mut writer = Writer { root: schema, properties: 0, used: Vec::new() };
    let mut out = writer.node(schema, 0)?;
    if out.get("type") != Some(&json!("object")) {
        return None;
    }
    let mut definitions = Map::new();
    let mut done = 0;
    // Definitions may use others. Unused definitions are dropped, whatever they contain.
    while let Some(name) = writer.used.get(done).cloned() {
        let (_, _, definition) = definitions_of(schema).find(|(_, known, _)| **known == name)?;
        definitions.insert(name, writer.node(definition, 1)?);
        done += 1;
    }
    if !definitions.is_empty() {
        out["$defs"] = Value::Object(definitions);
    }
    (writer.properties <= PROPERTIES_MAX).then_some(out)
}

/// Removes each `null` that means an absent property.
pub(super) fn prune_absent_nulls(value: &mut Value, schema: &Value) {
    prune_at(value, schema, schema);
}

fn prune_at(value: &mut Value, schema: &Value, root: &Value) {
    let Some(schema) = follow_references(schema, root) else { return };
    match value {
        Value::Object(object) => {
            let Some(shape) = ObjectShape::of(schema, root) else { return };
            object.retain(|name, value| {
                let Some(property) = shape.properties.get(name) else { return true };
                !value.is_null() || shape.required.contains(&name.as_str()) || accepts_null(property, root)
            });
            for (name, value) in object {
                if let Some(property) = shape.properties.get(name) {
                    prune_at(value, property, root);
                }
            }
        }
        Value::Array(values) => {
            if let Some(items) = schema.get("items") {
                values.iter_mut().for_each(|value| prune_at(value, items, root));
            }
        }
        _ => {}
    }
}

fn definitions_of(root: &Value) -> impl Iterator<Item = (&'static str, &String, &Value)> {
    ["$defs", "definitions"].into_iter().flat_map(|place| {
        let definitions = root.get(place).and_then(Value::as_object);
        definitions.into_iter().flatten().map(move |(name, definition)| (place, name, definition))
    })
}

/// Follows a chain of references.
fn follow_references<'a>(mut schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    const LINKS_MAX: usize = 32;
    for _ in 0..LINKS_MAX {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
        }
    }
    None
}

fn accepts_null(schema: &Value, root: &Value) -> bool {
    let Some(schema) = follow_references(schema, root) else { return false };
    let has_null = |values: &Value| values.as_array().is_some_and(|values| values.contains(&Value::Null));
    match schema {
        Value::Bool(all) => *all,
        _ if schema.get("enum").is_some() => has_null(&schema["enum"]),
        _ if schema.get("const").is_some() => schema["const"].is_null(),
        _ if schema.get("type").is_some() => {
            schema["type"] == "null"
                || schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")))
        }
        _ => ["anyOf", "oneOf"]
            .iter()
            .filter_map(|key| schema.get(key)?.as_array())
            .flatten()
            .any(|branch| accepts_null(branch, root)),
    }
}

/// The properties of an object schema, including those of its `allOf`.
struct ObjectShape<'a> {
    properties: Map<String, Value>,
    required: Vec<&'a str>,
}

impl<'a> ObjectShape<'a> {
    /// `None` if the parts cannot be merged into one list of properties.
    fn of(schema: &'a Value, root: &'a Value) -> Option<ObjectShape<'a>> {
        let mut parts = vec![schema];
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let part = follow_references(part, root)?;
            let plain = ["type", "properties", "required", "additionalProperties", "description", "title"];
            let fits = part.as_object()?.keys().all(|key| plain.contains(&key.as_str()));
            if !fits || part.get("type").is_some_and(|kind| kind != "object") {
                return None;
            }
            parts.push(part);
        }
        let mut properties = Map::new();
        for (name, property) in parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten()
        {
            if properties.get(name).is_some_and(|known| known != property) {
                return None;
            }
            properties.insert(name.clone(), property.clone());
        }
        // `additionalProperties: false` restricts the merged object to the properties of that part.
        for part in parts.iter().filter(|part| part.get("additionalProperties") == Some(&json!(false))) {
            properties.retain(|name, _| part["properties"].get(name).is_some());
        }
        let required: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.get("required")?.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        required
            .iter()
            .all(|name| properties.contains_key(*name))
            .then_some(ObjectShape { properties, required })
    }
}

struct Writer<'a> {
    root: &'a Value,
    properties: usize,
    /// The referenced definitions, in order.
    used: Vec<String>,
}

impl Writer<'_> {
    fn node(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        let source = schema.as_object()?;
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some(reference) = source.get("$ref") {
            return self.reference(reference.as_str()?);
        }
        let alternatives = source.get("anyOf").or_else(|| source.get("oneOf")).and_then(Value::as_array);
        if let (Some(branches), false, false) =
            (alternatives, source.contains_key("type"), source.contains_key("properties"))
        {
            return self.alternatives(branches, depth);
        }
        let mut out = Map::new();
        for key in KEPT {
            if let Some(value) = source.get(key) {
                out.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(words) = source
            .get("const")
            .map(|word| vec![word.clone()])
            .or_else(|| source.get("enum").and_then(Value::as_array).cloned())
        {
            out.entry("type").or_insert_with(|| type_of(&words));
            out.insert("enum".to_owned(), Value::Array(words));
        }
        if source.contains_key("properties") || source.contains_key("allOf") {
            out.entry("type").or_insert(json!("object"));
        }
        let kinds = read_type_names(out.get("type")?)?;
        for kind in &kinds {
            match kind.as_str() {
                "object" => self.object(schema, &mut out, depth)?,
                "array" => {
                    if source.contains_key("prefixItems") || source.get("items").is_some_and(Value::is_array)
                    {
                        return None;
                    }
                    out.insert("items".to_owned(), self.node(source.get("items")?, depth + 1)?);
                }
                "string" => copy_string_keywords(source, &mut out),
                "integer" | "number" | "boolean" | "null" => {}
                _ => return None,
            }
        }
        Some(Value::Object(out))
    }

    fn reference(&mut self, reference: &str) -> Option<Value> {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        let (_, name, _) = definitions_of(self.root)
            .find(|(place, name, _)| reference == format!("#/{place}/{}", escaped(name)))?;
        // A name in both `$defs` and `definitions` is ambiguous after the merge.
        if definitions_of(self.root).filter(|(_, other, _)| *other == name).count() > 1 {
            return None;
        }
        if !self.used.contains(name) {
            self.used.push(name.clone());
        }
        Some(json!({ "$ref": format!("#/$defs/{}", escaped(name)) }))
    }

    /// Alternatives must require all their properties: [`prune_absent_nulls`] cannot tell which branch a `null` belongs to.
    fn alternatives(&mut self, branches: &[Value], depth: usize) -> Option<Value> {
        let mut out = Vec::new();
        for branch in branches {
            let resolved = follow_references(branch, self.root)?;
            if let Some(shape) = ObjectShape::of(resolved, self.root)
                && shape.required.len() < shape.properties.len()
            {
                return None;
            }
            out.push(self.node(branch, depth + 1)?);
        }
        Some(json!({ "anyOf": out }))
    }

    fn object(&mut self, schema: &Value, out: &mut Map<String, Value>, depth: usize) -> Option<()> {
        let open = schema.get("additionalProperties").is_some_and(|more| *more != false);
        let shape = ObjectShape::of(schema, self.root)?;
        if open || schema.get("patternProperties").is_some() || shape.properties.is_empty() {
            return None;
        }
        let mut properties = Map::new();
        for (name, property) in &shape.properties {
            self.properties += 1;
            let converted = self.node(property, depth + 1)?;
            let absent_is_null =
                !shape.required.contains(&name.as_str()) && !accepts_null(property, self.root);
            properties
                .insert(name.clone(), if absent_is_null { make_nullable(converted) } else { converted });
        }
        let names: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
        out.insert("properties".to_owned(), Value::Object(properties));
        out.insert("required".to_owned(), Value::Array(names));
        out.insert("additionalProperties".to_owned(), json!(false));
        Some(())
    }
}

fn copy_string_keywords(source: &Map<String, Value>, out: &mut Map<String, Value>) {
    if let Some(format) = source.get("format").filter(|format| FORMATS.iter().any(|known| *format == known)) {
        out.insert("format".to_owned(), format.clone());
    }
    // The service does not support lookaround.
    if let Some(pattern) = source.get("pattern").filter(|p| p.as_str().is_some_and(|p| !p.contains("(?"))) {
        out.insert("pattern".to_owned(), pattern.clone());
    }
}

fn read_type_names(kinds: &Value) -> Option<Vec<String>> {
    match kinds {
        Value::String(kind) => Some(vec![kind.clone()]),
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn type_of(words: &[Value]) -> Value {
    let mut kinds: Vec<&str> = Vec::new();
    for word in words {
        let kind = match word {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if let [kind] = kinds[..] { json!(kind) } else { json!(kinds) }
}

fn make_nullable(mut schema: Value) -> Value {
    let Some(kind) = schema.get("type").cloned() else {
        return match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
            Some(branches) => {
                branches.push(json!({ "type": "null" }));
                schema
            }
            None => json!({ "anyOf": [schema, { "type": "null" }] }),
        };
    };
    let mut kinds = read_type_names(&kind).unwrap_or_default();
    kinds.push("null".to_owned());
    schema["type"] = json!(kinds);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

#[cfg(test)]
mod tests;
