//! What a run is bounded by, out of flags and configuration.

use cuegate_engine::Budget;
use cuegate_flow::{Act, Flow, Rate, Str, Terms};

use crate::{begin::REPAIRS_MAX, config::Config, models, providers};

/// Who is asked, as far as it is known before anybody is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The provider.
    pub provider: Option<&'a str>,
    /// A model for all asks.
    pub model: Option<&'a str>,
}

/// The terms on which a flow runs. Prices are known by the provider's names of models; the definition's names lead to
/// them as they do in a run.
pub fn terms(
    flow: &Flow,
    asked: Asked<'_>,
    budget: &Budget,
    iterations_max: Option<u32>,
    repairs_max: Option<u32>,
    config: &Config,
) -> Terms {
    let rate = |name: &Str| {
        let mapped = asked.provider.map(|provider| providers::mapped(provider, config));
        let model = models::configured(name, mapped);
        let price = config.prices.0.get(model)?;
        Some((name.clone(), Rate { input: price.input, output: price.output }))
    };
    let model: Option<Str> = asked.model.map(Into::into);
    let named = flow.steps.iter().filter_map(|step| match &step.act {
        Act::Ask(ask) => ask.model.as_ref(),
        _ => None,
    });
    let rates = named.chain(&flow.default_model).chain(&model).filter_map(rate).collect();
    Terms {
        iterations_max: iterations_max.unwrap_or(flow.limits.iterations_max),
        repairs_max: repairs_max.or(config.run.repairs_max).unwrap_or(REPAIRS_MAX),
        asks: budget.asks,
        tokens: budget.tokens,
        usd_micro: budget.usd_micro,
        ask_tokens: budget.ask_tokens(),
        ask_usd_micro: budget.ask_usd(),
        model,
        rates,
    }
}
