//! Keys of a definition that bound how much a run does, for whoever wants to lower one.

use crate::{
    Str,
    diagnostics::Span,
    model::{CounterId, Flow},
};

/// A number that a definition, or a setting that it is read with, bounds runs by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// What it is called where it is written.
    pub name: Str,
    /// Where it is written, or what it belongs to where it is not; `None` for a setting.
    pub span: Option<Span>,
    /// Its value.
    pub value: u32,
    /// The least value that it can have.
    pub least: u32,
    /// What it bounds, all of these by the same number.
    pub turns: Vec<Turn>,
}

/// What a key bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The iterations of a run.
    Iterations,
    /// Ways that count on this.
    Counter(CounterId),
    /// The rounds that a monitor waits for, by its place.
    Monitor(u32),
    /// How often members mend what their commands found.
    Mends,
    /// What a part of the verdict counts, by its place among [`crate::model::Verdict::places`].
    Part(u32),
}

impl Flow {
    /// Where the number is written that bounds something; `None` where no number of the definition does.
    pub fn written(&self, turn: Turn) -> Option<Span> {
        self.keys.iter().find(|key| key.turns.contains(&turn)).and_then(|key| key.span)
    }
}

impl Key {
    /// A key that bounds one thing.
    pub fn new(name: &str, span: Span, value: u32, least: u32, turn: Turn) -> Key {
        Key { name: name.into(), span: Some(span), value, least, turns: vec![turn] }
    }
}
