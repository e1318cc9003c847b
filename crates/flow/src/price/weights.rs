//! What one visit of a step costs at most.

use super::Terms;
use crate::check::graph::judges;
use crate::{Act, Ask, Conduct, Flow, Gate, Reader, Role, Step, StepId, Target};

/// What an ask is for, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskRole {
    /// The work of a step.
    Work,
    /// A report that a step owes.
    Report,
    /// A decision between outcomes.
    Judge,
    /// A check of another step's work.
    Check,
    /// A second try after an answer that could not be used.
    Repair,
    /// Work after a failed validator.
    Remedy,
}

impl AskRole {
    /// All of them, in the order in which they are printed.
    pub const ALL: [AskRole; 6] =
        [AskRole::Work, AskRole::Report, AskRole::Judge, AskRole::Check, AskRole::Repair, AskRole::Remedy];

    /// The word that is printed.
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

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Visits,
    Asks,
    Role(AskRole),
    Money,
}

/// What each step costs in one measure: asked as usual, and with a remedy.
pub(super) struct Weights {
    usual: Vec<u64>,
    remedy: Vec<u64>,
    /// What each monitor's judge costs; walks take them for nothing, because they are counted apart.
    monitors: Vec<u64>,
}

impl Weights {
    pub(super) fn new(flow: &Flow, terms: &Terms, measure: Measure) -> Weights {
        let scale = Scale { flow, terms, measure };
        let mut weights = Weights {
            usual: flow.steps.iter().map(|step| scale.visit(step, false)).collect(),
            remedy: flow.steps.iter().map(|step| scale.visit(step, true)).collect(),
            monitors: Vec::new(),
        };
        for monitor in &flow.monitors {
            let judge = monitor.judge.0 as usize;
            weights.monitors.push(scale.visit(&flow.steps[judge], false));
        }
        for monitor in flow.monitors.iter().filter(|monitor| !flow.step(monitor.judge).counts) {
            weights.usual[monitor.judge.0 as usize] = 0;
        }
        weights
    }

    pub(super) fn of(&self, step: usize, remedy: bool) -> u64 {
        if remedy { self.remedy[step] } else { self.usual[step] }
    }

    /// The most that a visit of any step costs.
    pub(super) fn dearest(&self) -> u64 {
        self.usual.iter().chain(&self.remedy).copied().max().unwrap_or(0)
    }

    /// What the judges of monitors cost in so many iterations. Whichever acts, all begin anew, so that no two act on the
    /// same rounds.
    pub(super) fn of_monitors(&self, flow: &Flow, iterations: u32) -> u64 {
        let rounds = |monitor: &crate::Monitor<StepId>| {
            u64::from(monitor.threshold.max(1)).saturating_mul(monitor.cycle.len().max(1) as u64)
        };
        let Some(shortest) = flow.monitors.iter().map(rounds).min() else { return 0 };
        let dearest = self.monitors.iter().copied().max().unwrap_or(0);
        (u64::from(iterations) / shortest).saturating_mul(dearest)
    }
}

struct Scale<'s> {
    flow: &'s Flow,
    terms: &'s Terms,
    measure: Measure,
}

impl Scale<'_> {
    /// A visit: what its step does, and the questions that the definition answers.
    fn visit(&self, step: &Step<StepId>, remedy: bool) -> u64 {
        let usual = self.step(step, remedy);
        if self.measure == Measure::Visits || self.flow.conduct.auto_response.is_none() {
            return usual;
        }
        // A question is put again as what it was asked in: any ask of the visit can be the one.
        let each = match self.measure {
            Measure::Money => self.terms.dearest(self.flow).unwrap_or(0),
            _ => u64::from(usual > 0),
        };
        usual.saturating_add(u64::from(Conduct::QUESTIONS_MAX).saturating_mul(each))
    }

    /// A member that mends what its commands found is asked again with all that follows.
    fn step(&self, step: &Step<StepId>, remedy: bool) -> u64 {
        let once = self.once(step, remedy);
        match &step.act {
            Act::Ask(Ask { guard: Some(guard), .. }) if self.measure != Measure::Visits => {
                let again = self.once(step, true).saturating_mul(u64::from(guard.mends_max));
                once.saturating_add(again)
            }
            _ => once,
        }
    }

    fn once(&self, step: &Step<StepId>, remedy: bool) -> u64 {
        let own = match &step.act {
            Act::Ask(ask) => {
                let role = match ask.role {
                    Role::Work if remedy => AskRole::Remedy,
                    Role::Work => AskRole::Work,
                    Role::Judge => AskRole::Judge,
                    Role::Check => AskRole::Check,
                };
                let visit = u64::from(self.measure == Measure::Visits && step.counts);
                let repairs = if is_settled_at_once(step, ask) { 0 } else { self.terms.repairs_max };
                let reports = self.ask(ask, AskRole::Report, self.terms.repairs_max);
                visit + self.ask(ask, role, repairs) + reports * ask.reports.len() as u64
            }
            Act::All { members, .. } => {
                let member = |id: &StepId| {
                    let member = self.flow.step(*id);
                    let visit = u64::from(self.measure == Measure::Visits && !member.counts);
                    visit + self.step(member, false)
                };
                members.iter().map(member).fold(0, u64::saturating_add)
            }
            Act::Exec { .. } | Act::Person { .. } => {
                u64::from(self.measure == Measure::Visits && step.counts)
            }
        };
        let judges: u64 = judges(&step.gate)
            .into_iter()
            .filter_map(|judge| match &self.flow.step(judge).act {
                Act::Ask(ask) => Some(self.ask(ask, AskRole::Judge, self.terms.repairs_max)),
                _ => None,
            })
            .fold(0, u64::saturating_add);
        own.saturating_add(judges)
    }

    /// One ask, and as many repairs of its answer as there may be.
    fn ask(&self, ask: &Ask, role: AskRole, repairs: u32) -> u64 {
        let repairs = u64::from(repairs);
        match self.measure {
            Measure::Visits => 0,
            Measure::Asks => 1 + repairs,
            Measure::Role(AskRole::Repair) => repairs,
            Measure::Role(wanted) => u64::from(wanted == role),
            Measure::Money => {
                let each = self.terms.usd_of(self.flow, ask).unwrap_or(0);
                each.saturating_mul(1 + repairs)
            }
        }
    }
}

/// Whether an answer is never asked again: its definition says what a bad one means, and nothing else can be wrong with
/// it. An answer of several parts can be half an answer, a selected target can lead nowhere, and who may not write can
/// have written.
fn is_settled_at_once(step: &Step<StepId>, ask: &Ask) -> bool {
    let Gate::Readers(readers) = &step.gate else { return false };
    readers.iter().any(|reader| matches!(reader, Reader::Otherwise(_)))
        && ask.fused.is_none()
        && step.boundary.permission.may_write()
        && !step.edges.iter().any(|edge| matches!(edge.to, Target::Select { .. }))
}
