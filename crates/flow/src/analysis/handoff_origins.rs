//! Returns to the origin (the step that handed off) that some run can take.

use std::collections::BTreeSet;

use super::{dominators::Dominators, paths::Hop, reachability::Reachability};
use crate::model::{Flow, StepId, Target};

/// Keeps only possible returns to the origin: to a step that hands off to the visit, or, if a run can reach the visit
/// without a handoff, to the visit itself.
///
/// Each return is checked alone: which of several origins applies on a walk is not tracked.
pub(crate) fn keep_possible(flow: &Flow, live: &Reachability, out: &mut [Vec<Hop>]) {
    let (back, on): (Vec<Hop>, Vec<Hop>) = out.iter().flatten().partition(|hop| returns_to_origin(flow, hop));
    if back.is_empty() {
        return;
    }
    let origins = OriginSearch::of(flow, live, &on);
    let mut possible: BTreeSet<(usize, usize)> = BTreeSet::new();
    for from in back.iter().map(|hop| hop.from).collect::<BTreeSet<usize>>() {
        for visit in origins.visits(from) {
            possible.extend(origins.of_visit(visit).into_iter().map(|origin| (from, origin)));
        }
    }
    for hops in out {
        hops.retain(|hop| !returns_to_origin(flow, hop) || possible.contains(&(hop.from, hop.to)));
    }
}

fn returns_to_origin(flow: &Flow, hop: &Hop) -> bool {
    let edge = hop.edge.map(|edge| &flow.steps[hop.from].edges[edge]);
    edge.is_some_and(|edge| matches!(edge.to, Target::Origin { .. }))
}

struct OriginSearch<'o> {
    flow: &'o Flow,
    live: &'o Reachability,
    /// By step: the hops to it, except returns to the origin.
    into: Vec<Vec<Hop>>,
    /// The dominators. Returns lead only to steps that a walk has passed.
    passed: Dominators,
}

impl<'o> OriginSearch<'o> {
    fn of(flow: &'o Flow, live: &'o Reachability, on: &[Hop]) -> OriginSearch<'o> {
        let mut into = vec![Vec::new(); flow.steps.len()];
        let mut ways = vec![Vec::new(); flow.steps.len()];
        for hop in on {
            into[hop.to].push(*hop);
            ways[hop.from].push(hop.to as u32);
        }
        OriginSearch { flow, live, into, passed: Dominators::over(&ways, &[flow.entry.0]) }
    }

    /// The counting steps to whose visits a step belongs.
    fn visits(&self, step: usize) -> BTreeSet<usize> {
        let (mut found, mut seen, mut queue) = (BTreeSet::new(), BTreeSet::from([step]), vec![step]);
        while let Some(at) = queue.pop() {
            if self.flow.steps[at].counts {
                found.insert(at);
                continue;
            }
            let before = self.into[at].iter().map(|hop| hop.from);
            queue.extend(before.filter(|from| seen.insert(*from)));
        }
        found
    }

    /// The possible origins of a visit of a step; the step itself if there is none.
    fn of_visit(&self, visit: usize) -> BTreeSet<usize> {
        let hands_off =
            |hop: &&Hop| hop.edge.is_some_and(|edge| self.flow.steps[hop.from].edges[edge].hands_off);
        let id = StepId(visit as u32);
        let (handing, other): (Vec<&Hop>, Vec<&Hop>) = self.into[visit].iter().partition(hands_off);
        let mut found: BTreeSet<usize> = handing.iter().flat_map(|hop| self.visits(hop.from)).collect();
        // Once a visit has an origin, it always has one.
        let is_first =
            |hop: &&Hop| hop.from != visit && self.passed.is_avoidable(StepId(hop.from as u32), id);
        if self.live.entries().contains(&id) || other.iter().any(is_first) {
            found.insert(visit);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Target;
    use crate::{
        analysis::{paths::ControlGraph, reachability::Reachability},
        checks::{
            resolve::resolve_draft,
            testing::{draft, name},
        },
    };

    /// The targets of the return from the check of `c`; the steps in `handing` hand off to `c`.
    fn back(text: &str, handing: &[&str]) -> Vec<String> {
        let mut draft = draft(text);
        let among: Vec<_> = ["a", "b"].into_iter().map(name).collect();
        for step in &mut draft.steps {
            let hands = handing.contains(&&*step.name);
            for edge in &mut step.edges {
                let to_c = matches!(&edge.to, Target::Step(to) if *to.text == *"c");
                edge.hands_off = hands && to_c;
            }
            if *step.name == *"c@check" {
                step.counts = false;
                step.edges[0].to = Target::Origin { among: among.clone() };
            }
        }
        let flow = resolve_draft(draft, &[], &mut Vec::new()).unwrap().flow;
        let live = Reachability::of(&flow, &[flow.entry], true);
        let walks = ControlGraph::of(&flow, &live);
        let check = flow.steps.iter().position(|step| *step.name == *"c@check").unwrap();
        let back = walks.out[check].iter().filter(|hop| hop.edge == Some(0));
        back.map(|hop| flow.steps[hop.to].name.to_string()).collect()
    }

    const LINE: &str = "a: next → b\nb: next → c\nc: done → c@check\nc@check: bad → c, ok → end";

    #[test]
    fn returns_to_the_only_origin() {
        assert_eq!(back(LINE, &["b"]), ["b"]);
    }

    #[test]
    fn returns_to_itself_without_an_origin() {
        assert_eq!(back(LINE, &[]), ["c"]);
        let both = "a: next → b, skip → c\nb: next → c\nc: done → c@check\nc@check: bad → c, ok → end";
        assert_eq!(back(both, &["b"]), ["b", "c"], "`a` leads there without");
        assert_eq!(back(both, &["a", "b"]), ["a", "b"]);
    }

    #[test]
    fn an_origin_is_never_lost() {
        let again =
            "a: next → b\nb: next → c\nc: done → c@check, more → d\nd: next → c\nc@check: bad → c, ok → end";
        assert_eq!(back(again, &["b"]), ["b"]);
    }
}
