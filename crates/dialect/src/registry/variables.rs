//! What a variable of a prompt means.

use std::collections::HashMap;

use cuegate_flow::{Fact, Param, Source, Str};

use super::gate::handoff_of;
use super::inputs::DeclaredInput;
use super::parameters::same_name;
use super::step::StepDefinition;
use super::told::Told;

/// Everything that variables can mean in a registry.
pub(crate) struct Variables<'v> {
    /// Values given at start.
    pub(crate) params: &'v [Param],
    /// What the definition itself tells.
    told: &'v Told,
    /// Data handed on, by the variable that reads it directly.
    handed_on: Vec<(String, Source)>,
    /// Where each of these variables stands first among them.
    places: HashMap<String, usize>,
}

/// Where a prompt is used, which decides what it can read.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'s> {
    /// The prompt of a step that declares these inputs.
    Step(&'s [DeclaredInput]),
    /// A failure prompt; what all the steps declare that it can stand in for.
    Remedy(&'s [DeclaredInput]),
    /// The system prompt: told before anything has happened.
    System,
}

/// What a variable means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A value of the run.
    Value(Source),
    /// A text that the definition gives itself.
    Text(Str),
    /// Nothing that is known here.
    Unknown,
}

impl<'v> Variables<'v> {
    /// The variables of a registry.
    pub(crate) fn new(params: &'v [Param], steps: &[StepDefinition<'_>], told: &'v Told) -> Variables<'v> {
        let handed_on: Vec<(String, Source)> = steps
            .iter()
            .flat_map(|step| handoff_of(step).into_iter().map(move |left| (step.id, left)))
            .map(|(id, left)| {
                let source = Source::Handoff { step: id.into(), key: left.key.clone() };
                (variable_of(id, &left.key), source)
            })
            .collect();
        let mut places = HashMap::new();
        for (at, (variable, _)) in handed_on.iter().enumerate() {
            places.entry(variable.clone()).or_insert(at);
        }
        Variables { params, told, handed_on, places }
    }

    /// What a variable means at a place. What is declared wins over what the engine knows, as in the original.
    pub(crate) fn meaning(&self, name: &str, scope: Scope<'_>) -> Meaning {
        let inputs = match scope {
            Scope::Step(inputs) | Scope::Remedy(inputs) => inputs,
            Scope::System => &[],
        };
        if let Some(declared) =
            inputs.iter().find(|known| *known.input.name == *name || known.variable == name)
        {
            return Meaning::Value(Source::Input(declared.input.name.clone()));
        }
        if let Some(param) = self.params.iter().find(|param| same_name(&param.name, name)) {
            return Meaning::Value(Source::Param(param.name.clone()));
        }
        let fact = |fact| Meaning::Value(Source::Fact(fact));
        match name {
            "iteration" => return fact(Fact::Iteration),
            "completed_iterations" => return fact(Fact::CompletedIterations),
            "max_iterations" => return fact(Fact::MaxIterations),
            "remaining" => return fact(Fact::Remaining),
            "previous_summary" if !matches!(scope, Scope::System) => return fact(Fact::PreviousSummary),
            "task" => return Meaning::Value(Source::Task),
            "check_count" if self.told.iter().any(|(known, _)| *known == "max_checks") => {
                return fact(Fact::Checks);
            }
            _ => {}
        }
        if let Some((_, text)) = self.told.iter().find(|(known, _)| *known == name) {
            return Meaning::Text(text.clone());
        }
        match self.places.get(name).map(|at| &self.handed_on[*at]) {
            Some((_, source)) if !matches!(scope, Scope::System) => Meaning::Value(source.clone()),
            _ => Meaning::Unknown,
        }
    }

    /// The names that can be meant, for hints.
    pub(crate) fn names(&self, scope: Scope<'_>) -> Vec<&str> {
        let mut names: Vec<&str> = self.params.iter().map(|param| &*param.name).collect();
        names.extend(["iteration", "completed_iterations", "max_iterations", "remaining", "task"]);
        names.extend(self.told.iter().map(|(name, _)| *name));
        if self.told.iter().any(|(known, _)| *known == "max_checks") {
            names.push("check_count");
        }
        if !matches!(scope, Scope::System) {
            names.push("previous_summary");
            names.extend(self.handed_on.iter().map(|(name, _)| name.as_str()));
        }
        names
    }
}

/// The variable that reads what a step handed on: `initial_issue_approach`.
pub(crate) fn variable_of(step: &str, key: &str) -> String {
    format!("{step}_{key}").replace('.', "_")
}
