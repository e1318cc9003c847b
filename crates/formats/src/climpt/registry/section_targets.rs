//! Reports sections used as targets: sections are text, not steps of the flow.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{DanglingTarget, Draft, Ending, Name, Target},
};

use super::step_definition::StepDefinition;
use crate::codes;
use crate::findings::Findings;
use crate::suggest::quote_names;

/// Reports entries and transitions of a draft that lead to a section and removes them; the flow check would only report
/// a missing step.
pub(crate) fn refuse_sections(draft: &mut Draft, definitions: &[StepDefinition<'_>], found: &Findings) {
    let sections: Vec<&str> = definitions.iter().filter(|step| step.section).map(|step| step.id).collect();
    let flow: Vec<&str> = definitions.iter().filter(|step| !step.section).map(|step| step.id).collect();
    if sections.is_empty() {
        return;
    }
    let refused = |name: &Name, from: &str, step: Option<&str>| {
        let section = sections.contains(&&*name.text);
        if section {
            let message =
                format!("{from} leads to `{}`, a section, which only other prompts include", name.text);
            let finding = Diagnostic::error(codes::UNKNOWN_TARGET, name.span, message);
            let finding = finding.hint(match flow.as_slice() {
                [] => "add a step with `structuredGate`, `transitions` and `outputSchemaRef`".to_owned(),
                steps => format!("name a step of the flow: {}", quote_names(steps)),
            });
            found.push(match step {
                Some(step) => finding.step(step),
                None => finding,
            });
        }
        section
    };
    draft.other_entries.retain(|entry| !refused(entry, "an entry", None));
    if draft.entry.as_ref().is_some_and(|entry| refused(entry, "the entry", None)) {
        // Any step will do: a finding already reports that the entry is not a step, so no run can begin.
        draft.entry = draft.steps.first().map(|step| Name::new(&step.name, Span::default()));
    }
    for step in &mut draft.steps {
        for edge in &mut step.edges {
            let from = format!("`{}` on `{}`", step.name, edge.on);
            let refused = |name: &Name| refused(name, &from, Some(&step.name));
            let dangling = &mut edge.dangling;
            let mut drops = |name: &Name, case: Option<&Str>| {
                let refused = refused(name);
                if refused {
                    dangling.push(DanglingTarget { case: case.cloned(), ..DanglingTarget::to(&name.text) });
                }
                refused
            };
            match &mut edge.to {
                Target::Step(name) if drops(name, None) => edge.to = Target::End(Ending::Aborted),
                Target::Select { cases, default, .. } => {
                    cases.retain(|(case, name)| !drops(name, Some(case)));
                    default.take_if(|name| drops(name, None));
                }
                Target::Jump { among, default, .. } => {
                    among.retain(|name| !drops(name, None));
                    default.take_if(|name| drops(name, None));
                }
                Target::Step(_) | Target::End(_) | Target::Origin { .. } => {}
            }
        }
    }
}
