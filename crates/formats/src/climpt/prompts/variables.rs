//! What a variable of a prompt means.

use std::borrow::Cow;
use std::collections::HashMap;

use cuegate_flow::{
    Str,
    model::{Fact, Param, Source},
};

use super::verdict_variables::Told;
use crate::climpt::agent::parameters::spelled;
use crate::climpt::registry::gate_lowering::handoff_of;
use crate::climpt::registry::generation::Generation;
use crate::climpt::registry::inputs::DeclaredInput;
use crate::climpt::registry::step_definition::StepDefinition;

/// Everything that variables can mean in a registry.
pub(crate) struct Variables<'v> {
    /// Values given at start.
    pub(crate) params: &'v [Param],
    /// What the definition itself tells.
    told: &'v Told,
    /// Data handed on, by the variable that reads it directly.
    handed_on: Vec<(String, Source)>,
    /// How the variables begin of what steps hand on that could not be read.
    lost: Vec<String>,
    /// Where each of these variables stands first among them.
    places: HashMap<String, usize>,
    /// Where each parameter stands, however it is spelled.
    by_name: HashMap<Cow<'v, str>, usize>,
}

/// Where a prompt is used, which decides what it can read.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'s> {
    /// The prompt of a step that declares these inputs.
    Step(Inputs<'s>),
    /// A failure prompt; what all the steps declare that it can stand in for.
    Remedy(Inputs<'s>),
    /// The system prompt: told before anything has happened.
    System,
}

/// What a step declares as inputs, by the variables that read it.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'s> {
    /// The inputs, in their order.
    pub(crate) all: &'s [DeclaredInput],
    /// Where the first stands that each variable reads; of a few they are looked at one by one.
    places: Option<&'s HashMap<&'s str, usize>>,
}

impl<'s> Inputs<'s> {
    /// A few inputs; of many see [`Inputs::with`].
    pub(crate) fn few(all: &'s [DeclaredInput]) -> Inputs<'s> {
        Inputs { all, places: None }
    }

    /// Does something with inputs that are found at once however many there are.
    pub(crate) fn with<T>(all: &[DeclaredInput], use_them: impl FnOnce(Inputs<'_>) -> T) -> T {
        if all.len() <= FEW {
            return use_them(Inputs::few(all));
        }
        let mut places = HashMap::new();
        for (at, declared) in all.iter().enumerate() {
            places.entry(&*declared.input.name).or_insert(at);
            places.entry(declared.variable.as_str()).or_insert(at);
        }
        use_them(Inputs { all, places: Some(&places) })
    }

    /// The first that a variable reads.
    fn find(self, name: &str) -> Option<&'s DeclaredInput> {
        match self.places {
            Some(places) => places.get(name).map(|at| &self.all[*at]),
            None => self.all.iter().find(|known| *known.input.name == *name || known.variable == name),
        }
    }
}

/// So many inputs are looked at one by one.
const FEW: usize = 16;

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
    pub(crate) fn new(
        params: &'v [Param],
        (steps, unread): (&[StepDefinition<'_>], &[&str]),
        told: &'v Told,
    ) -> Variables<'v> {
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
        let mut by_name = HashMap::new();
        for (at, param) in params.iter().enumerate() {
            by_name.entry(spelled(&param.name)).or_insert(at);
        }
        // What a step hands on that could not be read, nobody knows.
        let is_lost = |step: &&StepDefinition<'_>| match &step.gate {
            Some(gate) => gate.handoff_misread,
            None => step.generation == Generation::Complete && !step.section,
        };
        let lost = steps.iter().filter(is_lost).map(|step| step.id).chain(unread.iter().copied());
        let lost = lost.map(|step| variable_of(step, "")).collect();
        Variables { params, told, handed_on, lost, places, by_name }
    }

    /// What a variable means at a place. What is declared wins over what the engine knows, as in the original.
    pub(crate) fn meaning(&self, name: &str, scope: Scope<'_>) -> Meaning {
        let inputs = match scope {
            Scope::Step(inputs) | Scope::Remedy(inputs) => Some(inputs),
            Scope::System => None,
        };
        if let Some(declared) = inputs.and_then(|inputs| inputs.find(name)) {
            return Meaning::Value(Source::Input(declared.input.name.clone()));
        }
        if let Some(param) = self.by_name.get(&spelled(name)).map(|at| &self.params[*at]) {
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
            None if self.lost.iter().any(|step| name.starts_with(step.as_str())) => Meaning::Text("".into()),
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
