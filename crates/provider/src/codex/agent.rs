//! The provider.

use serde_json::Value;

use super::{Settings, inspect, launch, read::CodexReader, strict};
use crate::{Capabilities, Fault, Inspection, Prepared, Provider, Request};

/// Asks Codex.
#[derive(Debug)]
pub struct Codex {
    settings: Settings,
}

impl Codex {
    /// A provider that asks it so.
    pub fn new(settings: Settings) -> Codex {
        Codex { settings }
    }
}

impl Provider for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    /// It has no switch for tools and none for money, and tells what it used only at the end of an ask.
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
        strict::strict(schema).is_some()
    }

    fn is_priced(&self, model: Option<&str>) -> bool {
        let model = model.or(self.settings.model.as_deref());
        model.is_some_and(|model| self.settings.prices.0.contains_key(model))
    }

    /// It passes any name on. Anthropic's are none of its own.
    fn model(&self, name: &str) -> Option<String> {
        let foreign = matches!(name, "opus" | "sonnet" | "haiku")
            || ["claude-", "anthropic/", "anthropic."].iter().any(|start| name.starts_with(start));
        (!foreign).then(|| name.to_owned())
    }

    fn inspect(&self) -> Inspection {
        inspect::inspect(&self.settings)
    }

    fn restore(&self, _receipts: &[String]) {}

    fn prepare(&self, request: &Request) -> Result<Prepared, Fault> {
        let launch = launch::launch(&self.settings, request);
        let reader = Box::new(CodexReader::new(&self.settings, request, jiff::Zoned::now));
        Ok(Prepared::Process { launch, reader })
    }
}
