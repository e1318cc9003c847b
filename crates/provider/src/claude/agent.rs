//! The Claude Code provider.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value;

use super::{ClaudeSettings, inspect, launch, read::ClaudeReader, sandbox_needs, session_files};
use crate::{
    Capabilities, Fault, FaultClass, Inspection, LoginRequest, PreparedAsk, Provider, Request, SandboxNeeds,
    program::{redact_env, redact_env::RedactingReader},
};

/// Claude Code as a [`Provider`].
#[derive(Debug)]
pub struct Claude {
    settings: ClaudeSettings,
}

impl Claude {
    /// Creates a provider with these settings.
    pub fn new(settings: ClaudeSettings) -> Claude {
        Claude { settings }
    }
}

impl Provider for Claude {
    fn name(&self) -> &str {
        "claude"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            schema: true,
            sessions: true,
            fork: true,
            system_prompt: true,
            tools: true,
            cost: true,
            edits: true,
            progress: true,
        }
    }

    fn holds(&self, schema: &Value) -> bool {
        launch::encode_native_schema(schema).is_some()
    }

    /// Passes any name on, except names of other vendors' models. Users whose gateway serves those must map them.
    fn map_model_name(&self, name: &str) -> Option<String> {
        let foreign = ["gpt-", "codex-", "gemini-", "o1", "o3", "o4"];
        (!foreign.iter().any(|start| name.starts_with(start))).then(|| name.to_owned())
    }

    fn inspect(&self) -> Inspection {
        redact_env::redact_inspection(inspect::inspect_claude(&self.settings), &self.settings.redactor())
    }

    fn login_request(&self) -> Option<LoginRequest> {
        inspect::login_request(&self.settings)
    }

    fn loads(&self) -> String {
        let sources = &self.settings.setting_sources;
        let words =
            [("user", "the user's"), ("project", "the project's"), ("local", "the project's local ones")];
        let words: Vec<&str> = words
            .into_iter()
            .filter(|(source, _)| sources.iter().any(|own| own == source))
            .map(|(_, words)| words)
            .collect();
        match words.as_slice() {
            [] => "none".to_owned(),
            [only] => format!("{only} only"),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    }

    fn needs(&self) -> SandboxNeeds {
        sandbox_needs::collect_needs(&self.settings)
    }

    fn takes_effort(&self) -> bool {
        true
    }

    fn tool_transports(&self) -> &'static [&'static str] {
        &["stdio", "http", "sse"]
    }

    fn remove_sessions(&self, sessions: &BTreeSet<String>, folder: Option<&Path>) -> u64 {
        session_files::remove_sessions(&sandbox_needs::find_claude_home(&self.settings), sessions, folder)
    }

    fn restore(&self, _receipts: &[String]) {}

    /// The session id is read from the stream. An id derived from the ask would already exist after a crash, and the
    /// program rejects an existing id.
    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault> {
        if request.cap.usd.is_some_and(|usd| usd <= 0.0) {
            return Err(Fault::new(FaultClass::OverCap, "no budget is left for this call"));
        }
        let launch = launch::build_launch(&self.settings, request);
        let reader = ClaudeReader::new(&self.settings, request, jiff::Zoned::now);
        let reader = Box::new(RedactingReader::new(reader, self.settings.redactor()));
        Ok(PreparedAsk::Process { launch, reader })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Activity, Answer, AskKind, Cap, Permission, ProgramEnd};

    #[test]
    fn models_of_other_vendors_must_be_mapped() {
        let claude = Claude::new(ClaudeSettings::default());
        for own in ["opus", "sonnet", "haiku", "claude-opus-5-5", "sonnet[1m]", "us.anthropic.claude-x"] {
            assert_eq!(claude.map_model_name(own).as_deref(), Some(own));
        }
        for foreign in ["gpt-5", "o3-mini", "codex-mini", "gemini-3-pro"] {
            assert_eq!(claude.map_model_name(foreign), None);
        }
    }

    const KEY: &str = "sk-ant-0123456789abcdef";

    /// Parses lines with the reader of a provider that has a key.
    fn guarded(lines: &[Value], stderr: &str) -> (Vec<Activity>, Result<Answer, Fault>) {
        let env = vec![("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned())];
        let provider = Claude::new(ClaudeSettings { env, ..ClaudeSettings::default() });
        let PreparedAsk::Process { mut reader, .. } = provider.prepare(&request()).unwrap() else {
            panic!("it is a program");
        };
        let lines = lines.iter().map(Value::to_string);
        let activities = lines.flat_map(|line| reader.line(line.as_bytes())).collect();
        (activities, reader.end(ProgramEnd::Exit(1), stderr.as_bytes()))
    }

    fn request() -> Request {
        Request {
            id: "run/1".to_owned(),
            step: "fix".to_owned(),
            subject: None,
            persona: None,
            persona_names: Vec::new(),
            readable: Vec::new(),
            kind: AskKind::Work,
            prompt: String::new(),
            system: None,
            schema: Some(
                json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false }),
            ),
            model: None,
            session: None,
            permission: Permission::Plan,
            tools: None,
            tool_servers: Vec::new(),
            effort: None,
            work: "/work".into(),
            timeout_ms: 1,
            cap: Cap::default(),
            unattended: false,
            scratch: "/scratch".into(),
        }
    }

    #[test]
    fn keys_are_redacted_from_answers_and_activities() {
        let pad = "x".repeat(190);
        let lines = [
            json!({ "type": "assistant", "message": { "id": "m", "model": "m", "content": [
                { "type": "text", "text": format!("it is {KEY}") },
                { "type": "tool_use", "name": "Bash", "input": { "command": format!("{pad} {KEY}") } },
            ] } }),
            json!({ "type": "result", "is_error": false, "result": format!("{KEY}!"),
                "structured_output": { "a": [KEY], "type": KEY } }),
        ];
        let (activities, end) = guarded(&lines, "");
        let seen = format!("{activities:?} {end:?}");
        assert!(!seen.contains("sk-ant") && seen.contains("it is [redacted]"), "{seen}");
        let answer = end.unwrap();
        assert_eq!(answer.text, "[redacted]!");
        assert_eq!(answer.output, Some(json!({ "a": ["[redacted]"], "type": "[redacted]" })));
    }

    #[test]
    fn keys_are_redacted_from_faults() {
        let failed = json!({ "type": "result", "is_error": true, "result": format!("bad key {KEY}") });
        assert_eq!(guarded(&[failed], "").1.unwrap_err().message, "claude: bad key [redacted]");
        let long = format!("{}{KEY}", "x".repeat(290));
        for stderr in [long.as_str(), &format!("unknown option {KEY}")] {
            let message = guarded(&[], stderr).1.unwrap_err().message;
            assert!(!message.contains("sk-ant") && message.contains("[redact"), "{message}");
        }
    }

    #[test]
    fn loaded_settings_are_described() {
        let loads = |sources: &[&str]| {
            let setting_sources = sources.iter().map(|source| (*source).to_owned()).collect();
            Claude::new(ClaudeSettings { setting_sources, ..ClaudeSettings::default() }).loads()
        };
        assert_eq!(loads(&["project"]), "the project's only");
        assert_eq!(loads(&[]), "none");
        assert_eq!(loads(&["project", "user"]), "the user's and the project's");
        assert_eq!(
            loads(&["user", "project", "local"]),
            "the user's, the project's and the project's local ones"
        );
    }
}
