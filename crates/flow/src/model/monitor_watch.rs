//! What monitors observe in the visits of a run.

use crate::model::{Flow, Monitor, StepId};

impl<R: PartialEq> Monitor<R> {
    /// Whether a round begins with this step.
    pub fn begins_with(&self, step: &R) -> bool {
        self.cycle.first().is_some_and(|stage| stage.contains(step))
    }

    /// The steps from which control can move to the judge: those of the last stage, and those that do not count.
    pub fn ends_with(&self) -> impl Iterator<Item = &R> {
        self.cycle.last().into_iter().flatten().chain(&self.ignored)
    }

    /// All steps of its stages.
    pub fn watched(&self) -> impl Iterator<Item = &R> {
        self.cycle.iter().flatten()
    }

    /// How many stages in a row the visits of a run end with, at most those after which it acts; `progress` is that
    /// number before a visit of this step.
    pub fn advance(&self, progress: u32, step: &R) -> u32 {
        let length = self.cycle.len() as u32;
        if length == 0 || self.ignored.contains(step) {
            return progress;
        }
        let stage = |at: u32| &self.cycle[(at % length) as usize];
        // Steps of one called workflow follow each other within their stage.
        if progress > 0 && stage(progress - 1).len() > 1 && stage(progress - 1).contains(step) {
            return progress;
        }
        let full = self.threshold.saturating_mul(length);
        let mut known = progress;
        if known >= full {
            known = self.shorter(known);
        }
        loop {
            if stage(known).contains(step) {
                return known + 1;
            }
            if known == 0 {
                return 0;
            }
            known = self.shorter(known);
        }
    }

    /// Whether it acts when the next round would begin.
    pub fn is_due(&self, progress: u32) -> bool {
        progress >= self.threshold.saturating_mul(self.cycle.len() as u32)
    }

    /// The next smaller number of stages that the same visits end with.
    fn shorter(&self, progress: u32) -> u32 {
        let length = self.cycle.len();
        let stage = |at: u32| &self.cycle[at as usize % length];
        let is_repeated = self.cycle.iter().enumerate().any(|(at, one)| self.cycle[..at].contains(one));
        if !is_repeated {
            return progress.saturating_sub(length as u32);
        }
        let ends = |shorter: &u32| (0..*shorter).all(|at| stage(at) == stage(progress - shorter + at));
        (0..progress).rev().find(ends).unwrap_or(0)
    }
}

impl Flow {
    /// By monitor, how many stages in a row these visits end with; empty if no monitor has observed any.
    pub fn observed(&self, visits: &[StepId]) -> Vec<u32> {
        let mut progress = Vec::new();
        visits.iter().for_each(|step| advance_monitors(&self.monitors, &mut progress, *step));
        progress
    }
}

/// Updates the progress of all monitors for a finished visit. The beginning of a run has no progress at all.
pub(crate) fn advance_monitors(monitors: &[Monitor<StepId>], progress: &mut Vec<u32>, step: StepId) {
    progress.resize(monitors.len(), 0);
    for (progress, monitor) in progress.iter_mut().zip(monitors) {
        *progress = monitor.advance(*progress, &step);
    }
    if progress.iter().all(|progress| *progress == 0) {
        progress.clear();
    }
}

/// Whether a monitor acts when a visit ends and control moves to this step.
pub(crate) fn is_monitor_acting(
    monitors: &[Monitor<StepId>],
    at: usize,
    progress: &[u32],
    visit: StepId,
    to: StepId,
) -> bool {
    let monitor = &monitors[at];
    let before = progress.get(at).copied().unwrap_or(0);
    monitor.begins_with(&to) && monitor.is_due(monitor.advance(before, &visit))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::Dice;
    use crate::diagnostics::Span;
    use crate::model::Monitor;

    fn monitor(cycle: &[&str], ignored: &str, threshold: u32) -> Monitor<char> {
        Monitor {
            name: "watch".into(),
            cycle: cycle.iter().map(|stage| stage.chars().collect()).collect(),
            ignored: ignored.chars().collect(),
            threshold,
            judge: 'j',
            span: Span::default(),
        }
    }

    fn progress(monitor: &Monitor<char>, visits: &str) -> u32 {
        visits.chars().fold(0, |progress, step| monitor.advance(progress, &step))
    }

    #[test]
    fn ignored_steps_and_steps_of_one_stage_do_not_break_a_round() {
        let watch = monitor(&["a", "bcd"], "x", 2);
        for (visits, stages) in [
            ("ab", 2),
            ("axb", 2),
            ("abcdc", 2),
            ("abcxdab", 4),
            ("abcxdabc", 4),
            ("ababxab", 4),
            ("aab", 2),
            ("abz", 0),
            ("abza", 1),
            ("bca", 1),
        ] {
            assert_eq!(progress(&watch, visits), stages, "{visits}");
        }
        assert!(watch.is_due(4) && !watch.is_due(3));
    }

    /// The number of stages agrees with a search of the end of all visits.
    #[test]
    fn agrees_with_a_search_of_the_visits() {
        let mut dice = Dice(7);
        for _ in 0..3_000 {
            let cycle: Vec<&str> =
                (0..2 + dice.below(3)).map(|_| ["a", "b", "c"][dice.below(3) as usize]).collect();
            let watch = monitor(&cycle, "", 1 + dice.below(3) as u32);
            let visits: String =
                (0..dice.below(14)).map(|_| ['a', 'b', 'c'][dice.below(3) as usize]).collect();
            let pattern: String = cycle.concat().repeat(watch.threshold as usize);
            let expected = (0..=pattern.len()).rev().find(|length| visits.ends_with(&pattern[..*length]));
            assert_eq!(Some(progress(&watch, &visits) as usize), expected, "{cycle:?} {visits}");
        }
    }
}
