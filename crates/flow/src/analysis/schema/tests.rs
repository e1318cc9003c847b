//! What is said of schemas holds of what a validator takes: random schemas of lists and objects in every draft.

use serde_json::{Map, Value, json};

use crate::checks::testing::Dice;
use crate::model::FieldPath;
use crate::model::schema::Schema;

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

fn pick<T: Clone>(dice: &mut Dice, of: &[T]) -> T {
    of[dice.below(of.len() as u64) as usize].clone()
}

/// What a text, or nothing at all, has to fit.
fn leaf(dice: &mut Dice) -> Value {
    let leaves = [
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["string", "null"]}),
        json!({"type": "null"}),
        json!({"enum": ["a", "b"]}),
        json!({"enum": ["a", null]}),
        json!({"enum": ["b"]}),
        json!({"const": "a"}),
        json!({"not": {}}),
        json!({"pattern": "^[a-z]$", "maxLength": 1, "type": "string"}),
        json!({"pattern": "^(ab)+$", "maxLength": 1, "type": "string"}),
    ];
    if dice.below(4) == 0 { bounded(dice) } else { pick(dice, &leaves) }
}

/// Bounds of numbers and of the lengths of texts.
fn bounded(dice: &mut Dice) -> Value {
    let mut map = Map::new();
    for _ in 0..=dice.below(4) {
        let number = pick(dice, &[json!(0), json!(1), json!(1.5), json!(2), json!(3), json!(-1)]);
        let length = pick(dice, &[json!(0), json!(1), json!(2), json!(3)]);
        let (key, value) = match dice.below(12) {
            0 | 1 => ("type", pick(dice, &[json!("integer"), json!("number"), json!("string")])),
            2 => ("type", pick(dice, &[json!(["integer", "string"]), json!(["number", "null"])])),
            3 => ("minimum", number),
            4 => ("maximum", number),
            5 => ("exclusiveMinimum", pick(dice, &[number, json!(true)])),
            6 => ("exclusiveMaximum", pick(dice, &[number, json!(true)])),
            7 => ("multipleOf", pick(dice, &[json!(1), json!(0.5), json!(2), json!(1.5)])),
            8 => ("minLength", length),
            9 => ("maxLength", length),
            10 => ("pattern", pick(dice, &[json!("^[ab]{2,3}$"), json!("^a?$"), json!("b"), json!("^$")])),
            _ => ("enum", json!([1, 1.5, "ab", "abb", null, 3])),
        };
        map.insert(key.to_owned(), value);
    }
    Value::Object(map)
}

/// What the holder of such values has to fit: an object, or a list.
fn holder(dice: &mut Dice, depth: usize) -> Value {
    let mut map = Map::new();
    for _ in 0..=dice.below(4) {
        let (key, value) = match dice.below(if depth < 2 { 26 } else { 20 }) {
            0 | 1 => ("type", pick(dice, &[json!("array"), json!("object")])),
            2 => ("type", pick(dice, &[json!(["array", "null"]), json!(["array", "object"])])),
            3 => ("minItems", pick(dice, &[json!(1), json!(2)])),
            4 => ("maxItems", pick(dice, &[json!(0), json!(1)])),
            5 => ("items", leaf(dice)),
            6 => ("items", json!([leaf(dice), leaf(dice)])),
            7 => ("prefixItems", json!([leaf(dice)])),
            8 => ("additionalItems", leaf(dice)),
            9 => ("properties", json!({"x": leaf(dice), "0": leaf(dice)})),
            10 => ("properties", json!({"x": leaf(dice), "y": {}})),
            11 => ("patternProperties", {
                let pattern = pick(dice, &["^x$", "^[0-9]", "y"]);
                json!({ pattern: leaf(dice) })
            }),
            12 if dice.below(2) == 0 => ("additionalProperties", json!(false)),
            12 => ("additionalProperties", leaf(dice)),
            13 => ("required", pick(dice, &[json!(["x"]), json!(["0"]), json!(["x", "y"])])),
            14 => ("minProperties", pick(dice, &[json!(1), json!(2), json!(3)])),
            15 => ("enum", json!([["a"], [null, "b"], {"x": "a"}, {"x": "b", "y": "a"}, "t"])),
            16 => ("propertyNames", json!({"enum": ["x", "0"]})),
            17 => ("contains", leaf(dice)),
            18 => {
                pick(dice, &[("minContains", json!(0)), ("minContains", json!(2)), ("maxContains", json!(1))])
            }
            19 => pick(dice, &[("uniqueItems", json!(true)), ("dependencies", json!({"x": ["y"]}))]),
            20 => ("allOf", json!([holder(dice, depth + 1), holder(dice, depth + 1)])),
            21 => ("anyOf", json!([holder(dice, depth + 1), holder(dice, depth + 1)])),
            22 => ("oneOf", json!([holder(dice, depth + 1), holder(dice, depth + 1)])),
            23 => {
                let part = holder(dice, depth + 1);
                ("oneOf", json!([part, part]))
            }
            24 => ("not", holder(dice, depth + 1)),
            _ => {
                map.insert("then".to_owned(), holder(dice, depth + 1));
                ("if", holder(dice, depth + 1))
            }
        };
        map.insert(key.to_owned(), value);
    }
    Value::Object(map)
}

/// A schema of answers with `plan`, or one that is such a holder itself.
fn random(dice: &mut Dice) -> Value {
    let mut schema = match dice.below(3) {
        0 => holder(dice, 0),
        _ => {
            let mut schema =
                json!({"type": "object", "required": ["plan"], "properties": {"plan": holder(dice, 0)}});
            if dice.below(3) == 0 {
                let part = json!({"properties": {"plan": holder(dice, 1)}});
                let key = pick(dice, &["not", "if", "allOf", "anyOf"]);
                schema[key] = if key.ends_with("Of") { json!([part, holder(dice, 1)]) } else { part };
                schema["then"] = holder(dice, 1);
            }
            schema
        }
    };
    schema["$schema"] = pick(dice, &DRAFTS).into();
    schema
}

fn answers() -> Vec<Value> {
    let values = [
        json!("a"),
        json!("b"),
        json!("c"),
        json!(null),
        json!(""),
        json!("ab"),
        json!("abb"),
        json!(0),
        json!(1),
        json!(1.5),
        json!(2),
        json!(2.0),
        json!(3),
        json!(-1),
        json!(0.5),
    ];
    let mut holders = vec![json!([]), json!({}), json!("t"), json!(null), json!({"y": "a"})];
    for one in &values {
        holders.extend([json!([one]), json!({"x": one}), json!({"0": one}), json!({"x": one, "y": "a"})]);
        holders.extend(values.iter().flat_map(|other| {
            [json!([one, other]), json!({"x": one, "0": other}), json!({"x": one, "0": other, "y": "a"})]
        }));
    }
    let objects: Vec<Value> = holders.iter().filter(|holder| holder.is_object()).cloned().collect();
    holders.into_iter().map(|holder| json!({ "plan": holder })).chain(objects).collect()
}

/// Whether two values are the same; numbers are, however they are written.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && one.as_f64() == other.as_f64())
}

/// How often something that holds of all answers was said.
#[derive(Default)]
struct Told {
    none: usize,
    lists: usize,
    requires: usize,
    refuses: usize,
    impossible: usize,
}

impl Told {
    fn hold(&mut self, schema: &Schema, valid: &[&Value], path: &FieldPath) {
        let found =
            |answer: &'_ &Value| crate::model::schema::find_nested_value(answer, path.segments()).cloned();
        let at: Vec<Option<Value>> = valid.iter().map(found).collect();
        let there = || at.iter().flatten();
        let text = format!("{} at {path}", schema.value());
        if !schema.can_produce(path) {
            self.none += 1;
            assert_eq!(there().next(), None, "{text}");
        }
        if let Some(listed) = schema.values_at(path) {
            self.lists += 1;
            let is_listed = |value: &Value| listed.iter().any(|known| is_same(known, value));
            assert!(there().all(is_listed), "{text}: only {listed:?}");
        }
        if schema.requires(path) {
            self.requires += 1;
            assert!(at.iter().all(Option::is_some), "{text} is not required");
        }
        if schema.always_has(path) {
            self.refuses += 1;
            assert!(there().all(|value| !value.is_null()), "{text} can be null");
        }
        for value in there().filter_map(Value::as_str) {
            assert!(schema.can_read(path, value) && schema.can_be(path, &["string"]), "{text}: {value}");
        }
    }
}

#[test]
fn what_is_said_holds_of_what_a_validator_takes() {
    let (mut dice, mut told, answers) = (Dice(11), Told::default(), answers());
    let paths = ["plan.0", "plan.1", "plan.x", "x", "0"].map(|path| FieldPath::parse(path).unwrap());
    for _ in 0..4000 {
        let Ok(schema) = Schema::new(random(&mut dice)) else { continue };
        let valid: Vec<&Value> =
            answers.iter().filter(|answer| schema.validator().is_valid(answer)).collect();
        if schema.impossible().is_some() {
            told.impossible += 1;
            assert!(valid.is_empty(), "{} takes {}", schema.value(), valid[0]);
        }
        paths.iter().for_each(|path| told.hold(&schema, &valid, path));
    }
    let counts = [told.none, told.lists, told.requires, told.refuses, told.impossible];
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}
