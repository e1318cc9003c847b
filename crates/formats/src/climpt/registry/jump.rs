//! Lowers `jump`: the answer's `targetField` takes precedence over `transitions.jump.target`.

use std::collections::{BTreeSet, HashSet};

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{Edge, FieldPath, KeyLookup as _, Name, Schema, Selector, Target},
};
use serde_json::Value;

use super::conditional_transitions::{check_reachable, lower_select, name_of_target, text_of};
use super::gate_lowering::{GateLowering, outcome_of_intent};
use super::step_definition::{GateDefinition, TargetMode};
use super::transition::{Transition, TransitionTarget};
use crate::climpt::generation::Generation;
use crate::climpt::kinds::{Intent, StepKind};
use crate::codes;
use crate::suggest::quote_names;
use crate::values::json::Text;

/// The edge of `jump`; `None` when it has no target at all, which is reported.
pub(crate) fn lower_jump(
    lowering: &GateLowering<'_, '_, '_>,
    gate: &GateDefinition<'_>,
    transition: Option<&Transition<'_>>,
) -> Option<Edge<Name>> {
    let rule = transition.map(|transition| &transition.rule);
    let span = transition.map_or(gate.span, |transition| transition.span);
    if let Some(TransitionTarget::End(null)) = rule {
        lowering.null_target(Intent::Jump, *null);
        return None;
    }
    let default_mode = if rule.is_some() { TargetMode::Explicit } else { TargetMode::Dynamic };
    let field = gate.target_field.as_ref().map(|(path, _)| path);
    check_inert(lowering, gate, rule);
    let to = match (gate.target_mode.map_or(default_mode, |(mode, _)| mode), field, rule) {
        (_, _, Some(TransitionTarget::Faulty)) => return None,
        (TargetMode::Conditional, Some(field), Some(TransitionTarget::Choose { cases, default, .. })) => {
            lower_conditional_jump(lowering, field, cases, default.as_ref())
        }
        (TargetMode::Conditional, _, _) => {
            let hint = "give `targetField` and `transitions.jump.targets`, or another `targetMode`";
            return report_missing_target(
                lowering,
                gate,
                "`targetMode` is `conditional`, but nothing selects a target",
                hint,
            );
        }
        (TargetMode::Dynamic, Some(field), _) => {
            lower_dynamic_jump(lowering, gate, field, single_target_of_rule(rule))?
        }
        (TargetMode::Explicit, Some(field), Some(rule)) => {
            check_listed(lowering, field, rule);
            Target::Jump {
                field: Some(field.clone()),
                among: dedup_names(rule.targets().iter().map(name_of_target)),
                default: single_target_of_rule(Some(rule))
                    .map(name_of_target)
                    .or_else(|| chosen_default(rule)),
            }
        }
        (_, None, Some(TransitionTarget::Step(target))) => Target::Step(name_of_target(target)),
        (_, None, Some(TransitionTarget::Choose { condition, cases, default })) => match condition {
            Some(condition) => lower_select(lowering, condition, cases, default.as_ref()),
            None => {
                let hint = "add `condition`, or `targetField` to the gate";
                return report_missing_target(
                    lowering,
                    gate,
                    "nothing selects among the `targets` of `jump`",
                    hint,
                );
            }
        },
        (TargetMode::Explicit, Some(_), None) => {
            let hint = "add `transitions.jump`, or remove `targetMode`";
            let message = "`targetMode` is `explicit`, but no transition names the targets of `jump`";
            return report_missing_target(lowering, gate, message, hint);
        }
        _ => {
            let hint = "add `targetField` to the gate, or `transitions.jump.target`";
            return report_missing_target(lowering, gate, "`jump` is allowed, but has no target", hint);
        }
    };
    check_answers(lowering, gate, &to);
    check_fallback(lowering, gate, &to);
    Some(Edge::new(outcome_of_intent(Intent::Jump), to, span))
}

/// The step that the answer names must be an allowed jump target.
fn check_answers(lowering: &GateLowering<'_, '_, '_>, gate: &GateDefinition<'_>, to: &Target<Name>) {
    let (Target::Jump { field: Some(field), among, default }, Some(schema)) = (to, lowering.schema) else {
        return;
    };
    let Some((_, span)) = gate.target_field.as_ref().filter(|_| schema.can_produce(field)) else { return };
    // A missing step is reported separately.
    if !among.iter().all(|step| lowering.world.step(&step.text).is_some()) {
        return;
    }
    let id = lowering.step.id;
    let steps: HashSet<&str> = among.iter().map(|step| &*step.text).collect();
    let is_allowed = |value: &Value| value.as_str().is_some_and(|name| steps.contains(name));
    let (allowed, refused): (Vec<Value>, Vec<Value>) = match schema.values_at(field) {
        Some(values) => values.into_iter().filter(|value| !value.is_null()).partition(is_allowed),
        None if schema.can_be(field, &["string"]) => {
            (among.iter().map(|step| (*step.text).into()).collect(), Vec::new())
        }
        None => (Vec::new(), Vec::new()),
    };
    let may_be_missing = !has_value(schema, field);
    let names: Vec<&str> = among.iter().map(|step| &*step.text).collect();
    let refused: Vec<String> = refused.iter().map(text_of).collect();
    if allowed.is_empty() && !(default.is_some() && may_be_missing) {
        let what = match refused.is_empty() {
            true => "no name of a step".to_owned(),
            false => quote_names(&refused),
        };
        let message = format!(
            "every `jump` of `{id}` is refused: `{field}` can be {what}, and allowed are {}",
            quote_names(&names)
        );
        let finding = Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message);
        lowering.push(finding.hint("list the steps that it may lead to in the schema's `enum`"));
        return;
    }
    if !refused.is_empty() {
        let message = format!(
            "a `jump` of `{id}` to {} is refused: allowed are {}",
            quote_names(&refused),
            quote_names(&names)
        );
        let finding = Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, *span, message);
        lowering.push(finding.hint("take it out of the schema's `enum`, or allow it"));
    }
    if may_be_missing && default.is_none() {
        let message = format!("answers of `{id}` may leave out `{field}`, and then a `jump` names no step");
        let finding = Diagnostic::note(codes::SCHEMA_GATE_MISMATCH, *span, message);
        lowering.push(finding.hint("list it in `required` of the schema, or give `transitions.jump.target`"));
    }
}

/// Reports a missing default target: an unreadable answer names no step, so a fallback to `jump` needs one.
fn check_fallback(lowering: &GateLowering<'_, '_, '_>, gate: &GateDefinition<'_>, to: &Target<Name>) {
    let Some((Intent::Jump, span)) = gate.fallback else { return };
    let needs_answer = match to {
        Target::Jump { default, .. } | Target::Select { by: Selector::Field(_), default, .. } => {
            default.is_none()
        }
        _ => false,
    };
    // A fallback that never acts has been reported.
    let acts = lowering.step.generation == Generation::Complete
        || gate.fail_fast.is_some_and(|(fails_fast, _)| !fails_fast);
    if needs_answer && acts {
        let message = "`fallbackIntent` has no effect: an answer that cannot be used names no step for `jump` to lead to";
        let finding = Diagnostic::warning(codes::UNUSED_KEY, span, message);
        lowering.push(finding.hint("give `transitions.jump.target`, or fall back to another intent"));
    }
}

/// Reports settings of gate and transition about the target that another setting overrides.
fn check_inert(
    lowering: &GateLowering<'_, '_, '_>,
    gate: &GateDefinition<'_>,
    rule: Option<&TransitionTarget<'_>>,
) {
    let inert = |span, message: &str, hint: &str| {
        lowering.push(Diagnostic::warning(codes::UNUSED_KEY, span, message).hint(hint));
    };
    let mode = gate.target_mode.map(|(mode, _)| mode);
    if let (Some((TargetMode::Dynamic, span)), None, Some(_)) = (gate.target_mode, &gate.target_field, rule) {
        let message = "`targetMode` has no effect: without `targetField` the answer names no target";
        inert(span, message, "add `targetField`, or remove `targetMode`");
    }
    let (Some(_), Some(TransitionTarget::Choose { condition, cases, default })) = (&gate.target_field, rule)
    else {
        return;
    };
    if let Some(condition) = condition.filter(|_| !cases.is_empty()) {
        let message = "`condition` of `jump` has no effect: the answer's `targetField` selects";
        inert(condition.span, message, "remove `condition`, or `targetField` from the gate");
    }
    match mode {
        Some(TargetMode::Conditional) => {}
        Some(TargetMode::Dynamic) => {
            let first = cases.iter().map(|(_, target)| target).chain(default).next();
            if let Some(first) = first {
                let message = "`targets` of `jump` have no effect: with `targetMode` `dynamic` the answer names any \
                               work or verification step";
                inert(first.span, message, "remove them, or `targetMode`");
            }
        }
        Some(TargetMode::Explicit) | None => {
            if let Some((value, target)) = cases.iter().find(|(value, target)| *value != target.text) {
                let message = format!(
                    "the value `{value}` of `targets` has no effect: the answer's `targetField` names the step \
                     `{}` itself",
                    target.text
                );
                let hint = "set `targetMode` to `conditional` to select by value, or write the step's name as the value";
                inert(target.span, &message, hint);
            }
        }
    }
}

/// Reports targets that only the answer can select, if it cannot name them. (Values that are not names have been
/// reported.)
fn check_listed(lowering: &GateLowering<'_, '_, '_>, field: &FieldPath, rule: &TransitionTarget<'_>) {
    match rule {
        TransitionTarget::Choose { cases, .. }
            if cases.iter().all(|(value, target)| *value == target.text) =>
        {
            check_reachable(lowering, field, cases);
        }
        _ => {}
    }
}

fn report_missing_target(
    lowering: &GateLowering<'_, '_, '_>,
    gate: &GateDefinition<'_>,
    message: &str,
    hint: &str,
) -> Option<Edge<Name>> {
    let at =
        gate.intents.iter().find(|(intent, _)| *intent == Intent::Jump).map_or(gate.span, |(_, span)| *span);
    lowering.push(Diagnostic::error(codes::MISSING_TRANSITION, at, message).hint(hint));
    None
}

fn lower_conditional_jump(
    lowering: &GateLowering<'_, '_, '_>,
    field: &FieldPath,
    cases: &[(&str, Text<'_>)],
    default: Option<&Text<'_>>,
) -> Target<Name> {
    check_reachable(lowering, field, cases);
    Target::Select {
        by: Selector::Field(field.clone()),
        cases: cases.iter().map(|(value, target)| ((*value).into(), name_of_target(target))).collect(),
        default: default.map(name_of_target),
    }
}

/// Any work or verification step, restricted by the schema's enum.
fn lower_dynamic_jump(
    lowering: &GateLowering<'_, '_, '_>,
    gate: &GateDefinition<'_>,
    field: &FieldPath,
    default: Option<&Text<'_>>,
) -> Option<Target<Name>> {
    let world = lowering.world;
    let listed = lowering.schema.and_then(|schema| schema.values_at(field));
    let places: Vec<usize> = match &listed {
        Some(values) => {
            let places = values.iter().filter_map(Value::as_str).filter_map(|id| world.index.place(id));
            // In registry order, without duplicates.
            places.collect::<BTreeSet<usize>>().into_iter().collect()
        }
        None => (0..world.steps.len()).collect(),
    };
    let among: Vec<Name> = places
        .into_iter()
        .map(|at| &world.steps[at])
        .filter(|step| matches!(step.kind, Some(StepKind::Work | StepKind::Verification)) && !step.section)
        .map(|step| Name::new(step.id, gate.span))
        .collect();
    if among.is_empty() && listed.is_some() && default.is_none() {
        let message = format!("the schema lists no work or verification step at `{field}`");
        report_missing_target(
            lowering,
            gate,
            &message,
            "list the steps that `jump` may lead to in the schema's `enum`",
        );
        return None;
    }
    Some(Target::Jump { field: Some(field.clone()), among, default: default.map(name_of_target) })
}

fn single_target_of_rule<'r, 'j>(rule: Option<&'r TransitionTarget<'j>>) -> Option<&'r Text<'j>> {
    match rule {
        Some(TransitionTarget::Step(target)) => Some(target),
        _ => None,
    }
}

fn chosen_default(rule: &TransitionTarget<'_>) -> Option<Name> {
    match rule {
        TransitionTarget::Choose { default, .. } => default.as_ref().map(name_of_target),
        _ => None,
    }
}

fn dedup_names(names: impl Iterator<Item = Name>) -> Vec<Name> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(name.text.clone())).collect()
}

/// Whether every answer that fits has a value at a path; `null` is none.
pub(crate) fn has_value(schema: &Schema, path: &FieldPath) -> bool {
    // Most paths cannot be `null` by their type alone, which is told sooner than what all their values are.
    let can_be_null = || match schema.values_at(path) {
        Some(values) => values.contains(&Value::Null),
        None => schema.subschema(path).is_some_and(|part| part.find_key("type").is_some()),
    };
    schema.requires(path) && !(schema.can_be(path, &["null"]) && can_be_null())
}
