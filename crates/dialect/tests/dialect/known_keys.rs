//! No key of a definition goes unread: a key that nobody asks for is an error, and each key that the documents have is
//! put into a definition here, so that one which is read by nobody fails the build.
#![expect(clippy::disallowed_methods, reason = "the schemas are files")]

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::disk;
use crate::registry_page::keys;
use crate::support::{DIR, Project, findings, sound};

const AGENT: &str = ".agent/fixer/agent.json";
const REGISTRY: &str = ".agent/fixer/steps_registry.json";

/// Puts something that no key holds where a path leads, unless something stands there. What is missing on the way is
/// made; `*` is the first name there is, else a new one; `[]` the first item.
fn probe(into: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        if into.is_null() {
            *into = Value::from("no such thing");
        }
        return;
    };
    match *first {
        "[]" => {
            if into.as_array().is_none_or(|items| items.is_empty()) {
                *into = Value::from(vec![Value::Null]);
            }
            probe(&mut into[0], rest);
        }
        name => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            let known = into.as_object().and_then(|object| object.keys().next()).cloned();
            let name = if name == "*" { known.unwrap_or_else(|| "any".to_owned()) } else { name.to_owned() };
            probe(&mut into[name], rest);
        }
    }
}

/// What is found that says that the last name of a path is unknown.
fn unknown(files: &Project, file: &str, path: &str) -> Option<String> {
    let mut files = files.clone();
    let mut json: Value = serde_json::from_slice(&files[file]).unwrap();
    let parts: Vec<&str> = path.split('.').flat_map(parts).collect();
    probe(&mut json, &parts);
    files.insert(file.to_owned(), json.to_string().into_bytes());
    let name = parts.iter().rfind(|part| !matches!(**part, "*" | "[]")).unwrap();
    let said = format!("error[unknown-key]: `{name}` is no key of ");
    findings(&files, DIR).lines().find(|line| line.contains(&said)).map(str::to_owned)
}

/// `conditions[]` is a key and an item.
fn parts(segment: &str) -> Vec<&str> {
    match segment.strip_suffix("[]") {
        Some("") | None => vec![segment],
        Some(name) => vec![name, "[]"],
    }
}

/// The steps of the sound agent alone: the first of them is one that is run.
fn base() -> Project {
    sound()
}

fn file_of(path: &str) -> &'static str {
    const OF_AGENTS: [&str; 7] =
        ["runner", "parameters", "name", "displayName", "description", "version", "$schema"];
    let first = path.split('.').next().unwrap();
    if OF_AGENTS.contains(&first) { AGENT } else { REGISTRY }
}

#[test]
fn a_key_that_nobody_reads_is_unknown() {
    let files = base();
    for path in ["runner.flow.pace", "parameters.*.kind", "steps.*.structuredGate.strict", "colour"] {
        let file = file_of(path);
        assert!(unknown(&files, file, path).is_some(), "{path} is taken in silence");
    }
}

#[test]
fn every_key_of_the_page_is_read() {
    let page = keys();
    let files = base();
    let unread: Vec<String> = page.iter().filter_map(|path| unknown(&files, file_of(path), path)).collect();
    assert!(unread.is_empty(), "{unread:#?}");
}

/// Every path of properties that a JSON Schema knows.
fn properties(schema: &Value, root: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.strip_prefix('#').unwrap()).unwrap();
        properties(target, root, at, found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        properties(property, root, &path, found);
        found.insert(path);
    }
    if schema["additionalProperties"].is_object() {
        properties(&schema["additionalProperties"], root, &format!("{at}.*"), found);
    }
    if schema["items"].is_object() {
        properties(&schema["items"], root, &format!("{at}[]"), found);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            properties(part, root, at, found);
        }
    }
}

#[test]
fn every_key_of_the_formats_own_schemas_is_read() {
    let Some(schemas) = disk::shared("corpora/climpt/schemas") else { return };
    let files = base();
    let page = keys();
    let mut problems = Vec::new();
    for (name, file) in [("agent.schema.json", AGENT), ("steps_registry.schema.json", REGISTRY)] {
        let schema: Value = serde_json::from_slice(&std::fs::read(schemas.join(name)).unwrap()).unwrap();
        let mut paths = BTreeSet::new();
        properties(&schema, &schema, "", &mut paths);
        assert!(paths.len() > 30, "{name} has {} properties", paths.len());
        for path in &paths {
            problems.extend(unknown(&files, file, path).map(|found| format!("{name}, {path}: {found}")));
            if !page.contains(path) {
                problems.push(format!("{name}, {path}: docs/registry.md has no row for it"));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
