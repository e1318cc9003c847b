//! Stand-ins of the model APIs that agents talk to: one scenario, spoken as Anthropic Messages, OpenAI Responses and
//! OpenAI Chat Completions, so that one test text drives every agent.
//!
//! The server is written by hand over `std::net`: half of what it is for is breaking the protocol (a stream that ends
//! in the middle of an answer, a head without a body, a connection that says nothing), which a library that keeps the
//! protocol does not let one do.
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
mod http;
mod messages;
mod play;
mod responses;
mod scenario;
mod server;
mod tools;
mod wire;

pub use scenario::{Act, Body, Reply, Scenario, Tokens};
pub use server::{Recorded, Standin};
