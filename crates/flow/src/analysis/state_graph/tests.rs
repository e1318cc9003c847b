use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::checks::{check_draft, testing::draft};
use crate::model::{CounterId, EdgeBound, Limits};

fn flow(text: &str, iterations_max: u32) -> Flow {
    let checked = check_draft(draft(text));
    let flow = checked.flow.or(checked.unsound).unwrap();
    Flow { limits: Limits::new(iterations_max), ..flow }
}

fn edge(flow: &Flow, step: &str, edge: usize) -> Mark {
    Mark::Edge(flow.find(step).unwrap(), edge, None)
}

/// `a` goes to `b` three times, then to `c`; `b` goes back.
fn bounded(iterations_max: u32) -> Arc<Flow> {
    let mut flow = flow("a: go → b, go → c\nb: back → a\nc: done → end", iterations_max);
    flow.counters = vec![crate::model::Counter { name: "go".into() }];
    flow.steps[0].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 3 });
    Arc::new(flow)
}

#[test]
fn distances_of_all_marks() {
    let flow = bounded(20);
    let reach = StateGraph::explore(flow.clone(), 20);
    assert!(reach.is_exact());
    let first = |mark: Mark| reach.first(&mark);
    assert_eq!(first(edge(&flow, "a", 0)), Some(1));
    assert_eq!(first(Mark::Spent(StepId(0), 0)), Some(7));
    assert_eq!(first(Mark::Step(StepId(2))), Some(8));
    assert_eq!(reach.ends(&Ending::Completed), Some(8));
    // a b a b a b a c, and no more.
    assert_eq!([7, 8].map(|iterations| reach.exceeds(iterations)), [true, false]);
    assert_eq!(first(Mark::Exhausted), None);
    assert_eq!(StateGraph::explore(flow, 5).first(&Mark::Exhausted), Some(5));
}

/// With too many states, counters are dropped: unreachable marks stay unreachable, all others may be reachable.
#[test]
fn too_many_situations() {
    let flow = bounded(20);
    let reach = StateGraph::within(flow.clone(), 20, 3);
    assert!(!reach.is_exact());
    assert!(reach.exceeds(1_000), "that the way is used up is not followed");
    assert_eq!(reach.first(&Mark::Step(StepId(2))), Some(2), "no more than it takes");
    assert_eq!(reach.first(&edge(&flow, "c", 7)), None);
}

/// Moves towards the remaining goals rank before moves that end the run.
#[test]
fn the_nearest_comes_first() {
    let flow = bounded(20);
    let reach = StateGraph::explore(flow, 20);
    let first = reach.exactly_first();
    let rank = |left: &[Mark], iterations| {
        let goal = reach.goal(&left.iter().cloned().collect(), &BTreeSet::new());
        let moves = reach.moves(&first);
        assert_eq!(moves.len(), 1);
        reach.rank(&goal, &moves[0], iterations, false)
    };
    let end = Mark::Step(StepId(2));
    assert!(rank(&[Mark::Step(StepId(1))], 19) < rank(std::slice::from_ref(&end), 19));
    assert!(rank(std::slice::from_ref(&end), 19) < rank(&[end], 3), "out of reach");
}

/// Moves that end the run rank last, unless no other goal was reached for a while.
#[test]
fn moves_that_end_the_run_rank_last_or_first() {
    let reach = StateGraph::explore(Arc::new(flow("a: go → b, stop → end\nb: done → end", 9)), 9);
    let left = BTreeSet::from([Mark::Step(StepId(1)), Mark::Edge(StepId(0), 1, None)]);
    let goal = reach.goal(&left, &BTreeSet::new());
    let moves = reach.moves(&reach.exactly_first());
    let ends = |ends_first| {
        let nearest = moves.iter().min_by_key(|going| reach.rank(&goal, going, 8, ends_first));
        nearest.is_some_and(|going| going.next.is_none())
    };
    assert!(!ends(false) && ends(true));
}
