//! Any program as an agent: the request on standard input, events and the answer as lines of JSON on standard output.

mod agent;
mod read;
mod settings;
mod wire;

pub use agent::ExecAgent;
pub use settings::ExecSettings;
