//! The three stages that every domain of a "complete" registry has: `initial`, `continuation`, `complete`.

use cuegate_flow::Diagnostic;

use super::completion::domain_of;
use super::step::StepDefinition;
use crate::codes;
use crate::findings::Findings;
use crate::nearest::list;

/// The stages, in order.
const STAGES: [&str; 3] = ["initial", "continuation", "complete"];

/// Reports domains that lack a stage, each at its first step.
pub(super) fn check_stages(steps: &[StepDefinition<'_>], found: &Findings) {
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
        let missing: Vec<String> =
            STAGES.iter().filter(|stage| !there(stage)).map(|stage| format!("{stage}.{domain}")).collect();
        if !missing.is_empty() {
            let message = format!("the domain `{domain}` has no {}", list(&missing));
            found.push(
                Diagnostic::warning(codes::INCOMPLETE_DOMAIN, step.span, message)
                    .step(step.id)
                    .hint("a flow has all three stages: `initial`, `continuation` and `complete`"),
            );
        }
    }
}
