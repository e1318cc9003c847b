//! What bounds leave between them: numbers, and lengths of texts of one length.

use serde_json::{Map, Value};

/// How much quotients of numbers with fractions may be off.
const SLACK: f64 = 1e-9;

/// The largest numbers between which every whole one can be told apart.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Why no number lies within the bounds: none that is whole, or no multiple.
pub(super) fn between(map: &Map<String, Value>, is_whole: bool) -> Option<String> {
    let (low, least, above) = bound(map, "minimum", "exclusiveMinimum", f64::max)?;
    let (high, most, below) = bound(map, "maximum", "exclusiveMaximum", f64::min)?;
    let multiple = map.get("multipleOf").and_then(Value::as_f64).filter(|of| *of > 0.0);
    let of = multiple.filter(|of| !is_whole || of.fract() == 0.0).or(is_whole.then_some(1.0))?;
    let (first, last) = (least / of, most / of);
    if first.abs() > EXACT_MAX || last.abs() > EXACT_MAX {
        return None;
    }
    // What is excluded is a multiple itself only where that is certain.
    let exact = |quotient: f64, excluded: bool| excluded && of.fract() == 0.0 && quotient.fract() == 0.0;
    let first = (first - SLACK).ceil() + if exact(first, above) { 1.0 } else { 0.0 };
    let last = (last + SLACK).floor() - if exact(last, below) { 1.0 } else { 0.0 };
    if first <= last {
        return None;
    }
    let what = match of {
        1.0 => "whole number".to_owned(),
        of => format!("multiple of {of}"),
    };
    let (above, below) = (if above { "above " } else { "" }, if below { "below " } else { "" });
    Some(format!("has no {what} from {above}`{low}` {least} to {below}`{high}` {most}"))
}

/// The bound that counts of two, and whether it is excluded itself.
fn bound(
    map: &Map<String, Value>,
    including: &'static str,
    excluding: &'static str,
    stricter: fn(f64, f64) -> f64,
) -> Option<(&'static str, f64, bool)> {
    let number = |key: &str| map.get(key).and_then(Value::as_f64);
    match (number(including), number(excluding)) {
        (Some(one), Some(other)) if stricter(one, other) == other => Some((excluding, other, true)),
        (Some(one), _) => Some((including, one, false)),
        (None, Some(other)) => Some((excluding, other, true)),
        (None, None) => None,
    }
}

/// Why no text has the length of a pattern that is plain letters from end to end.
pub(super) fn letters(map: &Map<String, Value>) -> Option<String> {
    let pattern = map.get("pattern")?.as_str()?;
    let letters = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | ' ');
    if !letters.chars().all(is_plain) {
        return None;
    }
    let length = letters.chars().count() as f64;
    let number = |key: &str| map.get(key).and_then(Value::as_f64);
    let short = number("minLength").filter(|least| *least > length).map(|least| ("minLength", least));
    let long = number("maxLength").filter(|most| *most < length).map(|most| ("maxLength", most));
    let (key, bound) = short.or(long)?;
    Some(format!("has `pattern` `{pattern}`, which takes {length} characters, and `{key}` {bound}"))
}
