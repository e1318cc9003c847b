//! The Codex provider.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use serde_json::Value;

use super::{CodexSettings, inspect, launch, read::CodexReader, rollout, sandbox_needs, strict};
use crate::{
    Capabilities, Fault, Inspection, LoginRequest, PreparedAsk, Provider, Request, SandboxNeeds, Shared,
    program::{redact_env, redact_env::RedactingReader},
};

/// Codex as a [`Provider`].
#[derive(Debug)]
pub struct Codex {
    settings: CodexSettings,
    /// Whether asks run inside Cuegate's sandbox.
    sandboxed: bool,
}

impl Codex {
    /// Creates a provider with these settings.
    pub fn new(settings: CodexSettings) -> Codex {
        Codex { settings, sandboxed: false }
    }
}

impl Provider for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    /// It has no option for tools or a cost limit, and reports usage only at the end of an ask.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            schema: true,
            sessions: true,
            fork: true,
            system_prompt: true,
            tools: false,
            cost: !self.settings.prices.0.is_empty(),
            edits: true,
            progress: false,
        }
    }

    fn holds(&self, schema: &Value) -> bool {
        strict::convert_to_strict(schema).is_some()
    }

    fn is_priced(&self, model: Option<&str>) -> bool {
        let model = model.or(self.settings.model.as_deref());
        model.is_some_and(|model| self.settings.prices.0.contains_key(model))
    }

    /// Passes any name on, except names of Anthropic's models.
    fn map_model_name(&self, name: &str) -> Option<String> {
        let foreign = matches!(name, "opus" | "sonnet" | "haiku")
            || ["claude-", "anthropic/", "anthropic."].iter().any(|start| name.starts_with(start));
        (!foreign).then(|| name.to_owned())
    }

    fn inspect(&self) -> Inspection {
        redact_env::redact_inspection(inspect::inspect_codex(&self.settings), &self.settings.redactor())
    }

    fn login_request(&self) -> Option<LoginRequest> {
        inspect::login_request(&self.settings)
    }

    fn loads(&self) -> String {
        let own = if self.settings.user_config { ", and the user's config.toml and rules" } else { "" };
        format!("the user's AGENTS.md and the project's{own}")
    }

    fn needs(&self) -> SandboxNeeds {
        sandbox_needs::collect_needs(&self.settings)
    }

    fn takes_effort(&self) -> bool {
        true
    }

    fn tool_transports(&self) -> &'static [&'static str] {
        &["stdio", "http"]
    }

    fn remove_sessions(&self, sessions: &BTreeSet<String>, _folder: Option<&Path>) -> u64 {
        rollout::remove_sessions(&inspect::find_codex_home(&self.settings), sessions)
    }

    /// Its own sandbox cannot start inside another one, so it is disabled there; the outer sandbox restricts the agent.
    fn in_sandbox(&self) -> Option<Shared> {
        Some(Arc::new(Codex { settings: self.settings.clone(), sandboxed: true }))
    }

    /// A list of tools that only read is enforced by a read-only sandbox.
    fn writes(&self, request: &Request) -> bool {
        launch::may_write_files(request)
    }

    fn restore(&self, _receipts: &[String]) {}

    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault> {
        let launch = launch::build_launch(&self.settings, request, self.sandboxed);
        let reader = CodexReader::new(&self.settings, request, jiff::Zoned::now);
        let reader = Box::new(RedactingReader::new(reader, self.settings.redactor()));
        Ok(PreparedAsk::Process { launch, reader })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Activity, Answer, AskKind, Cap, Permission, ProgramEnd};
    use crate::{Price, Prices};

    #[test]
    fn anthropic_models_must_be_mapped() {
        let codex = Codex::new(CodexSettings::default());
        for own in ["gpt-5", "o3", "llama-4"] {
            assert_eq!(codex.map_model_name(own).as_deref(), Some(own));
        }
        for foreign in ["opus", "sonnet", "haiku", "claude-opus-5-5", "anthropic/claude-x"] {
            assert_eq!(codex.map_model_name(foreign), None);
        }
    }

    #[test]
    fn the_requested_model_decides_whether_an_ask_is_priced() {
        let price = Price { input: 1.0, cached_input: None, output: 1.0, as_of: None };
        let prices = Prices([("gpt-5".to_owned(), price)].into());
        let default = |model: Option<&str>| {
            let model = model.map(str::to_owned);
            Codex::new(CodexSettings { model, prices: prices.clone(), ..CodexSettings::default() })
        };
        assert!(default(None).is_priced(Some("gpt-5")));
        assert!(default(Some("gpt-5")).is_priced(None));
        assert!(!default(None).is_priced(None), "the default model is unknown");
        assert!(!default(Some("gpt-5")).is_priced(Some("other")));
    }

    const KEY: &str = "sk-ant-0123456789abcdef";

    /// Parses lines with the reader of a provider that has a key.
    fn guarded(lines: &[Value], stderr: &str) -> (Vec<Activity>, Result<Answer, Fault>) {
        let env = vec![("CODEX_API_KEY".to_owned(), KEY.to_owned())];
        let provider = Codex::new(CodexSettings { env, ..CodexSettings::default() });
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
        let said = json!({ "a": KEY }).to_string();
        let command = format!("{} {KEY}", "x".repeat(190));
        let lines = [
            json!({ "type": "error", "message": format!("Reconnecting... 1/5 ({KEY})") }),
            json!({ "type": "item.started",
                "item": { "id": "i", "type": "command_execution", "command": command } }),
            json!({ "type": "item.completed", "item": { "id": "m", "type": "agent_message", "text": said } }),
            json!({ "type": "turn.completed", "usage": { "input_tokens": 1 } }),
        ];
        let (activities, end) = guarded(&lines, "");
        let seen = format!("{activities:?} {end:?}");
        assert!(!seen.contains("sk-ant") && seen.contains("1/5 ([redacted])"), "{seen}");
        assert_eq!(end.unwrap().output, Some(json!({ "a": "[redacted]" })));
    }

    #[test]
    fn keys_are_redacted_from_faults() {
        let failed = json!({ "type": "turn.failed", "error": { "message": format!("bad key {KEY}") } });
        assert_eq!(guarded(&[failed], "").1.unwrap_err().message, "codex: bad key [redacted]");
        let long = format!("{}{KEY}", "x".repeat(290));
        for stderr in [long.as_str(), &format!("Error loading config: {KEY}")] {
            let message = guarded(&[], stderr).1.unwrap_err().message;
            assert!(!message.contains("sk-ant") && message.contains("[redact"), "{message}");
        }
    }

    #[test]
    fn loaded_settings_are_described() {
        let loads =
            |user_config| Codex::new(CodexSettings { user_config, ..CodexSettings::default() }).loads();
        assert_eq!(loads(false), "the user's AGENTS.md and the project's");
        assert_eq!(
            loads(true),
            "the user's AGENTS.md and the project's, and the user's config.toml and rules"
        );
    }
}
