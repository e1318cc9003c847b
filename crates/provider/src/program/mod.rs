//! What providers share that ask by starting a program.

pub(crate) mod find;
pub(crate) mod probe;
pub(crate) mod resets;
pub(crate) mod told;
