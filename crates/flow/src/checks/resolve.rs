//! Resolves names to ids. The result cannot name a step that does not exist.

use std::collections::HashMap;

use super::unknown_target;
use crate::{
    Str,
    diagnostics::Diagnostic,
    model::{
        Act, DanglingTarget, Draft, Edge, Flow, Gate, Monitor, Name, OutcomeReader, Step, StepId, Target,
    },
};

/// A flow whose names are resolved.
pub(crate) struct ResolvedFlow {
    pub(crate) flow: Flow,
    /// Further steps that other ways of running the definition enter first.
    pub(crate) other_entries: Vec<StepId>,
    /// Whether every name resolved. Otherwise the flow is only good for checks of single steps: the first step is the
    /// placeholder for a name that does not resolve, and the edge lists that name as dangling.
    pub(crate) complete: bool,
}

/// The flow of a draft; `None` when it has no steps or no entry. An unresolved name in `misread` belongs to a step that
/// failed to parse and is not reported again.
pub(crate) fn resolve_draft(
    draft: Draft,
    misread: &[Str],
    found: &mut Vec<Diagnostic>,
) -> Option<ResolvedFlow> {
    let names: Vec<Str> = draft.steps.iter().map(|step| step.name.clone()).collect();
    let mut index = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        index.entry(name.clone()).or_insert(StepId(at as u32));
    }
    if names.is_empty() {
        return None;
    }
    let mut resolver = Resolver { index, unknown: Vec::new(), step: None };
    let entry = draft.entry.as_ref().and_then(|entry| resolver.name(entry, || "the entry".to_owned()));
    let lost = draft.entry.as_ref().filter(|entry| !resolver.index.contains_key(&entry.text));
    let lost = lost.map(|entry| DanglingTarget::to(&entry.text));
    let others = resolver.all(&draft.other_entries, || "an entry".to_owned());
    let steps: Vec<Step<StepId>> = draft.steps.into_iter().filter_map(|step| resolver.step(step)).collect();
    resolver.step = None;
    let monitors: Vec<Monitor<StepId>> =
        draft.monitors.into_iter().filter_map(|monitor| resolver.monitor(monitor)).collect();
    let proofs = resolver.all(&draft.proofs, || "what proves the work".to_owned()).unwrap_or_default();
    let complete = resolver.unknown.is_empty();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let unknown = resolver.unknown.iter().filter(|unknown| !misread.contains(&unknown.name.text));
    // A missing step is reported once, however many places refer to it; a typo is reported at each place.
    let mut missing: HashMap<&str, (usize, usize)> = HashMap::new();
    for unknown in unknown {
        let (finding, is_near) = unknown_target::build_target_finding(&unknown.name, &unknown.from, &names);
        if let Some((_, more)) = missing.get_mut(&*unknown.name.text).filter(|_| !is_near) {
            *more += 1;
            continue;
        }
        missing.insert(&unknown.name.text, (found.len(), 0));
        found.push(match &unknown.step {
            Some(step) => finding.step(step),
            None => finding,
        });
    }
    for (at, more) in missing.into_values().filter(|(_, more)| *more > 0) {
        found[at].message.push_str(&match more {
            1 => "; so does another place".to_owned(),
            more => format!("; so do {more} more places"),
        });
    }
    let flow = Flow {
        name: draft.name,
        dialect: draft.dialect,
        entry: entry?,
        lost_entry: draft.flaws.lost_entry.or(lost),
        steps,
        schemas: draft.schemas,
        counters: draft.counters,
        monitors,
        proofs,
        verdict: draft.verdict,
        limits: draft.limits,
        default_model: draft.default_model,
        params: draft.params,
        conduct: draft.conduct,
        keys: draft.keys,
    };
    Some(ResolvedFlow { flow, other_entries: others.unwrap_or_default(), complete })
}

/// A name that does not resolve.
struct UnresolvedName {
    name: Name,
    /// The referring entry, in words.
    from: String,
    /// The referring step.
    step: Option<Str>,
}

struct Resolver {
    index: HashMap<Str, StepId>,
    unknown: Vec<UnresolvedName>,
    /// The step that is being resolved.
    step: Option<Str>,
}

impl Resolver {
    fn name(&mut self, name: &Name, from: impl Fn() -> String) -> Option<StepId> {
        let id = self.index.get(&name.text).copied();
        if id.is_none() {
            self.unknown.push(UnresolvedName { name: name.clone(), from: from(), step: self.step.clone() });
        }
        Some(id.unwrap_or(StepId(0)))
    }

    /// The ids of all names, or `None`; records every unknown name.
    fn all(&mut self, names: &[Name], from: impl Fn() -> String) -> Option<Vec<StepId>> {
        let ids: Vec<Option<StepId>> = names.iter().map(|name| self.name(name, &from)).collect();
        ids.into_iter().collect()
    }

    /// The id of a transition's target; records an unknown name as dangling.
    fn led(
        &mut self,
        name: &Name,
        from: impl Fn() -> String,
        case: Option<&Str>,
        dangling: &mut Vec<DanglingTarget>,
    ) -> Option<StepId> {
        let before = self.unknown.len();
        let id = self.name(name, from);
        if self.unknown.len() == before {
            return id;
        }
        dangling.push(DanglingTarget { case: case.cloned(), ..DanglingTarget::to(&name.text) });
        None
    }

    fn step(&mut self, step: Step<Name>) -> Option<Step<StepId>> {
        // Authors do not know generated steps such as checks.
        let owner = step.name.split_once('/').filter(|_| !step.counts).map(|(owner, _)| owner);
        let owner = owner.filter(|owner| self.index.contains_key(*owner)).unwrap_or(&step.name);
        let owner: Str = if *owner == *step.name { step.name.clone() } else { owner.into() };
        let from = || format!("`{owner}`");
        self.step = Some(owner.clone());
        let act = match step.act {
            Act::Ask(ask) => Some(Act::Ask(ask)),
            Act::Exec { commands } => Some(Act::Exec { commands }),
            Act::Person { question } => Some(Act::Person { question }),
            Act::System(work) => Some(Act::System(work)),
            Act::All { members, width } => {
                self.all(&members, from).map(|members| Act::All { members, width })
            }
        };
        let gate = match step.gate {
            Gate::Exit => Some(Gate::Exit),
            Gate::Always(outcome) => Some(Gate::Always(outcome)),
            Gate::Cases(cases) => Some(Gate::Cases(cases)),
            Gate::Join { rules, judges } => {
                self.all(&judges, from).map(|judges| Gate::Join { rules, judges })
            }
            Gate::Readers(readers) => {
                let readers: Vec<_> = readers.into_iter().map(|reader| self.reader(reader, from)).collect();
                readers.into_iter().collect::<Option<Vec<_>>>().map(Gate::Readers)
            }
        };
        let selectors = self.all(&step.selectors, from);
        let edges: Vec<_> = step.edges.into_iter().map(|edge| self.edge(edge, from)).collect();
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
            selectors: selectors?,
            when: step.when,
            edges: edges.into_iter().collect::<Option<Vec<_>>>()?,
        })
    }

    fn reader(
        &mut self,
        reader: OutcomeReader<Name>,
        from: impl Fn() -> String,
    ) -> Option<OutcomeReader<StepId>> {
        Some(match reader {
            OutcomeReader::Field { path, words, reasons } => OutcomeReader::Field { path, words, reasons },
            OutcomeReader::Tag { name, base, outcomes } => OutcomeReader::Tag { name, base, outcomes },
            OutcomeReader::Judge { step } => OutcomeReader::Judge { step: self.name(&step, from)? },
            OutcomeReader::Said { name, words } => OutcomeReader::Said { name, words },
            OutcomeReader::Otherwise(outcome) => OutcomeReader::Otherwise(outcome),
            OutcomeReader::Fallback(outcome) => OutcomeReader::Fallback(outcome),
            OutcomeReader::FirstFallback(outcome) => OutcomeReader::FirstFallback(outcome),
            OutcomeReader::Silence(text) => OutcomeReader::Silence(text),
        })
    }

    fn edge(&mut self, edge: Edge<Name>, from: impl Fn() -> String) -> Option<Edge<StepId>> {
        let from = || format!("{} on `{}`", from(), edge.on);
        let mut dangling = edge.dangling;
        let to = match edge.to {
            Target::Step(name) => {
                Target::Step(self.led(&name, from, None, &mut dangling).unwrap_or(StepId(0)))
            }
            Target::End(ending) => Target::End(ending),
            Target::Origin { among } => Target::Origin { among: self.all(&among, from)? },
            Target::Select { by, cases, default } => {
                let mut led = |name: &Name, case: Option<&Str>| self.led(name, from, case, &mut dangling);
                let cases = cases
                    .into_iter()
                    .filter_map(|(value, name)| led(&name, Some(&value)).map(|to| (value, to)))
                    .collect();
                let default = default.and_then(|name| led(&name, None));
                Target::Select { by, cases, default }
            }
            Target::Jump { field, among, default } => {
                let mut led = |name: &Name| self.led(name, from, None, &mut dangling);
                let among = among.iter().filter_map(&mut led).collect();
                let default = default.as_ref().and_then(led);
                Target::Jump { field, among, default }
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
            label: edge.label,
            dangling,
            span: edge.span,
        })
    }

    fn monitor(&mut self, monitor: Monitor<Name>) -> Option<Monitor<StepId>> {
        let from = || format!("monitor `{}`", monitor.name);
        let cycle: Vec<_> = monitor.cycle.iter().map(|stage| self.all(stage, from)).collect();
        let ignored = self.all(&monitor.ignored, from);
        let judge = self.name(&monitor.judge, from);
        Some(Monitor {
            name: monitor.name,
            cycle: cycle.into_iter().collect::<Option<_>>()?,
            ignored: ignored?,
            threshold: monitor.threshold,
            judge: judge?,
            span: monitor.span,
        })
    }
}
