use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::analysis::newest_values;
use crate::analysis::paths::{ControlGraph, FAR, SearchBudget};
use crate::checks::Code;
use crate::{
    Str,
    diagnostics::Diagnostic,
    model::{FieldPath, Flow, Gate, OutcomeReader, Piece, Schema, Selector, Step, StepId, Target, Template},
};

pub(in crate::checks) const CODE: Code = code!("type-mismatch");

pub(in crate::checks) fn check_value_types(
    flow: &Flow,
    walks: &ControlGraph<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let (leavers, mut work) = (index_composite_handoffs(flow, walks), walks.work());
    for (at, step) in flow.steps.iter().enumerate() {
        check_gate_types(flow, step, found);
        for (index, edge) in step.edges.iter().enumerate() {
            match &edge.to {
                Target::Select { by: Selector::Handoff(key), default: Some(_), .. } => {
                    let leavers = leavers.get(key).map_or(&[][..], Vec::as_slice);
                    found.extend(diagnose_composite_selector(walks, (at, index), key, leavers, &mut work));
                }
                Target::Jump { field: Some(path), .. } => {
                    let kinds =
                        newest_values::schema_of(flow, step).and_then(|schema| types_of_path(schema, path));
                    if let Some(kinds) = kinds.filter(|kinds| !kinds.contains(&"string")) {
                        let message = format!(
                            "`{path}` of `{}` names the step to jump to, and is {} by its schema",
                            step.name,
                            one_of(&kinds)
                        );
                        found.push(
                            Diagnostic::warning(CODE.name, edge.span, message).step(&step.name).hint(
                                "let the schema say `\"type\": \"string\"` there, or name another field",
                            ),
                        );
                    }
                }
                _ => {}
            }
        }
    }
}

/// The types that a value at a path can have; `None` when the schema does not say. `null` is no value.
fn types_of_path(schema: &Schema, path: &FieldPath) -> Option<Vec<&'static str>> {
    let at = schema.subschema(path)?;
    let listed = match (at.get("enum"), at.get("const"), at.get("type")) {
        (Some(Value::Array(values)), ..) => values.iter().map(kind_of).collect(),
        (_, Some(value), _) => vec![kind_of(value)],
        (.., Some(Value::String(kind))) => vec![match_type_name(kind)?],
        (.., Some(Value::Array(kinds))) => {
            kinds.iter().map(|kind| match_type_name(kind.as_str()?)).collect::<Option<Vec<_>>>()?
        }
        _ => return None,
    };
    let kinds: Vec<&'static str> = listed.into_iter().filter(|kind| *kind != "null").collect();
    (!kinds.is_empty()).then_some(kinds)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn match_type_name(kind: &str) -> Option<&'static str> {
    ["null", "boolean", "number", "string", "array", "object", "integer"]
        .into_iter()
        .find(|known| *known == kind)
}

fn is_whole(kinds: &[&str]) -> bool {
    kinds.iter().all(|kind| matches!(*kind, "array" | "object"))
}

fn one_of(kinds: &[&str]) -> String {
    let word = |kind: &&str| match *kind {
        "array" => "a list",
        "object" => "an object",
        "boolean" => "a truth value",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "text",
    };
    let mut words: Vec<&str> = kinds.iter().map(word).collect();
    words.dedup();
    words.join(" or ")
}

/// Reports a gate that reads its intent from a field that can hold none.
fn check_gate_types(flow: &Flow, step: &Step<StepId>, found: &mut Vec<Diagnostic>) {
    let (Gate::Readers(readers), Some(schema)) = (&step.gate, newest_values::schema_of(flow, step)) else {
        return;
    };
    for reader in readers {
        let OutcomeReader::Field { path, words, .. } = reader else { continue };
        let Some(kinds) = types_of_path(schema, path) else { continue };
        let spelled = |kind: &&str| match *kind {
            "string" => true,
            "boolean" => words.iter().any(|(word, _)| matches!(&**word, "true" | "false")),
            "number" | "integer" => words.iter().any(|(word, _)| word.parse::<f64>().is_ok()),
            _ => false,
        };
        if kinds.iter().any(spelled) {
            continue;
        }
        let message = format!(
            "`{path}` of `{}` is to say the outcome, and is {} by its schema",
            step.name,
            one_of(&kinds)
        );
        let others = readers.iter().any(|other| {
            matches!(
                other,
                OutcomeReader::Tag { .. }
                    | OutcomeReader::Said { .. }
                    | OutcomeReader::Judge { .. }
                    | OutcomeReader::Otherwise(_)
            )
        });
        let finding = if others {
            Diagnostic::warning(CODE.name, step.span, message)
        } else {
            Diagnostic::error(CODE.name, step.span, message)
        };
        found.push(
            finding
                .step(&step.name)
                .hint("let the schema list the words of the gate there, or name another field"),
        );
    }
}

/// Reports a value of another step that selects a transition and can equal no entry. The reader of the format compares
/// the step's own values with the entries; without a default `transition-without-default` reports them.
fn diagnose_composite_selector(
    walks: &ControlGraph<'_>,
    (at, index): (usize, usize),
    key: &Str,
    leavers: &[(usize, Vec<&'static str>)],
    work: &mut SearchBudget,
) -> Option<Diagnostic> {
    let flow = walks.flow;
    let (step, edge) = (&flow.steps[at], &flow.steps[at].edges[index]);
    if leavers.is_empty() {
        return None;
    }
    let is_own = step.handoff.iter().any(|left| left.key == *key);
    if is_own || walks.far[at] == FAR {
        return None;
    }
    for (from, kinds) in leavers.iter().filter(|(from, _)| *from != at) {
        let (from, other) = (*from, &flow.steps[*from]);
        let later: Vec<usize> = walks.out[from].iter().map(|hop| hop.to).collect();
        let leaves = |step: usize| flow.steps[step].handoff.iter().any(|left| left.key == *key);
        let search = walks.search(&later, |hop| !leaves(hop.from), |step| step == at);
        if !work.spend(search.work) {
            return None;
        }
        let Some(reader) = search.found else { continue };
        let mut hops = walks.to(from, |_| true).unwrap_or_default();
        let walk = search.walk(reader);
        let begins = walk.first().map_or(reader, |hop| hop.from);
        hops.extend(walks.out[from].iter().find(|hop| hop.to == begins));
        hops.extend(walk);
        let message = format!(
            "`{}` on `{}` selects by `{key}`, which `{}` leaves as {}: the default is taken then",
            step.name,
            edge.on,
            other.name,
            one_of(kinds)
        );
        return Some(
            Diagnostic::warning(CODE.name, edge.span, message)
                .step(&step.name)
                .hint("select by a field of it that is text, a number or a truth value")
                .trace(walks.tell(&hops, at)),
        );
    }
    None
}

/// By selecting name, the reachable steps that hand on lists or objects under it, with their types.
fn index_composite_handoffs<'f>(
    flow: &'f Flow,
    walks: &ControlGraph<'_>,
) -> HashMap<&'f Str, Vec<(usize, Vec<&'static str>)>> {
    let mut found: HashMap<&Str, Vec<(usize, Vec<&'static str>)>> = HashMap::new();
    let selecting = newest_values::list_selecting_names(flow);
    if selecting.is_empty() {
        return found;
    }
    for (at, step) in flow.steps.iter().enumerate().filter(|(at, _)| walks.far[*at] != FAR) {
        let Some(schema) = newest_values::schema_of(flow, step) else { continue };
        let mut seen = HashSet::new();
        // Of equal names, the first counts.
        let selecting = step.handoff.iter().filter(|left| selecting.binary_search(&left.key).is_ok());
        for left in selecting.filter(|left| seen.insert(&left.key)) {
            if let Some(kinds) = types_of_path(schema, &left.path).filter(|kinds| is_whole(kinds)) {
                found.entry(&left.key).or_default().push((at, kinds));
            }
        }
    }
    found
}

/// Whether a prompt mentions what failed.
pub(in crate::checks) fn tells_failure(template: &Template) -> bool {
    fn tells(pieces: &[Piece]) -> bool {
        pieces.iter().any(|piece| match piece {
            Piece::Failure(_) | Piece::If { .. } | Piece::Each { .. } => true,
            Piece::Filled { body, .. } => tells(body),
            Piece::Text(_) | Piece::Value(_) | Piece::Item(_) => false,
        })
    }
    tells(&template.pieces)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, hand_on, schema};
    use crate::model::{Draft, FieldPath, Selector, Target};
    use serde_json::{Value, json};

    fn said(draft: Draft) -> Vec<String> {
        let mut found = findings_of(draft);
        found.retain(|found| found.code == "type-mismatch");
        found.iter().map(|found| format!("{}: {}", found.severity.as_str(), found.message)).collect()
    }

    fn with(properties: Value, draft: &mut Draft, step: usize) {
        schema(draft, step, json!({"type": "object", "required": ["action"], "properties": properties}));
    }

    /// `b` selects by `plan`, which `a` leaves.
    fn selects(kind: Value) -> Draft {
        let mut draft = draft("a: next → b\nb: next → c\nc: done → end");
        hand_on(&mut draft, 0, "plan");
        with(json!({"action": {"enum": ["next"]}, "plan": kind}), &mut draft, 0);
        let name = |step| crate::model::Name::new(step, crate::diagnostics::Span::default());
        draft.steps[1].edges[0].to = Target::Select {
            by: Selector::Handoff("plan".into()),
            cases: vec![("x".into(), name("c"))],
            default: Some(name("c")),
        };
        draft
    }

    #[test]
    fn what_selects_is_no_object() {
        for kind in [json!({"type": "object"}), json!({"type": ["array", "null"]})] {
            let found = said(selects(kind));
            assert_eq!(found.len(), 1);
            assert!(found[0].starts_with("warning: `b` on `next` selects by `plan`, which `a` leaves as a"));
        }
        for kind in [json!({"type": "string"}), json!({"type": ["object", "string"]}), json!({})] {
            assert!(said(selects(kind)).is_empty());
        }
        let mut written = selects(json!({"enum": [{"a": 1}]}));
        if let Target::Select { cases, .. } = &mut written.steps[1].edges[0].to {
            cases[0].0 = r#"{"a":1}"#.into();
        }
        assert_eq!(said(written).len(), 1, "it equals no entry that is written as JSON");
    }

    #[test]
    fn what_names_a_step_is_text() {
        let jumps = |kind: &str| {
            let mut draft = draft("a: jump → b\nb: done → end");
            with(json!({"action": {"enum": ["jump"]}, "to": {"type": kind}}), &mut draft, 0);
            draft.steps[0].edges[0].to = Target::Jump {
                field: FieldPath::parse("to"),
                among: vec![crate::model::Name::new("b", crate::diagnostics::Span::default())],
                default: None,
            };
            said(draft)
        };
        assert_eq!(
            jumps("integer"),
            ["warning: `to` of `a` names the step to jump to, and is a whole number by its schema"]
        );
        assert!(jumps("string").is_empty());
    }

    #[test]
    fn a_gate_finds_no_word_in_an_object() {
        let read = |kind: Value| {
            let mut draft = draft("a: done → end");
            with(json!({"action": kind}), &mut draft, 0);
            said(draft)
        };
        assert_eq!(
            read(json!({"type": "object"})),
            ["error: `action` of `a` is to say the outcome, and is an object by its schema"]
        );
        assert!(read(json!({"type": "boolean"}))[0].contains("a truth value"));
        assert!(read(json!({"type": "string"})).is_empty());
    }
}
