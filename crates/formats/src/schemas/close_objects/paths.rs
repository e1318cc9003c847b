//! Which objects of a schema are closed, and around which names, where several schemas speak of one object.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::model::{KeyLookup, Schema};
use serde_json::{Map, Value, json};

use super::{INSIDE, NAMED, SHARING, VALUES, is_open};

/// How many pairs of schemas about the same values are compared at most. What has more of them stays open.
const PAIRS_MAX: usize = 2_000_000;

/// The places of the objects to be closed, as JSON pointers, with the names that others give what they hold.
pub(super) fn find_closable_objects(schema: &Value) -> Vec<(String, BTreeSet<String>)> {
    let mut places = ClosingSearch { found: BTreeMap::new(), pairs: PAIRS_MAX };
    if places.look_at(ValueSchema::whole(schema, String::new()).into_iter().collect()).is_none() {
        return Vec::new();
    }
    let closes = |(at, closing): (String, ObjectClosing)| match closing {
        ObjectClosing { names: Some(names), is_due: true } => Some((at, names)),
        _ => None,
    };
    places.found.into_iter().filter_map(closes).collect()
}

/// What is known of closing an object.
struct ObjectClosing {
    /// The names that are given to what it holds; `None` where they cannot be listed.
    names: Option<BTreeSet<String>>,
    /// Whether nothing else closes it.
    is_due: bool,
}

struct ClosingSearch {
    found: BTreeMap<String, ObjectClosing>,
    pairs: usize,
}

/// A schema about a value.
#[derive(Clone)]
struct ValueSchema<'s> {
    map: &'s Map<String, Value>,
    /// Its JSON pointer.
    at: String,
    /// The choices that it depends on: where each is made, and which of its alternatives leads here.
    choices: Vec<(String, usize)>,
    /// Whether it only tells values apart.
    tells: bool,
    /// Whether it is about the value in any case.
    is_certain: bool,
}

/// Which values in another one a schema is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'s> {
    Name(&'s str),
    Pattern(&'s str),
    OtherNames,
    Item(usize),
    OtherItems,
}

/// A schema about values in another one, with the schema that has it.
type InnerSchema<'s> = (Key<'s>, ValueSchema<'s>, &'s Map<String, Value>);

impl ClosingSearch {
    /// Decides about all schemas of one value, and of all values in it; `None` where there are too many.
    fn look_at(&mut self, parts: Vec<ValueSchema<'_>>) -> Option<()> {
        let mut all = collect_adjacent_schemas(parts);
        all.sort_by_key(|part| part.choices.len());
        self.pairs = self.pairs.checked_sub(all.len() * all.len())?;
        self.decide(&all);
        let inner: Vec<InnerSchema<'_>> = all.iter().flat_map(collect_inner_schemas).collect();
        let is_wide = |key: &Key<'_>| matches!(key, Key::Pattern(_) | Key::OtherNames | Key::OtherItems);
        let wide: Vec<&InnerSchema<'_>> = inner.iter().filter(|(key, ..)| is_wide(key)).collect();
        let mut groups: BTreeMap<&Key<'_>, Vec<ValueSchema<'_>>> = BTreeMap::new();
        for (key, part, _) in &inner {
            groups.entry(key).or_default().push(part.clone());
        }
        for (key, mut group) in groups {
            let own = || inner.iter().filter(|(other, ..)| other == key);
            let all: Vec<&InnerSchema<'_>> = if is_wide(key) { inner.iter().collect() } else { wide.clone() };
            self.pairs = self.pairs.checked_sub(all.len() * group.len())?;
            for other in all.into_iter().filter(|(other, ..)| other != key) {
                if own().any(|own| may_share_value(own, other)) {
                    group.push(ValueSchema { is_certain: false, ..other.1.clone() });
                }
            }
            self.look_at(group)?;
        }
        for part in all.iter().flat_map(collect_detached_schemas) {
            self.look_at(vec![part])?;
        }
        Some(())
    }

    /// Decides which schemas of one value close it. Those that depend on fewer choices come first.
    fn decide(&mut self, all: &[ValueSchema<'_>]) {
        let mut closed: Vec<&ValueSchema<'_>> = Vec::new();
        for part in all.iter().filter(|part| is_open(part.map) && !part.tells) {
            let beside = all.iter().filter(|other| other.at != part.at && part.may_hold_with(other));
            let names: Option<Vec<_>> = beside.map(|other| listed_names_of_object(other.map)).collect();
            let names = names.map(|names| names.into_iter().flatten().cloned().collect::<BTreeSet<String>>());
            let is_closed = closed.iter().any(|other| part.depends_on_all_of(other));
            let is_due = part.is_certain && !is_closed && names.is_some();
            if is_due {
                closed.push(part);
            }
            let entry = self.found.entry(part.at.clone());
            let known = entry.or_insert(ObjectClosing { names: Some(BTreeSet::new()), is_due: false });
            known.is_due |= is_due;
            known.names = known.names.take().zip(names).map(|(known, more)| &known | &more);
        }
    }
}

impl<'s> ValueSchema<'s> {
    fn whole(schema: &'s Value, at: String) -> Option<ValueSchema<'s>> {
        let map = schema.as_object()?;
        Some(ValueSchema { map, at, choices: Vec::new(), tells: false, is_certain: true })
    }

    /// A schema in this one, about the same value or one in it, as far as the choices and what they are for go.
    fn part(&self, schema: &'s Value, at: &str) -> Option<ValueSchema<'s>> {
        let map = schema.as_object()?;
        Some(ValueSchema { map, at: format!("{}/{at}", self.at), ..self.clone() })
    }

    fn chosen(mut self, at: String, which: usize) -> ValueSchema<'s> {
        self.choices.push((at, which));
        self
    }

    /// Whether a value may have to fit this and another schema.
    fn may_hold_with(&self, other: &ValueSchema<'_>) -> bool {
        let bars = |(at, which): &(String, usize)| {
            other.choices.iter().any(|(known, other)| known == at && other != which)
        };
        !self.choices.iter().any(bars)
    }

    /// Whether a value that has to fit this schema has to fit another one as well.
    fn depends_on_all_of(&self, other: &ValueSchema<'_>) -> bool {
        other.choices.iter().all(|choice| self.choices.contains(choice))
    }
}

/// All schemas about the value that some are about: these, and those that stand beside them at any depth.
fn collect_adjacent_schemas(parts: Vec<ValueSchema<'_>>) -> Vec<ValueSchema<'_>> {
    let mut all = parts;
    let mut next = 0;
    while let Some(part) = all.get(next).cloned() {
        next += 1;
        for key in ["allOf", "anyOf", "oneOf"] {
            let choice = format!("{}/{key}", part.at);
            for (index, schema) in
                part.map.find_key(key).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                let found = part.part(schema, &format!("{key}/{index}"));
                all.extend(found.map(|found| match key {
                    "allOf" => found,
                    _ => found.chosen(choice.clone(), index),
                }));
            }
        }
        for (key, which) in [("then", 1), ("else", 0)] {
            let found = part.map.find_key(key).and_then(|schema| part.part(schema, key));
            all.extend(found.map(|found| found.chosen(format!("{}/if", part.at), which)));
        }
        for key in ["not", "if"] {
            let found = part.map.find_key(key).and_then(|schema| part.part(schema, key));
            all.extend(found.map(|found| ValueSchema { tells: true, ..found }));
        }
        for key in ["dependentSchemas", "dependencies"] {
            for (name, schema) in named_schemas_of_keyword(part.map, key) {
                let at = format!("{key}/{}", escape_pointer_segment(name));
                let found = part.part(schema, &at);
                all.extend(found.map(|found| found.chosen(format!("{}/{at}", part.at), 0)));
            }
        }
    }
    all
}

/// All schemas that one has about values in the one that it is about.
fn collect_inner_schemas<'s>(part: &ValueSchema<'s>) -> Vec<InnerSchema<'s>> {
    let map = part.map;
    let mut found = Vec::new();
    let mut add = |key, schema, at: &str| {
        found.extend(part.part(schema, at).map(|inner| (key, inner, map)));
    };
    for (name, schema) in named_schemas_of_keyword(map, "properties") {
        add(Key::Name(name), schema, &format!("properties/{}", escape_pointer_segment(name)));
    }
    for (pattern, schema) in named_schemas_of_keyword(map, "patternProperties") {
        add(Key::Pattern(pattern), schema, &format!("patternProperties/{}", escape_pointer_segment(pattern)));
    }
    for key in ["additionalProperties", "unevaluatedProperties"] {
        map.find_key(key).into_iter().for_each(|schema| add(Key::OtherNames, schema, key));
    }
    for key in ["prefixItems", "items"] {
        for (index, schema) in map.find_key(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            add(Key::Item(index), schema, &format!("{key}/{index}"));
        }
    }
    for key in ["items", "additionalItems", "unevaluatedItems"] {
        map.find_key(key).into_iter().for_each(|schema| add(Key::OtherItems, schema, key));
    }
    let contained = map.find_key("contains").and_then(|schema| part.part(schema, "contains"));
    found.extend(contained.map(|inner| (Key::OtherItems, ValueSchema { tells: true, ..inner }, map)));
    found
}

/// All schemas in one that are about nothing in particular: definitions, and what stands under keywords that are none.
fn collect_detached_schemas<'s>(part: &ValueSchema<'s>) -> Vec<ValueSchema<'s>> {
    let mut found = Vec::new();
    for (key, value) in part.map {
        let at = format!("{}/{}", part.at, escape_pointer_segment(key));
        let mut add = |name: &str, schema| {
            found.extend(ValueSchema::whole(schema, format!("{at}/{}", escape_pointer_segment(name))))
        };
        match (key.as_str(), value) {
            ("definitions" | "$defs", Value::Object(named)) => {
                named.iter().for_each(|(name, schema)| add(name, schema));
            }
            (key, _) if [&SHARING[..], &NAMED, &INSIDE, &VALUES].iter().any(|known| known.contains(&key)) => {
            }
            (_, Value::Array(schemas)) => {
                schemas.iter().enumerate().for_each(|(index, schema)| add(&index.to_string(), schema));
            }
            (_, schema) => found.extend(ValueSchema::whole(schema, at)),
        }
    }
    found
}

/// Whether two schemas with different keys may be about the same value.
fn may_share_value((key, _, holder): &InnerSchema<'_>, (other_key, _, other): &InnerSchema<'_>) -> bool {
    let names = |map: &Map<String, Value>, name: &str| {
        map.find_key("properties").is_some_and(|own| own.find_key(name).is_some())
    };
    match (key, other_key) {
        (Key::Name(name), Key::Pattern(pattern)) | (Key::Pattern(pattern), Key::Name(name)) => {
            matches_pattern(pattern, name)
        }
        (Key::Name(name), Key::OtherNames) => !names(other, name),
        (Key::OtherNames, Key::Name(name)) => !names(holder, name),
        (Key::Pattern(_), Key::Pattern(_)) => true,
        (Key::Pattern(_), Key::OtherNames) | (Key::OtherNames, Key::Pattern(_)) => {
            !std::ptr::eq(*holder, *other)
        }
        (Key::Item(index), Key::OtherItems) => first_other(other) <= *index,
        (Key::OtherItems, Key::Item(index)) => first_other(holder) <= *index,
        _ => false,
    }
}

/// The first item that those keywords of a schema speak of which are about no single one. `contains` speaks of all.
fn first_other(map: &Map<String, Value>) -> usize {
    if map.has("contains") {
        return 0;
    }
    let first = ["prefixItems", "items"].iter().find_map(|key| map.find_key(key).and_then(Value::as_array));
    first.map_or(0, Vec::len)
}

/// Whether a name matches a pattern; what cannot be read as a pattern may match all.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let schema = Schema::new(json!({ "pattern": pattern }));
    schema.map_or(true, |schema| schema.problems(&Value::from(name)).is_empty())
}

/// The names that a schema gives to what an object holds; `None` where it gives others than those that it lists.
fn listed_names_of_object(map: &Map<String, Value>) -> Option<Vec<&String>> {
    let is_listed = !map.has("patternProperties") && !map.has("additionalProperties");
    is_listed.then(|| named_schemas_of_keyword(map, "properties").map(|(name, _)| name).collect())
}

/// The schemas that a keyword has by names.
fn named_schemas_of_keyword<'s>(
    map: &'s Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'s String, &'s Value)> {
    map.find_key(key).and_then(Value::as_object).into_iter().flatten()
}

/// A name as a segment of a JSON pointer.
fn escape_pointer_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
