//! Puts validators between a closure step's `closing` or `complete` and the end of the run.

use crate::climpt::registry::validation_definition::validators_of;
use std::collections::{HashMap, HashSet};

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{
        Act, Counter, CounterId, Draft, Edge, EdgeBound, Ending, Gate, LimitKey, LimitTarget, Name, Outcome,
        Source, Step, Target, Validator,
    },
};

use super::command_values::with_values;
use super::failure_texts;
use super::failure_values::{FailureInstruction, ValidatorUse, report_unused};
use crate::climpt::agent::parameters::same_name;
use crate::climpt::agent::permission_mode::is_too_weak;
use crate::climpt::generation::Generation;
use crate::climpt::prompts::compile::{Prompt, PromptCompiler};
use crate::climpt::prompts::files::{PromptKey, Search};
use crate::climpt::prompts::front_matter::PromptUser;
use crate::climpt::prompts::step_prompt::is_blank;
use crate::climpt::prompts::variables::{Inputs, PromptScope};
use crate::climpt::registry::definition::RegistryDefinition;
use crate::climpt::registry::gate_lowering::outcome_of_intent;
use crate::climpt::registry::index::StepIndex;
use crate::climpt::registry::inputs::DeclaredInput;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::climpt::registry::validation_definition::{
    FailurePattern, OnFailure, ValidationStep, ValidatorDefinition,
};
use crate::codes;
use crate::suggest::{find_nearest_name, or_hint, quote_names};

/// After how long a validator is killed: 10 minutes. The documents name no limit, and a command without one can
/// hold a run for ever; the slowest test suites that agents are given finish within it.
const TIMEOUT_MS: u64 = 10 * 60 * 1000;

/// What lowering validators needs.
pub(crate) struct Validations<'v, 'c, 'f, 'j> {
    pub(crate) registry: &'v RegistryDefinition<'j>,
    pub(crate) compiler: &'v PromptCompiler<'c, 'f, 'j>,
    /// The inputs of each step, by its name.
    pub(crate) inputs: &'v [(&'j str, Vec<DeclaredInput>)],
    /// The steps that some way of running the registry enters first.
    pub(crate) entries: &'v [&'j str],
    /// Whether it is certain what each step may do.
    pub(crate) is_agent_known: bool,
}

/// The steps of a draft as its validators are asked for: looked at once, as each closure step asks. What validators add
/// to a draft hands nothing off.
struct HandoffSources {
    /// Where each step stands.
    places: HashMap<Str, usize>,
    /// By a step, those that hand off to it, in the order of the draft.
    hand_off: HashMap<Str, Vec<Str>>,
}

impl HandoffSources {
    fn of(draft: &Draft) -> HandoffSources {
        let (mut places, mut hand_off) = (HashMap::new(), HashMap::<Str, Vec<Str>>::new());
        for (at, step) in draft.steps.iter().enumerate() {
            places.entry(step.name.clone()).or_insert(at);
            for to in step
                .edges
                .iter()
                .filter(|edge| edge.hands_off)
                .flat_map(|edge| step_names_of_target(&edge.to))
            {
                let from = hand_off.entry(to.text.clone()).or_default();
                if from.last() != Some(&step.name) {
                    from.push(step.name.clone());
                }
            }
        }
        HandoffSources { places, hand_off }
    }
}

/// A validator with all that belongs to it.
struct ValidatorCondition<'v, 'j> {
    validator: &'v ValidatorDefinition<'j>,
    pattern: Option<&'v FailurePattern<'j>>,
}

impl<'v, 'j> Validations<'v, '_, '_, 'j> {
    pub(crate) fn push(&self, finding: Diagnostic) {
        self.compiler.loader.found.push(finding);
    }

    pub(crate) fn step(&self, id: &str) -> Option<&'v StepDefinition<'j>> {
        self.compiler.index.place(id).map(|at| &self.registry.steps[at])
    }

    /// Adds to a draft, for each closure step with validators, the step that runs them.
    pub(crate) fn lower(&self, draft: &mut Draft) {
        let patterns = StepIndex::of(self.registry.patterns.iter().map(|pattern| pattern.name));
        for validator in &self.registry.validators {
            self.check_pattern(validator, &patterns);
        }
        let mut uses = Vec::new();
        let ways = HandoffSources::of(draft);
        for validation in &self.registry.validations {
            match self.closure_of(validation) {
                Some(closure) => self.lower_one(validation, closure, (&mut *draft, &ways), &mut uses),
                None => uses.extend(self.conditions(validation).iter().map(|condition| ValidatorUse {
                    validator: condition.validator,
                    asked: FailureInstruction::Unknown,
                })),
            }
        }
        report_unused(self.registry, &uses, &self.compiler.loader.found);
    }

    fn lower_one(
        &self,
        validation: &ValidationStep<'j>,
        closure: &'v StepDefinition<'j>,
        (draft, ways): (&mut Draft, &HandoffSources),
        uses: &mut Vec<ValidatorUse<'v, 'j>>,
    ) {
        let conditions: Vec<ValidatorCondition<'v, 'j>> = self.conditions(validation);
        if conditions.is_empty() {
            return;
        }
        let name = validators_of(validation.id);
        let Some(boundary) = redirect_closing(draft, ways, validation, self.registry.generation, &name)
        else {
            return;
        };
        let origins = self.origins(validation, ways);
        let counter = CounterId(draft.counters.len() as u32);
        let counted = matches!(validation.on_failure, OnFailure::Retry(1..));
        if counted {
            draft.counters.push(Counter { name: format!("{} attempts", validation.id).into() });
            self.check_origins(validation, &origins, (draft, ways));
            if let OnFailure::Retry(max) = validation.on_failure {
                let span = validation.attempts_span.unwrap_or(validation.span);
                draft.keys.push(LimitKey::new("maxAttempts", span, max, 0, LimitTarget::Counter(counter)));
            }
        }
        let mut found_by = Vec::new();
        let mut edges = vec![Edge::new(Outcome::Pass, Target::End(Ending::Completed), validation.span)];
        for (index, condition) in conditions.iter().enumerate() {
            let on = Outcome::Fail(index as u16);
            let mut asked = FailureInstruction::Nothing;
            if let OnFailure::Retry(max @ 1..) = validation.on_failure {
                let remedy;
                (remedy, asked) = match self.remedy(validation, closure, condition, &origins) {
                    Some((prompt, by)) => {
                        found_by.push(by);
                        // Of one without a text it has been said that it has none.
                        let asked = match prompt.malformed || is_blank(&prompt.template) {
                            true => FailureInstruction::Unknown,
                            false => FailureInstruction::Prompt(prompt.failure_values),
                        };
                        (Some(prompt.template), asked)
                    }
                    None => (None, FailureInstruction::Unknown),
                };
                edges.push(Edge {
                    bound: Some(EdgeBound { counter, max }),
                    remedy,
                    ..Edge::new(on.clone(), Target::Origin { among: origins.clone() }, validation.span)
                });
            }
            uses.push(ValidatorUse { validator: condition.validator, asked });
            let to = Target::End(ending_of_failure(validation.on_failure, condition.validator.name));
            edges.push(Edge::new(on, to, validation.span));
        }
        self.check_place(validation, &found_by);
        let title =
            validation.name.map_or_else(|| format!("validators of `{}`", validation.id), str::to_owned);
        draft.steps.push(Step {
            name: name.into(),
            title: title.into(),
            span: validation.span,
            counts: false,
            act: Act::Exec {
                commands: conditions
                    .iter()
                    .map(|condition| self.command(condition.validator, draft))
                    .collect(),
            },
            gate: Gate::Exit,
            boundary,
            handoff: Vec::new(),
            inputs: Vec::new(),
            selectors: Vec::new(),
            when: None,
            edges,
        });
    }

    /// The validators of a closure step, in order; those that there are not are reported.
    fn conditions(&self, validation: &ValidationStep<'_>) -> Vec<ValidatorCondition<'v, 'j>> {
        let mut conditions = Vec::new();
        for written in &validation.conditions {
            let Some(validator) = self.registry.validators.iter().find(|known| known.name == written.text)
            else {
                let names: Vec<&str> = self.registry.validators.iter().map(|known| known.name).collect();
                let unread = self.registry.unread.contains(&written.text);
                let mut all = self.registry.validations.iter().flat_map(|other| &other.conditions);
                let mut is_first = || all.next().is_some_and(|first| first.span == written.span);
                if unread || (names.is_empty() && (self.registry.misread || !is_first())) {
                    continue;
                }
                // Where there is none at all, that is said at the first.
                let message = match names.is_empty() {
                    true => format!("undefined validator `{}`: there are no `validators`", written.text),
                    false => format!("undefined validator `{}`", written.text),
                };
                let finding = Diagnostic::error(codes::UNKNOWN_NAME, written.span, message);
                let add = || format!("add `validators.{}`", written.text);
                self.push(or_hint(finding.step(validation.id), written.text, names, add));
                continue;
            };
            let pattern = validator
                .pattern
                .and_then(|name| self.registry.patterns.iter().find(|pattern| pattern.name == name.text));
            conditions.push(ValidatorCondition { validator, pattern });
        }
        conditions
    }

    /// Every step that can be the one a remedy goes back to: the work steps that hand off to the closure step, and
    /// the closure step itself where a run can come to it in another way.
    fn origins(&self, validation: &ValidationStep<'j>, ways: &HandoffSources) -> Vec<Name> {
        let handing = ways.hand_off.get(validation.id).map(Vec::as_slice).unwrap_or_default();
        let mut origins: Vec<Name> = handing.iter().map(|step| Name::new(step, validation.span)).collect();
        if origins.is_empty() || self.entries.contains(&validation.id) {
            origins.push(Name::new(validation.id, validation.span));
        }
        origins
    }

    /// Who is told to mend what a validator found has to be able to.
    fn check_origins(
        &self,
        validation: &ValidationStep<'_>,
        origins: &[Name],
        (draft, ways): (&Draft, &HandoffSources),
    ) {
        // Where nobody hands off, nobody is told anything.
        let told = |name: &Name| *name.text != *validation.id || self.entries.contains(&validation.id);
        let boundary = |name: &Name| ways.places.get(&*name.text).map(|at| &draft.steps[*at].boundary);
        let weak: Vec<&str> = origins
            .iter()
            .filter(|origin| told(origin) && boundary(origin).is_some_and(is_too_weak))
            .map(|origin| &*origin.text)
            .collect();
        if weak.is_empty() || !self.is_agent_known {
            return;
        }
        let message = format!(
            "{} must fix what the validators of `{}` find, but may not change files",
            quote_names(&weak),
            validation.id
        );
        self.push(
            Diagnostic::warning(codes::WEAK_PERMISSION, validation.span, message).step(validation.id).hint(
                "let it write: `permissionMode` `acceptEdits`, and a tool that does; or abort on failure",
            ),
        );
    }

    /// The failure prompt, with `c2` and `c3` of the validation, else of the closure step, else of a work step that
    /// hands off to it; and the index of the place where it was found.
    fn remedy(
        &self,
        validation: &ValidationStep<'j>,
        closure: &'v StepDefinition<'j>,
        condition: &ValidatorCondition<'_, 'j>,
        origins: &[Name],
    ) -> Option<(Prompt, usize)> {
        let pattern = condition.pattern?;
        // Where it lies may be what could not be read.
        let placeless = validation.c2.is_none() || validation.c3.is_none();
        if pattern.misread || (validation.misread && placeless) {
            self.compiler.reads.unreadable();
            return None;
        }
        let edition = pattern.edition?;
        let adaptation = pattern.adaptation.map(|adaptation| adaptation.text);
        let origin_steps: Vec<&StepDefinition<'j>> =
            origins.iter().filter_map(|origin| self.step(&origin.text)).collect();
        let own = (validation.c2.or(closure.c2), validation.c3.or(closure.c3));
        let places = std::iter::once(own)
            .chain([(closure.c2, closure.c3)])
            .chain(origin_steps.iter().map(|step| (step.c2, step.c3)));
        let keys: Vec<PromptKey<'_>> = places
            .filter_map(|(c2, c3)| {
                Some(PromptKey { c2: c2?.text, c3: c3?.text, edition: edition.text, adaptation })
            })
            .collect();
        match self.compiler.files.find(&keys, pattern.span, self.compiler.loader) {
            Search::Faulty => {
                self.compiler.reads.unreadable();
                None
            }
            Search::Missing(tried) => {
                self.compiler.reads.unreadable();
                let message = format!(
                    "failure pattern `{}` has no prompt: no file {}",
                    pattern.name,
                    quote_names(&tried)
                );
                let finding = Diagnostic::error(codes::MISSING_PROMPT, pattern.span, message)
                    .step(validation.id)
                    .hint("write one of the files");
                self.compiler.files.add_missing_prompt(finding);
                None
            }
            Search::Found(file) => {
                let inputs = self.shared_inputs(&origin_steps);
                let (origins, validator) = (&origin_steps[..], condition.validator);
                let user = PromptUser::Remedy { closure, origins, pattern, validator, key: keys[file.by] };
                let prompt = Inputs::with(&inputs, |inputs| {
                    self.compiler.compile(&file, PromptScope::Remedy(inputs), user)
                });
                failure_texts::check_failure_text(
                    &file,
                    condition.validator,
                    validation.id,
                    &self.compiler.loader.found,
                );
                self.check_values(validation, condition, pattern, &prompt.failure_values);
                let mut prompt = prompt;
                // Who misspells a value means one that there is, or what yields it is misspelt.
                let known = || condition.validator.extract.iter().map(|(known, _)| known.text);
                let is_lost = |name: &str| !known().any(|known| known == name);
                let lost = prompt.failure_values.iter().filter(|(name, _)| is_lost(name));
                let meant = lost
                    .filter_map(|(name, span)| Some((find_nearest_name(name, known())?.to_owned(), *span)));
                let meant: Vec<_> = meant.collect();
                prompt.failure_values.extend(meant);
                for origin in &origin_steps {
                    self.compiler.reads.inputs(origin.id, self.inputs_of(origin), &prompt);
                }
                Some((prompt, file.by))
            }
        }
    }

    /// The command of a validator, with the values of the run that it reads.
    fn command(&self, validator: &ValidatorDefinition<'_>, draft: &Draft) -> Validator {
        let source = |name: &str| {
            let param = name.strip_prefix("context.").unwrap_or(name);
            let known = draft.params.iter().find(|known| same_name(&known.name, param));
            if let Some(param) = known {
                self.compiler.reads.param(&param.name);
                return Some(Source::Param(param.name.clone()));
            }
            // A value that several steps hand on has no step that would be named here.
            let key = name.strip_prefix("handoff.")?;
            let mut of = draft.steps.iter().filter(|step| step.handoff.iter().any(|left| *left.key == *key));
            let step = of.next().filter(|_| of.next().is_none())?;
            Some(Source::Handoff { step: step.name.clone(), key: key.into() })
        };
        let (command, values) = with_values(validator.command.map_or("", |command| command.text), &source);
        Validator {
            name: validator.name.into(),
            command: command.into(),
            values,
            // A condition that could not be read is a finding; it never passes.
            success: validator.success.unwrap_or(cuegate_flow::model::Success::ExitCode(-1)),
            extract: validator
                .extract
                .iter()
                .map(|(name, extractor)| (name.text.into(), *extractor))
                .collect(),
            timeout_ms: TIMEOUT_MS,
        }
    }

    /// Where every failure prompt was found elsewhere, `c2` and `c3` of the validation have no effect.
    fn check_place(&self, validation: &ValidationStep<'_>, found_by: &[usize]) {
        let Some(written) = validation.c2.or(validation.c3) else { return };
        if !found_by.is_empty() && found_by.iter().all(|by| *by > 0) {
            let message = format!(
                "`c2` and `c3` of the validation of `{}` lead to no failure prompt, so others are taken",
                validation.id
            );
            self.push(
                Diagnostic::warning(codes::UNUSED_KEY, written.span, message)
                    .step(validation.id)
                    .hint("move the failure prompts there, or remove `c2` and `c3`"),
            );
        }
    }

    /// What every step declares that a failure prompt can stand in for.
    fn shared_inputs(&self, origins: &[&StepDefinition<'j>]) -> Vec<DeclaredInput> {
        let of = |step| self.inputs_of(step);
        let Some((first, others)) = origins.split_first() else { return Vec::new() };
        let names = |step| of(step).iter().map(|known| &*known.input.name).collect::<HashSet<&str>>();
        let names: Vec<HashSet<&str>> = others.iter().map(|other| names(other)).collect();
        let everywhere =
            |input: &&DeclaredInput| names.iter().all(|names| names.contains(&*input.input.name));
        of(first).iter().filter(everywhere).cloned().collect()
    }

    fn inputs_of(&self, step: &StepDefinition<'j>) -> &'v [DeclaredInput] {
        // They stand in the order of the steps.
        let inputs = self.compiler.index.place(step.id).and_then(|at| self.inputs.get(at));
        inputs.map(|(_, inputs)| inputs.as_slice()).unwrap_or_default()
    }

    /// A value that no extractor yields stays empty. One that the prompt does not read is another matter.
    fn check_values(
        &self,
        validation: &ValidationStep<'_>,
        condition: &ValidatorCondition<'_, '_>,
        pattern: &FailurePattern<'_>,
        read: &[(String, cuegate_flow::diagnostics::Span)],
    ) {
        let yields = |name: &str| condition.validator.extract.iter().any(|(known, _)| known.text == name);
        let is_lost = |name: &str| !condition.validator.misread && !yields(name);
        let lost = read.iter().filter(|(name, _)| is_lost(name));
        if condition.validator.extract.is_empty() && lost.clone().count() > 1 {
            let names: Vec<&str> = lost.map(|(name, _)| name.as_str()).collect();
            let message = format!(
                "validator `{}` yields nothing, so {} stay empty",
                condition.validator.name,
                quote_names(&names)
            );
            let finding = Diagnostic::warning(codes::UNDECLARED_VARIABLE, condition.validator.span, message);
            self.push(finding.hint("add `extractParams` to the validator").step(validation.id));
            return;
        }
        for (name, span) in lost {
            let promised = pattern.params.iter().find(|param| param.text == *name);
            let span = promised.map_or(*span, |param| param.span);
            let message =
                format!("validator `{}` yields no `{name}`, so it stays empty", condition.validator.name);
            let known = condition.validator.extract.iter().map(|(known, _)| known.text);
            // What both the pattern and the prompt say is right, and what the validator says instead is not.
            let is_read = |word: &str| read.iter().any(|(name, _)| name == word);
            let instead = promised.and(find_nearest_name(name, known.clone())).filter(|near| !is_read(near));
            let wrong = condition.validator.extract.iter().find(|(known, _)| Some(known.text) == instead);
            if let Some((wrong, _)) = wrong {
                let finding = Diagnostic::warning(codes::UNDECLARED_VARIABLE, wrong.span, message);
                self.push(finding.did_you_mean(name).step(validation.id));
                continue;
            }
            let finding = Diagnostic::warning(codes::UNDECLARED_VARIABLE, span, message);
            let otherwise = || format!("add `{name}` to `extractParams` of the validator");
            self.push(or_hint(finding, name, known, otherwise).step(validation.id));
        }
    }
}

/// Leads the closure step's `closing` to its validators; what an agent of that step may touch.
fn redirect_closing(
    draft: &mut Draft,
    ways: &HandoffSources,
    validation: &ValidationStep<'_>,
    generation: Generation,
    name: &str,
) -> Option<cuegate_flow::model::Boundary> {
    let step = &mut draft.steps[*ways.places.get(validation.id)?];
    for edge in step.edges.iter_mut().filter(|edge| edge.on == outcome_of_intent(generation.ending())) {
        edge.to = Target::Step(Name::new(name, validation.span));
    }
    Some(step.boundary.clone())
}

fn step_names_of_target(to: &Target<Name>) -> impl Iterator<Item = &Name> {
    let (several, one): (Vec<&Name>, Option<&Name>) = match to {
        Target::Step(step) => (vec![step], None),
        Target::End(_) => (Vec::new(), None),
        Target::Origin { among } => (among.iter().collect(), None),
        Target::Select { cases, default, .. } => {
            (cases.iter().map(|(_, step)| step).collect(), default.as_ref())
        }
        Target::Jump { among, default, .. } => (among.iter().collect(), default.as_ref()),
    };
    several.into_iter().chain(one)
}

/// How a run ends when a validator fails and no remedy is left. Where failures are skipped it has completed; its
/// record says that it was not validated.
fn ending_of_failure(on_failure: OnFailure, validator: &str) -> Ending {
    match on_failure {
        OnFailure::Skip => Ending::Completed,
        OnFailure::Abort => {
            Ending::Failed(format!("validator `{validator}` failed, and `onFailure` says `abort`").into())
        }
        OnFailure::Retry(max) => {
            let retries = if max == 1 { "1 retry".to_owned() } else { format!("{max} retries") };
            Ending::Failed(format!("validator `{validator}` still fails after {retries}").into())
        }
    }
}

/// Every name that a step leads to.
pub(crate) fn targets_of(step: &Step<Name>) -> impl Iterator<Item = &Name> {
    step.edges.iter().flat_map(|edge| step_names_of_target(&edge.to))
}
