//! Durations in the configuration: `90s`, `10m`, `1h 30m`.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, de::Error};

/// Deserializes a duration greater than zero.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map(Some).map_err(D::Error::custom)
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write `90s`, `10m` or `1h 30m`");
    let span: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    Duration::try_from(span).ok().filter(|span| !span.is_zero()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse_duration;

    #[test]
    fn parses_durations_and_rejects_zero() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "10", "ten", "-5m", "0s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
