//! Where an agent that does as it is told goes: to what was not taken yet, by the shortest way.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{EndState, Event, Run};
use cuegate_flow::{Ending, Flow, Outcome, StepId, Str, Target, Verdict, ways};

use super::choice::{Choice, choices};
use super::dice::Dice;

/// What a run is after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aim {
    /// What was not chosen yet, the nearest first.
    Cover,
    /// Rounds of a monitor's cycle, back to back.
    Round(usize),
    /// The edge of this place of a step, more often than its bound allows.
    Spend(StepId, usize),
    /// The limit of iterations.
    Last,
    /// A part of the verdict, by its place.
    Say(Str),
    /// All of the verdict at once.
    SayAll,
    /// The shortest way to a good end.
    Home,
    /// What was chosen least.
    Wander,
}

/// How often a run goes after one thing before it is given up.
const ATTEMPTS_MAX: u32 = 8;

/// Chooses, and remembers what was chosen in all runs of a simulation.
pub(super) struct Steering {
    /// The outcomes of each step.
    pub(super) outcomes: Vec<Vec<Outcome>>,
    walked: Vec<bool>,
    taken: BTreeMap<(StepId, Choice), u32>,
    hopeless: BTreeSet<(StepId, Choice)>,
    /// What is left to be gone after, and how often it was.
    aims: Vec<(Aim, u32)>,
    aim: Aim,
    /// Steps from which some way goes round without a bound.
    endless: Vec<bool>,
    runs: u32,
}

impl Steering {
    pub(super) fn new(flow: &Flow) -> Steering {
        let walked = ways::walked(flow);
        let outcomes = flow.steps.iter().map(|step| ways::outcomes(flow, step)).collect();
        let mut aims: Vec<(Aim, u32)> =
            (0..flow.monitors.len()).map(|index| (Aim::Round(index), 0)).collect();
        for (index, step) in flow.steps.iter().enumerate().filter(|(index, _)| walked[*index]) {
            let bounded = |(_, edge): &(usize, &cuegate_flow::Edge<StepId>)| {
                edge.bound.is_some_and(|bound| bound.max > 0)
            };
            let bounded = step.edges.iter().enumerate().filter(bounded);
            aims.extend(bounded.map(|(edge, _)| (Aim::Spend(StepId(index as u32), edge), 0)));
        }
        let sayable = |verdict: &Verdict| verdict.parts().is_empty() && verdict.can_fire();
        let parts = flow.verdict.places().into_iter().filter(|(_, part)| sayable(part));
        aims.extend(parts.map(|(place, _)| (Aim::Say(place), 0)));
        if flow.verdict.can_fire() {
            aims.push((Aim::SayAll, 0));
        }
        aims.push((Aim::Last, 0));
        let endless = endless(flow);
        let (taken, hopeless) = (BTreeMap::new(), BTreeSet::new());
        Steering { outcomes, walked, taken, hopeless, aims, aim: Aim::Cover, endless, runs: 0 }
    }

    /// Says what the next run is after: what was not chosen yet and, every other time, something that takes a whole run.
    pub(super) fn begin(&mut self, flow: &Flow) {
        self.runs += 1;
        let fresh = self.fresh_left(flow);
        if fresh && !self.runs.is_multiple_of(3) {
            self.aim = Aim::Cover;
            return;
        }
        let next =
            self.aims.iter_mut().filter(|(_, tries)| *tries < ATTEMPTS_MAX).min_by_key(|(_, tries)| *tries);
        self.aim = match next {
            Some((aim, tries)) => {
                *tries += 1;
                aim.clone()
            }
            None if fresh => Aim::Cover,
            None => Aim::Wander,
        };
    }

    /// Sets what the run is after.
    pub(super) fn set(&mut self, aim: Aim) {
        self.aim = aim;
    }

    /// What the run is after.
    pub(super) fn aim(&self) -> &Aim {
        &self.aim
    }

    /// Whether something is left that a run could go after.
    pub(super) fn is_eager(&self, flow: &Flow) -> bool {
        self.aims.iter().any(|(_, tries)| *tries < ATTEMPTS_MAX) || self.fresh_left(flow)
    }

    /// What happened: what was gone after and came is done.
    pub(super) fn saw(&mut self, flow: &Flow, event: &Event) {
        let done = |aim: &Aim| match (event, aim) {
            (Event::MonitorFired { monitor, .. }, Aim::Round(index)) => {
                flow.monitors[*index].name == *monitor
            }
            (Event::ConditionMet { condition, .. }, Aim::Say(place)) => condition == place,
            (Event::Probed { condition, holds: true, .. }, Aim::Say(place)) => condition == place,
            (Event::Ended { state: EndState::Exhausted, hold: Some(_), .. }, Aim::Last) => true,
            (Event::Ended { state: EndState::Completed, .. }, Aim::SayAll) => self.aim == Aim::SayAll,
            _ => false,
        };
        // Once somebody is asked about a cycle, what they can say is what is left to be covered.
        let reached = done(&self.aim);
        let kept: Vec<bool> =
            self.aims.iter().map(|(aim, _)| !done(aim) || self.asks_fresh(flow, aim)).collect();
        let mut kept = kept.into_iter();
        self.aims.retain(|_| kept.next().unwrap_or(true));
        if reached {
            self.aim = Aim::Cover;
        }
    }

    /// Whether the judge of a monitor has answers that nobody gave yet: for each its cycle has to go round again.
    fn asks_fresh(&self, flow: &Flow, aim: &Aim) -> bool {
        let Aim::Round(index) = aim else { return false };
        let judge = flow.monitors[*index].judge;
        self.choices(flow, &Run::default(), judge).iter().any(|choice| self.is_fresh(judge, choice))
    }

    /// Chooses at a step; `None` where nothing can be chosen.
    pub(super) fn choose(&mut self, flow: &Flow, run: &Run, at: StepId, dice: &mut Dice) -> Option<Choice> {
        let all = self.choices(flow, run, at);
        let ranks: Vec<(usize, u32)> = {
            let rank = self.ranking(flow, run, at);
            all.iter().map(|choice| (rank(choice), self.times(at, choice))).collect()
        };
        let best = ranks.iter().min()?;
        let equal: Vec<&Choice> =
            all.iter().zip(&ranks).filter(|(_, rank)| *rank == best).map(|(choice, _)| choice).collect();
        dice.pick(&equal).map(|choice| (*choice).clone())
    }

    /// Whether the run is after a part of the verdict.
    pub(super) fn says(&self, place: &str) -> bool {
        match &self.aim {
            Aim::Say(part) => **part == *place,
            Aim::SayAll => true,
            _ => false,
        }
    }

    /// Remembers that something was chosen.
    pub(super) fn took(&mut self, flow: &Flow, at: StepId, choice: &Choice) {
        *self.taken.entry((at, choice.clone())).or_default() += 1;
        // The next edge on an outcome is taken when the one before it is used up.
        let Some(taken) = choice.edge else { return };
        let step = flow.step(at);
        let spent = |aim: &Aim| match aim {
            Aim::Spend(of, edge) => *of == at && *edge < taken && step.edges[*edge].on == choice.outcome,
            _ => false,
        };
        self.aims.retain(|(aim, _)| !spent(aim));
    }

    /// Remembers that no answer can say it.
    pub(super) fn give_up(&mut self, at: StepId, choice: &Choice) {
        self.hopeless.insert((at, choice.clone()));
    }

    /// How often something was chosen.
    pub(super) fn times(&self, at: StepId, choice: &Choice) -> u32 {
        self.taken.get(&(at, choice.clone())).copied().unwrap_or(0)
    }

    fn choices(&self, flow: &Flow, run: &Run, at: StepId) -> Vec<Choice> {
        let mut all = choices(flow, run, at, &self.outcomes[at.0 as usize]);
        all.retain(|choice| !self.hopeless.contains(&(at, choice.clone())));
        all
    }

    fn is_fresh(&self, at: StepId, choice: &Choice) -> bool {
        self.times(at, choice) == 0
    }

    fn fresh_left(&self, flow: &Flow) -> bool {
        let run = Run::default();
        self.ids().any(|id| self.choices(flow, &run, id).iter().any(|choice| self.is_fresh(id, choice)))
    }

    fn ids(&self) -> impl Iterator<Item = StepId> + '_ {
        (0..self.walked.len()).filter(|index| self.walked[*index]).map(|index| StepId(index as u32))
    }

    /// How good choices at a step are for what the run is after; less is better.
    fn ranking<'s>(&'s self, flow: &'s Flow, run: &'s Run, at: StepId) -> Box<dyn Fn(&Choice) -> usize + 's> {
        let towards = |goals: Vec<bool>| self.distances(flow, run, &goals);
        let nearest = move |far: &[usize], choice: &Choice| {
            choice.leads(flow, at).iter().map(|to| far[to.0 as usize]).min().unwrap_or(FAR)
        };
        match &self.aim {
            Aim::Cover => {
                let far =
                    towards(self.goals(|id| {
                        self.choices(flow, run, id).iter().any(|choice| self.is_fresh(id, choice))
                    }));
                Box::new(move |choice| match self.is_fresh(at, choice) {
                    // What ends the run comes after what goes on.
                    true => usize::from(choice.leads(flow, at).is_empty()),
                    false => nearest(&far, choice).saturating_add(2),
                })
            }
            Aim::Round(monitor) => {
                let cycle = &flow.monitors[*monitor].cycle;
                let visited = run.visit.as_ref().and_then(|visit| flow.find(&visit.step));
                let place = cycle.iter().position(|step| Some(*step) == visited);
                let next = cycle[place.map_or(0, |place| (place + 1) % cycle.len())];
                let far = towards(self.goals(|id| id == next));
                Box::new(move |choice| nearest(&far, choice))
            }
            Aim::Spend(step, edge) => {
                let on = &flow.step(*step).edges[*edge].on;
                let far = towards(self.goals(|id| id == *step));
                Box::new(move |choice| {
                    if at == *step && choice.outcome == *on {
                        0
                    } else {
                        nearest(&far, choice).saturating_add(1)
                    }
                })
            }
            Aim::Home => {
                let ends = |id: StepId, choice: &Choice| {
                    let edge = choice.edge.map(|edge| &flow.step(id).edges[edge].to);
                    matches!(edge, Some(Target::End(Ending::Completed)))
                };
                let far = towards(
                    self.goals(|id| self.choices(flow, run, id).iter().any(|choice| ends(id, choice))),
                );
                Box::new(
                    move |choice| if ends(at, choice) { 0 } else { nearest(&far, choice).saturating_add(1) },
                )
            }
            Aim::Last | Aim::Say(_) | Aim::SayAll => Box::new(move |choice| {
                let leads = choice.leads(flow, at);
                let goes_on = !leads.is_empty() && leads.iter().all(|to| self.endless[to.0 as usize]);
                let bounded = choice.edge.is_some_and(|edge| flow.step(at).edges[edge].bound.is_some());
                if goes_on { usize::from(bounded) } else { 2 + usize::from(leads.is_empty()) }
            }),
            Aim::Wander => Box::new(|_| 0),
        }
    }

    fn goals(&self, is_goal: impl Fn(StepId) -> bool) -> Vec<bool> {
        (0..self.walked.len()).map(|index| self.walked[index] && is_goal(StepId(index as u32))).collect()
    }

    /// How many steps it is from each step to the nearest goal.
    fn distances(&self, flow: &Flow, run: &Run, goals: &[bool]) -> Vec<usize> {
        let mut far: Vec<usize> = goals.iter().map(|goal| if *goal { 0 } else { FAR }).collect();
        let out: Vec<(usize, Vec<StepId>)> = self
            .ids()
            .map(|id| {
                let leads =
                    self.choices(flow, run, id).iter().flat_map(|choice| choice.leads(flow, id)).collect();
                (id.0 as usize, leads)
            })
            .collect();
        loop {
            let mut nearer = false;
            for (at, leads) in &out {
                let next = leads.iter().map(|to| far[to.0 as usize]).min().unwrap_or(FAR).saturating_add(1);
                if next < far[*at] {
                    far[*at] = next;
                    nearer = true;
                }
            }
            if !nearer {
                return far;
            }
        }
    }
}

/// Farther than any step is.
const FAR: usize = usize::MAX - 1;

/// Steps from which control can come to a cycle of edges without a bound.
fn endless(flow: &Flow) -> Vec<bool> {
    // Whoever can be left for ever only is not endless: take away what leads nowhere, again and again.
    let mut endless = vec![true; flow.steps.len()];
    loop {
        let mut fewer = false;
        for (index, step) in flow.steps.iter().enumerate() {
            let edges = step.edges.iter().filter(|edge| edge.bound.is_none());
            let goes_on = edges.flat_map(ways::targets).any(|to| endless[to.0 as usize]);
            if endless[index] && !goes_on {
                endless[index] = false;
                fewer = true;
            }
        }
        if !fewer {
            return endless;
        }
    }
}
