//! One trait for asking an agent, one file per agent.
//!
//! *Never* knows flows, runs or journals; never retries on its own.

mod ask;
pub mod scripted;

pub use ask::{
    Activity, Answer, AnswerReader, Capabilities, Ended, Fault, FaultClass, Kind, Launch, Local, Permission,
    Prepared, Provider, Request, Session, Shared, Usage,
};
