use super::unmatched_join;
use crate::analysis::{
    graph,
    join_rules::Members,
    reachability::{StepOutcomes, mark_optional_members},
};
use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{Act, Flow, Gate},
};

pub(in crate::checks) const CODE: Code = code!("join-never-fires");

pub(in crate::checks) fn check_unfired_rules(
    flow: &Flow,
    yields: &StepOutcomes,
    found: &mut Vec<Diagnostic>,
) {
    for step in &flow.steps {
        let (Gate::Join { rules, judges }, Act::All { members, .. }) = (&step.gate, &step.act) else {
            continue;
        };
        let outcomes = yields.of_members(members);
        let optional = mark_optional_members(flow, members);
        let members = Members::of(&outcomes, &optional);
        let firing = members.firing(rules);
        let edges = graph::by_outcome(step);
        for (rule, _) in rules.iter().zip(firing).filter(|(_, fires)| !fires) {
            // A misspelt outcome of a member is reported by `unmatched-join` only.
            if judges.is_empty() && unmatched_join::is_slip(rule, rules, &outcomes) {
                continue;
            }
            let span = edges.get(&rule.outcome).map_or(step.span, |at| step.edges[*at].span);
            let (why, hint) = if members.fires_alone(rule) {
                ("an earlier rule fits whenever it does", "move it before that rule, or remove it")
            } else {
                (
                    "not every member can have that outcome",
                    "give every member that outcome, name one for each of them, or remove the rule",
                )
            };
            let message = format!("`{}` of `{}` never counts: {why}", rule.outcome, step.name);
            found.push(Diagnostic::warning(CODE.name, span, message).step(&step.name).hint(hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, name};
    use crate::model::{Act, Draft, Gate, JoinPattern, JoinRule, Outcome};

    /// Two members with the outcomes `x` and `y`, and rules over them.
    fn joined(patterns: Vec<JoinPattern>) -> Vec<String> {
        let text = "all: r0 → end, r1 → end\na: x → end, y → end\nb: x → end, y → end";
        let mut draft: Draft = draft(text);
        let rule = |(at, pattern)| JoinRule { pattern, outcome: Outcome::Named(format!("r{at}").into()) };
        draft.steps[0].gate =
            Gate::Join { rules: patterns.into_iter().enumerate().map(rule).collect(), judges: Vec::new() };
        draft.steps[0].act = Act::All { members: vec![name("a"), name("b")], width: 2 };
        for member in [1, 2] {
            draft.steps[member].counts = false;
            draft.steps[member].edges.clear();
        }
        let found = findings_of(draft).into_iter().filter(|finding| finding.code == super::CODE.name);
        found.map(|finding| format!("{}: {}", finding.code, finding.message)).collect()
    }

    #[test]
    fn found_and_mended() {
        let named = |word: &str| Outcome::Named(word.into());
        let (all, any) = (JoinPattern::All(named("x")), JoinPattern::Any(vec![named("x")]));
        let late = joined(vec![any.clone(), all.clone()]);
        assert_eq!(
            late,
            ["join-never-fires: `r1` of `all` never counts: an earlier rule fits whenever it does"]
        );
        assert!(joined(vec![all, any.clone()]).is_empty());
        let unknown = joined(vec![any, JoinPattern::Each(vec![named("y"), named("z")])]);
        assert_eq!(
            unknown,
            ["join-never-fires: `r1` of `all` never counts: not every member can have that outcome"]
        );
    }
}
