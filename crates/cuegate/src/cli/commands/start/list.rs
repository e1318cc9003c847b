//! `list`.

use cuegate_engine::RecordedLoadOptions;
use cuegate_view::{clean_to_one_line, pad_right};
use serde_json::{Value, json};

use crate::before_start::review::hidden_definition;

use crate::built_in::look_at_built_in;
use crate::cli::commands::{ProjectPlace, open_disk_files};
use crate::cli::print;
use crate::definition::{NamedDefinition, Origin, named_definitions, names_in_home};
use crate::init::STARTERS;
use crate::run::typical_cost::{KnownCosts, describe_calls, usual_calls};
use crate::{Failure, definition, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A definition that can be run.
struct ListedDefinition {
    name: String,
    /// Its format, `agent` or `workflow`.
    form: &'static str,
    description: String,
    origin: &'static str,
    /// The definition of the same name that it takes the place of.
    hides: Option<&'static str>,
    /// Its path; `None` for a built-in starter.
    path: Option<String>,
    /// Whether `check` reports errors.
    has_errors: bool,
    /// The calls of a usual run.
    usual_calls: Option<(u64, u64)>,
    /// What the last runs of it cost here.
    known: Option<KnownCosts>,
}

impl ListedDefinition {
    /// `(usually 5–9 calls)`, or `(here $0.41 to $2.10)` where it ran.
    fn describe_cost(&self) -> String {
        match (self.known, self.usual_calls) {
            (Some(known), _) => format!("(here {})", known.describe_range()),
            (None, Some(calls)) => format!("({} calls)", describe_calls(calls)),
            (None, None) => String::new(),
        }
    }
}

/// The definitions as `cuegate/list/v1`.
pub(in crate::cli::commands) fn list_json(place: &ProjectPlace) -> Value {
    let one = |listed: &ListedDefinition| {
        json!({"name": listed.name, "format": listed.form, "description": listed.description,
            "origin": listed.origin, "hides": listed.hides, "path": listed.path, "has_errors": listed.has_errors,
            "usual_calls": listed.usual_calls, "cost_usd": listed.known.map(|known| known.range_usd())})
    };
    let definitions: Vec<_> = collect_definitions(place).iter().map(one).collect();
    json!({"schema": "cuegate/list/v1", "definitions": definitions,
        "packages": definition::list_packages(), "takt": place.names_of_takt()})
}

/// The definitions of the project, of the home folder, and the starters.
fn collect_definitions(place: &ProjectPlace) -> Vec<ListedDefinition> {
    let mut all: Vec<ListedDefinition> = named_definitions(&place.here, place.home.root())
        .into_iter()
        .map(|named| list_entry_of_definition(place, named))
        .collect();
    for starter in &STARTERS {
        if all.iter().any(|own| own.name == starter.name) {
            continue;
        }
        all.push(ListedDefinition {
            name: starter.name.to_owned(),
            form: if matches!(starter.form, crate::init::StarterFormat::Agent(_)) {
                "agent"
            } else {
                "workflow"
            },
            description: starter.about.to_owned(),
            origin: "built-in",
            hides: None,
            path: None,
            has_errors: false,
            usual_calls: look_at_built_in(starter).and_then(|read| usual_calls(read.flow.as_deref()?)),
            known: None,
        });
    }
    let known = place.view().ok().map(|journal| KnownCosts::find_all(&*journal, None)).unwrap_or_default();
    for listed in &mut all {
        listed.known = known.get(&listed.name).copied();
    }
    all
}

pub(in crate::cli::commands) fn list_definitions(
    place: &ProjectPlace,
    args: &ListArgs,
) -> Result<u8, Failure> {
    if args.json {
        print::print_json(&list_json(place));
        return Ok(exit::DONE);
    }
    let all = collect_definitions(place);
    for (origin, title) in [
        ("project", "this project:"),
        ("home", "your home folder:"),
        ("built-in", "built in (`cuegate init NAME` makes one yours):"),
    ] {
        let group: Vec<&ListedDefinition> = all.iter().filter(|listed| listed.origin == origin).collect();
        if group.is_empty() {
            continue;
        }
        print::print_data(title);
        let width = all.iter().map(|listed| listed.name.chars().count()).max().unwrap_or(0) + 2;
        for listed in group {
            let errors = if listed.has_errors { "(has errors) " } else { "" };
            // Its name alone is refused.
            let path = listed
                .path
                .as_ref()
                .filter(|_| all.iter().filter(|other| other.name == listed.name).count() > 1);
            let path = path.map(|path| format!("({}) ", clean_to_one_line(path))).unwrap_or_default();
            let hides = listed.hides.map(|hidden| format!("(used instead of {hidden}) ")).unwrap_or_default();
            let line = format!(
                "  {}{}{path}{hides}{errors}{} {}",
                pad_right(&clean_to_one_line(&listed.name), width),
                pad_right(listed.form, "workflow ".len()),
                clean_to_one_line(&listed.description),
                listed.describe_cost()
            );
            print::print_data(line.trim_end());
        }
    }
    for (title, names) in
        [("packages:", definition::list_packages()), ("the installed TAKT:", place.names_of_takt())]
    {
        if !names.is_empty() {
            print::print_data(title);
        }
        for line in wrap_names(&names) {
            print::print_data(&format!("  {line}"));
        }
    }
    Ok(exit::DONE)
}

/// Names in lines of a usual width.
fn wrap_names(names: &[String]) -> Vec<String> {
    const WIDTH: usize = 76;
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        let name = clean_to_one_line(name);
        match lines.last_mut() {
            Some(line) if line.len() + 2 + name.len() <= WIDTH => line.extend([", ", &name]),
            _ => lines.push(name),
        }
    }
    lines
}

/// A definition with what its files say about it.
fn list_entry_of_definition(place: &ProjectPlace, named: NamedDefinition) -> ListedDefinition {
    let hides = hidden_definition(&named, &names_in_home(place.home.root()));
    let NamedDefinition { name, path, origin } = named;
    let form = if path.is_dir() { "agent" } else { "workflow" };
    let read = place.locate(&path.to_string_lossy()).ok().and_then(|location| {
        let files = open_disk_files(&location).ok()?;
        Some(definition::inspect_definition(
            &files,
            &location.base,
            location.file.as_deref(),
            &[],
            &RecordedLoadOptions::default(),
        ))
    });
    let description = read.as_ref().map(|read| match &read.settings.description {
        text if text.is_empty() => read.settings.title.clone(),
        text => text.lines().next().unwrap_or_default().to_owned(),
    });
    let usual_calls = read.as_ref().and_then(|read| usual_calls(read.flow.as_deref()?));
    ListedDefinition {
        usual_calls,
        known: None,
        hides,
        name,
        form,
        description: description.unwrap_or_default(),
        origin: if origin == Origin::Project { "project" } else { "home" },
        path: Some(path.display().to_string()),
        has_errors: read.is_none_or(|read| read.has_errors()),
    }
}
