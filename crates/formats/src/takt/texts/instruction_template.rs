//! The syntax of instructions: `{task}`, `{report:file}` and others. Any other `{word}` is plain text.

use std::cell::{OnceCell, RefCell};

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{Fact, Piece, Source},
};

use crate::codes;
use crate::findings::Findings;
use crate::suggest::find_nearest_name;
use crate::takt::read::FacetText;
use crate::takt::routing::expression::{Reference, Scope};
use crate::takt::texts::step_values::{StepValues, TASK_PARTS, lines_key};
use crate::templates::QuotedRanges;

/// The values that an instruction can read, by placeholder name.
const VALUES: [(&str, Source); 9] = [
    ("task", Source::Task),
    ("previous_response", Source::Fact(Fact::PreviousResponse)),
    ("iteration", Source::Fact(Fact::Iteration)),
    ("max_iterations", Source::Fact(Fact::MaxIterations)),
    ("movement_iteration", Source::Fact(Fact::Visit)),
    ("report_dir", Source::Fact(Fact::ReportDir)),
    ("user_inputs", Source::Fact(Fact::UserInputs)),
    ("review_scope", Source::Fact(Fact::ReviewScope)),
    (CYCLE_COUNT, Source::Fact(Fact::Rounds)),
];

/// Names that later versions use for some of them.
const LATER: [(&str, &str); 3] = [
    ("step_iteration", "movement_iteration"),
    ("max_steps", "max_iterations"),
    ("max_movements", "max_iterations"),
];

/// A value that only the judge of a monitor can read.
const CYCLE_COUNT: &str = "cycle_count";

/// The prefix of a report placeholder, before the colon.
const REPORT: &str = "report";

/// Compiles the texts of a piece to template pieces.
pub(crate) struct TextCompiler<'c> {
    pub(crate) found: &'c Findings,
    /// Names set with `--set`.
    pub(crate) set: &'c [String],
    /// Every report that any step writes.
    pub(crate) reports: Vec<Str>,
    /// Whether `reports` may be incomplete because some steps could not be read.
    pub(crate) may_be_more: bool,
    /// What steps hand on.
    pub(crate) values: StepValues,
    /// Undeclared reports that were already reported.
    unwritten: RefCell<Vec<Str>>,
}

/// The step that reads a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadingStep<'s> {
    /// The step's name.
    pub(crate) step: &'s str,
    /// Whether the step is the judge of a monitor.
    pub(crate) monitor: bool,
}

impl<'c> TextCompiler<'c> {
    /// Creates a compiler for a workflow whose steps write `reports`.
    pub(crate) fn new(found: &'c Findings, set: &'c [String], reports: Vec<Str>) -> TextCompiler<'c> {
        TextCompiler {
            found,
            set,
            reports,
            may_be_more: false,
            values: StepValues::default(),
            unwritten: RefCell::default(),
        }
    }

    /// Compiles a text with placeholders.
    pub(crate) fn compile(&self, body: &FacetText, reader: ReadingStep<'_>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let (mut rest, mut plain) = (&*body.text, String::new());
        let quoted = OnceCell::new();
        // The number of opening braces before each placeholder locates it for findings.
        let (mut braces, mut unclosed) = (0, Vec::new());
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            let inner = &rest[open + 1..];
            let nth = braces;
            braces += 1;
            // A placeholder is on one line and contains no brace.
            let close = inner.find(['{', '}', '\n']).filter(|at| inner.as_bytes()[*at] == b'}');
            if let Some(text) = close.and_then(|close| self.fixed(&inner[..close], body)) {
                plain.push_str(&text);
                rest = &inner[close.unwrap_or_default() + 1..];
                continue;
            }
            if let (Some(at), Some(parts)) =
                (close, close.and_then(|close| self.task_text(&inner[..close], body)))
            {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
                }
                pieces.extend(parts);
                rest = &inner[at + 1..];
                continue;
            }
            let source = close.and_then(|close| self.source(&inner[..close], body, reader));
            match (close, source) {
                (Some(close), Some(source)) => {
                    let wrapped = plain.ends_with('{') && inner[close + 1..].starts_with('}');
                    if wrapped || plain.ends_with('$') {
                        self.wrapped(&inner[..close], wrapped, body, reader);
                    }
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
                    }
                    pieces.push(Piece::Value(source));
                    rest = &inner[close + 1..];
                }
                _ => {
                    let at = body.text.len() - inner.len() - 1;
                    let is_quoted = || quoted.get_or_init(|| QuotedRanges::of(&body.text)).has(at);
                    if close.is_none()
                        && let Some(name) = unclosed_name(inner).filter(|_| !is_quoted())
                    {
                        unclosed.push((nth, name));
                    }
                    plain.push('{');
                    rest = inner;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain.into()));
        }
        self.report_unclosed(&unclosed, body, reader);
        pieces
    }

    /// The text of a placeholder whose value does not change during a run.
    fn fixed(&self, name: &str, body: &FacetText) -> Option<String> {
        if let Some(var) = name.strip_prefix("var:") {
            // As in TAKT, so that an instruction can say what to do then.
            return Some(
                body.context.vars.get(var.trim()).cloned().unwrap_or_else(|| "unspecified".to_owned()),
            );
        }
        None
    }

    /// The value that a step hands on, in `{structured:STEP.FIELD}`, `{context:STEP.NAME.FIELD}` or
    /// `{effect:STEP.TYPE.FIELD}`. The step is one of the same call of a workflow.
    fn data(
        &self,
        (scope, written): (Scope, &str),
        name: &str,
        body: &FacetText,
        reader: ReadingStep<'_>,
    ) -> Option<Source> {
        let Some(reference) = Reference::parse(scope, written) else {
            let message = format!("`{{{name}}}` is not replaced: it names no field");
            self.warn(codes::UNKNOWN_PLACEHOLDER, name, body, reader, message, "write `STEP.FIELD`");
            return None;
        };
        match self.values.find(&reference, &body.context.prefixes) {
            Ok((step, key)) => Some(Source::Handoff { step, key }),
            Err(unknown) => {
                let message = format!("`{{{name}}}` is not replaced: {}", unknown.message);
                self.warn(codes::UNKNOWN_PLACEHOLDER, name, body, reader, message, &unknown.hint);
                None
            }
        }
    }

    /// The parts of the text of a planned task, if the placeholder means one that is made of other fields.
    fn task_text(&self, name: &str, body: &FacetText) -> Option<Vec<Piece>> {
        let reference = Reference::parse(Scope::Structured, name.strip_prefix("structured:")?)?;
        let prefixes = &body.context.prefixes;
        if !self.values.is_made_text(&reference, prefixes) {
            return None;
        }
        let mut pieces = Vec::new();
        for (index, (field, heading)) in TASK_PARTS.into_iter().enumerate() {
            let before = if index == 0 { "" } else { "\n\n" };
            pieces.push(Piece::Text(format!("{before}## {heading}\n\n").into()));
            let part = Reference { field: field.to_owned(), ..reference.clone() };
            let (step, _) = self.values.find(&part, prefixes).ok()?;
            let key: Str = lines_key(field).into();
            self.values.hand_on(&step, &key);
            pieces.push(Piece::Value(Source::Handoff { step, key }));
        }
        Some(pieces)
    }

    fn source(&self, name: &str, body: &FacetText, reader: ReadingStep<'_>) -> Option<Source> {
        if let Some(data) = Scope::split(name, ':').filter(|_| !name.contains(char::is_whitespace)) {
            return self.data(data, name, body, reader);
        }
        if let Some(report) = name.strip_prefix(REPORT).and_then(|rest| rest.strip_prefix(':')) {
            let written = report.trim();
            let report = &self.in_scope(written, body);
            if report.is_empty() {
                let hint = match self.reports.first() {
                    Some(known) => format!("name one, as `{{report:{known}}}`"),
                    None => "name one, or remove it".to_owned(),
                };
                let message = format!("`{{{name}}}` is not replaced: it names no report");
                self.warn(codes::UNKNOWN_PLACEHOLDER, name, body, reader, message, &hint);
                return None;
            }
            self.check_report(report, name, body, reader);
            return Some(Source::Report(report.as_str().into()));
        }
        if name == CYCLE_COUNT && !reader.monitor {
            let hint = "only the judge of a loop monitor knows how many rounds there were; remove it";
            self.warn(
                codes::UNUSED_KEY,
                name,
                body,
                reader,
                format!("`{{{name}}}` is not replaced here"),
                hint,
            );
            return None;
        }
        if let Some(source) = source_of_placeholder(name) {
            return Some(source);
        }
        if self.set.iter().any(|known| known == name) {
            return Some(Source::Param(name.into()));
        }
        if let Some((_, own)) = LATER.iter().find(|(later, _)| *later == name) {
            return source_of_placeholder(own);
        }
        let prefixed = ["uv-", "section."].iter().any(|prefix| name.starts_with(prefix));
        if name == "input_text" || (prefixed && !name.contains(char::is_whitespace)) {
            self.of_registries(name, body, reader);
            return None;
        }
        let word =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let known = || VALUES.iter().map(|(known, _)| *known);
        // White space inside the braces counts as a typo, like a wrong letter.
        // In the form of a report, a word in braces is a place that the agent fills in.
        let may_be_meant = word && !reader.step.is_empty();
        let near = known()
            .find(|known| *known == name.trim())
            .or(find_nearest_name(name, known()).filter(|_| may_be_meant));
        if let Some(near) =
            near.map(str::to_owned).or_else(|| near_report(name)).or_else(|| self.known_report(name))
        {
            let hint = format!("did you mean `{{{near}}}`?");
            let message = format!("`{{{name}}}` is not replaced");
            self.warn(codes::UNKNOWN_PLACEHOLDER, name, body, reader, message, &hint);
        }
        None
    }

    /// The name of a report as its writer has it: of the same call of a workflow, or of a call around it.
    fn in_scope(&self, name: &str, body: &FacetText) -> String {
        let names = body.context.prefixes.iter().map(|prefix| format!("{prefix}{name}"));
        let known = |name: &String| self.reports.iter().any(|known| **known == **name);
        names.into_iter().find(known).unwrap_or_else(|| name.to_owned())
    }

    /// Reports `{previous_response}` in an instruction whose step does not receive the previous response.
    pub(crate) fn untold(&self, body: &FacetText, reader: ReadingStep<'_>) {
        let message =
            "`{previous_response}` is always empty here: `pass_previous_response` is `false`".to_owned();
        let hint = "remove the one or the other";
        self.warn(codes::UNUSED_KEY, "previous_response", body, reader, message, hint);
    }

    /// Reports placeholders without a closing brace, located by the number of opening braces before each.
    fn report_unclosed(&self, unclosed: &[(usize, &str)], body: &FacetText, reader: ReadingStep<'_>) {
        let places = if unclosed.is_empty() { Vec::new() } else { body.braces() };
        for (nth, name) in unclosed {
            let message = format!("`{{{name}` is not replaced: no brace closes it");
            let place = body.place_at(places.get(*nth).copied(), &format!("{{{name}"));
            let finding = Diagnostic::warning(codes::UNKNOWN_PLACEHOLDER, place, message);
            self.found.push(finding.step(reader.step).hint(format!("write `{{{name}}}`")));
        }
    }

    /// Reports a placeholder in the syntax of another tool: the inner part is substituted, the surrounding characters
    /// stay.
    fn wrapped(&self, name: &str, braces: bool, body: &FacetText, reader: ReadingStep<'_>) {
        let written = if braces { format!("{{{{{name}}}}}") } else { format!("${{{name}}}") };
        let message = format!("in `{written}` only `{{{name}}}` is filled in; what stands around it stays");
        let finding = Diagnostic::warning(codes::UNKNOWN_PLACEHOLDER, body.place(&written), message);
        self.found.push(finding.step(reader.step).hint(format!("write `{{{name}}}`")));
    }

    /// Reports a placeholder in the syntax of step registries.
    fn of_registries(&self, name: &str, body: &FacetText, reader: ReadingStep<'_>) {
        let hint = match name {
            "input_text" | "uv-task" => "write `{task}`",
            "uv-previous_summary" => "write `{previous_response}`",
            _ => {
                "a workflow has no parameters and no sections: write the text itself, or give it by `{task}`"
            }
        };
        let message = format!("`{{{name}}}` is not replaced: it is a placeholder of step registries");
        let finding =
            Diagnostic::warning(codes::UNKNOWN_PLACEHOLDER, body.place(&format!("{{{name}}}")), message);
        self.found.push(finding.step(reader.step).hint(hint));
    }

    /// The report that another notation refers to, such as `{report.plan.md}`.
    fn known_report(&self, name: &str) -> Option<String> {
        let (word, rest) = name.split_at_checked(REPORT.len())?;
        let rest = rest.trim_start_matches(['.', '_', '-', '/', ' ', ':']).trim();
        let is_one = word.eq_ignore_ascii_case(REPORT) && !rest.is_empty();
        let known = self.similar(rest).filter(|_| is_one)?;
        Some(format!("{REPORT}:{known}"))
    }

    /// The first report whose name ends with `name`, with or without its extension.
    fn similar(&self, name: &str) -> Option<&str> {
        let is_similar = |known: &&str| {
            known.ends_with(name) || known.rsplit_once('.').is_some_and(|(stem, _)| stem.ends_with(name))
        };
        self.reports.iter().map(|known| &**known).find(is_similar)
    }

    fn check_report(&self, report: &str, name: &str, body: &FacetText, reader: ReadingStep<'_>) {
        if self.may_be_more || self.reports.iter().any(|known| **known == *report) {
            return;
        }
        if self.unwritten.borrow().iter().any(|known| **known == *report) {
            return;
        }
        self.unwritten.borrow_mut().push(report.into());
        let similar = self.similar(report);
        let hint =
            match similar.or_else(|| find_nearest_name(report, self.reports.iter().map(|known| &**known))) {
                Some(near) => format!("did you mean `{{report:{near}}}`?"),
                None => "name a report of `output_contracts`".to_owned(),
            };
        let message = format!("no step writes the report `{report}`");
        self.warn(codes::UNWRITTEN_REPORT, name, body, reader, message, &hint);
    }

    fn warn(
        &self,
        code: &'static str,
        name: &str,
        body: &FacetText,
        reader: ReadingStep<'_>,
        message: String,
        hint: &str,
    ) {
        let place = body.place(&format!("{{{name}}}"));
        self.found.push(Diagnostic::warning(code, place, message).step(reader.step).hint(hint));
    }
}

/// The value behind a placeholder name.
fn source_of_placeholder(name: &str) -> Option<Source> {
    VALUES.iter().find(|(known, _)| *known == name).map(|(_, source)| source.clone())
}

/// The name of a placeholder that starts here and has no closing brace on its line.
fn unclosed_name(inner: &str) -> Option<&str> {
    let line = inner.split(['{', '}', '\n']).next().unwrap_or_default();
    let word = line.split(char::is_whitespace).next().unwrap_or_default();
    let name = word.trim_end_matches([',', '.', ';', ':', ')']);
    let is_report = name.strip_prefix("report:").is_some_and(|report| !report.is_empty());
    (is_report || VALUES.iter().any(|(known, _)| *known == name)).then_some(name)
}

/// The likely report name, if the word before the colon is a misspelling of `report`.
fn near_report(name: &str) -> Option<String> {
    let (word, file) = name.split_once(':')?;
    let (word, file) = (word.trim(), file.trim());
    (!file.is_empty() && find_nearest_name(word, [REPORT]).is_some()).then(|| format!("{REPORT}:{file}"))
}

/// Whether any piece reads a value.
pub(crate) fn is_source_read(pieces: &[Piece], source: &Source) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Value(read) if read == source))
}
