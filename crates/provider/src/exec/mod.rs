//! Any program as an agent: the request on standard input, events and the answer as lines of JSON on standard output.

mod agent;
mod read;
mod settings;
mod wire;

pub use agent::ExecAgent;
pub(crate) use read::ExecReader;
pub use settings::ExecSettings;
pub(crate) use wire::{AnswerLine, EventLine};
