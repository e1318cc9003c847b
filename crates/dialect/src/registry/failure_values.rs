//! What validators and failure patterns declare, and no failure prompt reads.

use cuegate_flow::{Diagnostic, Span};

use super::definition::RegistryDefinition;
use super::validation::{FailurePattern, ValidatorDefinition};
use crate::codes;
use crate::findings::Findings;
use crate::json::Text;
use crate::nearest::list;

/// A validator where a validation names it.
pub(super) struct Use<'v, 'j> {
    /// The validator.
    pub(super) validator: &'v ValidatorDefinition<'j>,
    /// What its failure leads to.
    pub(super) asked: Asked,
}

/// What an agent is told when a validator fails.
pub(super) enum Asked {
    /// A failure prompt that reads these values, each with where it stands first.
    Prompt(Vec<(String, Span)>),
    /// Nothing: there is no remedy.
    Nothing,
    /// It could not be found out, which has been reported.
    Unknown,
}

/// Reports validators that nothing runs, failure patterns that no validator names, and values for nobody.
pub(super) fn report_unused(registry: &RegistryDefinition<'_>, uses: &[Use<'_, '_>], found: &Findings) {
    // A name that leads nowhere may be meant to lead to what nobody names, and has been reported.
    let conditions: Vec<&str> = registry
        .validations
        .iter()
        .flat_map(|validation| &validation.conditions)
        .map(|condition| condition.text)
        .collect();
    let lost = conditions.iter().any(|name| !registry.validators.iter().any(|known| known.name == *name))
        || registry.validations.iter().any(|validation| validation.misread)
        || (registry.misread && registry.validations.is_empty());
    for validator in &registry.validators {
        let name = validator.name;
        if !conditions.contains(&name) {
            if lost {
                continue;
            }
            let message = format!("no validation names the validator `{name}`, so that nothing runs it");
            found.push(
                Diagnostic::warning(codes::UNUSED_VALIDATOR, validator.span, message)
                    .hint("name it in `validationConditions` of a closure step's validation, or remove it"),
            );
            continue;
        }
        let Some(read) = read(uses, |used| used.validator.name == name) else { continue };
        let told = patterns_told(registry, validator, uses);
        let is_unread = |param: &&Text<'_>| {
            let promised =
                told.iter().any(|pattern| pattern.params.iter().any(|known| known.text == param.text));
            !promised && !read.contains(&param.text)
        };
        let unread: Vec<&Text<'_>> =
            validator.extract.iter().map(|(param, _)| param).filter(is_unread).collect();
        let asks =
            uses.iter().any(|used| used.validator.name == name && !matches!(used.asked, Asked::Nothing));
        if let ([first, _, ..], false) = (&unread[..], asks) {
            let names: Vec<&str> = unread.iter().map(|param| param.text).collect();
            let message =
                format!("nobody is told when `{name}` fails, so that nothing reads its {}", list(&names));
            let hint = "remove `extractParams`, or let it be tried again: `\"action\": \"retry\"` with `maxAttempts` of at least 1";
            found.push(Diagnostic::warning(codes::UNUSED_FAILURE_PARAM, first.span, message).hint(hint));
            continue;
        }
        for param in unread {
            let message = format!("no failure prompt of `{name}` reads its `{}`", param.text);
            found.push(unused(param.text, param.span, message));
        }
    }
    let names = |validator: &ValidatorDefinition<'_>| {
        let named = validator.pattern;
        named.is_some_and(|named| registry.patterns.iter().any(|known| known.name == named.text))
    };
    let lost = !registry.validators.iter().all(names) || (registry.misread && registry.validators.is_empty());
    for pattern in &registry.patterns {
        let name = pattern.name;
        let of =
            |validator: &ValidatorDefinition<'_>| validator.pattern.is_some_and(|named| named.text == name);
        if !registry.validators.iter().any(of) {
            if lost {
                continue;
            }
            let message = format!("no validator names the failure pattern `{name}`");
            found.push(
                Diagnostic::warning(codes::UNUSED_FAILURE_PATTERN, pattern.span, message)
                    .hint("name it as a validator's `failurePattern`, or remove it"),
            );
            continue;
        }
        if !uses.iter().any(|used| of(used.validator) && matches!(used.asked, Asked::Prompt(_))) {
            continue;
        }
        let Some(read) = read(uses, |used| of(used.validator)) else { continue };
        for param in pattern.params.iter().filter(|param| !read.contains(&param.text)) {
            let message = format!("the prompt of failure pattern `{name}` does not read `{}`", param.text);
            found.push(unused(param.text, param.span, message));
        }
    }
}

fn unused(param: &str, span: Span, message: String) -> Diagnostic {
    Diagnostic::warning(codes::UNUSED_FAILURE_PARAM, span, message)
        .hint(format!("write `{{{{{param}}}}}` in the failure prompt, or remove it"))
}

/// The values that the failure prompts of some uses read; `None` when that is unknown for one of them.
fn read<'u>(uses: &'u [Use<'_, '_>], of: impl Fn(&Use<'_, '_>) -> bool) -> Option<Vec<&'u str>> {
    let mut read = Vec::new();
    for used in uses.iter().filter(|used| of(used)) {
        match &used.asked {
            Asked::Prompt(values) => read.extend(values.iter().map(|(name, _)| name.as_str())),
            Asked::Nothing => {}
            Asked::Unknown => return None,
        }
    }
    Some(read)
}

/// The failure patterns whose `params` are compared with a prompt: what is wrong with those is said there.
fn patterns_told<'r, 'j>(
    registry: &'r RegistryDefinition<'j>,
    validator: &ValidatorDefinition<'_>,
    uses: &[Use<'_, '_>],
) -> Vec<&'r FailurePattern<'j>> {
    let prompted = |pattern: &&FailurePattern<'_>| {
        uses.iter().any(|used| {
            used.validator.pattern.is_some_and(|named| named.text == pattern.name)
                && matches!(used.asked, Asked::Prompt(_))
        })
    };
    let own =
        |pattern: &&FailurePattern<'_>| validator.pattern.is_some_and(|named| named.text == pattern.name);
    registry.patterns.iter().filter(own).filter(prompted).collect()
}
