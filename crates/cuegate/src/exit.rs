//! Exit codes: what scripts may rely on.

use cuegate_engine::{EndState, State, WaitKind};

/// Done.
pub const DONE: u8 = 0;
/// The flow ended badly: aborted, failed, exhausted, cancelled.
pub const BAD_END: u8 = 1;
/// Wrong use, or an unsound definition.
pub const USAGE: u8 = 2;
/// Suspended, waiting for a person or a quota.
pub const SUSPENDED: u8 = 3;
/// The provider or this machine failed; the run can be resumed.
pub const ENVIRONMENT: u8 = 4;
/// A bug of ours.
pub const BUG: u8 = 70;
/// Interrupted; the run can be resumed.
pub const INTERRUPTED: u8 = 130;

/// The exit code for the state that a run was left in.
pub fn of(state: &State) -> u8 {
    match state {
        State::Ended { state: EndState::Completed, .. } => DONE,
        State::Ended { .. } => BAD_END,
        State::Suspended(waiting) => match waiting.kind {
            WaitKind::Person | WaitKind::Quota => SUSPENDED,
            WaitKind::Environment => ENVIRONMENT,
            WaitKind::Interrupted => INTERRUPTED,
        },
        // It neither ended nor waits: this machine failed, and the run stands at its last record.
        State::New | State::Running => ENVIRONMENT,
    }
}
