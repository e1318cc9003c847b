use super::type_mismatch::tells_failure;
use super::{Code, graph};
use crate::{Act, Diagnostic, Flow, Outcome, Template};

pub(super) const CODE: Code = Code {
    name: "retry-without-change",
    page: "\
retry-without-change: after a failed validator the agent is told nothing new

A validator fails, and the step that is to mend it is asked with its own prompt once more. That prompt says
nothing of the failure, and what commands print is no part of any conversation. The agent does what it did
before, and each such round costs an iteration.

Give the failure a prompt of its own that says what failed: in a step registry an `edition` or `adaptation` of
the failure pattern, with `{{name}}` for what `extractParams` take out of the output.
",
};

pub(super) fn check(flow: &Flow, found: &mut Vec<Diagnostic>) {
    for step in flow.steps.iter().filter(|step| matches!(step.act, Act::Exec { .. })) {
        for edge in step.edges.iter().filter(|edge| matches!(edge.on, Outcome::Fail(_))) {
            let targets = graph::targets(&edge.to);
            let same = targets.into_iter().map(|to| flow.step(to)).find(|to| match &to.act {
                Act::Ask(ask) => is_same(edge.remedy.as_ref(), &ask.prompt),
                _ => false,
            });
            let Some(same) = same else { continue };
            let message = format!(
                "after `{}` of `{}` `{}` is asked with its own prompt again, and told nothing of what failed",
                edge.on, step.name, same.name
            );
            found.push(
                Diagnostic::warning(CODE.name, edge.span, message)
                    .step(&step.name)
                    .hint("give the failure a prompt that says what failed"),
            );
        }
    }
}

/// Whether what is asked after a failure is what was asked before it.
fn is_same(remedy: Option<&Template>, prompt: &Template) -> bool {
    match remedy {
        Some(remedy) => remedy == prompt && !tells_failure(remedy),
        None => !tells_failure(prompt),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{failing, findings_of};
    use crate::{Act, Draft, Extractor, Piece};

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
                "retry-without-change: after `fail(0)` of `v` `a` is asked with its own prompt again, and told nothing \
                 of what failed"
            ]
        );
        assert!(said(own(vec![Piece::Failure("found".into())])).is_empty());
        assert!(said(failing(Extractor::Stdout, vec![Piece::Text("Mend it.".into())])).is_empty());
        let mut without = failing(Extractor::Stdout, Vec::new());
        without.steps[1].edges[1].remedy = None;
        assert_eq!(said(without).len(), 1);
    }
}
