//! Parses when a retry may succeed from the headers of an error response.

use jiff::Timestamp;

/// The delay in milliseconds, if the service states one. `header` returns the value of a header.
///
/// `retry-after-ms` and `retry-after` are instructions and have priority over the rate limits' reset times. The result
/// is the latest reset of the exhausted limits, or of all limits if none is exhausted.
pub(super) fn resets_in_ms<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<u64> {
    let told = header("retry-after-ms").and_then(|value| parse_milliseconds(value, 1.0));
    // A date is compared with the service's clock.
    let clock = header("date").and_then(parse_http_date).unwrap_or(now);
    let after = || {
        header("retry-after").and_then(|value| {
            parse_milliseconds(value, 1e3).or_else(|| milliseconds_until_date(value, clock))
        })
    };
    told.or_else(after).or_else(|| {
        let limits = ["requests", "tokens"].map(|limit| {
            let used_up = header(&format!("x-ratelimit-remaining-{limit}")).map(str::trim) == Some("0");
            (used_up, header(&format!("x-ratelimit-reset-{limit}")).and_then(parse_duration))
        });
        let any_used_up = limits.iter().any(|(used_up, reset)| *used_up && reset.is_some());
        let of_interest = limits.iter().filter(|(used_up, _)| *used_up || !any_used_up);
        of_interest.filter_map(|(_, reset)| *reset).max()
    })
}

/// Converts a number with a unit in milliseconds, rounded up, because a retry before that time fails.
fn parse_milliseconds(value: &str, unit: f64) -> Option<u64> {
    let number: f64 = value.trim().parse().ok()?;
    // The cast saturates, so a huge delay is not mistaken for none.
    (number.is_finite() && number >= 0.0).then(|| (number * unit).ceil() as u64)
}

fn milliseconds_until_date(value: &str, now: Timestamp) -> Option<u64> {
    let wait = parse_http_date(value)?.as_millisecond() - now.as_millisecond();
    Some(u64::try_from(wait).unwrap_or(0))
}

/// An HTTP date in the only form that senders may use (RFC 9110, 5.6.7).
fn parse_http_date(value: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value.trim()).ok()
}

/// A duration such as `6m0s`, `8.64s`, `120ms` or `1d2h`; a plain number is seconds.
fn parse_duration(value: &str) -> Option<u64> {
    let value = value.trim();
    if let Some(seconds) = parse_milliseconds(value, 1e3) {
        return Some(seconds);
    }
    let mut rest = value;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len()));
        let unit = match unit {
            "ms" => 1.0,
            "s" => 1e3,
            "m" => 60e3,
            "h" => 3_600e3,
            "d" => 86_400e3,
            _ => return None,
        };
        total = total.saturating_add(parse_milliseconds(number, unit)?);
        rest = tail;
    }
    (!value.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset(headers: &[(&str, &str)]) -> Option<u64> {
        let now = "2026-11-22T10:00:00Z".parse().unwrap();
        resets_in_ms(|name| headers.iter().find(|(header, _)| *header == name).map(|(_, value)| *value), now)
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(reset(&[("retry-after", "7")]), Some(7_000));
        assert_eq!(reset(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(reset(&[("retry-after", "Sun, 22 Nov 2026 10:01:30 GMT")]), Some(90_000));
        assert_eq!(reset(&[("retry-after", "Sun, 22 Nov 2026 09:00:00 GMT")]), Some(0));
        assert_eq!(reset(&[("retry-after-ms", "1234.5"), ("retry-after", "7")]), Some(1_235));
    }

    #[test]
    fn a_date_is_compared_with_the_service_s_clock() {
        let date = ("date", "Sun, 22 Nov 2026 12:00:00 GMT");
        assert_eq!(reset(&[("retry-after", "Sun, 22 Nov 2026 12:00:10 GMT"), date]), Some(10_000));
    }

    #[test]
    fn rate_limit_resets_are_parsed() {
        let requests = ("x-ratelimit-reset-requests", "6m0s");
        let tokens = ("x-ratelimit-reset-tokens", "120ms");
        assert_eq!(reset(&[requests, tokens]), Some(360_000));
        assert_eq!(reset(&[requests, tokens, ("x-ratelimit-remaining-tokens", "0")]), Some(120));
        assert_eq!(reset(&[tokens, ("x-ratelimit-remaining-requests", "0")]), Some(120));
        assert_eq!(reset(&[requests, ("retry-after", "1")]), Some(1_000));
        assert_eq!(parse_duration("1d2h3m4.5s"), Some(93_784_500));
        assert_eq!(parse_duration("2"), Some(2_000));
    }

    #[test]
    fn invalid_values_are_ignored() {
        assert_eq!(reset(&[]), None);
        assert_eq!(reset(&[("retry-after", "soon")]), None);
        assert_eq!(reset(&[("retry-after", "-3")]), None);
        assert_eq!(reset(&[("retry-after", "NaN")]), None);
        assert_eq!(reset(&[("retry-after", "1e400")]), None);
        for value in ["", "s", "5x", "1h2", "1..2s", "µs", "3 s"] {
            assert_eq!(parse_duration(value), None, "{value}");
        }
    }
}
