//! Exit codes. Scripts rely on them.

use cuegate_engine::{EndState, State, WaitKind};

/// Success.
pub const DONE: u8 = 0;
/// The run ended without success: aborted, failed or cancelled.
pub const BAD_END: u8 = 1;
/// A usage error, or a definition with errors.
pub const USAGE: u8 = 2;
/// The run is suspended and waits for a person or a quota.
pub const SUSPENDED: u8 = 3;
/// The provider or this machine failed; the run can be resumed.
pub const ENVIRONMENT: u8 = 4;
/// The run stopped at a limit of its budget or of its iterations; it can be resumed with a higher one.
pub const AT_LIMIT: u8 = 5;
/// A bug of cuegate.
pub const BUG: u8 = 70;
/// The run was interrupted; it can be resumed.
pub const INTERRUPTED: u8 = 130;

/// The exit code for the state of a run.
pub fn exit_code_of_state(state: &State) -> u8 {
    match state {
        State::Ended { state: EndState::Completed, .. } => DONE,
        State::Ended { state: EndState::Exhausted, .. } => AT_LIMIT,
        State::Ended { .. } => BAD_END,
        State::Suspended(waiting) => match waiting.kind {
            WaitKind::Person | WaitKind::Quota => SUSPENDED,
            WaitKind::Environment => ENVIRONMENT,
            WaitKind::Interrupted => INTERRUPTED,
        },
        // Neither ended nor suspended: this machine failed, and the run stopped at its last record.
        State::New | State::Running => ENVIRONMENT,
    }
}
