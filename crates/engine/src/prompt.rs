//! Renders prompt templates.
//!
//! The result is a list of parts: short text inline, and text written by an agent by its digest inside a fence, so that
//! no answer can pass for an instruction.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{BlobRef, Fact, Piece, Source, Step, StepId, Template},
};
use serde_json::Value;

use crate::{
    event_types::{PromptPart, StepAnswer},
    run::{JudgedAnswer, Node, Run, Work},
};

/// The variables that a failed validator provides for the failure prompt.
pub type Failure = BTreeMap<Str, Value>;

/// Renders a template for a step in the run's current state.
pub fn render_template(
    run: &Run,
    step: &Step<StepId>,
    template: &Template,
    failure: Option<&Failure>,
) -> Vec<PromptPart> {
    let mut parts = PromptRenderer { run, step, failure, done: Vec::new() };
    parts.pieces(&template.pieces, None);
    parts.done
}

/// Whether a value is neither empty nor `false` nor `null`.
pub(crate) fn is_filled(run: &Run, step: &Step<StepId>, source: &Source) -> bool {
    if let Source::Handoff { step, key } = source {
        return handoff_of_step(run, step, key).is_some_and(|kept| {
            let is_nothing =
                |scalar: &Str| matches!(&**scalar, "" | "null") || (&**scalar == "false" && !kept.text);
            kept.value.len > 0 && !kept.scalar.as_ref().is_some_and(is_nothing)
        });
    }
    let mut value = PromptRenderer { run, step, failure: None, done: Vec::new() };
    value.value(source);
    value.done.iter().any(says_something)
}

/// The stored text of a parameter, the task or a handoff value; `None` if there is none, or if the value is not stored.
pub(crate) fn find_stored_blob<'r>(
    run: &'r Run,
    step: &Step<StepId>,
    source: &Source,
) -> Option<&'r BlobRef> {
    let started = run.started();
    match source {
        Source::Param(name) => started.params.get(name),
        Source::Task => started.task.as_ref(),
        Source::Handoff { step, key } => handoff_of_step(run, step, key).map(|kept| &kept.value),
        Source::Input(name) => {
            let input = step.inputs.iter().find(|input| input.name == *name)?;
            handoff_of_step(run, &input.step, &input.key).map(|kept| &kept.value)
        }
        Source::Report(_) | Source::Fact(_) => None,
    }
}

pub(crate) fn render_judged_answer(judging: &JudgedAnswer) -> Vec<PromptPart> {
    if !judging.answers.is_empty() {
        let mut parts = vec![PromptPart::Text("\n\nThe answers to decide about:\n".into())];
        for spoken in &judging.answers {
            parts.extend(of_member(spoken));
        }
        return parts;
    }
    vec![
        PromptPart::Text("\n\nThe answer to decide about:\n".into()),
        PromptPart::Blob { blob: judging.answer.clone(), fence: Some("answer".into()) },
        PromptPart::Text("\n".into()),
    ]
}

/// The answer of a member of a parallel step, under its name.
fn of_member(spoken: &StepAnswer) -> Vec<PromptPart> {
    let ended = match (&spoken.outcome, spoken.blocked) {
        (Some(outcome), _) => format!(" ({outcome})"),
        (None, true) => " (could not proceed)".to_owned(),
        (None, false) => " (failed)".to_owned(),
    };
    let mut parts = vec![PromptPart::Text(format!("### {}{ended}\n", spoken.step).into())];
    if let Some(text) = &spoken.text {
        parts.push(PromptPart::Blob {
            blob: text.clone(),
            fence: Some(format!("answer of {}", spoken.step).into()),
        });
    }
    parts.push(PromptPart::Text("\n".into()));
    parts
}

/// The step's required inputs that no earlier step provided.
pub(crate) fn missing_inputs<'s>(run: &Run, step: &'s Step<StepId>) -> Vec<&'s Str> {
    step.inputs
        .iter()
        .filter(|input| {
            input.required
                && input.default.is_none()
                && handoff_of_step(run, &input.step, &input.key).is_none()
        })
        .map(|input| &input.name)
        .collect()
}

fn handoff_of_step<'r>(run: &'r Run, step: &str, key: &str) -> Option<&'r crate::run::HandoffValue> {
    run.context.handoffs.get(step)?.get(key)
}

struct PromptRenderer<'a> {
    run: &'a Run,
    step: &'a Step<StepId>,
    failure: Option<&'a Failure>,
    done: Vec<PromptPart>,
}

impl PromptRenderer<'_> {
    fn pieces(&mut self, pieces: &[Piece], item: Option<&Value>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.text(text),
                Piece::Value(source) => self.value(source),
                Piece::Failure(name) => {
                    if let Some(value) = self.failure.and_then(|failure| failure.get(name)) {
                        self.output(name, value);
                    }
                }
                Piece::Item(field) => {
                    let value = match (item, field) {
                        (Some(item), None) => Some(item),
                        (Some(item), Some(field)) => item.get(&**field),
                        (None, _) => None,
                    };
                    if let Some(value) = value {
                        // Newlines are removed from an item, because a file name may contain any text.
                        self.text(&format_plain_value(value).replace(|c: char| c.is_control(), " "));
                    }
                }
                Piece::If { name, then, otherwise } => {
                    let filled = self.failure.and_then(|failure| failure.get(name)).is_some_and(has_content);
                    self.pieces(if filled { then } else { otherwise }, item);
                }
                Piece::Each { name, body } => {
                    let items = self.failure.and_then(|failure| failure.get(name)).and_then(Value::as_array);
                    for item in items.into_iter().flatten() {
                        self.pieces(body, Some(item));
                    }
                }
                Piece::Filled { source, body } => {
                    if is_filled(self.run, self.step, source) {
                        self.pieces(body, item);
                    }
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.done.last_mut() {
            Some(PromptPart::Text(last)) => *last = format!("{last}{text}").into(),
            _ => self.done.push(PromptPart::Text(text.into())),
        }
    }

    /// Output of a command: one line inline, more lines inside fences.
    fn output(&mut self, name: &str, value: &Value) {
        let text = format_plain_value(value);
        if text.contains('\n') {
            let key = &self.run.started().fence_key;
            self.text(&key.enclose(&format!("{name} of a command"), &text));
        } else {
            self.text(&text.replace(|c: char| c.is_control(), " "));
        }
    }

    fn blob(&mut self, blob: &BlobRef, fence: Option<Str>) {
        self.done.push(PromptPart::Blob { blob: blob.clone(), fence });
    }

    fn value(&mut self, source: &Source) {
        let started = self.run.started();
        match source {
            Source::Param(name) => {
                if let Some(blob) = started.params.get(name) {
                    self.blob(blob, None);
                }
            }
            Source::Task => {
                if let Some(task) = &started.task {
                    self.blob(task, None);
                }
            }
            Source::Input(name) => {
                let Some(input) = self.step.inputs.iter().find(|input| input.name == *name) else { return };
                match (handoff_of_step(self.run, &input.step, &input.key), &input.default) {
                    (Some(_), _) => self.handed(&input.step, &input.key),
                    (None, Some(default)) => self.text(default),
                    (None, None) => {}
                }
            }
            Source::Handoff { step, key } => self.handed(step, key),
            Source::Report(name) => self.report(name),
            Source::Fact(fact) => self.fact(*fact),
        }
    }

    /// The newest content. Members of a parallel step read the content at the start of the step, whichever of them
    /// finishes first.
    fn report(&mut self, name: &str) {
        let entered = match &self.run.progress.node {
            Some(Node { work: Work::Joining(_), entered, .. }) => Some(*entered),
            _ => None,
        };
        let versions = self.run.context.reports.versions(name).iter();
        let newest = versions.rev().find(|version| Some(version.order.0) != entered);
        match newest {
            Some(version) => self.blob(&version.content.clone(), Some(format!("report {name}").into())),
            None => self.text(&format!("(no report yet: {name})")),
        }
    }

    fn previous(&mut self) {
        match &*self.run.context.previous {
            [StepAnswer { text: Some(text), outcome: None, .. }] => {
                self.blob(&text.clone(), Some("previous answer".into()));
            }
            members => {
                for part in members.iter().flat_map(of_member) {
                    match part {
                        PromptPart::Text(text) => self.text(&text),
                        part @ PromptPart::Blob { .. } => self.done.push(part),
                    }
                }
            }
        }
    }

    fn handed(&mut self, step: &str, key: &str) {
        let Some(kept) = handoff_of_step(self.run, step, key) else { return };
        match &kept.scalar {
            // A number or a boolean cannot be mistaken for an instruction.
            Some(scalar) if !kept.text => self.text(&scalar.clone()),
            _ => self.blob(&kept.value.clone(), Some(format!("{step}.{key}").into())),
        }
    }

    fn fact(&mut self, fact: Fact) {
        let (now, max) = (self.run.progress.iterations, self.run.progress.iterations_max);
        match fact {
            Fact::Iteration => self.text(&now.to_string()),
            Fact::CompletedIterations => self.text(&self.run.progress.finished.to_string()),
            Fact::MaxIterations => self.text(&max.to_string()),
            Fact::Checks => self.text(&crate::completion_state::count_checks(self.run).to_string()),
            Fact::Remaining => self.text(&(max + 1).saturating_sub(now).to_string()),
            Fact::PreviousSummary => {
                if let Some(summary) = &self.run.context.summary {
                    self.blob(&summary.clone(), Some("previous answer".into()));
                }
            }
            Fact::PreviousResponse => self.previous(),
            Fact::Visit => {
                // A remedy's prompt is rendered before its visit starts.
                let next = || self.run.progress.visits.get(&self.step.name).copied().unwrap_or(0) + 1;
                let visit = self.run.progress.visit.as_ref().map_or_else(next, |visit| visit.visit);
                self.text(&visit.to_string());
            }
            Fact::ReportDir => {
                if let Some(dir) = self.run.started().report_dir.clone() {
                    self.text(&dir);
                }
            }
            Fact::ReviewScope => {
                let base = self.run.started().review_base.clone();
                self.text(&describe_review_scope(base.as_deref()));
            }
            Fact::UserInputs => {
                for (index, input) in self.run.context.user_inputs.iter().enumerate() {
                    if index > 0 {
                        self.text("\n");
                    }
                    self.blob(&input.clone(), None);
                }
            }
            Fact::Rounds => {
                let rounds = self.run.progress.visit.as_ref().map_or(0, |visit| visit.rounds);
                self.text(&rounds.to_string());
            }
        }
    }
}

fn says_something(part: &PromptPart) -> bool {
    match part {
        PromptPart::Text(text) => !text.trim().is_empty(),
        PromptPart::Blob { blob, .. } => blob.len > 0,
    }
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn format_plain_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(format_plain_value).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}
/// How an agent lists the files that the task has changed: since the commit `base`, or as far as git knows.
fn describe_review_scope(base: Option<&str>) -> String {
    match base {
        Some(base) => format!(
            "the files that this task has changed: `git diff --name-only {base}` lists those that differ from the commit \
             with which the work began, `git ls-files --others --exclude-standard` those that are new"
        ),
        None => "the files that this task has changed: `git status` and `git diff` show those that are not committed; the \
                 commit with which the work began is not known"
            .to_owned(),
    }
}
