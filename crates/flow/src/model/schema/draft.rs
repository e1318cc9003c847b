//! How the JSON Schema draft of a schema affects its keywords.

use jsonschema::{Draft as Known, Validator};
use serde_json::{Value, json};

use super::KeyLookup;

/// The draft of a schema. It also applies to parts taken out of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchemaDraft(Known);

impl SchemaDraft {
    /// The draft that a whole schema declares; the newest if it declares no known one.
    pub(crate) fn of(schema: &Value) -> SchemaDraft {
        let named = schema.find_key("$schema").and_then(Value::as_str).map(Known::from_schema_uri);
        SchemaDraft(named.filter(|draft| *draft != Known::Unknown).unwrap_or_default())
    }

    /// A compiled part of the schema; `None` if the part refers to the whole.
    pub(crate) fn compile(self, part: &Value) -> Option<Validator> {
        jsonschema::options().with_draft(self.0).build(part).ok()
    }

    /// Whether a name matches a pattern; `None` if the pattern is invalid.
    pub(crate) fn matches(self, pattern: &str, name: &str) -> Option<bool> {
        Some(self.compile(&json!({ "pattern": pattern }))?.is_valid(&Value::from(name)))
    }

    /// Whether keywords beside a `$ref` are ignored.
    pub(crate) fn is_only_reference(self) -> bool {
        self.0 < Known::Draft201909
    }

    /// Whether the draft knows a keyword. Unknown keywords are ignored.
    pub(crate) fn knows(self, keyword: &str) -> bool {
        let since = match keyword {
            "additionalItems" => return self.0 < Known::Draft202012,
            "const" | "contains" | "propertyNames" => Known::Draft6,
            "if" | "then" | "else" => Known::Draft7,
            "dependentRequired" | "dependentSchemas" | "minContains" | "maxContains" => Known::Draft201909,
            "prefixItems" => Known::Draft202012,
            _ => Known::Draft4,
        };
        self.0 >= since
    }
}

#[cfg(test)]
mod tests {
    use super::SchemaDraft;
    use serde_json::json;

    #[test]
    fn known_keywords_match_what_validators_honor() {
        let refusing = [
            ("const", json!({"const": 1})),
            ("propertyNames", json!({"propertyNames": {"maxLength": 0}})),
            ("if", json!({"if": {}, "then": {"type": "null"}})),
            ("dependentRequired", json!({"dependentRequired": {"a": ["b"]}})),
            ("dependentSchemas", json!({"dependentSchemas": {"a": {"type": "null"}}})),
            ("dependencies", json!({"dependencies": {"a": ["b"]}})),
        ];
        for name in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let draft = SchemaDraft::of(&json!({"$schema": name}));
            for (keyword, part) in &refusing {
                let fits = draft.compile(part).expect("it compiles").is_valid(&json!({"a": 1}));
                assert_eq!(draft.knows(keyword), !fits, "{keyword} in {name}");
            }
        }
    }

    #[test]
    fn formats_are_asserted_only_where_the_draft_does() {
        let email = |name: &str| {
            let draft = SchemaDraft::of(&json!({"$schema": name}));
            draft.compile(&json!({"format": "email"})).expect("it compiles").is_valid(&json!("b"))
        };
        assert!(!email("http://json-schema.org/draft-07/schema#"));
        assert!(email("https://json-schema.org/draft/2020-12/schema"));
    }
}
