//! Commands that a member's answer has to pass.

use crate::model::{Template, Validator};

/// What has to pass after the answer of a member, before its outcome counts. Everybody else has steps of commands on
/// their ways; a member has none, as it leads nowhere by itself.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The commands, at least one, in the order in which they are run.
    pub commands: Vec<Guarded>,
    /// How often the member mends what they found; after that it has failed.
    pub mends_max: u32,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// What is run, and when it passes.
    pub validator: Validator,
    /// What the member is told, in its conversation, when it does not.
    pub mend: Template,
}
