//! Validators, failure patterns and validation steps as written.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::{Extractor, Success},
};

use crate::climpt::registry::step_definition::read_schema_reference;
use crate::codes;
use crate::findings::Findings;
use crate::suggest::{format_suggestion, or_hint};
use crate::values::json::{Entry, Fields, Text};

/// What a condition of success can be.
const SUCCESS_HINT: &str =
    "write `empty`, `non-empty`, or `exitCode:0` with the code from 0 to 255 that means success";

/// A `failurePatterns` entry.
#[derive(Debug)]
pub(crate) struct FailurePattern<'j> {
    pub(crate) name: &'j str,
    /// Where its name stands.
    pub(crate) span: Span,
    /// Edition of the failure prompt.
    pub(crate) edition: Option<Text<'j>>,
    /// Adaptation of the failure prompt.
    pub(crate) adaptation: Option<Text<'j>>,
    /// Values the prompt uses.
    pub(crate) params: Vec<Text<'j>>,
    /// Whether some of it could not be read.
    pub(crate) misread: bool,
}

/// A `validators` entry.
#[derive(Debug)]
pub(crate) struct ValidatorDefinition<'j> {
    pub(crate) name: &'j str,
    /// Where its name stands.
    pub(crate) span: Span,
    /// What the shell runs.
    pub(crate) command: Option<Text<'j>>,
    /// When it passes.
    pub(crate) success: Option<Success>,
    /// Which failure pattern tells about its failure.
    pub(crate) pattern: Option<Text<'j>>,
    /// What is taken out of its output, by name.
    pub(crate) extract: Vec<(Text<'j>, Extractor)>,
    /// Whether some of it could not be read.
    pub(crate) misread: bool,
}

/// A `validationSteps` entry.
#[derive(Debug)]
pub(crate) struct ValidationStep<'j> {
    /// The closure step it belongs to.
    pub(crate) id: &'j str,
    /// Where that stands.
    pub(crate) span: Span,
    /// What people call it.
    pub(crate) name: Option<&'j str>,
    /// Second part of failure prompts' paths.
    pub(crate) c2: Option<Text<'j>>,
    /// Third part of failure prompts' paths.
    pub(crate) c3: Option<Text<'j>>,
    /// The validators, in order.
    pub(crate) conditions: Vec<Text<'j>>,
    /// What happens when one fails.
    pub(crate) on_failure: OnFailure,
    /// Where it is written how often it is tried again.
    pub(crate) attempts_span: Option<Span>,
    /// Whether some of it could not be read.
    pub(crate) misread: bool,
}

/// What happens when a validator fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// A remedy, so many times at most.
    Retry(u32),
    /// The run has failed.
    Abort,
    /// It passes all the same.
    Skip,
}

impl Default for OnFailure {
    fn default() -> OnFailure {
        OnFailure::Retry(ATTEMPTS_DEFAULT)
    }
}

/// The greatest exit code of a process: the system keeps eight bits of it.
const EXIT_CODE_MAX: i32 = 255;

/// Remedies of a closure step in a run when `maxAttempts` says nothing.
const ATTEMPTS_DEFAULT: u32 = 3;

impl<'j> FailurePattern<'j> {
    /// Reads one of those that a key holds.
    pub(crate) fn read(key: &str, entry: &'j Entry, found: &Findings) -> Option<FailurePattern<'j>> {
        let what = format!("`{key}.{}`", entry.key);
        let fields = Fields::of(&entry.value, &what, None, found)?;
        fields.required("description");
        let mut pattern = FailurePattern {
            name: &entry.key,
            span: entry.key_span,
            edition: fields.required_part("edition"),
            adaptation: fields.part("adaptation"),
            params: fields.texts("params").unwrap_or_default(),
            misread: false,
        };
        fields.finish();
        pattern.misread = found.is_poisoned(entry.span());
        Some(pattern)
    }
}

impl<'j> ValidatorDefinition<'j> {
    /// Reads one.
    pub(crate) fn read(entry: &'j Entry, found: &Findings) -> Option<ValidatorDefinition<'j>> {
        let what = format!("`validators.{}`", entry.key);
        let fields = Fields::of(&entry.value, &what, None, found)?;
        if fields.entry("type").is_none() {
            fields.missing("type");
        }
        fields.one_of("type", &["command"]);
        let success = fields.required("successWhen").and_then(|text| {
            let success = success_when(text.text);
            let message = match success {
                None => {
                    fields.push(no_success(text));
                    return None;
                }
                Some(Success::ExitCode(code)) if !(0..=EXIT_CODE_MAX).contains(&code) => {
                    format!("no command ends with the exit code {code}, so this validator never passes")
                }
                Some(_) => return success,
            };
            fields.invalid(text.span, message, SUCCESS_HINT);
            success
        });
        if fields.nullable("failurePattern").is_none() {
            fields.lacks(
                Diagnostic::error(
                    codes::MISSING_KEY,
                    entry.key_span,
                    format!("validator `{}` names no `failurePattern`", entry.key),
                )
                .hint("name the pattern whose prompt tells the agent what failed"),
            );
        }
        let mut validator = ValidatorDefinition {
            name: &entry.key,
            span: entry.key_span,
            command: fields.command("command"),
            success,
            pattern: fields.filled("failurePattern"),
            extract: read_extractors(&fields),
            misread: false,
        };
        fields.finish();
        validator.misread = found.is_poisoned(entry.span());
        Some(validator)
    }
}

fn read_extractors<'j>(fields: &Fields<'j, '_>) -> Vec<(Text<'j>, Extractor)> {
    let mut extractors = Vec::new();
    for entry in fields.names("extractParams") {
        let Some(name) = entry.value.as_text() else {
            fields.wrong_type(&entry.key, &entry.value, "the name of an extractor");
            // Its name is there to be read all the same.
            extractors.push((Text { text: &entry.key, span: entry.key_span }, Extractor::Unknown));
            continue;
        };
        let extractor = extractor_of_name(name);
        if extractor == Extractor::Unknown {
            let names: Vec<&str> = EXTRACTORS.iter().map(|(name, _)| *name).collect();
            fields.push(
                Diagnostic::warning(
                    codes::UNKNOWN_NAME,
                    entry.value.span,
                    format!("unknown extractor `{name}`: `{}` stays empty", entry.key),
                )
                .hint(format_suggestion(name, &names)),
            );
        }
        extractors.push((Text { text: &entry.key, span: entry.key_span }, extractor));
    }
    extractors
}

impl<'j> ValidationStep<'j> {
    /// Reads one.
    pub(crate) fn read(entry: &'j Entry, found: &Findings) -> Option<ValidationStep<'j>> {
        let what = format!("`validationSteps.{}`", entry.key);
        let fields = Fields::of(&entry.value, &what, Some(&entry.key), found)?;
        check_id(&fields, &entry.key, "validation");
        let conditions =
            read_conditions(&fields, "validationConditions", "a validation condition", &entry.key);
        if conditions.is_empty() && !fields.is_poisoned("validationConditions") {
            let message =
                format!("the validation of `{}` has no conditions, so it would validate nothing", entry.key);
            fields.lacks(
                Diagnostic::error(codes::INVALID_VALUE, entry.key_span, message)
                    .hint("name validators in `validationConditions`, or remove the entry"),
            );
        }
        let (on_failure, attempts_span) = fields.object("onFailure").map(read_on_failure).unwrap_or_default();
        let mut validation = ValidationStep {
            id: &entry.key,
            span: entry.key_span,
            name: fields.text("name").map(|name| name.text),
            c2: fields.part("c2"),
            c3: fields.part("c3"),
            conditions,
            on_failure,
            attempts_span,
            misread: false,
        };
        fields.text("description");
        fields.stray("outputSchemaRef", "a remedy answers with the schema of its own step");
        fields.object("outputSchemaRef").and_then(read_schema_reference);
        fields.finish();
        validation.misread = found.is_poisoned(entry.span());
        Some(validation)
    }
}

/// Reports an entry that calls itself otherwise than its key does.
pub(crate) fn check_id(fields: &Fields<'_, '_>, id: &str, what: &str) {
    if let Some(written) = fields.required("stepId").filter(|written| written.text != id) {
        fields.push(
            Diagnostic::error(
                codes::ID_MISMATCH,
                written.span,
                format!("the {what} of key `{id}` calls itself `{}`", written.text),
            )
            .hint("make `stepId` and the key equal"),
        );
    }
}

/// The validators that a list of conditions names.
pub(crate) fn read_conditions<'j>(
    fields: &Fields<'j, '_>,
    key: &'static str,
    what: &str,
    id: &str,
) -> Vec<Text<'j>> {
    let mut conditions = Vec::new();
    for item in fields.items(key) {
        if let Some(condition) = Fields::of(item, what, Some(id), fields.found) {
            conditions.extend(condition.required("validator"));
            condition.finish();
        }
    }
    conditions
}

/// Reads what happens when a validator fails, and where it is written how often that is.
pub(crate) fn read_on_failure(fields: Fields<'_, '_>) -> (OnFailure, Option<Span>) {
    let action = fields.one_of("action", &["retry", "abort", "skip"]).map_or("retry", |(action, _)| action);
    if action != "retry" {
        fields.stray("maxAttempts", "it counts remedies, which only `retry` has; remove it");
    }
    let attempts = fields.count("maxAttempts", 0);
    fields.finish();
    let on_failure = match action {
        "abort" => OnFailure::Abort,
        "skip" => OnFailure::Skip,
        _ => OnFailure::Retry(attempts.map_or(ATTEMPTS_DEFAULT, |(attempts, _)| attempts)),
    };
    (on_failure, attempts.map(|(_, span)| span))
}

/// A condition of success that there is not, with what was probably meant: `empty`, or the exit code that is written.
fn no_success(written: Text<'_>) -> Diagnostic {
    let message = format!("`{}` is not a condition of success", written.text);
    let finding = Diagnostic::error(codes::INVALID_VALUE, written.span, message);
    let digits = written.text.trim_start_matches(|is: char| !is.is_ascii_digit());
    let by_code = digits.parse().is_ok_and(|code| (0..=EXIT_CODE_MAX).contains(&code));
    let by_code = by_code.then(|| format!("exitCode:{digits}"));
    let known = ["empty", "non-empty"].into_iter().chain(by_code.as_deref());
    or_hint(finding, written.text, known, || SUCCESS_HINT.to_owned())
}

/// The condition of success that `successWhen` names: `empty`, `non-empty` (Climpt 1.13.27 and later) or `exitCode:N`.
pub fn success_when(text: &str) -> Option<Success> {
    match text.trim() {
        "empty" => Some(Success::Empty),
        "non-empty" => Some(Success::NonEmpty),
        other => other.strip_prefix("exitCode:")?.trim().parse().ok().map(Success::ExitCode),
    }
}

/// The extractors by name: the parsers of the original program, and three that its own agents name and it lacks.
const EXTRACTORS: [(&str, Extractor); 18] = [
    ("parseChangedFiles", Extractor::ChangedFiles),
    ("parseUntrackedFiles", Extractor::UntrackedFiles),
    ("parseStagedFiles", Extractor::StagedFiles),
    ("parseUnstagedFiles", Extractor::UnstagedFiles),
    ("parseTestOutput", Extractor::FailedTests),
    ("errorOutput", Extractor::ErrorOutput),
    ("parseTypeErrors", Extractor::TypeErrors),
    ("extractFiles", Extractor::Files),
    ("parseLintErrors", Extractor::LintErrors),
    ("lintFiles", Extractor::Files),
    ("parseFormatOutput", Extractor::UnformattedFiles),
    ("generateDiff", Extractor::Diff),
    ("parseBranchName", Extractor::BranchName),
    ("parseRemoteStatus", Extractor::RemoteStatus),
    ("parseMergeStatus", Extractor::MergeStatus),
    ("stdout", Extractor::Stdout),
    ("stderr", Extractor::Stderr),
    ("exitCode", Extractor::ExitCode),
];

/// The extractor of a name; [`Extractor::Unknown`] for any other.
pub fn extractor_of_name(name: &str) -> Extractor {
    EXTRACTORS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(Extractor::Unknown, |(_, extractor)| *extractor)
}

/// What the step is called that runs the validators of a closure step.
pub(crate) fn validators_of(closure: &str) -> String {
    format!("{closure}@validators")
}

#[cfg(test)]
mod tests {
    use super::{EXTRACTORS, extractor_of_name, success_when};
    use cuegate_flow::model::{Extractor, Success};

    #[test]
    fn conditions_of_success() {
        let cases = [
            ("empty", Some(Success::Empty)),
            ("non-empty", Some(Success::NonEmpty)),
            ("exitCode:0", Some(Success::ExitCode(0))),
            ("exitCode: 2", Some(Success::ExitCode(2))),
            ("exitCode:-1", Some(Success::ExitCode(-1))),
            ("exitCode:", None),
            ("exitCode:x", None),
            ("contains:x", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(success_when(text), expected, "{text}");
        }
    }

    #[test]
    fn extractors_by_name() {
        for (name, expected) in EXTRACTORS {
            assert_eq!(extractor_of_name(name), expected);
        }
        assert_eq!(extractor_of_name("parseNothing"), Extractor::Unknown);
    }
}
