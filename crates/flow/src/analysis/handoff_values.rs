//! The possible newest values of selecting handoffs, step by step.
//!
//! A data-flow analysis. Values are numbered by name; sets of values are shared bit sets. A step has a set only for
//! names whose newest value is still live when it is entered: a name that is overwritten before anything selects by it
//! is not tracked. The work therefore grows with the paths on which a value is live, not with all paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::bit_set::BitSet;
use super::graph::{fallback_of_step, judges_of_gate, list_asked_steps, steps_of_target};
use super::{
    newest_values,
    newest_values::{PossibleValue, PossibleValues},
};
use crate::{
    Str,
    model::{Act, FieldPath, Flow, Selector, Step, StepId, Target},
};

/// The number of the missing value.
pub(crate) const ABSENT: u32 = 0;

/// The possible newest values, by number of the name, ascending.
pub(crate) type Newest = Vec<(u32, Arc<BitSet>)>;

/// A selecting name with all values that select or are handed off under it. The values are numbered in sorted order:
/// missing, each text, each object or list, and any other.
#[derive(Debug)]
struct SelectingKey {
    name: Str,
    /// Texts, objects and lists.
    listed: Vec<PossibleValue>,
    /// By the bits of a number, the texts that parse as it.
    numbers: HashMap<u64, Vec<u32>>,
}

/// The values that answers of a step leave under a name.
#[derive(Debug)]
struct StepKeyValues {
    key: u32,
    /// Without [`ABSENT`].
    values: Arc<BitSet>,
    /// Whether answers may leave no value, so that the earlier one survives.
    may_miss: bool,
}

/// The targets of an edge by the values of a name.
#[derive(Debug)]
struct ValueTargets {
    key: u32,
    /// Each target once, with the values that choose it.
    places: Vec<(StepId, Arc<BitSet>)>,
    /// All values with a case.
    known: BitSet,
    /// The number and target of each case.
    cases: Vec<(u32, StepId)>,
    default: Option<StepId>,
}

/// The fixed facts about values, and the possible values found so far.
#[derive(Debug, Default)]
pub(crate) struct HandoffValues {
    keys: Vec<SelectingKey>,
    /// By step: the values it hands off itself.
    left: Vec<Vec<StepKeyValues>>,
    /// By step and edge: the targets by value.
    choices: HashMap<(usize, usize), ValueTargets>,
    /// By step: the live names on entry, with their possible values.
    entered: Vec<Newest>,
}

impl HandoffValues {
    /// For a flow with these open edges, where walks begin at `entries`.
    pub(crate) fn new(flow: &Flow, open: &[Vec<usize>], entries: &[StepId]) -> HandoffValues {
        let names = newest_values::list_selecting_names(flow);
        if names.is_empty() {
            return HandoffValues::default();
        }
        let answers = Answers::of(flow, &names);
        let mut carried =
            HandoffValues { keys: number_key_values(flow, names, &answers), ..HandoffValues::default() };
        carried.left = answers.numbered(&carried.keys);
        carried.choose(flow);
        carried.entered = carried.awaited(flow, open, entries);
        carried
    }

    /// Whether no handoff value selects anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The possible values on entry to a step.
    pub(crate) fn entered(&self, at: usize) -> Newest {
        self.entered.get(at).cloned().unwrap_or_default()
    }

    /// Adds an entry without any handoff values; returns whether that is new.
    pub(crate) fn begin(&mut self, to: usize) -> bool {
        let nothing = Arc::new(BitSet::one(ABSENT));
        let Some(entered) = self.entered.get_mut(to) else { return false };
        entered.iter_mut().fold(false, |is_new, (_, known)| merge_values(known, &nothing) || is_new)
    }

    /// Adds possible values on entry to a step; returns whether some are new.
    pub(crate) fn come(&mut self, to: usize, values: &Newest) -> bool {
        let Some(entered) = self.entered.get_mut(to) else { return false };
        let mut is_new = false;
        for (key, known) in entered {
            if let Ok(at) = values.binary_search_by_key(key, |(key, _)| *key) {
                is_new |= merge_values(known, &values[at].1);
            }
        }
        is_new
    }

    /// The possible values after an answer of a step.
    pub(crate) fn leaving(&self, flow: &Flow, at: usize) -> Newest {
        let Some(entered) = self.entered.get(at) else { return Newest::new() };
        let members = members_of_step(&flow.steps[at]);
        let speakers = || members.iter().map(|member| member.0 as usize);
        let own = std::iter::once(at).chain(speakers()).flat_map(|step| &self.left[step]);
        let mut keys: Vec<u32> =
            entered.iter().map(|(key, _)| *key).chain(own.map(|left| left.key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let one = |key: u32| {
            let known = entered.binary_search_by_key(&key, |(key, _)| *key).map(|at| &entered[at].1);
            let mut values = self.after(at, key, known.ok());
            // Members answer in any order, so each of them may leave the last value.
            for member in speakers() {
                _ = merge_values(&mut values, &self.after(member, key, known.ok()));
            }
            (key, values)
        };
        keys.into_iter().map(one).collect()
    }

    /// The possible newest values of a name after an answer of a step.
    fn after(&self, at: usize, key: u32, before: Option<&Arc<BitSet>>) -> Arc<BitSet> {
        let before = || before.cloned().unwrap_or_default();
        let Some(left) = self.left_by(at, key) else { return before() };
        let mut values = left.values.clone();
        if left.may_miss {
            _ = merge_values(&mut values, &before());
        }
        values
    }

    fn left_by(&self, at: usize, key: u32) -> Option<&StepKeyValues> {
        let left = &self.left[at];
        left.binary_search_by_key(&key, |left| left.key).ok().map(|at| &left[at])
    }

    /// The targets of an edge that selects by handoff values, each with the values that lead there.
    pub(crate) fn select(&self, (at, edge): (usize, usize), values: &Newest) -> Vec<(StepId, Newest)> {
        let Some(choice) = self.choices.get(&(at, edge)) else { return Vec::new() };
        let key = values.binary_search_by_key(&choice.key, |(key, _)| *key);
        let Ok(place) = key else { return Vec::new() };
        let chosen = choice.of(&values[place].1, self.keys[choice.key as usize].other());
        let with = |(to, row): (StepId, Arc<BitSet>)| {
            let mut values = values.clone();
            values[place].1 = row;
            (to, values)
        };
        chosen.into_iter().map(with).collect()
    }

    /// The possible values of a step for which an edge has no case.
    pub(crate) fn without_case(&self, flow: &Flow, (at, edge): (usize, usize)) -> UncoveredValues {
        let Some(choice) = self.choices.get(&(at, edge)) else { return UncoveredValues::default() };
        let values = self.leaving(flow, at);
        let key = &self.keys[choice.key as usize];
        let bad = match values.binary_search_by_key(&choice.key, |(key, _)| *key) {
            Ok(place) => values[place].1.minus(&choice.known),
            Err(_) => return UncoveredValues::default(),
        };
        let mut own = BitSet::default();
        let mut leaves = false;
        for left in list_asked_steps(flow, at).filter_map(|step| self.left_by(step.0 as usize, choice.key)) {
            leaves = true;
            own.add(&left.values);
        }
        let mut others = bad.minus(&own);
        let absent = bad.has(ABSENT);
        others.remove(ABSENT);
        UncoveredValues {
            leaves,
            absent,
            last: bad.last().map(|value| key.value(value)),
            own: bad.and(&own).last().map(|value| key.value(value)),
            other: others.first().map(|value| key.value(value)),
        }
    }

    /// Whether answers of a step can leave a value under a name.
    pub(crate) fn can_leave(&self, at: usize, name: &str, value: &PossibleValue) -> bool {
        let Some((key, number)) = self.number(name, value) else { return false };
        self.left_by(at, key).is_some_and(|left| left.values.has(number))
    }

    /// Whether all answers of a step leave a value under a name.
    pub(crate) fn always_leaves(&self, at: usize, name: &str) -> bool {
        let key = self.keys.binary_search_by(|key| (*key.name).cmp(name)).ok();
        key.and_then(|key| self.left_by(at, key as u32)).is_some_and(|left| !left.may_miss)
    }

    fn number(&self, name: &str, value: &PossibleValue) -> Option<(u32, u32)> {
        let key = self.keys.binary_search_by(|key| (*key.name).cmp(name)).ok()?;
        Some((key as u32, self.keys[key].number(value)?))
    }

    /// Computes the targets by value of each selecting edge.
    fn choose(&mut self, flow: &Flow) {
        for (at, step) in flow.steps.iter().enumerate() {
            for (index, edge) in step.edges.iter().enumerate() {
                let Target::Select { by: Selector::Handoff(name), cases, default } = &edge.to else {
                    continue;
                };
                if let Ok(key) = self.keys.binary_search_by(|key| key.name.cmp(name)) {
                    let choice = ValueTargets::new(key as u32, &self.keys[key], cases, *default);
                    self.choices.insert((at, index), choice);
                }
            }
        }
    }

    /// By step: the live names on entry. A backward liveness analysis from selecting edges to the steps that certainly
    /// overwrite the name.
    fn awaited(&self, flow: &Flow, open: &[Vec<usize>], entries: &[StepId]) -> Vec<Newest> {
        let before = find_predecessors(flow, open);
        let mut selecting: Vec<Vec<usize>> = vec![Vec::new(); self.keys.len()];
        for (at, edges) in open.iter().enumerate() {
            for choice in edges.iter().filter_map(|edge| self.choices.get(&(at, *edge))) {
                selecting[choice.key as usize].push(at);
            }
        }
        let replaces = |at: usize, key: u32| {
            let step = &flow.steps[at];
            members_of_step(step).is_empty()
                && self.left_by(at, key).is_some_and(|left| !left.may_miss)
                && fallback_of_step(step, entries.contains(&StepId(at as u32))).is_none()
        };
        let mut awaited: Vec<Newest> = vec![Newest::new(); flow.steps.len()];
        let nothing = Arc::<BitSet>::default();
        for (key, from) in (0..).zip(selecting) {
            let mut open: Vec<usize> = from.into_iter().filter(|at| !replaces(*at, key)).collect();
            while let Some(at) = open.pop() {
                if awaited[at].last().is_some_and(|(known, _)| *known == key) {
                    continue;
                }
                awaited[at].push((key, nothing.clone()));
                let others = before[at].iter().filter(|(from, inner)| *inner || !replaces(*from, key));
                open.extend(others.map(|(from, _)| *from));
            }
        }
        awaited
    }
}

/// The values without a case.
#[derive(Debug, Default)]
pub(crate) struct UncoveredValues {
    /// Whether the answering steps leave the value at all.
    pub(crate) leaves: bool,
    /// Whether the value may be missing.
    pub(crate) absent: bool,
    /// The last uncovered value.
    pub(crate) last: Option<PossibleValue>,
    /// The last of those that the answering steps leave.
    pub(crate) own: Option<PossibleValue>,
    /// The first of those that only other steps leave.
    pub(crate) other: Option<PossibleValue>,
}

impl SelectingKey {
    fn other(&self) -> u32 {
        self.listed.len() as u32 + 1
    }

    fn number(&self, value: &PossibleValue) -> Option<u32> {
        match value {
            PossibleValue::Absent => Some(ABSENT),
            PossibleValue::Is(_) | PossibleValue::Whole(_) => {
                self.listed.binary_search(value).ok().map(|at| at as u32 + 1)
            }
            PossibleValue::Other => Some(self.other()),
        }
    }

    fn value(&self, number: u32) -> PossibleValue {
        match number.checked_sub(1).map(|at| self.listed.get(at as usize)) {
            None => PossibleValue::Absent,
            Some(Some(value)) => value.clone(),
            Some(None) => PossibleValue::Other,
        }
    }
}

impl ValueTargets {
    fn new(
        number: u32,
        key: &SelectingKey,
        cases: &[(Str, StepId)],
        default: Option<StepId>,
    ) -> ValueTargets {
        let (mut places, mut by_place) = (Vec::<(StepId, BitSet)>::new(), HashMap::new());
        let (mut known, mut numbers) = (BitSet::default(), Vec::new());
        let mut taken = std::collections::HashSet::new();
        for (case, to) in cases {
            let own = key.number(&PossibleValue::Is(case.clone()));
            numbers.extend(own.map(|own| (own, *to)));
            let same = newest_values::parse_number_bits(case).and_then(|number| key.numbers.get(&number));
            for value in own.into_iter().chain(same.into_iter().flatten().copied()) {
                // The first matching case counts.
                if taken.insert(value) {
                    let at = *by_place.entry(*to).or_insert(places.len());
                    if at == places.len() {
                        places.push((*to, BitSet::default()));
                    }
                    places[at].1.insert(value);
                    known.insert(value);
                }
            }
        }
        let places = places.into_iter().map(|(to, row)| (to, Arc::new(row))).collect();
        ValueTargets { key: number, places, known, cases: numbers, default }
    }

    /// The targets of some values, each with the values that lead there, in value order.
    fn of(&self, values: &BitSet, other: u32) -> Vec<(StepId, Arc<BitSet>)> {
        let mut found: Vec<((u32, usize), StepId, BitSet)> = Vec::new();
        for (to, row) in &self.places {
            let chosen = values.and(row);
            found.extend(chosen.first().map(|first| ((first, 0), *to, chosen)));
        }
        if values.has(other) {
            // It may match any of the cases as well.
            let cases = self.cases.iter().enumerate();
            found.extend(cases.map(|(at, (case, to))| ((other, at), *to, BitSet::one(*case))));
        }
        if let Some(default) = self.default {
            let rest = values.minus(&self.known);
            let first = rest.first().map(|first| (first, if first == other { usize::MAX } else { 0 }));
            found.extend(first.map(|first| (first, default, rest)));
        }
        found.sort_by_key(|(first, ..)| *first);
        let (mut places, mut by_place) = (Vec::<(StepId, Arc<BitSet>)>::new(), HashMap::new());
        for (_, to, row) in found {
            let at = *by_place.entry(to).or_insert(places.len());
            match places.get_mut(at) {
                Some((_, known)) => Arc::make_mut(known).add(&row),
                None => places.push((to, Arc::new(row))),
            }
        }
        places
    }
}

/// The values that answers leave under selecting names, before numbering: by step, name and values.
struct Answers(Vec<Vec<(u32, Arc<PossibleValues>)>>);

impl Answers {
    fn of<'f>(flow: &'f Flow, names: &[Str]) -> Answers {
        // Steps may share a schema of many values.
        let mut known: BTreeMap<(Option<u32>, &'f FieldPath), Arc<PossibleValues>> = BTreeMap::new();
        let of_step = |step: &'f Step<StepId>| {
            let mut found: Vec<(u32, Arc<PossibleValues>)> = Vec::new();
            let schema = match &step.act {
                Act::Ask(ask) => ask.schema,
                _ => None,
            };
            for handoff in &step.handoff {
                let Ok(key) = names.binary_search(&handoff.key) else { continue };
                let values = known.entry((schema.map(|id| id.0), &handoff.path)).or_insert_with(|| {
                    Arc::new(newest_values::values_of_answer(schema.map(|id| flow.schema(id)), &handoff.path))
                });
                found.push((key as u32, values.clone()));
            }
            found.sort_by_key(|(key, _)| *key);
            // The first handoff of a name counts.
            found.dedup_by_key(|(key, _)| *key);
            found
        };
        Answers(flow.steps.iter().map(of_step).collect())
    }

    /// The same with numbered values.
    fn numbered(&self, keys: &[SelectingKey]) -> Vec<Vec<StepKeyValues>> {
        let mut known: HashMap<(u32, *const PossibleValues), Arc<BitSet>> = HashMap::new();
        let mut left = |(key, values): &(u32, Arc<PossibleValues>)| {
            let row = known.entry((*key, Arc::as_ptr(values))).or_insert_with(|| {
                let present = values.iter().filter(|value| **value != PossibleValue::Absent);
                let mut row = BitSet::default();
                present
                    .filter_map(|value| keys[*key as usize].number(value))
                    .for_each(|value| row.insert(value));
                Arc::new(row)
            });
            StepKeyValues {
                key: *key,
                values: row.clone(),
                may_miss: values.contains(&PossibleValue::Absent),
            }
        };
        self.0.iter().map(|of_step| of_step.iter().map(&mut left).collect()).collect()
    }
}

/// The selecting names with all values that select or are handed off under them.
fn number_key_values(flow: &Flow, names: Vec<Str>, answers: &Answers) -> Vec<SelectingKey> {
    let mut listed: Vec<PossibleValues> = vec![PossibleValues::new(); names.len()];
    let mut seen = std::collections::HashSet::new();
    for (key, values) in answers.0.iter().flatten() {
        if seen.insert((*key, Arc::as_ptr(values))) {
            let own =
                values.iter().filter(|value| matches!(value, PossibleValue::Is(_) | PossibleValue::Whole(_)));
            listed[*key as usize].extend(own.cloned());
        }
    }
    for edge in flow.steps.iter().flat_map(|step| &step.edges) {
        let Target::Select { by: Selector::Handoff(name), cases, .. } = &edge.to else { continue };
        if let Ok(key) = names.binary_search(name) {
            listed[key].extend(cases.iter().map(|(case, _)| PossibleValue::Is(case.clone())));
        }
    }
    let key = |(name, listed): (Str, PossibleValues)| {
        let (listed, mut numbers) = (Vec::from_iter(listed), HashMap::<u64, Vec<u32>>::new());
        for (at, value) in (1..).zip(&listed) {
            if let PossibleValue::Is(text) = value
                && let Some(number) = newest_values::parse_number_bits(text)
            {
                numbers.entry(number).or_default().push(at);
            }
        }
        SelectingKey { name, listed, numbers }
    };
    names.into_iter().zip(listed).map(key).collect()
}

fn members_of_step(step: &Step<StepId>) -> &[StepId] {
    match &step.act {
        Act::All { members, .. } => members,
        _ => &[],
    }
}

/// By step: its possible predecessors, and whether they pass on the values of their own entry.
fn find_predecessors(flow: &Flow, open: &[Vec<usize>]) -> Vec<Vec<(usize, bool)>> {
    let mut before: Vec<Vec<(usize, bool)>> = vec![Vec::new(); flow.steps.len()];
    for (at, step) in flow.steps.iter().enumerate() {
        let inner = members_of_step(step)
            .iter()
            .copied()
            .chain(judges_of_gate(&step.gate))
            .chain(step.selectors.iter().copied());
        inner.for_each(|to| before[to.0 as usize].push((at, true)));
        for edge in &open[at] {
            steps_of_target(&step.edges[*edge].to)
                .into_iter()
                .for_each(|to| before[to.0 as usize].push((at, false)));
        }
    }
    for monitor in &flow.monitors {
        before[monitor.judge.0 as usize].extend(monitor.ends_with().map(|last| (last.0 as usize, false)));
    }
    // A return to the origin may also lead to the step of its own visit.
    let goes_back = |at: &usize| open[*at].iter().any(|edge| is_origin(&flow.steps[*at].edges[*edge].to));
    for at in (0..flow.steps.len()).filter(goes_back) {
        let (mut seen, mut queue) = (BTreeSet::from([at]), vec![at]);
        while let Some(step) = queue.pop() {
            if flow.steps[step].counts {
                before[step].push((at, false));
                continue;
            }
            queue.extend(before[step].iter().map(|(from, _)| *from).filter(|from| seen.insert(*from)));
        }
    }
    before
}

fn is_origin(to: &Target<StepId>) -> bool {
    matches!(to, Target::Origin { .. })
}

/// Merges values into a set; returns whether some were new. Equal sets are shared.
pub(crate) fn merge_values(known: &mut Arc<BitSet>, values: &Arc<BitSet>) -> bool {
    if Arc::ptr_eq(known, values) || known.holds(values) {
        return false;
    }
    if values.holds(known) {
        *known = values.clone();
    } else {
        Arc::make_mut(known).add(values);
    }
    true
}
