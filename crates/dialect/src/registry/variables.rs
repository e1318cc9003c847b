//! What a variable of a prompt means.

use cuegate_flow::{Fact, Param, Source, Str};

use super::gate::handoff_of;
use super::inputs::DeclaredInput;
use super::parameters::same_name;
use super::step::StepDefinition;
use super::verdict::Rule;

/// Everything that variables can mean in a registry.
pub(crate) struct Variables<'v, 'j> {
    /// Values given at start.
    pub(crate) params: &'v [Param],
    /// The label that `label_requirements` stands for.
    pub(crate) requirements_label: Option<&'j str>,
    /// The keyword that the verdict waits for.
    keyword: Option<Str>,
    /// The checks that the verdict counts.
    checks_max: Option<u32>,
    /// Data handed on, by the variable that reads it directly.
    handed_on: Vec<(String, Source)>,
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

impl<'v, 'j> Variables<'v, 'j> {
    /// The variables of a registry.
    pub(crate) fn new(
        params: &'v [Param],
        steps: &[StepDefinition<'j>],
        requirements_label: Option<&'j str>,
    ) -> Variables<'v, 'j> {
        let handed_on = steps
            .iter()
            .flat_map(|step| handoff_of(step).into_iter().map(move |left| (step.id, left)))
            .map(|(id, left)| {
                let source = Source::Handoff { step: id.into(), key: left.key.clone() };
                (variable_of(id, &left.key), source)
            })
            .collect();
        Variables { params, requirements_label, keyword: None, checks_max: None, handed_on }
    }

    /// With what prompts can say about a verdict; of several of a kind, about the first.
    pub(crate) fn of_verdict(mut self, rule: &Rule<'_>) -> Variables<'v, 'j> {
        match rule {
            Rule::Keyword(keyword) => self.keyword = self.keyword.or_else(|| Some((*keyword).into())),
            Rule::Checks(max) => self.checks_max = self.checks_max.or(Some(*max)),
            Rule::Composite(_, parts) => return parts.iter().fold(self, |all, part| all.of_verdict(part)),
            _ => {}
        }
        self
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
            "check_count" if self.checks_max.is_some() => return fact(Fact::Checks),
            _ => {}
        }
        match (name, &self.keyword, self.checks_max) {
            ("completion_keyword", Some(keyword), _) => return Meaning::Text(keyword.clone()),
            ("max_checks", _, Some(max)) => return Meaning::Text(max.to_string().into()),
            _ => {}
        }
        if let Some(label) = self.requirements_label.filter(|_| name == "label_requirements") {
            return Meaning::Text(label.into());
        }
        match self.handed_on.iter().find(|(variable, _)| variable == name) {
            Some((_, source)) if !matches!(scope, Scope::System) => Meaning::Value(source.clone()),
            _ => Meaning::Unknown,
        }
    }

    /// The names that can be meant, for hints.
    pub(crate) fn names(&self, scope: Scope<'_>) -> Vec<&str> {
        let mut names: Vec<&str> = self.params.iter().map(|param| &*param.name).collect();
        names.extend(["iteration", "completed_iterations", "max_iterations", "remaining", "task"]);
        names.extend(self.keyword.iter().map(|_| "completion_keyword"));
        names.extend(self.checks_max.iter().flat_map(|_| ["check_count", "max_checks"]));
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
