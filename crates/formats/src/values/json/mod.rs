//! JSON values with their spans.

mod fields;
mod outside;
mod parse;
mod texts;
mod value;

pub(crate) use fields::{Fields, Text};
pub(crate) use parse::{NESTING_MAX, parse};
pub(crate) use value::{Entry, Json, Kind};
