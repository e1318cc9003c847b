//! Chooses the transitions of the obedient agent: by the shortest path to an uncovered item.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_engine::{AskRequest, EndState, Event, PendingEntry, Run};
use cuegate_flow::{
    analysis::{
        flow_queries,
        state_graph::{Choice, GoalDistances, Mark, Move, RunState, StateGraph},
    },
    model::{Flow, Outcome, StepId, Verdict},
};

use super::{random::SimulationRng, state_mapping::state_of_run};

/// What a run aims at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SteeringAim {
    /// Uncovered items, the nearest first.
    Cover,
    /// As many iterations as possible.
    Last,
    /// The shortest path to completion.
    Complete,
    /// The least frequent choice.
    Wander,
}

/// How many runs try to exhaust the iterations before giving up.
const LAST_MAX: u32 = 8;

/// Up to this many states, the distances to the uncovered items are recomputed after every covered item. In larger
/// graphs that is slow, and the old distances mostly still hold.
const SITUATIONS_FEW: usize = 2_000;
/// After how many choices they are recomputed in larger graphs.
const STALE_MAX: u32 = 6;

/// Chooses transitions and records what all runs of a simulation covered.
pub(super) struct Steering {
    pub(super) reach: Arc<StateGraph>,
    pub(super) outcomes: Vec<Vec<Outcome>>,
    /// How often each choice was made.
    said: BTreeMap<(StepId, Choice), u32>,
    /// Choices without a valid answer.
    hopeless: BTreeSet<(StepId, Choice)>,
    /// The uncovered items; `goal` holds the distances to them.
    left: BTreeSet<Mark>,
    goal: Option<GoalDistances>,
    /// The number of choices since an item was covered; `None` if the distances are current.
    stale: Option<u32>,
    home: Option<GoalDistances>,
    aim: SteeringAim,
    runs: u32,
    lasts: u32,
    /// The number of uncovered items at the start of the run.
    left_before: usize,
    /// Whether the run aims at items that end it first. It does so after a run that covered nothing new, because not
    /// every counter is tracked and a near item may in fact be far.
    ends_first: bool,
    /// Whether the agent may give unusable answers in order to cover fallbacks.
    falls: bool,
}

impl Steering {
    pub(super) fn new(reach: Arc<StateGraph>, falls: bool) -> Steering {
        let flow = reach.flow();
        let outcomes = flow.steps.iter().map(|step| flow_queries::list_step_outcomes(flow, step)).collect();
        let max = reach.iterations_max();
        let near = reach.marks().iter().filter(|(_, first)| **first <= max);
        let near = near.filter(|(mark, _)| falls || !matches!(mark, Mark::Fallback(_)));
        let mut left: BTreeSet<Mark> = near.map(|(mark, _)| mark.clone()).collect();
        if reach.first(&Mark::Exhausted).is_some() {
            left.insert(Mark::Exhausted);
        }
        let (said, hopeless) = (BTreeMap::new(), BTreeSet::new());
        Steering {
            reach,
            outcomes,
            said,
            hopeless,
            left,
            goal: None,
            stale: None,
            home: None,
            aim: SteeringAim::Cover,
            runs: 0,
            lasts: 0,
            left_before: usize::MAX,
            ends_first: false,
            falls,
        }
    }

    /// Sets the aim of the next run: the uncovered items or, every third time, to exhaust the iterations.
    pub(super) fn begin(&mut self) {
        self.runs += 1;
        let came_to_none = self.aim == SteeringAim::Cover && self.left.len() == self.left_before;
        self.ends_first = came_to_none && !self.ends_first;
        self.left_before = self.left.len();
        if self.stale.is_some() {
            self.goal = None;
        }
        let last = self.left.contains(&Mark::Exhausted) && self.lasts < LAST_MAX;
        let others = self.is_left();
        self.aim = match () {
            () if last && (!others || self.runs.is_multiple_of(3)) => SteeringAim::Last,
            () if others => SteeringAim::Cover,
            () => SteeringAim::Wander,
        };
        self.lasts += u32::from(self.aim == SteeringAim::Last);
    }

    pub(super) fn set(&mut self, aim: SteeringAim) {
        self.aim = aim;
    }

    pub(super) fn aim(&self) -> SteeringAim {
        self.aim
    }

    /// Whether there are uncovered items left to aim at.
    pub(super) fn is_eager(&self) -> bool {
        self.is_left() || (self.left.contains(&Mark::Exhausted) && self.lasts < LAST_MAX)
    }

    fn is_left(&self) -> bool {
        self.left.iter().any(|mark| *mark != Mark::Exhausted)
    }

    /// Whether the run aims at a part of the verdict, or at all of it.
    pub(super) fn says(&self, place: &str) -> bool {
        let all = self.left.contains(&Mark::Completed);
        self.aim == SteeringAim::Cover && (all || self.left.contains(&Mark::Verdict(place.into())))
    }

    /// Chooses a transition at the current step; `None` if there is no choice.
    pub(super) fn choose(&mut self, run: &Run, dice: &mut SimulationRng) -> Option<Choice> {
        let here = state_of_run(&self.reach, run)?;
        let at = here.at;
        let mut moves = self.reach.moves(&here);
        moves.retain(|going| !self.hopeless.contains(&(at, going.choice.answer())));
        let left = run.progress.iterations_max.saturating_sub(run.progress.iterations);
        let ranks: Vec<_> = {
            self.ready();
            let rank = |going: &Move| self.rank(&here, going, left);
            // Among equal ranks a usable answer is preferred, unless unusable ones are given to reach fallbacks.
            let unwilling = |going: &Move| going.choice.unusable && !self.falls;
            moves.iter().map(|going| (rank(going), unwilling(going), self.times(at, &going.choice))).collect()
        };
        let best = ranks.iter().min()?;
        let equal: Vec<&Move> =
            moves.iter().zip(&ranks).filter(|(_, rank)| *rank == best).map(|(going, _)| going).collect();
        dice.pick(&equal).map(|going| going.choice.clone())
    }

    /// Computes missing or outdated distances.
    fn ready(&mut self) {
        match self.aim {
            SteeringAim::Cover => {
                self.stale = self.stale.map(|chosen| chosen + 1);
                let few = self.reach.situations() < SITUATIONS_FEW;
                if self.goal.is_none() || self.stale.is_some_and(|chosen| few || chosen > STALE_MAX) {
                    self.goal = Some(self.reach.goal(&self.left, &self.hopeless));
                    self.stale = None;
                }
            }
            SteeringAim::Complete if self.home.is_none() => self.home = Some(self.reach.to_completed()),
            _ => {}
        }
    }

    fn rank(&self, at: &RunState, going: &Move, left: u32) -> impl Ord + use<> {
        let goal = match self.aim {
            SteeringAim::Cover => self.goal.as_ref(),
            SteeringAim::Complete => self.home.as_ref(),
            SteeringAim::Last | SteeringAim::Wander => None,
        };
        match goal {
            Some(goal) => Some(self.reach.rank(goal, going, left, self.ends_first)),
            None => (self.aim == SteeringAim::Last).then(|| self.reach.rank_on(at.at, going, left)),
        }
    }

    /// Records a choice.
    pub(super) fn took(&mut self, at: StepId, choice: &Choice) {
        *self.said.entry((at, choice.answer())).or_default() += 1;
    }

    /// Records that no answer makes this choice at the current step.
    pub(super) fn give_up(&mut self, at: StepId, choice: &Choice) {
        self.hopeless.insert((at, choice.answer()));
        self.goal = None;
    }

    /// How often a choice was made.
    pub(super) fn times(&self, at: StepId, choice: &Choice) -> u32 {
        self.said.get(&(at, choice.answer())).copied().unwrap_or(0)
    }

    /// Whether an item is reachable and not covered yet.
    pub(super) fn lacks(&self, mark: &Mark) -> bool {
        self.left.contains(mark)
    }

    /// Records a covered item.
    fn came(&mut self, mark: &Mark) {
        if self.left.remove(mark) {
            self.goal.iter_mut().for_each(|goal| goal.came(mark));
            self.stale.get_or_insert(0);
            if *mark == Mark::Exhausted {
                self.aim = SteeringAim::Cover;
            }
        }
    }

    /// Processes the events that were journaled in state `before`.
    pub(super) fn saw(&mut self, before: &Run, events: &[Event]) {
        let reach = self.reach.clone();
        let flow = reach.flow();
        let mut run = before.clone();
        let mut by_edge = false;
        for (index, event) in events.iter().enumerate() {
            match event {
                Event::StepEntered { step, .. } => self.met(flow, step),
                Event::AskRequested(AskRequest { step, context, .. }) => {
                    self.met(flow, context.other().unwrap_or(step));
                }
                Event::MemberEnded { step, outcome: Some(outcome), .. } => {
                    let mark = flow.find(step).map(|id| Mark::Gate(id, Outcome::Named(outcome.clone())));
                    mark.iter().for_each(|mark| self.came(mark));
                }
                Event::CommandFinished { step, index, passed, .. } => {
                    let mark = flow.find(step).map(|id| Mark::Validator(id, *index, *passed));
                    mark.iter().for_each(|mark| self.came(mark));
                }
                Event::MonitorFired { monitor, .. } => {
                    let index = flow.monitors.iter().position(|known| known.name == *monitor);
                    index.into_iter().for_each(|index| self.came(&Mark::Monitor(index)));
                }
                Event::ConditionMet { condition, .. } | Event::Probed { condition, holds: true, .. } => {
                    self.came(&Mark::Verdict(condition.clone()));
                }
                Event::Decided { step, outcome, fallback, .. } => {
                    let fell = flow.find(step).filter(|_| *fallback);
                    fell.into_iter().for_each(|id| self.came(&Mark::Fallback(id)));
                    by_edge |= self.decided(before, (step, outcome), &events[index..]);
                }
                Event::Ended { state, hold, .. } => self.ended(*state, hold.is_some(), by_edge),
                Event::Ending(ending) => self.ended(ending.state, ending.hold.is_some(), by_edge),
                _ => {}
            }
            run.apply(event);
            self.counted(flow, &run);
        }
    }

    fn met(&mut self, flow: &Flow, step: &str) {
        flow.find(step).into_iter().for_each(|id| self.came(&Mark::Step(id)));
    }

    fn ended(&mut self, state: EndState, held: bool, by_edge: bool) {
        match state {
            EndState::Exhausted if held => self.came(&Mark::Exhausted),
            EndState::Completed if !by_edge => self.came(&Mark::Completed),
            _ => {}
        }
    }

    /// Records the counting parts of the verdict.
    fn counted(&mut self, flow: &Flow, run: &Run) {
        for (place, part) in flow.verdict.places() {
            let holds = match part {
                Verdict::Iterations(max) => run.progress.finished >= *max,
                Verdict::Checks { max, .. } => run.checks() >= *max,
                _ => false,
            };
            if holds {
                self.came(&Mark::Verdict(place));
            }
        }
    }

    /// Records the items of all transitions that match the events. Returns whether they end the flow.
    fn decided(&mut self, before: &Run, (step, outcome): (&str, &str), events: &[Event]) -> bool {
        let reach = self.reach.clone();
        let here = state_of_run(&reach, before).filter(|here| *reach.flow().step(here.at).name == *step);
        let Some(here) = here else { return false };
        let next = next_of(reach.flow(), events);
        let mut by_edge = false;
        for going in reach.moves(&here) {
            if going.choice.outcome.to_string() != *outcome || going.choice.edge.is_none() {
                continue;
            }
            by_edge |= going.choice.to.is_none();
            let leads = match (next, &going.next) {
                (NextPosition::Step(to), Some(next)) => next.at == to,
                (NextPosition::Step(_), None) => false,
                (NextPosition::End, next) => next.is_none(),
                (NextPosition::Unknown, _) => true,
            };
            for mark in going.marks.iter().filter(|_| leads) {
                let is_come_by = match mark {
                    Mark::Edge(_, _, Some(_)) => !matches!(next, NextPosition::Unknown),
                    Mark::Edge(..) | Mark::Spent(..) => true,
                    Mark::Gate(id, _) => *id == here.at,
                    _ => false,
                };
                if is_come_by {
                    self.came(mark);
                }
            }
        }
        by_edge
    }
}

/// The next position of a run.
#[derive(Clone, Copy)]
enum NextPosition {
    Step(StepId),
    End,
    /// The verdict ended the run, so the target is not recorded.
    Unknown,
}

fn next_of(flow: &Flow, events: &[Event]) -> NextPosition {
    let step = |name: &str| flow.find(name).map_or(NextPosition::Unknown, NextPosition::Step);
    let end = |state: EndState, hold: Option<&PendingEntry>| match (state, hold) {
        (_, Some(hold)) => step(&hold.step),
        (EndState::Completed, None) => NextPosition::Unknown,
        _ => NextPosition::End,
    };
    let next = events.iter().find_map(|event| match event {
        Event::StepEntered { step: entered, .. } => Some(step(entered)),
        Event::ProbesRequested { next, .. } => Some(step(&next.step)),
        Event::Ended { state, hold, .. } => Some(end(*state, hold.as_ref())),
        Event::Ending(ending) => Some(end(ending.state, ending.hold.as_ref())),
        _ => None,
    });
    next.unwrap_or(NextPosition::Unknown)
}
