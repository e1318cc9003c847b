//! Limits in the configuration, and their conversion to the engine's units.

use std::{fmt, str::FromStr};

use cuegate_engine::Budget;
use serde::{Deserialize, Deserializer, de::Error};

/// `[budget]`: the default budget of a run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// US dollars per run.
    pub usd: Option<Usd>,
    /// Tokens per run, input and output together.
    pub tokens: Option<PositiveCount>,
    /// Calls of agents per run.
    pub calls: Option<PositiveCount>,
    /// Minutes per run; time while it is suspended does not count.
    pub minutes: Option<Minutes>,
    /// US dollars per call.
    pub call_usd: Option<Usd>,
    /// Tokens per call.
    pub call_tokens: Option<PositiveCount>,
    /// Whether runs start at a terminal without any of these, and without a prompt for one.
    pub unlimited: bool,
}

impl BudgetConfig {
    /// The budget in the engine's units.
    pub fn budget(&self) -> Budget {
        Budget {
            usd_micro: self.usd.map(|usd| usd.micro),
            tokens: self.tokens.map(|count| count.0),
            asks: self.calls.map(|count| count.0),
            driven_ms: self.minutes.map(|minutes| minutes.ms),
            ask_usd_micro: self.call_usd.map(|usd| usd.micro),
            ask_tokens: self.call_tokens.map(|count| count.0),
        }
    }
}

/// Deserializes a number of retries: 0 to 100.
pub(super) fn deserialize_retry_limit<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    deserialize_in_range(0, 100, deserializer)
}

/// Deserializes how often something may come again: 2 to 1000.
pub(super) fn deserialize_repetitions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    deserialize_in_range(2, 1000, deserializer)
}

/// Deserializes a number of iterations: 1 to 1000000.
pub(super) fn deserialize_iteration_limit<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    deserialize_in_range(1, 1_000_000, deserializer)
}

/// Deserializes a number of parallel members: 1 to 1000.
pub(super) fn deserialize_member_limit<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u16>, D::Error> {
    deserialize_in_range(1, 1000, deserializer)
}

fn deserialize_in_range<'de, N: TryFrom<i64>, D: Deserializer<'de>>(
    least: i64,
    most: i64,
    deserializer: D,
) -> Result<Option<N>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let found = N::try_from(number).ok().filter(|_| (least..=most).contains(&number));
    found
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("expected a number from {least} to {most}, found {number}")))
}

/// An amount of US dollars greater than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usd {
    /// In millionths of a dollar.
    pub micro: u64,
}

/// A number of minutes greater than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minutes {
    /// In milliseconds.
    pub ms: u64,
}

/// A whole number greater than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositiveCount(pub u64);

/// `number` in units of 1/`per`, rounded down; `None` outside 1 to 1e15.
fn convert_to_units(number: f64, per: f64) -> Option<u64> {
    let units = (number * per).floor();
    (1.0..=1e15).contains(&units).then_some(units as u64)
}

fn usd_of_number(number: f64) -> Result<Usd, String> {
    let micro = convert_to_units(number, 1e6)
        .ok_or("an amount of US dollars must be greater than 0, such as `2.50`")?;
    Ok(Usd { micro })
}

fn minutes_of_number(number: f64) -> Result<Minutes, String> {
    let ms = convert_to_units(number, 60_000.0)
        .ok_or("a number of minutes must be greater than 0, such as `90` or `0.5`")?;
    Ok(Minutes { ms })
}

impl FromStr for Usd {
    type Err = String;

    fn from_str(text: &str) -> Result<Usd, String> {
        usd_of_number(text.trim_start_matches('$').parse().unwrap_or(f64::NAN))
    }
}

impl FromStr for Minutes {
    type Err = String;

    fn from_str(text: &str) -> Result<Minutes, String> {
        minutes_of_number(text.parse().unwrap_or(f64::NAN))
    }
}

impl FromStr for PositiveCount {
    type Err = String;

    fn from_str(text: &str) -> Result<PositiveCount, String> {
        let number = text.replace(['_', ','], "").parse().ok().filter(|number| *number > 0);
        number.map(PositiveCount).ok_or_else(|| "must be a whole number, 1 or more".to_owned())
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.micro as f64 / 1e6)
    }
}

/// A TOML integer or float.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number without quotes")]
enum TomlNumber {
    Whole(i64),
    Broken(f64),
}

impl TomlNumber {
    fn as_f64(&self) -> f64 {
        match self {
            TomlNumber::Whole(number) => *number as f64,
            TomlNumber::Broken(number) => *number,
        }
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
        usd_of_number(TomlNumber::deserialize(deserializer)?.as_f64()).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Minutes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Minutes, D::Error> {
        minutes_of_number(TomlNumber::deserialize(deserializer)?.as_f64()).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PositiveCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PositiveCount, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let count = u64::try_from(number).ok().filter(|number| *number > 0);
        count.map(PositiveCount).ok_or_else(|| D::Error::custom("must be a whole number, 1 or more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_greater_than_zero() {
        assert_eq!("2.50".parse(), Ok(Usd { micro: 2_500_000 }));
        assert_eq!("$5".parse(), Ok(Usd { micro: 5_000_000 }));
        assert_eq!("0.5".parse(), Ok(Minutes { ms: 30_000 }));
        assert_eq!("200_000".parse(), Ok(PositiveCount(200_000)));
        for wrong in ["0", "-1", "nan", "inf", "much", "1e300", ""] {
            assert!(wrong.parse::<Usd>().is_err(), "{wrong}");
            assert!(wrong.parse::<Minutes>().is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "1.5", ""] {
            assert!(wrong.parse::<PositiveCount>().is_err(), "{wrong}");
        }
    }
}
