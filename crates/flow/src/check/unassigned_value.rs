use std::collections::HashMap;

use super::{Code, dominance::Dominance, live::Live, misread::Misread, place};
use crate::{Act, Diagnostic, Fact, Flow, Piece, Read, Source, Span, Step, StepId, Str};

pub(super) const CODE: Code = Code {
    name: "unassigned-value",
    page: "\
unassigned-value: on some path a step reads what no step has left yet

The step needs data that another step hands on, but a run can come to it without passing that step (the finding
shows the shortest such path), or the other step does not leave data of that name, or does not exist. The same
goes for `previous_summary` in the step a run begins with: nothing has been answered before.

Lead every path through the step that leaves the data, give the input a `default`, or make it
`\"required\": false`.
",
};

/// What is asked about values: which step has a name, and which steps every walk passes.
pub(super) struct Passing<'f> {
    pub(super) by_name: HashMap<&'f str, StepId>,
    pub(super) dominance: Dominance,
}

impl<'f> Passing<'f> {
    pub(super) fn of(flow: &'f Flow, live: &Live) -> Passing<'f> {
        let mut by_name = HashMap::new();
        for (at, step) in flow.steps.iter().enumerate() {
            by_name.entry(&*step.name).or_insert(StepId(at as u32));
        }
        Passing { by_name, dominance: Dominance::of(flow, live) }
    }
}

pub(super) fn check(
    flow: &Flow,
    live: &Live,
    passing: &Passing<'_>,
    (misread, reads): (&Misread, &[Read]),
    found: &mut Vec<Diagnostic>,
) {
    for (index, step) in flow.steps.iter().enumerate() {
        let id = StepId(index as u32);
        for need in needs(step, reads) {
            if let Some(finding) = examine(flow, id, step, &need, (live, passing, misread)) {
                found.push(finding.step(&step.name));
            }
        }
    }
}

/// That a run can come to where something is read before it was left.
pub(super) fn not_left(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(CODE.name, span, message)
}

/// Data a step cannot do without.
pub(super) struct Need {
    /// The step that leaves it; empty for what the last answer said.
    pub(super) from: Str,
    pub(super) key: Str,
    pub(super) span: Span,
    /// Whether it is a declared input, and not read by the step and the name in one.
    pub(super) declared: bool,
}

/// What a run fails without.
pub(super) fn demanded(step: &Step<StepId>) -> impl Iterator<Item = Need> {
    let demanded = step.inputs.iter().filter(|input| input.required && input.default.is_none());
    demanded.map(|input| Need {
        from: input.step.clone(),
        key: input.key.clone(),
        span: input.span,
        declared: true,
    })
}

fn needs(step: &Step<StepId>, reads: &[Read]) -> Vec<Need> {
    let declared = demanded(step);
    let Act::Ask(ask) = &step.act else { return declared.collect() };
    let direct = ask.prompt.sources().into_iter().filter_map(|source| match source {
        Source::Handoff { step: from, key }
            if !step.inputs.iter().any(|input| input.step == *from && input.key == *key) =>
        {
            let span = place::of(reads, step, source);
            Some(Need { from: from.clone(), key: key.clone(), span, declared: false })
        }
        Source::Fact(Fact::PreviousSummary) if reads_summary(&ask.prompt.pieces) => {
            let span = place::of(reads, step, source);
            Some(Need { from: "".into(), key: "previous_summary".into(), span, declared: false })
        }
        _ => None,
    });
    declared.chain(direct).collect()
}

/// Whether a prompt reads the last summary anywhere but where it is shown only when there is one.
fn reads_summary(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Value(source) => *source == Source::Fact(Fact::PreviousSummary),
        Piece::Filled { source: Source::Fact(Fact::PreviousSummary), .. } => false,
        Piece::Filled { body, .. } | Piece::Each { body, .. } => reads_summary(body),
        Piece::If { then, otherwise, .. } => reads_summary(then) || reads_summary(otherwise),
        Piece::Text(_) | Piece::Failure(_) | Piece::Item(_) => false,
    })
}

fn examine(
    flow: &Flow,
    id: StepId,
    step: &Step<StepId>,
    need: &Need,
    (live, passing, misread): (&Live, &Passing<'_>, &Misread),
) -> Option<Diagnostic> {
    let Need { from, key, span, declared } = need;
    if from.is_empty() {
        return (id == flow.entry).then(|| {
            Diagnostic::error(
                CODE.name,
                *span,
                format!("`{}` reads `{key}`, but at its first visit nothing has been answered", step.name),
            )
            .trace(vec![step.name.to_string()])
            .hint(format!("enter through a step that does not read `{key}`"))
        });
    }
    let Some(producer) = passing.by_name.get(&**from).copied() else {
        return Some(
            Diagnostic::error(
                CODE.name,
                *span,
                format!("`{}` reads `{from}.{key}`, but `{from}` is no step", step.name),
            )
            .hint("name a step of this definition and something that it hands on"),
        );
    };
    let left = &flow.step(producer).handoff;
    if !left.iter().any(|handoff| handoff.key == *key) {
        if misread.has(producer) {
            return None;
        }
        let keys: Vec<String> = left.iter().map(|handoff| format!("`{}`", handoff.key)).collect();
        let hint = if keys.is_empty() {
            format!("`{from}` hands nothing on")
        } else {
            format!("`{from}` hands on {}", keys.join(", "))
        };
        return Some(
            Diagnostic::error(
                CODE.name,
                *span,
                format!("`{}` reads `{from}.{key}`, which `{from}` does not leave", step.name),
            )
            .hint(hint),
        );
    }
    if !passing.dominance.is_avoidable(id, producer) {
        return None;
    }
    // A step that reads its own data has none at its first visit.
    let trace =
        if producer == id { live.shortest(flow, id, None) } else { live.shortest(flow, id, Some(producer)) };
    trace.map(|trace| {
        Diagnostic::error(
            CODE.name,
            *span,
            format!("`{}` reads `{from}.{key}`, but a run can come here without passing `{from}`", step.name),
        )
        .trace(trace)
        .hint(if *declared {
            "give the input a `default`, or make it `\"required\": false`".to_owned()
        } else {
            format!("declare an input with `\"from\": \"{from}.{key}\"` and a `default`, and read that by its name")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{draft, findings_of, hand_on, need, prompt};
    use super::{Live, Misread, Passing};
    use crate::check::{self, maybe_unassigned};
    use crate::{Fact, Piece, Source};

    #[test]
    fn a_path_around_the_producer_is_shown() {
        let mut flow = draft("a: next → b, skip → c\nb: next → c\nc: done → end");
        hand_on(&mut flow, 1, "plan");
        need(&mut flow, 2, "b", "plan");
        let found = findings_of(flow);
        assert_eq!(found[0].message, "`c` reads `b.plan`, but a run can come here without passing `b`");
        assert_eq!(found[0].trace, ["a --skip→", "c"]);
    }

    #[test]
    fn every_path_through_the_producer_is_fine() {
        let mut flow = draft("a: next → b\nb: next → c\nc: done → end");
        hand_on(&mut flow, 1, "plan");
        need(&mut flow, 2, "b", "plan");
        assert!(findings_of(flow).is_empty());
    }

    #[test]
    fn only_what_is_found_is_searched_for() {
        let lines: Vec<String> = (0..200).map(|at| format!("s{at}: next → s{}", at + 1)).collect();
        let mut flow = draft(&format!("{}\nx: next → s200\ns200: done → end, aside → x", lines.join("\n")));
        hand_on(&mut flow, 0, "plan");
        (1..200).for_each(|at| need(&mut flow, at, "s0", "plan"));
        hand_on(&mut flow, 200, "late");
        need(&mut flow, 201, "x", "late");
        let flow = check::check(flow).unsound.unwrap();
        let live = Live::of(&flow, &[flow.entry], true);
        let mut found = Vec::new();
        let passing = Passing::of(&flow, &live);
        super::check(&flow, &live, &passing, (&Misread::of(&flow, &[]), &[]), &mut found);
        maybe_unassigned::check(&flow, &live, &passing, &mut found);
        assert_eq!((found.len(), found[0].trace.len(), live.searches.get()), (1, 201, 1));
    }

    #[test]
    fn a_missing_step_or_key_is_named() {
        let mut flow = draft("a: next → b\nb: done → end");
        need(&mut flow, 1, "x", "plan");
        assert_eq!(findings_of(flow)[0].message, "`b` reads `x.plan`, but `x` is no step");
        let mut flow = draft("a: next → b\nb: done → end");
        hand_on(&mut flow, 0, "other");
        need(&mut flow, 1, "a", "plan");
        assert_eq!(findings_of(flow)[0].hint.as_deref(), Some("`a` hands on `other`"));
    }

    #[test]
    fn the_entry_has_no_previous_summary() {
        let mut flow = draft("a: next → b\nb: done → end");
        let reads = vec![Piece::Value(Source::Fact(Fact::PreviousSummary))];
        prompt(&mut flow, 1, reads.clone());
        assert!(findings_of(flow.clone()).is_empty());
        prompt(&mut flow, 0, reads);
        assert_eq!(findings_of(flow)[0].code, "unassigned-value");
    }
}
