//! Why no object fits what a schema says about objects.

use serde_json::{Map, Value, json};

use super::{ImpossiblePart, admits_nothing};
use crate::analysis::schema::fit::{Fit, KnownObjects};
use crate::analysis::schema::required_fields::list_certain_properties;
use crate::model::schema::{KeyLookup, Kinds, SchemaDraft, in_any_case};

/// Why no object fits what a schema says about objects.
pub(super) fn of_object(
    schema: &Value,
    map: &Map<String, Value>,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    by_names(schema, map, pointer, draft).or_else(|| of_parts(schema, map, pointer, draft))
}

/// Why no object has the properties that a schema asks for.
fn by_names(
    schema: &Value,
    map: &Map<String, Value>,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    let fault = |why: String| Some(ImpossiblePart { pointer: pointer.to_owned(), why });
    let number = |key: &str| map.find_key(key).and_then(Value::as_f64);
    let required = list_certain_properties(schema, draft);
    if let Some(most) = number("maxProperties") {
        if (required.len() as f64) > most {
            return fault(format!("requires {} properties and allows {most}", required.len()));
        }
        if let Some(least) = number("minProperties").filter(|least| *least > most) {
            return fault(format!("has `minProperties` {least} and `maxProperties` {most}"));
        }
    }
    let names = map.find_key("propertyNames").filter(|_| draft.knows("propertyNames"));
    let names = names.and_then(|names| draft.compile(names));
    if let Some(barred) =
        names.and_then(|names| required.iter().find(|name| !names.is_valid(&Value::from(**name))))
    {
        return fault(format!("requires `{barred}`, which its `propertyNames` refuses"));
    }
    let named = map.find_key("properties").and_then(Value::as_object);
    let by_pattern =
        map.find_key("patternProperties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let is_closed = map.find_key("additionalProperties") == Some(&Value::Bool(false)) && !by_pattern;
    for name in required {
        if is_closed && !named.is_some_and(|named| named.has(name)) {
            return fault(format!("requires `{name}`, which is none of the `properties` that it allows"));
        }
        if let Some(found) = of_property(schema, named, name, pointer, draft) {
            return Some(found);
        }
    }
    let count = named.map_or(0, Map::len) as f64;
    number("minProperties")
        .filter(|least| is_closed && *least > count)
        .and_then(|least| fault(format!("has `minProperties` {least}, and allows {count} properties")))
}

/// Why no value fits what a schema says of a property.
fn of_property(
    schema: &Value,
    named: Option<&Map<String, Value>>,
    name: &str,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    let own = named.and_then(|named| named.find_key(name));
    let step = name.replace('~', "~0").replace('/', "~1");
    let at = format!("{pointer}/properties/{step}");
    if let Some(found) = own.and_then(|own| admits_nothing(own, &at, draft)) {
        return Some(found);
    }
    // What `properties` says is the whole of it nearly everywhere.
    let said = in_any_case(schema, name, Kinds::OBJECTS, draft);
    if said.iter().all(|part| Some(*part) == own) {
        return None;
    }
    let all = json!({ "allOf": said });
    admits_nothing(&all, "", draft)?;
    let why = format!("requires `{name}`, and no value fits all that it says of that");
    Some(ImpossiblePart { pointer: pointer.to_owned(), why })
}

/// Why no object fits what is combined with the rest of a schema.
fn of_parts(
    schema: &Value,
    map: &Map<String, Value>,
    pointer: &str,
    draft: SchemaDraft,
) -> Option<ImpossiblePart> {
    const COMBINING: [&str; 5] = ["not", "allOf", "anyOf", "oneOf", "if"];
    let mut said = COMBINING.into_iter().filter(|key| draft.knows(key) && map.has(key)).peekable();
    said.peek()?;
    let known = KnownObjects::of(vec![schema], draft);
    let barring =
        said.find(|key| map.find_key(key).is_some_and(|part| known.keyword(map, key, part) == Fit::Never))?;
    let why = match barring {
        "not" => "has a `not` that excludes every object which fits the rest",
        "allOf" => "has an `allOf` with a part that no object fits which fits the rest",
        "anyOf" => "has an `anyOf` of which no part fits an object that fits the rest",
        "oneOf" => "has a `oneOf` of which never just one part fits an object that fits the rest",
        _ => "has an `if` whose branches no object fits which fits the rest",
    };
    Some(ImpossiblePart { pointer: pointer.to_owned(), why: why.to_owned() })
}
