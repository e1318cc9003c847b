//! The choices at a step: its outcomes, the answers behind them, and the handoff values.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::members::{MemberOutcome, together};
use super::{Choice, Left, Pick};
use crate::analysis::graph;
use crate::analysis::{
    newest_values,
    newest_values::{Cases, Value},
};
use crate::{
    Str,
    analysis::variants,
    model::{
        Act, Edge, Flow, Gate, Handoff, JoinRule, Outcome, Reader, Schema, Selector, Step, StepId, Target,
    },
};

/// The most choices at one step.
const SAYINGS_MAX: usize = 256;

/// All choices at a step, before its edges are taken.
pub(super) fn sayings(flow: &Flow, keys: &[Key], id: StepId) -> Vec<Choice> {
    let step = flow.step(id);
    let place = |key: &Str| keys.binary_search_by(|known| known.name.cmp(key)).ok();
    // The first handoff of each name.
    let mut left: Vec<(usize, &Handoff)> =
        step.handoff.iter().filter_map(|handoff| Some((place(&handoff.key)?, handoff))).collect();
    left.sort_by_key(|(key, _)| *key);
    left.dedup_by_key(|(key, _)| *key);
    let mut found = match (&step.gate, &step.act) {
        (Gate::Join { rules, judges }, Act::All { members, .. }) => joins(flow, members, rules, judges),
        (Gate::Readers(readers), _) => read(flow, id, readers),
        _ => variants::outcomes(flow, step).into_iter().map(Choice::plain).collect(),
    };
    for (key, handoff) in left {
        let schema = newest_values::schema_of(flow, step);
        let cases = &keys[key].cases;
        let values = expanded(schema, &newest_values::answered(schema, &handoff.path), cases, &handoff.path);
        let key = &handoff.key;
        let with = |choice: &Choice, value: &Left| {
            let mut choice = choice.clone();
            choice.leaves.push((key.clone(), value.clone()));
            choice
        };
        // A step that leaves the decision to a judge answers in plain text, without handoff values.
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

/// The selecting values, with "other" expanded to each case that it can match.
fn expanded(
    schema: Option<&Schema>,
    values: &BTreeSet<Value>,
    cases: &[Str],
    path: &crate::model::FieldPath,
) -> Vec<Left> {
    let mut found: Vec<Left> = values.iter().map(Left::from).collect();
    if values.contains(&Value::Other) {
        let can = |case: &&Str| schema.is_none_or(|schema| schema.can_read(path, case));
        found.extend(cases.iter().filter(can).map(|case| Left::Is(case.clone())));
    }
    found
}

/// A name of selecting handoff values.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Str,
    /// All cases that it selects by, sorted, each once.
    pub(super) cases: Vec<Str>,
    /// The same, indexed by text.
    pub(super) by_text: Cases,
}

/// All names of selecting handoff values, sorted.
pub(super) fn values(flow: &Flow) -> Vec<Key> {
    let mut found: BTreeMap<&Str, BTreeSet<&Str>> = BTreeMap::new();
    for edge in flow.steps.iter().flat_map(|step| &step.edges) {
        if let Target::Select { by: Selector::Handoff(by), cases, .. } = &edge.to {
            found.entry(by).or_default().extend(cases.iter().map(|(case, _)| case));
        }
    }
    let key = |(name, cases): (&Str, BTreeSet<&Str>)| Key {
        name: name.clone(),
        by_text: Cases::of(cases.iter().copied()),
        cases: cases.into_iter().cloned().collect(),
    };
    found.into_iter().map(key).collect()
}

/// The choices of a gate that reads an answer.
fn read(flow: &Flow, id: StepId, readers: &[Reader<StepId>]) -> Vec<Choice> {
    let outcomes = variants::outcomes(flow, flow.step(id));
    let falls = |reader: &Reader<StepId>| matches!(reader, Reader::Fallback(_) | Reader::FirstFallback(_));
    let mut found = Vec::new();
    let own = |reader: &&Reader<StepId>| !falls(reader) && !matches!(reader, Reader::Judge { .. });
    let all = |which: &dyn Fn(&&Reader<StepId>) -> bool| -> HashSet<Outcome> {
        readers.iter().filter(which).flat_map(|reader| variants::told(flow, id, reader)).collect()
    };
    let (own, fallen) = (all(&own), all(&|reader| falls(reader)));
    for outcome in &outcomes {
        let said = own.contains(outcome);
        if said {
            found.push(Choice::plain(outcome.clone()));
        }
        // A fallback outcome comes without other values of the answer.
        if fallen.contains(outcome) {
            found.push(Choice { unusable: true, ..Choice::plain(outcome.clone()) });
        }
    }
    found.extend(judged(flow, graph::judges(&flow.step(id).gate)));
    found
}

/// Whether a step has a fallback to an outcome; some apply in the first iteration only.
pub(super) fn falls_back(step: &Step<StepId>, outcome: &Outcome, is_first: bool) -> bool {
    let Gate::Readers(readers) = &step.gate else { return false };
    readers.iter().any(|reader| match reader {
        Reader::Fallback(falls) => falls == outcome,
        Reader::FirstFallback(falls) => falls == outcome && is_first,
        _ => false,
    })
}

/// The choices of judges.
fn judged(flow: &Flow, judges: impl IntoIterator<Item = StepId>) -> Vec<Choice> {
    let mut found = Vec::new();
    for judge in judges {
        let (outcomes, sayable) =
            (variants::outcomes(flow, flow.step(judge)), variants::sayable(flow, judge));
        let can = |outcome: &Outcome| sayable.as_ref().is_none_or(|sayable| sayable.contains(outcome));
        let said = outcomes.into_iter().filter(|outcome| *outcome != Outcome::None && can(outcome));
        found.extend(said.map(|outcome| Choice { by: Some(judge), ..Choice::plain(outcome) }));
    }
    found
}

/// The choices of a parallel step: each of its outcomes, with an outcome of each member.
fn joins(flow: &Flow, members: &[StepId], rules: &[JoinRule], judges: &[StepId]) -> Vec<Choice> {
    let said: Vec<Vec<MemberOutcome>> = members.iter().map(|member| said_by(flow, *member)).collect();
    let mut seen = HashSet::new();
    let new = rules.iter().filter(|rule| seen.insert(&rule.outcome));
    let mut wanted: Vec<Choice> = new.map(|rule| Choice::plain(rule.outcome.clone())).collect();
    wanted.extend(judged(flow, judges.iter().copied()));
    let way = |choice: &Choice, said: &[Vec<MemberOutcome>]| {
        let by_rule = choice.by.is_none() && choice.outcome != Outcome::None;
        let members = together(rules, said, by_rule.then_some(&choice.outcome))?;
        Some(Choice { members, ..choice.clone() })
    };
    let mut found: Vec<Choice> =
        wanted.iter().filter_map(|choice| way(choice, &said)).take(SAYINGS_MAX).collect();
    // Last, no rule matches, if no judge decides then.
    wanted.push(Choice::plain(Outcome::None));
    for (member, all) in said.iter().enumerate() {
        for one in all.iter().filter(|one| **one != MemberOutcome::Failed) {
            if found.len() >= SAYINGS_MAX {
                return found;
            }
            if found.iter().any(|choice| choice.members[member] == *one) {
                continue;
            }
            let mut said = said.clone();
            said[member] = vec![one.clone()];
            found.extend(wanted.iter().find_map(|choice| way(choice, &said)));
        }
    }
    found
}

/// The possible outcomes of a member; last, none, and that it is skipped.
fn said_by(flow: &Flow, member: StepId) -> Vec<MemberOutcome> {
    let (outcomes, told) = (variants::outcomes(flow, flow.step(member)), told(flow, member));
    let told = |outcome: &Outcome| told.as_ref().is_none_or(|told| told.contains(outcome));
    let named = |outcome: &Outcome| *outcome != Outcome::None && told(outcome);
    let skipped = flow.step(member).when.is_some().then_some(MemberOutcome::Skipped);
    let said = outcomes.into_iter().filter(named).map(MemberOutcome::Has);
    said.chain([MemberOutcome::Failed]).chain(skipped).collect()
}

/// The outcomes that a member's answer can have where it is read: an unusable answer has none, whatever the fallback.
fn told(flow: &Flow, member: StepId) -> Option<HashSet<Outcome>> {
    let Gate::Readers(readers) = &flow.step(member).gate else { return None };
    let falls = |reader: &&Reader<StepId>| !matches!(reader, Reader::Fallback(_) | Reader::FirstFallback(_));
    Some(readers.iter().filter(falls).flat_map(|reader| variants::told(flow, member, reader)).collect())
}

/// The selecting answers for the targets of an edge, each with its target. Empty if something else selects.
pub(super) fn picks(flow: &Flow, step: &Step<StepId>, edge: &Edge<StepId>) -> Vec<(Pick, StepId)> {
    let schema = newest_values::schema_of(flow, step);
    match &edge.to {
        Target::Select { by: Selector::Field(path), cases, default } => {
            let values = newest_values::answered(schema, path);
            let mut found: Vec<Left> = values.iter().map(Left::from).collect();
            if values.contains(&Value::Other) {
                let can = |case: &&Str| schema.is_none_or(|schema| schema.can_read(path, case));
                found.extend(
                    cases.iter().map(|(case, _)| case).filter(can).map(|case| Left::Is(case.clone())),
                );
            }
            let by_text = Cases::of(cases.iter().map(|(case, _)| case));
            let leads = |value: Left| Some((selected((cases, &by_text), *default, &value)?, value));
            found.into_iter().filter_map(leads).map(|(to, value)| (Pick::Field(value), to)).collect()
        }
        Target::Jump { field: Some(path), among, default } => {
            let listed = schema.and_then(|schema| schema.values_at(path));
            let can = schema.is_none_or(|schema| schema.can_produce(path));
            let texts = listed.as_ref().map(|all| all.iter().filter_map(|value| value.as_str()).collect());
            let texts: Option<HashSet<&str>> = texts;
            let named = |to: &&StepId| {
                let name = &*flow.step(**to).name;
                can && texts.as_ref().is_none_or(|texts| texts.contains(name))
                    && schema.is_none_or(|schema| schema.can_read(path, name))
            };
            let mut found: Vec<(Pick, StepId)> =
                among.iter().filter(named).map(|to| (Pick::Named(*to), *to)).collect();
            // `null` names no step.
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
pub(super) fn selected(
    (cases, by_text): (&[(Str, StepId)], &Cases),
    default: Option<StepId>,
    value: &Left,
) -> Option<StepId> {
    let case = match value {
        Left::Is(text) => by_text.first(text).map(|at| cases[at].1),
        Left::Absent | Left::Other => None,
    };
    case.or(default)
}
