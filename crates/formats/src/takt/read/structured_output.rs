//! The schemas of structured answers: files that `structured_output` names through the `schemas` of its workflow.

use cuegate_flow::{
    diagnostics::{Diagnostic, Span},
    model::Schema,
};
use serde_json::Value;

use super::agent::StructuredOutput;
use super::step::StepReader;
use crate::codes;
use crate::schemas::{SchemaFault, resolve_in_draft};
use crate::takt::compose::INSTALL;
use crate::values::json::{Fields, Json};

/// The folder of schemas in the layers.
const FOLDER: &str = "schemas";

impl StepReader<'_, '_, '_> {
    /// Reads the schema that `structured_output` names, with its references replaced by what they refer to.
    pub(super) fn read_structured_output(&self, fields: &Fields<'_, '_>) -> Option<StructuredOutput> {
        let entry = fields.nullable("structured_output")?;
        let Some(name) = entry.value.get("schema_ref").filter(|name| name.as_text().is_some()) else {
            let message = "`structured_output` names no schema";
            let finding = Diagnostic::error(codes::MISSING_KEY, entry.value.span, message);
            self.notes.refuse(finding.hint("write `schema_ref: NAME`, a name in `schemas`"));
            return None;
        };
        let (span, key) = (name.span, name.as_text().unwrap_or_default().trim());
        if let Some(output) = fields.object("structured_output") {
            output.nullable("schema_ref");
            output.finish();
        }
        let scope = self.sections.scope();
        // A name that is not in `schemas` is the name of the file.
        let schemas = scope.root.get("schemas");
        let file = schemas.and_then(|all: &Json| all.get(key)?.as_text()).map_or(key, str::trim);
        let Some(path) = scope.layers.find(self.files.loader, &[FOLDER], file, &[".json"]) else {
            let message = format!("the schema file `{file}.json` is not found");
            let hint = format!(
                "it is looked for in {}; a name may also be a key of `schemas`; {INSTALL}",
                scope.layers.places(FOLDER, file)
            );
            self.notes.refuse(Diagnostic::error(codes::UNKNOWN_NAME, span, message).hint(hint));
            return None;
        };
        let schema = self.read_schema(&path, span);
        if schema.is_none() {
            self.notes.mark_refused();
        }
        Some(StructuredOutput { schema: schema? })
    }

    /// Reads the schema in a file that a name at `span` leads to.
    fn read_schema(&self, path: &str, span: Span) -> Option<Value> {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let (place, message) = match resolve_in_draft(self.files.loader, folder, file, "#") {
            // What is wrong with the text of the file has its own finding.
            Err(broken) if matches!(broken.fault, SchemaFault::Unreadable(_)) => return None,
            Err(broken) => {
                (broken.at.unwrap_or(span), format!("`{path}` cannot be resolved: {}", broken.fault))
            }
            Ok(mut schema) => {
                let Value::Object(fields) = &mut schema else {
                    let message = format!("`{path}` holds no JSON Schema");
                    let finding = Diagnostic::error(codes::INVALID_VALUE, span, message);
                    self.files.loader.found.push(finding.hint("write an object with `properties`"));
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
        self.files.loader.found.push(finding.hint("correct the schema"));
        None
    }
}
