//! Dominators: the steps on every walk to a step.

use super::reachability::Reachability;
use crate::model::{Flow, StepId};

/// Not on any walk.
const NONE: u32 = u32::MAX;

/// The dominator tree of the reachable steps, computed once instead of one search per question.
///
/// The algorithm is that of Cooper, Harvey and Kennedy, "A Simple, Fast Dominators Algorithm" (2001), with an artificial
/// root before all entries.
pub(crate) struct Dominators {
    /// By step: its entry and exit time in a traversal of the dominator tree; `None` for unreachable steps.
    spans: Vec<Option<(u32, u32)>>,
}

impl Dominators {
    /// The dominators of the walks that [`Reachability::shortest`] follows.
    pub(crate) fn new(flow: &Flow, live: &Reachability) -> Dominators {
        let leads = |at: usize| live.walks(flow, StepId(at as u32)).map(|way| way.to.0).collect::<Vec<u32>>();
        let ways: Vec<Vec<u32>> = (0..flow.steps.len()).map(leads).collect();
        let entries: Vec<u32> = live.entries().iter().map(|entry| entry.0).collect();
        Dominators::over(&ways, &entries)
    }

    /// The dominators of walks from some entries, by the successors of each step.
    pub(crate) fn over(ways: &[Vec<u32>], entries: &[u32]) -> Dominators {
        let count = ways.len();
        // The root is one past the last step.
        let root = count as u32;
        let order = list_steps_in_postorder(ways, entries);
        let mut rank = vec![NONE; count + 1];
        order.iter().enumerate().for_each(|(at, step)| rank[*step as usize] = at as u32);
        rank[root as usize] = order.len() as u32;
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); count];
        entries.iter().for_each(|entry| before[*entry as usize].push(root));
        for from in &order {
            ways[*from as usize].iter().for_each(|to| before[*to as usize].push(*from));
        }
        let mut above = vec![NONE; count + 1];
        above[root as usize] = root;
        let mut changed = true;
        while changed {
            changed = false;
            for step in order.iter().rev() {
                let mut known = before[*step as usize].iter().filter(|from| above[**from as usize] != NONE);
                let Some(first) = known.next() else { continue };
                let found =
                    known.fold(*first, |found, from| find_common_dominator(found, *from, &above, &rank));
                changed |= std::mem::replace(&mut above[*step as usize], found) != found;
            }
        }
        Dominators { spans: spans_of_dominator_tree(&above, &order, root) }
    }

    /// Whether a run can reach a step without passing another one before it. No step passes itself.
    pub(crate) fn is_avoidable(&self, step: StepId, passed: StepId) -> bool {
        let Some((at, _)) = self.spans[step.0 as usize] else { return false };
        let Some((from, to)) = self.spans[passed.0 as usize] else { return true };
        step == passed || !(from <= at && at < to)
    }
}

/// The reachable steps in postorder. Walks can be as long as the flow is large, so this does not recurse.
pub(crate) fn list_steps_in_postorder(ways: &[Vec<u32>], entries: &[u32]) -> Vec<u32> {
    let (mut seen, mut order) = (vec![false; ways.len()], Vec::new());
    for entry in entries {
        let mut open: Vec<(u32, usize)> = Vec::new();
        if !std::mem::replace(&mut seen[*entry as usize], true) {
            open.push((*entry, 0));
        }
        while let Some((step, next)) = open.last_mut() {
            match ways[*step as usize].get(*next) {
                Some(to) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[*to as usize], true) {
                        open.push((*to, 0));
                    }
                }
                None => {
                    order.push(*step);
                    open.pop();
                }
            }
        }
    }
    order
}

/// The nearest common dominator of two steps.
fn find_common_dominator(mut one: u32, mut other: u32, above: &[u32], rank: &[u32]) -> u32 {
    while one != other {
        while rank[one as usize] < rank[other as usize] {
            one = above[one as usize];
        }
        while rank[other as usize] < rank[one as usize] {
            other = above[other as usize];
        }
    }
    one
}

/// The entry and exit times of each step in the dominator tree; dominated steps lie within.
fn spans_of_dominator_tree(above: &[u32], order: &[u32], root: u32) -> Vec<Option<(u32, u32)>> {
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); above.len()];
    for step in order.iter().filter(|step| above[**step as usize] != NONE) {
        below[above[*step as usize] as usize].push(*step);
    }
    let mut spans = vec![None; above.len() - 1];
    let (mut time, mut open) = (0, vec![(root, 0)]);
    while let Some((step, next)) = open.last_mut() {
        let at = *step as usize;
        if let Some(inner) = below[at].get(*next) {
            *next += 1;
            spans[*inner as usize] = Some((time, time));
            time += 1;
            open.push((*inner, 0));
        } else {
            if let Some(Some((_, end))) = spans.get_mut(at) {
                *end = time;
            }
            open.pop();
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::{Dominators, Reachability};
    use crate::checks::{
        check_draft,
        testing::{Dice, draft},
    };
    use crate::model::{Flow, StepId};

    fn random(dice: &mut Dice) -> Flow {
        let steps = 2 + dice.below(9);
        let line = |step: u64, dice: &mut Dice| {
            let edges: Vec<String> = (0..=dice.below(3))
                .map(|edge| match dice.below(steps + 1) {
                    to if to == steps => format!("o{edge} → end"),
                    to => format!("o{edge} → s{to}"),
                })
                .collect();
            format!("s{step}: {}", edges.join(", "))
        };
        let text: Vec<String> = (0..steps).map(|step| line(step, dice)).collect();
        let checked = check_draft(draft(&text.join("\n")));
        checked.flow.or(checked.unsound).unwrap()
    }

    #[test]
    fn agrees_with_searching_around_a_step() {
        let mut dice = Dice(5);
        for _ in 0..2_000 {
            let flow = random(&mut dice);
            let entries = [flow.entry, StepId(dice.below(flow.steps.len() as u64) as u32)];
            let live = Reachability::of(&flow, &entries[..1 + dice.below(2) as usize], true);
            let dominance = Dominators::new(&flow, &live);
            for step in (0..flow.steps.len() as u32).map(StepId) {
                for passed in (0..flow.steps.len() as u32).map(StepId) {
                    let avoid = (step != passed).then_some(passed);
                    let walked = live.shortest(&flow, step, avoid).is_some();
                    assert_eq!(dominance.is_avoidable(step, passed), walked, "{step:?} {passed:?} {flow:?}");
                }
            }
        }
    }
}
