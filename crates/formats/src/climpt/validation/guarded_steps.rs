//! Which step a validation guards, and what a validator says of its failures.

use cuegate_flow::diagnostics::Diagnostic;

use super::lowering::Validations;
use crate::climpt::kinds::StepKind;
use crate::climpt::registry::index::StepIndex;
use crate::climpt::registry::step_definition::{GateDefinition, StepDefinition};
use crate::climpt::registry::validation_definition::{ValidationStep, ValidatorDefinition};
use crate::codes;
use crate::suggest::{find_nearest_name, or_hint};

impl<'v, 'j> Validations<'v, '_, '_, 'j> {
    /// Reports a failure pattern that there is not.
    pub(crate) fn check_pattern(&self, validator: &ValidatorDefinition<'_>, patterns: &StepIndex<'_>) {
        let Some(written) = validator.pattern.filter(|written| !patterns.has(written.text)) else {
            return;
        };
        let names: Vec<&str> = self.registry.patterns.iter().map(|pattern| pattern.name).collect();
        let unread = self.registry.unread.contains(&written.text);
        // Where there is none at all, that is said at the first.
        let first = self.registry.validators.iter().find_map(|known| known.pattern);
        let is_first = first.is_some_and(|first| first.span == written.span);
        if unread || (names.is_empty() && (self.registry.misread || !is_first)) {
            return;
        }
        let message =
            format!("validator `{}` names the undefined failure pattern `{}`", validator.name, written.text);
        let finding = Diagnostic::error(codes::UNKNOWN_NAME, written.span, message);
        let key = self.registry.generation.patterns_key();
        let add = || format!("add `{key}.{}`", written.text);
        self.push(or_hint(finding, written.text, names.iter().copied(), add));
    }

    /// The closure step that a validation guards; `None` where there is none, which findings say.
    pub(crate) fn closure_of(&self, validation: &ValidationStep<'j>) -> Option<&'v StepDefinition<'j>> {
        let Some(step) = self.step(validation.id) else {
            // Missing or unreadable steps have been reported.
            if self.registry.steps.is_empty() || self.registry.unread.contains(&validation.id) {
                return None;
            }
            let ids = self.registry.steps.iter().map(|step| step.id);
            let message = format!("`validationSteps` names the undefined step `{}`", validation.id);
            let finding = Diagnostic::error(codes::UNKNOWN_TARGET, validation.span, message);
            // No more than that is wrong with it: nothing is read again with the name that was meant.
            let hint = match find_nearest_name(validation.id, ids) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a closure step of this registry".to_owned(),
            };
            self.push(finding.step(validation.id).hint(hint));
            return None;
        };
        // That it has no kind, or none that can be read, has been said.
        step.kind?;
        let ending = self.registry.generation.ending();
        let decides = |gate: &GateDefinition<'_>| gate.intents.iter().any(|(intent, _)| *intent == ending);
        if step.kind != Some(StepKind::Closure) {
            // That a step of its kind cannot decide what it allows has been said: which of both is wrong nobody knows.
            let kind = step.kind.filter(|kind| !self.registry.generation.allows(*kind, ending));
            if kind.is_some() && step.gate.as_ref().is_some_and(decides) {
                return None;
            }
            let message = format!("`{}` is not a closure step, so its validators never run", validation.id);
            self.push(
                Diagnostic::error(codes::UNUSED_DEFINITION, validation.span, message)
                    .step(validation.id)
                    .hint("use the name of the closure step whose `closing` these validators guard"),
            );
            return None;
        }
        let word = ending.as_str();
        if let Some(gate) = step.gate.as_ref().filter(|gate| !decides(gate)) {
            // What it allows could not be read, or is nothing, or lacks what a transition is for, which has been said.
            let leads_on = step.transitions.iter().flatten().any(|transition| transition.intent == ending);
            if gate.misread || gate.intents.is_empty() || leads_on {
                return None;
            }
            let message = format!("`{}` does not allow `{word}`, so its validators never run", validation.id);
            self.push(
                Diagnostic::error(codes::UNUSED_DEFINITION, validation.span, message)
                    .step(validation.id)
                    .hint(format!("add `{word}` to its `allowedIntents`, or name the step that decides it")),
            );
            return None;
        }
        Some(step)
    }
}
