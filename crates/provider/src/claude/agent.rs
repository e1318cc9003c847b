//! The provider.

use serde_json::Value;

use super::{Settings, inspect, launch, read::ClaudeReader};
use crate::{Capabilities, Fault, FaultClass, Inspection, Prepared, Provider, Request};

/// Asks Claude Code.
#[derive(Debug)]
pub struct Claude {
    settings: Settings,
}

impl Claude {
    /// A provider that asks it so.
    pub fn new(settings: Settings) -> Claude {
        Claude { settings }
    }
}

impl Provider for Claude {
    fn name(&self) -> &'static str {
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
        launch::native(schema).is_some()
    }

    /// It knows its own short names. Names of other houses' models are none of its own, even where a gateway might
    /// serve them: who has such a gateway maps them.
    fn model(&self, name: &str) -> Option<String> {
        let foreign = ["gpt-", "codex-", "gemini-", "o1", "o3", "o4"];
        (!foreign.iter().any(|start| name.starts_with(start))).then(|| name.to_owned())
    }

    fn inspect(&self) -> Inspection {
        inspect::inspect(&self.settings)
    }

    fn restore(&self, _receipts: &[String]) {}

    /// The conversation's name is read from the stream: one that follows from the ask would be taken when the same
    /// ask is put again after a crash, and the program refuses a name that is taken.
    fn prepare(&self, request: &Request) -> Result<Prepared, Fault> {
        if request.cap.usd.is_some_and(|usd| usd <= 0.0) {
            return Err(Fault::new(FaultClass::OverCap, "there is no money left for this ask"));
        }
        let launch = launch::launch(&self.settings, request);
        let reader = Box::new(ClaudeReader::new(&self.settings, request, jiff::Zoned::now));
        Ok(Prepared::Process { launch, reader })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_other_houses_have_to_be_mapped() {
        let claude = Claude::new(Settings::default());
        for own in ["opus", "sonnet", "haiku", "claude-opus-5-5", "sonnet[1m]", "us.anthropic.claude-x"] {
            assert_eq!(claude.model(own).as_deref(), Some(own));
        }
        for foreign in ["gpt-5", "o3-mini", "codex-mini", "gemini-3-pro"] {
            assert_eq!(claude.model(foreign), None);
        }
    }
}
