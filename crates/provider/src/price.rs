//! What tokens cost, where a program does not say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// The price of a model, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of tokens read.
    pub input: f64,
    /// Of tokens read from a cache; without it they cost as much as all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Of tokens written.
    pub output: f64,
}

/// Prices by model. Whoever runs agents knows what they pay; none are built in, because one that is out of date is
/// worse than one that is said to be unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// Whether a model's price is known.
    pub fn knows(&self, model: Option<&str>) -> bool {
        model.is_some_and(|model| self.0.contains_key(model))
    }

    /// What a model's usage costs in US dollars; `None` when its price is not known.
    pub fn cost(&self, model: Option<&str>, usage: &Usage) -> Option<f64> {
        const MILLION: f64 = 1_000_000.0;
        let price = self.0.get(model?)?;
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let fresh = (usage.input_tokens - cached) as f64 * price.input;
        let cached = cached as f64 * price.cached_input.unwrap_or(price.input);
        Some((fresh + cached + usage.output_tokens as f64 * price.output) / MILLION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_a_price_of_their_own_and_unknown_models_none() {
        let price = Price { input: 2.0, cached_input: Some(0.5), output: 10.0 };
        let prices = Prices([("m".to_owned(), price)].into());
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_input_tokens: 400_000,
            output_tokens: 100_000,
            cost_usd: None,
        };
        assert_eq!(prices.cost(Some("m"), &usage), Some(1.2 + 0.2 + 1.0));
        assert_eq!(prices.cost(Some("other"), &usage), None);
        assert_eq!(prices.cost(None, &usage), None);
    }
}
