//! A schema has the keys that the loader reads: no other ones, and none is missing. For registries and agents that is
//! what `docs/reference.md` lists, which `known_keys.rs` holds against the loader.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::known_keys::{NOBODYS, collect};
use crate::registry::page::keys;
use crate::registry::page::root;
use crate::schemas::fit::{read, value_of};
use crate::support::{Project, findings_of};
use crate::takt::takt_support;

/// Keys whose values are the author's own, whatever keys those have.
const VALUES: [&str; 3] = ["targetState", "requiredFields", "default"];

/// Walks through a schema, and says for each part of it which path of a file it describes.
pub fn walk<'s>(
    root: &'s Value,
    part: &'s Value,
    at: &str,
    within: &mut Vec<&'s str>,
    see: &mut dyn FnMut(&str, &'s Value),
) {
    see(at, part);
    if let Some(name) = part["$ref"].as_str().filter(|name| !within.contains(name)) {
        within.push(name);
        walk(root, root.pointer(name.strip_prefix('#').unwrap()).unwrap(), at, within, see);
        within.pop();
    }
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    for (name, property) in part["properties"].as_object().into_iter().flatten() {
        walk(root, property, &below(name), within, see);
    }
    let patterns = part["patternProperties"].as_object().into_iter().flat_map(|map| map.values());
    let rest = Some(&part["additionalProperties"]).filter(|rest| rest.is_object());
    for property in patterns.chain(rest) {
        walk(root, property, &below("*"), within, see);
    }
    if part["items"].is_object() {
        walk(root, &part["items"], &format!("{at}[]"), within, see);
    }
    let choices = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| part[*key].as_array()).flatten();
    for choice in choices.chain(["then", "else"].iter().filter_map(|key| part.get(*key))) {
        walk(root, choice, at, within, see);
    }
}

/// The paths of all keys that a part of a schema describes.
fn paths(root: &Value, part: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    walk(root, part, "", &mut Vec::new(), &mut |at, _| {
        let of_a_value = at.split('.').rev().skip(1).any(|key| VALUES.contains(&key));
        if !at.is_empty() && !at.ends_with("[]") && !of_a_value {
            paths.insert(at.to_owned());
        }
    });
    // A key that is named among an author's own is one of them on the page.
    let own = |path: &String| {
        let (object, name) = path.rsplit_once('.').unwrap_or_default();
        name != "*" && !object.is_empty() && paths.contains(&format!("{object}.*"))
    };
    paths.iter().filter(|path| !own(path)).cloned().collect()
}

#[test]
fn a_schema_has_the_keys_of_the_page() {
    let formats = [
        ("registry-closing", "", "Steps Registry", "steps_registry.json"),
        ("registry-complete", "", "Step Flow Design, complete", "steps_registry.json"),
        ("registry-check", "", "Step Flow Design, check", "steps_registry.json"),
        ("agent", "/$defs/newer", "runner", "agent.json"),
        ("agent", "/$defs/older", "Step Flow Design, check", "agent.json"),
    ];
    for (name, pointer, section, file) in formats {
        let schema = value_of(name);
        let listed = keys(section, file);
        let described = paths(&schema, schema.pointer(pointer).unwrap());
        assert!(listed.len() > 20, "{section} lists {listed:?}");
        let missing: Vec<&String> = listed.difference(&described).collect();
        let unknown: Vec<&String> = described.difference(&listed).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{name}: without {missing:#?}, but with {unknown:#?}"
        );
    }
}

/// The objects of the sound piece, and the part of the schema that describes each.
const PIECE: [(&str, &str); 15] = [
    ("", ""),
    ("/movements/0", "/$defs/asks"),
    ("/movements/1", "/$defs/asks"),
    ("/movements/2", "/$defs/parallel"),
    ("/movements/2/parallel/0", "/$defs/member"),
    ("/movements/2/parallel/1/rules/0", "/$defs/outcome"),
    ("/movements/0/rules/1", "/$defs/rule"),
    ("/movements/2/rules/0", "/$defs/rule"),
    ("/movements/0/output_contracts", "/$defs/asks/properties/output_contracts"),
    ("/movements/2/parallel/0/output_contracts", "/$defs/member/properties/output_contracts"),
    ("/movements/0/output_contracts/report/0", "/$defs/namedReport"),
    ("/movements/1/quality_gates/1", "/$defs/gate"),
    ("/loop_monitors/0", "/$defs/monitor"),
    ("/loop_monitors/0/judge", "/$defs/judge"),
    ("/loop_monitors/0/judge/rules/0", "/$defs/rule"),
];

/// A sound piece in which every object of [`PIECE`] stands.
pub fn piece() -> Value {
    let mut piece = read(&takt_support::sound(), takt_support::FILE);
    piece["movements"][2]["parallel"][0]["output_contracts"] = json!({"report": [{"name": "arch.md"}]});
    piece
}

/// The files of the sound piece with another piece: JSON is YAML.
pub fn with_piece(piece: &Value) -> Project {
    let mut files = takt_support::sound();
    files.insert(takt_support::FILE.to_owned(), piece.to_string().into_bytes());
    files
}

#[test]
fn every_object_of_pieces_is_looked_at() {
    let schema = value_of("takt");
    let looked_at: Vec<&Value> = PIECE.iter().map(|(_, part)| schema.pointer(part).unwrap()).collect();
    let mut closed = BTreeMap::new();
    walk(&schema, &schema, "", &mut Vec::new(), &mut |at, part| {
        if part["additionalProperties"] == false {
            closed.insert(at.to_owned(), part);
        }
    });
    assert!(closed.len() >= 10, "{closed:#?}");
    for (at, part) in closed {
        assert!(looked_at.iter().any(|known| **known == *part), "nobody looks at {at}");
    }
}

#[test]
fn a_piece_has_the_keys_that_its_loader_reads() {
    let schema = value_of("takt");
    let mut words = BTreeSet::new();
    collect(&root().join("crates/formats/src/takt"), &mut words);
    let mut problems = Vec::new();
    for (at, part) in PIECE {
        let described: BTreeSet<&str> = schema.pointer(part).unwrap()["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let candidates: BTreeSet<&str> =
            words.iter().map(String::as_str).chain(described.iter().copied()).collect();
        // One key at a time: some make another object of a step.
        let refused = |key: &&str| {
            let mut piece = piece();
            let object = piece.pointer_mut(at).unwrap().as_object_mut().unwrap();
            if object.contains_key(*key) {
                return false;
            }
            object.insert((*key).to_owned(), json!("no such thing"));
            let found = findings_of(takt_support::load(&with_piece(&piece), |_| {}));
            found.contains(&format!("unknown key `{key}` in ")) || found.contains("not supported yet")
        };
        assert!(refused(&NOBODYS), "{at}");
        let mut read: BTreeSet<&str> = candidates.into_iter().filter(|key| !refused(key)).collect();
        // They make another object of a step.
        for key in ["parallel", "uses"] {
            if part != "/$defs/parallel" || key == "uses" {
                read.remove(key);
            }
        }
        if read != described {
            let missing: Vec<_> = read.difference(&described).collect();
            let unknown: Vec<_> = described.difference(&read).collect();
            problems.push(format!("{at}: without {missing:?}, but with {unknown:?}"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// The page about TAKT has a row for each key that the loader reads, and names tests that exist.
#[test]
#[expect(clippy::disallowed_methods, reason = "a page of the repository is no file of a definition")]
fn the_page_of_takt_has_every_key() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/takt.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let named: BTreeSet<&str> = rows.clone().flat_map(|(key, _)| key.split(|c| !is_letter(c))).collect();
    let schema = cuegate_formats::list_format_schemas().iter().find(|schema| schema.name == "takt").unwrap();
    let schema: Value = serde_json::from_str(schema.text).unwrap();
    let mut missing = BTreeSet::new();
    walk(&schema, &schema, "", &mut Vec::new(), &mut |at, _| {
        let key = at.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
        if !key.is_empty() && key != "*" && !named.contains(key) {
            missing.insert(key.to_owned());
        }
    });
    assert_eq!(missing, BTreeSet::new(), "docs/takt.md has no row for these keys");
    for (_, rest) in rows {
        let Some((_, test)) = rest.trim_end_matches(" |").rsplit_once("| `") else { continue };
        let test = test.trim_end_matches('`');
        let folders = ["", "crates/cuegate/tests", "crates/formats/tests"];
        assert!(
            folders.iter().any(|folder| root.join(folder).join(test).is_file()),
            "there is no test `{test}`"
        );
    }
}
