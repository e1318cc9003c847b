//! The prompt of a step before a run: what is known is filled in, and what a run provides is named.

use std::collections::BTreeMap;

use cuegate_flow::model::{Act, Fact, Flow, Piece, Source, Step, StepId, Template};

use crate::text::clean_lines;

/// The values that are known before a run.
#[derive(Debug, Clone, Default)]
pub struct KnownValues {
    pub task: Option<String>,
    /// The parameters by name.
    pub params: BTreeMap<String, String>,
}

/// The system prompt and the prompt of a step's first visit. A value that a run provides is `⟨its name⟩`. `None` if the
/// step asks no agent.
pub fn prompt_preview(
    flow: &Flow,
    step: &Step<StepId>,
    known: &KnownValues,
) -> Option<(Option<String>, String)> {
    let Act::Ask(ask) = &step.act else { return None };
    let text = |template: &Template| {
        let mut page = String::new();
        write_prompt_pieces(&mut page, &template.pieces, (flow, step), known);
        clean_lines(&page)
    };
    Some((ask.system.as_ref().map(text), text(&ask.prompt)))
}

fn write_prompt_pieces(
    page: &mut String,
    pieces: &[Piece],
    place: (&Flow, &Step<StepId>),
    known: &KnownValues,
) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => page.push_str(text),
            Piece::Value(source) => page.push_str(&value_of_source(source, place, known)),
            Piece::Failure(name) => page.push_str(&format!("⟨{name}⟩")),
            Piece::Item(field) => page.push_str(&format!("⟨{}⟩", field.as_deref().unwrap_or("item"))),
            // A first visit has no failed validator.
            Piece::If { otherwise, .. } => write_prompt_pieces(page, otherwise, place, known),
            Piece::Each { .. } => {}
            Piece::Filled { source, body } => {
                if !value_of_source(source, place, known).is_empty() {
                    write_prompt_pieces(page, body, place, known);
                }
            }
        }
    }
}

fn value_of_source(source: &Source, (flow, step): (&Flow, &Step<StepId>), known: &KnownValues) -> String {
    let from = |text: Option<&String>, name: &str| text.cloned().unwrap_or_else(|| format!("⟨{name}⟩"));
    match source {
        Source::Param(name) => from(known.params.get(&**name), name),
        Source::Task => from(known.task.as_ref(), "task"),
        Source::Input(name) => {
            let input = step.inputs.iter().find(|input| input.name == *name);
            input.map_or_else(|| format!("⟨{name}⟩"), |input| format!("⟨{} of {}⟩", input.key, input.step))
        }
        Source::Handoff { step, key } => format!("⟨{key} of {step}⟩"),
        Source::Report(name) => format!("⟨report {name}⟩"),
        Source::Fact(fact) => fact_of(*fact, flow),
    }
}

fn fact_of(fact: Fact, flow: &Flow) -> String {
    let max = flow.limits.iterations_max;
    match fact {
        Fact::Iteration | Fact::Visit => "1".to_owned(),
        Fact::CompletedIterations | Fact::Checks => "0".to_owned(),
        Fact::MaxIterations | Fact::Remaining => max.to_string(),
        Fact::PreviousSummary => "⟨summary of the previous answer⟩".to_owned(),
        Fact::PreviousResponse => "⟨previous answer⟩".to_owned(),
        Fact::ReportDir => "⟨folder of the run's reports⟩".to_owned(),
        Fact::ReviewScope => "⟨the files that the task has changed⟩".to_owned(),
        Fact::UserInputs => String::new(),
        Fact::Rounds => "⟨number of rounds⟩".to_owned(),
    }
}
