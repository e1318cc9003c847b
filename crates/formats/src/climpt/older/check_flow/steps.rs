//! A registry of a check flow as written.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::response_format::{ResponseFormat, read_response_format};
use super::transitions::{CheckTransition, check_ways, read_way};
use crate::climpt::agent::definition::check_version;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Fields, Json, Kind, Text};

/// A registry as written. Entries that failed to parse are absent, and findings report them.
#[derive(Debug)]
pub(crate) struct CheckFlow<'j> {
    /// The place where it begins.
    pub(crate) span: Span,
    /// The prompt base.
    pub(crate) base: Option<Text<'j>>,
    /// The entry step.
    pub(crate) entry: Option<Text<'j>>,
    /// Aliases of editions.
    pub(crate) editions: Vec<(&'j str, &'j str)>,
    pub(crate) steps: Vec<CheckedStep<'j>>,
}

/// A step with its check.
#[derive(Debug)]
pub(crate) struct CheckedStep<'j> {
    /// Its key, which is its name.
    pub(crate) id: &'j str,
    /// The place of the key.
    pub(crate) span: Span,
    /// Its display name.
    pub(crate) name: Option<&'j str>,
    pub(crate) prompt: Option<PromptReference<'j>>,
    /// The variables that it declares for its prompts.
    pub(crate) variables: Option<Vec<Text<'j>>>,
    /// Whether it declares that its prompts need the task.
    pub(crate) uses_stdin: Option<(bool, Span)>,
    /// The number of executions before the first check.
    pub(crate) min: u32,
    /// The maximum number of executions in a round.
    pub(crate) max: u32,
    /// The place of that maximum.
    pub(crate) max_span: Option<Span>,
    pub(crate) check: Option<StepCheck<'j>>,
}

#[derive(Debug)]
pub(crate) struct StepCheck<'j> {
    /// Its place.
    pub(crate) span: Span,
    pub(crate) prompt: Option<PromptReference<'j>>,
    /// The format of its answer.
    pub(crate) format: ResponseFormat,
    /// The transition when it passes.
    pub(crate) on_pass: Option<CheckTransition<'j>>,
    /// The transition when it fails.
    pub(crate) on_fail: Option<CheckTransition<'j>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptReference<'j> {
    /// Its place.
    pub(crate) span: Span,
    /// How the file is located.
    pub(crate) place: PromptPlace<'j>,
    /// An alternative file when that one is missing.
    pub(crate) fallback: Option<Text<'j>>,
    /// Whether an unreadable part of it may locate the file.
    pub(crate) misread: bool,
}

/// How a prompt file is located.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PromptPlace<'j> {
    /// By its path.
    Path(Text<'j>),
    /// By the parts of its path.
    Parts {
        /// The first part.
        c1: &'j str,
        /// The second part.
        c2: &'j str,
        /// The third part.
        c3: &'j str,
        /// The edition; `default` if none is written.
        edition: &'j str,
        adaptation: Option<&'j str>,
    },
}

/// Reads a registry of a check flow.
pub(crate) fn read_check_flow<'j>(json: &'j Json, found: &Findings) -> Option<CheckFlow<'j>> {
    let fields = Fields::of(json, "the registry", None, found)?;
    fields.text("$schema");
    if let Some(version) = fields.required("version") {
        check_version(version, &fields);
    }
    if fields.entry("steps").is_none() {
        fields.missing("steps");
    }
    let written = fields.names("steps");
    if written.is_empty()
        && let Some(entry) = fields.entry("steps").filter(|entry| matches!(entry.value.kind, Kind::Object(_)))
    {
        fields.invalid(entry.key_span, "`steps` hold no step that could be run", "add a step with a `check`");
    }
    let flow = CheckFlow {
        span: Span::start_of(json.span.file),
        base: fields.required("basePath"),
        entry: fields.required("entryStep"),
        editions: read_editions(&fields),
        steps: written.into_iter().filter_map(|entry| read_step(entry, found)).collect(),
    };
    fields
        .stray("entryStepMapping", "nothing chooses between modes: a run begins with `entryStep`; remove it");
    fields.finish();
    Some(flow)
}

fn read_editions<'j>(fields: &Fields<'j, '_>) -> Vec<(&'j str, &'j str)> {
    let mut editions = Vec::new();
    for entry in fields.names("editions") {
        match entry.value.as_text() {
            Some(edition) => editions.push((&*entry.key, edition)),
            None => fields.wrong_type(&entry.key, &entry.value, "the name of an edition"),
        }
    }
    editions
}

/// Whether a name follows the step names of check flows: `s_` and four to eight hexadecimal digits.
fn is_check_id(name: &str) -> bool {
    let digits = name.strip_prefix("s_").unwrap_or_default();
    (4..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read_step<'j>(entry: &'j Entry, found: &Findings) -> Option<CheckedStep<'j>> {
    let id: &'j str = &entry.key;
    let fields = Fields::of(&entry.value, "a step", Some(id), found)?;
    if !is_check_id(id) {
        let message = format!("`{id}` is not the id of a step in a check flow");
        fields.push(
            Diagnostic::error(codes::STEP_NAME, entry.key_span, message)
                .hint("call it `s_` and four to eight hexadecimal digits, such as `s_a8f3`"),
        );
    }
    if let Some(written) = fields.required("id").filter(|written| written.text != id) {
        let message = format!("the step of key `{id}` calls itself `{}`", written.text);
        fields.push(
            Diagnostic::error(codes::ID_MISMATCH, written.span, message).hint("make `id` and the key equal"),
        );
    }
    if fields.entry("prompt").is_none() {
        fields.missing("prompt");
    }
    if fields.entry("check").is_none() {
        let message = format!("`{id}` has no `check`, so nothing could lead on from it");
        fields.push(
            Diagnostic::error(codes::MISSING_KEY, entry.key_span, message)
                .hint("add `check` with `prompt`, `onPass` and `onFail`"),
        );
    }
    let (min, max, max_span) = read_iterations(&fields);
    let step = CheckedStep {
        id,
        span: entry.key_span,
        name: fields.required("name").map(|name| name.text),
        prompt: fields.object("prompt").and_then(read_prompt),
        variables: fields.texts("variables"),
        uses_stdin: fields.boolean("usesStdin"),
        min,
        max,
        max_span,
        check: fields.object("check").map(|check| read_check(id, max <= min, check)),
    };
    fields.text("description");
    fields.stray("customVariables", "values are given as parameters or with `--set`; remove it");
    fields.finish();
    Some(step)
}

/// The minimum and maximum number of executions, with the place of the maximum.
fn read_iterations(step: &Fields<'_, '_>) -> (u32, u32, Option<Span>) {
    let Some(fields) = step.object("iterations") else { return (1, 1, None) };
    let (min, max) = (fields.count("min", 1), fields.count("max", 1));
    let (least, most) = (min.map_or(1, |(min, _)| min), max.map_or(1, |(max, _)| max));
    let is_read = max.is_some() || fields.nullable("max").is_none();
    if least > most && is_read {
        let (_, span) = min.or(max).unwrap_or((1, fields.span));
        let message = format!("`min` is {least}, which is more than `max`, which is {most}");
        fields.invalid(span, message, "correct `min` or `max`; each is 1 where it is not written");
    }
    fields.finish();
    (least, most.max(least), max.map(|(_, span)| span))
}

fn read_prompt<'j>(fields: Fields<'j, '_>) -> Option<PromptReference<'j>> {
    let path = fields.filled("path");
    let by_path = fields.entry("path").is_some();
    let parts =
        ["c1", "c2", "c3"].map(|key| if by_path { fields.part(key) } else { fields.required_part(key) });
    let edition = fields.part("edition");
    let adaptation = fields.part("adaptation");
    if by_path {
        let why = "`path` names the file already: remove either";
        fields.strays(&["c1", "c2", "c3", "edition", "adaptation"], why);
    }
    let place = match (path, parts) {
        (Some(path), _) => Some(PromptPlace::Path(path)),
        (None, [Some(c1), Some(c2), Some(c3)]) if !by_path => Some(PromptPlace::Parts {
            c1: c1.text,
            c2: c2.text,
            c3: c3.text,
            edition: edition.map_or("default", |edition| edition.text),
            adaptation: adaptation.map(|adaptation| adaptation.text),
        }),
        _ => None,
    };
    let (span, fallback) = (fields.opening(), fields.filled("fallback"));
    let (found, whole) = (fields.found, fields.span);
    fields.finish();
    let misread = found.is_poisoned(whole);
    Some(PromptReference { span, place: place?, fallback, misread })
}

fn read_check<'j>(id: &str, once: bool, fields: Fields<'j, '_>) -> StepCheck<'j> {
    for key in ["prompt", "onPass", "onFail"] {
        if fields.entry(key).is_none() {
            fields.missing(key);
        }
    }
    let check = StepCheck {
        span: fields.opening(),
        prompt: fields.object("prompt").and_then(read_prompt),
        format: read_response_format(fields.object("responseFormat")),
        on_pass: fields.object("onPass").and_then(|way| read_way(way, "onPass")),
        on_fail: fields.object("onFail").and_then(|way| read_way(way, "onFail")),
    };
    check_ways(id, once, [check.on_pass.as_ref(), check.on_fail.as_ref()], &fields);
    fields.finish();
    check
}
