//! YAML as JSON values that know where they stand: what reads JSON reads YAML too.

mod parse;
mod scalar;

pub(crate) use parse::parse;
