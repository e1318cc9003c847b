//! The effects that runs of a definition can have outside of their working tree, with their class.

use cuegate_engine::{EffectKind, FinalizePlan, StepEffectKind};
use cuegate_flow::{
    Str,
    model::{Act, Flow, Reaction},
};
use serde_json::{Value, json};

/// An effect that runs of a definition can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedEffect {
    /// When: `at the start`.
    pub when: &'static str,
    /// What: ``add the label `done` ``.
    pub what: String,
    pub kind: EffectKind,
}

impl PlannedEffect {
    /// In one line: ``at the start: add the label `in-progress` (settable)``.
    pub fn line(&self) -> String {
        format!("{}: {} ({})", self.when, self.what, self.kind.class().as_str())
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "when": self.when, "what": self.what, "kind": self.kind.name(),
            "class": self.kind.class().as_str(),
        })
    }
}

/// The effects of a definition, in the order of a run. `finalize` is what is done with the work of a completed run.
pub fn planned_effects(flow: &Flow, finalize: Option<&FinalizePlan>) -> Vec<PlannedEffect> {
    let mut planned = Vec::new();
    let mut plan = |when, kind: EffectKind, what: String| planned.push(PlannedEffect { when, what, kind });
    let issue = flow.conduct.issue.as_ref();
    let adds = |label: &Str| EffectKind::Labels { add: vec![label.clone()], remove: Vec::new() };
    if let Some(label) = issue.and_then(|issue| issue.in_progress.as_ref()) {
        plan("at the start", adds(label), format!("add the label `{label}`"));
    }
    for (action, reaction) in flow.conduct.actions.iter().flat_map(|actions| &actions.handlers) {
        let kind = match reaction {
            Reaction::Log => continue,
            Reaction::Exec(program) => EffectKind::Exec { path: program.path.clone() },
            Reaction::Comment => EffectKind::Comment,
            Reaction::Label => EffectKind::Labels { add: Vec::new(), remove: Vec::new() },
        };
        plan("on request", kind, format!("{} for `{action}`", reaction.as_text()));
    }
    for step in &flow.steps {
        let Act::System(work) = &step.act else { continue };
        for effect in &work.effects {
            let kind = EffectKind::Step(StepEffectKind::from(effect.what));
            let what = format!("{} in `{}`", kind.word(), step.name);
            plan("on the way", kind, what);
        }
    }
    if let Some(label) = issue.and_then(|issue| issue.blocked.as_ref()) {
        plan("when blocked", adds(label), format!("add the label `{label}`"));
    }
    for kind in finalize.map(FinalizePlan::effects).unwrap_or_default() {
        let what = match (&kind, finalize) {
            (EffectKind::Commit, _) => "commit the work".to_owned(),
            (EffectKind::Merge, _) => "merge it into the branch from which the run started".to_owned(),
            (EffectKind::Push, Some(FinalizePlan { push: Some(remote), .. })) => {
                format!("push to `{remote}`")
            }
            (EffectKind::PullRequest, Some(FinalizePlan { into: Some(into), .. })) => {
                format!("open a pull request into `{into}`")
            }
            (EffectKind::PullRequest, _) => "open a pull request".to_owned(),
            (kind, _) => kind.word().to_owned(),
        };
        plan("when completed", kind, what);
    }
    if let Some(issue) = issue {
        if issue.closure.labels && !(issue.add.is_empty() && issue.remove.is_empty()) {
            let (add, remove) = (issue.add.clone(), issue.remove.clone());
            let names = |verb: &str, labels: &[Str]| {
                let names: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
                (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
            };
            let what: Vec<String> = names("add", &add).into_iter().chain(names("remove", &remove)).collect();
            plan(
                "when completed",
                EffectKind::Labels { add, remove },
                format!("labels: {}", what.join(", ")),
            );
        }
        if issue.closure.closes {
            plan("when completed", EffectKind::Close, "close the issue".to_owned());
        }
    }
    planned
}
