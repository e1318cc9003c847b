//! What a bound is calculated with.

use std::collections::BTreeMap;

use super::{Certificate, TRIES_MAX};
use crate::{
    Str,
    model::{Act, Ask, Conduct, Flow},
};

/// What a model's tokens cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// US dollars for a million tokens read.
    pub input: f64,
    /// US dollars for a million tokens written.
    pub output: f64,
}

/// The model that is asked where an ask names none, as it is configured for who is asked: it goes before the one that a
/// format falls back to.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    /// Its name.
    pub model: Str,
    /// What it costs, where that is known.
    pub rate: Option<Rate>,
}

/// What is counted as if it were not there, because following it comes to too many states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loose {
    /// Nothing.
    Nothing,
    /// These counters.
    Counters(Vec<Str>),
    /// All of them, and what monitors see.
    All,
}

/// What a run is bounded by, besides its flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// The most iterations.
    pub iterations_max: u32,
    /// Whether that was given for the run, and not by its definition.
    pub given: bool,
    /// How often a bad answer is asked again.
    pub repairs_max: u32,
    /// The most asks, where a budget says so.
    pub asks: Option<u64>,
    /// The most tokens, where a budget says so.
    pub tokens: Option<u64>,
    /// The most millionths of a US dollar, where a budget says so.
    pub usd_micro: Option<u64>,
    /// The most tokens of one ask.
    pub ask_tokens: Option<u64>,
    /// The most millionths of a US dollar of one ask.
    pub ask_usd_micro: Option<u64>,
    /// The model of all asks, whatever the definition says.
    pub model: Option<Str>,
    /// The model of asks that name none.
    pub configured: Option<Configured>,
    /// What models cost, by the definition's names for them.
    pub rates: BTreeMap<Str, Rate>,
}

impl Terms {
    /// The model of an ask, by the name that it is called.
    fn model_of<'t>(&'t self, flow: &'t Flow, ask: &'t Ask) -> Option<&'t Str> {
        let configured = self.configured.as_ref().map(|configured| &configured.model);
        self.named(ask).or(configured).or(flow.default_model.as_ref())
    }

    fn named<'t>(&'t self, ask: &'t Ask) -> Option<&'t Str> {
        self.model.as_ref().or(ask.model.as_ref())
    }

    fn rate_of(&self, flow: &Flow, ask: &Ask) -> Option<&Rate> {
        match (self.named(ask), &self.configured) {
            (None, Some(configured)) => configured.rate.as_ref(),
            (named, _) => self.rates.get(named.or(flow.default_model.as_ref())?),
        }
    }

    /// The most that one ask costs, in millionths of a US dollar; `None` when nothing bounds it.
    pub(super) fn usd_of(&self, flow: &Flow, ask: &Ask) -> Option<u64> {
        let by_tokens = self.rate_of(flow, ask).and_then(|rate| {
            // All of them at the dearer price; what costs nothing does so however many they are.
            let dearer = rate.input.max(rate.output);
            let tokens = if dearer == 0.0 { 0 } else { self.ask_tokens? };
            let micro = (tokens as f64 * dearer).ceil();
            (micro < u64::MAX as f64).then_some(micro as u64)
        });
        by_tokens.into_iter().chain(self.ask_usd_micro).min()
    }

    /// The most that any ask of a flow costs.
    pub(super) fn dearest(&self, flow: &Flow) -> Option<u64> {
        let mut dearest = 0;
        for step in &flow.steps {
            if let Act::Ask(ask) = &step.act {
                dearest = dearest.max(self.usd_of(flow, ask)?);
            }
        }
        Some(dearest)
    }

    /// The most tokens of so many tries of asks.
    pub(super) fn tokens_of(&self, tries: u64) -> Option<u64> {
        let by_tries = self.ask_tokens.and_then(|tokens| countable(tokens.saturating_mul(tries)));
        by_tries.into_iter().chain(self.tokens).min()
    }

    pub(super) fn assumptions(&self, flow: &Flow, loose: &Loose) -> Vec<String> {
        let mut said = vec![
            format!("at most {} iterations", self.iterations_max),
            match self.repairs_max {
                0 => "a bad answer is not asked again".to_owned(),
                1 => "a bad answer is asked again once".to_owned(),
                times => format!("a bad answer is asked again {times} times"),
            },
            format!(
                "an ask whose agent breaks off is put {TRIES_MAX} times at most: that is one ask, paid each time"
            ),
            match flow.conduct.auto_response {
                None => "nobody answers questions or lets the run go on with more".to_owned(),
                Some(_) => format!(
                    "each visit asks the {} questions that the definition answers, and nobody answers others or lets the \
                     run go on with more",
                    Conduct::QUESTIONS_MAX
                ),
            },
        ];
        match loose {
            Loose::Nothing => {}
            Loose::Counters(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                said.push(format!(
                    "what {} count is not followed: the bound is an upper one",
                    names.join(", ")
                ));
            }
            Loose::All => said.push(
                "bounds of ways and what monitors see are not followed: the bound is an upper one".to_owned(),
            ),
        }
        let fused = flow.steps.iter().any(|step| matches!(&step.act, Act::Ask(ask) if ask.fused.is_some()));
        if fused {
            said.push(
                "every answer comes in plain words, so that its reports and its outcome are asked for apart"
                    .to_owned(),
            );
        }
        if let Some(tokens) = self.ask_tokens {
            said.push(format!("an ask uses at most {tokens} tokens"));
        }
        if let Some(micro) = self.ask_usd_micro {
            said.push(format!("an ask costs at most ${:.2}", micro as f64 / 1e6));
        }
        said
    }

    pub(super) fn unbounded(&self, flow: &Flow, found: &Certificate) -> Vec<String> {
        let mut why = Vec::new();
        let too_much = |what: &str| format!("{what} come to more than can be counted: set lower limits");
        match self.ask_tokens {
            _ if found.tokens.is_some() => {}
            None => why.push(
                "nothing limits the tokens of an ask: set `--ask-tokens` or a budget of tokens".to_owned(),
            ),
            // Then it is said that nothing counts how often.
            Some(_) if found.endless => {}
            Some(_) => why.push(too_much("the tokens of all asks")),
        }
        if found.usd_micro.is_none() {
            let mut unknown: Vec<&str> = flow
                .steps
                .iter()
                .filter_map(|step| match &step.act {
                    Act::Ask(ask) if self.usd_of(flow, ask).is_none() => {
                        Some(self.model_of(flow, ask).map_or("the provider's own model", |model| &**model))
                    }
                    _ => None,
                })
                .collect();
            unknown.sort_unstable();
            unknown.dedup();
            if !unknown.is_empty() {
                why.push(format!(
                    "what an ask of {} costs is not known: set `--ask-usd`, a budget of money, or prices and `--ask-tokens`",
                    unknown.join(", ")
                ));
            } else if !found.endless {
                why.push(too_much("the costs of all asks"));
            }
        }
        why
    }
}

/// An amount, unless it is more than can be counted: it is not a bound then.
pub(super) fn countable(amount: u64) -> Option<u64> {
    (amount < u64::MAX).then_some(amount)
}
