//! The earliest iteration after which a verdict can hold.

use std::collections::{HashMap, VecDeque};

use super::paths::{ControlGraph, FAR};
use crate::{
    Str,
    model::{Act, StepId, Verdict},
};

/// The most states; with more, only the path to the first answer is measured, and each further answer counts as one
/// iteration.
const SITUATIONS_MAX: usize = 20_000;

/// A lower bound of the iterations after which a verdict can hold: 0 if unknown, [`FAR`] if no count suffices.
pub(crate) fn holds_after(walks: &ControlGraph<'_>, verdict: &Verdict) -> u32 {
    let parts = verdict.parts().iter().map(|part| holds_after(walks, part));
    match verdict {
        Verdict::Flow => FAR,
        Verdict::Iterations(max) => *max,
        Verdict::Checks { max, of } => checked_after(walks, *max, of),
        Verdict::Keyword(_) | Verdict::Signal(_) | Verdict::Poll(_) | Verdict::Handler(_) => 0,
        Verdict::Every(_) => parts.max().unwrap_or(FAR),
        Verdict::Any(_) | Verdict::First(_) => parts.min().unwrap_or(FAR),
    }
}

/// A lower bound of the iterations after which some steps have given `max` answers.
pub(crate) fn checked_after(walks: &ControlGraph<'_>, max: u32, of: &[Str]) -> u32 {
    let counting: Vec<u32> = (0..walks.out.len()).map(|step| count_step_answers(walks, step, of)).collect();
    let far = |step: usize| (counting[step] > 0).then_some(walks.far[step]);
    let Some(first) = (0..counting.len()).filter_map(far).min() else { return FAR };
    if first == FAR {
        return FAR;
    }
    if counting.len().saturating_mul(max as usize) <= SITUATIONS_MAX {
        return measure_shortest_walk(walks, max, &counting);
    }
    // Steps asked without an iteration, or together with others, may answer any number of times.
    let is_simple = (0..counting.len()).all(|step| counting[step] <= walks.cost(step));
    if is_simple { first.saturating_add(max.saturating_sub(1)) } else { first }
}

/// The number of counted answers when control reaches a step.
fn count_step_answers(walks: &ControlGraph<'_>, step: usize, of: &[Str]) -> u32 {
    let counts = |id: &StepId| of.contains(&walks.flow.step(*id).name);
    match &walks.flow.steps[step].act {
        Act::All { members, .. } => members.iter().filter(|id| counts(id)).count() as u32,
        _ => u32::from(counts(&StepId(step as u32))),
    }
}

/// The shortest walk with that many answers, in iterations.
fn measure_shortest_walk(walks: &ControlGraph<'_>, max: u32, counting: &[u32]) -> u32 {
    let entry = walks.flow.entry.0 as usize;
    let mut known: HashMap<(usize, u32), u32> = HashMap::new();
    let mut queue = VecDeque::from([(entry, counting[entry], walks.cost(entry))]);
    while let Some((at, given, far)) = queue.pop_front() {
        if given >= max {
            return far;
        }
        if known.get(&(at, given)).is_some_and(|known| *known <= far) {
            continue;
        }
        known.insert((at, given), far);
        for hop in &walks.out[at] {
            let given = given.saturating_add(counting[hop.to]);
            match walks.cost(hop.to) {
                0 => queue.push_front((hop.to, given, far)),
                cost => queue.push_back((hop.to, given, far + cost)),
            }
        }
    }
    FAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::reachability::Reachability,
        checks::{resolve::resolve_draft, testing::draft},
    };

    fn after(text: &str, verdict: &Verdict) -> u32 {
        let flow = resolve_draft(draft(text), &[], &mut Vec::new()).unwrap().flow;
        let live = Reachability::of(&flow, &[flow.entry], true);
        holds_after(&ControlGraph::of(&flow, &live), verdict)
    }

    fn checks(max: u32, of: &str) -> Verdict {
        Verdict::Checks { max, of: vec![of.into()] }
    }

    #[test]
    fn answers_are_counted_at_their_steps() {
        let line = "a: next → b\nb: next → c, back → a\nc: done → end, again → b";
        assert_eq!(after(line, &checks(1, "c")), 3);
        assert_eq!(after(line, &checks(2, "c")), 5, "by way of `b`");
        assert_eq!(after("a: next → b\nb: done → end", &checks(2, "b")), FAR);
        assert_eq!(after("a: next → a, done → end", &checks(30_000, "a")), 30_000, "not walked");
    }

    #[test]
    fn composed_rules_hold_by_their_parts() {
        let line = "a: next → b\nb: next → a, done → end";
        let of = |make: fn(Vec<Verdict>) -> Verdict, parts: &[Verdict]| after(line, &make(parts.to_vec()));
        let (iterations, checks) = (Verdict::Iterations(7), checks(2, "b"));
        assert_eq!(of(Verdict::Every, &[iterations.clone(), checks.clone()]), 7);
        assert_eq!(of(Verdict::Any, &[iterations.clone(), checks.clone(), Verdict::Flow]), 4);
        assert_eq!(of(Verdict::First, &[iterations, checks, Verdict::Keyword("DONE".into())]), 0);
        assert_eq!(of(Verdict::Every, &[Verdict::Flow, Verdict::Iterations(1)]), FAR);
    }
}
