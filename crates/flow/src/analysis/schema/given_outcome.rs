//! A schema as far as those answers are concerned that say a certain thing.

use serde_json::{Map, Value};

use crate::Str;
use crate::analysis::schema::fit::{Fit, of_part};
use crate::model::schema::items_of_keyword;
use crate::model::schema::{KeyLookup, SchemaDraft};

/// What a schema says of answers that have a value at a path: in the place of `if` stands what then counts, and branches
/// that no such answer fits are gone. What is not certain stays as it is.
pub(crate) fn narrow_schema_to_value(
    schema: &Value,
    path: &[Str],
    value: &Value,
    draft: SchemaDraft,
) -> Value {
    let of = |part: &Value| of_part(schema, part, (path, value), draft);
    narrow_schema(schema, &of, draft)
}

fn narrow_schema(schema: &Value, of: &dyn Fn(&Value) -> Fit, draft: SchemaDraft) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    // In older drafts nothing beside a reference counts.
    if map.has("$ref") {
        return schema.clone();
    }
    let mut map = map.clone();
    for key in ["anyOf", "oneOf"] {
        let left: Vec<Value> = items_of_keyword(&map, key)
            .filter(|branch| of(branch) != Fit::Never)
            .map(|branch| narrow_schema(branch, of, draft))
            .collect();
        // Where none is left no answer says that at all.
        if !left.is_empty() {
            map.insert(key.to_owned(), Value::Array(left));
        }
    }
    let mut all: Vec<Value> =
        items_of_keyword(&map, "allOf").map(|branch| narrow_schema(branch, of, draft)).collect();
    all.extend(choose_conditional_branch(&map, of, draft));
    if !all.is_empty() {
        map.insert("allOf".to_owned(), Value::Array(all));
    }
    Value::Object(map)
}

/// What counts because of `if`.
fn choose_conditional_branch(
    map: &Map<String, Value>,
    of: &dyn Fn(&Value) -> Fit,
    draft: SchemaDraft,
) -> Option<Value> {
    let condition = map.find_key("if").filter(|_| draft.knows("if"))?;
    let branch = match of(condition) {
        Fit::Always => "then",
        Fit::Never => "else",
        Fit::Open => return None,
    };
    map.find_key(branch).map(|branch| narrow_schema(branch, of, draft))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::checks::testing::Dice;
    use crate::model::{FieldPath, Schema};

    /// Something that is said of answers with `x` and `y`.
    fn part(dice: &mut Dice, depth: u32) -> Value {
        let says = |value: Value| json!({"properties": {"x": {"const": value}}});
        match dice.below(if depth < 3 { 14 } else { 9 }) {
            0 | 1 => says(json!("a")),
            2 => says(json!("c")),
            3 | 4 => json!({"required": ["y"]}),
            5 => json!({"required": ["x", "y"], "properties": {"x": {"const": "a"}}}),
            6 => json!({"properties": {"y": {"type": "string"}}}),
            7 => {
                json!({"required": ["y"], "properties": {"x": {"enum": ["a", "b"]}, "y": {"type": "string"}}})
            }
            8 => json!({"properties": {"y": {"const": null}}}),
            9 => json!({"not": part(dice, depth + 1)}),
            10 => json!({"allOf": [part(dice, depth + 1), part(dice, depth + 1)]}),
            11 => json!({"anyOf": [part(dice, depth + 1), part(dice, depth + 1)]}),
            12 => json!({"oneOf": [part(dice, depth + 1), part(dice, depth + 1)]}),
            _ => {
                json!({"if": part(dice, depth + 1), "then": part(dice, depth + 1), "else": part(dice, depth + 1)})
            }
        }
    }

    #[test]
    fn what_a_value_decides_holds_of_what_a_validator_takes() {
        let drafts =
            ["http://json-schema.org/draft-06/schema#", "https://json-schema.org/draft/2020-12/schema"];
        let values = [json!("a"), json!("b"), json!("c")];
        let rests = [json!({}), json!({"y": null}), json!({"y": "t"}), json!({"y": 1})];
        let (mut dice, mut told) = (Dice(5), 0);
        let [x, y] = ["x", "y"].map(|path| FieldPath::parse(path).expect("a path"));
        for at in 0..20_000 {
            let mut schema = json!({"type": "object", "required": ["x"], "properties": {"x": {"enum": values}},
                "allOf": [part(&mut dice, 0), part(&mut dice, 1)]});
            schema["$schema"] = drafts[at % 2].into();
            let schema = Schema::new(schema).expect("valid");
            for value in &values {
                let answer = |rest: &Value| {
                    let mut answer = json!({"x": value});
                    answer.as_object_mut().expect("one").extend(rest.as_object().expect("one").clone());
                    answer
                };
                let fits = |rest: &&Value| schema.problems(&answer(rest)).is_empty();
                let lacks = rests[..2].iter().any(|rest| fits(&rest));
                let can = rests.iter().any(|rest| fits(&rest));
                if schema.always_has_given(&y, &x, value) {
                    assert!(!lacks, "{} with {value} may lack `y`", schema.value());
                    told += usize::from(can && !schema.always_has(&y));
                }
            }
        }
        assert!(told > 500, "{told}");
    }
}
