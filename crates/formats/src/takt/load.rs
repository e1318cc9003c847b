//! Loads a piece and every file that it refers to.

use std::collections::{BTreeSet, HashMap};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::Draft,
};

use super::expand::{ExpandedWorkflow, expand_workflow};
use super::later_spellings;
use super::lower::lower_piece;
use super::movement::{ABORT, COMPLETE, Movement, StepAction, StepReader};
use super::options::PieceOptions;
use super::report_names::{CaselessNames, FileNames};
use super::reports::ReportDefinition;
use super::texts::instruction_template::TextCompiler;
use super::texts::sections::Sections;
use super::{monitors, monitors::MonitorDefinition};
use crate::codes;
use crate::other_formats;
use crate::source::loaded::{LoadedDefinition, RunSettings, WorktreeRule};
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::suggest::quote_names;
use crate::values::json::{Fields, Json, Kind, Text};
use crate::{Files, values::yaml};

/// The format name in results.
const DIALECT: &str = "takt";
/// The default limit of movement visits. A finding asks the author to set one.
pub(super) const ITERATIONS_MAX: u32 = 10;

/// A parsed piece.
pub(super) struct PieceDefinition<'j> {
    pub(super) name: &'j str,
    pub(super) description: Option<&'j str>,
    pub(super) iterations_max: u32,
    /// The name of the iteration limit key, and where its value is.
    pub(super) iterations_key: (&'static str, Option<Span>),
    /// The name of the key of the first step.
    pub(super) initial_key: &'static str,
    pub(super) initial: Option<Text<'j>>,
    pub(super) movements: Vec<Movement<'j>>,
    pub(super) monitors: Vec<MonitorDefinition<'j>>,
    /// Whether some movement has no usable name. An unknown target may then refer to it.
    pub(super) nameless: bool,
}

/// Loads a piece.
///
/// Reads only through `files`; the same files give the same result. Never fails: the findings list what is wrong, and
/// the draft holds what could be read.
pub fn load_piece(files: &dyn Files, options: &PieceOptions) -> LoadedDefinition {
    let desk = SourceLoader::new(files);
    let mut draft = Draft::empty(DIALECT, DIALECT);
    let mut run = RunSettings::default();
    if let Some(value) = open_workflow(&desk, &options.file) {
        run = load_workflow(&desk, options, &value, &mut draft);
        if matches!(value.kind, Kind::Object(_)) && other_formats::program_of(&value).is_none() {
            run.format = later_spellings::describe_format(&value).to_owned();
        }
    }
    let (found, sources) = desk.into_parts();
    let (diagnostics, unsupported) = found.into_parts();
    run.unsupported = unsupported;
    LoadedDefinition { draft, diagnostics, sources, run }.sorted()
}

/// Opens the piece's file. Returns `None` after reporting why it cannot be read.
fn open_workflow(desk: &SourceLoader<'_>, path: &str) -> Option<Json> {
    match desk.page(path) {
        LoadedFile::Text { file, text } => yaml::parse(&text, file, &desk.found),
        LoadedFile::Missing => {
            let message = format!("there is no `{path}`");
            let finding = Diagnostic::error(codes::UNREADABLE_FILE, desk.unread(path), message);
            desk.found.push(finding.hint("write the workflow, or correct the path"));
            None
        }
        LoadedFile::Faulty => None,
    }
}

fn load_workflow(
    desk: &SourceLoader<'_>,
    options: &PieceOptions,
    value: &Json,
    draft: &mut Draft,
) -> RunSettings {
    draft.span = value.span;
    if !matches!(value.kind, Kind::Object(_)) {
        let _ = Fields::of(value, "the workflow", None, &desk.found);
        return RunSettings::default();
    }
    if let Some(program) = other_formats::program_of(value) {
        desk.found.push(other_formats::build_unsupported_finding(program, value.span));
        return RunSettings::default();
    }
    let Some(ExpandedWorkflow { piece: value, scopes }) = expand_workflow(value, &options.file, desk) else {
        return RunSettings::default();
    };
    let Some(fields) = Fields::of(&value, "the workflow", None, &desk.found) else {
        return RunSettings::default();
    };
    let sections = Sections::read(&fields, desk, scopes);
    let mut piece = read_workflow(fields, &sections, options);
    say_places(&value, &piece, desk);
    draft.name = piece.name.into();
    // All reports count, including those of movements that are dropped for their names.
    let reports = check_reports(&piece, desk);
    check_names(&mut piece, desk);
    check_permissions(&piece, desk);
    // A piece without movements has its own finding; all others would follow from it.
    if !piece.movements.is_empty() {
        // An entry that failed to parse may use what seems unused, or write what seems unwritten.
        let is_whole = !desk.found.has_errors();
        if is_whole {
            sections.report_unused();
        }
        let mut compiler = TextCompiler::new(&desk.found, &options.set, reports);
        compiler.may_be_more = !is_whole;
        let has_data = |movement: &&Movement<'_>| matches!(&movement.does, StepAction::Asks(asked) if asked.structured.is_some());
        compiler.structured = list_steps_and_members(&piece)
            .filter(has_data)
            .map(|movement| movement.name.text.into())
            .collect();
        lower_piece(&piece, options, &compiler, draft);
    }
    RunSettings {
        format: String::new(),
        agent: piece.name.to_owned(),
        title: piece.name.to_owned(),
        description: piece.description.unwrap_or_default().trim().to_owned(),
        worktree: WorktreeRule::default(),
        log: None,
        // Every prompt of a movement contains the task.
        needs_task: true,
        unsupported: Vec::new(),
    }
}

/// Records which span of the piece belongs to which movement, member or monitor.
fn say_places(value: &Json, piece: &PieceDefinition<'_>, desk: &SourceLoader<'_>) {
    let say = |item: &Json| {
        if let Some(name) = item.get("name").and_then(Json::as_text) {
            desk.found.about(item.span, name.trim());
        }
    };
    for movement in ["movements", "steps"].iter().flat_map(|key| later_spellings::items_of_key(value, key)) {
        say(movement);
        later_spellings::items_of_key(movement, "parallel").iter().for_each(say);
    }
    for monitor in &piece.monitors {
        desk.found.about(monitor.span, &monitor.name());
    }
}

fn read_workflow<'j>(
    fields: Fields<'j, '_>,
    sections: &Sections<'_, '_>,
    options: &PieceOptions,
) -> PieceDefinition<'j> {
    let name = fields.required("name").map_or("workflow", |name| name.text.trim());
    let description = fields.text("description").map(|text| text.text);
    let has = |key: &'static str| fields.nullable(key).is_some();
    // What is missing is named as the rest of the file is written.
    let is_older = has("movements") || (!has("steps") && (has("initial_movement") || has("max_iterations")));
    let (key, entry) =
        later_spellings::find_renamed_entry(&fields, "max_iterations", &["max_steps", "max_movements"]);
    fields.need(key);
    if entry.is_none() && fields.nullable("steps").is_some() {
        let message = format!("`max_steps` is missing; a run ends after {ITERATIONS_MAX} steps");
        let finding = Diagnostic::warning(codes::MISSING_KEY, fields.opening(), message);
        fields.push(finding.hint("say how many steps a run may take"));
    } else if entry.is_none() {
        fields.missing(if is_older { "max_iterations" } else { "max_steps" });
    }
    let iterations_key = (key, entry.map(|entry| entry.value.span));
    let endless = entry.filter(|entry| entry.value.as_text() == Some("infinite"));
    let iterations_max = match endless {
        Some(entry) => {
            let message =
                format!("`{key}: infinite` belongs to a later version of the format, and is not supported");
            let finding = Diagnostic::error(codes::UNSUPPORTED_YET, entry.value.span, message);
            fields.push(finding.hint("say how many visits of steps a run may take"));
            ITERATIONS_MAX
        }
        None => fields.count(key, 1).map_or(ITERATIONS_MAX, |(value, _)| value),
    };
    let (key, entry) = later_spellings::find_renamed_entry(&fields, "initial_movement", &["initial_step"]);
    fields.need(key);
    if entry.is_none() {
        fields.missing(if is_older { "initial_movement" } else { "initial_step" });
    }
    let initial_key = key;
    let initial = fields.filled(key).map(|text| Text { text: text.text.trim(), ..text });
    let (key, entry) = later_spellings::find_renamed_entry(&fields, "movements", &["steps"]);
    fields.need(key);
    let reading = StepReader { sections, interactive: options.interactive };
    let all = fields.items(key);
    let movements: Vec<Movement<'j>> =
        all.iter().filter_map(|item| reading.movement(item, &fields, false)).collect();
    match entry {
        None => fields.missing(if is_older { "movements" } else { "steps" }),
        Some(entry) if all.is_empty() => {
            if matches!(entry.value.kind, Kind::List(_)) {
                fields.invalid(entry.value.span, format!("`{key}` is empty"), "add a step");
            }
        }
        Some(_) => {}
    }
    let monitors = monitors::read_monitors(&fields, sections, options.interactive);
    fields.stray("answer_agent", "nothing reads it");
    fields.finish();
    let nameless = movements.len() < all.len();
    PieceDefinition {
        name,
        description,
        iterations_max,
        iterations_key,
        initial_key,
        initial,
        movements,
        monitors,
        nameless,
    }
}

/// All movements and their members.
fn list_steps_and_members<'p, 'j>(piece: &'p PieceDefinition<'j>) -> impl Iterator<Item = &'p Movement<'j>> {
    piece.movements.iter().flat_map(|movement| {
        let members = match &movement.does {
            StepAction::Parallel(members) => members.as_slice(),
            StepAction::Asks(_) => &[],
        };
        std::iter::once(movement).chain(members)
    })
}

/// Reports and drops movements with ambiguous names.
fn check_names(piece: &mut PieceDefinition<'_>, desk: &SourceLoader<'_>) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut sound = |movement: &Movement<'_>| {
        let Text { text, span } = movement.name;
        let message = if matches!(text, COMPLETE | ABORT) {
            format!("`{text}` is an end, and cannot be the name of a step")
        } else if text.contains('@') || text.chars().any(char::is_control) {
            format!("`{}` cannot be the name of a step", text.escape_debug())
        } else if !seen.insert(text.to_owned()) {
            format!("there is another step `{text}`")
        } else {
            return true;
        };
        let finding = Diagnostic::error(codes::STEP_NAME, span, message).step(text);
        desk.found.push(finding.hint("give it another name; members have names of their own too"));
        false
    };
    let count = piece.movements.len();
    piece.movements.retain(&mut sound);
    piece.nameless |= piece.movements.len() < count;
    for movement in &mut piece.movements {
        if let StepAction::Parallel(members) = &mut movement.does {
            members.retain(&mut sound);
        }
    }
}

/// Returns the names of all reports, and reports names that collide as files.
fn check_reports(piece: &PieceDefinition<'_>, desk: &SourceLoader<'_>) -> Vec<Str> {
    let mut reports: Vec<&ReportDefinition> = Vec::new();
    let (mut files, mut caseless) = (FileNames::default(), CaselessNames::default());
    for movement in list_steps_and_members(piece) {
        let StepAction::Asks(asked) = &movement.does else { continue };
        for report in &asked.reports {
            if let Some(other) = files.clash_of_others(&report.name).map(|at| reports[at]) {
                let message = format!("`{}` and `{}` cannot both be files", other.name, report.name);
                let finding = Diagnostic::error(codes::REPORT_NAME, report.span, message);
                desk.found.push(finding.step(movement.name.text).hint("rename one of them"));
            }
            if let Some(other) = caseless.clash_but_for_case(&report.name).map(|at| reports[at]) {
                let message = format!(
                    "`{}` and `{}` are the same file on a case-insensitive file system",
                    other.name, report.name
                );
                let finding = Diagnostic::warning(codes::REPORT_NAME, report.span, message);
                let hint = "use one spelling if they are the same report, or rename one of them";
                desk.found.push(finding.step(movement.name.text).hint(hint));
            }
            files.add(&report.name, reports.len());
            caseless.add(&report.name, reports.len());
            reports.push(report);
        }
    }
    check_members(piece, desk);
    let mut names: Vec<Str> = reports.iter().map(|report| report.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// Members run in parallel in one worktree, so a changed file cannot be attributed to one of them.
fn check_permissions(piece: &PieceDefinition<'_>, desk: &SourceLoader<'_>) {
    for movement in &piece.movements {
        let StepAction::Parallel(members) = &movement.does else { continue };
        let named = |may_write: bool| -> Vec<&str> {
            let fits = |member: &&Movement<'_>| match &member.does {
                StepAction::Asks(asked) => asked.boundary.permission.may_write() == may_write,
                StepAction::Parallel(_) => false,
            };
            members.iter().filter(fits).map(|member| member.name.text).collect()
        };
        let (readers, writers) = (named(false), named(true));
        if readers.is_empty() || writers.is_empty() {
            continue;
        }
        let name = movement.name.text;
        let message = format!(
            "`{name}` runs {} (read-only) in parallel with {} (may write): changes cannot be attributed",
            quote_names(&readers),
            quote_names(&writers)
        );
        let finding = Diagnostic::warning(codes::MIXED_PERMISSIONS, movement.name.span, message);
        let hint = "put those that may change files into a step of their own";
        desk.found.push(finding.step(name).hint(hint));
    }
}

/// Checks the members of one parallel movement for conflicting write access.
fn check_members(piece: &PieceDefinition<'_>, desk: &SourceLoader<'_>) {
    for movement in &piece.movements {
        let StepAction::Parallel(members) = &movement.does else { continue };
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for member in members {
            let StepAction::Asks(asked) = &member.does else { continue };
            for report in &asked.reports {
                if let Some(other) = seen.get(&*report.name) {
                    let message = format!(
                        "`{other}` and `{}` write `{}` at the same time",
                        member.name.text, report.name
                    );
                    let finding = Diagnostic::warning(codes::REPORT_NAME, report.span, message);
                    desk.found.push(finding.step(member.name.text).hint("give each its own report"));
                }
                seen.entry(&report.name).or_insert(member.name.text);
            }
        }
    }
}
