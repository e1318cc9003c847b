//! Numbers, money and times as text.

use jiff::{Timestamp, tz::TimeZone};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A span of time: `40 ms`, `1.2 s`, `3 min 4 s`, `2 h 5 min`, `1 d 3 h`.
pub fn format_duration(ms: u64) -> String {
    // Rounding comes before the choice of the unit, so that `60.0 s` becomes `1 min`.
    let tenths = ms.saturating_add(50) / 100;
    let seconds = ms.saturating_add(500) / SECOND;
    let minutes = ms.saturating_add(MINUTE / 2) / MINUTE;
    if ms < 100 {
        format!("{ms} ms")
    } else if tenths < 600 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if seconds < 3_600 {
        format_two_units(seconds / 60, "min", seconds % 60, "s")
    } else if minutes < DAY / MINUTE {
        format_two_units(minutes / 60, "h", minutes % 60, "min")
    } else {
        let hours = ms.saturating_add(HOUR / 2) / HOUR;
        format_two_units(hours / 24, "d", hours % 24, "h")
    }
}

fn format_two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// A number with thousands separators: `1,500`.
pub fn format_count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// US dollars with two digits, or four below a cent: `$2.50`, `$0.0012`. `None` is `unknown`, not zero.
pub fn format_money(usd: Option<f64>) -> String {
    match usd {
        None => "unknown".to_owned(),
        Some(usd) if usd > 0.0 && usd < 0.000_05 => "<$0.0001".to_owned(),
        Some(usd) if usd > 0.0 && usd < 0.009_95 => format!("${usd:.4}"),
        Some(usd) => {
            let cents = (usd * 100.0).round() as u64;
            format!("${}.{:02}", format_count(cents / 100), cents % 100)
        }
    }
}

/// The time since `then_ms`: `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`. A future time, which clock skew can cause,
/// is `just now`.
pub fn format_time_ago(now_ms: i64, then_ms: i64) -> String {
    let passed = u64::try_from(now_ms.saturating_sub(then_ms)).unwrap_or(0);
    match passed {
        0..SECOND => "just now".to_owned(),
        SECOND..MINUTE => format!("{} s ago", passed / SECOND),
        MINUTE..HOUR => format!("{} min ago", passed / MINUTE),
        HOUR..DAY => format!("{} h ago", passed / HOUR),
        _ => format!("{} d ago", format_count(passed / DAY)),
    }
}

/// A number with its noun: `1 file`, `2 files`.
pub fn plural(n: u64, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", format_count(n))
}

/// A time of RFC 3339 in UTC with milliseconds: `2026-11-21T12:00:01.000Z`.
pub fn format_rfc3339(at_ms: i64) -> String {
    format!("{:.3}", timestamp_of_ms(at_ms))
}

/// The milliseconds since 1970 of a time that [`format_rfc3339`] wrote; `None` if the text is none.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    Some(text.parse::<Timestamp>().ok()?.as_millisecond())
}

/// The time of day: `12:00:01`.
pub fn format_time_of_day(at_ms: i64, zone: &TimeZone) -> String {
    timestamp_of_ms(at_ms).to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// The day and the time of day: `2026-11-21 12:00:01`.
pub fn date_time(at_ms: i64, zone: &TimeZone) -> String {
    timestamp_of_ms(at_ms).to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A time as a person says it: `14:39`, on another day `2026-11-21 14:39`. Without `now_ms` the day is said. Seconds are
/// rounded up, so that the time has come when it is over.
pub fn time_of(at_ms: i64, now_ms: Option<i64>, zone: &TimeZone) -> String {
    let at_ms = at_ms.saturating_add(59_000) / 60_000 * 60_000;
    let time = timestamp_of_ms(at_ms).to_zoned(zone.clone()).strftime("%H:%M").to_string();
    match now_ms.is_some_and(|now| format_date(now, zone) == format_date(at_ms, zone)) {
        true => time,
        false => format!("{} {time}", format_date(at_ms, zone)),
    }
}

/// The day: `2026-11-21`.
pub(crate) fn format_date(at_ms: i64, zone: &TimeZone) -> String {
    timestamp_of_ms(at_ms).to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string()
}

/// The nearest valid time: a damaged number must not make a run unreadable.
fn timestamp_of_ms(at_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(at_ms).unwrap_or(if at_ms < 0 {
        Timestamp::UNIX_EPOCH
    } else {
        Timestamp::MAX
    })
}

/// A future time and the time until it: `at 14:05:00, in 2 h 5 min`.
pub fn format_future_time(at_ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let away = format_duration(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0));
    let day = format_date(at_ms, zone);
    let on = if day == format_date(now_ms, zone) { String::new() } else { format!(" on {day}") };
    format!("at {}{on}, in {away}", format_time_of_day(at_ms, zone))
}

#[cfg(test)]
mod tests {
    use super::{
        date_time, format_count, format_duration, format_money, format_rfc3339, format_time_ago,
        format_time_of_day, plural,
    };
    use jiff::tz::{TimeZone, offset};

    #[test]
    fn durations() {
        for (ms, text) in [
            (0, "0 ms"),
            (99, "99 ms"),
            (100, "0.1 s"),
            (1_249, "1.2 s"),
            (59_940, "59.9 s"),
            (59_960, "1 min"),
            (184_000, "3 min 4 s"),
            (3_599_600, "1 h"),
            (7_500_000, "2 h 5 min"),
            (97_200_000, "1 d 3 h"),
            (u64::MAX, "213503982334 d 14 h"),
        ] {
            assert_eq!(format_duration(ms), text, "{ms}");
        }
    }

    #[test]
    fn numbers() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(format_count(n), text);
        }
        assert_eq!((plural(1, "call").as_str(), plural(1_000, "call").as_str()), ("1 call", "1,000 calls"));
    }

    #[test]
    fn sums_of_money() {
        for (usd, text) in [
            (None, "unknown"),
            (Some(0.0), "$0.00"),
            (Some(0.000_01), "<$0.0001"),
            (Some(0.001_2), "$0.0012"),
            (Some(0.009_96), "$0.01"),
            (Some(0.012), "$0.01"),
            (Some(0.5), "$0.50"),
            (Some(0.994), "$0.99"),
            (Some(0.999_99), "$1.00"),
            (Some(9.999_99), "$10.00"),
            (Some(1_234.567), "$1,234.57"),
        ] {
            assert_eq!(format_money(usd), text, "{usd:?}");
        }
    }

    #[test]
    fn ages() {
        let now = 1_795_262_401_000;
        for (then, text) in [
            (now + 5_000, "just now"),
            (now - 999, "just now"),
            (now - 12_000, "12 s ago"),
            (now - 200_000, "3 min ago"),
            (now - 7_300_000, "2 h ago"),
            (now - 432_000_000, "5 d ago"),
            (i64::MIN, "106,751,991,167 d ago"),
        ] {
            assert_eq!(format_time_ago(now, then), text, "{then}");
        }
    }

    #[test]
    fn times() {
        let at = 1_795_262_401_000;
        assert_eq!(format_rfc3339(at), "2026-11-21T12:00:01.000Z");
        assert_eq!(format_rfc3339(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(format_time_of_day(at, &TimeZone::UTC), "12:00:01");
        assert_eq!(date_time(at, &TimeZone::fixed(offset(9))), "2026-11-21 21:00:01");
    }
}
