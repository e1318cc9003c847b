//! Reads YAML into JSON values with spans, so that the readers of JSON work for YAML too.

mod parse;
mod scalar;

pub(crate) use parse::parse;
