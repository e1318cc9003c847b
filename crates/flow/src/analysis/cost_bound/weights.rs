//! The maximum cost of one visit of a step.

use std::collections::BTreeSet;

use super::Terms;
use super::edges::PlaceEdge;
use crate::analysis::graph::{judges_of_gate, outcomes_of_readers};
use crate::model::{Act, Ask, Conduct, Edge, Flow, Gate, Outcome, OutcomeReader, Role, Step, StepId, Target};

/// The kind of an ask, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskRole {
    /// The work of a step.
    Work,
    /// A report that a step must provide.
    Report,
    /// A decision between outcomes.
    Judge,
    /// A check of another step's work.
    Check,
    /// A retry after an unusable answer.
    Repair,
    /// Work after a failed validator.
    Remedy,
}

impl AskRole {
    /// All kinds, in print order.
    pub const ALL: [AskRole; 6] =
        [AskRole::Work, AskRole::Report, AskRole::Judge, AskRole::Check, AskRole::Repair, AskRole::Remedy];

    /// The printed word.
    pub fn as_str(self) -> &'static str {
        match self {
            AskRole::Work => "work",
            AskRole::Report => "report",
            AskRole::Judge => "judge",
            AskRole::Check => "check",
            AskRole::Repair => "repair",
            AskRole::Remedy => "remedy",
        }
    }
}

/// The counted measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Visits,
    Asks,
    Role(AskRole),
    Money,
}

/// The cost of each step in one measure: regular, and with a remedy.
pub(super) struct Weights {
    usual: Vec<u64>,
    remedy: Vec<u64>,
    /// Whether only new visits count, not further attempts of the same one.
    visits: bool,
    /// The cost of each monitor's judge; walks ignore it, because it is counted separately.
    monitors: Vec<u64>,
}

impl Weights {
    /// `apart`: whether control moves to judges. Steps then exclude the cost of their judges (except for members), and
    /// the judges of monitors are counted where control moves to them.
    /// `rejected`: the result of [`mark_rejectable_steps`] for the flow.
    pub(super) fn new(
        (flow, rejected): (&Flow, &[bool]),
        apart: bool,
        terms: &Terms,
        measure: Measure,
    ) -> Weights {
        let scale = Scale { flow, rejected, apart, terms, measure };
        let of = |remedy: bool| (0..flow.steps.len()).map(|at| scale.visit(at, remedy)).collect();
        let mut weights = Weights {
            usual: of(false),
            remedy: of(true),
            visits: measure == Measure::Visits,
            monitors: Vec::new(),
        };
        if apart {
            return weights;
        }
        for monitor in &flow.monitors {
            weights.monitors.push(scale.visit(monitor.judge.0 as usize, false));
        }
        for monitor in flow.monitors.iter().filter(|monitor| !flow.step(monitor.judge).counts) {
            weights.usual[monitor.judge.0 as usize] = 0;
        }
        weights
    }

    /// The weights by place; each place is a step.
    pub(super) fn at(&self, steps: &[StepId]) -> Weights {
        let all = |costs: &[u64]| steps.iter().map(|step| costs[step.0 as usize]).collect();
        Weights {
            usual: all(&self.usual),
            remedy: all(&self.remedy),
            visits: self.visits,
            monitors: Vec::new(),
        }
    }

    pub(super) fn of(&self, step: usize, remedy: bool) -> u64 {
        if remedy { self.remedy[step] } else { self.usual[step] }
    }

    /// The cost of an edge's target.
    pub(super) fn hop(&self, way: &PlaceEdge) -> u64 {
        if self.visits && way.again { 0 } else { self.of(way.to as usize, way.remedy) }
    }

    /// The common divisor of all costs and the divided costs; `None` if all costs are 0.
    pub(super) fn shape(&self) -> Option<(u64, Vec<u64>)> {
        let all = || self.usual.iter().chain(&self.remedy).copied();
        let unit = all().fold(0, greatest_common_divisor);
        (unit > 0).then(|| {
            // Visits are not proportional to any other measure.
            (unit, all().map(|cost| cost / unit).chain(self.visits.then_some(0)).collect())
        })
    }

    /// The maximum cost of a visit of any step.
    pub(super) fn dearest(&self) -> u64 {
        self.usual.iter().chain(&self.remedy).copied().max().unwrap_or(0)
    }

    /// The cost of the judges of monitors within some iterations. When one monitor acts, all restart, so no two act on
    /// the same rounds.
    pub(super) fn of_monitors(&self, flow: &Flow, iterations: u32) -> u64 {
        if self.monitors.is_empty() {
            return 0;
        }
        let rounds = |monitor: &crate::model::Monitor<StepId>| {
            u64::from(monitor.threshold.max(1)).saturating_mul(monitor.cycle.len().max(1) as u64)
        };
        let Some(shortest) = flow.monitors.iter().map(rounds).min() else { return 0 };
        (u64::from(iterations) / shortest).saturating_mul(self.of_monitor())
    }

    /// The cost of the most expensive judge of a monitor.
    pub(super) fn of_monitor(&self) -> u64 {
        self.monitors.iter().copied().max().unwrap_or(0)
    }
}

/// The greatest common divisor; for 0, the other number.
fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

struct Scale<'s> {
    flow: &'s Flow,
    rejected: &'s [bool],
    apart: bool,
    terms: &'s Terms,
    measure: Measure,
}

impl Scale<'_> {
    /// A visit: the work of its step, and the questions that the definition answers.
    fn visit(&self, at: usize, remedy: bool) -> u64 {
        let usual = self.step(at, remedy, !self.apart);
        if self.measure == Measure::Visits || self.flow.conduct.auto_response.is_none() {
            return usual;
        }
        // A question repeats the ask in which it came up, which can be any ask of the visit.
        let each = match self.measure {
            Measure::Money => self.terms.dearest(self.flow).unwrap_or(0),
            _ => u64::from(usual > 0),
        };
        usual.saturating_add(u64::from(Conduct::QUESTIONS_MAX).saturating_mul(each))
    }

    /// A member that repairs what its commands reported is asked again, including all that follows.
    fn step(&self, at: usize, remedy: bool, judged: bool) -> u64 {
        let once = self.once(at, remedy, judged);
        match &self.flow.steps[at].act {
            Act::Ask(Ask { guard: Some(guard), .. }) if self.measure != Measure::Visits => {
                let again = self.once(at, true, judged).saturating_mul(u64::from(guard.mends_max));
                once.saturating_add(again)
            }
            _ => once,
        }
    }

    fn once(&self, at: usize, remedy: bool, judged: bool) -> u64 {
        let step = &self.flow.steps[at];
        let own = match &step.act {
            Act::Ask(ask) => {
                let role = match ask.role {
                    Role::Work if remedy => AskRole::Remedy,
                    Role::Work => AskRole::Work,
                    Role::Judge => AskRole::Judge,
                    Role::Check => AskRole::Check,
                };
                let visit = u64::from(self.measure == Measure::Visits && step.counts);
                let repairs = if self.rejected[at] { self.terms.repairs_max } else { 0 };
                let reports = self.ask(step, ask, AskRole::Report, self.terms.repairs_max);
                visit + self.ask(step, ask, role, repairs) + reports * ask.reports.len() as u64
            }
            Act::All { members, .. } => {
                let member = |id: &StepId| {
                    let counts = self.flow.step(*id).counts;
                    let visit = u64::from(self.measure == Measure::Visits && !counts);
                    visit + self.step(id.0 as usize, false, true)
                };
                members.iter().map(member).fold(0, u64::saturating_add)
            }
            Act::Exec { .. } | Act::Person { .. } | Act::System(_) => {
                u64::from(self.measure == Measure::Visits && step.counts)
            }
        };
        let own = if remedy { own } else { own.saturating_add(self.selectors(step)) };
        if judged { own.saturating_add(self.judges(step)) } else { own }
    }

    /// The cost of the selection when a visit begins.
    fn selectors(&self, step: &Step<StepId>) -> u64 {
        let asks = step.selectors.iter().map(|selector| self.judge(self.flow.step(*selector)));
        asks.fold(0, u64::saturating_add)
    }

    /// The cost of all judges of a step's answer.
    fn judges(&self, step: &Step<StepId>) -> u64 {
        let asks = judges_of_gate(&step.gate).map(|judge| self.judge(self.flow.step(judge)));
        asks.fold(0, u64::saturating_add)
    }

    /// The most that a judge or a selector costs.
    fn judge(&self, judge: &Step<StepId>) -> u64 {
        match &judge.act {
            Act::Ask(ask) => self.ask(judge, ask, AskRole::Judge, self.terms.repairs_max),
            _ => 0,
        }
    }

    /// The most that one ask of a step and all its `repairs` cost, in the chosen measure.
    fn ask(&self, step: &Step<StepId>, ask: &Ask, role: AskRole, repairs: u32) -> u64 {
        let repairs = u64::from(repairs);
        match self.measure {
            Measure::Visits => 0,
            Measure::Asks => 1 + repairs,
            Measure::Role(AskRole::Repair) => repairs,
            Measure::Role(wanted) => u64::from(wanted == role),
            Measure::Money => {
                let each = self.terms.usd_of(self.flow, &step.name, ask).unwrap_or(0);
                each.saturating_mul(1 + repairs)
            }
        }
    }
}

/// By step: whether an answer of it can be rejected.
pub(super) fn mark_rejectable_steps(flow: &Flow) -> Vec<bool> {
    let rejected = |step: &Step<StepId>| match &step.act {
        Act::Ask(ask) => can_be_rejected(step, ask),
        _ => false,
    };
    flow.steps.iter().map(rejected).collect()
}

/// Whether an answer can be rejected and retried. That is impossible if its definition assigns an outcome to unusable
/// answers or leaves them to a judge, and nothing else can be wrong. The rest can be wrong as follows: an answer of
/// several parts can be incomplete, a target can be unknown, an empty text can count as no answer, and an agent without
/// write permission can have written.
fn can_be_rejected(step: &Step<StepId>, ask: &Ask) -> bool {
    let unbound = step.edges.iter().filter(|edge| edge.bound.is_none());
    let open: BTreeSet<&Outcome> = unbound.map(|edge| &edge.on).collect();
    let leads = |edge: &Edge<StepId>| {
        let named = match &edge.to {
            Target::Select { .. } => true,
            Target::Jump { field, .. } => field.is_some(),
            _ => false,
        };
        !named && open.contains(&edge.on)
    };
    // The judge reports what only the judge decides.
    let own = match &step.gate {
        Gate::Readers(readers) => Some(outcomes_of_readers(readers).into_iter().collect::<BTreeSet<_>>()),
        _ => None,
    };
    let says = |edge: &&Edge<StepId>| own.as_ref().is_none_or(|own| own.contains(&edge.on));
    if ask.fused.is_some()
        || ask.blocked_mark.is_some()
        || !step.boundary.permission.may_write()
        || !step.edges.iter().filter(says).all(leads)
    {
        return true;
    }
    let Gate::Readers(readers) = &step.gate else { return ask.schema.is_some() };
    let has = |wanted: fn(&OutcomeReader<StepId>) -> bool| readers.iter().any(wanted);
    if has(|reader| matches!(reader, OutcomeReader::Otherwise(_))) {
        return false;
    }
    // A field that names nothing decides even where a tag could have named an outcome.
    let decides = has(|reader| matches!(reader, OutcomeReader::Field { .. }))
        && has(|reader| matches!(reader, OutcomeReader::Tag { .. }));
    ask.schema.is_some() || decides || !has(|reader| matches!(reader, OutcomeReader::Judge { .. }))
}
