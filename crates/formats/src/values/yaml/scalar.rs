//! Resolves YAML scalars by the YAML 1.2 core schema, in which `yes` and `on` are strings.

use serde_json::Number;

use crate::values::json::Kind;

/// The value of a plain scalar without a tag.
pub(super) fn parse_plain_scalar(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Boolean(true),
        "false" | "False" | "FALSE" => Kind::Boolean(false),
        _ => parse_core_number(text).map_or_else(|| Kind::Text(text.into()), Kind::Number),
    }
}

/// The value of a scalar with a core schema tag; `None` if the text does not match the tag.
pub(super) fn parse_tagged_scalar(suffix: &str, text: &str) -> Option<Kind> {
    let kind = match suffix {
        "str" => return Some(Kind::Text(text.into())),
        "null" | "bool" | "int" | "float" => parse_plain_scalar(text),
        _ => return None,
    };
    let fits = match suffix {
        "null" => matches!(kind, Kind::Null),
        "bool" => matches!(kind, Kind::Boolean(_)),
        "int" => matches!(&kind, Kind::Number(number) if !number.is_f64()),
        _ => matches!(kind, Kind::Number(_)),
    };
    fits.then_some(kind)
}

/// A number of the core schema. `.inf`, `.nan` and integers over 64 bits have no JSON equivalent and stay strings.
fn parse_core_number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().filter(|_| is_unsigned(digits)).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().filter(|_| is_unsigned(digits)).map(Number::from);
    }
    let unsigned_part = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut bytes = unsigned_part.bytes();
    if !bytes.all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    if !unsigned_part.bytes().any(|byte| byte.is_ascii_digit()) || unsigned_part.starts_with(['e', 'E']) {
        return None;
    }
    if unsigned_part.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = text.strip_prefix('+').unwrap_or(text);
        return value
            .parse::<i64>()
            .ok()
            .map(Number::from)
            .or_else(|| value.parse::<u64>().ok().map(Number::from));
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

/// `from_str_radix` accepts a sign, which YAML does not allow here.
fn is_unsigned(digits: &str) -> bool {
    !digits.starts_with(['+', '-'])
}

#[cfg(test)]
mod tests {
    use super::{parse_plain_scalar, parse_tagged_scalar};
    use crate::values::json::{Json, Kind};
    use cuegate_flow::diagnostics::Span;
    use serde_json::{Value, json};

    fn value(kind: Kind) -> Value {
        Json { span: Span::default(), kind }.to_value()
    }

    #[test]
    fn plain_scalars_mean_what_the_core_schema_says() {
        let cases = [
            ("", json!(null)),
            ("~", json!(null)),
            ("True", json!(true)),
            ("yes", json!("yes")),
            ("off", json!("off")),
            ("-12", json!(-12)),
            ("+3", json!(3)),
            ("007", json!(7)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("0x-1", json!("0x-1")),
            ("1.5e3", json!(1500.0)),
            (".5", json!(0.5)),
            ("e3", json!("e3")),
            ("1-2", json!("1-2")),
            ("2026-11-22", json!("2026-11-22")),
            ("1_000", json!("1_000")),
            (".inf", json!(".inf")),
            ("99999999999999999999999", json!("99999999999999999999999")),
            ("Fix complete", json!("Fix complete")),
        ];
        for (text, expected) in cases {
            assert_eq!(value(parse_plain_scalar(text)), expected, "{text}");
        }
    }

    #[test]
    fn tags_of_the_core_schema_count() {
        assert_eq!(parse_tagged_scalar("str", "5").map(value), Some(json!("5")));
        assert_eq!(parse_tagged_scalar("int", "5").map(value), Some(json!(5)));
        assert_eq!(parse_tagged_scalar("int", "5.5").map(value), None);
        assert_eq!(parse_tagged_scalar("binary", "aGk=").map(value), None);
    }
}
