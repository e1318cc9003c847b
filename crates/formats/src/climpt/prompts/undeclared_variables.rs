//! What the system prompt and failure prompts read and nobody gives. What the prompts of steps read is known to the check of
//! the flow; where they read the same, one thing is wrong.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{Act, Draft, Source},
};

use super::unused::Reads;
use crate::lints;
use crate::source::findings::Findings;
use crate::source::shared::Shared;
use crate::source::suggest::{list, nearest};

/// What was read so, by its name.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    unknown: Shared<BTreeMap<String, Vec<(Diagnostic, &'static str)>>>,
}

/// How many steps a finding names that is about more of them.
const NAMED_MAX: usize = 4;

/// That a prompt reads what nobody gives; `known` is what it can read.
pub(crate) fn finding(prompt: &str, name: &str, span: Span, known: &[&str]) -> Diagnostic {
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare a parameter `{name}`, or give it with `--set {name}=VALUE`"),
    };
    let message = format!("{prompt} reads `{name}`, which nobody gives there");
    Diagnostic::error(lints::UNKNOWN_VARIABLE, span, message).hint(hint)
}

impl Outside {
    /// A prompt reads it, and a finding says that nobody gives it.
    pub(crate) fn unknown(&self, name: &str, prompt: &'static str, finding: Diagnostic) {
        self.unknown.lock().entry(name.to_owned()).or_default().push((finding, prompt));
    }

    /// Says it of each prompt; of a name that may be missing from the definition once, whoever reads it.
    pub(crate) fn report(&self, draft: &mut Draft, reads: &Reads, found: &Findings) {
        let unknown = std::mem::take(&mut *self.unknown.lock());
        for (name, mut findings) in unknown {
            let params = draft.params.iter().map(|param| &*param.name);
            // Where others read what is nearly called so, that is what was meant: each prompt has a slip of its own.
            let is_slip = nearest(&name, params).is_some_and(|near| reads.reads_param(near));
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
            draft.told.push(name.into());
        }
    }
}

/// The prompts of some steps in words.
fn of_steps(steps: &[&str]) -> Option<String> {
    let named = list(&steps[..steps.len().min(NAMED_MAX)]);
    match steps.len().saturating_sub(NAMED_MAX) {
        _ if steps.is_empty() => None,
        0 => Some(format!("the prompts of {named}")),
        more => Some(format!("the prompts of {named} and {more} more")),
    }
}

/// The steps whose own prompts read a name from outside of the run.
fn steps_that_read<'d>(draft: &'d Draft, name: &str) -> Vec<&'d str> {
    let source = Source::Param(Str::from(name));
    let reads = |act: &Act<_>| matches!(act, Act::Ask(ask) if ask.prompt.sources().contains(&&source));
    draft.steps.iter().filter(|step| reads(&step.act)).map(|step| &*step.name).collect()
}
