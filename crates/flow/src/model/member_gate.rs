//! Commands that must pass after a member's answer.

use crate::model::{Template, Validator};

/// Commands that must pass after a member's answer before its outcome counts. Other steps have command steps on their
/// transitions; a member has no transitions.
#[derive(Debug, Clone)]
pub struct MemberGate {
    /// The commands, at least one, in execution order.
    pub commands: Vec<MemberCommand>,
    /// How often the member may repair what they reported; then it has failed.
    pub mends_max: u32,
}

/// A command of a [`MemberGate`].
#[derive(Debug, Clone)]
pub struct MemberCommand {
    /// The command and its success condition.
    pub validator: Validator,
    /// The prompt to the member, in its session, after a failure.
    pub mend: Template,
}
