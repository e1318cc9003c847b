//! Whether answers that have a value at a path fit a schema, whatever else they hold.
//!
//! What a schema says of a value can stand anywhere around it: in branches of the whole, in values that an object around
//! it lists, behind `not` or `if`. All of it is followed as far as it is certain; where something else in the answer
//! decides, nothing is said.

use serde_json::{Map, Value};

use crate::Str;
use crate::allowed::branches;
use crate::schema::Look;
use crate::values::listed;

/// Whether answers that have a value at a path fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// All of them.
    Always,
    /// None of them.
    Never,
    /// That depends on what else they hold, or is not known.
    Open,
}

impl Fit {
    fn and(self, other: Fit) -> Fit {
        match (self, other) {
            (Fit::Never, _) | (_, Fit::Never) => Fit::Never,
            (Fit::Always, Fit::Always) => Fit::Always,
            _ => Fit::Open,
        }
    }

    fn not(self) -> Fit {
        match self {
            Fit::Always => Fit::Never,
            Fit::Never => Fit::Always,
            Fit::Open => Fit::Open,
        }
    }

    fn of(fits: bool) -> Fit {
        if fits { Fit::Always } else { Fit::Never }
    }
}

/// What says nothing about answers, or is said by the keyword beside it.
const SILENT: [&str; 13] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "definitions",
    "$defs",
    "then",
    "else",
    "required",
];

/// What says something about values that have no named properties only.
const OF_OTHERS: [&str; 15] = [
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
];

/// Whether nothing around the value at a path says anything about it: then only what stands at the path does.
pub(crate) fn is_plain(schema: &Value, path: &[Str]) -> bool {
    const PLAIN: [&str; 9] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "title",
        "description",
        "$schema",
        "$comment",
        "items",
    ];
    let Some((first, rest)) = path.split_first() else { return true };
    let Some(map) = schema.as_object() else { return true };
    let inner = match (map.look("properties").and_then(|named| named.look(first)), map.look("items")) {
        (Some(named), _) => Some(named),
        (None, items) => items.filter(|_| first.parse::<usize>().is_ok()),
    };
    map.keys().all(|key| PLAIN.contains(&key.as_str())) && inner.is_none_or(|inner| is_plain(inner, rest))
}

/// Whether objects that have a value at a path fit a schema.
pub(crate) fn fit(schema: &Value, path: &[Str], value: &Value) -> Fit {
    let map = match schema {
        Value::Bool(fits) => return Fit::of(*fits),
        Value::Object(map) if map.is_empty() => return Fit::Always,
        Value::Object(map) => map,
        _ => return Fit::Open,
    };
    if path.is_empty() {
        return exact(schema, value);
    }
    // In older drafts nothing beside a reference counts.
    if map.has("$ref") {
        return Fit::Open;
    }
    let mut whole = required(map, &path[0]);
    for (key, part) in map {
        whole = whole.and(keyword(map, key, part, path, value));
        if whole == Fit::Never {
            break;
        }
    }
    whole
}

/// Whether the value itself fits.
fn exact(schema: &Value, value: &Value) -> Fit {
    match jsonschema::validator_for(schema) {
        Ok(schema) => Fit::of(schema.is_valid(value)),
        // A part that refers to the whole cannot be held against anything by itself.
        Err(_) => Fit::Open,
    }
}

/// Whether nothing is required but the property that is there.
fn required(map: &Map<String, Value>, first: &str) -> Fit {
    match branches(map, "required").all(|name| name == first) {
        true => Fit::Always,
        false => Fit::Open,
    }
}

/// What one keyword says of an object, or of a list where the path goes on by a number.
fn keyword(map: &Map<String, Value>, key: &str, part: &Value, path: &[Str], value: &Value) -> Fit {
    let is_number = path[0].parse::<usize>().is_ok();
    let each = || branches(map, key).map(|branch| fit(branch, path, value));
    match key {
        _ if SILENT.contains(&key) => Fit::Always,
        "type" => kind(part, is_number),
        "enum" | "const" => {
            let alone = std::slice::from_ref(part);
            let all = part.as_array().filter(|_| key == "enum").map_or(alone, Vec::as_slice);
            if all.iter().any(|whole| may_hold(whole, path, value)) { Fit::Open } else { Fit::Never }
        }
        "allOf" => each().fold(Fit::Always, Fit::and),
        "anyOf" => match each()
            .fold((false, true), |(any, none), fit| (any || fit == Fit::Always, none && fit == Fit::Never))
        {
            (true, _) => Fit::Always,
            (_, true) => Fit::Never,
            _ => Fit::Open,
        },
        "oneOf" => {
            let count = |wanted: Fit| each().filter(|fit| *fit == wanted).count();
            match (count(Fit::Always), count(Fit::Open)) {
                (1, 0) => Fit::Always,
                (0, 0) | (2.., _) => Fit::Never,
                _ => Fit::Open,
            }
        }
        "not" => fit(part, path, value).not(),
        "if" => {
            let branch = |key: &str| map.get(key).map_or(Fit::Always, |branch| fit(branch, path, value));
            match (fit(part, path, value), branch("then"), branch("else")) {
                (Fit::Always, then, _) => then,
                (Fit::Never, _, otherwise) => otherwise,
                (Fit::Open, then, otherwise) if then == otherwise => then,
                _ => Fit::Open,
            }
        }
        _ if is_number => Fit::Open,
        "properties" => of_properties(part, path, value),
        "additionalProperties" => of_others(map, part, path, value),
        "propertyNames" if exact(part, &Value::from(&*path[0])) == Fit::Never => Fit::Never,
        "maxProperties" if part == 0 => Fit::Never,
        "minProperties" if part.as_u64().is_some_and(|least| least <= 1) => Fit::Always,
        "dependencies" => match part.get(&*path[0]) {
            Some(schema @ (Value::Object(_) | Value::Bool(_))) => fit(schema, path, value).and(Fit::Open),
            _ => Fit::Open,
        },
        _ if OF_OTHERS.contains(&key) => Fit::Always,
        _ => Fit::Open,
    }
}

fn kind(written: &Value, is_number: bool) -> Fit {
    let names = |kind: &str| match written {
        Value::Array(kinds) => kinds.iter().any(|name| name == kind),
        name => name == kind,
    };
    match (names("object"), names("array")) {
        (true, true) => Fit::Always,
        (true, false) | (false, true) if is_number => Fit::Open,
        (object, _) => Fit::of(object),
    }
}

fn of_properties(named: &Value, path: &[Str], value: &Value) -> Fit {
    let Some(named) = named.as_object() else { return Fit::Open };
    let own = named.get(&*path[0]).map_or(Fit::Always, |own| fit(own, &path[1..], value));
    let says_nothing = |schema: &Value| {
        *schema == Value::Bool(true)
            || schema.as_object().is_some_and(|map: &Map<String, Value>| map.is_empty())
    };
    let mut others = named.iter().filter(|(name, _)| ***name != *path[0]);
    own.and(if others.all(|(_, other)| says_nothing(other)) { Fit::Always } else { Fit::Open })
}

fn of_others(map: &Map<String, Value>, part: &Value, path: &[Str], value: &Value) -> Fit {
    if *part == Value::Bool(true) {
        return Fit::Always;
    }
    let is_named = map.look("properties").is_some_and(|named| named.get(&*path[0]).is_some());
    match is_named || map.has("patternProperties") {
        true => Fit::Open,
        // Of further properties it says something too.
        false => fit(part, &path[1..], value).and(Fit::Open),
    }
}

/// Whether a whole value may have another one at a path. Numbers are equal however they are written.
fn may_hold(whole: &Value, path: &[Str], value: &Value) -> bool {
    let found = path.iter().try_fold(whole, |at, name| match at {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        at => at.get(&**name),
    });
    match (found, value) {
        (None, _) => false,
        (Some(Value::Number(found)), Value::Number(value)) => found.as_f64() == value.as_f64(),
        (Some(found @ (Value::Array(_) | Value::Object(_))), value) => {
            found.is_array() == value.is_array() && found.is_object() == value.is_object()
        }
        (Some(found), value) => found == value,
    }
}

/// The values that can stand at a path of an object that fits, where they can be listed; some that cannot may be among
/// them.
pub(crate) fn candidates(schema: &Value, path: &[Str]) -> Option<Vec<Value>> {
    let Some((first, rest)) = path.split_first() else { return listed(schema) };
    let map = schema.as_object()?;
    let own = match (map.look("properties").and_then(|named| named.look(first)), map.look("items")) {
        (Some(named), _) => candidates(named, rest),
        (None, Some(items)) if first.parse::<usize>().is_ok() => candidates(items, rest),
        _ => None,
    };
    own.or_else(|| branches(map, "allOf").find_map(|branch| candidates(branch, path)))
        .or_else(|| ["anyOf", "oneOf"].into_iter().find_map(|key| united(map, key, path)))
}

/// What all branches of a keyword list together, when each lists something.
fn united(map: &Map<String, Value>, key: &str, path: &[Str]) -> Option<Vec<Value>> {
    map.get(key)?;
    let mut all: Vec<Value> = Vec::new();
    for branch in branches(map, key) {
        for value in candidates(branch, path)? {
            if !all.contains(&value) {
                all.push(value);
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Fit, fit};
    use crate::FieldPath;
    use crate::schema::Schema;

    fn path() -> FieldPath {
        FieldPath::parse("next.action").expect("a path")
    }

    /// What a schema with `next` and `repeat` at the path, and something beside that, lets stand there.
    fn left(beside: Value) -> Vec<Value> {
        let mut schema = json!({"type": "object", "required": ["next"], "additionalProperties": false,
            "properties": {"plan": {"type": "string"}, "next": {"type": "object", "required": ["action"],
                "properties": {"action": {"enum": ["next", "repeat"]}, "reason": {"type": "string"}}}}});
        schema.as_object_mut().expect("one").extend(beside.as_object().expect("one").clone());
        Schema::new(schema).expect("valid").values_at(&path()).expect("listed")
    }

    fn says(word: &str) -> Value {
        json!({"properties": {"next": {"properties": {"action": {"const": word}}}}})
    }

    #[test]
    fn what_the_whole_bars_cannot_stand_there() {
        let has = |word: &str| {
            let mut part = says(word);
            part["required"] = json!(["next"]);
            part["properties"]["next"]["required"] = json!(["action"]);
            part
        };
        for beside in [
            json!({"anyOf": [says("repeat"), says("other")]}),
            json!({"oneOf": [says("repeat"), says("other")]}),
            json!({"oneOf": [says("next"), says("next"), says("repeat")]}),
            json!({"allOf": [says("repeat")]}),
            json!({"not": says("next")}),
            json!({"not": has("next")}),
            json!({"not": {"anyOf": [says("next"), {"required": ["other"]}]}}),
            json!({"if": has("next"), "then": false}),
            json!({"if": says("repeat"), "then": true, "else": false}),
            json!({"if": {"required": ["plan"]}, "then": says("repeat"), "else": {"not": says("next")}}),
            json!({"enum": [{"next": {"action": "repeat"}}, {"plan": "x"}]}),
            json!({"const": {"next": {"action": "repeat"}}}),
            json!({"dependencies": {"next": says("repeat")}}),
        ] {
            assert_eq!(left(beside.clone()), ["repeat"], "{beside}");
        }
        for beside in [json!({"propertyNames": {"maxLength": 3}}), json!({"maxProperties": 0})] {
            assert!(left(beside.clone()).is_empty(), "{beside}");
        }
    }

    #[test]
    fn what_depends_on_something_else_may_stand_there() {
        for beside in [
            json!({"anyOf": [says("repeat"), {"required": ["plan"]}]}),
            json!({"oneOf": [says("next"), says("repeat"), {"required": ["plan"]}]}),
            json!({"not": {"required": ["plan"], "properties": says("next")["properties"]}}),
            json!({"not": {"properties": {"next": says("next")["properties"]["next"], "plan": {"const": "x"}}}}),
            json!({"if": {"required": ["plan"]}, "then": says("repeat")}),
            json!({"if": says("next"), "then": {"required": ["plan"]}}),
            json!({"enum": [{"next": {"action": "repeat"}}, {"next": {"action": "next"}}]}),
            json!({"dependencies": {"plan": says("repeat")}}),
            json!({"propertyNames": {"maxLength": 4}, "minProperties": 2}),
            json!({"dependentRequired": {"next": ["plan"]}}),
        ] {
            assert_eq!(left(beside.clone()), ["next", "repeat"], "{beside}");
        }
    }

    #[test]
    fn what_only_branches_list() {
        let schema =
            Schema::new(json!({"anyOf": [says("next"), says("repeat")], "not": says("repeat")})).unwrap();
        assert_eq!(schema.values_at(&path()), Some(vec![json!("next")]));
        let open = Schema::new(json!({"anyOf": [says("next"), {"type": "object"}]})).unwrap();
        assert_eq!(open.values_at(&path()), None);
    }

    /// Drafts that know no `if` take no notice of it.
    #[test]
    fn older_drafts() {
        let left =
            left(json!({"$schema": "http://json-schema.org/draft-06/schema#", "if": true, "then": false}));
        assert_eq!(left, ["next", "repeat"]);
    }

    #[test]
    fn all_that_is_said_holds_of_answers() {
        let (values, more) =
            (["next", "repeat", "other"], [json!({}), json!({"plan": "x"}), json!({"plan": 1})]);
        let parts = [
            json!(true),
            json!({"required": ["next"]}),
            json!({"required": ["plan"]}),
            json!({"properties": {"plan": {"type": "string"}}}),
            json!({"additionalProperties": false, "properties": {"next": {}}}),
            json!({"minProperties": 2}),
            json!({"maxProperties": 1}),
            json!({"type": ["object", "null"]}),
            json!({"type": "string"}),
            says("next"),
            says("repeat"),
        ];
        let mut schemas: Vec<Value> = parts.to_vec();
        for (one, other) in parts.iter().flat_map(|one| parts.iter().map(move |other| (one, other))) {
            schemas.push(json!({"anyOf": [one, other]}));
            schemas.push(json!({"oneOf": [one, other]}));
            schemas.push(json!({"allOf": [one, {"not": other}]}));
            schemas.push(json!({"if": one, "then": other}));
            schemas.push(json!({"if": one, "else": other}));
        }
        let path = path();
        for schema in schemas {
            let validator = jsonschema::validator_for(&schema).expect("valid");
            for (value, more) in values.iter().flat_map(|value| more.iter().map(move |more| (value, more))) {
                let mut answer = more.clone();
                answer["next"] = json!({"action": value});
                match fit(&schema, path.segments(), &json!(value)) {
                    Fit::Always => assert!(validator.is_valid(&answer), "{schema} {answer}"),
                    Fit::Never => assert!(!validator.is_valid(&answer), "{schema} {answer}"),
                    Fit::Open => {}
                }
            }
        }
    }
}
