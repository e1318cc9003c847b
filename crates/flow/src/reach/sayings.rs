//! What can be said at a step, whatever stands in the run: its outcomes, how they are come to, what is handed on.

use std::collections::BTreeSet;

use super::members::{Said, together};
use super::{Choice, Left, Pick};
use crate::check::graph;
use crate::check::newest::{self, Value};
use crate::{
    Act, Edge, Flow, Gate, JoinRule, Outcome, Reader, Schema, Selector, Step, StepId, Str, Target, ways,
};

/// The most that is told apart at one step.
const SAYINGS_MAX: usize = 256;

/// Everything that can be said at a step. Edges are taken later.
pub(super) fn sayings(flow: &Flow, keys: &[Str], id: StepId) -> Vec<Choice> {
    let step = flow.step(id);
    let mut found = match (&step.gate, &step.act) {
        (Gate::Join { rules, judges }, Act::All { members, .. }) => joins(flow, members, rules, judges),
        (Gate::Readers(readers), _) => read(flow, id, readers),
        _ => ways::outcomes(flow, step).into_iter().map(Choice::plain).collect(),
    };
    for key in keys {
        let Some(handoff) = step.handoff.iter().find(|handoff| handoff.key == *key) else { continue };
        let schema = newest::schema_of(flow, step);
        let values = expanded(flow, schema, &newest::answered(schema, &handoff.path), key, &handoff.path);
        let with = |choice: &Choice, value: &Left| {
            let mut choice = choice.clone();
            choice.leaves.push((key.clone(), value.clone()));
            choice
        };
        // Who leaves it to a judge says it in words, in which nothing is handed on.
        let says = |choice: &Choice| choice.by.is_none() && !choice.unusable;
        let all = |choice: &Choice| -> Vec<Choice> {
            match says(choice) {
                true => values.iter().map(|value| with(choice, value)).collect(),
                false => vec![choice.clone()],
            }
        };
        found = found.iter().flat_map(all).take(SAYINGS_MAX).collect();
    }
    found
}

/// The values that can select, by each case that something else can be.
fn expanded(
    flow: &Flow,
    schema: Option<&Schema>,
    values: &BTreeSet<Value>,
    key: &str,
    path: &crate::FieldPath,
) -> Vec<Left> {
    let mut found: Vec<Left> = values.iter().map(Left::from).collect();
    if values.contains(&Value::Other) {
        let can = |case: &&Str| schema.is_none_or(|schema| schema.can_read(path, case));
        found.extend(cases(flow, key).iter().filter(can).map(|case| Left::Is(case.clone())));
    }
    found
}

/// The cases by which a handed-on value selects anywhere.
pub(super) fn cases(flow: &Flow, key: &str) -> Vec<Str> {
    let edges = flow.steps.iter().flat_map(|step| &step.edges);
    let mut found: Vec<Str> = Vec::new();
    for edge in edges {
        if let Target::Select { by: Selector::Handoff(by), cases, .. } = &edge.to
            && **by == *key
        {
            found.extend(cases.iter().map(|(case, _)| case.clone()));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// What answers come to that a gate reads.
fn read(flow: &Flow, id: StepId, readers: &[Reader<StepId>]) -> Vec<Choice> {
    let outcomes = ways::outcomes(flow, flow.step(id));
    let falls = |reader: &Reader<StepId>| matches!(reader, Reader::Fallback(_) | Reader::FirstFallback(_));
    let mut found = Vec::new();
    for outcome in &outcomes {
        let tells = |reader: &&Reader<StepId>| ways::tells(flow, id, reader, outcome);
        let own = |reader: &&Reader<StepId>| !falls(reader) && !matches!(reader, Reader::Judge { .. });
        let said = readers.iter().filter(own).any(|reader| tells(&reader));
        if said {
            found.push(Choice::plain(outcome.clone()));
        }
        // What is fallen back to is come to without what an answer says beside it. Where both lead to the same, one is
        // enough; a fallback of the first iteration comes before there is anything else to go by.
        let beside = !said
            || (says_more(flow, id) && !matches!(outcome_of_first(readers), Some(first) if first == outcome));
        if beside && readers.iter().filter(|reader| falls(reader)).any(|reader| tells(&reader)) {
            found.push(Choice { unusable: true, ..Choice::plain(outcome.clone()) });
        }
    }
    found.extend(judged(flow, graph::judges(&flow.step(id).gate)));
    found
}

/// Whether answers of a step say more than their outcome: what selects, here or later.
fn says_more(flow: &Flow, id: StepId) -> bool {
    let step = flow.step(id);
    let selects = |edge: &Edge<StepId>| matches!(edge.to, Target::Select { .. } | Target::Jump { .. });
    let keys = newest::keys(flow);
    step.edges.iter().any(selects) || step.handoff.iter().any(|left| keys.contains(&left.key))
}

/// What is fallen back to in the first iteration only.
fn outcome_of_first(readers: &[Reader<StepId>]) -> Option<&Outcome> {
    readers.iter().find_map(|reader| match reader {
        Reader::FirstFallback(outcome) => Some(outcome),
        _ => None,
    })
}

/// What judges come to.
fn judged(flow: &Flow, judges: impl IntoIterator<Item = StepId>) -> Vec<Choice> {
    let mut found = Vec::new();
    for judge in judges {
        let outcomes = ways::outcomes(flow, flow.step(judge));
        let said = outcomes
            .into_iter()
            .filter(|outcome| *outcome != Outcome::None && ways::is_sayable(flow, judge, outcome));
        found.extend(said.map(|outcome| Choice { by: Some(judge), ..Choice::plain(outcome) }));
    }
    found
}

/// What the members of a parallel step come to together: each outcome of it, and each of theirs.
fn joins(flow: &Flow, members: &[StepId], rules: &[JoinRule], judges: &[StepId]) -> Vec<Choice> {
    let said: Vec<Vec<Said>> = members.iter().map(|member| said_by(flow, *member)).collect();
    let mut wanted: Vec<Choice> = Vec::new();
    for rule in rules {
        if !wanted.iter().any(|choice| choice.outcome == rule.outcome) {
            wanted.push(Choice::plain(rule.outcome.clone()));
        }
    }
    wanted.extend(judged(flow, judges.iter().copied()));
    let way = |choice: &Choice, said: &[Vec<Said>]| {
        let by_rule = choice.by.is_none() && choice.outcome != Outcome::None;
        let members = together(rules, said, by_rule.then_some(&choice.outcome))?;
        Some(Choice { members, ..choice.clone() })
    };
    let mut found: Vec<Choice> = wanted.iter().filter_map(|choice| way(choice, &said)).collect();
    // At last, what no rule fits, when nobody decides then.
    wanted.push(Choice::plain(Outcome::None));
    for (member, all) in said.iter().enumerate() {
        for one in all.iter().filter(|one| one.is_some()) {
            if found.iter().any(|choice| choice.members[member] == *one) {
                continue;
            }
            let mut said = said.clone();
            said[member] = vec![one.clone()];
            found.extend(wanted.iter().find_map(|choice| way(choice, &said)));
        }
    }
    found.truncate(SAYINGS_MAX);
    found
}

/// What a member can come to; at last nothing.
fn said_by(flow: &Flow, member: StepId) -> Vec<Said> {
    let outcomes = ways::outcomes(flow, flow.step(member));
    let named = |outcome: &Outcome| *outcome != Outcome::None && told(flow, member, outcome);
    outcomes.into_iter().filter(named).map(Some).chain([None]).collect()
}

/// Whether a member's answer can come to an outcome: a bad one is none, whatever its definition falls back to.
fn told(flow: &Flow, member: StepId, outcome: &Outcome) -> bool {
    let Gate::Readers(readers) = &flow.step(member).gate else { return true };
    let falls = |reader: &&Reader<StepId>| !matches!(reader, Reader::Fallback(_) | Reader::FirstFallback(_));
    readers.iter().filter(falls).any(|reader| ways::tells(flow, member, reader, outcome))
}

/// What an answer can say that selects among the steps that an edge can lead to, and to which of them that leads. Nothing
/// where something else selects.
pub(super) fn picks(flow: &Flow, step: &Step<StepId>, edge: &Edge<StepId>) -> Vec<(Pick, StepId)> {
    let schema = newest::schema_of(flow, step);
    match &edge.to {
        Target::Select { by: Selector::Field(path), cases, default } => {
            let values = newest::answered(schema, path);
            let mut found: Vec<Left> = values.iter().map(Left::from).collect();
            if values.contains(&Value::Other) {
                let can = |case: &&Str| schema.is_none_or(|schema| schema.can_read(path, case));
                found.extend(
                    cases.iter().map(|(case, _)| case).filter(can).map(|case| Left::Is(case.clone())),
                );
            }
            let leads = |value: Left| Some((selected(cases, *default, &value)?, value));
            found.into_iter().filter_map(leads).map(|(to, value)| (Pick::Field(value), to)).collect()
        }
        Target::Jump { field: Some(path), among, default } => {
            let listed = schema.and_then(|schema| schema.values_at(path));
            let can = schema.is_none_or(|schema| schema.can_produce(path));
            let named = |to: &&StepId| {
                let name = &*flow.step(**to).name;
                let lists =
                    |all: &Vec<serde_json::Value>| all.iter().any(|value| value.as_str() == Some(name));
                can && listed.as_ref().is_none_or(lists)
                    && schema.is_none_or(|schema| schema.can_read(path, name))
            };
            let mut found: Vec<(Pick, StepId)> =
                among.iter().filter(named).map(|to| (Pick::Named(*to), *to)).collect();
            // `null` names nothing.
            let silent = schema.is_none_or(|schema| {
                !schema.requires(path)
                    || listed
                        .as_ref()
                        .map_or(schema.can_be(path, &["null"]), |all| all.contains(&serde_json::Value::Null))
            });
            found.extend(default.filter(|_| silent).map(|to| (Pick::Unnamed, to)));
            found
        }
        Target::Jump { field: None, default, .. } => {
            default.map(|to| (Pick::Unnamed, to)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The step that a value selects.
pub(super) fn selected(cases: &[(Str, StepId)], default: Option<StepId>, value: &Left) -> Option<StepId> {
    let case = match value {
        Left::Is(text) => cases.iter().find(|(case, _)| newest::is_case(case, text)).map(|(_, to)| *to),
        Left::Absent | Left::Other => None,
    };
    case.or(default)
}
