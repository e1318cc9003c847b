//! Schemas resolve as the original program's own test-suite has it.

use crate::disk;
use crate::support::Project;
use cuegate_formats::{SchemaFault, resolve_schema};
use serde_json::{Value, json};

/// A bare name is looked up in `definitions` first, then in `$defs`, then at the top.
#[test]
fn a_name_that_stands_in_several_places() {
    let all = json!({"definitions": {"x": {"const": 1}}, "$defs": {"x": {"const": 2}}, "x": {"const": 3}});
    let resolved = |without: &[&str]| {
        let mut document = all.clone();
        without.iter().for_each(|key| drop(document.as_object_mut().unwrap().remove(*key)));
        let files = Project::from([("schemas/a.json".to_owned(), document.to_string().into_bytes())]);
        resolve_schema(&files, "schemas", "a.json", "x").map(|schema| schema["const"].clone())
    };
    assert_eq!(resolved(&[]), Ok(json!(1)));
    assert_eq!(resolved(&["definitions"]), Ok(json!(2)));
    assert_eq!(resolved(&["definitions", "$defs"]), Ok(json!(3)));
    let pointed = Project::from([("schemas/a.json".to_owned(), all.to_string().into_bytes())]);
    let by = |pointer: &str| resolve_schema(&pointed, "schemas", "a.json", pointer).unwrap()["const"].clone();
    assert_eq!((by("#/$defs/x"), by("#/x")), (json!(2), json!(3)), "a pointer says which");
}

#[test]
fn recorded_cases_of_the_original() {
    let Some(folder) = disk::shared("cases/climpt") else { return };
    let text = disk::files_below(&folder).remove("SchemaResolver_resolve.json").unwrap();
    let recorded: Value = serde_json::from_slice(&text).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 20);
    for case in cases {
        let (id, call) = (&case["id"], &case["input"]["call"]);
        let files: Project = call["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, value)| (format!("schemas/{path}"), value.to_string().into_bytes()))
            .collect();
        let (file, schema) = (call["file"].as_str().unwrap(), call["schema"].as_str().unwrap());
        let resolved = resolve_schema(&files, "schemas", file, schema);
        match case.get("expectError").filter(|error| !error.is_null()) {
            None => assert_eq!(resolved.as_ref(), Ok(&case["expect"]), "{id}"),
            Some(error) => {
                let name = match resolved {
                    Err(SchemaFault::NotFound { .. }) => "SchemaPointerError",
                    Err(SchemaFault::Malformed { .. }) => "MalformedSchemaIdentifierError",
                    Err(SchemaFault::NoFile(_)) => "NotFound",
                    other => panic!("{id}: {other:?}"),
                };
                assert_eq!(error["name"], name, "{id}");
            }
        }
    }
}
