//! Resolves the variables of a prompt.

use crate::climpt::registry::inputs::variable_of;
use std::borrow::Cow;
use std::collections::HashMap;

use cuegate_flow::{
    Str,
    model::{Fact, Param, Source},
};

use crate::climpt::agent::parameters::normalize_variable_name;
use crate::climpt::generation::Generation;
use crate::climpt::registry::gate_lowering::handoff_of;
use crate::climpt::registry::inputs::DeclaredInput;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::climpt::verdict_variables::VerdictVariables;

/// All variables of a registry.
pub(crate) struct Variables<'v> {
    /// Values given at start.
    pub(crate) params: &'v [Param],
    /// Values that the definition itself provides.
    told: &'v VerdictVariables,
    /// Handoff values, by the variable that reads them directly.
    handed_on: Vec<(String, Source)>,
    /// The variable prefixes of steps whose handoff values could not be read.
    lost: Vec<String>,
    /// The first position of each of these variables.
    places: HashMap<String, usize>,
    /// The position of each parameter, by its normalized spelling.
    by_name: HashMap<Cow<'v, str>, usize>,
}

/// The place where a prompt is used, which decides what it can read.
#[derive(Clone, Copy)]
pub(crate) enum PromptScope<'s> {
    /// The prompt of a step that declares these inputs.
    Step(Inputs<'s>),
    /// A failure prompt, with the inputs common to all steps that may be asked with it.
    Remedy(Inputs<'s>),
    /// The system prompt, which is used before any step has run.
    System,
}

/// The inputs of a step, by the variables that read them.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'s> {
    /// The inputs, in their order.
    pub(crate) all: &'s [DeclaredInput],
    /// The first position by variable; absent for short lists, which are scanned.
    places: Option<&'s HashMap<&'s str, usize>>,
}

impl<'s> Inputs<'s> {
    /// Inputs without an index, for short lists; see [`Inputs::with`] for long ones.
    pub(crate) fn few(all: &'s [DeclaredInput]) -> Inputs<'s> {
        Inputs { all, places: None }
    }

    /// Calls a function with indexed inputs, so that lookup is fast for long lists.
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

    /// The first input that a variable reads.
    fn find(self, name: &str) -> Option<&'s DeclaredInput> {
        match self.places {
            Some(places) => places.get(name).map(|at| &self.all[*at]),
            None => self.all.iter().find(|known| *known.input.name == *name || known.variable == name),
        }
    }
}

/// The maximum number of inputs to scan without an index.
const FEW: usize = 16;

/// The meaning of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A value of the run.
    Value(Source),
    /// A text of the definition itself.
    Text(Str),
    /// Undefined.
    Unknown,
}

impl<'v> Variables<'v> {
    /// The variables of a registry.
    pub(crate) fn new(
        params: &'v [Param],
        (steps, unread): (&[StepDefinition<'_>], &[&str]),
        told: &'v VerdictVariables,
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
            by_name.entry(normalize_variable_name(&param.name)).or_insert(at);
        }
        // Unreadable handoff values of a step are unknown.
        let is_lost = |step: &&StepDefinition<'_>| match &step.gate {
            Some(gate) => gate.handoff_misread,
            None => step.generation == Generation::Complete && !step.section,
        };
        let lost = steps.iter().filter(is_lost).map(|step| step.id).chain(unread.iter().copied());
        let lost = lost.map(|step| variable_of(step, "")).collect();
        Variables { params, told, handed_on, lost, places, by_name }
    }

    /// Resolves a variable at a place. Declared variables take precedence over built-in ones, as in the original
    /// program.
    pub(crate) fn meaning(&self, name: &str, scope: PromptScope<'_>) -> Meaning {
        let inputs = match scope {
            PromptScope::Step(inputs) | PromptScope::Remedy(inputs) => Some(inputs),
            PromptScope::System => None,
        };
        if let Some(declared) = inputs.and_then(|inputs| inputs.find(name)) {
            return Meaning::Value(Source::Input(declared.input.name.clone()));
        }
        if let Some(param) = self.by_name.get(&normalize_variable_name(name)).map(|at| &self.params[*at]) {
            return Meaning::Value(Source::Param(param.name.clone()));
        }
        let fact = |fact| Meaning::Value(Source::Fact(fact));
        match name {
            "iteration" => return fact(Fact::Iteration),
            "completed_iterations" => return fact(Fact::CompletedIterations),
            "max_iterations" => return fact(Fact::MaxIterations),
            "remaining" => return fact(Fact::Remaining),
            "previous_summary" if !matches!(scope, PromptScope::System) => {
                return fact(Fact::PreviousSummary);
            }
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
            Some((_, source)) if !matches!(scope, PromptScope::System) => Meaning::Value(source.clone()),
            None if self.lost.iter().any(|step| name.starts_with(step.as_str())) => Meaning::Text("".into()),
            _ => Meaning::Unknown,
        }
    }

    /// The readable names, for hints.
    pub(crate) fn names(&self, scope: PromptScope<'_>) -> Vec<&str> {
        let mut names: Vec<&str> = self.params.iter().map(|param| &*param.name).collect();
        names.extend(["iteration", "completed_iterations", "max_iterations", "remaining", "task"]);
        names.extend(self.told.iter().map(|(name, _)| *name));
        if self.told.iter().any(|(known, _)| *known == "max_checks") {
            names.push("check_count");
        }
        if !matches!(scope, PromptScope::System) {
            names.push("previous_summary");
            names.extend(self.handed_on.iter().map(|(name, _)| name.as_str()));
        }
        names
    }
}
