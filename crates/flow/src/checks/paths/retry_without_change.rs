use crate::analysis::graph;
use crate::checks::Code;
use crate::checks::values::type_mismatch::tells_failure;
use crate::{
    diagnostics::Diagnostic,
    model::{Act, Flow, Outcome, Step, StepId, Template},
};

pub(in crate::checks) const CODE: Code = code!("retry-without-change");

pub(in crate::checks) fn check_retry_prompts(flow: &Flow, found: &mut Vec<Diagnostic>) {
    for step in flow.steps.iter().filter(|step| matches!(step.act, Act::Exec { .. })) {
        for edge in step.edges.iter().filter(|edge| matches!(edge.on, Outcome::Fail(_))) {
            let targets = graph::steps_of_target(&edge.to).into_iter().map(|to| flow.step(to));
            let asked: Vec<_> = targets.filter(|to| prompt_of(to).is_some()).collect();
            let of_asked = |fits: &dyn Fn(&Template) -> bool| {
                let again = |step: &&&Step<StepId>| prompt_of(step).is_some_and(fits);
                asked.iter().find(again).map(|step| (*step, *step))
            };
            let found_same = match edge.remedy.as_ref() {
                Some(remedy) if tells_failure(remedy) => None,
                // The prompt of another step does not mention the failure either.
                Some(remedy) => of_asked(&|prompt| prompt == remedy).or_else(|| {
                    let other = flow.steps.iter().find(|step| prompt_of(step) == Some(remedy))?;
                    Some((*asked.first()?, other))
                }),
                None => of_asked(&|prompt| !tells_failure(prompt)),
            };
            let Some((asked, own)) = found_same else { continue };
            let prompt = match own.name == asked.name {
                true => "its own prompt again".to_owned(),
                false => format!("the prompt of `{}`", own.name),
            };
            let message = format!(
                "after `{}` of `{}`, `{}` is called with {prompt}, which does not say what failed",
                edge.on, step.name, asked.name
            );
            found.push(
                Diagnostic::warning(CODE.name, edge.span, message)
                    .step(&asked.name)
                    .hint("give the failure a prompt that says what failed"),
            );
        }
    }
}

/// The prompt of a step's agent.
fn prompt_of(step: &Step<StepId>) -> Option<&Template> {
    match &step.act {
        Act::Ask(ask) => Some(&ask.prompt),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{failing, findings_of};
    use crate::model::{Act, Draft, Extractor, Piece};

    fn said(draft: Draft) -> Vec<String> {
        findings_of(draft).into_iter().map(|found| format!("{}: {}", found.code, found.message)).collect()
    }

    #[test]
    fn found_and_mended() {
        let own = |pieces: Vec<Piece>| {
            let mut draft = failing(Extractor::Stdout, pieces.clone());
            if let Act::Ask(ask) = &mut draft.steps[0].act {
                ask.prompt.pieces = pieces;
            }
            draft
        };
        assert_eq!(
            said(own(vec![Piece::Text("Work.".into())])),
            [
                "retry-without-change: after `fail(0)` of `v`, `a` is called with its own prompt again, which does \
                 not say what failed"
            ]
        );
        assert!(said(own(vec![Piece::Failure("found".into())])).is_empty());
        assert!(said(failing(Extractor::Stdout, vec![Piece::Text("Mend it.".into())])).is_empty());
        // The step that is asked again is `a`; what it is asked with is what another one is asked with.
        let mut other = failing(Extractor::Stdout, vec![Piece::Text("Close.".into())]);
        let mut closing = other.steps[0].clone();
        closing.name = "closing".into();
        if let Act::Ask(ask) = &mut closing.act {
            ask.prompt.pieces = vec![Piece::Text("Close.".into())];
        }
        other.steps.push(closing);
        let found = said(other);
        assert!(
            found.iter().any(|found| found.contains("`a` is called with the prompt of `closing`")),
            "{found:?}"
        );
        let mut without = failing(Extractor::Stdout, Vec::new());
        without.steps[1].edges[1].remedy = None;
        assert_eq!(said(without).len(), 1);
    }
}
