//! Keys of a definition that limit runs, for the sensitivity analysis.

use crate::{
    Str,
    diagnostics::Span,
    model::{CounterId, Flow},
};

/// A number in a definition, or a setting, that limits runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitKey {
    /// Its name as written.
    pub name: Str,
    /// Where it is written, or the entry that it belongs to; `None` for a setting.
    pub span: Option<Span>,
    pub value: u32,
    /// Its minimum value.
    pub least: u32,
    /// Everything that this number limits.
    pub turns: Vec<LimitTarget>,
}

/// What a key limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitTarget {
    /// The iterations of a run.
    Iterations,
    /// The transitions that count on this counter.
    Counter(CounterId),
    /// The rounds before a monitor acts, by its index.
    Monitor(u32),
    /// How often members repair what their commands reported.
    Mends,
    /// The count of a verdict part, by its index in [`crate::model::Verdict::places`].
    Part(u32),
}

impl Flow {
    /// Where the number that limits `turn` is written; `None` if the definition has no such number.
    pub fn written(&self, turn: LimitTarget) -> Option<Span> {
        self.keys.iter().find(|key| key.turns.contains(&turn)).and_then(|key| key.span)
    }
}

impl LimitKey {
    /// A key that limits one thing.
    pub fn new(name: &str, span: Span, value: u32, least: u32, turn: LimitTarget) -> LimitKey {
        LimitKey { name: name.into(), span: Some(span), value, least, turns: vec![turn] }
    }
}
