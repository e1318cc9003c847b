use crate::analysis::paths::{ControlGraph, FAR, Hop};
use crate::analysis::reachability::Reachability;
use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{Act, Ending, Flow, StepId, Target, Verdict},
};

pub(in crate::checks) const CODE: Code = code!("closure-skipped");

pub(in crate::checks) fn check_skipped_proofs(
    flow: &Flow,
    live: &Reachability,
    walks: &ControlGraph<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let is_exec = |step: &usize| matches!(flow.steps[*step].act, Act::Exec { .. });
    let proofs: Vec<usize> =
        flow.proofs.iter().map(|step| step.0 as usize).filter(|step| walks.far[*step] != FAR).collect();
    let (validators, verifying): (Vec<usize>, Vec<usize>) = proofs.into_iter().partition(is_exec);
    for (of, what) in [(&validators, "validators"), (&verifying, "verification steps")] {
        if of.is_empty() {
            continue;
        }
        if let Some((hops, step, edge)) = find_path_around(live, walks, of) {
            let trace = walks.tell_end(&hops, step, edge);
            let step = &flow.steps[step];
            let message = format!(
                "a run can complete at `{}` without passing any of the {what} ({})",
                step.name,
                quote_step_names(flow, of)
            );
            found.push(
                Diagnostic::warning(CODE.name, step.edges[edge].span, message)
                    .step(&step.name)
                    .hint("lead that way through them; or leave it where the agent is to choose")
                    .trace(trace),
            );
        }
    }
    // The reader of the format has already reported a verdict that skips validators.
    if validators.is_empty() && !verifying.is_empty() && fires_before(flow, walks, &verifying) {
        let first = &flow.steps[verifying[0]];
        let message = format!(
            "the verdict can complete a run before it passed a verification step ({})",
            quote_step_names(flow, &verifying)
        );
        found.push(
            Diagnostic::warning(CODE.name, first.span, message)
                .step(&first.name)
                .hint("use `detect:graph`, where only an end of the flow completes a run"),
        );
    }
}

fn quote_step_names(flow: &Flow, steps: &[usize]) -> String {
    let mut names: Vec<String> =
        steps.iter().take(3).map(|step| format!("`{}`", flow.steps[*step].name)).collect();
    if steps.len() > 3 {
        names.push(format!("{} more", steps.len() - 3));
    }
    names.join(", ")
}

/// The shortest path to a completed run that passes none of the steps: its hops, and the step and edge that end it.
fn find_path_around(
    live: &Reachability,
    walks: &ControlGraph<'_>,
    proofs: &[usize],
) -> Option<(Vec<Hop>, usize, usize)> {
    let flow = walks.flow;
    let mut is_proof = vec![false; flow.steps.len()];
    proofs.iter().for_each(|step| is_proof[*step] = true);
    let completes = |step: usize| {
        let mut ends = live.ends(StepId(step as u32)).iter().copied();
        ends.find(|edge| matches!(flow.steps[step].edges[*edge].to, Target::End(Ending::Completed)))
    };
    let entry = flow.entry.0 as usize;
    if is_proof[entry] {
        return None;
    }
    let search = walks.search(&[entry], |hop| !is_proof[hop.to], |step| completes(step).is_some());
    let step = search.found?;
    Some((search.walk(step), step, completes(step)?))
}

/// Whether the verdict can hold before a run has passed one of the steps.
fn fires_before(flow: &Flow, walks: &ControlGraph<'_>, proofs: &[usize]) -> bool {
    // The verdict is evaluated after a visit, so at least one visit comes before.
    let nearest = proofs.iter().map(|step| walks.far[*step]).min().unwrap_or(FAR);
    nearest > 1 && can_hold(&flow.verdict, nearest)
}

/// Whether a verdict can hold after fewer than this many iterations if none of them checked anything.
fn can_hold(verdict: &Verdict, before: u32) -> bool {
    match verdict {
        Verdict::Flow | Verdict::Checks { .. } => false,
        Verdict::Iterations(max) => *max < before,
        Verdict::Keyword(_) | Verdict::Signal(_) | Verdict::Poll(_) | Verdict::Handler(_) => true,
        Verdict::Every(all) => !all.is_empty() && all.iter().all(|part| can_hold(part, before)),
        Verdict::Any(all) | Verdict::First(all) => all.iter().any(|part| can_hold(part, before)),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, name};
    use crate::model::{Draft, Verdict};

    fn said(mut draft: Draft, proofs: &[&str]) -> Vec<String> {
        draft.proofs = proofs.iter().map(|step| name(step)).collect();
        let mut found = findings_of(draft);
        found.retain(|found| found.code == "closure-skipped");
        found.iter().map(|found| format!("{} ({})", found.message, found.trace.join(" "))).collect()
    }

    const TEXT: &str = "work: next → verify, close → closure\nverify: next → closure\nclosure: done → end";

    #[test]
    fn the_shortest_way_around_is_shown() {
        assert_eq!(
            said(draft(TEXT), &["verify"]),
            ["a run can complete at `closure` without passing any of the verification steps (`verify`) \
                 (work --close→ closure --done→ the end)"]
        );
        assert!(said(draft(TEXT), &[]).is_empty());
        assert!(said(draft(TEXT), &["work"]).is_empty());
        assert!(said(draft(TEXT), &["closure"]).is_empty());
    }

    #[test]
    fn what_no_run_comes_to_proves_nothing() {
        let text = "work: close → closure\nclosure: done → end\nverify: next → closure";
        assert!(said(draft(text), &["verify"]).is_empty(), "that is said of the step");
    }

    #[test]
    fn a_verdict_may_come_first() {
        let through = || draft("work: next → verify\nverify: next → closure\nclosure: done → end");
        let with = |verdict| said(Draft { verdict, ..through() }, &["verify"]);
        assert!(with(Verdict::Flow).is_empty());
        assert_eq!(with(Verdict::Keyword("DONE".into())).len(), 1);
        assert_eq!(with(Verdict::Iterations(1)).len(), 1);
        assert!(with(Verdict::Iterations(2)).is_empty());
        assert!(with(Verdict::Checks { max: 1, of: vec!["verify".into()] }).is_empty());
    }
}
