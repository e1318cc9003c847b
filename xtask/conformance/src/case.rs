//! Reads recorded cases from their files.

use std::{fs, path::Path};

use serde_json::Value;

/// A file of recorded cases.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The function or feature under test.
    pub(super) subject: String,
    /// The cases; `None` if the file contains something else.
    pub(super) cases: Option<Vec<Value>>,
}

/// A case.
#[derive(Debug)]
pub(super) struct Case {
    /// Its id.
    pub(super) id: String,
    /// The input of the original program; undefined arguments are absent.
    pub(super) input: Value,
    /// The result of the original program.
    pub(super) expected: Expected,
}

/// The result of the original program.
#[derive(Debug)]
pub(super) enum Expected {
    /// It returned this value.
    Value(Value),
    /// It failed with this message.
    Error(String),
}

/// How the files mark an undefined argument.
const UNDEFINED: &str = "__undefined__";

/// Reads all files of a folder, sorted by name.
pub(super) fn read(dir: &Path) -> Result<Vec<Recorded>, String> {
    let failed = |error: std::io::Error| format!("failed to read `{}`: {error}", dir.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(format!("`{}` holds no recorded cases", dir.display()));
    }
    paths.sort();
    paths.iter().map(|path| read_file(path)).collect()
}

fn read_file(path: &Path) -> Result<Recorded, String> {
    let failed = |why: &dyn std::fmt::Display| format!("failed to read `{}`: {why}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let mut file: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // Some files describe their subject instead of naming a function.
    let named = file["subject"].as_str().filter(|subject| !subject.contains(' '));
    let subject = named.unwrap_or(&stem).to_owned();
    let cases = match file["cases"].take() {
        Value::Array(cases) => Some(cases),
        _ => None,
    };
    Ok(Recorded { subject, cases })
}

impl Case {
    /// Reads a case of the common shape.
    pub(super) fn of(written: &Value) -> Result<Case, String> {
        if let Some(common) = super::stepflow::common(written) {
            return Case::of(&common);
        }
        let id = written["id"].as_str().ok_or_else(|| format!("a case has no `id`: {written}"))?;
        let input = written.get("input").ok_or_else(|| format!("`{id}` has no `input`"))?;
        // A recorded run; a run that was rejected at its start records the error.
        let thrown = written["observed"].get("threw").map(|_| &written["observed"]);
        let watched = written.get("observed").filter(|_| thrown.is_none());
        let results = (written.get("expect").or(watched), written.get("expectError").or(thrown));
        let expected = match results {
            (Some(value), None) => Expected::Value(given(value)),
            (None, Some(error)) => Expected::Error(error["message"].as_str().unwrap_or_default().to_owned()),
            _ => return Err(format!("`{id}` needs either `expect` or `expectError`")),
        };
        Ok(Case { id: id.to_owned(), input: given(input), expected })
    }
}

/// A value without its undefined parts.
fn given(value: &Value) -> Value {
    match value {
        Value::String(text) if text == UNDEFINED => Value::Null,
        Value::Object(map) => {
            let given = map.iter().filter(|(_, value)| value.as_str() != Some(UNDEFINED));
            Value::Object(given.map(|(key, value)| (key.clone(), self::given(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(given).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Expected};
    use serde_json::json;

    #[test]
    fn arguments_that_were_not_given_are_absent() {
        let written = json!({"id": "x#1", "input": {"a": "__undefined__", "b": [1, null]}, "expect": null});
        let case = Case::of(&written).unwrap();
        assert_eq!(case.input, json!({"b": [1, null]}));
        assert!(matches!(case.expected, Expected::Value(value) if value.is_null()));
        assert!(Case::of(&json!({"id": "x#2", "input": {}})).is_err(), "neither a result nor an error");
    }

    #[test]
    fn what_was_watched_is_a_result_unless_it_threw() {
        let of =
            |observed| Case::of(&json!({"id": "x#1", "input": {}, "observed": observed})).unwrap().expected;
        assert!(matches!(of(json!({"success": false})), Expected::Value(_)));
        let thrown = of(json!({"threw": "ConfigError", "message": "no"}));
        assert!(matches!(thrown, Expected::Error(message) if message == "no"));
    }
}
