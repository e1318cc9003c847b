use super::{Code, graph};
use crate::{Act, Diagnostic, Flow, StepId, Target, Verdict};

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

pub(super) fn check(flow: &Flow, found: &mut Vec<Diagnostic>) {
    if flow.verdict != Verdict::Flow {
        return;
    }
    let reachable = graph::reachable(flow, &[flow.entry]);
    let ends = can_end(flow);
    let trapped: Vec<StepId> = (0..flow.steps.len() as u32)
        .map(StepId)
        .filter(|id| reachable[id.0 as usize] && !ends[id.0 as usize])
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
            .trace(graph::shortest_trace(flow, first, None).unwrap_or_default()),
    );
}

/// Which steps have a path to an end that an author meant.
fn can_end(flow: &Flow) -> Vec<bool> {
    let mut ends: Vec<bool> = flow
        .steps
        .iter()
        .map(|step| {
            step.edges
                .iter()
                .any(|edge| !edge.implied && matches!(edge.to, Target::End(_) if is_goal(&edge.to)))
        })
        .collect();
    let mut from = vec![Vec::new(); flow.steps.len()];
    for (index, step) in flow.steps.iter().enumerate() {
        for edge in step.edges.iter().filter(|edge| !edge.implied) {
            for to in graph::targets(&edge.to) {
                from[to.0 as usize].push(StepId(index as u32));
            }
        }
    }
    let mut queue: Vec<StepId> =
        (0..flow.steps.len() as u32).map(StepId).filter(|id| ends[id.0 as usize]).collect();
    while let Some(id) = queue.pop() {
        let parallel = matches!(flow.step(id).act, Act::All { .. });
        // Members and judges hand their outcome to the step that entered them, so they end when that does.
        let inner = graph::ways(flow, id)
            .into_iter()
            .filter(|(edge, inner)| edge.is_none() && (parallel || flow.step(*inner).edges.is_empty()))
            .map(|(_, inner)| inner);
        for next in from[id.0 as usize].iter().copied().chain(inner) {
            if !std::mem::replace(&mut ends[next.0 as usize], true) {
                queue.push(next);
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
}
