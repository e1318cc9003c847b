//! `check`, `explain` and `show`.

use std::{collections::BTreeMap, mem, path::PathBuf, sync::Arc};

use cuegate_engine::FinalizePlan;
use cuegate_flow::{
    checks::Code,
    diagnostics::{Diagnostic, Severity, Sources, Span, find_nearest_name},
    model::{Flow, Param},
};
use cuegate_formats::Files;
use cuegate_view::{CheckedDefinition, PlannedEffect, group_findings};
use serde_json::{Value, json};

use super::{Place, disk, load_as, read_options, watch};
use crate::{
    Failure,
    cli::{
        args::{Check, Explain, Format, Show},
        print, set_values,
    },
    config::Phases,
    definition::{Definition, Location, Origin, Sight, Watched, look_each_way, named_definitions},
    exit, start_run,
};

pub(super) fn check(place: &Place, args: Check) -> Result<u8, Failure> {
    let paths = if args.paths.is_empty() { all(place)? } else { args.paths.clone() };
    let args = &Check { paths, ..args };
    if args.watch {
        return watch::watch(place, args);
    }
    let checked = look(place, args)?;
    let code = report(&checked, args);
    mem::forget(checked);
    Ok(code)
}

/// The paths of all definitions of the project.
fn all(place: &Place) -> Result<Vec<String>, Failure> {
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

/// Checks all definitions.
pub(super) fn look(place: &Place, args: &Check) -> Result<Vec<Found>, Failure> {
    let mut checked = Vec::new();
    let names = set_values::names(&args.set)?;
    // `--phases` requires at least one piece. A path that cannot be located might be one.
    let no_piece = |path: &String| place.locate(path).is_ok_and(|at| !read_options::of_piece(&at));
    if args.phases.is_some() && args.paths.iter().all(no_piece) {
        return Err(read_options::no_piece(&args.paths.join("`, `")));
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
        checked.push(definition.unwrap_or_else(|failure| unreadable(&place.shown(path), failure)));
    }
    for found in &checked {
        set_values::fit(&found.params, &args.set)?;
    }
    // An unreadable definition may use any of the names.
    let flows: Vec<&Flow> = checked.iter().filter_map(|found| found.flow.as_deref()).collect();
    if flows.len() == checked.len() {
        set_values::tell_unread(&names, flows);
    }
    Ok(checked)
}

/// Prints the findings and returns the exit code.
pub(super) fn report(checked: &[Found], args: &Check) -> u8 {
    let errors = checked.iter().map(|found| found.count(args.strict).0).sum();
    let warnings = checked.iter().map(|found| found.count(args.strict).1).sum();
    match args.format() {
        Format::Text => {
            for found in checked {
                found.tell(args.strict);
                for effect in &found.effects {
                    print::line(&format!("effect: {}", cuegate_view::clean_to_one_line(&effect.line())));
                }
            }
            print::line(&format!(
                "{}: {errors} error{}, {warnings} warning{}",
                if errors == 0 { "sound" } else { "not sound" },
                plural(errors),
                plural(warnings)
            ));
        }
        Format::Json => {
            let results = checked
                .iter()
                .map(|found| cuegate_view::check_json(&found.diagnostics, &found.sources, args.strict))
                .collect();
            let mut json = merged(results, errors, warnings);
            json["effects"] =
                checked.iter().flat_map(|found| &found.effects).map(PlannedEffect::to_json).collect();
            print::json(&json);
        }
        Format::Github => {
            for found in checked {
                print::data(&cuegate_view::render_github_annotations(
                    &found.diagnostics,
                    &found.sources,
                    args.strict,
                ));
            }
        }
        Format::Sarif => {
            let checked: Vec<CheckedDefinition<'_>> = checked
                .iter()
                .map(|found| CheckedDefinition { diagnostics: &found.diagnostics, sources: &found.sources })
                .collect();
            print::json(&cuegate_view::build_sarif_log(
                &checked,
                &codes(),
                env!("CARGO_PKG_VERSION"),
                args.strict,
            ));
        }
    }
    if errors == 0 { exit::DONE } else { exit::USAGE }
}

/// Checks one definition, interactive and headless.
fn each_way(place: &Place, location: &Location, args: &Check, names: &[String]) -> Result<Found, Failure> {
    let phases = args.phases.filter(|_| read_options::of_piece(location));
    let how = read_options::how(place, "", location, phases)?;
    let disk = disk(location)?;
    let watched = args.watch.then(|| Watched::new(&disk));
    let files: &dyn Files = watched.as_ref().map_or(&disk, |watched| watched);
    let mut definition = look_each_way(files, &location.base, location.file.as_deref(), names, &how);
    location.show_in(&mut definition.sources);
    Ok(Found {
        effects: effects(&definition),
        flow: definition.flow,
        params: definition.params,
        diagnostics: definition.diagnostics,
        sources: definition.sources,
        format: definition.settings.format,
        failure: None,
        looked_for: watched.map(Watched::into_sights).unwrap_or_default(),
    })
}

/// The effects of runs of a definition.
pub(super) fn effects(definition: &Definition) -> Vec<PlannedEffect> {
    let finalize = start_run::finalize_of(definition, &start_run::Wishes::default());
    let finalize = Some(&finalize).filter(|finalize| **finalize != FinalizePlan::default());
    definition.flow.as_ref().map(|flow| cuegate_view::planned_effects(flow, finalize)).unwrap_or_default()
}

/// The result of checking one definition.
pub(super) struct Found {
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
    pub(super) failure: Option<Failure>,
    /// In watch mode: the files that were looked up, existing or not, and their state at that time.
    pub(super) looked_for: BTreeMap<PathBuf, Sight>,
}

impl Found {
    fn count(&self, strict: bool) -> (usize, usize) {
        count(&self.diagnostics, strict)
    }

    fn tell(&self, strict: bool) {
        match &self.failure {
            Some(failure) => print::failure(failure),
            None => {
                if !self.format.is_empty() {
                    print::line(&cuegate_view::clean_to_one_line(&self.format));
                }
                tell(&self.diagnostics, &self.sources, strict);
            }
        }
    }
}

/// Reports a path without a definition as a finding.
fn unreadable(path: &str, failure: Failure) -> Found {
    let mut sources = Sources::default();
    let span = Span::start_of(sources.add(path, ""));
    let mut finding = Diagnostic::error("unreadable-file", span, failure.message.clone());
    finding.hint.clone_from(&failure.hint);
    Found {
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

/// Prints all findings.
pub(super) fn tell(diagnostics: &[Diagnostic], sources: &Sources, strict: bool) {
    print::findings(diagnostics, sources, strict);
}

/// The numbers of errors and warnings.
pub(super) fn count(diagnostics: &[Diagnostic], strict: bool) -> (usize, usize) {
    let groups = group_findings(diagnostics);
    let of = |severity| groups.iter().filter(|group| group.first.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    if strict { (errors + warnings, 0) } else { (errors, warnings) }
}

pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Merges the results of all definitions into one object.
fn merged(results: Vec<Value>, errors: usize, warnings: usize) -> Value {
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

/// All codes of findings.
fn codes() -> Vec<Code> {
    let mut known = cuegate_flow::checks::list_codes().to_vec();
    known.extend(cuegate_formats::list_codes());
    known
}

/// Prints the manual page of a finding.
pub(super) fn explain(args: &Explain) -> Result<u8, Failure> {
    let known = codes();
    if let Some(code) = known.iter().find(|code| code.name == args.code) {
        match args.json {
            true => print::json(&serde_json::json!({
                "schema": "cuegate/explain/v1", "code": code.name, "page": code.page,
            })),
            false => print::data(code.page),
        }
        return Ok(exit::DONE);
    }
    let mut names: Vec<&str> = known.iter().map(|code| code.name).collect();
    names.sort_unstable();
    let hint = match find_nearest_name(&args.code, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    Err(Failure::usage(format!("there is no finding `{}`", args.code), hint))
}

/// Loads a definition to show something of it.
///
/// # Errors
/// When it has errors, which are printed.
pub(super) fn sound(
    place: &Place,
    path: &str,
    set: &[String],
    phases: Option<Phases>,
) -> Result<(Definition, Arc<Flow>), Failure> {
    let location = place.locate(path)?;
    let how = read_options::how(place, path, &location, phases)?;
    let names = set_values::names(set)?;
    let definition = load_as(&location, &names, &how)?;
    set_values::look_at(&definition, set, &names)?;
    let Some(flow) = definition.flow.clone() else {
        tell(&definition.diagnostics, &definition.sources, false);
        return Err(Failure::usage(
            format!("`{path}` has errors"),
            format!("fix the errors above, then run `cuegate check {path}`"),
        ));
    };
    Ok((definition, flow))
}

/// Prints a definition as the flow that will run.
pub(super) fn show(place: &Place, args: &Show) -> Result<u8, Failure> {
    let (definition, flow) = sound(place, &args.path, &args.set, args.phases)?;
    if args.json {
        print::json(&cuegate_view::show_json(&flow));
    } else {
        print::data(&cuegate_view::render_flow(&flow));
        let (_, warnings) = count(&definition.diagnostics, false);
        if warnings > 0 {
            print::line(&format!(
                "{warnings} warning{}: see `cuegate check {}`",
                plural(warnings),
                args.path
            ));
        }
    }
    Ok(exit::DONE)
}
