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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Price, Prices};

    #[test]
    fn models_of_anthropic_have_to_be_mapped() {
        let codex = Codex::new(Settings::default());
        for own in ["gpt-5", "o3", "llama-4"] {
            assert_eq!(codex.model(own).as_deref(), Some(own));
        }
        for foreign in ["opus", "sonnet", "haiku", "claude-opus-5-5", "anthropic/claude-x"] {
            assert_eq!(codex.model(foreign), None);
        }
    }

    #[test]
    fn a_price_is_one_of_the_model_that_is_asked() {
        let price = Price { input: 1.0, cached_input: None, output: 1.0 };
        let prices = Prices([("gpt-5".to_owned(), price)].into());
        let default = |model: Option<&str>| {
            let model = model.map(str::to_owned);
            Codex::new(Settings { model, prices: prices.clone(), ..Settings::default() })
        };
        assert!(default(None).is_priced(Some("gpt-5")));
        assert!(default(Some("gpt-5")).is_priced(None));
        assert!(!default(None).is_priced(None), "nobody knows which model that is");
        assert!(!default(Some("gpt-5")).is_priced(Some("other")));
    }
}
