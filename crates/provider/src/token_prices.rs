//! Token prices, for programs that do not report costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::Usage;

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Per million input tokens.
    #[serde(deserialize_with = "deserialize_price")]
    pub input: f64,
    /// Per million input tokens read from a cache. Defaults to the input price.
    #[serde(default, deserialize_with = "some_money", skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Per million output tokens.
    #[serde(deserialize_with = "deserialize_price")]
    pub output: f64,
    /// When it was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<PriceDate>,
}

/// A day, written as `2026-11-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceDate {
    year: u16,
    month: u8,
    day: u8,
}

impl PriceDate {
    /// The days from 1970-01-01 to it.
    pub fn days(self) -> i64 {
        // Years begin in March, so that a leap day is their last; see Howard Hinnant, "chrono-Compatible Low-Level Date
        // Algorithms".
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
        era * 146_097 + year * 365 + year / 4 - year / 100 + of_year - 719_468
    }
}

impl std::str::FromStr for PriceDate {
    type Err = String;

    fn from_str(text: &str) -> Result<PriceDate, String> {
        let wrong = || format!("`{text}` is no date: write it as `2026-11-01`");
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts[..] else { return Err(wrong()) };
        if [year.len(), month.len(), day.len()] != [4, 2, 2] {
            return Err(wrong());
        }
        let (Ok(year), Ok(month), Ok(day)) = (year.parse(), month.parse(), day.parse()) else {
            return Err(wrong());
        };
        let date = PriceDate { year, month, day };
        if (1..=12).contains(&month) && (1..=31).contains(&day) { Ok(date) } else { Err(wrong()) }
    }
}

impl std::fmt::Display for PriceDate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Serialize for PriceDate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PriceDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PriceDate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Price {
    /// The cost of a usage in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        const MILLION: f64 = 1_000_000.0;
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let fresh = (usage.input_tokens - cached) as f64 * self.input;
        let cached = cached as f64 * self.cached_input.unwrap_or(self.input);
        (fresh + cached + usage.output_tokens as f64 * self.output) / MILLION
    }
}

fn deserialize_price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let money = f64::deserialize(deserializer)?;
    if money.is_finite() && money >= 0.0 {
        return Ok(money);
    }
    Err(D::Error::custom(format!("`{money}` is not a price: use US dollars per million tokens, 0 or more")))
}

fn some_money<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    deserialize_price(deserializer).map(Some)
}

/// Prices by model. None are built in, because an outdated price is worse than an unknown one; users know what they
/// pay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// Whether a model's price is known.
    pub fn knows(&self, model: Option<&str>) -> bool {
        model.is_some_and(|model| self.0.contains_key(model))
    }

    /// The cost of a model's usage in US dollars; `None` if its price is unknown.
    pub fn cost(&self, model: Option<&str>, usage: &Usage) -> Option<f64> {
        Some(self.0.get(model?)?.cost(usage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_says_when_it_was_looked_up() {
        let days = |text: &str| text.parse::<PriceDate>().map(PriceDate::days);
        assert_eq!(
            (days("1970-01-01"), days("2000-03-01"), days("2026-11-28")),
            (Ok(0), Ok(11_017), Ok(20_785))
        );
        for wrong in ["2026-13-01", "26-11-01", "2026-11-1", "yesterday", "2026-11-01-x", ""] {
            assert!(wrong.parse::<PriceDate>().unwrap_err().contains("is no date"), "{wrong}");
        }
        let price: Price =
            serde_json::from_str(r#"{"input": 1.0, "output": 2.0, "as_of": "2026-11-01"}"#).unwrap();
        assert_eq!(price.as_of.unwrap().to_string(), "2026-11-01");
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_unknown_models_have_no_cost() {
        let price = Price { input: 2.0, cached_input: Some(0.5), output: 10.0, as_of: None };
        let prices = Prices([("m".to_owned(), price)].into());
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_input_tokens: 400_000,
            output_tokens: 100_000,
            cost_usd: None,
            is_estimated: false,
        };
        assert_eq!(prices.cost(Some("m"), &usage), Some(1.2 + 0.2 + 1.0));
        assert_eq!(prices.cost(Some("other"), &usage), None);
        assert_eq!(prices.cost(None, &usage), None);
    }

    #[test]
    fn negative_and_non_finite_prices_are_rejected() {
        let read = |text: &str| serde_saphyr::from_str::<Price>(text).map_err(|error| error.to_string());
        assert!(read("{input: 0, cached_input: 0.5, output: 1}").is_ok());
        assert_eq!(read("{input: 2, output: 1}").unwrap().cached_input, None);
        for bad in ["-1", "-0.5", ".nan", ".inf", "-.inf"] {
            assert!(read(&format!("{{input: {bad}, output: 1}}")).is_err(), "{bad}");
            assert!(read(&format!("{{input: 1, output: {bad}}}")).is_err(), "{bad}");
            assert!(read(&format!("{{input: 1, cached_input: {bad}, output: 1}}")).is_err(), "{bad}");
        }
        assert!(read("{input: -1, output: 1}").unwrap_err().contains("not a price"));
    }
}
