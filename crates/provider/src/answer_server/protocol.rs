//! The messages of the Model Context Protocol that a server with one tool needs. Source of the formats: the specification
//! at modelcontextprotocol.io, revisions 2024-11-05 to 2026-07-28.

use serde_json::{Map, Value, json};

use super::record::AnswerRecord;

/// The name under which agents know the server.
pub(crate) const SERVER_NAME: &str = "cuegate";
/// The name of its tool.
pub(crate) const TOOL_NAME: &str = "submit_answer";

/// The revisions with a handshake that it speaks, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";
/// The field of an answer whose schema is not of an object, which the input of a tool has to be.
const WRAPPED: &str = "answer";
/// How many violations of the schema a refusal names.
const SHOWN_MAX: usize = 5;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

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
        match serde_json::from_slice::<Value>(text) {
            // Only the revision of March 2025 has batches.
            Ok(Value::Array(messages)) if !messages.is_empty() => {
                let mut whole = ServerReaction::default();
                let mut replies = Vec::new();
                for message in &messages {
                    let reaction = self.react(message);
                    replies.extend(reaction.reply);
                    whole.records.extend(reaction.records);
                }
                whole.reply = (!replies.is_empty()).then(|| replies.into());
                whole
            }
            Ok(message) => self.react(&message),
            Err(error) => ServerReaction {
                reply: Some(error_reply(&Value::Null, PARSE_ERROR, &format!("not JSON: {error}"))),
                ..ServerReaction::default()
            },
        }
    }

    fn react(&self, message: &Value) -> ServerReaction {
        let id = message.get("id").filter(|id| id.is_string() || id.is_number());
        let method = message.get("method").and_then(Value::as_str);
        let (Some(id), Some(method)) = (id, method) else {
            // A notification, or an answer to a question that was never asked.
            let is_harmless =
                method.is_some() || message.get("result").is_some() || message.get("error").is_some();
            let reply = || error_reply(&Value::Null, INVALID_REQUEST, "not a request");
            return ServerReaction { reply: (!is_harmless).then(reply), ..ServerReaction::default() };
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        let mut records = Vec::new();
        let result = match method {
            "initialize" => Ok(describe_server(params)),
            "server/discover" => Ok(discover_server()),
            "ping" => Ok(json!({})),
            "tools/list" => {
                records.push(AnswerRecord::Listed);
                Ok(
                    json!({ "tools": [self.tool()], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
                )
            }
            "tools/call" => self.call(params, &mut records),
            _ => Err((METHOD_NOT_FOUND, format!("unknown method `{method}`"))),
        };
        let reply = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, why)) => error_reply(id, code, &why),
        };
        ServerReaction { reply: Some(reply), records }
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

    fn call(&self, params: &Value, records: &mut Vec<AnswerRecord>) -> Result<Value, (i64, String)> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        if name != TOOL_NAME {
            return Err((INVALID_PARAMS, format!("unknown tool `{name}`: there is `{TOOL_NAME}`")));
        }
        let empty = Value::Object(Map::new());
        let given = params.get("arguments").unwrap_or(&empty);
        let answer = if self.is_object { Some(given) } else { given.get(WRAPPED) };
        let problems = match answer {
            Some(answer) => self.list_problems(answer),
            None => vec![format!("`{WRAPPED}` is missing")],
        };
        let text = match (answer, problems.is_empty()) {
            (Some(answer), true) => {
                records.push(AnswerRecord::Answer(answer.clone()));
                "The answer is accepted. You are done: end your turn.".to_owned()
            }
            _ => {
                let why = problems.join("; ");
                records.push(AnswerRecord::Refused(why.clone()));
                format!("The answer is refused: {why}. Correct it and call `{TOOL_NAME}` again.")
            }
        };
        Ok(json!({
            "content": [{ "type": "text", "text": text }], "isError": !problems.is_empty(), "resultType": "complete",
        }))
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

fn server_info() -> Value {
    json!({ "name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION") })
}

fn answer_instructions() -> String {
    format!("Give your final answer by calling `{TOOL_NAME}` once, when all the work is done.")
}

fn describe_server(params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == wanted).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": answer_instructions(),
    })
}

fn discover_server() -> Value {
    let versions: Vec<&str> = std::iter::once(STATELESS).chain(VERSIONS).collect();
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": answer_instructions(),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

fn error_reply(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
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
