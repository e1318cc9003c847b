//! One agent of a run: a provider that works on this machine, and its models.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_flow::{
    Str,
    model::{Ask, Flow, Step, StepId, Tools},
};
use cuegate_provider::{
    Capabilities, Fault, FaultClass, Inspection, Login, PreparedAsk, Provider, Request, Shared,
};
use cuegate_runner::CalledAgent;

use super::planned_calls::PlannedCall;
use crate::config::Config;
use crate::{Failure, Program, models, providers};

/// An agent of a run, inspected on this machine, with its models.
pub struct Agent {
    pub(crate) provider: Shared,
    /// The result of its self-check.
    pub inspection: Inspection,
    /// The model for all its calls, as the provider names it.
    pub model: Option<String>,
    /// From model names in the definition and in settings to the provider's model names.
    models: BTreeMap<Str, String>,
    /// The model for calls that name none.
    default_model: Option<String>,
    /// The names of models in the definition for which its default is used.
    foreign_tiers: Vec<String>,
}

/// The agent of a run that only has effects left to do.
struct NoAgent;

impl Provider for NoAgent {
    fn name(&self) -> &str {
        "none"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn map_model_name(&self, _name: &str) -> Option<String> {
        None
    }

    fn inspect(&self) -> Inspection {
        Inspection::default()
    }

    fn loads(&self) -> String {
        String::new()
    }

    fn restore(&self, _receipts: &[String]) {}

    fn prepare(&self, _request: &Request) -> Result<PreparedAsk, Fault> {
        Err(Fault::new(FaultClass::Refused, "this run is over: it calls no agent"))
    }
}

/// What an agent is made from.
pub(super) struct AgentInputs<'a> {
    pub(super) name: &'a str,
    pub(super) script: Option<&'a (String, String)>,
    /// A model for all its calls, as the user names it.
    pub(super) model: Option<&'a str>,
    pub(super) flow: &'a Flow,
    pub(super) program: &'a Program,
    pub(super) config: &'a Config,
}

impl Agent {
    /// The agent of a run that calls none.
    pub(super) fn none() -> Agent {
        Agent {
            provider: Arc::new(NoAgent),
            inspection: Inspection::default(),
            model: None,
            models: BTreeMap::new(),
            default_model: None,
            foreign_tiers: Vec::new(),
        }
    }

    /// Creates an agent for its calls and inspects it. Whether it works here is for the caller to judge.
    ///
    /// # Errors
    /// When its settings are invalid, or it does not know a model.
    pub(super) fn create(inputs: &AgentInputs<'_>, calls: &[&PlannedCall<'_>]) -> Result<Agent, Failure> {
        let AgentInputs { name, script, model, flow, program, config } = *inputs;
        let provider = providers::create_provider(name, script, program, config)?;
        let mapped = providers::model_map_of_provider(name, config);
        let resolve = |named: &str| {
            models::resolve_model(named, &*provider, mapped)
                .ok_or_else(|| models::failure_of_unknown_model(named, name))
        };
        let (mut known, mut foreign) = (BTreeMap::new(), Vec::new());
        for call in calls {
            if let Some(chosen) = &call.choice.model {
                known.insert(Str::from(chosen.as_str()), resolve(chosen)?);
                continue;
            }
            for named in call.ask.models().flatten().filter(|_| model.is_none()) {
                if models::is_foreign_tier(named, &*provider, mapped) {
                    foreign.push(format!("`{named}`"));
                    continue;
                }
                let resolved = resolve(named).map_err(|Failure { message, hint, code }| Failure {
                    message: format!("step `{}`: {message}", call.step.name),
                    hint,
                    code,
                })?;
                known.insert(named.clone(), resolved);
            }
        }
        foreign.sort_unstable();
        foreign.dedup();
        let inspection = provider.inspect();
        // The user's configuration takes precedence over the default model of the format.
        let configured = inspection.model.is_some();
        let default_model = flow
            .default_model
            .as_ref()
            .filter(|_| !configured && name != "scripted")
            .and_then(|named| models::resolve_model(named, &*provider, mapped));
        let model = model.map(resolve).transpose()?;
        let agent =
            Agent { provider, inspection, model, models: known, default_model, foreign_tiers: foreign };
        let is_unnamed = |call: &&&PlannedCall<'_>| agent.models_of_call(call).iter().any(Option::is_none);
        if let Some(call) = calls.iter().find(is_unnamed).filter(|_| agent.provider.needs_model()) {
            return Err(Failure::usage(
                format!(
                    "no model of {name} is named for `{}`: without one it calls a hosted model",
                    call.step.name
                ),
                format!(
                    "name one with `{name}:MODEL`, `--model`, or `model` in `[providers.{name}]` of cuegate.toml"
                ),
            ));
        }
        Ok(agent)
    }

    /// Why it does not work on this machine.
    pub(super) fn problem(&self) -> Option<Failure> {
        self.inspection.problems.first().map(|problem| Failure {
            message: problem.what.clone(),
            hint: Some(format!("{}; `cuegate doctor` shows details", problem.hint)),
            code: crate::exit::ENVIRONMENT,
        })
    }

    /// Its names of the models that may answer a call; `None` where it chooses itself.
    fn models_of_call(&self, call: &PlannedCall<'_>) -> Vec<Option<String>> {
        let default = || self.default_model.clone().or_else(|| self.inspection.model.clone());
        if let Some(chosen) = &call.choice.model {
            return vec![self.models.get(chosen.as_str()).cloned().or_else(default)];
        }
        if let Some(model) = &self.model {
            return vec![Some(model.clone())];
        }
        let named = call.ask.models();
        named.map(|name| name.and_then(|name| self.models.get(name)).cloned().or_else(default)).collect()
    }

    /// Checks that every call has a known price: a budget in dollars needs it.
    ///
    /// # Errors
    /// With the model whose price is missing.
    pub(super) fn prices_known(&self, calls: &[&PlannedCall<'_>]) -> Result<(), Failure> {
        for model in calls.iter().flat_map(|call| self.models_of_call(call)) {
            if self.provider.is_priced(model.as_deref()) {
                continue;
            }
            let who = self.provider.name();
            let (what, key) = match model {
                Some(model) => (format!("the price of `{model}`"), format!("[prices.\"{model}\"]")),
                None => {
                    ("the price of its default model".to_owned(), "a model and [prices.\"…\"]".to_owned())
                }
            };
            return Err(Failure::usage(
                format!(
                    "a budget in dollars cannot be enforced: {who} reports no costs, and {what} is unknown"
                ),
                format!(
                    "add {key} with `input` and `output` in US dollars per million tokens to cuegate.toml, or use `--budget-tokens`"
                ),
            ));
        }
        Ok(())
    }

    /// The provider's names of the models in its calls; `None` if the provider chooses.
    pub(super) fn models(&self, calls: &[&PlannedCall<'_>]) -> Option<String> {
        let names = calls.iter().flat_map(|call| self.models_of_call(call)).flatten();
        let names: std::collections::BTreeSet<String> = names.collect();
        let names: Vec<String> = names.into_iter().collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The features of the flow that it does not support in its calls, in words.
    pub(super) fn cannot(&self, flow: &Flow, calls: &[&PlannedCall<'_>]) -> Vec<String> {
        let (who, can) = (self.provider.name(), self.provider.capabilities());
        let steps = |which: &dyn Fn(&Step<StepId>, &Ask) -> bool| {
            let found = calls.iter().filter(|call| which(call.step, call.ask)).map(|call| &*call.step.name);
            name_steps(found.collect())
        };
        let mut cannot = Vec::new();
        let asked = calls.iter().filter(|call| call.choice.effort.is_some()).map(|call| &*call.step.name);
        if !self.provider.takes_effort()
            && let Some(steps) = name_steps(asked.collect())
        {
            cannot.push(format!("{who} has no setting of effort: it is not passed on for {steps}"));
        }
        if !self.foreign_tiers.is_empty() {
            let tiers = self.foreign_tiers.join(", ");
            cannot.push(format!("{who} has no model {tiers}: its default is used (`--model` names another)"));
        }
        if !can.edits
            && let Some(steps) = steps(&|step, _| step.boundary.permission.may_write())
        {
            cannot.push(format!("{who} cannot edit files: {steps} may edit, but can only answer"));
        }
        if !can.tools
            && let Some(steps) = steps(&|step, _| step.boundary.tools != Tools::All)
        {
            cannot.push(format!("{who} cannot enforce the tool list of {steps}"));
        }
        let unenforced =
            |ask: &Ask| ask.schema.is_some_and(|schema| !self.provider.holds(flow.schema(schema).value()));
        if let Some(steps) = steps(&|_, ask| unenforced(ask)) {
            cannot
                .push(format!("{who} cannot enforce the schema of {steps}: the prompt contains it instead"));
        }
        cannot
    }

    /// Whether its costs are notional because a subscription pays.
    pub(super) fn is_notional(&self) -> bool {
        self.inspection.login == Login::Subscription
    }

    pub(super) fn into_called(self) -> CalledAgent {
        let Agent { provider, model, models, default_model, .. } = self;
        CalledAgent { provider, model, models, default_model, effort: None }
    }
}

/// Some steps, in words.
pub(super) fn name_steps(mut names: Vec<&str>) -> Option<String> {
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    match names.as_slice() {
        [] => None,
        [first, .., _] if names.len() > 3 => Some(format!("`{first}` and {} other steps", names.len() - 1)),
        names => Some(names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}
