//! Parses when a limit ends from a program's message.
//!
//! The programs do not pass on the response headers that state it. Supported texts are `try again in 11.054s`,
//! `try again at 2:45 AM`, `resets 3pm (Europe/Berlin)` and `resets Nov 23 at 3:30pm`.

use jiff::{ToSpan as _, Zoned, civil::Time, tz::TimeZone};

/// The delay in milliseconds until a retry may succeed, if the text states it.
pub(crate) fn in_ms(text: &str, now: &Zoned) -> Option<u64> {
    let text = text.to_lowercase();
    let after = |marks: &[&str]| marks.iter().find_map(|mark| Some(text.split_once(mark)?.1.to_owned()));
    if let Some(span) = after(&["again in ", "retry in ", "retry after ", "resets in ", "reset in "])
        && let Some(ms) = span_ms(&span)
    {
        return Some(ms);
    }
    // `usage limit reached|1735689600`
    let epoch = after(&["limit reached|"]).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    if let Some(epoch) = epoch {
        return Some(until_ms(epoch, now));
    }
    let moment = parse_moment(&after(&["again at ", "resets at ", "reset at ", "resets "])?, now)?;
    // A time is told to the minute, cut off: the limit ends with that minute.
    let end = moment.checked_add(1.minute()).ok()?;
    Some(u64::try_from(end.timestamp().as_millisecond() - now.timestamp().as_millisecond()).unwrap_or(0))
}

/// The delay in milliseconds until a Unix time in seconds; 0 if it has passed.
pub(crate) fn until_ms(epoch_s: i64, now: &Zoned) -> u64 {
    u64::try_from(epoch_s.saturating_mul(1_000).saturating_sub(now.timestamp().as_millisecond())).unwrap_or(0)
}

/// `11.054s`, `1m30s`, `3 days 4 hours`, `350ms`.
fn span_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = None;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { return sum };
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms = match &rest[..letters] {
            "ms" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
            "m" | "min" | "mins" | "minute" | "minutes" => 60e3,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600e3,
            "d" | "day" | "days" => 86_400e3,
            _ => return sum,
        };
        rest = &rest[letters..];
        // The cast saturates. A fraction of a millisecond is rounded up.
        sum = Some(sum.unwrap_or(0u64).saturating_add((number * unit_ms).ceil() as u64));
    }
}

/// The parsed parts of a moment.
#[derive(Default)]
struct MomentParts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

/// `2:45 am`, `3pm (europe/berlin)`, `nov 23rd, 2026 2:45 am`, `nov 23 at 3pm`.
fn parse_moment(text: &str, now: &Zoned) -> Option<Zoned> {
    let mut parts = MomentParts::default();
    let mut words = text.split_whitespace().map(|word| word.trim_end_matches([',', '.', ';'])).peekable();
    while let Some(word) = words.next() {
        let half = words.peek().copied().filter(|next| matches!(*next, "am" | "pm"));
        if word == "at" {
        } else if let Some(month) = parse_month(word) {
            parts.month = Some(month);
        } else if let Some(name) = word.strip_prefix('(') {
            parts.zone = find_time_zone(name.trim_end_matches(')'));
            break;
        } else if let Some(time) = parse_time(word, half) {
            parts.time = Some(time);
            if half.is_some() {
                words.next();
            }
        } else if let Some(number) = parse_ordinal(word) {
            match number {
                1..=31 => parts.day = i8::try_from(number).ok(),
                2000..=9999 => parts.year = Some(number),
                _ => break,
            }
        } else {
            break;
        }
    }
    parts.next(now)
}

impl MomentParts {
    /// The first matching moment after now, or one that passed within the last hour: an answer may be late, and clocks
    /// differ. A date may be up to a day in the past.
    fn next(self, now: &Zoned) -> Option<Zoned> {
        let now = now.with_time_zone(self.zone.clone().unwrap_or_else(|| now.time_zone().clone()));
        let time = self.time?;
        let (Some(month), Some(day)) = (self.month, self.day) else {
            let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone()).ok()?;
            let days = [-1, 0, 1].map(|days| today.checked_add(days.days()));
            return days.into_iter().flatten().find(|at| *at > now.saturating_sub(1.hour()));
        };
        let in_year = |year| {
            jiff::civil::Date::new(year, month, day)
                .and_then(|date| date.to_datetime(time).to_zoned(now.time_zone().clone()))
                .ok()
        };
        match self.year {
            Some(year) => in_year(year),
            // In December, "Jan 1" is in the next year.
            None => [now.year(), now.year() + 1]
                .into_iter()
                .filter_map(in_year)
                .find(|at| *at > now.saturating_sub(1.day())),
        }
    }
}

/// UTC needs no time zone database, which a machine may lack.
fn find_time_zone(name: &str) -> Option<TimeZone> {
    if name == "utc" { Some(TimeZone::UTC) } else { TimeZone::get(name).ok() }
}

fn parse_month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let index = MONTHS.iter().position(|month| word.starts_with(month))?;
    i8::try_from(index + 1).ok()
}

/// `3pm`, `2:45am`, or `2:45` and `3` followed by `am` or `pm`. `15:00` needs neither.
fn parse_time(word: &str, half: Option<&str>) -> Option<Time> {
    let (digits, half) = match word.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => (&word[..at], Some(&word[at..])),
        None => (word, half),
    };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        Some("am") if (1..=12).contains(&hour) => hour % 12,
        Some("pm") if (1..=12).contains(&hour) => hour % 12 + 12,
        None if digits.contains(':') => hour,
        _ => return None,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// `23`, `23rd`, `2026`.
fn parse_ordinal(word: &str) -> Option<i16> {
    let suffix = ["st", "nd", "rd", "th"].iter().find_map(|suffix| word.strip_suffix(suffix));
    suffix.unwrap_or(word).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;

    fn now() -> Zoned {
        jiff::civil::date(2026, 11, 22).at(1, 45, 0, 0).to_zoned(TimeZone::UTC).unwrap()
    }

    fn ms(text: &str) -> Option<u64> {
        in_ms(text, &now())
    }

    #[test]
    fn spans() {
        assert_eq!(ms("rate limit exceeded: Rate limit reached. Please try again in 11.054s."), Some(11_054));
        assert_eq!(ms("Please try again in 350ms. Visit the page."), Some(350));
        assert_eq!(ms("try again in 1m30s"), Some(90 * SECOND));
        assert_eq!(ms("try again in 3 days 4 hours and 5 minutes."), Some(76 * HOUR + 300 * SECOND));
        assert_eq!(ms("Try again in 20 seconds"), Some(20 * SECOND));
        assert_eq!(ms("try again in a moment. If it persists"), None);
        assert_eq!(ms("too many requests"), None);
    }

    #[test]
    fn moments_of_the_day() {
        assert_eq!(ms("You've hit your 5-hour limit · resets 2:53am (UTC)"), Some(69 * 60 * SECOND));
        assert_eq!(ms("or try again at 2:45 AM."), Some(HOUR + MINUTE));
        assert_eq!(ms("resets 12:30am (UTC)"), Some(22 * HOUR + 46 * MINUTE));
        assert_eq!(ms("resets at 12am"), Some(22 * HOUR + 16 * MINUTE));
        assert_eq!(ms("resets 15:45"), Some(14 * HOUR + MINUTE));
        assert_eq!(ms("resets soon"), None);
        assert_eq!(ms("resets 25:00"), None);
    }

    #[test]
    fn a_moment_of_the_last_hour_is_now_and_a_running_minute_ends() {
        assert_eq!(ms("try again at 1:45 AM."), Some(MINUTE), "this minute");
        assert_eq!(ms("resets 1:44am"), Some(0));
        assert_eq!(ms("resets 1am (UTC)"), Some(0));
        let late = jiff::civil::date(2026, 11, 22).at(0, 5, 20, 0).to_zoned(TimeZone::UTC).unwrap();
        assert_eq!(in_ms("resets 11:58pm", &late), Some(0), "yesterday");
        assert_eq!(in_ms("try again at 12:05 AM", &late), Some(40 * SECOND));
        assert_eq!(in_ms("Claude AI usage limit reached|1795306220", &late), Some(300 * SECOND));
    }

    #[test]
    fn moments_of_another_day_and_another_zone() {
        assert_eq!(ms("try again at Nov 23rd, 2026 2:45 AM."), Some(25 * HOUR + MINUTE));
        assert_eq!(ms("resets Nov 23 at 2:45am"), Some(25 * HOUR + MINUTE));
        assert_eq!(ms("resets Jan 1, 1:45am"), Some(40 * 24 * HOUR + MINUTE));
        assert_eq!(ms("try again at Nov 21st, 2026 2:45 AM."), Some(0));
        let Ok(_) = TimeZone::get("Europe/Berlin") else { return };
        assert_eq!(ms("resets 3:45am (Europe/Berlin)"), Some(HOUR + MINUTE));
    }

    #[test]
    fn epochs() {
        let now = now();
        let epoch = now.timestamp().as_second();
        assert_eq!(until_ms(epoch + 5, &now), 5_000);
        assert_eq!(until_ms(epoch - 5, &now), 0);
        assert_eq!(until_ms(i64::MAX, &now), u64::try_from(i64::MAX - epoch * 1_000).unwrap());
    }
}
