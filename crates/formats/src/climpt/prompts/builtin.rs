//! The built-in prompts of `fallbackKey`, for steps without a prompt file.

use std::cmp::Reverse;

use cuegate_flow::{diagnostics::Span, model::Source};

use super::files::PromptFile;
use super::variables::{Meaning, PromptScope, Variables};
use crate::climpt::registry::step_definition::StepDefinition;
use crate::source::loader::SourceLoader;
use crate::suggest::find_nearest_name;

/// The system prompt of agents without an `agent.json`.
pub(crate) const SYSTEM: &str = "system";

/// A key from the examples of the documents that is missing from their tables.
const OF_EXAMPLES: &str = "issue_initial_default";

/// The number of words of an unknown key to compare: no key has more.
const WORDS_MAX: usize = 8;

/// A line that begins with this and a variable name appears only when that variable has a value.
const WHERE_GIVEN: char = '?';

macro_rules! prompts {
    ($($key:literal $(= $file:literal)?),+ $(,)?) => {
        /// The keys of the tables of "14. Steps Registry", and the prompt of each.
        const PROMPTS: &[(&str, &str)] = &[$(($key, prompts!(@text $key $($file)?))),+];
    };
    (@text $key:literal) => { include_str!(concat!("builtin/", $key, ".md")) };
    (@text $key:literal $file:literal) => { include_str!(concat!("builtin/", $file, ".md")) };
}

prompts! {
    "initial_iterate",
    "continuation_iterate",
    "initial_issue",
    // The examples of the documents use this name; their tables do not.
    "issue_initial_default" = "initial_issue",
    "continuation_issue",
    "initial_issue_label_only",
    "continuation_issue_label_only",
    "initial_project",
    "continuation_project",
    "initial_keyword",
    "continuation_keyword",
    // The manual mode is an alias of the keyword mode.
    "initial_manual" = "initial_keyword",
    "continuation_manual" = "continuation_keyword",
    "initial_structured_signal",
    "continuation_structured_signal",
    "continuation_project_preparation",
    "continuation_project_processing",
    "continuation_project_review",
    "issue_closure_default",
    "project_closure_default",
    "polling_closure_default",
    "review_closure_default",
    "iteration_closure_default",
    "facilitation_closure_default",
    "project_continuation_closure_default",
    "statuscheck_continuation_default",
    "system",
}

/// The keys of all built-in prompts.
pub(crate) fn list_prompt_keys() -> impl Iterator<Item = &'static str> {
    PROMPTS.iter().map(|(key, _)| *key)
}

/// The key that was probably meant: the one of the tables with the most words in common, in any order, else the one
/// with the smallest edit distance.
pub(crate) fn guess_prompt_key(key: &str) -> Option<&'static str> {
    let key = key.replace('.', "_");
    let words: Vec<&str> = key.split('_').take(WORDS_MAX).collect();
    let shared =
        |known: &str| words.iter().filter(|word| find_nearest_name(word, known.split('_')).is_some()).count();
    let known = || list_prompt_keys().filter(|known| *known != OF_EXAMPLES);
    let by_words = known().filter(|known| shared(known) > 1);
    let most = by_words.min_by_key(|known| (Reverse(shared(known)), known.split('_').count()));
    most.or_else(|| find_nearest_name(&key, known()))
}

/// The built-in prompt of a key, with the lines whose variables have values in this definition, and with the task if
/// the step requests it.
pub(crate) fn built_in(
    key: &str,
    used_at: Span,
    step: Option<&StepDefinition<'_>>,
    variables: &Variables<'_>,
    loader: &SourceLoader<'_>,
) -> Option<PromptFile> {
    let (key, text) = PROMPTS.iter().find(|(known, _)| *known == key)?;
    let takes_task = step.and_then(|step| step.uses_stdin).is_some_and(|(uses, _)| uses);
    let mut text = drop_valueless_lines(text, |name| has_value(name, variables));
    let mut path = format!("built-in/{key}.md");
    if takes_task {
        text.push_str("\nThe task, as it was given:\n\n{input_text}\n");
        path = format!("built-in/{key}.md with the task");
    }
    let file = loader.own_text(&path, &text, &format!("the built-in prompt `{key}`"), used_at);
    Some(PromptFile { path, file, text: text.into(), by: 0 })
}

/// A text without the lines whose variable has no value.
fn drop_valueless_lines(text: &str, has_value: impl Fn(&str) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let condition = line.strip_prefix(WHERE_GIVEN).and_then(|rest| rest.split_once(' '));
        match condition {
            Some((name, line)) if has_value(name) => kept.push_str(line),
            Some(_) => {}
            None => kept.push_str(line),
        }
    }
    kept
}

/// Whether every run has a value for a variable: an optional one would prevent the run from starting.
fn has_value(name: &str, variables: &Variables<'_>) -> bool {
    match variables.meaning(name, PromptScope::System) {
        Meaning::Value(Source::Param(name)) => variables
            .params
            .iter()
            .any(|param| param.name == name && (param.required || param.default.is_some())),
        Meaning::Text(text) => !text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_EXAMPLES, PROMPTS, drop_valueless_lines, guess_prompt_key};

    #[test]
    fn every_prompt_says_how_to_answer_and_is_another() {
        for (index, (key, text)) in PROMPTS.iter().enumerate() {
            assert!(text.contains("JSON object"), "{key}");
            let same = PROMPTS[..index].iter().filter(|(_, other)| other == text).count();
            assert_eq!(same, usize::from(key.ends_with("_manual") || *key == OF_EXAMPLES), "{key}");
        }
        assert_eq!(PROMPTS.len(), 27);
    }

    #[test]
    fn a_key_is_known_by_its_words() {
        for (key, expected) in [
            ("initial.issue", Some("initial_issue")),
            ("issue_initial", Some("initial_issue")),
            ("issue_initial_defalt", Some("initial_issue")),
            ("issue_continuation_default", Some("continuation_issue")),
            ("default_closure_review", Some("review_closure_default")),
            ("sytem", Some("system")),
            ("another", None),
        ] {
            assert_eq!(guess_prompt_key(key), expected, "{key}");
        }
    }

    #[test]
    fn lines_without_a_value_are_left_out() {
        let text = "one\n?a {uv-a} is there\n?b {uv-b} is there\nwhy?\n";
        assert_eq!(drop_valueless_lines(text, |name| name == "a"), "one\n{uv-a} is there\nwhy?\n");
    }
}
