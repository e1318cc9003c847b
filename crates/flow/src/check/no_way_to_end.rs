use super::{Code, live::Live};
use crate::{Diagnostic, Flow, Step, StepId, Target};

pub(super) const CODE: Code = Code {
    name: "no-way-to-end",
    page: "\
no-way-to-end: once here, a run cannot finish

A run can come to this step, but from it no path of transitions leads to an end. It would go round until a
limit stops it, and everything it costs until then is lost. Giving up, which every step may do, is no way to
finish.

Lead some transition of the trap to an end: in a step registry a closure step with `closing` and
`\"target\": null`, in a piece `next: COMPLETE`.
",
};

pub(super) fn check(flow: &Flow, live: &Live, found: &mut Vec<Diagnostic>) {
    // A run that goes round may still be done, by a verdict that does not wait for an end of the flow.
    if flow.verdict.can_fire() {
        return;
    }
    let ends = can_end(flow, live);
    let trapped: Vec<StepId> = (0..flow.steps.len() as u32)
        .map(StepId)
        .filter(|id| live.steps[id.0 as usize] && !ends[id.0 as usize])
        .collect();
    // One finding names the whole trap: its members all share the cause.
    let Some(first) = trapped.iter().copied().find(|id| flow.step(*id).counts) else {
        return;
    };
    let names: Vec<String> = trapped
        .iter()
        .filter(|id| flow.step(**id).counts)
        .map(|id| format!("`{}`", flow.step(*id).name))
        .collect();
    let step = flow.step(first);
    found.push(
        Diagnostic::error(CODE.name, step.span, format!("from {} no path leads to an end", names.join(", ")))
            .step(&step.name)
            .hint("lead a transition of one of them to an end")
            .trace(live.shortest(flow, first, None).unwrap_or_default()),
    );
}

/// Which steps have a path to an end that an author meant.
fn can_end(flow: &Flow, live: &Live) -> Vec<bool> {
    let meant = |step: &Step<StepId>, edge: usize| !step.edges[edge].implied;
    let mut ends: Vec<bool> = (0..flow.steps.len() as u32)
        .map(|id| {
            let step = flow.step(StepId(id));
            let mut ends = live.ends(StepId(id)).iter();
            ends.any(|edge| meant(step, *edge) && is_goal(&step.edges[*edge].to))
        })
        .collect();
    // Who has come to an end when a step has.
    let mut from = vec![Vec::new(); flow.steps.len()];
    for (index, ways) in live.ways.iter().enumerate() {
        let step = &flow.steps[index];
        for way in ways {
            match way.edge {
                // Members and judges hand their outcome to the step that entered them, so they end when that does.
                None if way.inner => from[index].push(way.to.0 as usize),
                Some(edge) if !meant(step, edge) => {}
                _ => from[way.to.0 as usize].push(index),
            }
        }
    }
    let mut queue: Vec<usize> = (0..ends.len()).filter(|id| ends[*id]).collect();
    while let Some(id) = queue.pop() {
        for next in &from[id] {
            if !std::mem::replace(&mut ends[*next], true) {
                queue.push(*next);
            }
        }
    }
    ends
}

/// Whether an end is a goal of the flow rather than a broken rule.
fn is_goal(to: &Target<StepId>) -> bool {
    use crate::Ending;
    matches!(to, Target::End(Ending::Completed | Ending::Aborted))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{codes_of, draft, findings_of};
    use crate::Verdict;

    #[test]
    fn found_with_a_trace() {
        let found = findings_of(draft("a: next → b, done → end\nb: next → c\nc: back → b"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, "from `b`, `c` no path leads to an end");
        assert_eq!(found[0].trace, ["a --next→", "b"]);
    }

    #[test]
    fn mended_by_an_edge_or_by_a_verdict() {
        assert!(codes_of(draft("a: next → b\nb: next → c\nc: back → b, done → end")).is_empty());
        let mut counted = draft("a: next → a");
        counted.verdict = Verdict::Iterations(3);
        assert!(codes_of(counted).is_empty());
    }

    #[test]
    fn not_mended_by_a_verdict_that_waits_for_an_end() {
        for verdict in [
            Verdict::Every(vec![Verdict::Flow, Verdict::Iterations(3)]),
            Verdict::Any(vec![Verdict::Flow]),
            Verdict::Checks { max: 1, of: Vec::new() },
        ] {
            let mut waiting = draft("a: next → a");
            waiting.verdict = verdict;
            assert_eq!(codes_of(waiting), ["no-way-to-end"]);
        }
    }
}
