//! An agent that a run calls, with its names of the models.

use std::collections::BTreeMap;

use cuegate_engine::{AgentChoice, AskCommand};
use cuegate_flow::Str;
use cuegate_provider as provider;

/// An agent that a run calls.
#[derive(Clone)]
pub struct CalledAgent {
    /// How it is called.
    pub provider: provider::Shared,
    /// Its name of a model that replaces the definition's in all its calls.
    pub model: Option<String>,
    /// Maps names of models in the definition and in settings to its own.
    pub models: BTreeMap<Str, String>,
    /// The model of calls that name none; `None`: the agent's default.
    pub default_model: Option<String>,
    /// The effort of calls for which no agent is chosen.
    pub effort: Option<String>,
}

impl CalledAgent {
    /// Its name of the model of a call: that of the settings for this call, that for all calls, the definition's, the
    /// default.
    pub(super) fn model_of_call(&self, command: &AskCommand) -> Option<String> {
        let chosen = command.agent.as_ref().and_then(|choice| choice.model.as_deref());
        if let Some(chosen) = chosen {
            return Some(self.models.get(chosen).map_or_else(|| chosen.to_owned(), Clone::clone));
        }
        let named = command.model.as_ref();
        self.model.clone().or_else(|| self.models.get(named?).cloned()).or_else(|| self.default_model.clone())
    }
}

impl CalledAgent {
    /// How much the model of a call thinks.
    pub(super) fn effort_of_call(&self, command: &AskCommand) -> Option<String> {
        command.agent.as_ref().map_or_else(|| self.effort.clone(), |choice| choice.effort.clone())
    }
}

/// The agents that a run calls.
#[derive(Clone)]
pub struct CalledAgents {
    /// The usual one.
    pub usual: CalledAgent,
    /// The others, by name.
    pub others: BTreeMap<String, CalledAgent>,
    /// The servers whose tools the agents get, by step.
    pub tool_servers: BTreeMap<Str, Vec<provider::McpServer>>,
}

impl CalledAgents {
    /// The agent of a call; `None` if the run does not have it.
    pub(super) fn agent_of_call(&self, choice: Option<&AgentChoice>) -> Option<&CalledAgent> {
        match choice {
            Some(choice) if choice.agent != self.usual.provider.name() => self.others.get(&choice.agent),
            _ => Some(&self.usual),
        }
    }

    /// The agents as they are in a sandbox.
    pub(super) fn in_sandbox(mut self) -> CalledAgents {
        for agent in std::iter::once(&mut self.usual).chain(self.others.values_mut()) {
            if let Some(sandboxed) = agent.provider.in_sandbox() {
                agent.provider = sandboxed;
            }
        }
        self
    }
}
