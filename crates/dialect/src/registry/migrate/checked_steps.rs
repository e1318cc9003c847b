//! What a check and its work are in a newer registry: names, words, gates, schemas.

use serde_json::{Value, json};

use super::super::check_flow::{CheckFlow, RESULT};
use super::rounds::{Node, To};

/// What steps are called that fail a run.
pub(super) const FAILED: &str = "failed";

/// What such a step needs, and no step leaves.
pub(super) const NEVER: &str = "passing_check";

/// The words of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    /// What it says when it passes.
    pub(super) pass: &'static str,
    /// What it says when not.
    pub(super) fail: &'static str,
}

impl Words {
    /// A check that can complete the run is a closure step, and says `closing` where it does.
    pub(super) fn of(node: &Node) -> Words {
        let (pass, fail) = match (node.pass, node.fail) {
            (To::Completed, To::Completed) => ("closing", "closing"),
            (To::Completed, _) => ("closing", "repeat"),
            (_, To::Completed) => ("repeat", "closing"),
            _ => ("next", "repeat"),
        };
        Words { pass, fail }
    }

    /// Each once.
    fn all(self) -> Vec<&'static str> {
        if self.pass == self.fail { vec![self.pass] } else { vec![self.pass, self.fail] }
    }

    /// The `stepKind`.
    pub(super) fn kind(self) -> &'static str {
        if self.all().contains(&"closing") { "closure" } else { "verification" }
    }

    /// The `structuredGate`: what cannot be read did not pass.
    pub(super) fn gate(self) -> Value {
        json!({
            "allowedIntents": self.all(), "intentSchemaRef": format!("#/properties/{RESULT}"), "intentField": RESULT,
            "failFast": false, "fallbackIntent": self.fail,
        })
    }

    /// The schema of the older answer with these words. It stays open, as that was.
    pub(super) fn schema(self, older: &Value) -> Value {
        let mut schema = older.clone();
        schema["properties"][RESULT] = json!({"type": "string", "enum": self.all()});
        schema["additionalProperties"] = json!(true);
        schema
    }

    /// What the agent is told.
    pub(super) fn told(self) -> String {
        if self.pass == self.fail {
            return format!("Whatever you find, answer with `\"{RESULT}\": \"{}\"`.", self.pass);
        }
        format!(
            "Say what you found in these words: `\"{RESULT}\": \"{}\"` when it passes, `\"{RESULT}\": \"{}\"` when not. They \
             take the place of `ok` and `ng`, `pass` and `fail`, `true` and `false`.",
            self.pass, self.fail
        )
    }
}

/// What a copy is called: the older id, with the retry and the execution that it is for.
pub(super) fn id(flow: &CheckFlow<'_>, node: &Node, words: Words) -> String {
    let copy = node.copy;
    let first = copy.retries == 0 && copy.run == 1;
    let stage = match (copy.checks, first) {
        (true, _) => words.kind(),
        (false, true) => "initial",
        (false, false) => "continuation",
    };
    let mut id = format!("{stage}.{}", flow.steps[copy.step].id);
    if copy.retries > 0 {
        id.push_str(&format!(".retry{}", copy.retries));
    }
    if copy.run > 1 {
        id.push_str(&format!(".{}", copy.run));
    }
    id
}

/// A step with what all have.
pub(super) fn step(id: &str, name: &str, kind: &str, c2: &str) -> Value {
    json!({"stepId": id, "name": name, "stepKind": kind, "c2": c2, "c3": ""})
}

/// The schema of an answer that only says what it has to.
pub(super) fn schema_of_done(word: &str) -> Value {
    json!({
        "type": "object", "required": ["next_action"], "additionalProperties": true,
        "properties": {
            "summary": {"type": "string"},
            "next_action": {
                "type": "object", "required": ["action"], "properties": {"action": {"type": "string", "enum": [word]}}
            }
        }
    })
}
