//! Subjects that one of our functions implements directly.

use std::collections::BTreeMap;

use cuegate_engine::{ExecResult, Exit, apply_extractor};
use cuegate_flow::model::Schema;
use cuegate_formats::{extractor_of_name, infer_kind, resolve_schema, success_when};
use serde_json::{Value, json};

use super::compare::{Got, member, text};

/// The folder of a case's schemas.
const BASE: &str = "schemas";

/// Resolves a schema.
pub(super) fn schema(input: &Value) -> Result<Got, String> {
    let call = member(input, "call")?;
    let files = member(call, "files")?.as_object().ok_or("its `files` are no object")?;
    let files: BTreeMap<String, Vec<u8>> = files
        .iter()
        .map(|(name, document)| (format!("{BASE}/{name}"), document.to_string().into_bytes()))
        .collect();
    Ok(match resolve_schema(&files, BASE, text(call, "file")?, text(call, "schema")?) {
        Ok(schema) => Got::Value(schema),
        Err(fault) => Got::Refused(fault.to_string()),
    })
}

/// Whether a finished command passed.
pub(super) fn success(input: &Value) -> Result<Got, String> {
    let condition = text(input, "condition")?;
    let result = member(input, "commandResult")?;
    let exit = member(result, "exitCode")?.as_i64().and_then(|code| i32::try_from(code).ok());
    let (stdout, stderr) = (text(result, "stdout")?, text(result, "stderr")?);
    Ok(match success_when(condition) {
        Some(success) => Got::Value(json!(success.holds(exit, stdout, stderr))),
        None => Got::Refused(format!("`{condition}` is no condition of success")),
    })
}

/// The kind of a step; `null` if unknown.
pub(super) fn kind(input: &Value) -> Result<Got, String> {
    let kind = infer_kind(member(input, "stepDef")?);
    Ok(Got::Value(json!(kind.map(|kind| kind.as_str()))))
}

/// Finds the structured answer in a text; `null` if there is none.
pub(super) fn json_in_text(input: &Value) -> Result<Got, String> {
    Ok(Got::Value(json!(cuegate_engine::json_in_text(text(input, "text")?))))
}

/// Reads an answer: a JSON object, with or without a schema.
pub(super) fn format(input: &Value) -> Result<Got, String> {
    let format = member(input, "format")?;
    let said = member(member(input, "summary")?, "assistantResponses")?;
    let said: Vec<&str> = said.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if format["type"] != "json" {
        return Ok(Got::Value(json!({"valid": false})));
    }
    let schema = format.get("schema").cloned().unwrap_or_else(|| json!({}));
    let schema = Schema::new(schema).map_err(|error| format!("its schema cannot be used: {error}"))?;
    let answer =
        cuegate_engine::json_in_text(&said.join("\n")).filter(|answer| schema.problems(answer).is_empty());
    Ok(Got::Value(match answer {
        Some(answer) => json!({"valid": true, "extracted": answer}),
        None => json!({"valid": false}),
    }))
}

/// Equal answers, or both none; error messages are not compared.
pub(super) fn same_format(_: &Value, theirs: &Value, ours: &Value) -> bool {
    theirs["valid"] == ours["valid"] && theirs["extracted"] == ours["extracted"]
}

/// Extracts facts from a command's output.
pub(super) fn extracted(name: &str, input: &Value) -> Result<Got, String> {
    let said = |stream: &str| input[stream].as_str().unwrap_or_default().to_owned();
    let exec =
        ExecResult { exit: Exit::Code(0), stdout: said("stdout"), stderr: said("stderr"), duration_ms: 0 };
    Ok(Got::Value(apply_extractor(extractor_of_name(name), &exec)))
}

/// Equal failed tests and reasons. For a test without a reason, the original program generates a text and we give the
/// output line.
pub(super) fn same_tests(_: &Value, theirs: &Value, ours: &Value) -> bool {
    let bare = |tests: &Value| -> Vec<Value> {
        let mut tests = tests.as_array().cloned().unwrap_or_default();
        for test in tests.iter_mut().filter_map(Value::as_object_mut) {
            test.retain(|key, _| key != "error");
        }
        tests
    };
    let reasons = |tests: &Value| -> Vec<String> {
        let tests = tests.as_array().into_iter().flatten();
        tests.map(|test| test["error"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let made_up = |why: &String| why == "Unknown error";
    bare(theirs) == bare(ours)
        && reasons(theirs).iter().zip(reasons(ours)).all(|(theirs, ours)| made_up(theirs) || *theirs == ours)
}
