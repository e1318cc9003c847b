//! Turns names into ids. What comes out cannot name a step that does not exist.

use std::collections::HashMap;

use super::unknown_target;
use crate::{Act, Diagnostic, Draft, Edge, Flow, Gate, Monitor, Name, Reader, Step, StepId, Str, Target};

/// The flow and its further entries; `None` when some name leads nowhere.
pub(super) fn resolve(draft: Draft, found: &mut Vec<Diagnostic>) -> Option<(Flow, Vec<StepId>)> {
    let mut index = HashMap::new();
    for (at, step) in draft.steps.iter().enumerate() {
        index.entry(step.name.clone()).or_insert(StepId(at as u32));
    }
    let mut resolver = Resolver { index, unknown: Vec::new() };
    let entry = draft.entry.as_ref().and_then(|entry| resolver.name(entry, "the entry"));
    let others = resolver.all(&draft.other_entries, "an entry");
    let steps: Vec<Step<StepId>> = draft.steps.into_iter().filter_map(|step| resolver.step(step)).collect();
    let monitors: Vec<Monitor<StepId>> =
        draft.monitors.into_iter().filter_map(|monitor| resolver.monitor(monitor)).collect();
    let names: Vec<&str> = resolver.index.keys().map(|name| &**name).collect();
    let complete = resolver.unknown.is_empty();
    found.extend(resolver.unknown.iter().map(|(name, from)| unknown_target::finding(name, from, &names)));
    if !complete {
        return None;
    }
    let flow = Flow {
        name: draft.name,
        dialect: draft.dialect,
        entry: entry?,
        steps,
        schemas: draft.schemas,
        counters: draft.counters,
        monitors,
        verdict: draft.verdict,
        limits: draft.limits,
        params: draft.params,
    };
    Some((flow, others.unwrap_or_default()))
}

struct Resolver {
    index: HashMap<Str, StepId>,
    unknown: Vec<(Name, String)>,
}

impl Resolver {
    fn name(&mut self, name: &Name, from: &str) -> Option<StepId> {
        let id = self.index.get(&name.text).copied();
        if id.is_none() {
            self.unknown.push((name.clone(), from.to_owned()));
        }
        id
    }

    /// All of them, or `None`; every unknown one is noted.
    fn all(&mut self, names: &[Name], from: &str) -> Option<Vec<StepId>> {
        let ids: Vec<Option<StepId>> = names.iter().map(|name| self.name(name, from)).collect();
        ids.into_iter().collect()
    }

    fn optional(&mut self, name: Option<&Name>, from: &str) -> Option<Option<StepId>> {
        match name {
            None => Some(None),
            Some(name) => self.name(name, from).map(Some),
        }
    }

    fn step(&mut self, step: Step<Name>) -> Option<Step<StepId>> {
        let from = format!("`{}`", step.name);
        let act = match step.act {
            Act::Ask(ask) => Some(Act::Ask(ask)),
            Act::Exec { commands } => Some(Act::Exec { commands }),
            Act::Person { question } => Some(Act::Person { question }),
            Act::All { members, width } => {
                self.all(&members, &from).map(|members| Act::All { members, width })
            }
        };
        let gate = match step.gate {
            Gate::Exit => Some(Gate::Exit),
            Gate::Always(outcome) => Some(Gate::Always(outcome)),
            Gate::Join(rules) => Some(Gate::Join(rules)),
            Gate::Readers(readers) => {
                let readers: Vec<_> = readers.into_iter().map(|reader| self.reader(reader, &from)).collect();
                readers.into_iter().collect::<Option<Vec<_>>>().map(Gate::Readers)
            }
        };
        let edges: Vec<_> = step.edges.into_iter().map(|edge| self.edge(edge, &from)).collect();
        Some(Step {
            name: step.name,
            title: step.title,
            span: step.span,
            counts: step.counts,
            act: act?,
            gate: gate?,
            boundary: step.boundary,
            handoff: step.handoff,
            inputs: step.inputs,
            edges: edges.into_iter().collect::<Option<Vec<_>>>()?,
        })
    }

    fn reader(&mut self, reader: Reader<Name>, from: &str) -> Option<Reader<StepId>> {
        Some(match reader {
            Reader::Field { path, words, reasons } => Reader::Field { path, words, reasons },
            Reader::Tag { name, base, outcomes } => Reader::Tag { name, base, outcomes },
            Reader::Judge { step } => Reader::Judge { step: self.name(&step, from)? },
            Reader::Fallback(outcome) => Reader::Fallback(outcome),
        })
    }

    fn edge(&mut self, edge: Edge<Name>, from: &str) -> Option<Edge<StepId>> {
        let from = format!("{from} on `{}`", edge.on);
        let to = match edge.to {
            Target::Step(name) => Target::Step(self.name(&name, &from)?),
            Target::End(ending) => Target::End(ending),
            Target::Origin { among } => Target::Origin { among: self.all(&among, &from)? },
            Target::Select { by, cases, default } => {
                let resolved: Vec<_> =
                    cases.into_iter().map(|(value, name)| Some((value, self.name(&name, &from)?))).collect();
                let default = self.optional(default.as_ref(), &from);
                Target::Select { by, cases: resolved.into_iter().collect::<Option<_>>()?, default: default? }
            }
            Target::Jump { field, among, default } => {
                let among = self.all(&among, &from);
                let default = self.optional(default.as_ref(), &from);
                Target::Jump { field, among: among?, default: default? }
            }
        };
        Some(Edge {
            on: edge.on,
            to,
            bound: edge.bound,
            resets: edge.resets,
            remedy: edge.remedy,
            hands_off: edge.hands_off,
            again: edge.again,
            implied: edge.implied,
            span: edge.span,
        })
    }

    fn monitor(&mut self, monitor: Monitor<Name>) -> Option<Monitor<StepId>> {
        let from = format!("monitor `{}`", monitor.name);
        let cycle = self.all(&monitor.cycle, &from);
        let judge = self.name(&monitor.judge, &from);
        Some(Monitor {
            name: monitor.name,
            cycle: cycle?,
            threshold: monitor.threshold,
            judge: judge?,
            span: monitor.span,
        })
    }
}
