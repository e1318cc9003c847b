//! Parses a chunk of a streamed answer, or a whole answer without streaming.

use serde_json::Value;

use super::wire::{OpenAiLine, ReportedUsage, RequestTrouble, TroubleKind};
use crate::{program::read_token_count, redact::Redactor};

/// Converts chunks to lines.
#[derive(Debug, Default)]
pub(super) struct ChunkParser {
    redactor: Redactor,
    head_told: bool,
}

impl ChunkParser {
    pub fn new(redactor: Redactor) -> ChunkParser {
        ChunkParser { redactor, head_told: false }
    }

    /// The lines of a chunk, in order. `event` is the event's name, if it has one.
    ///
    /// A whole answer has `message` in place of `delta`; the rest is the same. Unknown fields and chunks are ignored,
    /// because services add to them.
    pub fn read(&mut self, event: Option<&str>, chunk: &Value) -> Result<Vec<OpenAiLine>, RequestTrouble> {
        let reports_error = event == Some("error") || !chunk["error"].is_null() || chunk["object"] == "error";
        if reports_error {
            return Err(RequestTrouble::new(TroubleKind::Reported, self.redactor.clean(&chunk.to_string())));
        }
        let mut lines = Vec::new();
        if !self.head_told && (chunk["id"].is_string() || chunk["model"].is_string()) {
            self.head_told = true;
            lines.push(OpenAiLine::Head { id: self.word(&chunk["id"]), model: self.word(&chunk["model"]) });
        }
        let first = chunk["choices"].as_array().into_iter().flatten();
        for choice in first.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            let message = if choice["message"].is_object() { &choice["message"] } else { &choice["delta"] };
            self.message(message, &mut lines);
            if let Some(reason) = self.word(&choice["finish_reason"]) {
                self.rest(&mut lines);
                lines.push(OpenAiLine::Finish(reason));
            }
        }
        lines.extend(read_reported_usage(&chunk["usage"]).map(OpenAiLine::Used));
        Ok(lines)
    }

    /// Adds the text still held back, at the end of the answer.
    pub fn rest(&mut self, lines: &mut Vec<OpenAiLine>) {
        lines.extend(Some(self.redactor.rest()).filter(|text| !text.is_empty()).map(OpenAiLine::Text));
    }

    /// The redactor of the key.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn message(&mut self, message: &Value, lines: &mut Vec<OpenAiLine>) {
        // Newer servers use the second name; a few send both.
        let thought = ["reasoning_content", "reasoning"].iter().find_map(|name| message[name].as_str());
        if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
            lines.push(OpenAiLine::Thought(thought.len() as u64));
        }
        let text = self.redactor.next(&text_of_content(&message["content"]));
        if !text.is_empty() {
            lines.push(OpenAiLine::Text(text));
        }
        if let Some(refusal) = self.word(&message["refusal"]).filter(|refusal| !refusal.is_empty()) {
            lines.push(OpenAiLine::Refusal(refusal));
        }
        let calls =
            message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]["name"]);
        let old = Some(&message["function_call"]["name"]).filter(|_| message["function_call"].is_object());
        // Only the first piece of a call has the name.
        lines.extend(calls.chain(old).filter_map(|name| self.word(name)).map(OpenAiLine::Tool));
    }

    fn word(&self, value: &Value) -> Option<String> {
        value.as_str().map(|word| self.redactor.clean(word))
    }
}

/// The text of a message's content: a string, or a list with text parts.
fn text_of_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part["type"] == "text");
            texts.filter_map(|part| part["text"].as_str()).collect()
        }
        _ => String::new(),
    }
}

/// The reported usage; `None` if it is missing or zero.
fn read_reported_usage(usage: &Value) -> Option<ReportedUsage> {
    let number = read_token_count;
    let used = ReportedUsage {
        input: number(&usage["prompt_tokens"]),
        // A service that counts cached tokens separately uses the second name.
        cached: number(&usage["prompt_tokens_details"]["cached_tokens"])
            .max(number(&usage["prompt_cache_hit_tokens"])),
        output: number(&usage["completion_tokens"]),
    };
    (used.input > 0 || used.output > 0).then_some(used)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(chunk: Value) -> Vec<OpenAiLine> {
        ChunkParser::default().read(None, &chunk).unwrap()
    }

    fn delta(delta: Value) -> Vec<OpenAiLine> {
        read(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    }

    #[test]
    fn text_comes_as_a_string_or_in_parts() {
        assert_eq!(delta(json!({"role": "assistant", "content": "hi"})), [OpenAiLine::Text("hi".to_owned())]);
        let parts = json!({"content": [{"type": "thinking"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        assert_eq!(delta(parts), [OpenAiLine::Text("ab".to_owned())]);
        assert_eq!(delta(json!({"content": null})), []);
        assert_eq!(delta(json!({"content": ""})), []);
    }

    #[test]
    fn reasoning_is_counted_and_not_kept() {
        assert_eq!(delta(json!({"reasoning_content": "hm…", "content": null})), [OpenAiLine::Thought(5)]);
        assert_eq!(delta(json!({"reasoning": "hm", "reasoning_content": "hm"})), [OpenAiLine::Thought(2)]);
    }

    #[test]
    fn refusals_and_tool_calls_are_reported() {
        assert_eq!(delta(json!({"refusal": "I won't"})), [OpenAiLine::Refusal("I won't".to_owned())]);
        let calls = json!({"tool_calls": [{"index": 0, "function": {"name": "ls", "arguments": ""}}]});
        assert_eq!(delta(calls), [OpenAiLine::Tool("ls".to_owned())]);
        assert_eq!(delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})), []);
        assert_eq!(delta(json!({"function_call": {"name": "ls"}})), [OpenAiLine::Tool("ls".to_owned())]);
    }

    #[test]
    fn a_whole_answer_is_parsed_like_a_chunk() {
        let lines = read(json!({
            "id": "chatcmpl-1", "model": "m-2", "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
        }));
        assert_eq!(
            lines,
            [
                OpenAiLine::Head { id: Some("chatcmpl-1".to_owned()), model: Some("m-2".to_owned()) },
                OpenAiLine::Text("hi".to_owned()),
                OpenAiLine::Finish("stop".to_owned()),
                OpenAiLine::Used(ReportedUsage { input: 9, cached: 4, output: 2 }),
            ]
        );
    }

    #[test]
    fn other_choices_and_unknown_chunks_are_ignored() {
        assert_eq!(read(json!({"choices": [{"index": 1, "delta": {"content": "no"}}]})), []);
        assert_eq!(read(json!({"type": "ping"})), []);
        assert_eq!(read(json!(null)), []);
        assert_eq!(read(json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})), []);
    }

    #[test]
    fn every_form_of_error_is_detected() {
        for (event, chunk) in [
            (None, json!({"error": {"message": "no", "code": "x"}, "choices": []})),
            (None, json!({"error": "no"})),
            (None, json!({"object": "error", "message": "no"})),
            (Some("error"), json!({"message": "no"})),
        ] {
            let trouble = ChunkParser::default().read(event, &chunk).unwrap_err();
            assert_eq!((trouble.what, trouble.said), (TroubleKind::Reported, chunk.to_string()));
        }
        assert_eq!(read(json!({"error": null})), []);
    }

    #[test]
    fn a_key_in_an_answer_is_redacted() {
        let key = "sk-0123456789abcdef";
        let mut chunks = ChunkParser::new(Redactor::new(Some(key.to_owned())));
        let mut say = |text: &str, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": finish});
            chunks.read(None, &json!({"choices": [choice]})).unwrap()
        };
        assert_eq!(say("sk-01234567", None), []);
        assert_eq!(say("89abcdef s", None), [OpenAiLine::Text("[redacted] ".to_owned())]);
        assert_eq!(
            say("", Some("stop")),
            [OpenAiLine::Text("s".to_owned()), OpenAiLine::Finish("stop".to_owned())]
        );
        let trouble =
            chunks.read(None, &json!({"error": {"message": format!("bad key {key}")}})).unwrap_err();
        assert_eq!(trouble.said, r#"{"error":{"message":"bad key [redacted]"}}"#);
    }
}
