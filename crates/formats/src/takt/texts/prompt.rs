//! Composes the prompt of a step from the parts of a workflow.
//!
//! The order is fixed, and absent parts are omitted: policy, position, knowledge, instruction, task, previous
//! response, answers of persons, reports, quality gates, policy again, and the answer format. Values of the run are
//! inserted as values, so that their text is never parsed for placeholders.

use cuegate_flow::model::{Fact, Piece, Report, Source, Template};

use super::instruction_template::{ReadingStep, TextCompiler, is_source_read};
use super::prompt_texts;
use crate::takt::options::Phases;
use crate::takt::read::FacetText;
use crate::takt::read::ReportDefinition;
use crate::takt::read::SelectableTexts;
use crate::takt::read::{AgentSettings, KeyedText, WorkflowStep};
use crate::takt::routing::condition::Condition;
use crate::takt::routing::rules::{Rule, collapse_to_line};

/// What all prompts of a workflow share.
pub(in crate::takt) struct WorkflowPrompts<'p, 'c> {
    /// The name and description of the workflow.
    pub(in crate::takt) workflow: String,
    pub(in crate::takt) compiler: &'p TextCompiler<'c>,
    pub(in crate::takt) phases: Phases,
}

/// The step that a prompt is for.
pub(in crate::takt) struct Subject<'s, 'j> {
    pub(in crate::takt) step: &'s WorkflowStep<'j>,
    pub(in crate::takt) asked: &'s AgentSettings<'j>,
    /// What of its work the prompt is for.
    pub(in crate::takt) duty: &'s Duty,
    /// The position among the steps, such as `2 of 9`; `None` for a member.
    pub(in crate::takt) position: Option<String>,
}

/// What of the work of a step a prompt is for.
pub(in crate::takt) enum Duty {
    /// All of it.
    Whole,
    /// The part in this value.
    Part(Source),
    /// To say where it goes on after the parts are done.
    Closing,
}

/// A prompt under construction.
#[derive(Default)]
pub(in crate::takt) struct PromptBuilder {
    pieces: Vec<Piece>,
    /// The text after the last piece.
    text: String,
}

impl PromptBuilder {
    pub(in crate::takt) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn value(&mut self, source: Source) {
        self.push(Piece::Value(source));
    }

    /// Appends a piece that is not plain text.
    fn push(&mut self, piece: Piece) {
        self.flush();
        self.pieces.push(piece);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(self.text.as_str().into()));
            self.text.clear();
        }
    }

    pub(in crate::takt) fn pieces(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.text(&text),
                other => self.push(other),
            }
        }
    }

    /// Appends a heading and a value, both omitted when the value is empty.
    pub(in crate::takt) fn filled(&mut self, heading: &str, source: Source) {
        let body =
            vec![Piece::Text(heading.into()), Piece::Value(source.clone()), Piece::Text("\n\n".into())];
        self.push(Piece::Filled { source, body });
    }

    pub(in crate::takt) fn template(mut self) -> Template {
        self.flush();
        Template { pieces: self.pieces }
    }
}

impl WorkflowPrompts<'_, '_> {
    /// The prompt for the work of a step.
    pub(in crate::takt) fn work(&self, subject: &Subject<'_, '_>) -> Template {
        let Subject { step, asked, duty, .. } = subject;
        let previous = asked.previous || matches!(duty, Duty::Closing);
        let mut page = PromptBuilder::default();
        write_keyed_texts(&mut page, prompt_texts::POLICY, &asked.policies);
        write_selectable_texts(&mut page, prompt_texts::POLICY, &asked.policies, asked, |texts| {
            &texts.policies
        });
        self.place(&mut page, subject);
        write_keyed_texts(&mut page, prompt_texts::KNOWLEDGE, &asked.knowledge);
        write_selectable_texts(&mut page, prompt_texts::KNOWLEDGE, &asked.knowledge, asked, |texts| {
            &texts.knowledge
        });
        let reader = ReadingStep { step: step.name.text, monitor: false };
        let instruction =
            asked.instruction.as_ref().map_or_else(Vec::new, |body| self.compiler.compile(body, reader));
        if let Some(body) = asked.instruction.as_ref().filter(|_| !asked.previous)
            && is_source_read(&instruction, &Source::Fact(Fact::PreviousResponse))
            && !previous
        {
            self.compiler.untold(body, reader);
        }
        for (index, rule) in asked.rules.iter().enumerate() {
            page.text(if index == 0 { prompt_texts::RULES } else { "" });
            page.pieces(self.compiler.compile(rule, reader));
            end_prompt_part(&mut page);
        }
        match duty {
            Duty::Whole => {}
            Duty::Closing => page.text(prompt_texts::CLOSING),
            Duty::Part(source) => {
                page.text(prompt_texts::PART);
                page.value(source.clone());
                page.text("\n\n");
            }
        }
        self.write_instruction(&mut page, instruction, previous && !matches!(duty, Duty::Part(_)));
        self.reports(&mut page, asked);
        write_quality_gates(&mut page, asked);
        policy_again(&mut page, &asked.policies);
        self.answer(&mut page, &step.rules, asked);
        page.template()
    }

    fn place(&self, page: &mut PromptBuilder, subject: &Subject<'_, '_>) {
        let Subject { step, asked, position, .. } = subject;
        page.text(prompt_texts::PLACE);
        page.text(&format!("- Workflow: {}\n- Step: {}", self.workflow, step.name.text));
        if let Some(position) = position {
            page.text(&format!(" ({position})"));
        }
        if let Some(description) = step.description {
            page.text(&format!(": {}", collapse_to_line(description)));
        }
        if let Some(title) = asked.title {
            page.text(&format!("\n- You are: {}", collapse_to_line(title)));
        }
        page.text("\n- Iteration ");
        page.value(Source::Fact(Fact::Iteration));
        page.text(" of at most ");
        page.value(Source::Fact(Fact::MaxIterations));
        page.text("; visit ");
        page.value(Source::Fact(Fact::Visit));
        page.text(" of this step\n");
        page.text(if asked.boundary.permission.may_write() {
            prompt_texts::MAY_EDIT
        } else {
            prompt_texts::MAY_READ
        });
        if asked.commits_nothing && asked.boundary.permission.may_write() {
            page.text(prompt_texts::COMMITS_NOTHING);
        }
        page.text(prompt_texts::REPORT_DIR);
        page.value(Source::Fact(Fact::ReportDir));
        page.text("\n\n");
    }

    /// Appends the instruction, then the task and the previous response unless the instruction contains them.
    pub(in crate::takt) fn write_instruction(
        &self,
        page: &mut PromptBuilder,
        instruction: Vec<Piece>,
        previous: bool,
    ) {
        let has = |fact: Fact| is_source_read(&instruction, &Source::Fact(fact));
        let (task, response, inputs) =
            (is_source_read(&instruction, &Source::Task), has(Fact::PreviousResponse), has(Fact::UserInputs));
        page.text(prompt_texts::INSTRUCTION);
        page.pieces(without_previous(instruction, previous));
        end_prompt_part(page);
        if !task {
            page.filled(prompt_texts::TASK, Source::Task);
        }
        if previous && !response {
            page.filled(prompt_texts::PREVIOUS, Source::Fact(Fact::PreviousResponse));
        }
        if !inputs {
            page.filled(prompt_texts::USER_INPUTS, Source::Fact(Fact::UserInputs));
        }
    }

    /// How the parts of a step are asked. An answer with data is one JSON object in any case.
    pub(in crate::takt) fn phases_of(&self, asked: &AgentSettings<'_>) -> Phases {
        if asked.structured.is_some() { Phases::Fused } else { self.phases }
    }

    fn reports(&self, page: &mut PromptBuilder, asked: &AgentSettings<'_>) {
        if asked.reports.is_empty() {
            return;
        }
        let phases = self.phases_of(asked);
        match phases {
            Phases::Fused => page.text(prompt_texts::REPORTS_FUSED),
            Phases::Separate => page.text(prompt_texts::REPORTS_SEPARATE),
        }
        for report in &asked.reports {
            end_prompt_part(page);
            page.text(&format!("## {}\n", title_of_report(report)));
            if phases == Phases::Fused {
                self.form(page, report);
            }
        }
        end_prompt_part(page);
    }

    /// Appends how to write a report: its order and its format.
    fn form(&self, page: &mut PromptBuilder, report: &ReportDefinition) {
        let reader = ReadingStep { step: "", monitor: false };
        if let Some(order) = &report.order {
            end_prompt_part(page);
            page.pieces(self.compiler.compile(order, reader));
            end_prompt_part(page);
        }
        if let Some(format) = &report.format {
            end_prompt_part(page);
            page.text(prompt_texts::FORMAT);
            page.pieces(self.compiler.compile(format, reader));
            end_prompt_part(page);
        }
    }

    /// The prompt for a report in a separate ask.
    pub(in crate::takt) fn report(&self, report: &ReportDefinition) -> Report {
        let mut page = PromptBuilder::default();
        page.text(&format!("# {}\n\n{}\n", title_of_report(report), prompt_texts::REPORT_ASK));
        self.form(&mut page, report);
        Report { name: report.name.clone(), request: page.template(), span: report.span }
    }

    fn answer(&self, page: &mut PromptBuilder, rules: &[Rule<'_>], asked: &AgentSettings<'_>) {
        page.text(prompt_texts::ANSWER);
        let told = rules.iter().any(|rule| !rule.hidden && rule.kind == Condition::Text);
        match self.phases_of(asked) {
            Phases::Fused => {
                page.text(prompt_texts::ANSWER_FUSED);
                if told {
                    page.text(prompt_texts::OUTCOME);
                    write_outcomes(page, rules);
                    if rules.iter().any(|rule| !rule.hidden && rule.kind != Condition::Text) {
                        page.text(prompt_texts::OUTCOME_NONE);
                    }
                }
                page.text(prompt_texts::RESPONSE);
                if asked.structured.is_some() {
                    page.text(prompt_texts::STRUCTURED);
                }
                if !asked.reports.is_empty() {
                    page.text(prompt_texts::REPORTS);
                }
                page.text(prompt_texts::BLOCKED);
            }
            Phases::Separate if told => {
                page.text(prompt_texts::ANSWER_SEPARATE);
                write_outcomes(page, rules);
                page.text(prompt_texts::BLOCKED_SEPARATE);
            }
            Phases::Separate => {
                page.text(prompt_texts::ANSWER_PLAIN);
                page.text(prompt_texts::BLOCKED_SEPARATE);
            }
        }
    }
}

/// Appends the outcomes with their tag numbers, and what the answer must add for each.
fn write_outcomes(page: &mut PromptBuilder, rules: &[Rule<'_>]) {
    for (index, rule) in rules.iter().enumerate() {
        if rule.hidden || rule.kind != Condition::Text {
            continue;
        }
        page.text(&format!("  {}. {}\n", index + 1, rule.outcome));
        if let Some(appendix) = rule.appendix {
            page.text(prompt_texts::APPENDIX);
            for line in appendix.trim_end().lines() {
                page.text(&format!("     {line}\n"));
            }
        }
    }
}

/// Appends texts under one heading.
pub(in crate::takt) fn write_keyed_texts(page: &mut PromptBuilder, heading: &str, texts: &[KeyedText]) {
    for (index, named) in texts.iter().enumerate() {
        page.text(if index == 0 { heading } else { "---\n\n" });
        write_facet_text(page, &named.body);
    }
}

/// Appends the texts that may be selected, each shown if it is. A text that the step has anyway is not repeated.
fn write_selectable_texts(
    page: &mut PromptBuilder,
    heading: &str,
    own: &[KeyedText],
    asked: &AgentSettings<'_>,
    of: impl Fn(&SelectableTexts) -> &[KeyedText],
) {
    let known: Vec<&str> = own.iter().map(|named| &*named.body.text).collect();
    for texts in &asked.selectable {
        let mut body = PromptBuilder::default();
        for named in of(texts).iter().filter(|named| !known.contains(&&*named.body.text)) {
            // The heading of the step's own texts holds for these too.
            body.text(if own.is_empty() { heading } else { "---\n\n" });
            write_facet_text(&mut body, &named.body);
        }
        let body = body.template().pieces;
        if !body.is_empty() {
            page.push(Piece::Filled { source: texts.when.clone(), body });
        }
    }
}

/// Appends a text verbatim: only instructions have placeholders.
fn write_facet_text(page: &mut PromptBuilder, body: &FacetText) {
    page.text(body.text.trim_end());
    page.text("\n\n");
}

fn write_quality_gates(page: &mut PromptBuilder, asked: &AgentSettings<'_>) {
    if asked.gates.texts.is_empty() && asked.gates.commands.is_empty() {
        return;
    }
    page.text(prompt_texts::GATES);
    for gate in &asked.gates.texts {
        page.text(&format!("- {}\n", gate.trim().replace('\n', "\n  ")));
    }
    for gate in &asked.gates.commands {
        page.text(&format!("- `{}` {}\n", collapse_to_line(&gate.command), prompt_texts::GATE_COMMAND));
    }
    page.text("\n");
}

fn policy_again(page: &mut PromptBuilder, policies: &[KeyedText]) {
    if policies.is_empty() {
        return;
    }
    page.text(prompt_texts::POLICY_AGAIN);
    let keys: Vec<&str> = policies.iter().filter_map(|policy| policy.key.as_deref()).collect();
    if !keys.is_empty() {
        page.text(&format!(": {}", keys.join(", ")));
    }
    page.text(".\n\n");
}

/// The instruction of a step without the previous response: that placeholder becomes empty.
fn without_previous(pieces: Vec<Piece>, previous: bool) -> Vec<Piece> {
    let unwanted = Piece::Value(Source::Fact(Fact::PreviousResponse));
    pieces.into_iter().filter(|piece| previous || *piece != unwanted).collect()
}

/// The report's file name, and its label if it has one.
fn title_of_report(report: &ReportDefinition) -> String {
    match &report.label {
        Some(label) => format!("{} ({label})", report.name),
        None => report.name.to_string(),
    }
}

/// Ends a part with an empty line.
pub(in crate::takt) fn end_prompt_part(page: &mut PromptBuilder) {
    match page.pieces.last() {
        _ if page.text.ends_with("\n\n") => {}
        _ if page.text.ends_with('\n') => page.text("\n"),
        // A filled value ends its own part.
        Some(Piece::Filled { .. }) if page.text.is_empty() => {}
        _ => page.text("\n\n"),
    }
}
