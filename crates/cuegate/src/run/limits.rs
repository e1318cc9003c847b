//! The limits of a run, from flags and the configuration.

use std::collections::BTreeMap;

use cuegate_engine::{AgentChoice, AgentPlan, Budget};
use cuegate_flow::{
    Str,
    analysis::cost_bound::{ConfiguredModel, PricedModel, Rate, Terms},
    model::{Act, Ask, Flow},
};

use cuegate_provider::Price;

use super::start_run::REPAIRS_MAX;
use crate::agents::list_planned_calls;
use crate::config::Config;
use crate::{models, providers};

/// The provider and model of a run, as far as they are known before it starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelChoice<'a> {
    /// The provider.
    pub provider: Option<&'a str>,
    /// A model for all asks.
    pub model: Option<&'a str>,
    /// The agents beside that.
    pub plan: Option<&'a AgentPlan>,
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
    let rate_of = |model: &str| prices.0.get(model).map(rate_of_price);
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
    let of_steps = match (asked.provider, asked.plan.filter(|plan| !plan.is_usual())) {
        (Some(_), Some(plan)) => price_steps(flow, asked, plan, config),
        _ => BTreeMap::new(),
    };
    Terms {
        of_steps,
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

/// The models, with their prices, that may answer the calls of each step: of all agents of its chains.
fn price_steps(
    flow: &Flow,
    asked: ModelChoice<'_>,
    plan: &AgentPlan,
    config: &Config,
) -> BTreeMap<Str, Vec<PricedModel>> {
    let usual = AgentChoice {
        agent: asked.provider.unwrap_or_default().to_owned(),
        model: asked.model.map(str::to_owned),
        effort: None,
    };
    let mut of_steps: BTreeMap<Str, Vec<PricedModel>> = BTreeMap::new();
    for call in list_planned_calls(flow, &usual, plan) {
        let agent = call.choice.agent.as_str();
        let mapped = Some(providers::model_map_of_provider(agent, config));
        let prices = providers::prices_of(Some(agent), config);
        let configured = providers::own_model(agent, config);
        let named: Vec<Option<&str>> = match &call.choice.model {
            Some(model) => vec![Some(model)],
            None => call.ask.models().map(|model| model.map(|model| &**model)).collect(),
        };
        for name in named {
            let name = name.map(|name| models::configured_name_of_model(name, mapped));
            let name = name.or(configured).or(flow.default_model.as_deref());
            let rate = name.and_then(|name| prices.0.get(name)).map(rate_of_price);
            // An agent that costs nothing is free with any model.
            let free = Rate { input: 0.0, output: 0.0 };
            let rate = rate.or_else(|| (!providers::may_cost_money(agent, config)).then_some(free));
            let model = name.map_or_else(|| format!("{agent}'s own model"), str::to_owned);
            let of_step = of_steps.entry(call.step.name.clone()).or_default();
            of_step.push(PricedModel { model: model.into(), rate });
        }
    }
    of_steps
}

fn rate_of_price(price: &Price) -> Rate {
    // Any input token may come from a cache, which is not always cheaper.
    let input = price.input.max(price.cached_input.unwrap_or(0.0));
    Rate { input, output: price.output }
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
        Price { input, cached_input, output, as_of: None }
    }

    #[test]
    fn asks_without_a_model_use_the_configured_price() {
        let mut config = Config::default();
        config.prices.0.insert("gpt".to_owned(), price(1.0, None, 2.0));
        config.prices.0.insert("other".to_owned(), price(5.0, None, 5.0));
        config.providers.codex.model = Some("gpt".to_owned());
        config.models.codex.insert("gpt".to_owned(), "other".to_owned());
        let of = |provider: &'static str| {
            let asked = ModelChoice { provider: Some(provider), model: None, plan: None };
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
        let asked = ModelChoice { provider: Some("codex"), model: Some("m"), plan: None };
        let found = cost_terms_of_flow(&flow(), asked, &Budget::default(), None, None, &config);
        assert_eq!(found.rates["m"], Rate { input: 100.0, output: 2.0 });
    }
}
