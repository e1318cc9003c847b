//! Splits the body of a prompt into text and placeholders.

use std::collections::BTreeSet;

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, FileId, Span},
    model::{Fact, Piece, PromptRead, Source},
};

use super::body::Prose;
use super::compile::{Prompt, PromptCompiler, SECTIONS_MAX};
use super::files::Search;
use super::foreign_placeholders;
use super::front_matter::PromptUser;
use super::step_prompt::keys_of;
use super::undeclared_variables;
use super::unresolved_placeholders::UnresolvedPlaceholders;
use super::variables::{Meaning, PromptScope};
use crate::climpt::registry::validation_definition::validators_of;
use crate::codes;
use crate::suggest::find_nearest_name;
use crate::templates::{
    FailureNode, Hole, PromptPart, parse_failure_prompt, parse_prompt_parts, split_front_matter,
};

/// The body of a prompt during compilation.
pub(crate) struct PromptBody<'b, 'c, 'f, 'j> {
    pub(crate) compiler: &'b PromptCompiler<'c, 'f, 'j>,
    pub(crate) prompt: &'b mut Prompt,
    pub(crate) scope: PromptScope<'b>,
    pub(crate) user: PromptUser<'b>,
    pub(crate) step: Option<&'b str>,
    /// Custom variables that the front matter of this file declares.
    pub(crate) custom: Vec<String>,
    /// Those of them without a value that occurred, once each.
    pub(crate) emptied: Vec<(String, Span)>,
    /// Those of them that got a value.
    pub(crate) filled: Vec<String>,
    pub(crate) file: FileId,
    /// The sections that are being included, outermost first.
    pub(crate) including: Vec<&'j str>,
    pub(crate) included: usize,
    /// Unresolved placeholders, which stay text.
    pub(crate) stays: UnresolvedPlaceholders,
}

impl<'j> PromptBody<'_, '_, '_, 'j> {
    pub(crate) fn push(&self, finding: Diagnostic) {
        self.compiler.loader.found.push(match self.step {
            Some(step) => finding.step(step),
            None => finding,
        });
    }

    pub(crate) fn span(&self, at: usize, length: usize) -> Span {
        Span { file: self.file, start: at as u32, end: (at + length) as u32 }
    }

    pub(crate) fn nodes(&mut self, prose: &Prose<'_>, nodes: &[FailureNode<'_>], pieces: &mut Vec<Piece>) {
        for node in nodes {
            match node {
                FailureNode::Text { text, at } => self.text(prose, text, prose.at + at, pieces),
                FailureNode::Value { name, at } => {
                    self.reads_failure_value(name, prose.at + at);
                    pieces.push(Piece::Failure((*name).into()));
                }
                FailureNode::Item { field, .. } => pieces.push(Piece::Item(field.map(Into::into))),
                FailureNode::If { name, at, then, otherwise } => {
                    self.reads_failure_value(name, prose.at + at);
                    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
                    self.nodes(prose, then, &mut shown);
                    self.nodes(prose, otherwise, &mut hidden);
                    pieces.push(Piece::If { name: (*name).into(), then: shown, otherwise: hidden });
                }
                FailureNode::Each { name, at, body } => {
                    self.reads_failure_value(name, prose.at + at);
                    let mut inner = Vec::new();
                    self.nodes(prose, body, &mut inner);
                    pieces.push(Piece::Each { name: (*name).into(), body: inner });
                }
            }
        }
    }

    /// Reports the first place where an ordinary prompt uses the syntax of failure prompts, which stays text.
    pub(crate) fn literal_blocks(&self, prose: &Prose<'_>) {
        let foreign = |at: usize| prose.is_foreign(prose.at + at);
        let found = parse_failure_prompt(prose.body).0.into_iter().find_map(|node| match node {
            FailureNode::Value { name, at } if !foreign(at) => Some((format!("{{{{{name}}}}}"), name, at)),
            FailureNode::Each { name, at, .. } if !foreign(at) => {
                Some((format!("{{{{#each {name}}}}}"), name, at))
            }
            FailureNode::If { name, at, .. } if !foreign(at) => {
                Some((format!("{{{{#if {name}}}}}"), name, at))
            }
            _ => None,
        });
        if let Some((written, name, at)) = found {
            let message = format!("`{written}` stays as it is: only failure prompts are filled so");
            let hint = match self.meant(name) {
                Some(meant) => format!("did you mean `{{{meant}}}`?"),
                None => "write `{uv-name}` for a value of the run".to_owned(),
            };
            let span = self.span(prose.at + at, written.len());
            self.push(Diagnostic::warning(codes::UNKNOWN_PLACEHOLDER, span, message).hint(hint));
        }
    }

    fn reads_failure_value(&mut self, name: &str, at: usize) {
        if !self.prompt.failure_values.iter().any(|(known, _)| known == name) {
            let span = self.span(at, name.len() + 4);
            self.prompt.failure_values.push((name.to_owned(), span));
        }
    }

    pub(crate) fn text(&mut self, prose: &Prose<'_>, text: &str, text_at: usize, pieces: &mut Vec<Piece>) {
        let mut passed = 0;
        for part in parse_prompt_parts(text) {
            let part_at = passed;
            passed += match part {
                PromptPart::Text(text) => text.len(),
                PromptPart::Hole { written, .. } => written.len(),
            };
            match part {
                PromptPart::Text(plain) => {
                    self.lookalikes(plain, text_at + part_at, prose);
                    pieces.push(Piece::Text(plain.into()));
                }
                PromptPart::Hole { hole, written, at } => {
                    let span = self.span(text_at + at, written.len());
                    match hole {
                        Hole::Variable(name) => self.variable(name, written, span, pieces),
                        Hole::Input => {
                            self.prompt.input_text.get_or_insert(span);
                            self.prompt.reads_task = true;
                            pieces.push(Piece::Value(Source::Task));
                        }
                        Hole::Section(name) => self.section(name, written, span, pieces),
                        Hole::Word(word) if self.custom.iter().any(|known| known == word) => {
                            if let Some(filled) = self.custom(word) {
                                self.filled.push(word.to_owned());
                                pieces.extend(filled);
                            } else if !self.emptied.iter().any(|(known, _)| known == word) {
                                self.emptied.push((word.to_owned(), span));
                            }
                        }
                        Hole::Word(word) => {
                            self.foreign_word(word, prose, span);
                            pieces.push(Piece::Text(written.into()));
                        }
                    }
                }
            }
        }
    }

    /// Reports unresolved placeholders in plain text.
    fn lookalikes(&mut self, text: &str, text_at: usize, prose: &Prose<'_>) {
        if !text.contains('{') {
            return;
        }
        let mut told = BTreeSet::new();
        for (at, inner) in foreign_placeholders::in_braces(text) {
            let span = self.span(text_at + at, inner.len() + 2);
            if self.foreign_word(inner, prose, span) {
                told.insert(at);
            }
        }
        for (at, written) in
            foreign_placeholders::find_malformed_placeholders(text).filter(|(at, _)| !told.contains(at))
        {
            let span = self.span(text_at + at, written.len());
            self.malformed(written, prose, span);
        }
    }

    /// Reports malformed starts of placeholders.
    fn malformed(&mut self, written: &str, prose: &Prose<'_>, span: Span) {
        if is_somebody_elses(prose, span) {
            return;
        }
        let inner = written.trim_start_matches('{');
        let length = inner.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'));
        let word = inner[..length.unwrap_or(inner.len())].trim_end_matches('.');
        let is_open = !written.ends_with('}');
        if let Some(meant) = self.meant(word).filter(|_| is_open) {
            self.reads_what_was_meant(&meant);
            let why = "is not replaced: its `}` is missing".to_owned();
            return self.stays.add(&format!("{{{word}"), span, why, format!("did you mean `{{{meant}}}`?"));
        }
        let (meant, hint) = match written.starts_with("{input_text") {
            true => ("input_text", "`}` follows the word at once"),
            // Other texts begin the same way.
            false if written.starts_with("{section.") => return,
            false => ("uv-name", "names are letters, digits, `_` and `-`, and `}` follows them at once"),
        };
        self.stays.add(written, span, format!("is not replaced: it is no `{{{meant}}}`"), hint.to_owned());
    }

    /// Reports a word in braces if it was meant as a placeholder, and returns whether it was.
    fn foreign_word(&mut self, word: &str, prose: &Prose<'_>, span: Span) -> bool {
        let Some(meant) = self.meant(word) else { return false };
        if is_somebody_elses(prose, span) {
            return false;
        }
        let hint = format!("did you mean `{{{meant}}}`?");
        self.stays.add(&format!("{{{word}}}"), span, "is not replaced".to_owned(), hint);
        self.reads_what_was_meant(&meant);
        true
    }

    /// The intended variable is not unused, either.
    fn reads_what_was_meant(&mut self, meant: &str) {
        if let Some(name) = meant.strip_prefix("uv-") {
            self.prompt.used.insert(name.to_owned());
            if let Meaning::Value(Source::Param(param)) = self.compiler.variables.meaning(name, self.scope) {
                self.compiler.reads.param(&param);
            }
        }
        if meant.starts_with("section.") {
            self.compiler.reads.section(meant);
        }
        self.prompt.reads_task |= matches!(meant, "input_text" | "uv-task");
    }

    /// The intended placeholder of a word in braces, if any.
    fn meant(&self, word: &str) -> Option<String> {
        foreign_placeholders::guess_placeholder(word, self.compiler.variables, self.scope, |name| {
            self.section_meant(name)
        })
    }

    /// The section that a misspelled name means.
    fn section_meant(&self, name: &str) -> Option<String> {
        let id = format!("section.{name}");
        if self.compiler.index.has(&id) {
            return Some(id);
        }
        let sections = self.compiler.steps.iter().filter(|step| step.section);
        let names = sections.filter_map(|step| step.id.strip_prefix("section."));
        find_nearest_name(name, names).map(|near| format!("section.{near}"))
    }

    /// The value of a custom variable: the values that every run knows, and two texts composed of them.
    fn custom(&self, word: &str) -> Option<Vec<Piece>> {
        let value = |fact| Piece::Value(Source::Fact(fact));
        let known = [
            ("iteration", Fact::Iteration),
            ("completed_iterations", Fact::CompletedIterations),
            ("max_iterations", Fact::MaxIterations),
            ("remaining", Fact::Remaining),
        ];
        if let Some((_, fact)) = known.into_iter().find(|(name, _)| *name == word) {
            return Some(vec![value(fact)]);
        }
        let summary = |heading: &str| Piece::Filled {
            source: Source::Fact(Fact::PreviousSummary),
            body: vec![Piece::Text(heading.into()), value(Fact::PreviousSummary)],
        };
        match word {
            "previous_summary" if !matches!(self.scope, PromptScope::System) => Some(vec![summary("")]),
            "summary_section" if !matches!(self.scope, PromptScope::System) => {
                Some(vec![summary("## Previous Iteration Summary\n\n")])
            }
            "remaining_text" => {
                Some(vec![value(Fact::Remaining), Piece::Text(" iteration(s) remaining.".into())])
            }
            _ => None,
        }
    }

    fn variable(&mut self, name: &str, written: &str, span: Span, pieces: &mut Vec<Piece>) {
        let meaning = self.compiler.variables.meaning(name, self.scope);
        let is_own = self.including.is_empty();
        self.prompt.used.insert(name.to_owned());
        let outside = matches!(meaning, Meaning::Unknown | Meaning::Value(Source::Param(_) | Source::Task));
        if outside && is_own && self.prompt.outside.insert(name.to_owned()) {
            self.prompt.from_outside.push((name.to_owned(), span));
            if matches!(meaning, Meaning::Unknown) {
                self.prompt.unknown.push(name.to_owned());
            }
        }
        match &meaning {
            Meaning::Value(Source::Task) => self.prompt.reads_task = true,
            Meaning::Value(Source::Param(param)) => self.compiler.reads.param(param),
            Meaning::Unknown => self.compiler.reads.unknown(name),
            _ => {}
        }
        self.remember(&meaning, name, span);
        pieces.push(match meaning {
            Meaning::Value(source) => Piece::Value(source),
            Meaning::Text(text) => Piece::Text(text),
            // It may be an input or a parameter that failed to parse, which has been reported.
            Meaning::Unknown if self.compiler.params_misread || self.may_be_input() => {
                Piece::Text(written.into())
            }
            // For a step, the check of the whole flow reports it, because only that knows whether the step is
            // reachable.
            Meaning::Unknown if matches!(self.scope, PromptScope::Step(_)) => {
                Piece::Value(Source::Param(name.into()))
            }
            // The intended variable also counts as read, so that it is not reported as unused.
            Meaning::Unknown if self.user.yields(name) => {
                let message =
                    format!("`{written}` is not a value of the run: a failing validator yields `{name}`");
                let finding = Diagnostic::error(codes::UNKNOWN_VARIABLE, span, message);
                self.push(finding.hint(format!("write `{{{{{name}}}}}`")));
                self.reads_failure_value(name, span.start as usize);
                Piece::Failure(name.into())
            }
            Meaning::Unknown => {
                self.unknown_variable(name, span);
                Piece::Text(written.into())
            }
        });
    }

    /// Whether the step's inputs could not be read.
    fn may_be_input(&self) -> bool {
        let compiler = self.compiler;
        let step = self.step.and_then(|step| compiler.index.place(step)).map(|at| &compiler.steps[at]);
        step.is_some_and(|step| step.inputs_misread)
    }

    /// Records a place where a step reads a variable that the check of the whole flow may find missing.
    fn remember(&self, meaning: &Meaning, name: &str, span: Span) {
        let step = match (self.step, self.scope) {
            (Some(step), PromptScope::Step(_)) => Str::from(step),
            // A failure prompt belongs to the step that ran the validator.
            (Some(step), PromptScope::Remedy(_)) => validators_of(step).into(),
            _ => return,
        };
        let source = match meaning {
            Meaning::Unknown => Source::Param(name.into()),
            Meaning::Value(source @ (Source::Handoff { .. } | Source::Fact(Fact::PreviousSummary))) => {
                source.clone()
            }
            _ => return,
        };
        let mut places = self.compiler.places.lock();
        places.add(PromptRead { step, source, span });
    }

    fn unknown_variable(&self, name: &str, span: Span) {
        let place = match self.scope {
            PromptScope::System => "the system prompt",
            PromptScope::Step(_) | PromptScope::Remedy(_) => "the failure prompt",
        };
        let known = self.compiler.variables.names(self.scope);
        let finding = undeclared_variables::build_undefined_finding(place, name, span, &known);
        let finding = match self.step {
            Some(step) => finding.step(step),
            None => finding,
        };
        self.compiler.outside.unknown(name, place, finding);
    }

    fn section(&mut self, name: &str, written: &str, span: Span, pieces: &mut Vec<Piece>) {
        let id = format!("section.{name}");
        let compiler = self.compiler;
        let Some(section) = compiler.index.place(&id).map(|at| &compiler.steps[at]) else {
            compiler.reads.unknown_section();
            let hint = match self.section_meant(name) {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => format!("add a step `{id}`"),
            };
            self.push(
                Diagnostic::error(codes::UNKNOWN_TARGET, span, format!("there is no step `{id}`")).hint(hint),
            );
            pieces.push(Piece::Text(written.into()));
            return;
        };
        compiler.reads.section(section.id);
        let endless = self.including.contains(&section.id);
        if endless || self.included == SECTIONS_MAX {
            let message = if endless {
                format!("`{id}` includes itself")
            } else {
                format!("the prompt includes more than {SECTIONS_MAX} sections")
            };
            // The finding is named after the section, so that the same finding from several prompts is reported once.
            let finding = Diagnostic::error(codes::ENDLESS_SECTION, span, message).step(section.id);
            compiler.loader.found.push(finding.hint("remove the inclusion"));
            return;
        }
        // A missing section file is reported at the section's definition.
        let Search::Found(file) = compiler.files.find(&keys_of(section, None), section.span, compiler.loader)
        else {
            return;
        };
        let matter = split_front_matter(&file.text);
        let custom = matter.names("customVariables");
        self.included += 1;
        self.including.push(section.id);
        let outer =
            (std::mem::replace(&mut self.file, file.file), std::mem::replace(&mut self.custom, custom));
        let emptied = std::mem::take(&mut self.emptied);
        let prose = Prose::of(&matter);
        self.text(&prose, prose.body, prose.at, pieces);
        (self.file, self.custom) = outer;
        self.emptied = emptied;
        self.including.pop();
    }
}

/// Whether braces belong to another notation: in a quotation, and after a `$` or another brace.
fn is_somebody_elses(prose: &Prose<'_>, span: Span) -> bool {
    let at = span.start as usize;
    prose.follows(at, '{') || prose.is_foreign(at)
}
