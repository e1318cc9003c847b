//! The three stages that every domain of a "complete" registry has: `initial`, `continuation`, `complete`.

use std::collections::HashSet;

use cuegate_flow::diagnostics::Diagnostic;

use super::completion_steps::domain_of;
use crate::climpt::registry::definition::RegistryDefinition;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::lints;
use crate::source::findings::Findings;
use crate::source::suggest::list;

/// The stages, in order.
const STAGES: [&str; 3] = ["initial", "continuation", "complete"];

/// Reports domains that lack a stage, each at its first step.
///
/// What something leads to that is not there is said where it leads there.
pub(crate) fn check_stages(registry: &RegistryDefinition<'_>, found: &Findings) {
    let steps = &registry.steps;
    let transitions = steps.iter().flat_map(|step| step.transitions.iter().flatten());
    let mut named: HashSet<&str> =
        transitions.flat_map(|transition| transition.rule.targets()).map(|target| target.text).collect();
    named.extend(registry.entry_step.map(|entry| entry.text));
    named.extend(registry.entry_mapping.iter().map(|(_, entry)| entry.text));
    named.extend(&registry.unread);
    let staged = |step: &StepDefinition<'_>| {
        let (stage, _) = step.id.split_once('.')?;
        STAGES.into_iter().find(|known| *known == stage)
    };
    let mut seen: Vec<&str> = Vec::new();
    for step in steps.iter().filter(|step| staged(step).is_some()) {
        let domain = domain_of(step.id);
        if seen.contains(&domain) {
            continue;
        }
        seen.push(domain);
        let there = |stage: &&str| {
            steps.iter().any(|step| staged(step) == Some(*stage) && domain_of(step.id) == domain)
        };
        let missing = STAGES.iter().filter(|stage| !there(stage)).map(|stage| format!("{stage}.{domain}"));
        let missing: Vec<String> = missing.filter(|id| !named.contains(&**id)).collect();
        if !missing.is_empty() {
            let message = format!("the domain `{domain}` has no {}", list(&missing));
            found.push(
                Diagnostic::warning(lints::INCOMPLETE_DOMAIN, step.span, message)
                    .step(step.id)
                    .hint("a flow has all three stages: `initial`, `continuation` and `complete`"),
            );
        }
    }
}
