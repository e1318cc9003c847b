//! Step kinds and the fixed set of intents: the tables of 14.1 and 14.4.1. `vocabulary.rs` assigns them to generations.

use crate::values::json::Json;

/// The purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Produces something.
    Work,
    /// Checks what was produced.
    Verification,
    /// Completes the flow.
    Closure,
}

impl StepKind {
    /// All kinds by the words of `stepKind`.
    pub(crate) const WORDS: [&'static str; 3] = ["work", "verification", "closure"];

    /// The kind that `stepKind` names.
    pub(crate) fn parse(word: &str) -> Option<StepKind> {
        match word {
            "work" => Some(StepKind::Work),
            "verification" => Some(StepKind::Verification),
            "closure" => Some(StepKind::Closure),
            _ => None,
        }
    }

    /// Every `c2` that implies a kind.
    const CATEGORIES: [(&str, StepKind); 4] = [
        ("initial", StepKind::Work),
        ("continuation", StepKind::Work),
        ("verification", StepKind::Verification),
        ("closure", StepKind::Closure),
    ];

    /// The words of those.
    pub(crate) fn categories() -> impl Iterator<Item = &'static str> {
        StepKind::CATEGORIES.into_iter().map(|(c2, _)| c2)
    }

    /// The kind that a `c2` implies; `None` for sections, which are outside the flow, and for any other `c2`.
    pub(crate) fn of_category(c2: &str) -> Option<StepKind> {
        StepKind::CATEGORIES.into_iter().find(|(known, _)| *known == c2).map(|(_, kind)| kind)
    }

    /// The word of `stepKind`.
    pub fn as_str(self) -> &'static str {
        match self {
            StepKind::Work => "work",
            StepKind::Verification => "verification",
            StepKind::Closure => "closure",
        }
    }
}

/// The kind of a step definition: its `stepKind`, else the one that its `c2` implies.
pub fn infer_kind(step: &serde_json::Value) -> Option<StepKind> {
    let step = Json::from(step);
    match step.get("stepKind").and_then(Json::as_text) {
        Some(word) => StepKind::parse(word),
        None => step.get("c2").and_then(Json::as_text).and_then(StepKind::of_category),
    }
}

/// The decisions of a step. Definitions choose among them and cannot add others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Intent {
    /// Continue with the next step.
    Next,
    /// Repeat the step.
    Repeat,
    /// Go to a step that the answer names.
    Jump,
    /// Go to a closure step, or into another flow.
    Handoff,
    /// The workflow is complete.
    Closing,
    /// Go to a step that helps verification.
    Escalate,
    /// Go to a step that completes the run, or, in such a step, end the run.
    Complete,
    /// Abort the run.
    Abort,
}

impl Intent {
    /// The intent of this exact word, in any generation.
    pub(crate) fn parse(word: &str) -> Option<Intent> {
        match word {
            "next" => Some(Intent::Next),
            "repeat" => Some(Intent::Repeat),
            "jump" => Some(Intent::Jump),
            "handoff" => Some(Intent::Handoff),
            "closing" => Some(Intent::Closing),
            "escalate" => Some(Intent::Escalate),
            "complete" => Some(Intent::Complete),
            "abort" => Some(Intent::Abort),
            _ => None,
        }
    }

    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Intent::Next => "next",
            Intent::Repeat => "repeat",
            Intent::Jump => "jump",
            Intent::Handoff => "handoff",
            Intent::Closing => "closing",
            Intent::Escalate => "escalate",
            Intent::Complete => "complete",
            Intent::Abort => "abort",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Intent, StepKind, infer_kind};
    use serde_json::json;

    #[test]
    fn kinds_come_from_the_kind_else_from_c2() {
        let cases = [
            (json!({"stepKind": "verification", "c2": "initial"}), Some(StepKind::Verification)),
            (json!({"c2": "initial"}), Some(StepKind::Work)),
            (json!({"c2": "continuation"}), Some(StepKind::Work)),
            (json!({"c2": "verification"}), Some(StepKind::Verification)),
            (json!({"c2": "closure"}), Some(StepKind::Closure)),
            (json!({"c2": "section"}), None),
            (json!({"c2": "test"}), None),
            (json!({}), None),
        ];
        for (step, expected) in cases {
            assert_eq!(infer_kind(&step), expected, "{step}");
        }
    }

    #[test]
    fn words_and_variants_agree() {
        for word in ["next", "repeat", "jump", "handoff", "closing", "escalate", "complete", "abort"] {
            assert_eq!(Intent::parse(word).map(Intent::as_str), Some(word));
        }
        for word in StepKind::WORDS {
            assert_eq!(StepKind::parse(word).map(StepKind::as_str), Some(word));
        }
    }
}
