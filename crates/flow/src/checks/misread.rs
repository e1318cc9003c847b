//! Steps that failed to parse in part; other findings report those errors.
//!
//! The transitions and handoff values of such a step are unknown. Findings that would only follow from them are
//! suppressed, so that one mistake yields one finding.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::analysis::reachability::Reachability;
use crate::{
    Str,
    model::{Flow, StepId, Target},
};

/// The misread steps of a flow.
pub(super) struct MisreadSteps {
    steps: Vec<bool>,
}

impl MisreadSteps {
    /// The steps of these names, and their generated steps: check, judge, validators.
    pub(super) fn of(flow: &Flow, names: &[Str]) -> MisreadSteps {
        let names: HashSet<&str> = names.iter().map(|name| &**name).collect();
        let is_named = |name: &str| {
            names.contains(name) || name.split_once('/').is_some_and(|(owner, _)| names.contains(owner))
        };
        MisreadSteps { steps: flow.steps.iter().map(|step| is_named(&step.name)).collect() }
    }

    /// Whether a step is misread.
    pub(super) fn has(&self, id: StepId) -> bool {
        self.steps[id.0 as usize]
    }

    /// Whether any step is misread.
    pub(super) fn any(&self) -> bool {
        self.steps.contains(&true)
    }

    /// The flow without the transitions of misread steps.
    pub(super) fn without_their_ways<'f>(&self, flow: &'f Flow) -> Cow<'f, Flow> {
        if !self.any() {
            return Cow::Borrowed(flow);
        }
        let mut known = flow.clone();
        for (step, _) in known.steps.iter_mut().zip(&self.steps).filter(|(_, misread)| **misread) {
            step.edges.clear();
        }
        Cow::Owned(known)
    }

    /// Whether a misread step is reachable: from there a run may get anywhere.
    pub(super) fn is_live(&self, live: &Reachability) -> bool {
        live.steps.iter().zip(&self.steps).any(|(live, misread)| *live && *misread)
    }
}

/// The flow without the transitions that do not resolve.
pub(super) fn without_dangling(flow: &Flow) -> Flow {
    let mut known = flow.clone();
    for step in &mut known.steps {
        // Other targets are dangling in some cases only.
        step.edges.retain(|edge| edge.dangling.is_empty() || !matches!(edge.to, Target::Step(_)));
    }
    known
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft, hand_on, need};
    use crate::model::Draft;

    fn misread(text: &str, names: &[&str]) -> Draft {
        let mut draft = draft(text);
        draft.flaws.is_faulted = true;
        draft.flaws.misread = names.iter().map(|name| (*name).into()).collect();
        draft
    }

    #[test]
    fn targets_of_a_misread_step_are_unknown() {
        let text = "a: next → b\nb: done → end\nc: done → end";
        assert_eq!(codes_of(misread(text, &[])), ["unreachable-step"]);
        assert!(codes_of(misread(text, &["b"])).is_empty(), "`b` may lead to `c`");
        assert_eq!(codes_of(misread(text, &["c"])), ["unreachable-step"], "no run comes to `c`");
    }

    #[test]
    fn a_misread_step_may_lead_to_an_end() {
        let text = "a: next → b\nb: back → a";
        assert_eq!(codes_of(misread(text, &[])), ["no-way-to-end"]);
        assert!(codes_of(misread(text, &["b"])).is_empty());
    }

    #[test]
    fn paths_and_values_of_a_misread_step_are_unknown() {
        let reads = |names: &[&str]| {
            let mut draft = misread("a: next → b, skip → c\nb: next → c\nc: done → end", names);
            hand_on(&mut draft, 1, "plan");
            need(&mut draft, 2, "b", "plan");
            codes_of(draft)
        };
        assert_eq!(reads(&[]), ["unassigned-value"]);
        assert!(reads(&["a"]).is_empty(), "`skip` may be what is wrong");
        assert_eq!(reads(&["b"]), ["unassigned-value"], "whatever `b` leaves, `a` leads past it");
        let mut other = misread("a: next → b\nb: done → end", &["a"]);
        need(&mut other, 1, "a", "plan");
        assert!(codes_of(other).is_empty(), "`a` may leave it");
    }

    #[test]
    fn an_unparsed_step_still_counts_as_a_step() {
        let text = "a: next → gone\nb: done → end";
        assert_eq!(codes_of(misread(text, &[])), ["unknown-target"]);
        assert!(codes_of(misread(text, &["gone"])).is_empty());
    }

    #[test]
    fn generated_steps_are_misread_with_their_step() {
        let text = "a: next → a/check\na/check: ng → a\nb: done → end";
        assert!(codes_of(misread(text, &["a"])).is_empty());
    }
}
