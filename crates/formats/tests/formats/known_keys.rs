//! No key of a definition goes unread, and none is read that the page does not list: a key that nobody asks for is an
//! error, so that a definition with a key put into it tells whether anybody does.
#![expect(clippy::disallowed_methods, reason = "the schemas and the sources are files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::registry::page::keys;
use crate::registry::page::root;
use crate::support::{self, Project, findings, sound};
use crate::{disk, older::check_flow, older::complete};

/// One kind of file, as one generation of registries has it.
struct Format {
    /// The section of the page that lists its keys.
    section: &'static str,
    /// The file's name.
    file: &'static str,
    /// Sound agents that hold such a file: some objects are read only where others say so.
    bases: Vec<(Project, &'static str)>,
}

/// A key that no object has.
pub const NOBODYS: &str = "nobodysKey";

fn formats() -> [Format; 5] {
    let closing = || (sound(), support::DIR);
    let check = || (check_flow::sound(), check_flow::DIR);
    let complete = (support::project(complete::COMPLETE), complete::DIR);
    let ways = with(&complete.0, complete::DIR, "steps_registry.json", |registry| {
        registry["completionSteps"]["complete.fix"]["transitions"] = json!({"complete": {"target": null}});
    });
    let composite = json!({"type": "meta:composite", "config": {"operator": "or", "conditions": [
        {"type": "detect:keyword", "config": {"verdictKeyword": "DONE"}}]}});
    let combined = with(&closing().0, support::DIR, "agent.json", |agent| {
        agent["runner"]["verdict"] = composite.clone()
    });
    let older = with(&check().0, check_flow::DIR, "agent.json", |agent| {
        agent["behavior"]["completionType"] = json!("composite");
        agent["behavior"]["completionConfig"] = composite["config"].clone();
    });
    [
        Format { section: "Steps Registry", file: "steps_registry.json", bases: vec![closing()] },
        Format { section: "runner", file: "agent.json", bases: vec![closing(), (combined, support::DIR)] },
        Format {
            section: "Step Flow Design, complete",
            file: "steps_registry.json",
            bases: vec![complete, (ways, complete::DIR)],
        },
        Format { section: "Step Flow Design, check", file: "steps_registry.json", bases: vec![check()] },
        Format {
            section: "Step Flow Design, check",
            file: "agent.json",
            bases: vec![check(), (older, check_flow::DIR)],
        },
    ]
}

/// An agent with one of its files changed.
pub fn with(files: &Project, folder: &str, file: &str, change: impl FnOnce(&mut Value)) -> Project {
    let mut files = files.clone();
    let path = format!("{folder}/{file}");
    let mut json: Value = serde_json::from_slice(&files[&path]).unwrap();
    change(&mut json);
    files.insert(path, json.to_string().into_bytes());
    files
}

/// The parts of a path: `conditions[]` is a key and an item.
pub fn parts(path: &str) -> Vec<&str> {
    let segments = path.split('.').flat_map(|segment| match segment.strip_suffix("[]") {
        Some("") | None => vec![segment],
        Some(name) => vec![name, "[]"],
    });
    segments.collect()
}

/// What a path leads to. What is missing on the way is made; `*` is the first name there is, else a new one; `[]` the
/// first item.
pub fn place<'v>(within: &'v mut Value, path: &[&str]) -> &'v mut Value {
    let Some((first, rest)) = path.split_first() else { return within };
    if *first == "[]" {
        if within.as_array().is_none_or(|items| items.is_empty()) {
            *within = Value::from(vec![Value::Null]);
        }
        return place(&mut within[0], rest);
    }
    if !within.is_object() {
        *within = Value::Object(Map::new());
    }
    let known = within.as_object().and_then(|object| object.keys().next()).cloned();
    let name = if *first == "*" { known.unwrap_or_else(|| "any".to_owned()) } else { (*first).to_owned() };
    place(&mut within[name], rest)
}

/// Which of some keys nobody asks for in the object that a path leads to.
fn unknown<'k>(format: &Format, base: usize, at: &[&str], keys: &[&'k str]) -> BTreeSet<&'k str> {
    let (files, folder) = &format.bases[base];
    let files = with(files, folder, format.file, |json| {
        let object = place(json, at);
        if !object.is_object() {
            *object = Value::Object(Map::new());
        }
        for key in keys {
            if object[*key].is_null() {
                object[*key] = json!("no such thing");
            }
        }
    });
    let found = findings(&files, folder);
    // Those that belong elsewhere are one finding.
    let names = found.lines().filter_map(|line| Some(line.split_once("error[unknown-key]: ")?.1));
    let names = names.filter_map(|line| Some(line.split_once(" in ")?.0));
    let said: BTreeSet<&str> = names.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    keys.iter().filter(|key| said.contains(**key)).copied().collect()
}

/// A base in which the object at a path is read.
fn base_of(format: &Format, at: &[&str]) -> Option<usize> {
    (0..format.bases.len()).find(|base| unknown(format, *base, at, &[NOBODYS]).contains(NOBODYS))
}

/// The keys of the page by the objects that they stand in; `None` for names that an author chooses.
fn by_object(page: &BTreeSet<String>) -> BTreeMap<Vec<&str>, BTreeSet<Option<&str>>> {
    let mut objects: BTreeMap<Vec<&str>, BTreeSet<Option<&str>>> = BTreeMap::new();
    for path in page {
        let mut at = parts(path);
        let last = at.pop().unwrap();
        objects.entry(at).or_default().insert(Some(last).filter(|last| *last != "*"));
    }
    objects
}

#[test]
fn a_key_that_nobody_reads_is_unknown() {
    for format in formats() {
        let (files, folder) = &format.bases[0];
        assert!(!findings(files, folder).contains("error["), "{}", format.section);
        assert_eq!(base_of(&format, &[]), Some(0), "{}", format.section);
    }
}

#[test]
fn every_key_of_the_page_is_read() {
    let mut problems = Vec::new();
    for format in formats() {
        let page = keys(format.section, format.file);
        assert!(page.len() > 20, "{} lists {page:?}", format.section);
        for (at, names) in by_object(&page) {
            let names: Vec<&str> = names.into_iter().flatten().collect();
            // Objects that hold nothing but names of an author are read by those that hold the names.
            if names.is_empty() {
                continue;
            }
            let place = format!("{}, {}, {at:?}", format.section, format.file);
            match base_of(&format, &at) {
                None => problems.push(format!("{place}: nothing says that this object is read")),
                Some(base) => {
                    for name in names {
                        if !unknown(&format, base, &at, &[name]).is_empty() {
                            problems.push(format!("{place}: `{name}` is read by nobody"));
                        }
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn every_key_that_is_read_stands_in_the_page() {
    let words = words();
    let mut problems = Vec::new();
    for format in formats() {
        let page = keys(format.section, format.file);
        let objects = by_object(&page);
        // A key that holds an object with keys of its own has them in the page, too.
        for at in page.iter().map(|path| parts(path)).filter(|at| !objects.contains_key(at)) {
            if base_of(&format, &at).is_some() {
                problems.push(format!("{}, {}, {at:?}: its own keys", format.section, format.file));
            }
        }
        for (at, names) in objects {
            // Its keys are names of the author.
            if names.contains(&None) {
                continue;
            }
            let Some(base) = base_of(&format, &at) else { continue };
            let others: Vec<&str> =
                words.iter().map(String::as_str).filter(|word| !names.contains(&Some(*word))).collect();
            for read in read_of(&format, base, &at, &others) {
                problems.push(format!("{}, {}, {at:?}: `{read}`", format.section, format.file));
            }
        }
    }
    assert!(problems.is_empty(), "read, but not on the page: {problems:#?}");
}

/// Which of some keys an object is asked for. Keys that make something else of the whole definition, another generation
/// or a mixture, are none of this one: with them nothing else is read.
fn read_of<'k>(format: &Format, base: usize, at: &[&str], keys: &[&'k str]) -> Vec<&'k str> {
    let mut all = keys.to_vec();
    all.push(NOBODYS);
    let unknown = unknown(format, base, at, &all);
    if unknown.contains(NOBODYS) {
        return keys.iter().filter(|key| !unknown.contains(**key)).copied().collect();
    }
    let (left, right) = keys.split_at(keys.len() / 2);
    if left.is_empty() {
        return Vec::new();
    }
    [read_of(format, base, at, left), read_of(format, base, at, right)].concat()
}

/// Every word in quotes in the sources that read registries: what a key could be called.
fn words() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    collect(&root().join("crates/formats/src/climpt"), &mut words);
    assert!(words.len() > 200, "{words:?}");
    words
}

/// The words in quotes in the sources of a folder.
pub fn collect(folder: &Path, words: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, words);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let quoted = text.split('"').filter(|word| {
                !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "$_-".contains(c))
            });
            words.extend(quoted.map(str::to_owned));
        }
    }
}

/// Prompts have keys as well: what their front matters repeat of the registry.
#[test]
fn every_key_of_a_front_matter_that_is_read_stands_in_the_page() {
    let page = keys("Steps Registry", "a front matter");
    assert!(page.len() > 10, "{page:?}");
    let all: BTreeSet<String> = words().into_iter().chain(page.iter().cloned()).collect();
    let mut read = BTreeSet::new();
    // A key that YAML takes for nothing is none.
    for word in all.iter().filter(|word| !word.contains(['$', '-']) && *word != "null") {
        let prompt =
            format!("---\n{word}: x\n---\n\nPlan for {{uv-issue}} {{uv-baseBranch}}: {{input_text}}");
        let mut files = sound();
        let path = format!("{}/prompts/steps/initial/fix/f_default.md", support::DIR);
        files.insert(path, prompt.into_bytes());
        let found = findings(&files, support::DIR);
        let said = format!("`{word}` in the front matter of ");
        if !found.lines().any(|line| line.contains(&said) && line.contains(" has no effect")) {
            read.insert(word.clone());
        }
    }
    assert_eq!(read, page);
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
fn every_key_of_the_formats_own_schemas_is_on_the_page() {
    let Some(schemas) = disk::shared("corpora/climpt/schemas") else { return };
    let mut problems = Vec::new();
    for (name, section, file) in [
        ("agent.schema.json", "runner", "agent.json"),
        ("steps_registry.schema.json", "Steps Registry", "steps_registry.json"),
    ] {
        let schema: Value = serde_json::from_slice(&std::fs::read(schemas.join(name)).unwrap()).unwrap();
        let mut paths = BTreeSet::new();
        properties(&schema, &schema, "", &mut paths);
        assert!(paths.len() > 30, "{name} has {} properties", paths.len());
        let page = keys(section, file);
        for path in paths.iter().filter(|path| !page.contains(*path)) {
            problems.push(format!("{name}, {path}: docs/reference.md has no row for it"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
