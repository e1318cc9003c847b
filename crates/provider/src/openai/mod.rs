//! Any service that speaks OpenAI Chat Completions over HTTP, streamed: hosted ones, and servers of local models such
//! as llama.cpp, ollama, vLLM and LM Studio. Its model has no tools: it is for asks that need an answer and no work.
//!
//! An ask is put by a program, [`openai_main`], as all others are, so that ending it, limiting it and taking over what
//! it left after a crash of ours is one code. The API keeps no conversations and neither does this: the journal is the
//! only place where an exchange is kept, and the caller sends the earlier part of one again in the prompt.
//!
//! The settings are described in `docs/openai.md`.

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
pub use settings::{SchemaMode, Settings, TokenField};
