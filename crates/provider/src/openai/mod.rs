//! Services that implement OpenAI Chat Completions with streaming: hosted ones, and servers of local models such as
//! llama.cpp, ollama, vLLM and LM Studio. The model has no tools, so this provider suits asks without work on files.
//!
//! An ask runs in a child process, [`openai_main`], like asks of other agents, so that one implementation stops it,
//! limits it and recovers its output after a crash. The API stores no sessions and neither does this provider: the
//! journal keeps the exchange, and the caller repeats earlier parts in the prompt.
//!
//! `docs/agents.md` documents the settings.

mod body;
mod child;
mod chunk;
mod endpoint;
mod fault;
mod http;
mod meter;
mod provider;
mod reader;
mod reset;
mod settings;
mod sse;
mod strict;
#[cfg(test)]
mod testing;
mod wire;

pub use child::openai_main;
pub use provider::{OpenAiProgram, OpenAiProvider};
pub use settings::{OpenAiSettings, SchemaMode, TokenField};
