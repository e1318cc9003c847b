//! Prompts that are all missing for one reason: it is not they that are wrong, but where they are looked for.

use std::collections::BTreeSet;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::files::{Looked, PromptFiles, USUAL_C1};
use super::path_template::PathTemplates;
use super::step_prompt::take_back_of_built_in;
use crate::climpt::agent::definition::AgentDefinition;
use crate::climpt::registry::definition::RegistryDefinition;
use crate::lints;
use crate::source::findings::Findings;
use crate::source::loader::Desk;

/// Says once what is wrong with where prompts are looked for, in the place of each prompt that is missing because of it.
pub(crate) fn report_nowhere(
    registry: &RegistryDefinition<'_>,
    agent: &AgentDefinition<'_>,
    files: &PromptFiles<'_>,
    desk: &Desk<'_>,
) {
    let [plain, adapted] = files.looked();
    let any_found = plain.found || adapted.found;
    let keys = [
        (&plain, registry.path_template_plain, "pathTemplateNoAdaptation"),
        (&adapted, registry.path_template, "pathTemplate"),
    ];
    for (looked, template, key) in keys {
        // By the template that need not be written it would be looked for as well: then the files are missing.
        let Some(template) = template.filter(|written| !PathTemplates::is_default(written.text)) else {
            continue;
        };
        if !looked.found && (looked.by_default || any_found && looked.missing.len() > 1) {
            let message = format!("no prompt is where `{key}` says");
            let hint = format!("correct `{key}`, or write the files");
            looked.report((template.span, &hint), &message, &desk.found);
            PathTemplates::take_back_parts(template, &desk.found);
        }
    }
    let all = plain.with(adapted);
    if !any_found && all.missing.len() > 1 {
        let hint = "correct `c1`, `userPromptsBase` or `pathTemplate`, or write the files";
        all.report((place(registry, agent), hint), "no prompt is where it is looked for", &desk.found);
    }
}

/// What is probably wrong where no prompt is found: `c1`, unless that is what it is called everywhere; then the base.
fn place(registry: &RegistryDefinition<'_>, agent: &AgentDefinition<'_>) -> Span {
    let c1 = registry.c1.filter(|c1| c1.text != USUAL_C1);
    let base = registry.prompts_base.map(|base| base.span).or(agent.fallback_dir.1);
    let any = base.or(registry.c1.map(|c1| c1.span));
    c1.map(|c1| c1.span).or(any).unwrap_or(registry.span)
}

impl Looked {
    fn with(mut self, other: Looked) -> Looked {
        self.missing.extend(other.missing);
        self.stood_in.extend(other.stood_in);
        self
    }

    /// Says it of all of them together, in the place of what was said of each.
    fn report(&self, (span, hint): (Span, &str), message: &str, found: &Findings) {
        let places: BTreeSet<Span> = self.missing.iter().copied().collect();
        let mut missing =
            found.take(|known| known.code == lints::MISSING_PROMPT && places.contains(&known.span));
        missing.sort_by_key(|known| known.span);
        let Some(first) = missing.first() else { return };
        let message = match missing.len() - 1 {
            0 => format!("{message}: {}", first.message),
            others => format!("{message}; the first of {}: {}", others + 1, first.message),
        };
        found.push(Diagnostic::error(lints::MISSING_PROMPT, span, message).hint(hint));
        let steps: BTreeSet<&str> = self.stood_in.iter().map(String::as_str).collect();
        take_back_of_built_in(&steps, found);
    }
}
