//! Token prices, for programs that do not report costs.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

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
    /// The day when it was looked up.
    #[serde(
        default,
        deserialize_with = "deserialize_date",
        serialize_with = "serialize_date",
        skip_serializing_if = "Option::is_none"
    )]
    pub as_of: Option<Date>,
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

fn deserialize_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Date>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let date = text.parse().map_err(|_| format!("`{text}` is no date: write it as `2026-11-01`"));
    date.map(Some).map_err(D::Error::custom)
}

#[expect(clippy::ref_option, reason = "serde asks for this signature")]
fn serialize_date<S: Serializer>(date: &Option<Date>, serializer: S) -> Result<S::Ok, S::Error> {
    date.map(|date| date.to_string()).serialize(serializer)
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
        for wrong in ["2026-13-01", "2026-11-31", "yesterday", ""] {
            let text = format!(r#"{{"input": 1.0, "output": 2.0, "as_of": "{wrong}"}}"#);
            let error = serde_json::from_str::<Price>(&text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{wrong}` is no date")), "{error}");
        }
        let price: Price =
            serde_json::from_str(r#"{"input": 1.0, "output": 2.0, "as_of": "2026-11-01"}"#).unwrap();
        assert_eq!(serde_json::to_value(price).unwrap()["as_of"], "2026-11-01");
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
