//! Transitions as written.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::climpt::generation::Generation;
use crate::climpt::kinds::Intent;
use crate::codes;
use crate::values::json::{Fields, Json, Kind, Text};

#[derive(Debug)]
pub(crate) struct Transition<'j> {
    pub(crate) intent: Intent,
    /// The place of the intent.
    pub(crate) span: Span,
    /// Its target.
    pub(crate) rule: TransitionTarget<'j>,
}

#[derive(Debug)]
pub(crate) enum TransitionTarget<'j> {
    Step(Text<'j>),
    /// The end of the flow: `"target": null`.
    End(Span),
    /// The step that a handoff value selects.
    Choose {
        /// The name of the value.
        condition: Option<Text<'j>>,
        /// Values and steps, in order.
        cases: Vec<(&'j str, Text<'j>)>,
        /// The step for every other value.
        default: Option<Text<'j>>,
    },
    /// It could not be read; findings say why.
    Faulty,
}

impl<'j> TransitionTarget<'j> {
    /// Every step it names.
    pub(crate) fn targets(&self) -> Vec<Text<'j>> {
        match self {
            TransitionTarget::Step(target) => vec![*target],
            TransitionTarget::Choose { cases, default, .. } => {
                cases.iter().map(|(_, target)| *target).chain(*default).collect()
            }
            TransitionTarget::End(_) | TransitionTarget::Faulty => Vec::new(),
        }
    }
}

/// Reads the `transitions` of a step; `None` when there are none.
pub(crate) fn read_transitions<'j>(
    step: &Fields<'j, '_>,
    id: &str,
    generation: Generation,
) -> Option<Vec<Transition<'j>>> {
    step.entry("transitions")?;
    let mut transitions = Vec::new();
    for entry in step.names("transitions") {
        let Some(intent) = generation.intent(&entry.key) else {
            let message = format!("unknown intent `{}` in `transitions`", entry.key);
            let finding = Diagnostic::error(codes::INVALID_VALUE, entry.key_span, message);
            step.push(generation.suggested(finding, &entry.key));
            continue;
        };
        let rule = read_rule(&entry.value, intent, id, step);
        transitions.push(Transition { intent, span: entry.key_span, rule });
    }
    Some(transitions)
}

fn read_rule<'j>(json: &'j Json, intent: Intent, id: &str, step: &Fields<'j, '_>) -> TransitionTarget<'j> {
    let what = format!("`transitions.{}`", intent.as_str());
    let Some(fields) = Fields::of(json, &what, Some(id), step.found) else { return TransitionTarget::Faulty };
    let target = fields.nullable("target");
    let condition = fields.filled("condition");
    let targets = fields.entry("targets");
    fields.stray("fallback", "a target always exists, so nothing falls back to it; remove it");
    let rule = match (target, targets) {
        (Some(_), Some(targets)) => {
            let hint = "keep `target`, or `condition` with `targets`";
            fields.invalid(targets.key_span, format!("{what} has both `target` and `targets`"), hint);
            TransitionTarget::Faulty
        }
        (Some(target), None) => {
            fields.stray("condition", "it selects among `targets`, and there is one `target`; remove it");
            match &target.value.kind {
                Kind::Null => TransitionTarget::End(target.value.span),
                _ => fields.filled("target").map_or(TransitionTarget::Faulty, TransitionTarget::Step),
            }
        }
        (None, Some(_)) => {
            if condition.is_none() && intent != Intent::Jump && fields.nullable("condition").is_none() {
                fields.missing("condition");
            }
            read_cases(&fields, condition)
        }
        (None, None) => {
            fields.missing("target");
            TransitionTarget::Faulty
        }
    };
    fields.finish();
    rule
}

fn read_cases<'j>(fields: &Fields<'j, '_>, condition: Option<Text<'j>>) -> TransitionTarget<'j> {
    let (mut cases, mut default) = (Vec::new(), None);
    let entries = fields.names("targets");
    if let Some(targets) = fields.entry("targets").map(|entry| &entry.value)
        && matches!(&targets.kind, Kind::Object(entries) if entries.is_empty())
    {
        let hint = "name a step for each value, or `default` for all";
        fields.invalid(targets.span, "`targets` is empty", hint);
        return TransitionTarget::Faulty;
    }
    if let ([only], Some(condition)) = (entries.as_slice(), condition)
        && &*only.key == "default"
    {
        let message =
            format!("`condition` `{}` has no effect: every value leads to `default`", condition.text);
        fields.inert(condition.span, message, "write `target`, or name steps for other values");
    }
    for entry in entries {
        match &entry.value.kind {
            Kind::Text(text) => {
                let target = Text { text, span: entry.value.span };
                if &*entry.key == "default" {
                    default = Some(target);
                } else {
                    cases.push((&*entry.key, target));
                }
            }
            Kind::Null => fields.push(
                Diagnostic::error(
                    codes::MISSING_TRANSITION,
                    entry.value.span,
                    format!("`{}` in `targets` leads nowhere", entry.key),
                )
                .hint("lead it to a step: values select among steps"),
            ),
            _ => fields.wrong_type(&entry.key, &entry.value, "the name of a step"),
        }
    }
    TransitionTarget::Choose { condition, cases, default }
}
