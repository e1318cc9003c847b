//! An answer, parsed once.

use cuegate_flow::model::{Act, CombinedFields, Flow, OutcomeReader, Step, StepId};
use serde_json::Value;

use super::{
    gate::{fused_of_step, outcome_fields_of_step, read_outcome_field, readers_of_step},
    structured::{json_in_text, json_where},
};
use crate::completion::Answer;

/// What an agent answered, with its structured part found once: whoever reads an answer reads it here.
#[derive(Debug, Clone, Default)]
pub struct ParsedAnswer<'a> {
    /// What it says besides `output`.
    pub text: &'a str,
    /// The structured output that the provider returned beside the text.
    pub output: Option<&'a Value>,
    /// The structured answer: `output`, or the first suitable object in the text if one is expected.
    pub structured: Option<Value>,
}

impl<'a> ParsedAnswer<'a> {
    /// Parses an answer of the step whose agent was asked.
    pub fn new(flow: &Flow, asked: &Step<StepId>, output: Option<&'a Value>, text: &'a str) -> Self {
        ParsedAnswer { text, output, structured: find_structured_answer(flow, asked, output, text) }
    }

    /// Parses an answer as the provider returned it.
    pub(crate) fn from_answer(flow: &Flow, asked: &Step<StepId>, answer: &'a Answer) -> Self {
        ParsedAnswer::new(flow, asked, answer.output.as_ref(), &answer.text)
    }

    /// The agent's answer as text.
    pub(crate) fn to_text(&self) -> String {
        match (self.output, self.text.is_empty()) {
            (Some(output), true) => output.to_string(),
            _ => self.text.to_owned(),
        }
    }

    /// The agent's response: the response part of `output` if answers of `step` have several parts, else the text.
    pub(crate) fn response(&self, step: &Step<StepId>, output: Option<&Value>) -> String {
        let part =
            fused_of_step(step).zip(output).and_then(|(fused, output)| fused.response.get(output)?.as_str());
        part.map_or_else(|| self.to_text(), str::to_owned)
    }
}

/// The structured answer: the provider's structured output, or the first object in the text if one is expected.
fn find_structured_answer(
    flow: &Flow,
    step: &Step<StepId>,
    output: Option<&Value>,
    text: &str,
) -> Option<Value> {
    let is_due = outcome_fields_of_step(step).next().is_some()
        || matches!(&step.act, Act::Ask(ask) if ask.schema.is_some());
    let found = output.cloned().or_else(|| is_due.then(|| find_in_text(flow, step, text)).flatten());
    // An object in plain text is the answer only if it looks like one, because the text may contain code.
    match (fused_of_step(step), output) {
        (Some(fused), None) => found.filter(|found| is_answer(step, fused, found)),
        _ => found,
    }
}

/// The first object in a text. If agents may send action blocks, such a block may precede the answer; then it is the
/// first object with an outcome field.
fn find_in_text(flow: &Flow, step: &Step<StepId>, text: &str) -> Option<Value> {
    let beside = flow.conduct.actions.as_ref().and_then(|actions| {
        let block = |found: &Value| found["action"].as_str().is_some_and(|action| actions.names(action));
        let answers = |found: &Value| outcome_fields_of_step(step).any(|path| path.get(found).is_some());
        let names = |found: &Value| {
            readers_of_step(step).iter().any(|reader| match reader {
                OutcomeReader::Field { path, words, .. } => {
                    read_outcome_field(path, words, Some(found)).is_ok()
                }
                _ => false,
            })
        };
        json_where(text, |found| if block(found) { names(found) } else { answers(found) })
    });
    beside.or_else(|| json_in_text(text))
}

fn is_answer(step: &Step<StepId>, fused: &CombinedFields, found: &Value) -> bool {
    let own = [&fused.response, &fused.reports, &fused.blocked];
    outcome_fields_of_step(step).chain(own).any(|path| path.get(found).is_some())
}
