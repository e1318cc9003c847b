//! The behaviours, each shown by a function that fails where a provider does not have it.

pub mod answers;
pub mod ends;
pub mod faults;
pub mod sessions;
pub mod tools;
pub mod usage;

use serde_json::{Value, json};

/// A schema with a property that may be absent.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "verdict": { "enum": ["approved", "rejected"] }, "note": { "type": "string" } },
        "required": ["verdict"],
    })
}
