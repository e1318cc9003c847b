use super::{Code, unmatched_join};
use crate::analysis::{graph, join_rules::Members, reachability::Yields};
use crate::{
    diagnostics::Diagnostic,
    model::{Act, Flow, Gate},
};

pub(super) const CODE: Code = Code {
    name: "join-never-fires",
    page: "\
join-never-fires: a rule over parallel members can never be the one that counts

Rules over members are tried in order, and the first that fits counts. Whatever the members come to, this one
does not fit, or an earlier one fits as well: `all(\"x\")` after `any(\"x\")` for example, or an outcome that no
member has. Where it leads is dead text.

Move it before the rule that takes its cases, correct its condition, or remove it. (Where a member says nearly what
the rule names, `unmatched-join` shows that instead.)
",
};

pub(super) fn check(flow: &Flow, yields: &Yields, found: &mut Vec<Diagnostic>) {
    for step in &flow.steps {
        let (Gate::Join { rules, judges }, Act::All { members, .. }) = (&step.gate, &step.act) else {
            continue;
        };
        let outcomes = yields.of_members(members);
        let members = Members::of(&outcomes);
        let firing = members.firing(rules);
        let edges = graph::by_outcome(step);
        for (rule, _) in rules.iter().zip(firing).filter(|(_, fires)| !fires) {
            // A misspelt word of a member is one finding.
            if judges.is_empty() && unmatched_join::is_slip(rule, rules, &outcomes) {
                continue;
            }
            let span = edges.get(&rule.outcome).map_or(step.span, |at| step.edges[*at].span);
            let (why, hint) = if members.fires_alone(rule) {
                ("an earlier rule fits whenever it does", "move it before that rule, or remove it")
            } else {
                (
                    "not every member it is about can come to that",
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
            ["join-never-fires: `r1` of `all` never counts: not every member it is about can come to that"]
        );
    }
}
