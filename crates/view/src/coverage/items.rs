//! What runs of a flow can come by, item by item.

use cuegate_flow::{
    Act, Edge, Ending, Flow, Gate, Outcome, Reader, Schema, Selector, Span, Step, StepId, Str, Target, Terms,
    Verdict, price, ways,
};
use serde_json::Value;

use crate::show::{verdict, words};

/// A kind of thing that runs come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverKind {
    /// A step is entered or asked.
    Step,
    /// An edge is taken, to one of the steps that it can lead to.
    Edge,
    /// A gate yields an outcome.
    Gate,
    /// A validator passes, or fails.
    Validator,
    /// A monitor acts.
    Monitor,
    /// A limit is reached.
    Limit,
    /// A part of the verdict holds.
    Verdict,
    /// A run ends so.
    End,
}

impl CoverKind {
    /// All of them, in the order in which they are printed.
    pub const ALL: [CoverKind; 8] = [
        CoverKind::Step,
        CoverKind::Edge,
        CoverKind::Gate,
        CoverKind::Validator,
        CoverKind::Monitor,
        CoverKind::Limit,
        CoverKind::Verdict,
        CoverKind::End,
    ];

    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            CoverKind::Step => "step",
            CoverKind::Edge => "edge",
            CoverKind::Gate => "gate",
            CoverKind::Validator => "validator",
            CoverKind::Monitor => "monitor",
            CoverKind::Limit => "limit",
            CoverKind::Verdict => "verdict",
            CoverKind::End => "end",
        }
    }
}

/// What an item is, for those who find out whether it was come by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Step(StepId),
    /// The edge of this place, to this step; `None` where it leads to an end or back to whoever handed off.
    Edge(StepId, usize, Option<StepId>),
    Gate(StepId, Outcome),
    /// What the definition falls back to.
    Fallback(StepId),
    Validator(StepId, u16, bool),
    Monitor(usize),
    Iterations,
    /// The bound of the edge of this place.
    Spent(StepId, usize),
    Verdict(Str),
    End(String),
}

/// Something that runs can come by.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub(super) key: Key,
    /// What kind of thing.
    pub kind: CoverKind,
    /// What it is called.
    pub name: String,
    /// The step it belongs to.
    pub step: Option<Str>,
    /// Where it is defined.
    pub span: Span,
    /// Why no run can come by it, where none can: then it does not count.
    pub barred: Option<String>,
    /// What it takes to come by it, where agents that do as they are told do not.
    pub takes: Option<&'static str>,
    /// In how many places of the records it was come by.
    pub hits: u64,
}

/// Everything that runs of a flow under some terms can come by, in the order of the definition.
pub(super) fn items(flow: &Flow, iterations_max: u32) -> Vec<Item> {
    let mut list = List {
        flow,
        walked: ways::walked(flow),
        visited: ways::visited(flow),
        iterations_max,
        own_iterations_max: iterations_max.max(flow.limits.iterations_max),
        found: Vec::new(),
    };
    for (index, step) in flow.steps.iter().enumerate() {
        list.step(StepId(index as u32), step);
    }
    list.monitors();
    list.iterations();
    list.verdict();
    list.ends();
    list.found
}

struct List<'f> {
    flow: &'f Flow,
    walked: Vec<bool>,
    visited: Vec<bool>,
    /// The most iterations of the runs, and of any run of the definition.
    iterations_max: u32,
    own_iterations_max: u32,
    found: Vec<Item>,
}

/// Whether what takes so many iterations comes before their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// It does.
    No,
    /// Only in runs that are longer than the simulated ones.
    Simulated,
    /// In no run.
    Never,
}

const LIMIT_FIRST: &str = "the limit of iterations comes first";
const BEYOND: &str = "takes more iterations than the simulated runs have; give `--max-iterations`";
const UNREACHABLE: &str = "nothing leads to the step";

impl List<'_> {
    fn add(
        &mut self,
        key: Key,
        kind: CoverKind,
        name: String,
        at: (Option<&Str>, Span),
        barred: Option<&str>,
    ) {
        let (step, span) = (at.0.cloned(), at.1);
        let barred = barred.map(str::to_owned);
        let takes = matches!(key, Key::Fallback(_)).then_some("takes an answer that cannot be used");
        self.found.push(Item { key, kind, name, step, span, barred, takes, hits: 0 });
    }

    fn step(&mut self, id: StepId, step: &Step<StepId>) {
        let (walked, visited) = (self.walked[id.0 as usize], self.visited[id.0 as usize]);
        let name = &step.name;
        let at = (Some(name), step.span);
        let unvisited = (!visited).then_some(UNREACHABLE);
        self.add(Key::Step(id), CoverKind::Step, name.to_string(), at, unvisited);
        for (index, edge) in step.edges.iter().enumerate().filter(|_| walked || !visited) {
            self.edge(id, step, index, edge, unvisited);
        }
        let is_judge = visited && !walked && !self.is_member(id);
        // What a judge says is an outcome of the step that it decides about.
        if !is_judge {
            self.gate(id, step, walked, unvisited);
        }
        if let Act::Exec { commands } = &step.act {
            for (index, validator) in (0..).zip(commands) {
                for (passed, verb) in [(true, "passes"), (false, "fails")] {
                    let words = format!("{name} {} {verb}", validator.name);
                    self.add(Key::Validator(id, index, passed), CoverKind::Validator, words, at, unvisited);
                }
            }
        }
    }

    fn late(&self, iterations: u64) -> Late {
        match iterations {
            most if most > u64::from(self.own_iterations_max) => Late::Never,
            most if most > u64::from(self.iterations_max) => Late::Simulated,
            _ => Late::No,
        }
    }

    /// Says of what was added last that runs would have to be longer for it.
    fn say_late(&mut self, late: Late) {
        if let Some(item) = self.found.last_mut().filter(|_| late == Late::Simulated) {
            item.takes = Some(BEYOND);
        }
    }

    fn is_member(&self, id: StepId) -> bool {
        self.flow
            .steps
            .iter()
            .any(|step| matches!(&step.act, Act::All { members, .. } if members.contains(&id)))
    }

    fn edge(
        &mut self,
        id: StepId,
        step: &Step<StepId>,
        index: usize,
        edge: &Edge<StepId>,
        unvisited: Option<&str>,
    ) {
        let barred = unvisited.or_else(|| self.bar(id, step, index));
        let on = words::outcome(step, &edge.on);
        let at = (Some(&step.name), edge.span);
        let whole = |to: &str| format!("{} --{on}→ {to}", step.name);
        match &edge.to {
            Target::Select { .. } | Target::Jump { .. } => {
                for to in ways::targets(edge) {
                    let chosen = chooses(self.flow, step, edge, to);
                    let barred = barred.or((!chosen).then_some("no answer can select it"));
                    let name = whole(&self.flow.step(to).name);
                    self.add(Key::Edge(id, index, Some(to)), CoverKind::Edge, name, at, barred);
                }
            }
            _ => {
                let name = whole(&words::target(self.flow, &edge.to));
                self.add(Key::Edge(id, index, None), CoverKind::Edge, name, at, barred);
            }
        }
        if let Some(bound) = edge.bound
            && bound.max > 0
        {
            let late = self.late(u64::from(bound.max).saturating_add(1));
            let barred = barred.or((late == Late::Never).then_some(LIMIT_FIRST));
            let times = crate::format::plural(u64::from(bound.max), "time");
            let name = format!("{} {on} more than {times}", step.name);
            self.add(Key::Spent(id, index), CoverKind::Limit, name, at, barred);
            self.say_late(late);
        }
    }

    /// Why an edge is never taken.
    fn bar(&self, id: StepId, step: &Step<StepId>, index: usize) -> Option<&'static str> {
        let edge = &step.edges[index];
        if edge.bound.is_some_and(|bound| bound.max == 0) {
            return Some("its bound is 0");
        }
        if !ways::is_takeable(step, index) {
            return Some("a way before it takes every such outcome");
        }
        self.bar_outcome(id, step, &edge.on)
    }

    /// Why a step never has an outcome.
    fn bar_outcome(&self, id: StepId, step: &Step<StepId>, outcome: &Outcome) -> Option<&'static str> {
        if !ways::outcomes(self.flow, step).contains(outcome) {
            return Some("nothing yields the outcome");
        }
        (!ways::is_sayable(self.flow, id, outcome)).then_some("the schema has no word for the outcome")
    }

    fn gate(&mut self, id: StepId, step: &Step<StepId>, walked: bool, unvisited: Option<&str>) {
        let at = (Some(&step.name), step.span);
        for outcome in ways::outcomes(self.flow, step) {
            // Without a way for it, nothing that fits is no outcome but an answer that cannot be used.
            if outcome == Outcome::None && !step.edges.iter().any(|edge| edge.on == Outcome::None) {
                continue;
            }
            let leads = !walked || step.edges.iter().any(|edge| edge.on == outcome);
            let barred = unvisited
                .or_else(|| self.bar_outcome(id, step, &outcome))
                .or((!leads).then_some("it leads nowhere"));
            let name = format!("{}: {}", step.name, words::outcome(step, &outcome));
            self.add(Key::Gate(id, outcome), CoverKind::Gate, name, at, barred);
        }
        let Gate::Readers(readers) = &step.gate else { return };
        let falls = readers.iter().find_map(|reader| match reader {
            Reader::Fallback(outcome) => Some((outcome, true)),
            Reader::FirstFallback(outcome) => Some((outcome, id == self.flow.entry)),
            _ => None,
        });
        // Of a member a bad answer is no answer, whatever its definition falls back to.
        if let Some((outcome, can)) = falls.filter(|_| walked) {
            let leads = step.edges.iter().any(|edge| edge.on == *outcome);
            let barred = unvisited
                .or((!can)
                    .then_some("a definition of this generation falls back in the first iteration only"))
                .or((!leads).then_some("it leads nowhere"));
            let name = format!("{} falls back to {}", step.name, words::outcome(step, outcome));
            self.add(Key::Fallback(id), CoverKind::Gate, name, at, barred);
        }
    }

    fn monitors(&mut self) {
        let acting = ways::acting(self.flow);
        for (index, monitor) in self.flow.monitors.iter().enumerate() {
            let reached = monitor.cycle.iter().all(|step| self.walked[step.0 as usize]);
            let rounds = u64::from(monitor.threshold).saturating_mul(monitor.cycle.len() as u64);
            let late = self.late(rounds);
            let barred = match () {
                () if !reached => Some("nothing leads to a step of its cycle"),
                () if !acting[index] => Some("no run goes round its cycle"),
                () if late == Late::Never => Some(LIMIT_FIRST),
                () => None,
            };
            let name = monitor.name.to_string();
            self.add(Key::Monitor(index), CoverKind::Monitor, name, (None, monitor.span), barred);
            self.say_late(late);
        }
    }

    fn iterations(&mut self) {
        // It is reached where one more would begin: by runs that would be longer if they might.
        let iterations_max = self.iterations_max.saturating_add(1);
        let reached = self.longest(iterations_max) > u64::from(self.iterations_max);
        // A verdict that counts iterations alone holds at the last of them, whatever else does.
        let said = matches!(self.flow.verdict, Verdict::Iterations(max) if max <= self.iterations_max);
        let barred = match reached {
            false => Some("no way through the flow is longer"),
            true => said.then_some("the verdict ends the run first"),
        };
        let name = format!("at most {} iterations", self.iterations_max);
        self.add(Key::Iterations, CoverKind::Limit, name, (None, self.entry()), barred);
    }

    fn entry(&self) -> Span {
        self.flow.step(self.flow.entry).span
    }

    fn verdict(&mut self) {
        for (place, part) in self.flow.verdict.places() {
            if !part.parts().is_empty() || !part.can_fire() {
                continue;
            }
            let (barred, late) = self.bar_verdict(part);
            let name = verdict::condition(part);
            self.add(Key::Verdict(place), CoverKind::Verdict, name, (None, self.entry()), barred);
            self.say_late(late);
        }
        if self.flow.verdict.can_fire() {
            let key = Key::End(BY_VERDICT.to_owned());
            let name = "completed by the verdict".to_owned();
            let (barred, late) = self.bar_verdict(&self.flow.verdict);
            self.add(key, CoverKind::End, name, (None, self.entry()), barred);
            self.say_late(late);
        }
    }

    /// Why a part of the verdict that counts never holds; of other parts nothing is known.
    fn bar_verdict(&self, part: &Verdict) -> (Option<&'static str>, Late) {
        let (Verdict::Iterations(max) | Verdict::Checks { max, .. }) = part else { return (None, Late::No) };
        let late = self.late(u64::from(*max));
        let barred = match late {
            Late::Never => Some(LIMIT_FIRST),
            _ if self.longest(*max) < u64::from(*max) => Some("no way through the flow is so long"),
            _ => None,
        };
        (barred, late)
    }

    /// The most iterations of a run that may have so many.
    fn longest(&self, iterations_max: u32) -> u64 {
        price(self.flow, &Terms { iterations_max, ..Terms::default() }).iterations
    }

    fn ends(&mut self) {
        let flow = self.flow;
        for (index, step) in flow.steps.iter().enumerate() {
            let id = StepId(index as u32);
            if !self.walked[index] {
                continue;
            }
            for (place, edge) in step.edges.iter().enumerate() {
                let Target::End(ending) = &edge.to else { continue };
                let key = Key::End(end(ending));
                let barred = self.bar(id, step, place);
                match self.found.iter_mut().find(|item| item.key == key) {
                    // One way that can be taken is enough.
                    Some(known) if barred.is_none() => known.barred = None,
                    Some(_) => {}
                    None => self.add(key, CoverKind::End, end(ending), (None, edge.span), barred),
                }
            }
        }
    }
}

/// The end by the verdict.
pub(super) const BY_VERDICT: &str = "@verdict";

/// An end in words.
pub(super) fn end(ending: &Ending) -> String {
    match ending {
        Ending::Completed => "completed".to_owned(),
        Ending::Aborted => "aborted".to_owned(),
        Ending::Failed(reason) => format!("failed: {reason}"),
    }
}

/// Whether an answer can select a step at an edge.
fn chooses(flow: &Flow, step: &Step<StepId>, edge: &Edge<StepId>, to: StepId) -> bool {
    match &edge.to {
        Target::Select { by, cases, default } => {
            let values = selectable(flow, step, by);
            let by_case = cases.iter().filter(|(_, target)| *target == to);
            let mut by_case = by_case.map(|(case, _)| &**case);
            let other = || {
                let all = |texts: &Vec<String>| {
                    texts.iter().any(|text| cases.iter().all(|(case, _)| **case != **text))
                };
                *default == Some(to) && values.as_ref().is_none_or(all)
            };
            by_case.any(|case| values.as_ref().is_none_or(|texts| texts.iter().any(|text| text == case)))
                || other()
        }
        Target::Jump { field: Some(path), default, .. } => {
            let listed = schema(flow, step).and_then(|schema| schema.values_at(path));
            let name = &flow.step(to).name;
            let named = |values: &Vec<Value>| values.iter().any(|value| value.as_str() == Some(&**name));
            *default == Some(to) || listed.as_ref().is_none_or(named)
        }
        Target::Jump { field: None, default, .. } => *default == Some(to),
        _ => true,
    }
}

/// The texts that a selecting value can be, where schemas list them and require one; `None` = any, or none at all.
fn selectable(flow: &Flow, step: &Step<StepId>, by: &Selector) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let listed = |step: &Step<StepId>, path: &cuegate_flow::FieldPath| {
        let values = schema(flow, step)?.values_at(path)?;
        Some(values.iter().map(text).collect::<Vec<String>>())
    };
    match by {
        Selector::Field(path) => listed(step, path).filter(|_| is_required(flow, step, path)),
        Selector::Handoff(key) => {
            let mut all = Vec::new();
            let leaves = |step: &Step<StepId>| {
                step.handoff.iter().find(|handoff| handoff.key == *key).map(|handoff| handoff.path.clone())
            };
            for other in &flow.steps {
                let Some(path) = leaves(other) else { continue };
                all.extend(listed(other, &path)?);
            }
            // Nobody has left it before somebody does.
            let own = leaves(step).is_some_and(|path| is_required(flow, step, &path));
            own.then_some(all)
        }
    }
}

fn is_required(flow: &Flow, step: &Step<StepId>, path: &cuegate_flow::FieldPath) -> bool {
    let Some(schema) = schema(flow, step) else { return false };
    let mut at = schema.value();
    path.segments().iter().all(|segment| {
        let required = at.get("required").and_then(Value::as_array);
        let named = required.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(&**segment)));
        let next = at.get("properties").and_then(|properties| properties.get(&**segment));
        at = next.unwrap_or(&Value::Null);
        named
    })
}

fn schema<'f>(flow: &'f Flow, step: &Step<StepId>) -> Option<&'f Schema> {
    match &step.act {
        Act::Ask(ask) => ask.schema.map(|schema| flow.schema(schema)),
        _ => None,
    }
}
