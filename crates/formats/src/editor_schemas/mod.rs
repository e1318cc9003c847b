//! JSON Schemas of the definition formats, for editors. They cover the rules that concern a single file.
//!
//! The schemas are written by hand; tests keep them consistent with the loader: each object has exactly the keys that
//! the loader reads, enumerations have the same words, and both reject the same malformed values. Rules across files
//! (unknown names, missing prompts) are left to the loader.

/// The schema of one kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatSchema {
    /// Its name on the command line, such as `piece`.
    pub name: &'static str,
    /// A short description.
    pub of: &'static str,
    /// The JSON Schema (draft 2020-12) as text, with ordered keys.
    pub text: &'static str,
}

const SCHEMAS: [FormatSchema; 5] = [
    FormatSchema {
        name: "registry-closing",
        of: "steps_registry.json of the “closing” generation",
        text: include_str!("registry-closing.schema.json"),
    },
    FormatSchema {
        name: "registry-complete",
        of: "steps_registry.json of the “complete” generation",
        text: include_str!("registry-complete.schema.json"),
    },
    FormatSchema {
        name: "registry-check",
        of: "steps_registry.json of the check flow",
        text: include_str!("registry-check.schema.json"),
    },
    FormatSchema {
        name: "agent",
        of: "agent.json, with `runner` or in the older shape with `behavior`",
        text: include_str!("agent.schema.json"),
    },
    FormatSchema { name: "takt", of: "TAKT workflows, in YAML", text: include_str!("takt.schema.json") },
];

pub fn list_format_schemas() -> &'static [FormatSchema] {
    &SCHEMAS
}

#[cfg(test)]
mod tests {
    use super::list_format_schemas;
    use serde_json::Value;

    /// Every value within a JSON value, itself included.
    fn all(value: &Value) -> Vec<&Value> {
        let inner: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => Vec::new(),
        };
        std::iter::once(value).chain(inner.into_iter().flat_map(all)).collect()
    }

    #[test]
    fn every_part_is_there_and_is_used() {
        for schema in list_format_schemas() {
            let value: Value = serde_json::from_str(schema.text).unwrap();
            let name = schema.name;
            assert_eq!(value["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
            assert!(value.get("$id").is_none() && value["title"].is_string(), "{name}");
            let references: Vec<&str> =
                all(&value).into_iter().filter_map(|part| part["$ref"].as_str()).collect();
            for reference in &references {
                let target = reference.strip_prefix('#').and_then(|pointer| value.pointer(pointer));
                assert!(target.is_some(), "{name}: {reference}");
            }
            for part in value["$defs"].as_object().unwrap().keys() {
                assert!(
                    references.contains(&format!("#/$defs/{part}").as_str()),
                    "{name}: nobody uses {part}"
                );
            }
        }
    }

    #[test]
    fn every_key_that_is_described_says_something() {
        for schema in list_format_schemas() {
            let value: Value = serde_json::from_str(schema.text).unwrap();
            let described = all(&value).into_iter().filter_map(|part| part.get("description"));
            let texts: Vec<&str> = described.filter_map(Value::as_str).collect();
            assert!(texts.len() > 20, "{}", schema.name);
            for text in texts {
                assert!(text.ends_with('.') && text.len() > 8, "{}: {text}", schema.name);
            }
        }
    }
}
