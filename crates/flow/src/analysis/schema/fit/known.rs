//! What is known of all objects that fit some schemas, and what that decides about a further one.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Fit, OF_OTHERS, SILENT, choose_branch_fit, combine_fits};
use crate::analysis::schema::listed_values::list_allowed_values;
use crate::analysis::schema::required_fields::{
    list_certain_properties, list_possible_properties, read_min_properties,
};
use crate::model::schema::{
    KeyLookup, Kinds, SchemaDraft, in_any_case_of, items_of_keyword, list_enumerated_values,
};

/// All objects that fit some schemas, as far as it is certain what they have.
pub(crate) struct KnownObjects<'s> {
    /// Each with the kinds of values that may fit it.
    schemas: Vec<(&'s Value, Kinds)>,
    draft: SchemaDraft,
    /// The properties that each of them has.
    there: BTreeSet<&'s str>,
    /// How many each of them has at least.
    least: u64,
    /// The properties that they can have, where these can be listed.
    places: Option<BTreeSet<&'s str>>,
}

impl<'s> KnownObjects<'s> {
    /// The objects that fit all of some schemas.
    pub(crate) fn of(schemas: Vec<&'s Value>, draft: SchemaDraft) -> KnownObjects<'s> {
        let there: BTreeSet<&str> =
            schemas.iter().flat_map(|schema| list_certain_properties(schema, draft)).collect();
        let fewest = schemas.iter().map(|schema| read_min_properties(schema)).max().unwrap_or_default();
        let all = schemas.iter().filter_map(|schema| list_possible_properties(schema, draft));
        let places = all.min_by_key(Vec::len).map(|names| names.into_iter().collect());
        let kinds = |schema: &'s Value| (schema, Kinds::OBJECTS.and(Kinds::of(schema)));
        let schemas = schemas.into_iter().map(kinds).collect();
        KnownObjects { least: fewest.max(there.len() as u64), schemas, draft, there, places }
    }

    /// The same objects, of those only that have a certain property.
    pub(crate) fn having(mut self, name: &'s str) -> KnownObjects<'s> {
        self.there.insert(name);
        self.least = self.least.max(self.there.len() as u64);
        self
    }

    /// Whether they fit a schema.
    pub(crate) fn fit(&self, schema: &Value) -> Fit {
        let map = match schema {
            Value::Bool(fits) => return Fit::of(*fits),
            Value::Object(map) if !map.has("$ref") => map,
            _ => return Fit::Open,
        };
        let heeded = map.iter().filter(|(key, _)| self.draft.knows(key));
        heeded.fold(Fit::Always, |whole, (key, part)| whole.and(self.keyword(map, key, part)))
    }

    /// Whether they fit what one keyword says, with what stands beside it.
    pub(crate) fn keyword(&self, map: &Map<String, Value>, key: &str, part: &Value) -> Fit {
        match key {
            "allOf" | "anyOf" | "oneOf" => {
                combine_fits(key, items_of_keyword(map, key).map(|branch| self.fit(branch)))
            }
            "not" => self.fit(part).not(),
            "if" => {
                let branch = |key: &str| map.find_key(key).map_or(Fit::Always, |branch| self.fit(branch));
                choose_branch_fit(self.fit(part), branch("then"), branch("else"))
            }
            _ => self.alone(map, key, part),
        }
    }

    /// The same of keywords that combine nothing.
    pub(crate) fn alone(&self, map: &Map<String, Value>, key: &str, part: &Value) -> Fit {
        match key {
            "required" => self.all_there(items_of_keyword(map, key)),
            _ if SILENT.contains(&key) => Fit::Always,
            "type" => Fit::of(Kinds::named(part).meet(Kinds::OBJECTS)),
            "minProperties" | "maxProperties" => self.count(key, part),
            "properties" => {
                let named = part.as_object().into_iter().flatten();
                named.fold(Fit::Always, |whole, (name, schema)| whole.and(self.property(name, schema)))
            }
            "propertyNames" => self.names(part),
            "patternProperties" if part.as_object().is_some_and(Map::is_empty) => Fit::Always,
            "additionalProperties" => self.further(map, part),
            "dependencies" | "dependentRequired" | "dependentSchemas" => {
                let rules = part.as_object().into_iter().flatten();
                rules.fold(Fit::Always, |whole, (name, needed)| whole.and(self.rule(name, needed)))
            }
            "enum" | "const" => self.written(map),
            _ if OF_OTHERS.contains(&key) => Fit::Always,
            _ => Fit::Open,
        }
    }

    /// Whether each of them has a property.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.there.contains(name)
    }

    fn can_have(&self, name: &str) -> bool {
        self.there.contains(name) || self.places.as_ref().is_none_or(|places| places.contains(name))
    }

    /// Whether they have all of some properties.
    fn all_there<'n>(&self, names: impl Iterator<Item = &'n Value>) -> Fit {
        let of = |name: &str| match (self.there.contains(name), self.can_have(name)) {
            (true, _) => Fit::Always,
            (false, true) => Fit::Open,
            (false, false) => Fit::Never,
        };
        names.filter_map(Value::as_str).map(of).fold(Fit::Always, Fit::and)
    }

    fn count(&self, key: &str, part: &Value) -> Fit {
        let most = self.places.as_ref().map(|places| places.len() as u64);
        let Some(bound) = part.as_u64() else { return Fit::Open };
        match key {
            "minProperties" if bound <= self.least => Fit::Always,
            "minProperties" if most.is_some_and(|most| bound > most) => Fit::Never,
            "maxProperties" if bound < self.least => Fit::Never,
            "maxProperties" if most.is_some_and(|most| bound >= most) => Fit::Always,
            _ => Fit::Open,
        }
    }

    /// Whether a property fits a schema, or is not there.
    pub(crate) fn property(&self, name: &str, schema: &Value) -> Fit {
        if says_nothing(schema) || !self.can_have(name) {
            return Fit::Always;
        }
        match self.value(name, schema) {
            Fit::Never if !self.there.contains(name) => Fit::Open,
            fit => fit,
        }
    }

    /// Whether the value of a property fits a schema, where there is one.
    fn value(&self, name: &str, schema: &Value) -> Fit {
        let inner = |(own, kinds): &(&'s Value, Kinds)| in_any_case_of(own, name, *kinds, self.draft);
        let own: Vec<&Value> = self.schemas.iter().flat_map(inner).collect();
        let kinds = own.iter().map(|own| Kinds::of(own)).fold(Kinds::ALL, Kinds::and);
        if !kinds.meet(Kinds::of(schema)) {
            return Fit::Never;
        }
        let fit = match own.iter().filter_map(|own| list_allowed_values(own, self.draft)).min_by_key(Vec::len)
        {
            Some(values) => self.values(values, &own, schema),
            None if kinds == Kinds::OBJECTS => KnownObjects::of(own.clone(), self.draft).fit(schema),
            None => Fit::Open,
        };
        match fit {
            Fit::Open if own.contains(&schema) || accepts_every_value_of_kinds(schema, kinds) => Fit::Always,
            fit => fit,
        }
    }

    /// Whether those of some values that fit some schemas fit a further one.
    fn values(&self, mut values: Vec<Value>, own: &[&Value], schema: &Value) -> Fit {
        for validator in own.iter().filter_map(|own| self.draft.compile(own)) {
            values.retain(|value| validator.is_valid(value));
        }
        let Some(validator) = self.draft.compile(schema) else { return Fit::Open };
        match values.iter().filter(|value| validator.is_valid(value)).count() {
            0 => Fit::Never,
            all if all == values.len() => Fit::Always,
            _ => Fit::Open,
        }
    }

    fn names(&self, part: &Value) -> Fit {
        let Some(validator) = self.draft.compile(part) else { return Fit::Open };
        let takes = |name: &&str| validator.is_valid(&Value::from(*name));
        if !self.there.iter().all(takes) {
            return Fit::Never;
        }
        match self.places.as_ref().is_some_and(|places| places.iter().all(takes)) {
            true => Fit::Always,
            false => Fit::Open,
        }
    }

    /// Whether they fit what is said of properties that are not named.
    fn further(&self, map: &Map<String, Value>, part: &Value) -> Fit {
        let is_named = |name: &&str| map.find_key("properties").is_some_and(|named| named.has(name));
        if says_nothing(part) || self.places.as_ref().is_some_and(|places| places.iter().all(is_named)) {
            return Fit::Always;
        }
        let bars = *part == Value::Bool(false) && !map.has("patternProperties");
        match bars && !self.there.iter().all(is_named) {
            true => Fit::Never,
            false => Fit::Open,
        }
    }

    /// Whether they fit what depends on a property.
    fn rule(&self, name: &str, needed: &Value) -> Fit {
        let fit = match needed {
            _ if !self.can_have(name) => Fit::Always,
            Value::Array(names) => self.all_there(names.iter()),
            needed => self.fit(needed),
        };
        match fit {
            Fit::Never if !self.there.contains(name) => Fit::Open,
            fit => fit,
        }
    }

    /// Whether they can be one of the values that are listed.
    fn written(&self, map: &Map<String, Value>) -> Fit {
        let listed = list_enumerated_values(map, Kinds::OBJECTS, self.draft).unwrap_or_default();
        let may_be = |value: &&Value| {
            self.there.iter().all(|name| value.has(name))
                && value.as_object().into_iter().flatten().all(|(name, _)| self.can_have(name))
        };
        if listed.iter().any(may_be) { Fit::Open } else { Fit::Never }
    }
}

/// Whether a schema says nothing.
fn says_nothing(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

/// Whether every value of some kinds fits a schema, as it says no more than which kinds do.
pub(crate) fn accepts_every_value_of_kinds(schema: &Value, kinds: Kinds) -> bool {
    let Value::Object(map) = schema else { return *schema == Value::Bool(true) };
    let names_whole = |part: &Value| match part {
        Value::Array(names) => {
            !names.iter().any(|name| name == "integer") || names.iter().any(|name| name == "number")
        }
        name => name != "integer",
    };
    map.iter().all(|(key, part)| match &**key {
        "type" => names_whole(part) && kinds.is_subset_of(Kinds::named(part)),
        key => ["title", "description", "$comment", "default", "examples"].contains(&key),
    })
}
