//! The vocabulary of each generation: its intents, their aliases, and the intents of each step kind.

use cuegate_flow::diagnostics::Diagnostic;

use crate::climpt::generation::Generation;
use crate::climpt::kinds::{Intent, StepKind};
use crate::suggest::{add_suggestion, format_suggestion};

impl Generation {
    /// The intents of this generation, by word.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Generation::Complete => &["next", "repeat", "jump", "complete", "abort"],
            Generation::Closing | Generation::Check => {
                &["next", "repeat", "jump", "handoff", "closing", "escalate", "abort"]
            }
        }
    }

    /// The key that holds the failure patterns of validators.
    pub(crate) fn patterns_key(self) -> &'static str {
        match self {
            Generation::Complete => "completionPatterns",
            Generation::Closing | Generation::Check => "failurePatterns",
        }
    }

    /// The intent of this exact word.
    pub(crate) fn intent(self, word: &str) -> Option<Intent> {
        self.words().contains(&word).then(|| Intent::parse(word)).flatten()
    }

    /// Aliases that agents use for an intent: the alias table of 14.4.2, and the intent mapping of the "Step Flow
    /// Design".
    pub(crate) fn aliases(self, intent: Intent) -> &'static [&'static str] {
        match (self, intent) {
            (Generation::Complete, Intent::Next) => &["continue"],
            (Generation::Complete, Intent::Repeat) => &["retry", "wait"],
            (Generation::Complete, Intent::Abort) => &["escalate"],
            (Generation::Complete, _) => &[],
            (_, Intent::Next) => &["continue", "pass"],
            (_, Intent::Repeat) => &["retry", "wait", "fail"],
            (_, Intent::Closing) => &["done", "finished"],
            (_, _) => &[],
        }
    }

    /// The intent of an alias.
    pub(crate) fn aliased(self, word: &str) -> Option<Intent> {
        let lower = word.trim().to_lowercase();
        let mut intents = self.words().iter().filter_map(|word| Intent::parse(word));
        intents.find(|intent| self.aliases(*intent).contains(&lower.as_str()))
    }

    /// Reports a word that is not an intent, with a suggested replacement.
    pub(crate) fn suggested(self, finding: Diagnostic, word: &str) -> Diagnostic {
        match self.aliased(word) {
            Some(intent) => finding.did_you_mean(intent.as_str()).hint(self.suggestion(word)),
            None => add_suggestion(finding, word, self.words()),
        }
    }

    /// The suggested replacement for a word that is not an intent: the intent of this alias, else the nearest word.
    pub(crate) fn suggestion(self, word: &str) -> String {
        match self.aliased(word) {
            Some(intent) => {
                let intent = intent.as_str();
                format!("agents may answer `{word}` for `{intent}`, but definitions say `{intent}`")
            }
            None => format_suggestion(word, self.words()),
        }
    }

    /// The intents that a step of a kind may allow, besides `abort`.
    pub(crate) fn intents_of(self, kind: StepKind) -> &'static [Intent] {
        match (self, kind) {
            // That document has no kinds: only the target of `complete` distinguishes a `complete.*` step.
            (Generation::Complete, _) => &[Intent::Next, Intent::Repeat, Intent::Jump, Intent::Complete],
            (_, StepKind::Work) => &[Intent::Next, Intent::Repeat, Intent::Jump, Intent::Handoff],
            (_, StepKind::Verification) => &[Intent::Next, Intent::Repeat, Intent::Jump, Intent::Escalate],
            (_, StepKind::Closure) => &[Intent::Closing, Intent::Repeat],
        }
    }

    /// Whether a step of a kind may allow an intent.
    pub(crate) fn allows(self, kind: StepKind, intent: Intent) -> bool {
        intent == Intent::Abort || self.intents_of(kind).contains(&intent)
    }

    /// The intent of a closure step that completes the run.
    pub(crate) fn ending(self) -> Intent {
        match self {
            Generation::Complete => Intent::Complete,
            Generation::Closing | Generation::Check => Intent::Closing,
        }
    }

    /// The intent of a work step that leads to a closure step.
    pub(crate) fn entering(self) -> Intent {
        match self {
            Generation::Complete => Intent::Complete,
            Generation::Closing | Generation::Check => Intent::Handoff,
        }
    }

    /// The name in findings of steps that complete the run.
    pub(crate) fn closure_step(self) -> &'static str {
        match self {
            Generation::Complete => "a `complete.*` step",
            Generation::Closing | Generation::Check => "a closure step",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Generation, Intent, StepKind};

    #[test]
    fn every_generation_has_its_own_aliases_only() {
        let aliased = |generation: Generation| {
            ["continue", "pass", "retry", "wait", "fail", "done", "finished", "escalate", " Retry "]
                .map(|word| generation.aliased(word).map(Intent::as_str).unwrap_or("-"))
                .join(" ")
        };
        assert_eq!(aliased(Generation::Closing), "next next repeat repeat repeat closing closing - repeat");
        assert_eq!(aliased(Generation::Complete), "next - repeat repeat - - - abort repeat");
    }

    #[test]
    fn intents_of_other_generations_are_none() {
        assert_eq!(Generation::Closing.intent("complete"), None);
        assert_eq!(Generation::Complete.intent("handoff"), None);
        assert_eq!(Generation::Complete.intent("complete"), Some(Intent::Complete));
        assert!(Generation::Closing.allows(StepKind::Closure, Intent::Abort));
        assert!(!Generation::Closing.allows(StepKind::Closure, Intent::Next));
        assert!(Generation::Complete.allows(StepKind::Closure, Intent::Next));
    }
}
