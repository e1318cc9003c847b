//! One trait for asking an agent, one file per agent.
//!
//! *Never* knows flows, runs or journals; never retries on its own.

mod ask;
pub mod claude;
pub mod codex;
mod needs;
pub mod openai;
mod price;
mod program;
mod redact;
pub mod scripted;

pub use ask::{
    Activity, Answer, AnswerReader, Cap, Capabilities, Ended, Fault, FaultClass, Inspection, Kind, Launch,
    Local, Login, Permission, Prepared, Problem, Provider, Request, Session, Shared, Usage,
};
pub use needs::{Needs, Service};
pub use price::{Price, Prices};
pub use program::probe::look;
