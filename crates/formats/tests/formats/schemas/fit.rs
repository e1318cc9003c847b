//! What loads without an error of form fits the schema of its format: real definitions, and our own.

use std::path::Path;

use cuegate_flow::model::Schema;
use cuegate_formats::list_format_schemas;
use serde_json::Value;

use crate::registry::page::root;
use crate::support::{Project, project};
use crate::{disk, older::check_flow, older::complete, support, takt::takt_support};

/// The schema of a format, as it is printed.
pub fn value_of(name: &str) -> Value {
    let schema = list_format_schemas().iter().find(|schema| schema.name == name).unwrap();
    serde_json::from_str(schema.text).unwrap()
}

/// The same, compiled.
pub fn schema(name: &str) -> Schema {
    Schema::new(value_of(name)).unwrap()
}

/// A file of a project as a value: pieces are YAML, everything else JSON.
pub fn read(files: &Project, path: &str) -> Value {
    let text = std::str::from_utf8(&files[path]).unwrap();
    if path.ends_with(".yaml") {
        return serde_saphyr::from_str(text).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// What does not fit, a line each.
fn problems(files: &Project, name: &str, path: &str) -> Vec<String> {
    let found = schema(name).problems(&read(files, path));
    found.into_iter().map(|problem| format!("{path}, {name}: {problem}")).collect()
}

fn all_fit(files: &Project, list: &[(&str, &str)]) {
    let problems: Vec<String> = list.iter().flat_map(|(name, path)| problems(files, name, path)).collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn real_registries_and_agents_fit() {
    let Some(folder) = disk::shared("corpora/climpt") else { return };
    all_fit(
        &disk::files_below(&folder),
        &[
            ("registry-closing", "closing/iterator/steps_registry.json"),
            ("agent", "closing/iterator/agent.json"),
            ("registry-complete", "complete/iterator/steps_registry.json"),
            ("agent", "complete/iterator/agent.json"),
        ],
    );
}

#[test]
fn real_pieces_fit() {
    let Some(folder) = disk::shared("corpora/takt") else { return };
    let pieces = ["default", "magi", "minimal", "review-only"].map(|name| format!("en/pieces/{name}.yaml"));
    let list: Vec<(&str, &str)> = pieces.iter().map(|path| ("takt", &**path)).collect();
    all_fit(&disk::files_below(&folder), &list);
}

#[test]
fn sound_definitions_fit() {
    all_fit(
        &support::sound(),
        &[
            ("registry-closing", &format!("{}/steps_registry.json", support::DIR)),
            ("agent", &format!("{}/agent.json", support::DIR)),
        ],
    );
    all_fit(
        &project(complete::COMPLETE),
        &[
            ("registry-complete", &format!("{}/steps_registry.json", complete::DIR)),
            ("agent", &format!("{}/agent.json", complete::DIR)),
        ],
    );
    all_fit(
        &check_flow::sound(),
        &[
            ("registry-check", &format!("{}/steps_registry.json", check_flow::DIR)),
            ("agent", &format!("{}/agent.json", check_flow::DIR)),
        ],
    );
    all_fit(&takt_support::sound(), &[("takt", takt_support::FILE)]);
}

/// Every definition below a folder of this project.
fn of_the_project(folder: &Path) -> usize {
    let mut files = disk::files_below(folder);
    for (path, bytes) in &mut files {
        // What `init` fills in stands between two of these.
        if path.ends_with(".yaml") {
            *bytes = String::from_utf8(std::mem::take(bytes)).unwrap().replace('@', "").into_bytes();
        }
    }
    let name = |path: &str| match path.rsplit('/').next().unwrap() {
        "agent.json" => Some("agent"),
        "steps_registry.json" => Some("registry-closing"),
        _ => path.ends_with(".yaml").then_some("takt"),
    };
    let list: Vec<(&str, &str)> = files.keys().filter_map(|path| Some((name(path)?, &**path))).collect();
    all_fit(&files, &list);
    list.len()
}

#[test]
fn our_examples_fit() {
    assert_eq!(of_the_project(&root().join("examples/fix-failing-test/agent")), 2);
}

#[test]
fn our_starters_fit() {
    assert!(of_the_project(&root().join("crates/cuegate/src/init/takt/workflows")) >= 5);
}

#[test]
fn what_belongs_to_another_generation_does_not_fit() {
    let closing = read(&support::sound(), &format!("{}/steps_registry.json", support::DIR));
    let complete = read(&project(complete::COMPLETE), &format!("{}/steps_registry.json", complete::DIR));
    let check = read(&check_flow::sound(), &format!("{}/steps_registry.json", check_flow::DIR));
    for (at, value) in
        [("registry-closing", closing), ("registry-complete", complete), ("registry-check", check)]
    {
        for name in ["registry-closing", "registry-complete", "registry-check"] {
            assert_eq!(schema(name).problems(&value).is_empty(), name == at, "{at} as {name}");
        }
    }
}
