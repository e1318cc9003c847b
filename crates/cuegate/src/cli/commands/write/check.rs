//! `check`: the findings of definitions.

use std::{collections::BTreeMap, mem, path::PathBuf, sync::Arc};

use cuegate_engine::FinalizePlan;
use cuegate_flow::{
    diagnostics::{Diagnostic, Sources, Span},
    model::{Flow, Param},
};
use cuegate_formats::Files;
use cuegate_view::{CheckedDefinition, PlannedEffect};
use serde_json::{Value, json};

use super::{check_watch, explain, upgrade};
use crate::cli::commands::diagnostics::{count_errors_and_warnings, plural_ending, print_diagnostics};
use crate::cli::commands::read_options;
use crate::cli::commands::{ProjectPlace, load_as, open_disk_files};
use crate::cli::{print, set_values};
use crate::config::PhasesChoice;
use crate::definition::{
    CompiledDefinition, FileState, Location, Origin, WatchedFiles, look_each_way, named_definitions,
};
use crate::run::finalize_plan::finalize_of;
use crate::run::start_run;
use crate::{Failure, exit};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Agent folders, registry files, workflows of TAKT, or names of agents in `.agent` and of workflows in `.takt` [default: all
    /// definitions of the project]
    pub(crate) paths: Vec<String>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Treat this variable as set; a value is checked against the parameter's type and rule
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(crate) phases: Option<PhasesChoice>,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    pub(crate) format: CheckFormat,
    /// Print JSON: the same as `--format json`
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a workflow of an older TAKT in the spelling of today, with its comments; what cannot be spelled so is named
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "strict", "set", "phases", "format", "json", "watch"])]
    pub(crate) upgrade: Option<String>,
    /// Check again whenever a file of the definition changes, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

impl CheckArgs {
    /// The output format.
    pub(crate) fn format(&self) -> CheckFormat {
        if self.json { CheckFormat::Json } else { self.format }
    }
}

/// The output format of `check`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Findings with the source lines they refer to
    #[default]
    Text,
    /// One `cuegate/check/v1` object
    Json,
    /// GitHub workflow annotations
    Github,
    /// A code quality report of GitLab
    Gitlab,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

pub(in crate::cli::commands) fn check_or_watch(place: &ProjectPlace, args: CheckArgs) -> Result<u8, Failure> {
    if let Some(typed) = &args.upgrade {
        return upgrade::print_upgraded(place, typed);
    }
    let paths = if args.paths.is_empty() { find_project_definitions(place)? } else { args.paths.clone() };
    let args = &CheckArgs { paths, ..args };
    if args.watch {
        return check_watch::watch_definitions(place, args);
    }
    let checked = check_definitions(place, args)?;
    let code = report_findings(&checked, args);
    mem::forget(checked);
    Ok(code)
}

/// The paths of all definitions of the project.
fn find_project_definitions(place: &ProjectPlace) -> Result<Vec<String>, Failure> {
    let root = place.home.root();
    let own =
        named_definitions(&place.here, root).into_iter().filter(|named| named.origin == Origin::Project);
    let paths: Vec<String> = own.map(|named| named.path.display().to_string()).collect();
    if paths.is_empty() {
        let hint = "name one, or let `cuegate init` write one";
        return Err(Failure::usage(format!("`{}` has no definitions", root.display()), hint));
    }
    Ok(paths)
}

pub(in crate::cli::commands) fn check_definitions(
    place: &ProjectPlace,
    args: &CheckArgs,
) -> Result<Vec<DefinitionCheck>, Failure> {
    let mut checked = Vec::new();
    let names = set_values::parse_set_names(&args.set)?;
    // `--phases` requires at least one TAKT workflow. A path that cannot be located might be one.
    let is_other = |path: &String| place.locate(path).is_ok_and(|at| !read_options::is_takt_workflow(&at));
    if args.phases.is_some() && args.paths.iter().all(is_other) {
        return Err(read_options::refuse_phases(&args.paths.join("`, `")));
    }
    for path in &args.paths {
        let definition = place.locate(path).and_then(|location| each_way(place, &location, args, &names));
        let definition = definition.map(|mut found| {
            if !found.format.is_empty() {
                found.format = format!("{path}: {}", found.format);
            }
            found
        });
        // An unreadable definition does not stop the check of the others.
        checked.push(
            definition
                .unwrap_or_else(|failure| record_unreadable_definition(&place.path_from_top(path), failure)),
        );
    }
    for found in &checked {
        set_values::check_set_values(&found.params, &args.set)?;
    }
    // An unreadable definition may use any of the names.
    let flows: Vec<&Flow> = checked.iter().filter_map(|found| found.flow.as_deref()).collect();
    if flows.len() == checked.len() {
        set_values::tell_unread(&names, flows);
    }
    Ok(checked)
}

/// Prints the findings and returns the exit code.
pub(in crate::cli::commands) fn report_findings(checked: &[DefinitionCheck], args: &CheckArgs) -> u8 {
    let errors = checked.iter().map(|found| found.count(args.strict).0).sum();
    let warnings = checked.iter().map(|found| found.count(args.strict).1).sum();
    match args.format() {
        CheckFormat::Text => {
            for found in checked {
                found.tell(args.strict);
                for effect in &found.effects {
                    print::print_line(&format!(
                        "effect: {}",
                        cuegate_view::clean_to_one_line(&effect.line())
                    ));
                }
            }
            print::print_line(&format!(
                "{}: {errors} error{}, {warnings} warning{}",
                if errors == 0 { "sound" } else { "not sound" },
                plural_ending(errors),
                plural_ending(warnings)
            ));
        }
        CheckFormat::Json => {
            let results = checked
                .iter()
                .map(|found| cuegate_view::check_json(&found.diagnostics, &found.sources, args.strict))
                .collect();
            let mut json = merge_results(results, errors, warnings);
            json["effects"] =
                checked.iter().flat_map(|found| &found.effects).map(PlannedEffect::to_json).collect();
            print::print_json(&json);
        }
        CheckFormat::Github => {
            for found in checked {
                print::print_data(&cuegate_view::render_github_annotations(
                    &found.diagnostics,
                    &found.sources,
                    args.strict,
                ));
            }
        }
        CheckFormat::Gitlab => {
            print::print_json(&cuegate_view::build_code_quality_report(&lend_findings(checked), args.strict));
        }
        CheckFormat::Sarif => {
            print::print_json(&cuegate_view::build_sarif_log(
                &lend_findings(checked),
                &explain::collect_finding_codes(),
                env!("CARGO_PKG_VERSION"),
                args.strict,
            ));
        }
    }
    if errors == 0 { exit::DONE } else { exit::USAGE }
}

fn lend_findings(checked: &[DefinitionCheck]) -> Vec<CheckedDefinition<'_>> {
    checked
        .iter()
        .map(|found| CheckedDefinition { diagnostics: &found.diagnostics, sources: &found.sources })
        .collect()
}

/// Checks one definition, interactive and headless.
fn each_way(
    place: &ProjectPlace,
    location: &Location,
    args: &CheckArgs,
    names: &[String],
) -> Result<DefinitionCheck, Failure> {
    let phases = args.phases.filter(|_| read_options::is_takt_workflow(location));
    let how = read_options::read_load_options(place, "", location, phases)?;
    let disk = open_disk_files(location)?;
    let watched = args.watch.then(|| WatchedFiles::new(&disk));
    let files: &dyn Files = watched.as_ref().map_or(&disk, |watched| watched);
    let mut definition = look_each_way(files, &location.base, location.file.as_deref(), names, &how);
    location.show_in(&mut definition.sources);
    Ok(DefinitionCheck {
        effects: effects_of_definition(&definition),
        flow: definition.flow,
        params: definition.params,
        diagnostics: definition.diagnostics,
        sources: definition.sources,
        format: definition.settings.format,
        failure: None,
        looked_for: watched.map(WatchedFiles::into_sights).unwrap_or_default(),
    })
}

/// The effects of runs of a definition.
pub(in crate::cli::commands) fn effects_of_definition(definition: &CompiledDefinition) -> Vec<PlannedEffect> {
    let finalize = finalize_of(definition, &start_run::RunRequest::default());
    let finalize = Some(&finalize).filter(|finalize| **finalize != FinalizePlan::default());
    definition.flow.as_ref().map(|flow| cuegate_view::planned_effects(flow, finalize)).unwrap_or_default()
}

/// The result of checking one definition.
pub(in crate::cli::commands) struct DefinitionCheck {
    /// The flow, if it can run.
    flow: Option<Arc<Flow>>,
    /// Its parameters.
    params: Vec<Param>,
    diagnostics: Vec<Diagnostic>,
    sources: Sources,
    /// What was checked, and in which format it is.
    format: String,
    /// The effects of its runs.
    effects: Vec<PlannedEffect>,
    /// Why the check failed.
    pub(in crate::cli::commands) failure: Option<Failure>,
    /// In watch mode: the files that were looked up, existing or not, and their state at that time.
    pub(in crate::cli::commands) looked_for: BTreeMap<PathBuf, FileState>,
}

impl DefinitionCheck {
    fn count(&self, strict: bool) -> (usize, usize) {
        count_errors_and_warnings(&self.diagnostics, strict)
    }

    fn tell(&self, strict: bool) {
        match &self.failure {
            Some(failure) => print::print_failure(failure),
            None => {
                if !self.format.is_empty() {
                    print::print_line(&cuegate_view::clean_to_one_line(&self.format));
                }
                print_diagnostics(&self.diagnostics, &self.sources, strict);
            }
        }
    }
}

/// Reports a path without a definition as a finding.
fn record_unreadable_definition(path: &str, failure: Failure) -> DefinitionCheck {
    let mut sources = Sources::default();
    let span = Span::start_of(sources.add(path, ""));
    let mut finding = Diagnostic::error("unreadable-file", span, failure.message.clone());
    finding.hint.clone_from(&failure.hint);
    DefinitionCheck {
        effects: Vec::new(),
        flow: None,
        params: Vec::new(),
        diagnostics: vec![finding],
        sources,
        format: String::new(),
        failure: Some(failure),
        looked_for: BTreeMap::new(),
    }
}

/// Merges the results of all definitions into one object.
fn merge_results(results: Vec<Value>, errors: usize, warnings: usize) -> Value {
    let diagnostics: Vec<Value> = results
        .into_iter()
        .flat_map(|mut result| match result["diagnostics"].take() {
            Value::Array(found) => found,
            _ => Vec::new(),
        })
        .collect();
    json!({"schema": "cuegate/check/v1", "ok": errors == 0, "errors": errors, "warnings": warnings,
        "diagnostics": diagnostics})
}

/// Loads a definition to show something of it.
///
/// # Errors
/// When it has errors, which are printed.
pub(in crate::cli::commands) fn load_sound_definition(
    place: &ProjectPlace,
    path: &str,
    set: &[String],
    phases: Option<PhasesChoice>,
) -> Result<(CompiledDefinition, Arc<Flow>), Failure> {
    let location = place.locate(path)?;
    let how = read_options::read_load_options(place, path, &location, phases)?;
    let names = set_values::parse_set_names(set)?;
    let definition = load_as(&location, &names, &how)?;
    set_values::look_at(&definition, set, &names)?;
    let Some(flow) = definition.flow.clone() else {
        print_diagnostics(&definition.diagnostics, &definition.sources, false);
        return Err(Failure::usage(
            format!("`{path}` has errors"),
            format!("fix the errors above, then run `cuegate check {path}`"),
        ));
    };
    Ok((definition, flow))
}
