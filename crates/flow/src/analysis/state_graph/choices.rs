//! The choices at a step: its outcomes, the answers behind them, and the handoff values.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::members::{MemberOutcome, find_member_outcomes};
use super::{Choice, Pick, SelectingValue};
use crate::Str;
use crate::analysis::flow_queries;
use crate::analysis::graph;
use crate::analysis::{
    newest_values,
    newest_values::{CaseIndex, PossibleValue},
};
use crate::model::{
    Act, Edge, Flow, Gate, Handoff, JoinRule, Outcome, OutcomeReader, Schema, Selector, Step, StepId, Target,
};

/// The most choices at one step.
const SAYINGS_MAX: usize = 256;

/// All choices at a step, before its edges are taken.
pub(super) fn choices_of_step(flow: &Flow, keys: &[SelectingCases], id: StepId) -> Vec<Choice> {
    let step = flow.step(id);
    let place = |key: &Str| keys.binary_search_by(|known| known.name.cmp(key)).ok();
    // The first handoff of each name.
    let mut left: Vec<(usize, &Handoff)> =
        step.handoff.iter().filter_map(|handoff| Some((place(&handoff.key)?, handoff))).collect();
    left.sort_by_key(|(key, _)| *key);
    left.dedup_by_key(|(key, _)| *key);
    let mut found = match (&step.gate, &step.act) {
        (Gate::Join { rules, judges }, Act::All { members, .. }) => {
            choices_of_join(flow, members, rules, judges)
        }
        (Gate::Readers(readers), _) => choices_of_readers(flow, id, readers),
        _ => flow_queries::list_step_outcomes(flow, step).into_iter().map(Choice::plain).collect(),
    };
    for (key, handoff) in left {
        let schema = newest_values::schema_of(flow, step);
        let cases = &keys[key].cases;
        let values = expand_selecting_values(
            schema,
            &newest_values::values_of_answer(schema, &handoff.path),
            cases,
            &handoff.path,
        );
        let key = &handoff.key;
        let with = |choice: &Choice, value: &SelectingValue| {
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
fn expand_selecting_values(
    schema: Option<&Schema>,
    values: &BTreeSet<PossibleValue>,
    cases: &[Str],
    path: &crate::model::FieldPath,
) -> Vec<SelectingValue> {
    let mut found: Vec<SelectingValue> = values.iter().map(SelectingValue::from).collect();
    if values.contains(&PossibleValue::Other) {
        let can = |case: &&Str| schema.is_none_or(|schema| schema.can_read(path, case));
        found.extend(cases.iter().filter(can).map(|case| SelectingValue::Is(case.clone())));
    }
    found
}

/// A name of selecting handoff values.
#[derive(Debug)]
pub(super) struct SelectingCases {
    pub(super) name: Str,
    /// All cases that it selects by, sorted, each once.
    pub(super) cases: Vec<Str>,
    /// The same, indexed by text.
    pub(super) by_text: CaseIndex,
}

/// The handoff values that select a target, sorted by name, each with all its cases.
pub(super) fn collect_selecting_cases(flow: &Flow) -> Vec<SelectingCases> {
    let mut found: BTreeMap<&Str, BTreeSet<&Str>> = BTreeMap::new();
    for edge in flow.steps.iter().flat_map(|step| &step.edges) {
        if let Target::Select { by: Selector::Handoff(by), cases, .. } = &edge.to {
            found.entry(by).or_default().extend(cases.iter().map(|(case, _)| case));
        }
    }
    let key = |(name, cases): (&Str, BTreeSet<&Str>)| SelectingCases {
        name: name.clone(),
        by_text: CaseIndex::of(cases.iter().copied()),
        cases: cases.into_iter().cloned().collect(),
    };
    found.into_iter().map(key).collect()
}

/// The choices of a gate that reads an answer.
fn choices_of_readers(flow: &Flow, id: StepId, readers: &[OutcomeReader<StepId>]) -> Vec<Choice> {
    let outcomes = flow_queries::list_step_outcomes(flow, flow.step(id));
    let falls = |reader: &OutcomeReader<StepId>| {
        matches!(reader, OutcomeReader::Fallback(_) | OutcomeReader::FirstFallback(_))
    };
    let mut found = Vec::new();
    let own =
        |reader: &&OutcomeReader<StepId>| !falls(reader) && !matches!(reader, OutcomeReader::Judge { .. });
    let all = |which: &dyn Fn(&&OutcomeReader<StepId>) -> bool| -> HashSet<Outcome> {
        readers
            .iter()
            .filter(which)
            .flat_map(|reader| flow_queries::possible_outcomes_of_reader(flow, id, reader))
            .collect()
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
    found.extend(choices_of_judges(flow, graph::judges_of_gate(&flow.step(id).gate)));
    found
}

/// Whether a step has a fallback to an outcome; some apply in the first iteration only.
pub(super) fn falls_back(step: &Step<StepId>, outcome: &Outcome, is_first: bool) -> bool {
    let Gate::Readers(readers) = &step.gate else { return false };
    readers.iter().any(|reader| match reader {
        OutcomeReader::Fallback(falls) => falls == outcome,
        OutcomeReader::FirstFallback(falls) => falls == outcome && is_first,
        _ => false,
    })
}

fn choices_of_judges(flow: &Flow, judges: impl IntoIterator<Item = StepId>) -> Vec<Choice> {
    let mut found = Vec::new();
    for judge in judges {
        let (outcomes, sayable) = (
            flow_queries::list_step_outcomes(flow, flow.step(judge)),
            flow_queries::possible_outcomes_of_answer(flow, judge),
        );
        let can = |outcome: &Outcome| sayable.as_ref().is_none_or(|sayable| sayable.contains(outcome));
        let said = outcomes.into_iter().filter(|outcome| *outcome != Outcome::None && can(outcome));
        found.extend(said.map(|outcome| Choice { by: Some(judge), ..Choice::plain(outcome) }));
    }
    found
}

/// The choices of a parallel step: each of its outcomes, with an outcome of each member.
fn choices_of_join(flow: &Flow, members: &[StepId], rules: &[JoinRule], judges: &[StepId]) -> Vec<Choice> {
    let said: Vec<Vec<MemberOutcome>> = members.iter().map(|member| said_by(flow, *member)).collect();
    let mut seen = HashSet::new();
    let new = rules.iter().filter(|rule| seen.insert(&rule.outcome));
    let mut wanted: Vec<Choice> = new.map(|rule| Choice::plain(rule.outcome.clone())).collect();
    wanted.extend(choices_of_judges(flow, judges.iter().copied()));
    let way = |choice: &Choice, said: &[Vec<MemberOutcome>]| {
        let by_rule = choice.by.is_none() && choice.outcome != Outcome::None;
        let members = find_member_outcomes(rules, said, by_rule.then_some(&choice.outcome))?;
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
    let (outcomes, told) = (
        flow_queries::list_step_outcomes(flow, flow.step(member)),
        readable_outcomes_of_member(flow, member),
    );
    let told = |outcome: &Outcome| told.as_ref().is_none_or(|told| told.contains(outcome));
    let named = |outcome: &Outcome| *outcome != Outcome::None && told(outcome);
    let skipped = flow.step(member).when.is_some().then_some(MemberOutcome::Skipped);
    let said = outcomes.into_iter().filter(named).map(MemberOutcome::Has);
    said.chain([MemberOutcome::Failed]).chain(skipped).collect()
}

/// The outcomes that a member's answer can have where it is read: an unusable answer has none, whatever the fallback.
fn readable_outcomes_of_member(flow: &Flow, member: StepId) -> Option<HashSet<Outcome>> {
    let Gate::Readers(readers) = &flow.step(member).gate else { return None };
    let falls = |reader: &&OutcomeReader<StepId>| {
        !matches!(reader, OutcomeReader::Fallback(_) | OutcomeReader::FirstFallback(_))
    };
    Some(
        readers
            .iter()
            .filter(falls)
            .flat_map(|reader| flow_queries::possible_outcomes_of_reader(flow, member, reader))
            .collect(),
    )
}

/// The selecting answers for the targets of an edge, each with its target. Empty if something else selects.
pub(super) fn picks_of_edge(flow: &Flow, step: &Step<StepId>, edge: &Edge<StepId>) -> Vec<(Pick, StepId)> {
    let schema = newest_values::schema_of(flow, step);
    match &edge.to {
        Target::Select { by: Selector::Field(path), cases, default } => {
            let values = newest_values::values_of_answer(schema, path);
            let mut found: Vec<SelectingValue> = values.iter().map(SelectingValue::from).collect();
            if values.contains(&PossibleValue::Other) {
                let can = |case: &&Str| schema.is_none_or(|schema| schema.can_read(path, case));
                found.extend(
                    cases
                        .iter()
                        .map(|(case, _)| case)
                        .filter(can)
                        .map(|case| SelectingValue::Is(case.clone())),
                );
            }
            let by_text = CaseIndex::of(cases.iter().map(|(case, _)| case));
            let leads =
                |value: SelectingValue| Some((select_step((cases, &by_text), *default, &value)?, value));
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
pub(super) fn select_step(
    (cases, by_text): (&[(Str, StepId)], &CaseIndex),
    default: Option<StepId>,
    value: &SelectingValue,
) -> Option<StepId> {
    let case = match value {
        SelectingValue::Is(text) => by_text.first(text).map(|at| cases[at].1),
        SelectingValue::Absent | SelectingValue::Other => None,
    };
    case.or(default)
}
