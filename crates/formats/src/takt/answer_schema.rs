//! JSON Schemas of the answers that the steps of a workflow expect.
//!
//! No schema has `anyOf` at the top level: providers that pass the schema as tool parameters reject it there. A
//! provider that does not know `if` ignores it; the gate still checks the answer.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use cuegate_flow::model::Schema;
use serde_json::{Map, Value, json};

/// The outcome word that means "no condition holds".
pub(super) const NONE: &str = "none";

/// Field names of the fused answer.
pub(super) const OUTCOME: &str = "outcome";
pub(super) const RESPONSE: &str = "response";
pub(super) const REPORTS: &str = "reports";
pub(super) const BLOCKED: &str = "blocked";
/// The field with a judge's reason.
pub(super) const REASON: &str = "reason";

/// The field with the data of `structured_output`.
pub(super) const STRUCTURED: &str = "structured";

/// Schemas keyed by their outcomes and report names.
type FusedSchemas = HashMap<(Vec<String>, Vec<String>), Schema>;

/// Caches the schemas of one workflow, because many steps share the same outcomes and reports.
#[derive(Default)]
pub(super) struct AnswerSchemaCache {
    fused: RefCell<FusedSchemas>,
    /// Keyed by outcomes.
    judged: RefCell<HashMap<Vec<String>, Schema>>,
}

impl AnswerSchemaCache {
    /// Cached [`build_fused_schema`].
    pub(super) fn fused(&self, outcomes: &[String], reports: &[&str]) -> Schema {
        let key = (outcomes.to_vec(), reports.iter().map(|name| (*name).to_owned()).collect());
        self.fused.borrow_mut().entry(key).or_insert_with(|| build_fused_schema(outcomes, reports)).clone()
    }

    /// Cached [`build_judge_schema`].
    pub(super) fn judged(&self, outcomes: &[String]) -> Schema {
        self.judged
            .borrow_mut()
            .entry(outcomes.to_vec())
            .or_insert_with(|| build_judge_schema(outcomes))
            .clone()
    }
}

/// The schema of an answer that holds the outcome, the text and the reports, or the reason why the agent is blocked.
fn build_fused_schema(outcomes: &[String], reports: &[&str]) -> Schema {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if !outcomes.is_empty() {
        properties.insert(OUTCOME.into(), json!({"type": "string", "enum": outcomes}));
        required.push(OUTCOME);
    }
    properties.insert(RESPONSE.into(), json!({"type": "string"}));
    required.push(RESPONSE);
    if !reports.is_empty() {
        let each: Map<String, Value> =
            reports.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        properties.insert(
            REPORTS.into(),
            json!({"type": "object", "properties": each, "required": reports, "additionalProperties": false}),
        );
        required.push(REPORTS);
    }
    properties.insert(BLOCKED.into(), json!({"type": "string"}));
    compile_fixed_schema(json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "if": {"required": [BLOCKED], "properties": {BLOCKED: {"pattern": "\\S"}}},
        "else": {"required": required}
    }))
}

/// The fused schema of an answer that also holds data, which must have the `required` fields.
pub(super) fn with_data(outcomes: &[String], reports: &[&str], mut data: Value, required: &[&str]) -> Schema {
    let mut whole = build_fused_schema(outcomes, reports).into_value();
    if let Value::Object(data) = &mut data {
        let mut all: Vec<Value> = data.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        all.extend(required.iter().map(|name| Value::from(*name)));
        let mut seen = HashSet::new();
        all.retain(|name| seen.insert(name.clone()));
        if !all.is_empty() {
            data.insert("required".into(), all.into());
        }
    }
    whole["properties"][STRUCTURED] = data;
    if let Some(owed) = whole["else"]["required"].as_array_mut() {
        owed.push(STRUCTURED.into());
    }
    Schema::new(whole).expect("it compiles, because the schema of the data does by itself")
}

/// The schema of a judge's answer.
fn build_judge_schema(outcomes: &[String]) -> Schema {
    compile_fixed_schema(json!({
        "type": "object",
        "properties": {
            OUTCOME: {"type": "string", "enum": outcomes},
            REASON: {"type": "string"}
        },
        "required": [OUTCOME, REASON],
        "additionalProperties": false
    }))
}

fn compile_fixed_schema(value: Value) -> Schema {
    Schema::new(value).expect("a schema of these few keywords compiles, whatever its texts are")
}

#[cfg(test)]
mod tests {
    use super::{build_fused_schema, build_judge_schema};
    use serde_json::json;

    #[test]
    fn a_fused_answer_has_all_that_is_owed_or_is_blocked() {
        let schema = build_fused_schema(&["done".into(), "none".into()], &["a.md"]);
        let fits = |answer| schema.problems(&answer).is_empty();
        assert!(fits(json!({"outcome": "done", "response": "r", "reports": {"a.md": "x"}})));
        assert!(fits(json!({"outcome": "done", "response": "r", "reports": {"a.md": "x"}, "blocked": ""})));
        assert!(fits(json!({"blocked": "no network"})));
        assert!(!fits(json!({"blocked": " "})));
        assert!(!fits(json!({"outcome": "done", "response": "r"})), "a report is owed");
        assert!(!fits(json!({"outcome": "done", "response": "r", "reports": {}})));
        assert!(!fits(json!({"outcome": "other", "response": "r", "reports": {"a.md": "x"}})));
        assert!(!fits(json!({"response": "r", "reports": {"a.md": "x"}})));
        assert!(!fits(json!({"outcome": "done", "response": "r", "reports": {"a.md": "x"}, "more": 1})));
    }

    #[test]
    fn what_is_not_owed_is_not_there() {
        let schema = build_fused_schema(&[], &[]);
        assert!(schema.problems(&json!({"response": "r"})).is_empty());
        assert!(!schema.problems(&json!({"response": "r", "reports": {}})).is_empty());
        assert!(!build_judge_schema(&["a".into()]).problems(&json!({"outcome": "a"})).is_empty());
        assert!(
            build_judge_schema(&["a".into()])
                .problems(&json!({"outcome": "a", "reason": "it is"}))
                .is_empty()
        );
    }
}
