//! What one visit of a step costs at most.

use super::Terms;
use crate::check::graph::judges;
use crate::{Act, Ask, Conduct, Flow, Role, Step, StepId};

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
            usual: flow.steps.iter().map(|step| scale.step(step, false)).collect(),
            remedy: flow.steps.iter().map(|step| scale.step(step, true)).collect(),
            monitors: Vec::new(),
        };
        for monitor in &flow.monitors {
            let judge = monitor.judge.0 as usize;
            weights.monitors.push(scale.step(&flow.steps[judge], false));
        }
        for monitor in flow.monitors.iter().filter(|monitor| !flow.step(monitor.judge).counts) {
            weights.usual[monitor.judge.0 as usize] = 0;
        }
        weights
    }

    pub(super) fn of(&self, step: usize, remedy: bool) -> u64 {
        if remedy { self.remedy[step] } else { self.usual[step] }
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
    /// One visit, with all questions that the definition answers in it: each is followed by another ask.
    fn step(&self, step: &Step<StepId>, remedy: bool) -> u64 {
        let visit = self.asked(step, remedy);
        if self.flow.conduct.auto_response.is_none() || visit == 0 {
            return visit;
        }
        let each = match self.measure {
            Measure::Visits => 0,
            Measure::Asks | Measure::Role(_) => 1,
            Measure::Money => self.dearest(step),
        };
        visit.saturating_add(each.saturating_mul(u64::from(Conduct::QUESTIONS_MAX)))
    }

    /// The most that one ask of a visit costs.
    fn dearest(&self, step: &Step<StepId>) -> u64 {
        let own = match &step.act {
            Act::Ask(ask) => self.terms.usd_of(self.flow, ask).unwrap_or(0),
            Act::All { members, .. } => {
                members.iter().map(|id| self.dearest(self.flow.step(*id))).max().unwrap_or(0)
            }
            Act::Exec { .. } | Act::Person { .. } => 0,
        };
        let judges = judges(&step.gate).into_iter().map(|judge| self.dearest(self.flow.step(judge)));
        judges.fold(own, u64::max)
    }

    fn asked(&self, step: &Step<StepId>, remedy: bool) -> u64 {
        let own = match &step.act {
            Act::Ask(ask) => {
                let role = match ask.role {
                    Role::Work if remedy => AskRole::Remedy,
                    Role::Work => AskRole::Work,
                    Role::Judge => AskRole::Judge,
                    Role::Check => AskRole::Check,
                };
                let visit = u64::from(self.measure == Measure::Visits && step.counts);
                visit + self.ask(ask, role) + self.ask(ask, AskRole::Report) * ask.reports.len() as u64
            }
            Act::All { members, .. } => {
                let member = |id: &StepId| {
                    let member = self.flow.step(*id);
                    let visit = u64::from(self.measure == Measure::Visits && !member.counts);
                    visit + self.asked(member, false)
                };
                members.iter().map(member).fold(0, u64::saturating_add)
            }
            Act::Exec { .. } | Act::Person { .. } => 0,
        };
        let judges: u64 = judges(&step.gate)
            .into_iter()
            .filter_map(|judge| match &self.flow.step(judge).act {
                Act::Ask(ask) => Some(self.ask(ask, AskRole::Judge)),
                _ => None,
            })
            .fold(0, u64::saturating_add);
        own.saturating_add(judges)
    }

    /// One ask, and as many repairs of its answer as there may be.
    fn ask(&self, ask: &Ask, role: AskRole) -> u64 {
        let repairs = u64::from(self.terms.repairs_max);
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
