//! Whether answers that have a value at a path fit a schema, whatever else they hold.
//!
//! What a schema says of a value can stand anywhere around it: in branches of the whole, in values that an object around
//! it lists, behind `not` or `if`. All of it is followed as far as it is certain; where something else in the answer
//! decides, nothing is said.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::Str;
use crate::allowed::branches;
use crate::schema::{Draft, Look};
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

/// What is asked: of each of some values at a path whether objects that have it there fit. All at once, so that each part of
/// a schema is looked at once.
#[derive(Clone, Copy)]
pub(crate) struct Question<'q> {
    /// Where the values stand, below what is looked at.
    pub(crate) path: &'q [Str],
    /// The values.
    pub(crate) values: &'q [Value],
    /// What the whole schema is read by.
    pub(crate) draft: Draft,
}

impl<'q> Question<'q> {
    /// The same answer for each value.
    fn all(&self, fit: Fit) -> Vec<Fit> {
        vec![fit; self.values.len()]
    }

    /// What is known of values that a schema must take one by one.
    fn each(&self, fit: impl Fn(&Value) -> Fit) -> Vec<Fit> {
        self.values.iter().map(fit).collect()
    }

    /// The same question further in.
    fn inner(&self) -> Question<'q> {
        Question { path: &self.path[1..], ..*self }
    }

    /// Whether objects that have the values at the path fit a schema.
    pub(crate) fn of(&self, schema: &Value) -> Vec<Fit> {
        let map = match schema {
            Value::Bool(fits) => return self.all(Fit::of(*fits)),
            Value::Object(map) if map.is_empty() => return self.all(Fit::Always),
            Value::Object(map) => map,
            _ => return self.all(Fit::Open),
        };
        if self.path.is_empty() {
            return self.exact(schema, map);
        }
        // In older drafts nothing beside a reference counts.
        if map.has("$ref") {
            return self.all(Fit::Open);
        }
        let mut whole = self.all(required(map, &self.path[0]));
        for (key, part) in map.iter().filter(|(key, _)| self.draft.knows(key)) {
            and(&mut whole, self.keyword(map, key, part));
            if whole.iter().all(|fit| *fit == Fit::Never) {
                break;
            }
        }
        whole
    }

    /// Whether the values themselves fit.
    fn exact(&self, schema: &Value, map: &Map<String, Value>) -> Vec<Fit> {
        let is_text = |values: &[Value]| values.iter().all(Value::is_string);
        // Texts are compared without more ado.
        if map.len() == 1 && is_text(self.values) {
            if let Some(only @ Value::String(_)) = map.look("const").filter(|_| self.draft.knows("const")) {
                return self.each(|value| Fit::of(value == only));
            }
            if let Some(listed) = map.look("enum").and_then(Value::as_array).filter(|all| is_text(all)) {
                let listed: HashSet<&str> = listed.iter().filter_map(Value::as_str).collect();
                return self.each(|value| Fit::of(value.as_str().is_some_and(|text| listed.contains(text))));
            }
        }
        match self.draft.compile(schema) {
            Some(schema) => self.each(|value| Fit::of(schema.is_valid(value))),
            // A part that refers to the whole cannot be held against anything by itself.
            None => self.all(Fit::Open),
        }
    }

    /// What one keyword says of an object, or of a list where the path goes on by a number.
    fn keyword(&self, map: &Map<String, Value>, key: &str, part: &Value) -> Vec<Fit> {
        let is_number = self.path[0].parse::<usize>().is_ok();
        match key {
            _ if SILENT.contains(&key) => self.all(Fit::Always),
            "type" => self.all(kind(part, is_number)),
            "enum" | "const" => {
                let alone = std::slice::from_ref(part);
                let all = part.as_array().filter(|_| key == "enum").map_or(alone, Vec::as_slice);
                let may = |value: &Value| all.iter().any(|whole| may_hold(whole, self.path, value));
                self.each(|value| if may(value) { Fit::Open } else { Fit::Never })
            }
            "allOf" | "anyOf" | "oneOf" => self.combined(map, key),
            "not" => self.of(part).into_iter().map(Fit::not).collect(),
            "if" => self.chosen(map, part),
            _ if is_number => self.all(Fit::Open),
            "properties" => self.of_properties(part),
            "patternProperties" => self.of_patterns(part),
            "additionalProperties" => self.of_others(map, part),
            "propertyNames" if self.takes_name(part) == Some(false) => self.all(Fit::Never),
            "maxProperties" if part == 0 => self.all(Fit::Never),
            "minProperties" if part.as_u64().is_some_and(|least| least <= 1) => self.all(Fit::Always),
            // What depends on a property is said of the whole object.
            "dependencies" | "dependentSchemas" => match part.look(&self.path[0]) {
                Some(schema @ (Value::Object(_) | Value::Bool(_))) => self.and_more(self.of(schema)),
                _ => self.all(Fit::Open),
            },
            _ if OF_OTHERS.contains(&key) => self.all(Fit::Always),
            _ => self.all(Fit::Open),
        }
    }

    /// What is said, where something else is said too.
    fn and_more(&self, mut said: Vec<Fit>) -> Vec<Fit> {
        and(&mut said, self.all(Fit::Open));
        said
    }

    fn combined(&self, map: &Map<String, Value>, key: &str) -> Vec<Fit> {
        // Of each value: how many branches take it always, and how many perhaps; and how many there are.
        let (mut counts, mut all) = (vec![(0, 0); self.values.len()], 0);
        for branch in branches(map, key) {
            all += 1;
            for ((always, open), fit) in counts.iter_mut().zip(self.of(branch)) {
                *always += usize::from(fit == Fit::Always);
                *open += usize::from(fit == Fit::Open);
            }
        }
        let fit = |(always, open): (usize, usize)| match (key, always, open) {
            ("allOf", always, open) if always + open < all => Fit::Never,
            ("allOf", _, 0) => Fit::Always,
            ("anyOf", 1.., _) | ("oneOf", 1, 0) => Fit::Always,
            ("anyOf", 0, 0) | ("oneOf", 0, 0) | ("oneOf", 2.., _) => Fit::Never,
            _ => Fit::Open,
        };
        counts.into_iter().map(fit).collect()
    }

    fn chosen(&self, map: &Map<String, Value>, condition: &Value) -> Vec<Fit> {
        let branch = |key: &str| map.look(key).map_or_else(|| self.all(Fit::Always), |part| self.of(part));
        let branches = branch("then").into_iter().zip(branch("else"));
        let choose = |(holds, (then, otherwise)): (Fit, (Fit, Fit))| match holds {
            Fit::Always => then,
            Fit::Never => otherwise,
            Fit::Open if then == otherwise => then,
            Fit::Open => Fit::Open,
        };
        self.of(condition).into_iter().zip(branches).map(choose).collect()
    }

    fn of_properties(&self, named: &Value) -> Vec<Fit> {
        let Some(named) = named.as_object() else { return self.all(Fit::Open) };
        let own = named.look(&self.path[0]);
        let own = own.map_or_else(|| self.all(Fit::Always), |own| self.inner().of(own));
        let says_nothing = |schema: &Value| {
            *schema == Value::Bool(true)
                || schema.as_object().is_some_and(|map: &Map<String, Value>| map.is_empty())
        };
        let mut others = named.iter().filter(|(name, _)| ***name != *self.path[0]);
        match others.all(|(_, other)| says_nothing(other)) {
            true => own,
            false => self.and_more(own),
        }
    }

    fn of_patterns(&self, patterns: &Value) -> Vec<Fit> {
        let mut said = self.all(Fit::Open);
        for (pattern, schema) in patterns.as_object().into_iter().flatten() {
            if self.takes_name(&json!({"pattern": pattern})) == Some(true) {
                and(&mut said, self.inner().of(schema));
            }
        }
        said
    }

    fn of_others(&self, map: &Map<String, Value>, part: &Value) -> Vec<Fit> {
        if *part == Value::Bool(true) {
            return self.all(Fit::Always);
        }
        let is_named = map.look("properties").is_some_and(|named| named.has(&self.path[0]));
        match is_named || map.has("patternProperties") {
            true => self.all(Fit::Open),
            // Of further properties it says something too.
            false => self.and_more(self.inner().of(part)),
        }
    }

    /// Whether a schema takes the name of the property; `None` where that is not known.
    fn takes_name(&self, schema: &Value) -> Option<bool> {
        Some(self.draft.compile(schema)?.is_valid(&Value::from(&*self.path[0])))
    }
}

/// What is said together with something else.
fn and(whole: &mut [Fit], other: Vec<Fit>) {
    whole.iter_mut().zip(other).for_each(|(whole, other)| *whole = whole.and(other));
}

/// Whether nothing is required but the property that is there.
fn required(map: &Map<String, Value>, first: &str) -> Fit {
    match branches(map, "required").all(|name| name == first) {
        true => Fit::Always,
        false => Fit::Open,
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
pub(crate) fn candidates(schema: &Value, path: &[Str], draft: Draft) -> Option<Vec<Value>> {
    let Some((first, rest)) = path.split_first() else { return listed(schema, draft) };
    let map = schema.as_object()?;
    let own = match (map.look("properties").and_then(|named| named.look(first)), map.look("items")) {
        (Some(named), _) => candidates(named, rest, draft),
        (None, Some(items)) if first.parse::<usize>().is_ok() => candidates(items, rest, draft),
        _ => None,
    };
    own.or_else(|| branches(map, "allOf").find_map(|branch| candidates(branch, path, draft)))
        .or_else(|| ["anyOf", "oneOf"].into_iter().find_map(|key| united(map, key, path, draft)))
}

/// What all branches of a keyword list together, when each lists something.
fn united(map: &Map<String, Value>, key: &str, path: &[Str], draft: Draft) -> Option<Vec<Value>> {
    map.get(key)?;
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    for branch in branches(map, key) {
        for value in candidates(branch, path, draft)? {
            if seen.insert(value.to_string()) {
                all.push(value);
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Draft, Fit, Question};
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
            json!({"dependentSchemas": {"next": says("repeat")}}),
            json!({"patternProperties": {"^nex": {"properties": {"action": {"pattern": "^rep"}}}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [
                {"not": {"properties": {"next": {"properties": {"action": {"format": "email", "const": "next"}}}}}},
                {"not": says("next")}]}),
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

    /// A part is read as the whole is: newer drafts assert no formats.
    #[test]
    fn parts_are_read_by_the_draft_of_the_whole() {
        let is_email = json!({"properties": {"next": {"properties": {"action": {"format": "email"}}}}});
        let left = |draft: &str| left(json!({"$schema": draft, "not": is_email}));
        assert_eq!(left("http://json-schema.org/draft-07/schema#"), ["next", "repeat"]);
        assert!(left("https://json-schema.org/draft/2020-12/schema").is_empty());
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
                let (values, draft) = ([json!(value)], Draft::of(&schema));
                let question = Question { path: path.segments(), values: &values, draft };
                match question.of(&schema)[0] {
                    Fit::Always => assert!(validator.is_valid(&answer), "{schema} {answer}"),
                    Fit::Never => assert!(!validator.is_valid(&answer), "{schema} {answer}"),
                    Fit::Open => {}
                }
            }
        }
    }
}
