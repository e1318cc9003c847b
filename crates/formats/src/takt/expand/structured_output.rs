//! The schemas of structured answers: files that `structured_output` names through the `schemas` of its workflow.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Schema,
};
use serde_json::Value;

use super::{Expander, INSTALL, Layers, get_mut};
use crate::codes;
use crate::schemas::{SchemaFault, resolve_in_draft};
use crate::values::json::{Entry, Json, Kind};

/// The folder of schemas in the layers.
const FOLDER: &str = "schemas";

impl Expander<'_, '_> {
    /// Replaces the name of a schema in `structured_output` by the schema, with its references replaced by what they
    /// refer to.
    pub(super) fn structured_output(&mut self, step: &mut Json, schemas: Option<&Json>, layers: &Layers) {
        let Some(output) = get_mut(step, "structured_output") else { return };
        let Some(name) = output.get("schema_ref").filter(|name| name.as_text().is_some()) else {
            let finding =
                Diagnostic::error(codes::MISSING_KEY, output.span, "`structured_output` names no schema");
            self.refuse(finding.hint("write `schema_ref: NAME`, a name in `schemas`"));
            return;
        };
        let (span, key) = (name.span, name.as_text().unwrap_or_default().trim());
        // A name that is not in `schemas` is the name of the file.
        let file = schemas.and_then(|all| all.get(key)?.as_text()).map_or(key, str::trim);
        let Some(path) = layers.find(self.desk, &[FOLDER], file, &[".json"]) else {
            let message = format!("the schema file `{file}.json` is not found");
            let hint = format!(
                "it is looked for in {}; a name may also be a key of `schemas`; {INSTALL}",
                layers.places(FOLDER)
            );
            self.refuse(Diagnostic::error(codes::UNKNOWN_NAME, span, message).hint(hint));
            return;
        };
        match self.schema(&path, span) {
            Some(schema) => *output = of_value(schema, span),
            None => self.refused = true,
        }
    }

    /// Reads the schema in a file that a name at `span` leads to.
    fn schema(&mut self, path: &str, span: Span) -> Option<Value> {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let (place, message) = match resolve_in_draft(self.desk, folder, file, "#") {
            // What is wrong with the text of the file has its own finding.
            Err(broken) if matches!(broken.fault, SchemaFault::Unreadable(_)) => return None,
            Err(broken) => {
                (broken.at.unwrap_or(span), format!("`{path}` cannot be resolved: {}", broken.fault))
            }
            Ok(mut schema) => {
                let Value::Object(fields) = &mut schema else {
                    let message = format!("`{path}` holds no JSON Schema");
                    let finding = Diagnostic::error(codes::INVALID_VALUE, span, message);
                    self.desk.found.push(finding.hint("write an object with `properties`"));
                    return None;
                };
                for key in ["$schema", "$id", "$defs", "definitions"] {
                    fields.remove(key);
                }
                match Schema::new(schema.clone()) {
                    Ok(_) => return Some(schema),
                    Err(error) => (span, format!("`{path}` is not a valid JSON Schema: {error}")),
                }
            }
        };
        let finding = Diagnostic::error(codes::INVALID_VALUE, place, message);
        self.desk.found.push(finding.hint("correct the schema"));
        None
    }
}

fn of_value(value: Value, span: Span) -> Json {
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => Kind::Boolean(value),
        Value::Number(value) => Kind::Number(value),
        Value::String(text) => Kind::Text(text.into()),
        Value::Array(items) => Kind::List(items.into_iter().map(|item| of_value(item, span)).collect()),
        Value::Object(fields) => {
            let entry = |(key, value): (String, Value)| Entry {
                key: key.into(),
                key_span: span,
                value: of_value(value, span),
            };
            Kind::Object(fields.into_iter().map(entry).collect())
        }
    };
    Json { span, kind }
}
