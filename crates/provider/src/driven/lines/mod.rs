//! Agents that take one prompt and print lines of JSON.

mod copilot;
mod line_reader;
mod qwen;

pub(super) use line_reader::run_lines;
