//! Whether answers that have a value at a path fit a schema, whatever else they hold.
//!
//! What a schema says of a value can stand anywhere around it: in branches of the whole, in values that an object around
//! it lists, behind `not` or `if`. All of it is followed as far as it is certain; where something else in the answer
//! decides, nothing is said.

mod candidates;
mod known;

use std::collections::HashSet;

pub(crate) use candidates::list_candidates;
pub(crate) use known::{KnownObjects, accepts_every_value_of_kinds};
use serde_json::{Map, Value};

use crate::Str;
use crate::model::schema::items_of_keyword;
use crate::model::schema::{
    KeyLookup, Kinds, SchemaDraft, constraints_of_segment, find_nested_value, in_any_case,
};

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
    pub(crate) fn and(self, other: Fit) -> Fit {
        match (self, other) {
            (Fit::Never, _) | (_, Fit::Never) => Fit::Never,
            (Fit::Always, Fit::Always) => Fit::Always,
            _ => Fit::Open,
        }
    }

    pub(crate) fn not(self) -> Fit {
        match self {
            Fit::Always => Fit::Never,
            Fit::Never => Fit::Always,
            Fit::Open => Fit::Open,
        }
    }

    pub(crate) fn of(fits: bool) -> Fit {
        if fits { Fit::Always } else { Fit::Never }
    }

    /// What is known otherwise, where this says nothing.
    fn or(self, other: impl FnOnce() -> Fit) -> Fit {
        if self == Fit::Open { other() } else { self }
    }
}

/// What says nothing about answers, or is said by the keyword beside it.
pub(crate) const SILENT: [&str; 12] = [
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
];

/// What says something about values that have no named properties only.
pub(crate) const OF_OTHERS: [&str; 15] = [
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
pub(crate) fn is_plain(schema: &Value, path: &[Str], draft: SchemaDraft) -> bool {
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
    let places = || constraints_of_segment(map, first, Kinds::ALL, draft);
    map.keys().all(|key| PLAIN.contains(&key.as_str()))
        && places().iter().flat_map(|place| &place.schemas).all(|inner| is_plain(inner, rest, draft))
}

/// What is known of the value at a place on the way to a path.
struct Level<'s> {
    /// The kinds of values in which the rest of the path can exist.
    kinds: Kinds,
    /// What is known of its properties, if it is an object.
    known: KnownObjects<'s>,
}

/// What is known on the way to a path, from the outermost, as far as answers that fit a schema have it.
fn on_the_way<'s>(schema: &'s Value, path: &'s [Str], draft: SchemaDraft) -> Vec<Level<'s>> {
    let (mut at, mut levels, mut kinds) = (vec![schema], Vec::new(), Kinds::OBJECTS);
    for segment in path {
        let holders = match segment.parse::<usize>() {
            Ok(_) => Kinds::OBJECTS.or(Kinds::LISTS),
            Err(_) => Kinds::OBJECTS,
        };
        kinds = kinds.and(holders);
        let inner = |at: &&'s Value| in_any_case(at, segment, kinds, draft);
        let next: Vec<&Value> = at.iter().flat_map(inner).collect();
        levels.push(Level { kinds, known: KnownObjects::of(at, draft).having(segment) });
        kinds = next.iter().map(|inner| Kinds::of(inner)).fold(Kinds::ALL, Kinds::and);
        at = next;
    }
    levels
}

/// Of each of some values whether answers fit a schema that have it at a path.
pub(crate) fn of_values(schema: &Value, path: &[Str], values: &[Value], draft: SchemaDraft) -> Vec<Fit> {
    let levels = on_the_way(schema, path, draft);
    Question { path, values, draft, kinds: Kinds::OBJECTS, levels: &levels }.of(schema)
}

/// Whether answers that fit a schema and have a value at a path fit another one, which is said of the same answers.
pub(crate) fn of_part(
    schema: &Value,
    part: &Value,
    (path, value): (&[Str], &Value),
    draft: SchemaDraft,
) -> Fit {
    let (levels, values) = (on_the_way(schema, path, draft), std::slice::from_ref(value));
    Question { path, values, draft, kinds: Kinds::OBJECTS, levels: &levels }.of(part)[0]
}

/// What is asked: of each of some values at a path whether what has it there fits. All at once, so that each part of a
/// schema is looked at once.
#[derive(Clone, Copy)]
struct Question<'q> {
    /// Where the values stand, below what is looked at.
    path: &'q [Str],
    values: &'q [Value],
    /// What the whole schema is read by.
    draft: SchemaDraft,
    /// What can have them: objects, or lists.
    kinds: Kinds,
    /// What is known from here on inwards.
    levels: &'q [Level<'q>],
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
        let levels = &self.levels[1..];
        let kinds = levels.first().map_or(Kinds::ALL, |level| level.kinds);
        Question { path: &self.path[1..], levels, kinds, ..*self }
    }

    /// Whether what has the values at the path fits a schema.
    fn of(&self, schema: &Value) -> Vec<Fit> {
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
        // Besides the `type` itself all is asked of what it lets through.
        let kinds = map.find_key("type").map_or(Kinds::ALL, Kinds::named);
        let left = Question { kinds: self.kinds.and(kinds), ..*self };
        let mut whole = self.all(match (self.kinds.is_subset_of(kinds), left.kinds == Kinds::NONE) {
            (true, _) => Fit::Always,
            (_, true) => return self.all(Fit::Never),
            _ => Fit::Open,
        });
        intersect_fits(&mut whole, left.there(map));
        for (key, part) in map.iter().filter(|(key, _)| *key != "type" && self.draft.knows(key)) {
            if whole.iter().all(|fit| *fit == Fit::Never) {
                break;
            }
            intersect_fits(&mut whole, left.keyword(map, key, part));
        }
        whole
    }

    /// Whether the values themselves fit.
    fn exact(&self, schema: &Value, map: &Map<String, Value>) -> Vec<Fit> {
        let is_text = |values: &[Value]| values.iter().all(Value::is_string);
        // Texts are compared without more ado.
        if map.len() == 1 && is_text(self.values) {
            if let Some(only @ Value::String(_)) = map.find_key("const").filter(|_| self.draft.knows("const"))
            {
                return self.each(|value| Fit::of(value == only));
            }
            if let Some(listed) = map.find_key("enum").and_then(Value::as_array).filter(|all| is_text(all)) {
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

    /// Whether the values at the path fit what is said of that place.
    fn there(&self, map: &Map<String, Value>) -> Vec<Fit> {
        let places = constraints_of_segment(map, &self.path[0], self.kinds, self.draft);
        let fits = places.iter().map(|place| {
            let mut fit = self.all(if place.is_all { Fit::Always } else { Fit::Open });
            place.schemas.iter().for_each(|schema| intersect_fits(&mut fit, self.inner().of(schema)));
            fit
        });
        let same = |one: Vec<Fit>, other: Vec<Fit>| {
            let both = one.into_iter().zip(other);
            both.map(|(one, other)| if one == other { one } else { Fit::Open }).collect()
        };
        fits.reduce(same).unwrap_or_else(|| self.all(Fit::Open))
    }

    /// What one keyword says besides of what has the values.
    fn keyword(&self, map: &Map<String, Value>, key: &str, part: &Value) -> Vec<Fit> {
        match key {
            _ if SILENT.contains(&key) => self.all(Fit::Always),
            "enum" | "const" => {
                let alone = std::slice::from_ref(part);
                let all = part.as_array().filter(|_| key == "enum").map_or(alone, Vec::as_slice);
                let may = |value: &Value| all.iter().any(|whole| may_hold(whole, self.path, value));
                self.each(|value| if may(value) { Fit::Open } else { Fit::Never })
            }
            "allOf" | "anyOf" | "oneOf" => {
                let rows: Vec<Vec<Fit>> = items_of_keyword(map, key).map(|branch| self.of(branch)).collect();
                let of = |at: usize| combine_fits(key, rows.iter().map(|row| row[at]));
                (0..self.values.len()).map(of).collect()
            }
            "not" => self.of(part).into_iter().map(Fit::not).collect(),
            "if" => self.chosen(map, part),
            // Of lists nothing more is known.
            _ if self.kinds != Kinds::OBJECTS => self.all(Fit::Open),
            "dependencies" | "dependentSchemas" => self.depending(map, key, part),
            _ => self.all(self.beside(map, key, part)),
        }
    }

    /// What one keyword says of the other properties.
    fn beside(&self, map: &Map<String, Value>, key: &str, part: &Value) -> Fit {
        let known = &self.levels[0].known;
        match key {
            "properties" => {
                let others = part.as_object().into_iter().flatten();
                let others = others.filter(|(name, _)| ***name != *self.path[0]);
                others.fold(Fit::Always, |whole, (name, schema)| whole.and(known.property(name, schema)))
            }
            _ => known.alone(map, key, part),
        }
    }

    /// What is said of the whole because some property is there.
    fn depending(&self, map: &Map<String, Value>, key: &str, part: &Value) -> Vec<Fit> {
        let known = &self.levels[0].known;
        let mut said = self.all(Fit::Open);
        for (name, schema) in part.as_object().into_iter().flatten() {
            if known.has(name) && !schema.is_array() {
                intersect_fits(&mut said, self.of(schema));
            }
        }
        said.into_iter().map(|fit| fit.or(|| known.alone(map, key, part))).collect()
    }

    fn chosen(&self, map: &Map<String, Value>, condition: &Value) -> Vec<Fit> {
        let branch =
            |key: &str| map.find_key(key).map_or_else(|| self.all(Fit::Always), |part| self.of(part));
        let branches = branch("then").into_iter().zip(branch("else"));
        let chosen = |(holds, (then, otherwise))| choose_branch_fit(holds, then, otherwise);
        self.of(condition).into_iter().zip(branches).map(chosen).collect()
    }
}

/// What the parts of a combining keyword say together.
pub(crate) fn combine_fits(key: &str, parts: impl Iterator<Item = Fit>) -> Fit {
    // How many take it always, how many perhaps, and how many there are.
    let (mut always, mut open, mut all) = (0, 0, 0);
    for fit in parts {
        all += 1;
        always += usize::from(fit == Fit::Always);
        open += usize::from(fit == Fit::Open);
    }
    match (key, always, open) {
        ("allOf", always, open) if always + open < all => Fit::Never,
        ("allOf", _, 0) => Fit::Always,
        ("anyOf", 1.., _) | ("oneOf", 1, 0) => Fit::Always,
        ("anyOf", 0, 0) | ("oneOf", 0, 0) | ("oneOf", 2.., _) => Fit::Never,
        _ => Fit::Open,
    }
}

/// What is said by `if`.
pub(crate) fn choose_branch_fit(holds: Fit, then: Fit, otherwise: Fit) -> Fit {
    match holds {
        Fit::Always => then,
        Fit::Never => otherwise,
        Fit::Open if then == otherwise => then,
        Fit::Open => Fit::Open,
    }
}

/// What is said together with something else.
fn intersect_fits(whole: &mut [Fit], other: Vec<Fit>) {
    whole.iter_mut().zip(other).for_each(|(whole, other)| *whole = whole.and(other));
}

/// Whether a whole value may have another one at a path. Numbers are equal however they are written.
fn may_hold(whole: &Value, path: &[Str], value: &Value) -> bool {
    match (find_nested_value(whole, path), value) {
        (None, _) => false,
        (Some(Value::Number(found)), Value::Number(value)) => found.as_f64() == value.as_f64(),
        (Some(found @ (Value::Array(_) | Value::Object(_))), value) => {
            found.is_array() == value.is_array() && found.is_object() == value.is_object()
        }
        (Some(found), value) => found == value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Fit, Question, SchemaDraft, on_the_way};

    use crate::model::FieldPath;
    use crate::model::schema::{Kinds, Schema};

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

    /// What is known to be there besides counts as there.
    #[test]
    fn what_every_answer_has_is_not_open() {
        let mut both = says("next");
        both["required"] = json!(["plan", "next"]);
        for beside in [
            json!({"if": both, "then": {"propertyNames": {"maxLength": 3}}}),
            json!({"not": both}),
            json!({"not": {"properties": {"plan": {"type": "string"}, "next": says("next")["properties"]["next"]}}}),
            json!({"if": says("next"), "then": {"propertyNames": {"enum": ["next", "other"]}}}),
            json!({"if": says("next"), "then": {"maxProperties": 1}}),
            json!({"if": says("next"), "then": {"required": ["other"]}}),
            json!({"if": says("next"), "then": {"additionalProperties": false, "properties": {"next": {}}}}),
            json!({"dependencies": {"plan": says("repeat")}}),
        ] {
            let mut with_plan = beside.clone();
            with_plan["required"] = json!(["plan", "next"]);
            assert_eq!(left(with_plan), ["repeat"], "{beside}");
        }
    }

    #[test]
    fn items_of_lists_are_followed_too() {
        let left = |draft: &str, list: Value, beside: Value| {
            let mut schema = json!({"$schema": draft, "required": ["list"], "properties": {"list": list}});
            schema.as_object_mut().expect("one").extend(beside.as_object().expect("one").clone());
            Schema::new(schema).expect("valid").values_at(&FieldPath::parse("list.0").expect("a path"))
        };
        let (older, newer) =
            ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema");
        let words = json!({"enum": ["a", "b"]});
        let list = json!({"type": "array", "minItems": 1, "items": words});
        let not = |list: Value| json!({"not": {"properties": {"list": list}}});
        assert_eq!(
            left(
                older,
                list.clone(),
                json!({"anyOf": [{"properties": {"list": {"items": [{"const": "a"}]}}}]})
            ),
            Some(vec![json!("a")])
        );
        let tuple = json!({"minItems": 1, "prefixItems": [{"const": "a"}]});
        assert_eq!(
            left(newer, list.clone(), json!({"allOf": [{"properties": {"list": tuple}}]})),
            Some(vec![json!("a")])
        );
        let both = Some(vec![json!("a"), json!("b")]);
        assert_eq!(left(newer, list.clone(), not(tuple)), both, "other items may be barred");
        assert_eq!(left(newer, list, not(json!({"type": "object", "items": {"const": "a"}}))), both);
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
                let (values, draft) = ([json!(value)], SchemaDraft::of(&schema));
                let levels = on_the_way(&Value::Bool(true), path.segments(), draft);
                let (path, kinds) = (path.segments(), Kinds::OBJECTS);
                match (Question { path, values: &values, draft, kinds, levels: &levels }).of(&schema)[0] {
                    Fit::Always => assert!(validator.is_valid(&answer), "{schema} {answer}"),
                    Fit::Never => assert!(!validator.is_valid(&answer), "{schema} {answer}"),
                    Fit::Open => {}
                }
            }
        }
    }
}
