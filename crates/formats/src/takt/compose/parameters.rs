//! The parameters of called workflows.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::{Call, Composer, tree};
use crate::codes;
use crate::suggest;
use crate::values::json::{Json, Kind};

impl Composer<'_, '_, '_> {
    /// Replaces parameters of a called workflow.
    pub(super) fn fill_params(&self, value: &mut Json, params: &BTreeMap<String, Json>) {
        let mut unknown: Vec<(String, Span)> = Vec::new();
        tree::substitute_params(value, &|name| params.get(name), &mut |name, span| {
            unknown.push((name.to_owned(), span))
        });
        for (name, span) in unknown {
            let message = format!("undefined parameter `{name}`");
            let finding = Diagnostic::error(codes::UNKNOWN_NAME, span, message);
            let known: Vec<&str> = params.keys().map(String::as_str).collect();
            self.files.loader.found.push(match &known[..] {
                [] => finding.hint("declare it in `params`"),
                known => suggest::add_suggestion(finding, &name, known),
            });
            self.mark_broken();
        }
    }

    /// The values of the parameters of a workflow.
    pub(super) fn bind_params(&self, root: &Json, call: &Call) -> BTreeMap<String, Json> {
        let declared = root.get("subworkflow").and_then(|sub| sub.get("params"));
        let declared = declared.map(Json::pairs).unwrap_or_default();
        let mut bound = BTreeMap::new();
        for param in declared {
            let given = call.args.iter().find(|arg| arg.key == param.key).map(|arg| &arg.value);
            let value = given
                .filter(|value| !matches!(value.kind, Kind::Null))
                .or_else(|| param.value.get("default"));
            if let Some(value) = value {
                bound.insert(param.key.to_string(), value.clone());
                continue;
            }
            let name = &param.key;
            let (span, message, hint) = match call.span {
                Some(span) => (
                    span,
                    format!("the called workflow needs the parameter `{name}`"),
                    format!("give it in `args`, or a `default` in `subworkflow.params.{name}`"),
                ),
                None => (
                    param.key_span,
                    format!(
                        "only other workflows can call this one: the parameter `{name}` has no `default`"
                    ),
                    "check the workflow that calls it".to_owned(),
                ),
            };
            // What reads it has no finding of its own.
            bound.insert(name.to_string(), Json { span, kind: Kind::Null });
            self.refuse(Diagnostic::error(codes::MISSING_KEY, span, message).hint(hint));
        }
        for arg in &call.args {
            if !declared.iter().any(|param| param.key == arg.key) {
                let message = format!("the called workflow has no parameter `{}`", arg.key);
                let finding = Diagnostic::error(codes::UNKNOWN_NAME, arg.key_span, message);
                let known: Vec<&str> = declared.iter().map(|param| &*param.key).collect();
                self.files.loader.found.push(match &known[..] {
                    [] => finding.hint("remove it"),
                    known => suggest::add_suggestion(finding, &arg.key, known),
                });
            }
        }
        bound
    }
}
