//! What validators and failure patterns declare, and no failure prompt reads.

use std::collections::{HashMap, HashSet};

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::climpt::registry::definition::RegistryDefinition;
use crate::climpt::registry::validation_definition::ValidatorDefinition;
use crate::codes;
use crate::findings::Findings;
use crate::suggest::quote_names;
use crate::values::json::Text;

/// A validator where a validation names it.
pub(crate) struct ValidatorUse<'v, 'j> {
    pub(crate) validator: &'v ValidatorDefinition<'j>,
    /// What its failure leads to.
    pub(crate) asked: FailureInstruction,
}

/// What an agent is told when a validator fails.
pub(crate) enum FailureInstruction {
    /// A failure prompt that reads these values, each with where it stands first.
    Prompt(Vec<(String, Span)>),
    /// Nothing: there is no remedy.
    Nothing,
    /// It could not be found out, which has been reported.
    Unknown,
}

/// Reports validators that nothing runs, failure patterns that no validator names, and values for nobody.
pub(crate) fn report_unused(
    registry: &RegistryDefinition<'_>,
    uses: &[ValidatorUse<'_, '_>],
    found: &Findings,
) {
    // A name that leads nowhere may be meant to lead to what nobody names, and has been reported.
    let conditions: Vec<&str> = registry
        .validations
        .iter()
        .flat_map(|validation| &validation.conditions)
        .map(|condition| condition.text)
        .collect();
    let conditions: HashSet<&str> = conditions.into_iter().collect();
    let defined: HashSet<&str> = registry.validators.iter().map(|known| known.name).collect();
    let uses = ValidatorUses::of(registry, uses);
    let lost = !conditions.is_subset(&defined)
        || registry.validations.iter().any(|validation| validation.misread)
        || (registry.misread && registry.validations.is_empty());
    let unnamed: Vec<&ValidatorDefinition<'_>> =
        registry.validators.iter().filter(|known| !lost && !conditions.contains(known.name)).collect();
    if let ([first, _, ..], true) = (&unnamed[..], conditions.is_empty()) {
        let names: Vec<&str> = unnamed.iter().map(|known| known.name).collect();
        let message =
            format!("no validation names the validators {}, so nothing runs them", quote_names(&names));
        let finding = Diagnostic::warning(codes::UNUSED_DEFINITION, first.span, message);
        found.push(
            finding
                .hint("name them in `validationConditions` of a closure step's validation, or remove them"),
        );
    }
    for validator in &registry.validators {
        let name = validator.name;
        if !conditions.contains(name) {
            if lost || (conditions.is_empty() && unnamed.len() > 1) {
                continue;
            }
            let message = format!("no validation names the validator `{name}`, so nothing runs it");
            found.push(
                Diagnostic::warning(codes::UNUSED_DEFINITION, validator.span, message)
                    .hint("name it in `validationConditions` of a closure step's validation, or remove it"),
            );
            continue;
        }
        let own = uses.by_validator.get(name).map_or(&[][..], Vec::as_slice);
        let Some(read) = collect_read_values(own) else { continue };
        let told = validator.pattern.and_then(|named| uses.told.get(named.text));
        let is_unread = |param: &&Text<'_>| {
            let promised = told.is_some_and(|told| told.contains(param.text));
            !promised && !read.contains(param.text)
        };
        let unread: Vec<&Text<'_>> =
            validator.extract.iter().map(|(param, _)| param).filter(is_unread).collect();
        let asks = own.iter().any(|used| !matches!(used.asked, FailureInstruction::Nothing));
        if let ([first, _, ..], false) = (&unread[..], asks) {
            let names: Vec<&str> = unread.iter().map(|param| param.text).collect();
            let message = format!(
                "no prompt is sent when `{name}` fails, so nothing reads its {}",
                quote_names(&names)
            );
            let hint = "remove `extractParams`, or let it be tried again: `\"action\": \"retry\"` with `maxAttempts` of at least 1";
            found.push(Diagnostic::warning(codes::UNUSED_VARIABLE, first.span, message).hint(hint));
            continue;
        }
        for param in unread {
            let message = format!("no failure prompt of `{name}` reads its `{}`", param.text);
            found.push(build_unused_finding(param.text, param.span, message));
        }
    }
    let patterns: HashSet<&str> = registry.patterns.iter().map(|known| known.name).collect();
    let named: HashSet<&str> =
        registry.validators.iter().flat_map(|known| known.pattern).map(|named| named.text).collect();
    let names = |validator: &ValidatorDefinition<'_>| {
        validator.pattern.is_some_and(|named| patterns.contains(named.text))
    };
    // A validator that there is not may be one that names it.
    let lost = !registry.validators.iter().all(names)
        || !conditions.is_subset(&defined)
        || (registry.misread && registry.validators.is_empty());
    for pattern in &registry.patterns {
        let name = pattern.name;
        if !named.contains(name) {
            if lost {
                continue;
            }
            let message = format!("no validator names the failure pattern `{name}`");
            found.push(
                Diagnostic::warning(codes::UNUSED_DEFINITION, pattern.span, message)
                    .hint("name it as a validator's `failurePattern`, or remove it"),
            );
            continue;
        }
        let own = uses.by_pattern.get(name).map_or(&[][..], Vec::as_slice);
        if !own.iter().any(|used| matches!(used.asked, FailureInstruction::Prompt(_))) {
            continue;
        }
        let Some(read) = collect_read_values(own) else { continue };
        for param in pattern.params.iter().filter(|param| !read.contains(param.text)) {
            let message = format!("the prompt of failure pattern `{name}` does not read `{}`", param.text);
            found.push(build_unused_finding(param.text, param.span, message));
        }
    }
}

fn build_unused_finding(param: &str, span: Span, message: String) -> Diagnostic {
    Diagnostic::warning(codes::UNUSED_VARIABLE, span, message)
        .hint(format!("write `{{{{{param}}}}}` in the failure prompt, or remove it"))
}

/// The values that the failure prompts of some uses read; `None` when that is unknown for one of them.
fn collect_read_values<'u>(uses: &[&'u ValidatorUse<'_, '_>]) -> Option<HashSet<&'u str>> {
    let mut read = HashSet::new();
    for used in uses {
        match &used.asked {
            FailureInstruction::Prompt(values) => read.extend(values.iter().map(|(name, _)| name.as_str())),
            FailureInstruction::Nothing => {}
            FailureInstruction::Unknown => return None,
        }
    }
    Some(read)
}

/// Uses by what they are of.
struct ValidatorUses<'u, 'v, 'j> {
    by_validator: HashMap<&'j str, Vec<&'u ValidatorUse<'v, 'j>>>,
    by_pattern: HashMap<&'j str, Vec<&'u ValidatorUse<'v, 'j>>>,
    /// By failure pattern whose `params` are compared with a prompt: these. What is wrong with them is said there.
    told: HashMap<&'j str, HashSet<&'j str>>,
}

impl<'u, 'v, 'j> ValidatorUses<'u, 'v, 'j> {
    fn of(registry: &RegistryDefinition<'j>, uses: &'u [ValidatorUse<'v, 'j>]) -> ValidatorUses<'u, 'v, 'j> {
        let mut all =
            ValidatorUses { by_validator: HashMap::new(), by_pattern: HashMap::new(), told: HashMap::new() };
        for used in uses {
            all.by_validator.entry(used.validator.name).or_default().push(used);
            if let Some(named) = used.validator.pattern {
                all.by_pattern.entry(named.text).or_default().push(used);
            }
        }
        let is_prompted = |name: &str| {
            all.by_pattern
                .get(name)
                .is_some_and(|own| own.iter().any(|used| matches!(used.asked, FailureInstruction::Prompt(_))))
        };
        for pattern in registry.patterns.iter().filter(|pattern| is_prompted(pattern.name)) {
            all.told.entry(pattern.name).or_default().extend(pattern.params.iter().map(|param| param.text));
        }
        all
    }
}
