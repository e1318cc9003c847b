//! The rounds of a check flow without counters: one copy of a step for each count that decides where it leads.
//!
//! A step's counts begin anew whenever control leaves it, so that the copies of one step never depend on another.

use std::collections::{BTreeMap, VecDeque};

use super::super::check_flow::{CheckFlow, Way};

/// A copy of a step's work or of its check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Copy {
    /// Whether it is the check.
    pub(super) checks: bool,
    /// The step, by its place in the registry.
    pub(super) step: usize,
    /// How many retries were counted before.
    pub(super) retries: u32,
    /// The how-manieth execution of its round it is or checks, from 1.
    pub(super) run: u32,
}

/// Where a copy leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// To another copy, by its place in [`Rounds::nodes`].
    Node(usize),
    /// The run is completed.
    Completed,
    /// The run has failed: no retries are left.
    Failed,
}

/// A copy, and where it leads.
#[derive(Debug)]
pub(super) struct Node {
    /// What it is a copy of.
    pub(super) copy: Copy,
    /// Where work leads, or a check that passes.
    pub(super) pass: To,
    /// Where a check leads that does not pass.
    pub(super) fail: To,
}

/// All copies that a run can come to; the first is the entry.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The copies, nearest to the entry first.
    pub(super) nodes: Vec<Node>,
}

/// Where a copy would lead if there were all of them.
enum Wanted {
    Copy(Copy),
    Completed,
    Failed,
}

impl Rounds {
    /// Unrolls a flow from its entry, as far as runs of so many executions can come. `None` when it names steps that
    /// there are not.
    pub(super) fn of(flow: &CheckFlow<'_>, entry: &str, executions_max: u32) -> Option<Rounds> {
        let place = |id: &str| flow.steps.iter().position(|step| step.id == id);
        let first = Copy { checks: false, step: place(entry)?, retries: 0, run: 1 };
        let mut known: BTreeMap<Copy, u32> = BTreeMap::from([(first, 1)]);
        let mut order = Vec::new();
        // By the fewest executions that lead there: a check costs none, so that it goes before.
        let mut queue = VecDeque::from([first]);
        while let Some(copy) = queue.pop_front() {
            let spent = known[&copy];
            order.push(copy);
            for wanted in wanted(flow, copy)? {
                let Wanted::Copy(next) = wanted else { continue };
                let spent = spent + u32::from(!next.checks);
                if spent > executions_max || known.contains_key(&next) {
                    continue;
                }
                known.insert(next, spent);
                if next.checks { queue.push_front(next) } else { queue.push_back(next) }
            }
        }
        let at = |copy: &Copy| order.iter().position(|known| known == copy);
        let mut nodes = Vec::new();
        for copy in &order {
            let mut ways = Vec::new();
            for wanted in wanted(flow, *copy)? {
                ways.push(match wanted {
                    Wanted::Completed => To::Completed,
                    Wanted::Failed => To::Failed,
                    // No run is long enough to go that way: where it would lead does not matter.
                    Wanted::Copy(next) => {
                        To::Node(at(&next).or_else(|| at(&Copy { checks: false, ..*copy }))?)
                    }
                });
            }
            let pass = *ways.first()?;
            nodes.push(Node { copy: *copy, pass, fail: ways.get(1).copied().unwrap_or(pass) });
        }
        Some(Rounds { nodes })
    }
}

/// Where a copy leads: work to one place, a check by its result.
fn wanted(flow: &CheckFlow<'_>, copy: Copy) -> Option<Vec<Wanted>> {
    let step = flow.steps.get(copy.step)?;
    if !copy.checks {
        let checks = copy.run >= step.min;
        let run = copy.run + u32::from(!checks);
        return Some(vec![Wanted::Copy(Copy { checks, run, ..copy })]);
    }
    let check = step.check.as_ref()?;
    let pass = way(flow, copy, check.on_pass.as_ref()?)?;
    let fail = if copy.run < step.max {
        Wanted::Copy(Copy { checks: false, run: copy.run + 1, ..copy })
    } else {
        way(flow, copy, check.on_fail.as_ref()?)?
    };
    Some(vec![pass, fail])
}

fn way(flow: &CheckFlow<'_>, copy: Copy, way: &Way<'_>) -> Option<Wanted> {
    let begin = |id: &str| {
        let step = flow.steps.iter().position(|known| known.id == id)?;
        Some(Wanted::Copy(Copy { checks: false, step, retries: 0, run: 1 }))
    };
    // What has no limit of its own counts toward none.
    let again = |retries| Wanted::Copy(Copy { checks: false, retries, run: 1, ..copy });
    match way {
        Way::Complete => Some(Wanted::Completed),
        Way::Next(to) | Way::Fallback(to) => begin(to.text),
        Way::Retry { max: None, .. } => Some(again(copy.retries)),
        Way::Retry { max: Some(max), .. } if copy.retries < *max => Some(again(copy.retries + 1)),
        Way::Retry { fallback: Some(to), .. } => begin(to.text),
        Way::Retry { fallback: None, .. } => Some(Wanted::Failed),
    }
}

/// How many visits stand for so many executions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// The most visits.
    pub(super) visits_max: u32,
    /// Whether every run that is out of executions is out of visits as well, and no other.
    pub(super) exact: bool,
    /// Whether every run that fails still may.
    pub(super) fails: bool,
}

impl Rounds {
    /// The limit of visits that comes nearest to a limit of executions: checks are visits, too.
    pub(super) fn limit(&self, executions_max: u32) -> Limit {
        let (all, visits_end) = (executions_max as usize, 2 * executions_max as usize + 2);
        let mut seen = vec![false; self.nodes.len() * (all + 1) * visits_end];
        let mut queue = vec![(To::Node(0), 0_usize, 0_usize)];
        let (mut most, mut failed, mut refused) = (0, None, usize::MAX);
        while let Some((to, spent, visits)) = queue.pop() {
            let node = match to {
                To::Completed => continue,
                To::Failed => {
                    failed = failed.max(Some(visits));
                    continue;
                }
                To::Node(node) => node,
            };
            let works = !self.nodes[node].copy.checks;
            if works && spent == all {
                refused = refused.min(visits);
                continue;
            }
            most = most.max(visits);
            let (spent, visits) = (spent + usize::from(works), visits + 1);
            let mark = (node * (all + 1) + spent) * visits_end + visits;
            if !std::mem::replace(&mut seen[mark], true) {
                let Node { pass, fail, .. } = self.nodes[node];
                queue.extend([(pass, spent, visits), (fail, spent, visits)]);
            }
        }
        if refused == usize::MAX {
            most = most.max(failed.unwrap_or(0));
        }
        let visits_max = most + 1;
        Limit {
            visits_max: visits_max as u32,
            exact: visits_max <= refused,
            fails: failed.is_none_or(|failed| failed < visits_max),
        }
    }
}
