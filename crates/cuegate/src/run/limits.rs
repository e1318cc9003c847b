//! The limits of a run, from flags and the configuration.

use cuegate_engine::Budget;
use cuegate_flow::{
    Str,
    analysis::cost_bound::{ConfiguredModel, Rate, Terms},
    model::{Act, Ask, Flow},
};

use super::start_run::REPAIRS_MAX;
use crate::config::Config;
use crate::{models, providers};

/// The provider and model of a run, as far as they are known before it starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelChoice<'a> {
    /// The provider.
    pub provider: Option<&'a str>,
    /// A model for all asks.
    pub model: Option<&'a str>,
}

/// The limits and prices for the cost bound of a flow. Model names of the definition are mapped to the provider's, as
/// in a run.
pub fn cost_terms_of_flow(
    flow: &Flow,
    asked: ModelChoice<'_>,
    budget: &Budget,
    iterations_max: Option<u32>,
    repairs_max: Option<u32>,
    config: &Config,
) -> Terms {
    let prices = providers::prices_of(asked.provider, config);
    let rate_of = |model: &str| {
        let price = prices.0.get(model)?;
        // Any input token may come from a cache, which is not always cheaper.
        let input = price.input.max(price.cached_input.unwrap_or(0.0));
        Some(Rate { input, output: price.output })
    };
    let rate = |name: &Str| {
        let mapped = asked.provider.map(|provider| providers::model_map_of_provider(provider, config));
        Some((name.clone(), rate_of(models::configured_name_of_model(name, mapped))?))
    };
    let configured = asked.provider.and_then(|provider| providers::own_model(provider, config));
    let configured = configured.map(|model| ConfiguredModel { model: model.into(), rate: rate_of(model) });
    let model: Option<Str> = asked.model.map(Into::into);
    let asks = flow.steps.iter().filter_map(|step| match &step.act {
        Act::Ask(ask) => Some(ask),
        _ => None,
    });
    let rates = asks
        .flat_map(Ask::models)
        .flatten()
        .chain(&flow.default_model)
        .chain(&model)
        .filter_map(rate)
        .collect();
    Terms {
        iterations_max: iterations_max.unwrap_or(flow.limits.iterations_max),
        given: iterations_max.is_some(),
        repairs_max: repairs_max.or(config.run.repairs_max).unwrap_or(REPAIRS_MAX),
        asks: budget.asks,
        tokens: budget.tokens,
        usd_micro: budget.usd_micro,
        ask_tokens: budget.ask_tokens(),
        ask_usd_micro: budget.ask_usd(),
        model,
        configured,
        rates,
    }
}

#[cfg(test)]
mod tests {
    use cuegate_engine::Budget;
    use cuegate_flow::{
        analysis::cost_bound::Rate,
        model::{Flow, Role},
    };
    use cuegate_provider::Price;
    use cuegate_testkit::Builder;

    use super::{ModelChoice, cost_terms_of_flow};
    use crate::config::Config;

    fn flow() -> Flow {
        let draft = Builder::new("f", "test", "a").ask("a", Role::Work, &["done"]).to("done", "@completed");
        Flow::clone(&draft.flow())
    }

    fn price(input: f64, cached_input: Option<f64>, output: f64) -> Price {
        Price { input, cached_input, output }
    }

    #[test]
    fn asks_without_a_model_use_the_configured_price() {
        let mut config = Config::default();
        config.prices.0.insert("gpt".to_owned(), price(1.0, None, 2.0));
        config.prices.0.insert("other".to_owned(), price(5.0, None, 5.0));
        config.providers.codex.model = Some("gpt".to_owned());
        config.models.codex.insert("gpt".to_owned(), "other".to_owned());
        let of = |provider: &'static str| {
            let asked = ModelChoice { provider: Some(provider), model: None };
            cost_terms_of_flow(&flow(), asked, &Budget::default(), None, None, &config).configured
        };
        let found = of("codex").expect("one is configured");
        assert_eq!(
            (&*found.model, found.rate),
            ("gpt", Some(Rate { input: 1.0, output: 2.0 })),
            "as it is called there"
        );
        assert_eq!(of("claude"), None);
    }

    #[test]
    fn cached_tokens_may_be_the_most_expensive() {
        let mut config = Config::default();
        config.prices.0.insert("m".to_owned(), price(1.0, Some(100.0), 2.0));
        let asked = ModelChoice { provider: Some("codex"), model: Some("m") };
        let found = cost_terms_of_flow(&flow(), asked, &Budget::default(), None, None, &config);
        assert_eq!(found.rates["m"], Rate { input: 100.0, output: 2.0 });
    }
}
