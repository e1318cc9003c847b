use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::paths::{ControlGraph, FAR, Hop, SearchBudget, id_of_step};
use crate::analysis::{dominators::Dominators, graph::list_asked_steps, reachability::Reachability};
use crate::checks::Code;
use crate::{
    Str,
    diagnostics::Diagnostic,
    model::{Act, Ask, Flow, Source, Step, StepId},
};

pub(in crate::checks) const CODE: Code = code!("unwritten-report");

/// How many findings of one flow show a path that has to be searched for.
const SEARCHES_MAX: usize = 64;

pub(in crate::checks) fn check_report_reads(
    flow: &Flow,
    live: &Reachability,
    walks: &ControlGraph<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let writers = index_report_writers(flow);
    if writers.is_empty() {
        return;
    }
    let dominance = walks.dominance();
    let reading = ReportSearch { flow, live, walks, writers: &writers, dominance: &dominance };
    let (mut work, mut searches) = (walks.work(), 0);
    for at in (0..flow.steps.len()).filter(|at| walks.far[*at] != FAR) {
        for step in list_asked_steps(flow, at).map(|id| flow.step(id)) {
            let Act::Ask(ask) = &step.act else { continue };
            for report in list_read_reports(ask) {
                if ask.reports.iter().any(|own| own.name == *report) {
                    continue;
                }
                let Some(way) = reading.find_path_without_report(at, report, &mut work) else { continue };
                searches += 1;
                if searches > SEARCHES_MAX {
                    return;
                }
                found.push(reading.finding(at, step, report, &way));
            }
        }
    }
}

/// By report, the steps after which it is written.
fn index_report_writers(flow: &Flow) -> BTreeMap<&Str, BTreeSet<usize>> {
    let mut writers: BTreeMap<&Str, BTreeSet<usize>> = BTreeMap::new();
    for at in 0..flow.steps.len() {
        for step in list_asked_steps(flow, at).map(|id| flow.step(id)) {
            let Act::Ask(ask) = &step.act else { continue };
            for report in &ask.reports {
                writers.entry(&report.name).or_default().insert(at);
            }
        }
    }
    writers
}

/// The reports that a prompt reads, each once. Requests for the step's own reports come after its answer.
fn list_read_reports(ask: &Ask) -> BTreeSet<&Str> {
    let templates = std::iter::once(&ask.prompt).chain(&ask.system);
    let sources = templates.flat_map(|template| template.sources());
    sources
        .filter_map(|source| match source {
            Source::Report(name) => Some(name),
            _ => None,
        })
        .collect()
}

struct ReportSearch<'r, 'f> {
    flow: &'f Flow,
    live: &'r Reachability,
    walks: &'r ControlGraph<'f>,
    writers: &'r BTreeMap<&'f Str, BTreeSet<usize>>,
    dominance: &'r Dominators,
}

impl ReportSearch<'_, '_> {
    /// The shortest path to a reader of a report that never exists at that time. `None` if the report exists on some
    /// path, if no step writes it (which is reported at the text), or if the search was too large.
    fn find_path_without_report(&self, at: usize, report: &Str, work: &mut SearchBudget) -> Option<Vec<Hop>> {
        let writers = self.writers.get(report)?;
        if writers.iter().any(|writer| !self.dominance.is_avoidable(id_of_step(at), id_of_step(*writer))) {
            return None;
        }
        // A monitor acts when all steps of its cycle were visited.
        let without = |hop: &Hop| {
            !writers.contains(&hop.from)
                && (hop.edge.is_some() || self.watched_by(hop.to).is_disjoint(writers))
        };
        let entry = self.flow.entry.0 as usize;
        let search = self.walks.search(&[entry], without, |step| step == at);
        let is_there = work.spend(search.work);
        let way = search.walk(search.found.filter(|_| is_there)?);
        let after: Vec<usize> =
            writers.iter().flat_map(|writer| &self.walks.out[*writer]).map(|hop| hop.to).collect();
        let back = self.walks.search(&after, |_| true, |step| step == at);
        (work.spend(back.work) && back.found.is_none()).then_some(way)
    }

    /// The steps that every cycle has whose monitor asks this judge.
    fn watched_by(&self, at: usize) -> BTreeSet<usize> {
        let monitors = self.flow.monitors.iter().zip(&self.live.monitors);
        let judged = monitors.filter(|(monitor, acts)| **acts && monitor.judge.0 as usize == at);
        let stages = judged.flat_map(|(monitor, _)| &monitor.cycle).filter(|stage| stage.len() == 1);
        stages.flatten().map(|step| step.0 as usize).collect()
    }

    fn finding(&self, at: usize, step: &Step<StepId>, report: &str, way: &[Hop]) -> Diagnostic {
        let message = format!("`{}` reads the report `{report}`, which no path writes before", step.name);
        Diagnostic::warning(CODE.name, step.span, message)
            .hint("read it after the step that writes it, or correct the name")
            .step(&step.name)
            .trace(self.walks.tell(way, at))
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, owes, prompt};
    use crate::model::{Draft, Piece, Source};

    fn said(draft: Draft) -> Vec<String> {
        let mut found = findings_of(draft);
        found.retain(|found| found.code == "unwritten-report");
        let line = |found: &crate::diagnostics::Diagnostic| {
            format!("{}: {} ({})", found.severity.as_str(), found.message, found.trace.join(" "))
        };
        found.iter().map(line).collect()
    }

    /// A flow in which one step writes a report and another one reads it.
    fn reports(text: &str, writer: usize, reader: usize) -> Draft {
        let mut draft = draft(text);
        owes(&mut draft, writer, "plan.md");
        prompt(&mut draft, reader, vec![Piece::Value(Source::Report("plan.md".into()))]);
        draft
    }

    #[test]
    fn on_every_way_on_some_and_on_none() {
        let text = "a: next → b\nb: next → c\nc: done → end";
        assert!(said(reports(text, 0, 2)).is_empty());
        assert_eq!(
            said(reports(text, 2, 1)),
            ["warning: `b` reads the report `plan.md`, which no path writes before (a --next→ b)"]
        );
        let around = "a: next → b, skip → c\nb: next → c\nc: done → end";
        assert!(said(reports(around, 1, 2)).is_empty(), "it is there on some way");
    }

    #[test]
    fn a_report_of_the_round_before() {
        assert!(said(reports("a: next → b\nb: back → a, done → end", 1, 0)).is_empty());
        // Its own: instructions are shared by steps that go round and by those that do not.
        assert!(said(reports("a: next → b\nb: done → end", 0, 0)).is_empty());
    }

    #[test]
    fn several_may_write_it() {
        let mut either = reports("a: x → b\nb: y → c\nc: next → d\nd: done → end", 2, 1);
        assert_eq!(said(either.clone()).len(), 1);
        owes(&mut either, 0, "plan.md");
        assert!(said(either).is_empty());
    }
}
