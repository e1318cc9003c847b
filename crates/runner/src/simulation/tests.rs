//! Generated values are valid, by keyword and draft.

use cuegate_flow::model::Schema;
use serde_json::{Value, json};

use super::value_sampler::sample_value;

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Checks that the values generated for a property with these schemas are valid in these drafts.
fn all_fit(drafts: &[&str], parts: &[Value]) {
    for draft in drafts {
        for part in parts {
            let schema =
                json!({"$schema": draft, "type": "object", "required": ["x"], "properties": {"x": part}});
            let rule =
                Schema::new(schema.clone()).unwrap_or_else(|error| panic!("{part} in {draft}: {error}"));
            for variant in 0..4 {
                let made = sample_value(&schema, variant);
                let problems = rule.problems(&made);
                let shown: String = made.to_string().chars().take(200).collect();
                assert!(problems.is_empty(), "{part} in {draft}: {shown}: {problems:?}");
            }
        }
    }
}

#[test]
fn numbers_within_their_bounds() {
    all_fit(
        &DRAFTS,
        &[
            json!({"type": "integer", "minimum": 0, "maximum": 0}),
            json!({"type": "integer", "minimum": 9_007_199_254_740_993_i64}),
            json!({"type": "integer", "minimum": 9_007_199_254_740_993_i64, "maximum": 9_007_199_254_740_993_i64}),
            json!({"type": "integer", "minimum": u64::MAX}),
            json!({"type": "integer", "maximum": -7, "multipleOf": 5}),
            json!({"type": "integer", "multipleOf": 2.5, "minimum": 1}),
            json!({"type": "number", "minimum": 0.02, "maximum": 0.04, "multipleOf": 0.01}),
            json!({"type": "number", "maximum": -0.25, "multipleOf": 0.25}),
            json!({"type": "number", "minimum": 0.1, "maximum": 0.2}),
            json!({"type": "integer", "not": {"enum": [1, 2, 3]}}),
            json!({"type": "number", "minimum": 0, "not": {"enum": [0, 0.0]}}),
        ],
    );
    all_fit(
        &DRAFTS[..1],
        &[
            json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}),
            json!({"type": "integer", "maximum": -3, "exclusiveMaximum": true}),
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true}),
        ],
    );
    all_fit(
        &DRAFTS[1..],
        &[
            json!({"type": "integer", "exclusiveMinimum": 3, "maximum": 4}),
            json!({"type": "integer", "exclusiveMaximum": -3}),
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}),
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.02, "multipleOf": 0.01}),
        ],
    );
}

#[test]
fn bounds_beyond_all_whole_numbers() {
    for bound in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        for far in [1e300, -1e300] {
            assert!(sample_value(&json!({"type": "integer", bound: far}), 0).is_number(), "{bound} {far}");
        }
    }
}

#[test]
fn texts_of_their_length() {
    all_fit(
        &DRAFTS,
        &[
            json!({"type": "string", "minLength": 100_000}),
            json!({"type": "string", "minLength": 30, "maxLength": 30}),
            json!({"type": "string", "maxLength": 0}),
            json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 20, "maxLength": 20}),
            json!({"type": "string", "pattern": "^PROJ-[0-9]*$", "minLength": 12}),
            json!({"type": "string", "pattern": "^[ab]$", "not": {"enum": ["a"]}}),
            json!({"type": "string", "not": {"pattern": "simulated"}}),
        ],
    );
}

#[test]
fn lists_of_what_they_have_to_hold() {
    all_fit(
        &DRAFTS,
        &[
            json!({"type": "array", "minItems": 30}),
            json!({"type": "array", "minItems": 40, "uniqueItems": true, "items": {"type": "integer"}}),
            json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "boolean"}}),
            json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"enum": ["a", "b", "c"]}}),
            json!({"type": "array", "not": {"maxItems": 0}}),
        ],
    );
    all_fit(
        &DRAFTS[1..],
        &[
            json!({"type": "array", "contains": {"const": "x"}, "minItems": 3, "items": {"type": "string"}}),
            json!({"type": "array", "contains": {"minimum": 7}, "items": {"type": "integer"}}),
        ],
    );
    all_fit(
        &DRAFTS[..4],
        &[json!({"type": "array", "minItems": 3, "items": [{"type": "string"}, {"type": "integer"}],
            "additionalItems": {"type": "boolean"}})],
    );
    all_fit(
        &DRAFTS[3..],
        &[
            json!({"type": "array", "contains": {"type": "integer"}, "minContains": 3, "uniqueItems": true, "maxContains": 3, "minItems": 3}),
        ],
    );
    all_fit(
        &DRAFTS[4..],
        &[
            json!({"type": "array", "minItems": 3, "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
            json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}, "contains": {"minimum": 4}}),
        ],
    );
}

#[test]
fn objects_of_what_they_have_to_have() {
    all_fit(
        &DRAFTS,
        &[
            json!({"type": "object", "minProperties": 3}),
            json!({"type": "object", "minProperties": 2, "patternProperties": {"^x-[a-z]+$": {"type": "integer"}},
                "additionalProperties": false}),
            json!({"type": "object", "required": ["x-a"], "patternProperties": {"^x-": {"type": "integer"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {}, "b": {"type": "integer"}},
                "not": {"required": ["c"]}}),
        ],
    );
    let names = json!({"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^[a-c]{2}$"}});
    let short = json!({"type": "object", "minProperties": 2, "propertyNames": {"maxLength": 2}});
    let listed = json!({"type": "object", "minProperties": 2, "propertyNames": {"enum": ["x", "y"]}});
    all_fit(&DRAFTS[1..], &[names, short, listed]);
    let owed = |key: &str| json!({"type": "object", "required": ["a"], "properties": {"b": {"type": "integer"}}, key: {"a": ["b"]}});
    all_fit(&DRAFTS[..3], &[owed("dependencies")]);
    all_fit(&DRAFTS[3..], &[owed("dependentRequired")]);
}

#[test]
fn each_format_has_a_text_in_each_draft() {
    for draft in DRAFTS {
        let mut asserted = 0;
        for format in [
            "date",
            "date-time",
            "duration",
            "email",
            "hostname",
            "idn-email",
            "idn-hostname",
            "ipv4",
            "ipv6",
            "iri",
            "iri-reference",
            "json-pointer",
            "regex",
            "relative-json-pointer",
            "time",
            "uri",
            "uri-reference",
            "uri-template",
            "uuid",
        ] {
            let schema = json!({"$schema": draft, "type": "object", "required": ["t"], "properties": {
                "t": {"type": "string", "format": format}}});
            let rule = Schema::new(schema.clone()).unwrap();
            let found = sample_value(&schema, 0);
            assert!(rule.problems(&found).is_empty(), "{format} in {draft}: {found}");
            asserted += usize::from(!rule.problems(&json!({"t": "%[("})).is_empty());
        }
        let is_older = draft.contains("draft-0");
        assert_eq!(asserted > 0, is_older, "{asserted} formats are asserted in {draft}");
    }
}
