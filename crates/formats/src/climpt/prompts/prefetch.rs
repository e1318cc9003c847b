//! Opens the prompts of a registry ahead of who compiles them: a large one has thousands of files.

use super::files::{PromptFiles, PromptKey};
use super::step_prompt::keys_of;
use crate::climpt::agent::definition::AgentDefinition;
use crate::climpt::registry::definition::RegistryDefinition;
use crate::climpt::registry::index::StepIndex;
use crate::climpt::validation::definition::{OnFailure, ValidationStep};
use crate::source::loader::Desk;

/// Opens, of the files that are looked for, those that are looked for first.
pub(crate) fn open_prompts(
    registry: &RegistryDefinition<'_>,
    agent: &AgentDefinition<'_>,
    files: &PromptFiles<'_>,
    desk: &Desk<'_>,
) {
    for step in &registry.steps {
        files.open_first(&keys_of(step, agent.closure_action), desk);
    }
    for key in first_prompts(registry) {
        files.open_first(&[key], desk);
    }
}

/// The prompts that are looked for first when validators fail.
fn first_prompts<'r>(registry: &'r RegistryDefinition<'_>) -> Vec<PromptKey<'r>> {
    let steps = StepIndex::new(&registry.steps);
    let mut keys = Vec::new();
    // Who fails otherwise is told nothing.
    let told = |validation: &&ValidationStep<'_>| matches!(validation.on_failure, OnFailure::Retry(1..));
    for validation in registry.validations.iter().filter(told) {
        let Some(closure) = steps.place(validation.id).map(|at| &registry.steps[at]) else { continue };
        let place = validation.c2.or(closure.c2).zip(validation.c3.or(closure.c3));
        for written in &validation.conditions {
            let validator = registry.validators.iter().find(|known| known.name == written.text);
            let name = validator.and_then(|validator| validator.pattern);
            let pattern =
                name.and_then(|name| registry.patterns.iter().find(|pattern| pattern.name == name.text));
            let edition = pattern.and_then(|pattern| Some((pattern, pattern.edition?)));
            keys.extend(place.zip(edition).map(|((c2, c3), (pattern, edition))| PromptKey {
                c2: c2.text,
                c3: c3.text,
                edition: edition.text,
                adaptation: pattern.adaptation.map(|adaptation| adaptation.text),
            }));
        }
    }
    keys
}
