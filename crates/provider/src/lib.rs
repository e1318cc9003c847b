//! One trait for asking an agent, one file per agent.
//!
//! *Never* knows flows, runs or journals; never retries on its own.

mod ask;
pub mod claude;
pub mod codex;
pub mod openai;
mod program;
mod redact;
mod sandbox_needs;
pub mod scripted;
mod token_prices;

pub use ask::{
    Activity, Answer, AnswerReader, Cap, Capabilities, Ended, Fault, FaultClass, Inspection, Kind, Launch,
    Local, Login, Permission, Prepared, Problem, Provider, Request, Session, Shared, Usage,
};
pub use program::probe::look;
pub use sandbox_needs::{Needs, Service};
pub use token_prices::{Price, Prices};
