//! A stand-in for the model APIs of agents. It serves one scenario as Anthropic Messages, OpenAI Responses, OpenAI Chat
//! Completions and Google's `generateContent`, so that one scenario drives every agent.
//!
//! The server uses `std::net` directly because tests need protocol violations that HTTP libraries prevent: a stream
//! that ends within an answer, a head without a body, a silent connection.
//!
//! ```
//! use cuegate_testkit::standin::{Reply, Scenario, Standin};
//!
//! let scenario = Scenario::new()
//!     .reply(Reply::to("fix the test").shell("touch fixed").text("It is fixed."))
//!     .reply(Reply::any().status(529).for_ever());
//! let standin = Standin::start(scenario);
//! // start an agent with `standin.claude_env()`, `standin.codex_args()` or `standin.openai_base()`, then
//! assert!(standin.requests().is_empty());
//! ```

mod answer;
mod chat;
mod gemini;
mod http;
mod messages;
mod play;
mod responses;
mod scenario;
mod server;
mod tools;
mod wire;

pub(crate) use http::Connection;
pub use scenario::{Act, Body, Reply, Scenario, Tokens};
pub use server::{Recorded, Standin};
