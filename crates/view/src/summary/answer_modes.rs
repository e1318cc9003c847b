//! How providers handled schemas and sessions; they differ in what they support.

use cuegate_engine::{AskDelivery, SchemaEnforcement, SessionContinuation};

use crate::format::{format_count, plural};

/// How many answered asks used each schema mode and session mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerModes {
    /// The provider's JSON Schema mode.
    pub by_provider: u64,
    /// The schema as part of the prompt.
    pub by_prompt: u64,
    /// A new session.
    pub new: u64,
    /// A continued session.
    pub continued: u64,
    /// A session forked from another one.
    pub forked: u64,
    /// A new session whose prompt repeats the history.
    pub retold: u64,
}

impl AnswerModes {
    pub(super) fn add(&mut self, put: Option<&AskDelivery>) {
        let Some(put) = put else { return };
        match put.schema {
            Some(SchemaEnforcement::Provider) => self.by_provider += 1,
            Some(SchemaEnforcement::Prompt) => self.by_prompt += 1,
            None => {}
        }
        match put.session {
            SessionContinuation::New => self.new += 1,
            SessionContinuation::Continued => self.continued += 1,
            SessionContinuation::Forked => self.forked += 1,
            SessionContinuation::Retold => self.retold += 1,
        }
    }

    /// `5 answers used the agent's JSON Schema mode; 1 new session, 4 forked`. `None` before the first answer.
    pub fn describe(&self) -> Option<String> {
        let schemas = [
            (self.by_provider, "used the agent's JSON Schema mode"),
            (self.by_prompt, "used a schema in the prompt"),
        ];
        let sessions = [
            (self.new, "new"),
            (self.continued, "continued"),
            (self.forked, "forked"),
            (self.retold, "replayed"),
        ];
        let mut parts: Vec<String> = Vec::new();
        for (n, mode) in schemas.into_iter().filter(|(n, _)| *n > 0) {
            parts.push(format!("{} {mode}", plural(n, "answer")));
        }
        let sessions: Vec<String> = sessions
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .enumerate()
            .map(|(index, (n, mode))| match index {
                0 => plural(n, &format!("{mode} session")),
                _ => format!("{} {mode}", format_count(n)),
            })
            .collect();
        if !sessions.is_empty() {
            parts.push(sessions.join(", "));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
