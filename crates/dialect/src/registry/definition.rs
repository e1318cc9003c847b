//! A registry file as written.

use cuegate_flow::{Diagnostic, Span};

use super::behavior::OLDER_TYPES;
use super::step::{StepDefinition, read_step};
use super::validation::{FailurePattern, ValidationStep, ValidatorDefinition};
use super::verdict::VERDICT_TYPES;
use crate::codes;
use crate::findings::Findings;
use crate::json::{Fields, Json, Kind, Text};
use crate::nearest::suggestion;

/// A registry as written; what could not be read is absent, and findings say so.
#[derive(Debug, Default)]
pub(crate) struct RegistryDefinition<'j> {
    /// Where it begins.
    pub(crate) span: Span,
    /// Whose registry it is.
    pub(crate) agent_id: Option<Text<'j>>,
    /// First part of prompt paths.
    pub(crate) c1: Option<Text<'j>>,
    /// Where prompts are.
    pub(crate) prompts_base: Option<Text<'j>>,
    /// Where schemas are.
    pub(crate) schemas_base: Option<Text<'j>>,
    /// Path of a prompt with an adaptation.
    pub(crate) path_template: Option<Text<'j>>,
    /// Path of a prompt without one.
    pub(crate) path_template_plain: Option<Text<'j>>,
    /// The entry for every verdict type that the mapping does not name.
    pub(crate) entry_step: Option<Text<'j>>,
    /// The entry by verdict type.
    pub(crate) entry_mapping: Vec<(&'j str, Text<'j>)>,
    /// Which prompt tells an agent about which failure.
    pub(crate) patterns: Vec<FailurePattern<'j>>,
    /// Commands that judge the working tree.
    pub(crate) validators: Vec<ValidatorDefinition<'j>>,
    /// Which of them run before which closure step completes the run.
    pub(crate) validations: Vec<ValidationStep<'j>>,
    /// The steps.
    pub(crate) steps: Vec<StepDefinition<'j>>,
}

/// Reads a registry.
pub(crate) fn read_registry<'j>(json: &'j Json, found: &Findings) -> Option<RegistryDefinition<'j>> {
    let fields = Fields::of(json, "the registry", None, found)?;
    fields.text("$schema");
    fields.required("version");
    if fields.entry("steps").is_none() {
        fields.missing("steps");
    }
    let registry = RegistryDefinition {
        span: Span::start_of(json.span.file),
        agent_id: fields.required("agentId"),
        c1: fields.required("c1"),
        prompts_base: fields.filled("userPromptsBase"),
        schemas_base: fields.filled("schemasBase"),
        path_template: fields.filled("pathTemplate"),
        path_template_plain: fields.filled("pathTemplateNoAdaptation"),
        entry_step: fields.filled("entryStep"),
        entry_mapping: read_mapping(&fields),
        patterns: fields
            .names("failurePatterns")
            .into_iter()
            .filter_map(|e| FailurePattern::read(e, found))
            .collect(),
        validators: fields
            .names("validators")
            .into_iter()
            .filter_map(|e| ValidatorDefinition::read(e, found))
            .collect(),
        validations: fields
            .names("validationSteps")
            .into_iter()
            .filter_map(|entry| ValidationStep::read(entry, found))
            .collect(),
        steps: read_steps(&fields),
    };
    fields.finish();
    Some(registry)
}

fn read_steps<'j>(fields: &Fields<'j, '_>) -> Vec<StepDefinition<'j>> {
    let written = fields.names("steps");
    let count = written.len();
    let steps: Vec<StepDefinition<'j>> =
        written.into_iter().filter_map(|entry| read_step(entry, fields.found)).collect();
    // What is no object, or no step, has been reported.
    if let Some(entry) = fields.entry("steps")
        && matches!(entry.value.kind, Kind::Object(_))
        && steps.len() == count
        && steps.iter().all(|step| step.section)
    {
        let hint = "add a step with `structuredGate`, `transitions` and `outputSchemaRef`";
        fields.invalid(entry.key_span, "`steps` hold no step that could be run", hint);
    }
    steps
}

fn read_mapping<'j>(fields: &Fields<'j, '_>) -> Vec<(&'j str, Text<'j>)> {
    let mut mapping = Vec::new();
    for entry in fields.names("entryStepMapping") {
        let key: &'j str = &entry.key;
        if !VERDICT_TYPES.contains(&key) {
            let renamed = OLDER_TYPES.iter().find(|(older, _)| *older == key);
            let hint = match renamed {
                Some((_, now)) => format!("it is called `{now}` now"),
                None => suggestion(key, &VERDICT_TYPES),
            };
            let message = format!("`{key}` in `entryStepMapping` is no verdict type");
            fields.push(Diagnostic::error(codes::UNKNOWN_VERDICT_TYPE, entry.key_span, message).hint(hint));
        }
        match entry.value.as_text() {
            Some(text) => mapping.push((key, Text { text, span: entry.value.span })),
            None => fields.wrong_type(key, &entry.value, "the name of a step"),
        }
    }
    mapping
}

/// The step that a run begins with: the one its verdict type is mapped to, else the general one.
pub fn entry_step<'e, T>(
    verdict_type: &str,
    mapping: impl IntoIterator<Item = (&'e str, T)>,
    entry_step: Option<T>,
) -> Option<T> {
    mapping.into_iter().find(|(key, _)| *key == verdict_type).map(|(_, step)| step).or(entry_step)
}

#[cfg(test)]
mod tests {
    use super::entry_step;

    #[test]
    fn the_mapping_wins_over_the_general_entry() {
        let mapping = [("poll:state", "a"), ("count:iteration", "b")];
        assert_eq!(entry_step("count:iteration", mapping, Some("c")), Some("b"));
        assert_eq!(entry_step("meta:custom", mapping, Some("c")), Some("c"));
        assert_eq!(entry_step("meta:custom", mapping, None), None);
    }
}
