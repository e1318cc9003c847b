//! How asks were put, where providers differ in what they can do.

use cuegate_engine::{Put, SchemaBy, SessionBy};

/// How many answered asks were put in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ways {
    /// The provider held the model to the schema.
    pub by_provider: u64,
    /// The schema stood in the prompt.
    pub by_prompt: u64,
    /// A conversation began.
    pub new: u64,
    /// A conversation was continued.
    pub continued: u64,
    /// A conversation was branched off from.
    pub forked: u64,
    /// What was said before stood in the prompt.
    pub retold: u64,
}

impl Ways {
    pub(super) fn add(&mut self, put: Option<&Put>) {
        let Some(put) = put else { return };
        match put.schema {
            Some(SchemaBy::Provider) => self.by_provider += 1,
            Some(SchemaBy::Prompt) => self.by_prompt += 1,
            None => {}
        }
        match put.session {
            SessionBy::New => self.new += 1,
            SessionBy::Continued => self.continued += 1,
            SessionBy::Forked => self.forked += 1,
            SessionBy::Retold => self.retold += 1,
        }
    }

    /// In words: `schema held by the provider 3; conversations: 1 new, 2 branched off`. `None` when nothing was put.
    pub fn describe(&self) -> Option<String> {
        let list = |pairs: &[(u64, &str)]| {
            let some: Vec<String> =
                pairs.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
            (!some.is_empty()).then(|| some.join(", "))
        };
        let schemas = list(&[(self.by_provider, "by the provider"), (self.by_prompt, "in the prompt")]);
        let sessions = list(&[
            (self.new, "new"),
            (self.continued, "continued"),
            (self.forked, "branched off"),
            (self.retold, "retold in the prompt"),
        ]);
        let sides = [
            schemas.map(|text| format!("schema {text}")),
            sessions.map(|text| format!("conversation {text}")),
        ];
        let sides: Vec<String> = sides.into_iter().flatten().collect();
        (!sides.is_empty()).then(|| sides.join("; "))
    }
}
