//! Compares the front matter of prompt files with the registry, which takes precedence.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Diagnostic, Span};
use serde_json::Value;

use super::compile::Prompt;
use super::files::{PromptFile, PromptKey};
use crate::climpt::agent::parameters::normalize_variable_name;
use crate::climpt::registry::index::StepIndex;
use crate::climpt::registry::step_definition::StepDefinition;
use crate::climpt::registry::validation_definition::{FailurePattern, ValidatorDefinition};
use crate::codes;
use crate::findings::Findings;
use crate::source::shared::SharedCell;
use crate::suggest::quote_names;
use crate::templates::FrontMatter;

/// Known keys of front matter. Others have no effect.
pub(crate) const KEYS: [&str; 15] = [
    "stepId",
    "stepKind",
    "c1",
    "c2",
    "c3",
    "edition",
    "adaptation",
    "usesStdin",
    "params",
    "uvVariables",
    "customVariables",
    // Notes for readers.
    "name",
    "title",
    "description",
    "version",
];

/// The user of a prompt file.
#[derive(Clone, Copy)]
pub(crate) enum PromptUser<'u> {
    /// A step, for its prompt.
    Step {
        step: &'u StepDefinition<'u>,
        /// The key that located the file.
        key: PromptKey<'u>,
    },
    /// The validators of a closure step, for a failure prompt.
    Remedy {
        /// The closure step.
        closure: &'u StepDefinition<'u>,
        /// The steps that may be asked with it.
        origins: &'u [&'u StepDefinition<'u>],
        /// The failure pattern.
        pattern: &'u FailurePattern<'u>,
        /// The validator that fails.
        validator: &'u ValidatorDefinition<'u>,
        /// The key that located the file.
        key: PromptKey<'u>,
    },
    /// A step of a check flow, for its prompt or its check's. The registry's values for the file use the words of front
    /// matter; `None` for missing ones.
    Reference {
        step: &'u str,
        /// The parts of the reference that located the file.
        said: &'u [(&'static str, &'u str)],
    },
    /// All steps, for the system prompt.
    System,
}

impl<'u> PromptUser<'u> {
    /// The step that findings name.
    pub(crate) fn step(&self) -> Option<&'u str> {
        match self {
            PromptUser::Step { step, .. } => Some(step.id),
            PromptUser::Remedy { closure, .. } => Some(closure.id),
            PromptUser::Reference { step, .. } => Some(step),
            PromptUser::System => None,
        }
    }

    /// Whether a name is a value of the failing validator.
    pub(crate) fn yields(&self, name: &str) -> bool {
        let PromptUser::Remedy { pattern, validator, .. } = self else { return false };
        pattern
            .params
            .iter()
            .chain(validator.extract.iter().map(|(param, _)| param))
            .any(|param| param.text == name)
    }

    /// Whether it is a failure prompt.
    pub(crate) fn is_remedy(&self) -> bool {
        matches!(self, PromptUser::Remedy { .. })
    }
}

/// Front matter values that the registry does not confirm. A file may serve several steps and can match only one of
/// them, so findings are reported after all uses are known.
#[derive(Debug, Default)]
pub(crate) struct FrontMatterClashes {
    /// By path and value: `None` when some use matches it.
    clashes: SharedCell<BTreeMap<(String, String), Option<Diagnostic>>>,
}

impl FrontMatterClashes {
    /// Compares the front matter of a file with one use.
    pub(crate) fn compare(
        &self,
        file: &PromptFile,
        matter: &FrontMatter<'_>,
        user: PromptUser<'_>,
        c1: &str,
        prompt: &Prompt,
        steps: &StepIndex<'_>,
    ) {
        let Some(map) = &matter.matter else { return };
        for key in ["stepId", "stepKind", "c1", "c2", "c3", "edition", "adaptation", "usesStdin"] {
            let written = map.get(key).filter(|value| !value.is_null()).map(text_of);
            let Some(written) = written.filter(|written| !written.is_empty()) else { continue };
            let Some(said) = registry_values_of_key(key, user, c1, prompt, steps, &written) else { continue };
            let agrees = said.iter().any(|said| *said == written);
            self.note(file, key, agrees, || {
                let message = match (key, user) {
                    ("stepId", PromptUser::System) => {
                        format!("the front matter belongs to `{written}`, but the file is the system prompt")
                    }
                    ("stepId", _) => {
                        format!(
                            "the front matter belongs to `{written}`, but the prompt to {}",
                            quote_names(&said)
                        )
                    }
                    ("usesStdin", _) => stdin_message(user, &written, prompt),
                    _ if said.is_empty() => {
                        format!("the front matter says `{key}` `{written}`, the registry none")
                    }
                    _ => {
                        format!(
                            "the front matter says `{key}` `{written}`, the registry {}",
                            quote_names(&said)
                        )
                    }
                };
                build_mismatch_finding(file, matter, key, message, user)
            });
        }
        self.compare_params(file, matter, user, prompt);
        self.compare_variables(file, matter, user, prompt);
    }

    /// Records whether a use matches a value; the finding of the first mismatch is kept.
    fn note(&self, file: &PromptFile, what: &str, agrees: bool, finding: impl FnOnce() -> Diagnostic) {
        let mut clashes = self.clashes.lock();
        let entry = clashes.entry((file.path.clone(), what.to_owned()));
        if agrees {
            *entry.or_default() = None;
        } else {
            entry.or_insert_with(|| Some(finding()));
        }
    }

    fn compare_params(
        &self,
        file: &PromptFile,
        matter: &FrontMatter<'_>,
        user: PromptUser<'_>,
        prompt: &Prompt,
    ) {
        let listed = matter.names("params");
        let PromptUser::Remedy { pattern, .. } = user else {
            self.note(file, "params", listed.is_empty(), || {
                let message = format!("`params` in the front matter of `{}` have no effect", file.path);
                let finding =
                    Diagnostic::warning(codes::UNUSED_KEY, span_of_key(file, matter, "params"), message);
                of_user(finding, user).hint("only failure prompts take them; remove them")
            });
            return;
        };
        for name in listed {
            let promised = pattern.params.iter().any(|param| param.text == name);
            let read = prompt.failure_values.iter().any(|(read, _)| *read == name);
            let agrees = if pattern.params.is_empty() { read } else { promised };
            self.note(file, &format!("params {name}"), agrees, || {
                let message = match pattern.params.is_empty() {
                    true => format!("the front matter lists `{name}`, which the prompt does not read"),
                    false => format!(
                        "the front matter lists `{name}`, which `params` of `{}` do not",
                        pattern.name
                    ),
                };
                build_mismatch_finding(file, matter, "params", message, user)
            });
        }
    }

    /// Reports variables that a front matter lists and its prompt does not read. If the step declares variables itself,
    /// both lists are compared instead.
    fn compare_variables(
        &self,
        file: &PromptFile,
        matter: &FrontMatter<'_>,
        user: PromptUser<'_>,
        prompt: &Prompt,
    ) {
        if matches!(user, PromptUser::Step { step, .. } if step.variables.is_some()) {
            return;
        }
        let read = prompt.read();
        for name in matter.names("uvVariables") {
            self.note(
                file,
                &format!("uvVariables {name}"),
                read.contains(&normalize_variable_name(&name)),
                || {
                    let message = format!("the front matter lists `{name}`, which the prompt does not read");
                    let finding = Diagnostic::warning(
                        codes::UNUSED_VARIABLE,
                        span_of_key(file, matter, "uvVariables"),
                        message,
                    );
                    of_user(finding, user)
                        .hint(format!("write `{{uv-{name}}}` in the prompt, or remove it from the list"))
                },
            );
        }
    }

    /// Reports values that no use of a file matches.
    pub(crate) fn report(&self, found: &Findings) {
        for clash in self.clashes.lock().values().flatten() {
            found.push(clash.clone());
        }
    }
}

/// The registry's value for the front matter value `written`; `None` when it has no comparable value.
fn registry_values_of_key<'u>(
    key: &str,
    user: PromptUser<'u>,
    c1: &'u str,
    prompt: &Prompt,
    steps: &StepIndex<'_>,
    written: &str,
) -> Option<Vec<&'u str>> {
    let place = match user {
        PromptUser::Step { key, .. } | PromptUser::Remedy { key, .. } => Some(key),
        PromptUser::System | PromptUser::Reference { .. } => None,
    };
    Some(match (key, user) {
        ("stepId", PromptUser::Reference { step, .. }) => vec![step],
        ("usesStdin", PromptUser::Reference { .. }) => vec![text_of_flag(prompt.reads_task)],
        (_, PromptUser::Reference { said, .. }) => {
            let parts: Vec<&str> =
                said.iter().filter(|(part, _)| *part == key).map(|(_, value)| *value).collect();
            // A file located by its path has no parts.
            if said.is_empty() || (parts.is_empty() && key != "adaptation") {
                return None;
            }
            parts
        }
        ("stepId", PromptUser::Step { step, .. }) => vec![step.id],
        // Failure prompts are not steps and have other names, but not the name of another step.
        ("stepId", _) if !steps.has(written) => return None,
        ("stepId", PromptUser::Remedy { closure, origins, .. }) => {
            let mut ids = vec![closure.id];
            ids.extend(origins.iter().map(|origin| origin.id).filter(|id| *id != closure.id));
            ids
        }
        ("stepId", PromptUser::System) => Vec::new(),
        ("stepKind", PromptUser::Step { step, .. }) if step.section => vec!["section"],
        ("stepKind", PromptUser::Step { step, .. }) => vec![step.kind?.as_str()],
        ("stepKind", PromptUser::Remedy { closure, origins, .. }) => {
            let kinds = std::iter::once(&closure).chain(origins).filter_map(|step| step.kind);
            kinds.map(|kind| kind.as_str()).collect()
        }
        ("usesStdin", PromptUser::Step { step, .. }) => {
            vec![text_of_flag(step.uses_stdin.map_or(prompt.reads_task, |(uses, _)| uses))]
        }
        ("usesStdin", _) => vec![text_of_flag(prompt.reads_task)],
        ("c1", _) => vec![place.map(|_| c1)?],
        ("c2", _) => vec![place?.c2],
        ("c3", _) => vec![place?.c3],
        ("edition", _) => vec![place?.edition],
        ("adaptation", _) => place?.adaptation.into_iter().collect(),
        _ => return None,
    })
}

fn stdin_message(user: PromptUser<'_>, written: &str, prompt: &Prompt) -> String {
    match user {
        PromptUser::Step { step, .. } if step.uses_stdin.is_some() => {
            let said = text_of_flag(step.uses_stdin.is_some_and(|(uses, _)| uses));
            format!("the front matter says `usesStdin` `{written}`, `{}` says `{said}`", step.id)
        }
        _ if prompt.reads_task => {
            format!("the front matter says `usesStdin` `{written}`, but the prompt reads the task")
        }
        _ => format!("the front matter says `usesStdin` `{written}`, but the prompt does not read the task"),
    }
}

fn text_of_flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn build_mismatch_finding(
    file: &PromptFile,
    matter: &FrontMatter<'_>,
    key: &str,
    message: String,
    user: PromptUser<'_>,
) -> Diagnostic {
    let finding = Diagnostic::warning(codes::FRONT_MATTER_MISMATCH, span_of_key(file, matter, key), message)
        .hint("correct the front matter, or the registry, which decides");
    of_user(finding, user)
}

/// Names the step that uses the file.
fn of_user(finding: Diagnostic, user: PromptUser<'_>) -> Diagnostic {
    match user.step() {
        Some(step) => finding.step(step),
        None => finding,
    }
}

/// The place of a front matter key.
fn span_of_key(file: &PromptFile, matter: &FrontMatter<'_>, key: &str) -> Span {
    let at = matter.at(key);
    Span { file: file.file, start: at as u32, end: (at + key.len()) as u32 }
}

/// A value as the registry would write it.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reports errors in a front matter itself, independent of its uses.
pub(crate) fn check_matter(file: &PromptFile, matter: &FrontMatter<'_>, found: &Findings) {
    if let Some((at, reason)) = &matter.fault {
        let at = *at as u32;
        let message = format!("the front matter of `{}` is no YAML: {reason}", file.path);
        let (span, hint) =
            (Span { file: file.file, start: at, end: at + 1 }, "correct it, or remove the lines of `---`");
        found.push(Diagnostic::error(codes::INVALID_YAML, span, message).hint(hint));
    }
    let Some(map) = &matter.matter else { return };
    for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let message = format!("`{key}` in the front matter of `{}` has no effect", file.path);
        found.push(
            Diagnostic::warning(codes::UNUSED_KEY, span_of_key(file, matter, key), message).hint("remove it"),
        );
    }
    for key in ["uvVariables", "customVariables", "params"] {
        let good = match map.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.iter().all(Value::is_string),
            Some(_) => false,
        };
        if !good {
            let message = format!("`{key}` in the front matter of `{}` must be a list of texts", file.path);
            found.push(
                Diagnostic::error(codes::WRONG_TYPE, span_of_key(file, matter, key), message)
                    .hint("write one name a line, each after `- `"),
            );
        }
    }
}
