//! One test function per behaviour, which panics if the provider lacks it.

pub mod answers;
pub mod ends;
pub mod faults;
pub mod sessions;
pub mod tools;
pub mod usage;

use serde_json::{Value, json};

/// A schema with an optional property.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "verdict": { "enum": ["approved", "rejected"] }, "note": { "type": "string" } },
        "required": ["verdict"],
    })
}
