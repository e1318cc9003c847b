//! How long the texts are that match a pattern.

use regex_syntax::hir::{Hir, HirKind, Look as Place};
use serde_json::{Map, Value};

use crate::model::schema::KeyLookup;

/// Why no text that matches a pattern is as long as it has to be.
pub(super) fn explain_length_conflict(map: &Map<String, Value>) -> Option<String> {
    let number = |key: &str| map.find_key(key).and_then(Value::as_f64);
    let (least, most) = (number("minLength"), number("maxLength"));
    if least.is_none() && most.is_none() {
        return None;
    }
    let pattern = map.find_key("pattern")?.as_str()?;
    let (fewest, longest) = lengths_of_pattern(pattern)?;
    let longest = longest.unwrap_or(f64::INFINITY);
    let short = least.filter(|least| *least > longest).map(|least| ("minLength", least));
    let long = most.filter(|most| *most < fewest).map(|most| ("maxLength", most));
    let (key, bound) = short.or(long)?;
    let takes = match (fewest == longest, key) {
        (true, _) => format!("{fewest}"),
        (false, "minLength") => format!("at most {longest}"),
        (false, _) => format!("at least {fewest}"),
    };
    Some(format!("has `pattern` `{pattern}`, which takes {takes} characters, and `{key}` {bound}"))
}

/// The fewest and the most characters of texts that match a pattern; no most where there is none. `None` where the
/// pattern cannot be taken apart, as one that looks around.
fn lengths_of_pattern(pattern: &str) -> Option<(f64, Option<f64>)> {
    let whole = regex_syntax::parse(pattern).ok()?;
    let (fewest, most) = lengths_of_part(&whole);
    let places = whole.properties();
    // Anything may stand around what is not held at both ends.
    let is_held =
        places.look_set_prefix().contains(Place::Start) && places.look_set_suffix().contains(Place::End);
    Some((fewest, most.filter(|_| is_held)))
}

/// In numbers with fractions, as repetitions of repetitions grow without bound.
fn lengths_of_part(part: &Hir) -> (f64, Option<f64>) {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => (0.0, Some(0.0)),
        HirKind::Literal(text) => {
            let letters = String::from_utf8_lossy(&text.0).chars().count() as f64;
            (letters, Some(letters))
        }
        HirKind::Class(_) => (1.0, Some(1.0)),
        HirKind::Capture(group) => lengths_of_part(&group.sub),
        HirKind::Repetition(repeated) => {
            let (fewest, most) = lengths_of_part(&repeated.sub);
            let times = repeated.max.map(f64::from);
            (fewest * f64::from(repeated.min), times.zip(most).map(|(times, most)| times * most))
        }
        HirKind::Concat(parts) => {
            parts.iter().map(lengths_of_part).fold((0.0, Some(0.0)), |(fewest, most), part| {
                (fewest + part.0, most.zip(part.1).map(|(one, other)| one + other))
            })
        }
        HirKind::Alternation(parts) => {
            parts.iter().map(lengths_of_part).fold((f64::INFINITY, Some(0.0)), |(fewest, most), part| {
                (fewest.min(part.0), most.zip(part.1).map(|(one, other)| f64::max(one, other)))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lengths_of_pattern;

    #[test]
    fn how_long_texts_that_match_are() {
        for (pattern, fewest, most) in [
            ("^[a-z]{3}$", 3.0, Some(3.0)),
            ("^abc$", 3.0, Some(3.0)),
            ("abc", 3.0, None),
            ("^abc", 3.0, None),
            ("^(feat|fix|ci)(!)?: .{1,10}$", 5.0, Some(17.0)),
            ("^(?:ä|日本){2}$", 2.0, Some(4.0)),
            ("^a+$", 1.0, None),
            ("^$", 0.0, Some(0.0)),
            ("", 0.0, None),
            ("^a$|b", 1.0, None),
            (r"^\d{4}-\d{2}$", 7.0, Some(7.0)),
        ] {
            assert_eq!(lengths_of_pattern(pattern), Some((fewest, most)), "{pattern}");
        }
        assert_eq!(lengths_of_pattern("^(?=a)b$"), None);
        assert_eq!(lengths_of_pattern("("), None);
    }
}
