//! Compiles prompt files to templates.

use std::cell::RefCell;
use std::collections::BTreeSet;

use cuegate_flow::{Diagnostic, FileId, Piece, Source, Span, Template};
use serde_json::{Map, Value};

use super::prompt_files::{PromptFile, PromptFiles, Search};
use super::step::StepDefinition;
use super::step_prompt::keys_of;
use super::variables::{Meaning, Scope, Variables};
use crate::codes;
use crate::desk::Desk;
use crate::nearest::{list, nearest};
use crate::template::{FrontMatter, Hole, Node, Part, nodes, parts, split};

/// Compiles the prompts of one registry.
pub(crate) struct Compiler<'c, 'f, 'j> {
    pub(crate) desk: &'c Desk<'f>,
    pub(crate) files: &'c PromptFiles<'j>,
    pub(crate) variables: &'c Variables<'c, 'j>,
    pub(crate) steps: &'c [StepDefinition<'j>],
    /// Files whose front matter has been looked at: findings about it come once, however many steps use the file.
    seen: RefCell<BTreeSet<String>>,
}

/// A compiled prompt.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    /// The template.
    pub(crate) template: Template,
    /// Every variable it reads, as written.
    pub(crate) used: BTreeSet<String>,
    /// Those of its own text that come from outside the run, and where each stands first.
    pub(crate) from_outside: Vec<(String, Span)>,
    /// The variables that its front matter lists.
    pub(crate) listed: Vec<String>,
    /// The values of a failing validator that it reads, and where each stands first.
    pub(crate) failure_values: Vec<(String, Span)>,
}

/// How many sections one prompt may include: sections that include each other twice double otherwise.
const SECTIONS_MAX: usize = 64;

/// Keys of front matters. Others are taken for notes of the author's, so that they are warnings.
const MATTER_KEYS: [&str; 16] = [
    "stepId",
    "name",
    "title",
    "description",
    "version",
    "uvVariables",
    "customVariables",
    "usesStdin",
    "params",
    "c1",
    "c2",
    "c3",
    "edition",
    "adaptation",
    "stepKind",
    "options",
];

impl<'c, 'f, 'j> Compiler<'c, 'f, 'j> {
    /// A compiler.
    pub(crate) fn new(
        desk: &'c Desk<'f>,
        files: &'c PromptFiles<'j>,
        variables: &'c Variables<'c, 'j>,
        steps: &'c [StepDefinition<'j>],
    ) -> Self {
        Compiler { desk, files, variables, steps, seen: RefCell::default() }
    }

    /// Compiles the prompt of a step.
    pub(crate) fn step(&self, file: &PromptFile, scope: Scope<'_>, step: &str) -> Prompt {
        self.compile(file, scope, Some(step), false)
    }

    /// Compiles a system prompt.
    pub(crate) fn system(&self, file: &PromptFile) -> Template {
        self.compile(file, Scope::System, None, false).template
    }

    /// Compiles a failure prompt.
    pub(crate) fn remedy(&self, file: &PromptFile, scope: Scope<'_>, step: &str) -> Prompt {
        self.compile(file, scope, Some(step), true)
    }

    fn compile(&self, file: &PromptFile, scope: Scope<'_>, step: Option<&str>, failure: bool) -> Prompt {
        let mut prompt = Prompt::default();
        let matter = split(&file.text);
        let first = self.seen.borrow_mut().insert(file.path.clone());
        if first {
            self.check_matter(file, &matter);
        }
        let words = |key| matter.matter.as_ref().map(|map| names(map, key)).unwrap_or_default();
        prompt.listed = words("uvVariables");
        let mut body = Body {
            compiler: self,
            prompt: &mut prompt,
            scope,
            step,
            custom: words("customVariables"),
            emptied: Vec::new(),
            file: file.file,
            including: Vec::new(),
            included: 0,
        };
        let mut pieces = Vec::new();
        if failure {
            let (nodes, faults) = nodes(matter.body);
            for fault in faults {
                let at = matter.body_at + fault.at;
                body.push(
                    Diagnostic::error(codes::MALFORMED_TEMPLATE, body.span(at, 2), fault.what)
                        .hint("blocks are `{{#each x}}…{{/each}}` and `{{#if x}}…{{else}}…{{/if}}`"),
                );
            }
            body.nodes(&nodes, matter.body_at, &mut pieces);
        } else {
            body.text(matter.body, matter.body_at, &mut pieces);
        }
        let emptied = std::mem::take(&mut body.emptied);
        if let Some((_, span)) = emptied.first().filter(|_| first) {
            let names: Vec<&str> = emptied.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("nothing fills {} of `{}`", list(&names), file.path);
            self.desk.found.push(
                Diagnostic::warning(codes::EMPTY_CUSTOM_VARIABLE, *span, message)
                    .hint("use `{uv-name}` with a parameter or an input, or remove them"),
            );
        }
        prompt.template = Template { pieces };
        prompt
    }

    fn check_matter(&self, file: &PromptFile, matter: &FrontMatter<'_>) {
        let start = Span::start_of(file.file);
        if let Some((at, reason)) = &matter.fault {
            let at = *at as u32;
            let message = format!("the front matter of `{}` is no YAML: {reason}", file.path);
            self.desk.found.push(
                Diagnostic::error(
                    codes::INVALID_FRONT_MATTER,
                    Span { file: file.file, start: at, end: at + 1 },
                    message,
                )
                .hint("correct it, or remove the lines of `---`"),
            );
        }
        let Some(map) = &matter.matter else { return };
        let unknown: Vec<&str> =
            map.keys().map(String::as_str).filter(|key| !MATTER_KEYS.contains(key)).collect();
        if !unknown.is_empty() {
            let message = format!("{} in the front matter of `{}` has no effect", list(&unknown), file.path);
            self.desk.found.push(Diagnostic::warning(codes::STRAY_KEY, start, message).hint("remove it"));
        }
        for key in ["uvVariables", "customVariables"] {
            let good = match map.get(key) {
                None | Some(Value::Null) => true,
                Some(Value::Array(items)) => items.iter().all(Value::is_string),
                Some(_) => false,
            };
            if !good {
                let message =
                    format!("`{key}` in the front matter of `{}` must be a list of texts", file.path);
                self.desk.found.push(
                    Diagnostic::error(codes::WRONG_TYPE, start, message)
                        .hint("write one name a line, each after `- `"),
                );
            }
        }
    }
}

fn names(matter: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = matter.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The body of a prompt while it is compiled.
struct Body<'b, 'c, 'f, 'j> {
    compiler: &'b Compiler<'c, 'f, 'j>,
    prompt: &'b mut Prompt,
    scope: Scope<'b>,
    step: Option<&'b str>,
    /// Words that the front matter of this file declares.
    custom: Vec<String>,
    /// Those of them that were met, once each.
    emptied: Vec<(String, Span)>,
    file: FileId,
    /// The sections that are being included, outermost first.
    including: Vec<&'j str>,
    included: usize,
}

impl<'j> Body<'_, '_, '_, 'j> {
    fn push(&self, finding: Diagnostic) {
        self.compiler.desk.found.push(match self.step {
            Some(step) => finding.step(step),
            None => finding,
        });
    }

    fn span(&self, at: usize, length: usize) -> Span {
        Span { file: self.file, start: at as u32, end: (at + length) as u32 }
    }

    fn nodes(&mut self, nodes: &[Node<'_>], body_at: usize, pieces: &mut Vec<Piece>) {
        for node in nodes {
            match node {
                Node::Text { text, at } => self.text(text, body_at + at, pieces),
                Node::Value { name, at } => {
                    self.reads_failure_value(name, body_at + at);
                    pieces.push(Piece::Failure((*name).into()));
                }
                Node::Item(field) => pieces.push(Piece::Item(field.map(Into::into))),
                Node::If { name, at, then, otherwise } => {
                    self.reads_failure_value(name, body_at + at);
                    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
                    self.nodes(then, body_at, &mut shown);
                    self.nodes(otherwise, body_at, &mut hidden);
                    pieces.push(Piece::If { name: (*name).into(), then: shown, otherwise: hidden });
                }
                Node::Each { name, at, body } => {
                    self.reads_failure_value(name, body_at + at);
                    let mut inner = Vec::new();
                    self.nodes(body, body_at, &mut inner);
                    pieces.push(Piece::Each { name: (*name).into(), body: inner });
                }
            }
        }
    }

    fn reads_failure_value(&mut self, name: &str, at: usize) {
        if !self.prompt.failure_values.iter().any(|(known, _)| known == name) {
            let span = self.span(at, name.len() + 4);
            self.prompt.failure_values.push((name.to_owned(), span));
        }
    }

    fn text(&mut self, text: &str, text_at: usize, pieces: &mut Vec<Piece>) {
        for part in parts(text) {
            match part {
                Part::Text(text) => pieces.push(Piece::Text(text.into())),
                Part::Hole { hole, written, at } => {
                    let span = self.span(text_at + at, written.len());
                    match hole {
                        Hole::Variable(name) => self.variable(name, written, span, pieces),
                        Hole::Input => pieces.push(Piece::Value(Source::Task)),
                        Hole::Section(name) => self.section(name, written, span, pieces),
                        Hole::Word(word) if self.custom.iter().any(|known| known == word) => {
                            if !self.emptied.iter().any(|(known, _)| known == word) {
                                self.emptied.push((word.to_owned(), span));
                            }
                        }
                        Hole::Word(_) => pieces.push(Piece::Text(written.into())),
                    }
                }
            }
        }
    }

    fn variable(&mut self, name: &str, written: &str, span: Span, pieces: &mut Vec<Piece>) {
        let meaning = self.compiler.variables.meaning(name, self.scope);
        let is_own = self.including.is_empty();
        self.prompt.used.insert(name.to_owned());
        let outside = matches!(meaning, Meaning::Unknown | Meaning::Value(Source::Param(_) | Source::Task));
        if outside && is_own && !self.prompt.from_outside.iter().any(|(known, _)| known == name) {
            self.prompt.from_outside.push((name.to_owned(), span));
        }
        pieces.push(match meaning {
            Meaning::Value(source) => Piece::Value(source),
            Meaning::Text(text) => Piece::Text(text),
            Meaning::Unsupported => {
                let message = format!("`{name}` belongs to a verdict that is not supported yet");
                self.push(
                    Diagnostic::error(codes::UNSUPPORTED_YET, span, message)
                        .hint(format!("give it with `--set {name}=VALUE`, or remove it")),
                );
                Piece::Text(written.into())
            }
            // The check of the whole flow reports it for a step, where it is known whether a run comes there.
            Meaning::Unknown if matches!(self.scope, Scope::Step(_)) => {
                Piece::Value(Source::Param(name.into()))
            }
            Meaning::Unknown => {
                self.unknown_variable(name, span);
                Piece::Text(written.into())
            }
        });
    }

    fn unknown_variable(&self, name: &str, span: Span) {
        let place = match self.scope {
            Scope::System => "the system prompt",
            Scope::Step(_) | Scope::Remedy(_) => "the failure prompt",
        };
        let known = self.compiler.variables.names(self.scope);
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare a parameter `{name}`, or give it with `--set {name}=VALUE`"),
        };
        let message = format!("{place} reads `{name}`, which nobody gives there");
        self.push(Diagnostic::error(codes::UNKNOWN_VARIABLE, span, message).hint(hint));
    }

    fn section(&mut self, name: &str, written: &str, span: Span, pieces: &mut Vec<Piece>) {
        let id = format!("section.{name}");
        let compiler = self.compiler;
        let Some(section) = compiler.steps.iter().find(|step| step.id == id) else {
            let sections = compiler.steps.iter().filter(|step| step.section).map(|step| step.id);
            let hint = match nearest(&id, sections) {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => format!("add a step `{id}`"),
            };
            self.push(
                Diagnostic::error(codes::UNKNOWN_SECTION, span, format!("there is no step `{id}`"))
                    .hint(hint),
            );
            pieces.push(Piece::Text(written.into()));
            return;
        };
        let endless = self.including.contains(&section.id);
        if endless || self.included == SECTIONS_MAX {
            let message = if endless {
                format!("`{id}` includes itself")
            } else {
                format!("the prompt includes more than {SECTIONS_MAX} sections")
            };
            // Named after the section, so that every prompt that includes it says the same, which is said once.
            let finding = Diagnostic::error(codes::ENDLESS_SECTION, span, message).step(section.id);
            compiler.desk.found.push(finding.hint("remove the inclusion"));
            return;
        }
        // A section without a file is reported where it is defined.
        let Search::Found(file) = compiler.files.find(&keys_of(section, None), section.span, compiler.desk)
        else {
            return;
        };
        let matter = split(&file.text);
        let custom = matter.matter.as_ref().map(|map| names(map, "customVariables")).unwrap_or_default();
        self.included += 1;
        self.including.push(section.id);
        let outer =
            (std::mem::replace(&mut self.file, file.file), std::mem::replace(&mut self.custom, custom));
        let emptied = std::mem::take(&mut self.emptied);
        self.text(matter.body, matter.body_at, pieces);
        (self.file, self.custom) = outer;
        self.emptied = emptied;
        self.including.pop();
    }
}
