//! Loads a workflow and every file that it refers to.

use cuegate_flow::{diagnostics::Diagnostic, model::Draft};

use super::check;
use super::compose::{ComposedStep, ComposedWorkflow, ParsedFiles, compose_workflow};
use super::lower::lower_workflow;
use super::notes::LoadNotes;
use super::options::TaktOptions;
use super::read::Sections;
use super::read::{StepAction, StepReader, WorkflowDefinition};
use super::spellings::describe_format;
use super::texts::instruction_template::TextCompiler;
use super::texts::step_values::{StepValues, SystemValues};
use crate::codes;
use crate::findings::Findings;
use crate::other_formats;
use crate::source::loaded::{LoadedDefinition, RunSettings, WorktreeRule};
use crate::source::loader::{LoadedFile, SourceLoader};
use crate::values::json::{Fields, Json, Kind};
use crate::{Files, values::yaml};

/// The format name in results.
const DIALECT: &str = "takt";

/// Loads a workflow.
///
/// Reads only through `files`; the same files give the same result. Never fails: the findings list what is wrong, and
/// the draft holds what could be read.
pub fn load_takt_workflow(files: &dyn Files, options: &TaktOptions) -> LoadedDefinition {
    let loader = SourceLoader::new(files);
    let mut draft = Draft::empty(DIALECT, DIALECT);
    let mut run = RunSettings::default();
    if let Some(root) = parse_workflow_file(&loader, &options.file) {
        run = load_root(&loader, options, &root, &mut draft);
        if matches!(root.kind, Kind::Object(_)) && other_formats::program_of(&root).is_none() {
            run.format = describe_format(&root).to_owned();
        }
    }
    let (found, sources) = loader.into_parts();
    let (diagnostics, unsupported) = found.into_parts();
    run.unsupported = unsupported;
    LoadedDefinition { draft, diagnostics, sources, run }.sorted()
}

/// Parses the workflow's file. Returns `None` after reporting why it cannot be read.
fn parse_workflow_file(loader: &SourceLoader<'_>, path: &str) -> Option<Json> {
    match loader.page(path) {
        LoadedFile::Text { file, text } => yaml::parse(&text, file, &loader.found),
        LoadedFile::Missing => {
            let message = format!("there is no `{path}`");
            let finding = Diagnostic::error(codes::UNREADABLE_FILE, loader.unread(path), message);
            loader.found.push(finding.hint("write the workflow, or correct the path"));
            None
        }
        LoadedFile::Faulty => None,
    }
}

fn load_root(
    loader: &SourceLoader<'_>,
    options: &TaktOptions,
    root: &Json,
    draft: &mut Draft,
) -> RunSettings {
    draft.span = root.span;
    if let Some(program) = other_formats::program_of(root).filter(|_| matches!(root.kind, Kind::Object(_))) {
        loader.found.push(other_formats::build_unsupported_finding(program, root.span));
        return RunSettings::default();
    }
    let Some(fields) = Fields::of(root, "the workflow", None, &loader.found) else {
        return RunSettings::default();
    };
    let notes = LoadNotes::new(&loader.found);
    let files = ParsedFiles::new(loader);
    let Some(composed) = compose_workflow(root, &options.file, &files, &notes) else {
        fields.allow_others();
        notes.report(root.span.file);
        return RunSettings::default();
    };
    let sections = Sections::read(&fields, loader, &composed.scopes);
    let interactive = options.interactive;
    let iterations_max = options.iterations_max;
    let reader =
        StepReader { sections: &sections, files: &files, notes: &notes, interactive, iterations_max };
    let mut workflow = reader.read_workflow(fields, &composed);
    notes.report(root.span.file);
    record_places(&composed, &workflow, &loader.found);
    draft.name = workflow.name.into();
    // All reports count, including those of steps that are dropped for their names.
    let reports = check::check_reports(&workflow, &loader.found);
    check::check_names(&mut workflow, &loader.found);
    check::check_permissions(&workflow, &loader.found);
    // A workflow without steps has its own finding; all others would follow from it.
    if !workflow.steps.is_empty() && !notes.is_refused() {
        // An entry that failed to parse may use what seems unused, or write what seems unwritten.
        let is_whole = !loader.found.has_errors();
        if is_whole {
            sections.report_unused();
        }
        let mut compiler = TextCompiler::new(&loader.found, &options.set, reports);
        compiler.may_be_more = !is_whole;
        compiler.values = list_step_values(&workflow);
        lower_workflow(&workflow, options, &compiler, draft);
    }
    RunSettings {
        format: String::new(),
        agent: workflow.name.to_owned(),
        title: workflow.name.to_owned(),
        description: workflow.description.unwrap_or_default().trim().to_owned(),
        worktree: WorktreeRule::default(),
        log: None,
        // Every prompt of a step contains the task.
        needs_task: true,
        unsupported: Vec::new(),
    }
}

/// What the steps of a workflow hand on.
fn list_step_values(workflow: &WorkflowDefinition<'_>) -> StepValues {
    let mut values = StepValues::default();
    for step in check::list_steps_and_members(workflow) {
        match &step.does {
            StepAction::Asks(asked) => {
                let data = asked.structured.as_ref();
                values.structured.extend(data.map(|data| (step.name.text.into(), data.schema.clone())));
            }
            StepAction::System(settings) => values.system.push(SystemValues {
                step: step.name.text.into(),
                reads: settings.reads.clone(),
                effects: settings.effects.iter().map(|effect| effect.name).collect(),
            }),
            StepAction::Parallel(_) => {}
        }
    }
    values
}

/// Records which places belong to which step, member or monitor.
fn record_places(composed: &ComposedWorkflow, workflow: &WorkflowDefinition<'_>, found: &Findings) {
    let record = |step: &ComposedStep| {
        if let Some(name) = step.source.get("name").and_then(Json::as_text) {
            found.about(step.source.span, name.trim());
        }
    };
    for step in &composed.steps {
        record(step);
        step.members.iter().for_each(record);
    }
    for monitor in &workflow.monitors {
        found.about(monitor.span, &monitor.name());
    }
}
