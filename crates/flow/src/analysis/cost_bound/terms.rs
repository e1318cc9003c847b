//! The terms that a cost bound is calculated with.

use std::collections::BTreeMap;

use super::{Certificate, TRIES_MAX};
use crate::{
    Str,
    model::{Act, Ask, Conduct, Flow},
};

/// The price of a model's tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// US dollars per million input tokens.
    pub input: f64,
    /// US dollars per million output tokens.
    pub output: f64,
}

/// A model that may answer, with its price, if known.
#[derive(Debug, Clone, PartialEq)]
pub struct PricedModel {
    /// Its name, for people.
    pub model: Str,
    /// Its price.
    pub rate: Option<Rate>,
}

/// The configured model for asks that name none. It precedes the default of the format.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredModel {
    /// Its name.
    pub model: Str,
    /// Its price, if known.
    pub rate: Option<Rate>,
}

/// The counters that are ignored because tracking them yields too many states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IgnoredCounters {
    Nothing,
    /// These counters.
    Counters(Vec<Str>),
    /// All counters and monitors.
    All,
}

/// The limits of a run that are not part of its flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// The most iterations.
    pub iterations_max: u32,
    /// Whether that limit was given for the run rather than by its definition.
    pub given: bool,
    /// The most repair asks per answer.
    pub repairs_max: u32,
    /// The most asks, if a budget limits them.
    pub asks: Option<u64>,
    /// The most tokens, if a budget limits them.
    pub tokens: Option<u64>,
    /// The most millionths of a US dollar, if a budget limits them.
    pub usd_micro: Option<u64>,
    /// The most tokens of one ask.
    pub ask_tokens: Option<u64>,
    /// The most millionths of a US dollar of one ask.
    pub ask_usd_micro: Option<u64>,
    /// The model of all asks, whatever the definition says.
    pub model: Option<Str>,
    /// The model of asks that name none.
    pub configured: Option<ConfiguredModel>,
    /// The prices of models, by the definition's names for them.
    pub rates: BTreeMap<Str, Rate>,
    /// The models that may answer the asks of steps with agents of their own: of all agents of their chains, and whatever
    /// the definition says.
    pub of_steps: BTreeMap<Str, Vec<PricedModel>>,
}

impl Terms {
    /// The models that may answer the asks of a step, with their prices, as far as both are known.
    fn models_of(&self, flow: &Flow, step: &str, ask: &Ask) -> Vec<(Option<Str>, Option<Rate>)> {
        if let Some(own) = self.of_steps.get(step) {
            return own.iter().map(|one| (Some(one.model.clone()), one.rate)).collect();
        }
        let of_name = |named: Option<&Str>| match (named, &self.configured) {
            (None, Some(configured)) => (Some(configured.model.clone()), configured.rate),
            (named, _) => {
                let named = named.or(flow.default_model.as_ref());
                (named.cloned(), named.and_then(|named| self.rates.get(named)).copied())
            }
        };
        match &self.model {
            Some(model) => vec![of_name(Some(model))],
            None => ask.models().map(of_name).collect(),
        }
    }

    /// The maximum cost of one ask of a step, in millionths of a US dollar; `None` when nothing bounds it.
    pub(super) fn usd_of(&self, flow: &Flow, step: &str, ask: &Ask) -> Option<u64> {
        let by_tokens = |rate: Option<Rate>| {
            let rate = rate?;
            // All tokens at the higher price; a price of 0 needs no token limit.
            let dearer = rate.input.max(rate.output);
            let tokens = if dearer == 0.0 { 0 } else { self.ask_tokens? };
            let micro = (tokens as f64 * dearer).ceil();
            (micro < u64::MAX as f64).then_some(micro as u64)
        };
        let models = self.models_of(flow, step, ask);
        let costs: Option<Vec<u64>> = models.into_iter().map(|(_, rate)| by_tokens(rate)).collect();
        let dearest = costs.and_then(|costs| costs.into_iter().max());
        dearest.into_iter().chain(self.ask_usd_micro).min()
    }

    /// The maximum cost of any ask of a flow.
    pub(super) fn dearest(&self, flow: &Flow) -> Option<u64> {
        let mut dearest = 0;
        for step in &flow.steps {
            if let Act::Ask(ask) = &step.act {
                dearest = dearest.max(self.usd_of(flow, &step.name, ask)?);
            }
        }
        Some(dearest)
    }

    /// The most tokens of `tries` tries of asks.
    pub(super) fn tokens_of(&self, tries: u64) -> Option<u64> {
        let by_tries = self.ask_tokens.and_then(|tokens| drop_saturated_amount(tokens.saturating_mul(tries)));
        by_tries.into_iter().chain(self.tokens).min()
    }

    pub(super) fn assumptions(&self, flow: &Flow, loose: &IgnoredCounters) -> Vec<String> {
        let mut said = vec![
            format!("at most {} iterations", self.iterations_max),
            match self.repairs_max {
                0 => "an invalid answer is not retried".to_owned(),
                1 => "an invalid answer is retried once".to_owned(),
                times => format!("an invalid answer is retried {times} times"),
            },
            format!(
                "a failed agent call is tried at most {TRIES_MAX} times: it counts as 1 call, and each try is paid"
            ),
            match flow.conduct.auto_response {
                None => "no person answers questions or extends the run".to_owned(),
                Some(_) => format!(
                    "each visit asks the {} questions that the definition answers; no person answers further questions or \
                     extends the run",
                    Conduct::QUESTIONS_MAX
                ),
            },
        ];
        match loose {
            IgnoredCounters::Nothing => {}
            IgnoredCounters::Counters(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                said.push(format!(
                    "the counts of {} are not tracked: the bound may be too high",
                    names.join(", ")
                ));
            }
            IgnoredCounters::All => said
                .push("transition limits and monitors are not tracked: the bound may be too high".to_owned()),
        }
        let fused = flow.steps.iter().any(|step| matches!(&step.act, Act::Ask(ask) if ask.fused.is_some()));
        if fused {
            said.push(
                "every answer is plain text, so its reports and its outcome need calls of their own"
                    .to_owned(),
            );
        }
        if let Some(tokens) = self.ask_tokens {
            said.push(format!("a call uses at most {tokens} tokens"));
        }
        if let Some(micro) = self.ask_usd_micro {
            said.push(format!("a call costs at most ${:.2}", micro as f64 / 1e6));
        }
        said
    }

    pub(super) fn unbounded(&self, flow: &Flow, found: &Certificate) -> Vec<String> {
        let mut why = Vec::new();
        let too_much = |what: &str| format!("{what} are too many to count: set lower limits");
        match self.ask_tokens {
            _ if found.tokens.is_some() => {}
            None => why
                .push("the tokens of a call have no limit: set `--call-tokens` or a token budget".to_owned()),
            // The cycle that makes the calls unbounded is reported by the caller (`Certificate::endless`).
            Some(_) if found.endless => {}
            Some(_) => why.push(too_much("the tokens of all calls")),
        }
        if found.usd_micro.is_none() {
            let mut unknown: Vec<Str> = flow
                .steps
                .iter()
                .filter_map(|step| match &step.act {
                    Act::Ask(ask) if self.usd_of(flow, &step.name, ask).is_none() => Some((step, ask)),
                    _ => None,
                })
                .flat_map(|(step, ask)| self.models_of(flow, &step.name, ask))
                .map(|(model, _)| model.unwrap_or_else(|| "the agent's own model".into()))
                .collect();
            unknown.sort_unstable();
            unknown.dedup();
            if !unknown.is_empty() {
                why.push(format!(
                    "the cost of a call of {} is unknown: set `--call-usd`, a cost budget, or prices and `--call-tokens`",
                    unknown.join(", ")
                ));
            } else if !found.endless {
                why.push(too_much("the dollars of all calls"));
            }
        }
        why
    }
}

/// An amount, unless it saturated: then it is not a bound.
pub(super) fn drop_saturated_amount(amount: u64) -> Option<u64> {
    (amount < u64::MAX).then_some(amount)
}
