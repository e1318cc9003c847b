//! Candidate numbers for a schema.

use serde_json::{Map, Value, json};

/// How many numbers are tried from each bound.
const TRIES_MAX: i128 = 64;

/// Beyond every integer that the JSON parser accepts.
const FAR: f64 = 1e20;

/// Numbers that may fit a schema, readable ones first. The caller validates them.
pub(super) fn generate_numbers(
    schema: &Map<String, Value>,
    is_whole: bool,
) -> Box<dyn Iterator<Item = Value>> {
    match is_whole {
        true => Box::new(generate_whole_numbers(schema).filter_map(|number| {
            i64::try_from(number).map(Value::from).or_else(|_| u64::try_from(number).map(Value::from)).ok()
        })),
        false => Box::new(generate_fractions(schema).into_iter().map(|number| json!(number))),
    }
}

/// Whether the first candidate may be invalid.
pub(super) fn is_particular(schema: &Map<String, Value>) -> bool {
    let simple = ["type", "title", "description", "default", "minimum", "maximum"];
    schema.keys().any(|key| !simple.contains(&key.as_str()))
}

fn generate_whole_numbers(schema: &Map<String, Value>) -> impl Iterator<Item = i128> + use<> {
    let low = integer_bound_of_schema(schema, "minimum", "exclusiveMinimum", 1);
    let high = integer_bound_of_schema(schema, "maximum", "exclusiveMaximum", -1);
    let step =
        schema.get("multipleOf").and_then(Value::as_i64).filter(|step| *step > 0).map_or(1, i128::from);
    let near = low.or(high.filter(|high| *high < 1)).unwrap_or(1);
    let first = (near + step - 1).div_euclid(step) * step;
    let last = high.unwrap_or(i128::from(u64::MAX)).div_euclid(step) * step;
    let up = (0..TRIES_MAX).map(move |more| first + more * step).take_while(move |number| *number <= last);
    let down = (0..TRIES_MAX).map(move |less| last - less * step);
    let down = down.take_while(move |number| low.is_none_or(|low| *number >= low));
    up.chain(down.filter(move |_| high.is_some()))
}

/// The effective integer bound. In draft 4 a boolean says whether the bound itself is excluded.
fn integer_bound_of_schema(
    schema: &Map<String, Value>,
    including: &str,
    excluding: &str,
    inward: i128,
) -> Option<i128> {
    let nearest = |value: &Value| match (value.as_i64(), value.as_u64()) {
        (Some(number), _) => Some((i128::from(number), true)),
        (_, Some(number)) => Some((i128::from(number), true)),
        _ => {
            // Values beyond the integer range have no candidates anyway.
            let number = value.as_f64()?.clamp(-FAR, FAR);
            let inner = if inward > 0 { number.ceil() } else { number.floor() };
            Some((inner as i128, inner == number))
        }
    };
    let is_excluded = schema.get(excluding) == Some(&Value::Bool(true));
    let own = schema.get(including).and_then(nearest);
    let own = own.map(|(number, exact)| if is_excluded && exact { number + inward } else { number });
    let other = schema.get(excluding).and_then(nearest);
    let other = other.map(|(number, exact)| if exact { number + inward } else { number });
    match (own, other) {
        (Some(one), Some(other)) if inward > 0 => Some(one.max(other)),
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn generate_fractions(schema: &Map<String, Value>) -> Vec<f64> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let low = [bound("minimum"), bound("exclusiveMinimum")].into_iter().flatten().reduce(f64::max);
    let high = [bound("maximum"), bound("exclusiveMaximum")].into_iter().flatten().reduce(f64::min);
    let near = low.or(high.filter(|high| *high < 1.0)).unwrap_or(1.0);
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        let digits = format!("{step}").split_once('.').map_or(0, |(_, digits)| digits.len());
        let times = |at: f64| {
            (0..=TRIES_MAX as i32).flat_map(move |more| [at + f64::from(more), at - f64::from(more)])
        };
        let ends = [Some(near), high].into_iter().flatten().map(|end| (end / step).round());
        // The product has a rounding error; formatting it with the step's digits gives an exact multiple.
        let written = |times: f64| format!("{:.digits$}", times * step).parse::<f64>().ok();
        return ends.flat_map(times).filter_map(written).collect();
    }
    let mut found = vec![near];
    let far = near.abs().max(1.0);
    match (low, high) {
        (Some(low), Some(high)) => {
            let parts = [0.5, 0.25, 0.75, 0.125, 0.875, 0.375, 0.625];
            found.extend(parts.map(|part| low + (high - low) * part));
            found.push(high);
        }
        (Some(low), None) => found.extend([low + 1.0, low + 0.5, low + far]),
        (None, Some(high)) => found.extend([high, high - 1.0, high - 0.5, high - far]),
        (None, None) => found.extend([0.0, -1.0, 2.0, 0.5, 1000.0]),
    }
    found
}
