//! Undefined variables in the system prompt and in failure prompts. The flow check reports those in the prompts of
//! steps; a variable undefined in both places is one error.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{Act, Draft, Source},
};

use super::unused::VariableReads;
use crate::codes;
use crate::findings::Findings;
use crate::source::shared::SharedCell;
use crate::suggest::{find_nearest_name, quote_names};

/// The undefined variables, by name.
#[derive(Debug, Default)]
pub(crate) struct UndefinedVariables {
    unknown: SharedCell<BTreeMap<String, Vec<(Diagnostic, &'static str)>>>,
}

/// The maximum number of steps that a finding names.
const NAMED_MAX: usize = 4;

/// Reports an undefined variable in a prompt; `known` lists the variables that it can read.
pub(crate) fn build_undefined_finding(prompt: &str, name: &str, span: Span, known: &[&str]) -> Diagnostic {
    let hint = match find_nearest_name(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare a parameter `{name}`, or give it with `--set {name}=VALUE`"),
    };
    let message = format!("undefined variable `{name}` in {prompt}");
    Diagnostic::error(codes::UNKNOWN_VARIABLE, span, message).hint(hint)
}

impl UndefinedVariables {
    /// A prompt reads an undefined variable, which is reported.
    pub(crate) fn unknown(&self, name: &str, prompt: &'static str, finding: Diagnostic) {
        self.unknown.lock().entry(name.to_owned()).or_default().push((finding, prompt));
    }

    /// Reports each prompt; a name that may be missing from the definition is reported once for all prompts.
    pub(crate) fn report(&self, draft: &mut Draft, reads: &VariableReads, found: &Findings) {
        let unknown = std::mem::take(&mut *self.unknown.lock());
        for (name, mut findings) in unknown {
            let params = draft.params.iter().map(|param| &*param.name);
            // If other prompts read a similar name, that one was meant: each prompt has its own typo.
            let is_slip = find_nearest_name(&name, params).is_some_and(|near| reads.reads_param(near));
            if is_slip {
                findings.into_iter().for_each(|(finding, _)| found.push(finding));
                continue;
            }
            findings.sort_by_key(|(finding, _)| finding.span);
            findings.dedup_by_key(|(finding, _)| finding.span);
            let mut findings = findings.into_iter();
            let Some((mut first, own)) = findings.next() else { continue };
            let others: BTreeSet<&str> =
                findings.map(|(_, other)| if other == own { "others like it" } else { other }).collect();
            let steps = of_steps(&steps_that_read(draft, &name));
            let others: Vec<String> = others.into_iter().map(str::to_owned).chain(steps).collect();
            if !others.is_empty() {
                first.message = format!("{}; so do {}", first.message, others.join(", "));
            }
            found.push(first);
            draft.flaws.reported_variables.push(name.into());
        }
    }
}

/// Describes the prompts of some steps.
fn of_steps(steps: &[&str]) -> Option<String> {
    let named = quote_names(&steps[..steps.len().min(NAMED_MAX)]);
    match steps.len().saturating_sub(NAMED_MAX) {
        _ if steps.is_empty() => None,
        0 => Some(format!("the prompts of {named}")),
        more => Some(format!("the prompts of {named} and {more} more")),
    }
}

/// The steps whose own prompts read a name from outside the run.
fn steps_that_read<'d>(draft: &'d Draft, name: &str) -> Vec<&'d str> {
    let source = Source::Param(Str::from(name));
    let reads = |act: &Act<_>| matches!(act, Act::Ask(ask) if ask.prompt.sources().contains(&&source));
    draft.steps.iter().filter(|step| reads(&step.act)).map(|step| &*step.name).collect()
}
