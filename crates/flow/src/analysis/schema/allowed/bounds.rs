//! What bounds of numbers leave between them.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// How much quotients of numbers with fractions may be off.
const SLACK: f64 = 1e-9;

/// From here on, up and down, numbers with fractions no longer tell whole numbers apart.
const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// How two numbers compare, where that is certain: what was rounded may be equal only because of it.
pub(super) fn compare_numbers(one: &Value, other: &Value) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (read_whole_number(one), read_whole_number(other)) {
        return Some(one.cmp(&other));
    }
    let (one, other) = (one.as_f64()?, other.as_f64()?);
    one.partial_cmp(&other).filter(|order| order.is_ne() || one.abs() < EXACT_END)
}

/// A number that is written as a whole one.
fn read_whole_number(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// A bound: its keyword, its number, and whether that is excluded itself.
struct NumberBound<'m> {
    key: &'static str,
    at: &'m Value,
    excluded: bool,
}

/// Why no number lies within the bounds: none that is whole, or no multiple.
pub(super) fn explain_empty_range(map: &Map<String, Value>, is_whole: bool) -> Option<String> {
    let low = find_stricter_bound(map, "minimum", "exclusiveMinimum", Ordering::Greater)?;
    let high = find_stricter_bound(map, "maximum", "exclusiveMaximum", Ordering::Less)?;
    let one = Value::from(1);
    let multiple = map.get("multipleOf").filter(|of| of.as_f64().is_some_and(|of| of > 0.0));
    let multiple = multiple.filter(|of| !is_whole || of.as_f64().is_some_and(|of| of.fract() == 0.0));
    let of = multiple.or(is_whole.then_some(&one))?;
    let found = match (read_whole_number(low.at), read_whole_number(high.at), read_whole_number(of)) {
        (Some(least), Some(most), Some(of)) => {
            let first = (least + i128::from(low.excluded) + of - 1).div_euclid(of);
            first <= (most - i128::from(high.excluded)).div_euclid(of)
        }
        _ => maybe_between(&low, &high, of.as_f64()?)?,
    };
    if found {
        return None;
    }
    let what = match of.as_f64() {
        Some(1.0) => "whole number".to_owned(),
        _ => format!("multiple of {of}"),
    };
    let (above, below) =
        (if low.excluded { "above " } else { "" }, if high.excluded { "below " } else { "" });
    Some(format!("has no {what} from {above}`{}` {} to {below}`{}` {}", low.key, low.at, high.key, high.at))
}

/// Whether a multiple may lie within bounds with fractions; `None` where these are too large to tell.
fn maybe_between(low: &NumberBound<'_>, high: &NumberBound<'_>, of: f64) -> Option<bool> {
    let (least, most) = (low.at.as_f64()?, high.at.as_f64()?);
    let (first, last) = (least / of, most / of);
    if [least, most, first, last].iter().any(|number| number.abs() >= EXACT_END) {
        return None;
    }
    // What is excluded is a multiple itself only where that is certain.
    let exact = |quotient: f64, excluded: bool| excluded && of.fract() == 0.0 && quotient.fract() == 0.0;
    let first = (first - SLACK).ceil() + if exact(first, low.excluded) { 1.0 } else { 0.0 };
    let last = (last + SLACK).floor() - if exact(last, high.excluded) { 1.0 } else { 0.0 };
    Some(first <= last)
}

/// The bound that counts of two.
fn find_stricter_bound<'m>(
    map: &'m Map<String, Value>,
    including: &'static str,
    excluding: &'static str,
    stricter: Ordering,
) -> Option<NumberBound<'m>> {
    let number = |key: &'static str, excluded: bool| {
        map.get(key).filter(|at| at.is_number()).map(|at| NumberBound { key, at, excluded })
    };
    match (number(including, false), number(excluding, true)) {
        (Some(one), Some(other)) => match compare_numbers(one.at, other.at) {
            Some(order) if order == stricter => Some(one),
            _ => Some(other),
        },
        (one, other) => one.or(other),
    }
}
