//! Which part of the path of a prompt is misspelt, where there is no file: the one whose correction leads to a file.

use cuegate_flow::diagnostics::Diagnostic;

use super::files::{PromptFiles, PromptKey};
use crate::climpt::registry::kinds::StepKind;
use crate::climpt::registry::step_definition::{EDITION, StepDefinition};
use crate::climpt::validation::definition::FailurePattern;
use crate::lints;
use crate::source::loader::Desk;
use crate::source::suggest::nearest;
use crate::values::json::Text;

/// A part of a path as it is written, and what it may have been meant to be.
struct Part<'t> {
    written: Option<Text<'t>>,
    meant: Vec<&'t str>,
    /// The path with it in its place.
    with: fn(PromptKey<'t>, &'t str) -> PromptKey<'t>,
}

/// What the folder of failure prompts is called in the documents' own examples.
const REMEDIES: &str = "retry";

/// What editions of failure prompts are called there.
const FAILED: &str = "failed";

/// The most steps of a registry whose words are tried: each missing prompt asks for all of them.
const STEPS_MAX: usize = 256;

/// The finding about a misspelt part of the path of a step's prompt.
pub(crate) fn of_step<'t>(
    step: &StepDefinition<'t>,
    key: PromptKey<'t>,
    steps: &[StepDefinition<'t>],
    (files, desk): (&PromptFiles<'_>, &Desk<'_>),
) -> Option<Diagnostic> {
    let steps = if steps.len() > STEPS_MAX { &[] } else { steps };
    // What follows from the step's name is not written.
    let written = |part: Option<Text<'t>>| part.filter(|part| part.span != step.span);
    let (kind, name) = step.id.split_once('.').unwrap_or((step.id, step.id));
    let parts = [
        Part {
            written: written(step.c2),
            meant: std::iter::once(kind)
                .chain(StepKind::categories().map(|category| -> &'t str { category }))
                .chain(steps.iter().filter_map(|step| Some(step.c2?.text)))
                .collect(),
            with: |key, c2| PromptKey { c2, ..key },
        },
        Part {
            written: written(step.c3),
            meant: [name].into_iter().chain(steps.iter().filter_map(|step| Some(step.c3?.text))).collect(),
            with: |key, c3| PromptKey { c3, ..key },
        },
        Part {
            written: step.edition,
            meant: [EDITION].into_iter().chain(steps.iter().map(StepDefinition::edition)).collect(),
            with: |key, edition| PromptKey { edition, ..key },
        },
        Part {
            written: step.adaptation,
            meant: steps.iter().filter_map(|step| Some(step.adaptation?.text)).collect(),
            with: |key, adaptation| PromptKey { adaptation: Some(adaptation), ..key },
        },
    ];
    let (part, meant) = near(key, &parts, files, desk)?;
    let message = format!("`{}` has no prompt: there is no file for `{}`", step.id, part.text);
    Some(Diagnostic::error(lints::MISSING_PROMPT, part.span, message).step(step.id).meant(meant))
}

/// The finding about a misspelt part of the path of a failure prompt, of those that the pattern and the validation name.
pub(crate) fn of_pattern<'t>(
    pattern: &FailurePattern<'t>,
    places: [Option<Text<'t>>; 2],
    keys: &[PromptKey<'t>],
    (files, desk): (&PromptFiles<'_>, &Desk<'_>),
) -> Option<Diagnostic> {
    let [c2, c3] = places;
    let parts = [
        Part {
            written: c2,
            meant: std::iter::once(REMEDIES).chain(keys.iter().map(|key| key.c2)).collect(),
            with: |key, c2| PromptKey { c2, ..key },
        },
        Part {
            written: c3,
            meant: keys.iter().map(|key| key.c3).collect(),
            with: |key, c3| PromptKey { c3, ..key },
        },
        Part {
            written: pattern.edition,
            meant: vec![FAILED],
            with: |key, edition| PromptKey { edition, ..key },
        },
        Part {
            written: pattern.adaptation,
            meant: vec![pattern.name],
            with: |key, adaptation| PromptKey { adaptation: Some(adaptation), ..key },
        },
    ];
    let (part, meant) = keys.iter().find_map(|key| near(*key, &parts, files, desk))?;
    let message =
        format!("failure pattern `{}` has no prompt: there is no file for `{}`", pattern.name, part.text);
    Some(Diagnostic::error(lints::MISSING_PROMPT, part.span, message).meant(meant))
}

/// The part that is nearly something with which there is a file.
fn near<'t>(
    key: PromptKey<'t>,
    parts: &[Part<'t>],
    files: &PromptFiles<'_>,
    desk: &Desk<'_>,
) -> Option<(Text<'t>, &'t str)> {
    parts.iter().find_map(|part| {
        let written = part.written?;
        let is_meant = |meant: &&&'t str| {
            **meant != written.text
                && nearest(written.text, [**meant]).is_some()
                && files.is_there(&(part.with)(key, meant), desk)
        };
        Some((written, *part.meant.iter().find(is_meant)?))
    })
}
