//! What is compared of a workflow: what its users feel, and nothing of how it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cuegate_engine::{AgentChoice, AgentPlan};
use cuegate_flow::{
    analysis::cost_bound::price_without_sensitivity,
    model::{Act, Ask, BlobRef, Flow, Permission, Tools, sandbox::SandboxRule},
};
use cuegate_view::show_json;
use serde_json::{Value, json};

use crate::Failure;
use crate::agents::plan_of_copy;
use crate::cli::commands::diagnostics::count_errors_and_warnings;
use crate::cli::commands::write::check::effects_of_definition;
use crate::cli::commands::{ProjectPlace, load_with_defaults};
use crate::config::Config;
use crate::run::limits::{ModelChoice, cost_terms_of_flow};

/// A workflow on one side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkflowFacts {
    pub(super) errors: usize,
    /// Limits, parameters, monitors and settings of the whole workflow, as `cuegate show --json` names them.
    pub(super) whole: BTreeMap<String, Value>,
    pub(super) steps: BTreeMap<String, StepFacts>,
    pub(super) sandbox: SandboxRule,
    /// What its runs do besides, such as a push or a label.
    pub(super) effects: BTreeSet<String>,
    pub(super) bound: Bound,
    /// The usual agent, if files of the project name it beside the settings.
    pub(super) usual: Option<AgentChoice>,
    /// The files that it was read from, by their digests.
    pub(super) files: BTreeMap<String, BlobRef>,
}

impl WorkflowFacts {
    /// The same without the names of a workflow before and after, which prompts may tell.
    pub(super) fn without_names(&self, before: &str, after: &str) -> WorkflowFacts {
        let mut facts = WorkflowFacts { files: BTreeMap::new(), ..self.clone() };
        for value in facts.steps.values_mut().flat_map(|step| step.facts.values_mut()) {
            if let Value::String(text) = value {
                *text = text.replace(before, "").replace(after, "");
            }
        }
        facts
    }
}

/// A step: its facts by name, as `cuegate show --json` has them, and its texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct StepFacts {
    pub(super) facts: BTreeMap<String, Value>,
    pub(super) permission: Option<Permission>,
    /// `None`: all.
    pub(super) tools: Option<Vec<String>>,
    /// The agent that it names.
    pub(super) agent: Option<String>,
    /// The shell commands that it runs.
    pub(super) commands: BTreeSet<String>,
    /// The agents that may answer it, where settings assign some to it.
    pub(super) assigned: Vec<AgentChoice>,
    /// The MCP servers of its agents, as JSON.
    pub(super) servers: BTreeSet<String>,
}

/// The most that a run can do and cost. `None`: without a bound in money or in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Bound {
    pub(super) calls: u64,
    pub(super) usd_micro: Option<u64>,
    pub(super) tokens: Option<u64>,
}

/// The workflows of a project, by name. `project` is the folder that those of `place` are a copy of.
pub(super) fn collect_workflows(
    place: &ProjectPlace,
    project: &Path,
    config: &Config,
) -> Result<BTreeMap<String, WorkflowFacts>, Failure> {
    let listed = crate::cli::commands::start::list::list_json(place);
    let mut found = BTreeMap::new();
    for one in listed["definitions"].as_array().into_iter().flatten() {
        if let (Some(name), "project") = (one["name"].as_str(), one["origin"].as_str().unwrap_or_default()) {
            found.insert(name.to_owned(), read_workflow(place, project, name, config)?);
        }
    }
    Ok(found)
}

fn read_workflow(
    place: &ProjectPlace,
    project: &Path,
    name: &str,
    config: &Config,
) -> Result<WorkflowFacts, Failure> {
    let definition = load_with_defaults(&place.locate(name)?, &[])?;
    let (errors, _) = count_errors_and_warnings(&definition.diagnostics, false);
    let mut facts = WorkflowFacts {
        errors,
        whole: BTreeMap::new(),
        steps: BTreeMap::new(),
        sandbox: SandboxRule::default(),
        effects: effects_of_definition(&definition).iter().map(|effect| effect.line()).collect(),
        bound: Bound::default(),
        usual: None,
        files: definition
            .files
            .iter()
            .map(|(path, bytes)| (path.clone(), BlobRef::for_bytes(bytes)))
            .collect(),
    };
    let Some(flow) = definition.flow.as_deref() else { return Ok(facts) };
    let shown = show_json(flow);
    for (key, value) in shown.as_object().into_iter().flatten() {
        // The name is how it is found; the steps are compared one by one.
        if !matches!(key.as_str(), "schema" | "name" | "steps") {
            facts.whole.insert(key.clone(), value.clone());
        }
    }
    facts.sandbox = flow.conduct.sandbox.clone();
    for (step, shown) in flow.steps.iter().zip(shown["steps"].as_array().into_iter().flatten()) {
        facts.steps.insert(step.name.to_string(), read_step(flow, step, shown));
    }
    // What runs is what the plan says, after all settings were read.
    let Ok((usual, planned)) = plan_of_copy(flow, place.home.root(), project, config) else {
        facts.errors += 1;
        return Ok(facts);
    };
    if config.run.provider.is_none() {
        facts.usual.clone_from(&usual);
    }
    for (name, step) in &mut facts.steps {
        add_plan(step, name, &planned.plan);
    }
    let provider = config.run.provider.as_ref().and_then(|chain| chain.0.first());
    let asked = ModelChoice {
        provider: provider.map(|choice| choice.agent.as_str()),
        model: provider.and_then(|choice| choice.model.as_deref()),
        plan: Some(&planned.plan),
    };
    let terms = cost_terms_of_flow(flow, asked, &config.budget.budget(), None, None, config);
    let found = price_without_sensitivity(flow, &terms);
    facts.bound = Bound { calls: found.asks, usd_micro: found.usd_micro, tokens: found.tokens };
    Ok(facts)
}

/// Whether settings assign other agents or servers to a workflow that is on both sides.
pub(super) fn have_other_plans(
    before: &BTreeMap<String, WorkflowFacts>,
    after: &BTreeMap<String, WorkflowFacts>,
) -> bool {
    before.iter().any(|(name, old)| {
        let Some(new) = after.get(name) else { return false };
        let differs = |(name, old): (&String, &StepFacts)| {
            let new = new.steps.get(name);
            new.is_some_and(|new| (&old.assigned, &old.servers) != (&new.assigned, &new.servers))
        };
        old.usual != new.usual || old.steps.iter().any(differs)
    })
}

/// What settings assign to a step.
fn add_plan(step: &mut StepFacts, name: &str, plan: &AgentPlan) {
    let own = plan.steps.get(name).into_iter().flatten();
    let later = plan.later.get(name).into_iter().flatten().flat_map(|(_, chain)| chain);
    let reports = plan.reports.get(name).into_iter().flatten();
    step.assigned = own.chain(later).chain(reports).cloned().collect();
    let servers = plan.tool_servers.get(name).into_iter().flatten();
    step.servers = servers.map(|server| json!(server).to_string()).collect();
}

fn read_step(
    flow: &Flow,
    step: &cuegate_flow::model::Step<cuegate_flow::model::StepId>,
    shown: &Value,
) -> StepFacts {
    let mut facts: BTreeMap<String, Value> = BTreeMap::new();
    for (key, value) in shown.as_object().into_iter().flatten() {
        // Where it is written, how many lines a text has, and what is compared by itself.
        if !matches!(
            key.as_str(),
            "name" | "prompt" | "system" | "schema" | "question" | "permission" | "tools" | "commands"
        ) {
            facts.insert(key.clone(), value.clone());
        }
    }
    let mut text = |key: &str, text: String| facts.insert(key.to_owned(), text.into());
    let asks = match &step.act {
        Act::Ask(ask) => {
            text("prompt", format!("{:?}", ask.prompt));
            text("system prompt", format!("{:?}", ask.system));
            let schema = ask.schema.map(|schema| flow.schema(schema).value().clone());
            text("answer schema", json!(schema).to_string());
            true
        }
        Act::Person { question } => {
            text("question", format!("{question:?}"));
            false
        }
        _ => false,
    };
    let commands = match &step.act {
        Act::Exec { commands } => commands.iter().map(|command| command.command.to_string()).collect(),
        Act::Ask(Ask { guard: Some(guard), .. }) => {
            guard.commands.iter().map(|command| command.validator.command.to_string()).collect()
        }
        _ => BTreeSet::new(),
    };
    let agent = match &step.act {
        Act::Ask(ask) => ask.agent_keys.agent.as_ref().map(ToString::to_string),
        _ => None,
    };
    StepFacts {
        agent,
        commands,
        assigned: Vec::new(),
        servers: BTreeSet::new(),
        facts,
        permission: asks.then_some(step.boundary.permission),
        tools: match &step.boundary.tools {
            Tools::All => None,
            Tools::Only(names) => Some(names.iter().map(ToString::to_string).collect()),
        },
    }
}
