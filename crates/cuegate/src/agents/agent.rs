//! The agent of a run: a provider that works on this machine, and its models.

use std::collections::BTreeMap;

use cuegate_engine::Budget;
use cuegate_flow::{
    Str,
    model::{Act, Ask, Flow, StepId, Tools},
};
use std::sync::Arc;

use cuegate_provider::{
    Capabilities, Fault, FaultClass, Inspection, Login, PreparedAsk, Provider, Request, Shared,
};

use crate::config::Config;
use crate::run::start_run::Program;
use crate::{Failure, models, providers};

/// The provider of a run, checked on this machine, with its models.
pub struct Agent {
    pub(crate) provider: Shared,
    /// The result of its self-check.
    pub inspection: Inspection,
    /// The model for all asks, as the provider names it.
    pub model: Option<String>,
    /// From model names in the definition to the provider's model names.
    pub(crate) models: BTreeMap<Str, String>,
    /// The model for asks that name none.
    pub(crate) default_model: Option<String>,
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

impl Agent {
    /// The agent of a run that calls none.
    pub(crate) fn none() -> Agent {
        Agent {
            provider: Arc::new(NoAgent),
            inspection: Inspection::default(),
            model: None,
            models: BTreeMap::new(),
            default_model: None,
        }
    }

    /// Finds a provider for a flow and checks its settings, program, login, models and prices, before any file is
    /// created.
    ///
    /// # Errors
    /// When one of them is missing, or a budget in dollars is set and a price is unknown.
    pub fn find(
        name: &str,
        script: Option<&(String, String)>,
        model: Option<&str>,
        flow: &Flow,
        budget: &Budget,
        program: &Program,
        config: &Config,
    ) -> Result<Agent, Failure> {
        let provider = providers::create_provider(name, script, program, config)?;
        let mapped = providers::model_map_of_provider(name, config);
        let (model, models) = match model {
            Some(model) => {
                let named = models::resolve_model(model, &*provider, mapped)
                    .ok_or_else(|| models::failure_of_unknown_model(model, name))?;
                (Some(named), BTreeMap::new())
            }
            None => (None, models::resolve_flow_models(flow, &*provider, mapped)?),
        };
        let inspection = provider.inspect();
        if let Some(problem) = inspection.problems.first() {
            return Err(Failure {
                message: problem.what.clone(),
                hint: Some(format!("{}; `cuegate doctor` shows details", problem.hint)),
                code: crate::exit::ENVIRONMENT,
            });
        }
        // The user's configuration takes precedence over the default model of the format.
        let configured = inspection.model.is_some();
        let default_model = flow
            .default_model
            .as_ref()
            .filter(|_| !configured && name != "scripted")
            .and_then(|name| models::resolve_model(name, &*provider, mapped));
        let agent = Agent { provider, inspection, model, models, default_model };
        if budget.usd_micro.is_some() || budget.ask_usd_micro.is_some() {
            agent.prices_known(flow)?;
        }
        Ok(agent)
    }

    /// Checks that every ask of the flow has a known price: a budget in dollars needs it.
    ///
    /// # Errors
    /// With the model whose price is missing.
    pub(crate) fn prices_known(&self, flow: &Flow) -> Result<(), Failure> {
        let asks = flow.steps.iter().filter_map(|step| match &step.act {
            Act::Ask(ask) => Some(ask),
            _ => None,
        });
        let named = asks.flat_map(Ask::models).map(|name| name.and_then(|name| self.models.get(name)));
        for model in named {
            let model = self
                .model
                .as_ref()
                .or(model)
                .or(self.default_model.as_ref())
                .or(self.inspection.model.as_ref());
            if !self.provider.is_priced(model.map(String::as_str)) {
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
        }
        Ok(())
    }

    /// The provider's names of the models in use; `None` if the provider chooses.
    pub fn models(&self) -> Option<String> {
        let mut names: Vec<&String> = self.model.iter().chain(self.models.values()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            names.extend(self.default_model.as_ref().or(self.inspection.model.as_ref()));
        }
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The model names of the flow for which the provider's default is used.
    fn foreign_tiers(&self, flow: &Flow) -> Vec<String> {
        if self.model.is_some() {
            return Vec::new();
        }
        let asks = flow.steps.iter().filter_map(|step| match &step.act {
            Act::Ask(ask) => Some(ask),
            _ => None,
        });
        let names = asks.flat_map(Ask::models).flatten().filter(|name| !self.models.contains_key(*name));
        let names: std::collections::BTreeSet<String> = names.map(|name| format!("`{name}`")).collect();
        names.into_iter().collect()
    }

    /// The features of the flow that the provider does not support, in words.
    pub fn cannot(&self, flow: &Flow) -> Vec<String> {
        let (who, can) = (self.provider.name(), self.provider.capabilities());
        let asks: Vec<_> = flow
            .steps
            .iter()
            .filter_map(|step| match &step.act {
                Act::Ask(ask) => Some((step, ask)),
                _ => None,
            })
            .collect();
        let names = |names: Vec<&str>| match names.as_slice() {
            [] => None,
            [first, .., _] if names.len() > 3 => {
                Some(format!("`{first}` and {} other steps", names.len() - 1))
            }
            names => Some(names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
        };
        let steps = |which: &dyn Fn(&cuegate_flow::model::Step<StepId>, &Ask) -> bool| {
            names(asks.iter().filter(|(step, ask)| which(step, ask)).map(|(step, _)| &*step.name).collect())
        };
        let mut cannot = Vec::new();
        let tiers = self.foreign_tiers(flow).join(", ");
        if !tiers.is_empty() {
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

    /// The agent settings that are loaded, in words.
    pub fn loads(&self) -> String {
        self.provider.loads()
    }

    /// Whether costs are notional because a subscription pays.
    pub fn is_notional(&self) -> bool {
        self.inspection.login == Login::Subscription
    }
}
