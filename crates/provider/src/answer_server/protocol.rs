//! A server with one tool, whose input is an answer.

use serde_json::{Value, json};

use super::record::AnswerRecord;
use crate::mcp_protocol::{ToolReply, ToolServer, answer_message};

/// The name under which agents know the server.
pub(crate) const SERVER_NAME: &str = "cuegate";
/// The name of its tool.
pub(crate) const TOOL_NAME: &str = "submit_answer";

/// The field of an answer whose schema is not of an object, which the input of a tool has to be.
const WRAPPED: &str = "answer";
/// How many violations of the schema a refusal names.
const SHOWN_MAX: usize = 5;

/// A server for one answer.
pub(super) struct AnswerProtocol {
    schema: Value,
    validator: Option<jsonschema::Validator>,
    /// Whether the schema is of an object and is the input of the tool as it is.
    is_object: bool,
}

/// What a message leads to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ServerReaction {
    /// The reply; `None` for a notification.
    pub(super) reply: Option<Value>,
    pub(super) records: Vec<AnswerRecord>,
}

impl AnswerProtocol {
    pub(super) fn new(schema: Value) -> AnswerProtocol {
        // A schema that does not compile refuses nothing: the engine validates every answer.
        let validator = jsonschema::validator_for(&schema).ok();
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        AnswerProtocol { schema, validator, is_object }
    }

    /// Reacts to a line or a body.
    pub(super) fn receive(&self, text: &[u8]) -> ServerReaction {
        let mut message = AnswerMessage { protocol: self, records: Vec::new() };
        let reply = answer_message(&mut message, text);
        ServerReaction { reply, records: message.records }
    }

    fn tool(&self) -> Value {
        let input = match self.is_object {
            true => self.schema.clone(),
            false => {
                json!({ "type": "object", "properties": { WRAPPED: self.schema }, "required": [WRAPPED] })
            }
        };
        json!({
            "name": TOOL_NAME,
            "title": "Submit the answer",
            "description": "Submits your final answer. Call it once, when all the work is done. If the answer is refused, \
                            correct it and call this again.",
            "inputSchema": input,
        })
    }

    fn list_problems(&self, answer: &Value) -> Vec<String> {
        let Some(validator) = &self.validator else { return Vec::new() };
        let errors = validator.iter_errors(answer).take(SHOWN_MAX);
        errors
            .map(|error| {
                let at = error.instance_path().to_string();
                if at.is_empty() { error.to_string() } else { format!("at `{at}`: {error}") }
            })
            .collect()
    }
}

/// One message, and what it leads to.
struct AnswerMessage<'p> {
    protocol: &'p AnswerProtocol,
    records: Vec<AnswerRecord>,
}

impl ToolServer for AnswerMessage<'_> {
    fn name(&self) -> &str {
        SERVER_NAME
    }

    fn instructions(&self) -> String {
        format!("Give your final answer by calling `{TOOL_NAME}` once, when all the work is done.")
    }

    fn list_tools(&mut self) -> Vec<Value> {
        self.records.push(AnswerRecord::Listed);
        vec![self.protocol.tool()]
    }

    fn call_tool(&mut self, name: &str, given: &Value) -> Option<ToolReply> {
        if name != TOOL_NAME {
            return None;
        }
        let answer = if self.protocol.is_object { Some(given) } else { given.get(WRAPPED) };
        let problems = match answer {
            Some(answer) => self.protocol.list_problems(answer),
            None => vec![format!("`{WRAPPED}` is missing")],
        };
        let text = match (answer, problems.is_empty()) {
            (Some(answer), true) => {
                self.records.push(AnswerRecord::Answer(answer.clone()));
                "The answer is accepted. You are done: end your turn.".to_owned()
            }
            _ => {
                let why = problems.join("; ");
                self.records.push(AnswerRecord::Refused(why.clone()));
                format!("The answer is refused: {why}. Correct it and call `{TOOL_NAME}` again.")
            }
        };
        Some(ToolReply { text, structured: None, is_error: !problems.is_empty() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> AnswerProtocol {
        AnswerProtocol::new(json!({
            "type": "object",
            "properties": { "verdict": { "enum": ["good", "bad"] }, "issues": { "type": "integer", "minimum": 0 } },
            "required": ["verdict", "issues"],
            "additionalProperties": false
        }))
    }

    fn call(server: &AnswerProtocol, method: &str, params: Value) -> (Value, Vec<AnswerRecord>) {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let ServerReaction { reply, records } = server.receive(message.to_string().as_bytes());
        (reply.unwrap(), records)
    }

    #[test]
    fn the_version_of_the_client_is_spoken_if_it_is_known() {
        for (wanted, spoken) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let (reply, _) = call(&server(), "initialize", json!({ "protocolVersion": wanted }));
            assert_eq!(reply["result"]["protocolVersion"], spoken);
        }
        let (reply, _) = call(&server(), "server/discover", json!({}));
        assert_eq!(reply["result"]["supportedVersions"][0], "2026-07-28");
        let (reply, _) = call(&server(), "prompts/list", json!({}));
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32601), &json!(7)));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_with_the_reason() {
        let submit = |arguments: Value| {
            call(&server(), "tools/call", json!({ "name": TOOL_NAME, "arguments": arguments }))
        };
        let (reply, records) = submit(json!({ "verdict": "good", "issues": 0 }));
        assert_eq!(reply["result"]["isError"], false);
        assert_eq!(records, [AnswerRecord::Answer(json!({ "verdict": "good", "issues": 0 }))]);
        let (reply, records) = submit(json!({ "verdict": "fine", "issues": -1 }));
        assert_eq!(reply["result"]["isError"], true);
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("/verdict") && text.contains("/issues") && text.contains("again"), "{text}");
        assert!(matches!(&records[..], [AnswerRecord::Refused(_)]));
        let (reply, records) = call(&server(), "tools/call", json!({ "name": "other" }));
        assert_eq!((&reply["error"]["code"], records.len()), (&json!(-32602), 0));
    }

    #[test]
    fn an_answer_that_is_no_object_is_wrapped() {
        let server = AnswerProtocol::new(json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
        let (reply, records) = call(&server, "tools/list", json!({}));
        assert_eq!(reply["result"]["tools"][0]["inputSchema"]["required"], json!(["answer"]));
        assert_eq!(records, [AnswerRecord::Listed]);
        let give = |arguments: Value| {
            call(&server, "tools/call", json!({ "name": TOOL_NAME, "arguments": arguments })).1
        };
        assert_eq!(give(json!({ "answer": "x" })), [AnswerRecord::Answer(json!("x"))]);
        assert!(matches!(&give(json!({}))[..], [AnswerRecord::Refused(why)] if why.contains("missing")));
    }

    #[test]
    fn what_is_no_request_harms_nothing() {
        let server = server();
        for (text, code) in [("{", -32700), ("3", -32600), ("{}", -32600)] {
            let reply = server.receive(text.as_bytes()).reply.unwrap();
            assert_eq!(reply["error"]["code"], code, "{text}");
        }
        for silent in [
            r#"{"method": "notifications/initialized"}"#,
            r#"{"id": 1, "result": {}}"#,
            r#"[{"method": "notifications/cancelled"}]"#,
        ] {
            assert_eq!(server.receive(silent.as_bytes()), ServerReaction::default(), "{silent}");
        }
        let batch = br#"[{"id": 1, "method": "ping"}, {"method": "x"}, {"id": "b", "method": "ping"}]"#;
        assert_eq!(server.receive(batch).reply.unwrap().as_array().unwrap().len(), 2);
    }
}
