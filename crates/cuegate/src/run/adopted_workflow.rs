//! An edited workflow that replaces the one that a run was started with.

use std::sync::Arc;

use cuegate_engine::{AdoptedDefinition, Run};
use cuegate_flow::{
    Str,
    model::{Act, Flow, Param, Step, StepId},
};
use cuegate_formats::RunSettings;
use cuegate_journal::RunId;

use crate::Failure;

/// An edited workflow with which a run goes on.
#[derive(Debug, Clone)]
pub struct AdoptedWorkflow {
    pub flow: Arc<Flow>,
    pub settings: RunSettings,
    /// Its place and its files.
    pub definition: AdoptedDefinition,
    /// The contents of its files.
    pub texts: Vec<Vec<u8>>,
}

impl AdoptedWorkflow {
    /// Checks that a run can go on with it where it is; `retry` is the step to enter, if a person named one.
    ///
    /// # Errors
    /// When the step that the run is at is another kind of step, or a parameter has no value.
    pub(super) fn check(
        &self,
        id: &RunId,
        run: &Run,
        recorded: &Flow,
        retry: Option<Option<&str>>,
    ) -> Result<(), Failure> {
        let started = run.started();
        // A value that may be absent, and is, was absent before.
        let wants = |param: &&Param| param.required || param.default.is_some();
        let lacks = |param: &&Param| wants(param) && !started.params.contains_key(&param.name);
        if let Some(param) = self.flow.params.iter().find(lacks) {
            return Err(Failure::usage(
                format!("run {id} has no value for the parameter `{}` of the edited workflow", param.name),
                "start a new run",
            ));
        }
        let retried = retry.and_then(|from| from.map(Str::from).or_else(|| run.progress.last_step.clone()));
        if let Some(step) = retried.filter(|step| self.flow.find(step).is_none()) {
            return Err(Failure::usage(
                format!("the edited workflow has no step `{step}`, at which the run would be retried"),
                format!("`cuegate retry {id} --flow PATH --from STEP` retries another one"),
            ));
        }
        let Some(node) = &run.progress.node else { return Ok(()) };
        let step = |flow: &Flow| flow.find(&node.step).map(|step| outline_step(flow, flow.step(step)));
        match step(&self.flow) {
            None => Err(Failure::usage(
                match node.step.split_once('@') {
                    // Such a step is made for a rule, a judge or the commands of the step before.
                    Some((step, _)) => {
                        format!(
                            "what follows on `{step}`, at which the run is, is another in the edited workflow"
                        )
                    }
                    None => format!("the edited workflow has no step `{}`, at which the run is", node.step),
                },
                format!("`cuegate replay {id} --flow PATH` shows how far it would get; or start a new run"),
            )),
            now if now != step(recorded) => Err(Failure::usage(
                format!("the step `{}`, at which the run is, has other members or commands", node.step),
                format!("`cuegate resume {id}` finishes it with the workflow that the run has"),
            )),
            _ => Ok(()),
        }
    }
}

/// What the state of a run at a step depends on: its kind, and its parts by number.
fn outline_step(flow: &Flow, step: &Step<StepId>) -> (&'static str, Vec<Str>) {
    match &step.act {
        Act::Ask(_) => ("ask", Vec::new()),
        Act::All { members, .. } => {
            ("members", members.iter().map(|member| flow.step(*member).name.clone()).collect())
        }
        Act::Exec { commands } => ("commands", commands.iter().map(|command| command.name.clone()).collect()),
        Act::Person { .. } => ("person", Vec::new()),
        Act::System(work) => ("system", work.effects.iter().map(|effect| effect.name.clone()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use cuegate_engine::Event;
    use cuegate_flow::{
        diagnostics::Span,
        model::{ParamType, Role},
    };
    use cuegate_testkit::Builder;

    use super::*;

    #[test]
    fn only_a_value_that_must_be_there_is_missed() {
        let sound =
            Builder::new("f", "test", "a").ask("a", Role::Work, &["done"]).to("done", "@completed").flow();
        let run = Run::fold([[Event::RunStarted(Box::default())].as_slice()]);
        let accepts = |required: bool, default: Option<&str>| {
            let mut flow = Flow::clone(&sound);
            flow.params.push(Param {
                name: "issue".into(),
                flag: "--issue".into(),
                kind: ParamType::Text,
                rule: Default::default(),
                required,
                default: default.map(Into::into),
                description: "".into(),
                span: Span::default(),
            });
            let (settings, definition) = (RunSettings::default(), AdoptedDefinition::default());
            let recorded = flow.clone();
            let adopted = AdoptedWorkflow { flow: Arc::new(flow), settings, definition, texts: Vec::new() };
            adopted.check(&"abcdefgh".parse().unwrap(), &run, &recorded, None).is_ok()
        };
        assert!(accepts(false, None), "the run had no value either");
        assert!(!accepts(true, None));
        assert!(!accepts(false, Some("7")), "prompts count on it");
    }
}
